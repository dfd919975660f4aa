"""Products of matrices in the layers of a network: in lower precision if asked, and by the faster library.

PyTorch's `set_float32_matmul_precision("medium")` lets a processor that multiplies bfloat16 fast (AMX, or
AVX-512 with BF16; TF32 on a GPU) read both float32 matrices of a product in 8 bits of mantissa and add in
float32. It applies to everything at once; here, to the linear layers, while training, and for nothing
else: attention is slower with it, and a clipped sum must keep its precision. Other processors ignore it.

In full precision PyTorch multiplies by MKL, which leaves half of the width of an AMD processor with AVX-512
unused. oneDNN, which PyTorch uses for lower precision and in models that it compiles, takes half the time.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import partial

import torch
from torch import nn
from torch.nn import functional
from transformers.pytorch_utils import Conv1D

from privhelpers import validate
from privhelpers.errors import InvalidParameter

MATMUL_PRECISIONS = ("highest", "medium")
# Whether the processor has what MKL may leave unused; without it MKL is as fast or faster.
WIDE = torch.backends.mkldnn.is_available() and torch.backends.cpu.get_cpu_capability() == "AVX512"
_LARGE = 1 << 20  # multiplications that repay what oneDNN takes to begin
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


def product(rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
    """Return `functional.linear(rows, weight, bias)`, up to rounding, by the faster library.

    Args:
        rows: [..., k].
        weight: [n, k].
        bias: [n], or none.
    """
    if _is_for_onednn(rows, weight):
        return torch.ops.mkldnn._linear_pointwise(rows, weight, bias, "none", [], "")
    return functional.linear(rows, weight, bias)


def add_product(total: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> None:
    """Add left^T right to `total`, [m, n], by the faster library; left is [k, m], right [k, n]."""
    if _is_for_onednn(left.t(), right.t()):
        total.add_(product(left.t(), right.t()))
    else:
        total.addmm_(left.t(), right)


def products(left: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return left right^T of each pair, [units, m, n], by the faster library.

    Args:
        left: [units, m, k], with a unit or more.
        right: [units, n, k].
    """
    if _is_for_onednn(left[0], right[0]):
        return torch.stack([product(one, other) for one, other in zip(left, right, strict=True)])
    return torch.bmm(left, right.transpose(1, 2))


def _is_for_onednn(rows: torch.Tensor, weight: torch.Tensor) -> bool:
    return (
        WIDE
        and rows.device.type == "cpu"
        and rows.dtype == weight.dtype == torch.float32
        and rows.numel() * weight.shape[0] >= _LARGE
        and torch.get_float32_matmul_precision() == "highest"
        and not torch.is_autocast_enabled("cpu")
    )


class _Layer(torch.autograd.Function):
    """A linear layer whose products, forward and backward, are in `layer_precision`."""

    @staticmethod
    def forward(ctx, value, weight, bias):
        ctx.save_for_backward(value, weight)
        rows = value.reshape(-1, value.shape[-1])
        with layer_precision():
            out = product(rows, weight.t(), bias)
        return out.view(*value.shape[:-1], weight.shape[1])

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, gradient):
        value, weight = ctx.saved_tensors
        wanted = ctx.needs_input_grad
        rows, back = (side.reshape(-1, side.shape[-1]) for side in (value, gradient))
        with layer_precision():
            of_value = product(back, weight).view(value.shape) if wanted[0] else None
            of_weight = product(rows.t(), back.t()) if wanted[1] else None
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
        ours = WIDE or matmul_precision != "highest"
        if ours and not torch.is_autocast_enabled(model.device.type):
            for module in model.modules():
                if type(module) in (nn.Linear, Conv1D) and module.weight.dtype == torch.float32:
                    module.forward = partial(_forward, module)
                    swapped.callback(delattr, module, "forward")
        swapped.enter_context(layers_in(matmul_precision))
        yield
