"""GPT-2's activation, GELU with a hyperbolic tangent, at less than half its price on a processor.

0.5 (1 + tanh u) is the logistic function of 2u. PyTorch's kernel spends most of its time on the tangent, and
computes it again in the backward pass; an exponential is far cheaper, and one serves both passes.

Source: Hendrycks and Gimpel 2016, section 2, for the activation.
"""

import math

import torch
from torch import nn
from torch.nn import functional
from transformers import PreTrainedModel
from transformers.activations import GELUTanh, NewGELUActivation

SLOW_ACTIVATIONS = (GELUTanh, NewGELUActivation)  # of transformers: one kernel, and eight; the same function
_LINEAR = 2 * math.sqrt(2 / math.pi)  # 2u = value * (_LINEAR + _CUBIC * value^2)
_CUBIC = 0.044715 * _LINEAR


class _TanhGELU(torch.autograd.Function):
    """The value times its gate, the logistic function of 2u."""

    generate_vmap_rule = True

    @staticmethod
    def forward(value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        gate = _gate(value)
        return value * gate, gate

    @staticmethod
    def setup_context(ctx, inputs, output) -> None:
        ctx.mark_non_differentiable(output[1])
        ctx.save_for_backward(inputs[0], output[1])

    @staticmethod
    def backward(ctx, gradient, _):
        value, gate = ctx.saved_tensors
        if torch.is_grad_enabled():  # someone differentiates once more: the library knows how
            return torch.ops.aten.gelu_backward(gradient, value, approximate="tanh")
        # gate + gate * (1 - gate) * value * d(2u)/d(value), with few passes over the memory; torch.func.vmap
        # knows no `out=`, and the gradient may have an axis that the value lacks
        slope = _square(value, 3 * _CUBIC).mul_(value)
        slope.addcmul_(slope, gate, value=-1.0)
        return gradient * torch.addcmul(gate, gate, slope)


def _gate(value: torch.Tensor) -> torch.Tensor:
    return _square(value, _CUBIC).mul_(value).sigmoid_()


def _square(value: torch.Tensor, factor: float) -> torch.Tensor:
    """Return _LINEAR + factor * value^2 in one pass over the memory."""
    return torch.addcmul(torch.tensor(_LINEAR, dtype=value.dtype), value, value, value=factor)


def tanh_gelu(value: torch.Tensor) -> torch.Tensor:
    """Return `functional.gelu(value, approximate="tanh")`, up to rounding; any shape."""
    if value.device.type != "cpu" or value.dtype not in (torch.float32, torch.float64):
        return functional.gelu(value, approximate="tanh")  # the kernel has more digits than a short type
    return _TanhGELU.apply(value)[0] if torch.is_grad_enabled() else _gate(value).mul_(value)


class TanhGELU(nn.Module):
    """The activation as a layer of a model."""

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        """Return `tanh_gelu` of the value."""
        return tanh_gelu(value)


def with_fast_activations(model: PreTrainedModel) -> PreTrainedModel:
    """Replace GPT-2's activations in a model by `TanhGELU`, in place; what is saved of it does not change."""
    for module in list(model.modules()):
        for name, part in module.named_children():
            if type(part) in SLOW_ACTIVATIONS:
                setattr(module, name, TanhGELU())
    return model
