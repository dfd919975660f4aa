"""The layers whose per-unit gradients are known, and how a pass listens to them.

For one pass the forward of each layer with trainable parameters is swapped for a function whose backward
returns the gradient of the input alone, and hands what the layer read and what came back to a `Recorder`. No
gradient of the whole batch is formed, and autograd leaves every `.grad` empty: one that is not empty
afterwards was used by something that is not listed here, and the pass is refused.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import nn
from torch.nn import functional
from transformers.activations import NewGELUActivation
from transformers.pytorch_utils import Conv1D

from privhelpers.dpsgd._recorder import Recorder
from privhelpers.errors import UnsupportedModel


def _as_rows(value: torch.Tensor) -> torch.Tensor:
    """Return shape [rows, length, width]."""
    if value.dim() == 3:
        return value
    return value.unsqueeze(1) if value.dim() == 2 else value.reshape(value.shape[0], -1, value.shape[-1])


class _Multiply(torch.autograd.Function):
    """Linear and Conv1D; the second keeps its weight transposed."""

    @staticmethod
    def forward(ctx, value, weight, bias, module, recorder):
        ctx.save_for_backward(value, weight)
        ctx.module, ctx.recorder = module, recorder
        return functional.linear(value, weight.t() if isinstance(module, Conv1D) else weight, bias)

    @staticmethod
    def backward(ctx, gradient):
        value, weight = ctx.saved_tensors
        module, recorder = ctx.module, ctx.recorder
        recorder.check(module, value.shape[0])
        # Detached: what is kept must not keep the graph that holds the keeper. Under autocast the pass is in
        # half the digits; norms and sums are not, or a norm would read low and let a unit through.
        read, back = (_as_rows(side.to(weight.dtype)) for side in (value.detach(), gradient))
        transposed = isinstance(module, Conv1D)
        if module.weight.requires_grad:
            recorder.matrix(module.weight, *((read, back) if transposed else (back, read)))
        if module.bias is not None and module.bias.requires_grad:
            recorder.vector(module.bias, back)
        if not ctx.needs_input_grad[0]:
            return (None,) * 5
        back_through = (weight if transposed else weight.t()).to(gradient.dtype)
        return functional.linear(gradient, back_through).to(value.dtype), None, None, None, None


class _LookUp(torch.autograd.Function):
    """Embedding; positions are often looked up once for the whole batch, here once for each row."""

    @staticmethod
    def forward(ctx, index, weight, module, recorder):
        rows = recorder.units.rows
        ctx.index = index.expand(rows, *index.shape[1:]) if index.shape[0] == 1 else index
        ctx.module, ctx.recorder = module, recorder
        value = functional.embedding(index, weight)
        return value.expand(rows, *value.shape[1:]) if index.shape[0] == 1 else value

    @staticmethod
    def backward(ctx, gradient):
        index, module = ctx.index, ctx.module
        ctx.recorder.check(module, index.shape[0])
        index, gradient = index.reshape(index.shape[0], -1), _as_rows(gradient)
        if module.padding_idx is not None:  # autograd gives that row no gradient
            gradient = gradient.masked_fill((index == module.padding_idx).unsqueeze(-1), 0.0)
        ctx.recorder.lookup(module.weight, index, gradient)
        return (None,) * 4


class _Normalize(torch.autograd.Function):
    """LayerNorm."""

    @staticmethod
    def forward(ctx, value, weight, bias, module, recorder):
        ctx.module, ctx.recorder, ctx.dtype = module, recorder, value.dtype
        value = value if weight is None else value.to(weight.dtype)  # as autocast does
        out, mean, scale = torch.native_layer_norm(value, module.normalized_shape, weight, bias, module.eps)
        ctx.save_for_backward(value, weight, bias, mean, scale)
        return out

    @staticmethod
    def backward(ctx, gradient):
        value, weight, bias, mean, scale = ctx.saved_tensors
        module, recorder = ctx.module, ctx.recorder
        recorder.check(module, value.shape[0])
        gradient = gradient.contiguous().to(value.dtype)
        if weight is not None and weight.requires_grad:
            normalized = torch.addcmul(-mean * scale, value, scale).mul_(gradient)
            recorder.vector(module.weight, _as_rows(normalized))
        if bias is not None and bias.requires_grad:
            recorder.vector(module.bias, _as_rows(gradient))
        if not ctx.needs_input_grad[0]:
            return (None,) * 5
        back = torch.ops.aten.native_layer_norm_backward(
            gradient, value, module.normalized_shape, mean, scale, weight, bias, [True, False, False]
        )
        return back[0].to(ctx.dtype), None, None, None, None


FUNCTIONS = {nn.Linear: _Multiply, Conv1D: _Multiply, nn.Embedding: _LookUp, nn.LayerNorm: _Normalize}


def _refuse_mixing(name: str, module: nn.Module) -> None:
    """Refuse a module that mixes rows, whether or not it is trained."""
    if isinstance(module, nn.modules.batchnorm._BatchNorm):
        raise UnsupportedModel(
            f"{name} ({type(module).__name__}): mixes the rows of a batch, so that no row has a gradient of "
            "its own; replace it by GroupNorm (opacus.validators.ModuleValidator.fix does)"
        )
    if isinstance(module, nn.Embedding) and (module.max_norm is not None or module.scale_grad_by_freq):
        raise UnsupportedModel(f"{name}: an Embedding with max_norm or scale_grad_by_freq mixes rows")


def owners(model: nn.Module) -> list[nn.Module]:
    """Return the modules that own trainable parameters.

    Raises:
        UnsupportedModel: a module whose per-unit gradient is not known; it is named.
    """
    modules = []
    for name, module in model.named_modules():
        _refuse_mixing(name, module)
        if not any(p.requires_grad for p in module.parameters(recurse=False)):
            continue
        if type(module) in FUNCTIONS:
            modules.append(module)
        # A container may list a parameter of a layer inside it once more, as BERT's head does with a bias, or
        # one that nothing uses: whether it is used is seen after the pass.
        elif not list(module.children()):
            raise UnsupportedModel(
                f"{name} ({type(module).__name__}): per-unit gradients are known for "
                f"{', '.join(t.__name__ for t in FUNCTIONS)}; freeze its parameters or replace it"
            )
    return modules


def slow_activations(model: nn.Module) -> list[nn.Module]:
    """Return the activations of GPT-2, which eight kernels compute; while listening, one does the same."""
    return [module for module in model.modules() if type(module) is NewGELUActivation]


def _listening(module: nn.Module, recorder: Recorder):
    if type(module) is NewGELUActivation:
        return lambda value: functional.gelu(value, approximate="tanh")
    function = FUNCTIONS[type(module)]
    if function is _LookUp:
        return lambda index: function.apply(index, module.weight, module, recorder)
    return lambda value: function.apply(value, module.weight, module.bias, module, recorder)


@contextmanager
def listening(modules: list[nn.Module], recorder: Recorder) -> Iterator[None]:
    """Swap the forward of every module for the length of one pass."""
    before = [module.__dict__.get("forward") for module in modules]
    for module in modules:
        module.forward = _listening(module, recorder)
    try:
        yield
    finally:
        for module, forward in zip(modules, before, strict=True):
            del module.forward
            if forward is not None:
                module.forward = forward
