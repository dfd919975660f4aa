"""Copies of a model in fewer bits: does forgetting, or a leak, survive being made smaller?"""

import copy

import torch
from torch import nn

from privhelpers import validate
from privhelpers.errors import InvalidParameter


def rounded(model: nn.Module, bits: int) -> nn.Module:
    """Return a copy with each row of each matrix rounded to 2**bits - 1 evenly spaced values around 0.

    The largest absolute value of a row stays as it is, and vectors are not rounded: the usual way to store a
    model in 8 or 4 bits, without its integers. Tied matrices stay tied.

    Args:
        model: any model; it is not changed.
        bits: of a stored weight, 2 or more.

    Raises:
        InvalidParameter: fewer than 2 bits, which leave zeros alone.

    Source: Dettmers et al. 2022, section 2.1 (absolute maximum, one scale a row).

    >>> layer = nn.Linear(2, 1, bias=False)
    >>> _ = layer.weight.data.copy_(torch.tensor([[1.0, 0.4]]))
    >>> rounded(layer, 2).weight.tolist()
    [[1.0, 0.0]]
    """
    bits = validate.positive_int(bits=bits)
    if bits < 2:
        raise InvalidParameter("bits = 1: must be 2 or more; one bit around 0 leaves zeros alone")
    smaller = copy.deepcopy(model)
    with torch.no_grad():
        for weight in smaller.parameters():
            if weight.ndim == 2:
                largest = weight.abs().amax(1, keepdim=True)
                unit = largest.clamp_min(1e-12) / (2 ** (bits - 1) - 1)
                weight.copy_((weight / unit).round() * unit)
    return smaller
