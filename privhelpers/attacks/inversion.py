"""Reading a note back from one gradient of a GPT-2, and counting how much of it was read rightly.

`check_span` reads a note off the rank of a layer's gradient (Petrov et al. 2024). The other attackers, which
divide or search a list, are in the chapter.

Rows are <end> note <end>, all of one length that the attacker knows; the first <end> is known too.
"""

import copy
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from transformers import PreTrainedModel

from privhelpers import validate
from privhelpers.errors import InvalidParameter
from privhelpers.models import row_losses

Gradient = Mapping[str, torch.Tensor]

TOKENS, POSITIONS = "transformer.wte.weight", "transformer.wpe.weight"
PASSES = 1e-2  # distance of a unit vector from the span below which a candidate passes
_MARGIN = 1.1  # over the edge of the noise's singular values, below which a direction is taken for noise
_ROUNDING = 3e-6  # a direction weaker than this share of the strongest is float32 rounding


def attention_weight(block: int) -> str:
    """Return the name of the weight through which block number `block` reads its tokens."""
    return f"transformer.h.{block}.attn.c_attn.weight"


def untied(model: PreTrainedModel) -> PreTrainedModel:
    """Return a copy of the model whose output matrix is a parameter of its own."""
    twin = copy.deepcopy(model)
    twin.config.tie_word_embeddings = False
    twin.lm_head.weight = nn.Parameter(model.lm_head.weight.detach().clone())
    return twin


def gradient_of(model: PreTrainedModel, rows: torch.Tensor) -> dict[str, torch.Tensor]:
    """Return the gradient of the mean loss of some notes, as a client would send it; by parameter name.

    Args:
        model: a GPT-2.
        rows: token ids, shape [notes, length].
    """
    named = dict(model.named_parameters())
    loss = row_losses(model(input_ids=rows).logits, rows).mean()
    return dict(zip(named, torch.autograd.grad(loss, list(named.values())), strict=True))


def input_span(weight_gradient: torch.Tensor, *, noise: float = 0.0) -> torch.Tensor:
    """Return an orthonormal basis of what a layer read, from the gradient of its weight; shape [width, rank].

    Args:
        weight_gradient: of a Conv1D, shape [width, outputs].
        noise: standard deviation of the noise on each entry; directions that it explains are left out.

    Source: Petrov et al. 2024, without noise; with noise, the largest singular value of an m by n matrix of
    unit normals is close to sqrt(m) + sqrt(n).
    """
    noise = validate.non_negative(noise=noise)
    width, outputs = weight_gradient.shape
    left, values, _ = torch.linalg.svd(weight_gradient.double(), full_matrices=False)
    edge = max(_MARGIN * noise * (width**0.5 + outputs**0.5), _ROUNDING * float(values[0]))
    # Inputs have mean zero, so width - 1 directions are all there are: a span of all accepts everything.
    rank = min(max(int((values > edge).sum()), 1), width - 2)
    return left[:, :rank]


@torch.no_grad()
def candidate_inputs(model: PreTrainedModel, *, length: int) -> torch.Tensor:
    """Return what the first attention layer reads for every token at every position of a note, at length 1.

    Returns:
        Shape [length, vocabulary, width]; entry [t] belongs to position t + 1, after the first end token.
    """
    length = validate.positive_int(length=length)
    inner = model.transformer
    places = inner.wpe.weight[1 : length + 1, None, :]
    return functional.normalize(inner.h[0].ln_1(inner.wte.weight[None] + places).double(), dim=-1)


def _span_distances(inputs: torch.Tensor, basis: torch.Tensor) -> torch.Tensor:
    """Return how far each vector of length 1 lies from the span; in [0, 1].

    Args:
        inputs: shape [..., width].
        basis: orthonormal columns, shape [width, rank].
    """
    return (1 - (inputs @ basis).square().sum(-1)).clamp_min(0).sqrt()


def check_span(
    candidates: torch.Tensor, gradient: Gradient, *, noise: float = 0.0
) -> tuple[list[int], torch.Tensor]:
    """Return the token at each position whose input lies closest to the span of the first layer's gradient.

    Args:
        candidates: `candidate_inputs` of the weights that the gradient was taken at.
        gradient: of one note or more, by name.
        noise: standard deviation of the noise on each entry of the gradient, which the attacker knows.

    Returns:
        (token ids, distances of every candidate, shape [length, vocabulary]).

    Source: Petrov et al. 2024.
    """
    distances = _span_distances(candidates, input_span(gradient[attention_weight(0)], noise=noise))
    return distances.argmin(1).tolist(), distances


def _hits(truth: Sequence[int], guess: Sequence[int]) -> np.ndarray:
    """Return whether each position was read rightly; missing guesses are wrong, shape [length]."""
    read = np.full(len(truth), -1)
    read[: len(guess)] = np.asarray(guess, dtype=int)[: len(truth)]
    return read == np.asarray(truth, dtype=int)


def _shifted(truths: Sequence, guesses: Sequence, shift: int) -> list[tuple]:
    if len(truths) != len(guesses) or not len(truths):
        raise InvalidParameter(f"guesses: {len(guesses)} for {len(truths)} truths; give one for each")
    return [(truths[(i + shift) % len(truths)], guess) for i, guess in enumerate(guesses)]


def score(truths: Sequence[Sequence[int]], guesses: Sequence[Sequence[int]], *, shift: int = 0) -> np.ndarray:
    """Return which positions of which notes were read rightly, shape [notes, length].

    Args:
        truths: the notes, all of one length.
        guesses: one for each note.
        shift: compare each guess with the note so many places further on; other than 0, a control.

    Raises:
        InvalidParameter: there is not one guess for each note.
    """
    return np.stack([_hits(*pair) for pair in _shifted(truths, guesses, shift)])
