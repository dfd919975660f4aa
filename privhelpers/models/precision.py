"""Products of matrices in lower precision, in the layers of a network alone.

PyTorch's `set_float32_matmul_precision("medium")` lets a processor that multiplies bfloat16 fast (AMX, or
AVX-512 with BF16; TF32 on a GPU) read both float32 matrices of a product in 8 bits of mantissa and add in
float32. It applies to everything at once; here, to the linear layers, while training, and for nothing
else: attention is slower with it, and a clipped sum must keep its precision. Other processors ignore it.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial

import torch
from torch import nn
from transformers.pytorch_utils import Conv1D

from privhelpers import validate
from privhelpers.errors import InvalidParameter

MATMUL_PRECISIONS = ("highest", "medium")
_asked = "highest"


def check_precision(matmul_precision: str) -> None:
    """Check that a precision is one of `MATMUL_PRECISIONS`.

    Raises:
        InvalidParameter: it is not known.
    """
    validate.one_of(MATMUL_PRECISIONS, matmul_precision=matmul_precision)


@contextmanager
def layers_in(matmul_precision: str) -> Iterator[None]:
    """Set the precision that `layer_precision` uses within this context."""
    global _asked
    before, _asked = _asked, matmul_precision
    try:
        yield
    finally:
        _asked = before


@contextmanager
def _multiplying_in(matmul_precision: str) -> Iterator[None]:
    try:
        before = torch.get_float32_matmul_precision()
    except RuntimeError as error:
        raise InvalidParameter(
            'torch: a backend has its own precision; set fp32_precision = "none" again in torch.backends,'
            " its mkldnn.matmul and its cuda.matmul, and ask by matmul_precision"
        ) from error
    torch.set_float32_matmul_precision(matmul_precision)
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def layer_precision() -> AbstractContextManager[None]:
    """Multiply in the precision of `layers_in`, for the length of one product."""
    return _multiplying_in(_asked)


def full_precision() -> AbstractContextManager[None]:
    """Multiply in full float32 precision, whatever PyTorch is set to for the process."""
    return _multiplying_in("highest")


class _Layer(torch.autograd.Function):
    """A linear layer whose products, forward and backward, are in `layer_precision`."""

    @staticmethod
    def forward(ctx, value, weight, bias):
        ctx.save_for_backward(value, weight)
        rows = value.reshape(-1, value.shape[-1])
        with layer_precision():
            out = rows @ weight if bias is None else torch.addmm(bias, rows, weight)
        return out.view(*value.shape[:-1], weight.shape[1])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        value, weight = ctx.saved_tensors
        wanted = ctx.needs_input_grad
        rows, back = (side.reshape(-1, side.shape[-1]) for side in (value, gradient))
        with layer_precision():
            of_value = (back @ weight.t()).view(value.shape) if wanted[0] else None
            of_weight = rows.t() @ back if wanted[1] else None
        return of_value, of_weight, back.sum(0) if wanted[2] else None


def _forward(module: nn.Module, value: torch.Tensor) -> torch.Tensor:
    weight = module.weight if isinstance(module, Conv1D) else module.weight.t()
    return _Layer.apply(value, weight, module.bias)


@contextmanager
def training_in(model: nn.Module, matmul_precision: str) -> Iterator[None]:
    """Let the linear layers of a model multiply in this precision within this context, both passes.

    Under autocast, which shortens them already, and for weights that are not float32, nothing changes.
    """
    with ExitStack() as swapped:
        if matmul_precision != "highest" and not torch.is_autocast_enabled(model.device.type):
            for module in model.modules():
                if type(module) in (nn.Linear, Conv1D) and module.weight.dtype == torch.float32:
                    module.forward = partial(_forward, module)
                    swapped.callback(delattr, module, "forward")
        swapped.enter_context(layers_in(matmul_precision))
        yield
