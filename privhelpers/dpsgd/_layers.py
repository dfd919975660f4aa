"""The layers whose per-unit gradients are known, and how a pass records them.

For one pass the forward of each layer with trainable parameters is swapped for a function whose backward
returns the gradient of the input alone, and hands what the layer read and what came back to a `Recorder`. No
gradient of the whole batch is formed, and autograd leaves every `.grad` empty: one that is not empty
afterwards was used by something that is not listed here, and the pass is refused.
"""

import functools
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from transformers.pytorch_utils import Conv1D

from privhelpers.dpsgd._contributions import sum_dtype
from privhelpers.dpsgd._recorder import Recorder
from privhelpers.errors import UnsupportedModel
from privhelpers.models.activation import SLOW_ACTIVATIONS, tanh_gelu
from privhelpers.models.precision import layer_precision, product


def _as_rows(value: torch.Tensor, rows: int) -> torch.Tensor:
    """Return shape [rows, length, width], whatever is between the first dimension and the last."""
    return value if value.dim() == 3 and value.shape[0] == rows else value.reshape(rows, -1, value.shape[-1])


class _Multiply(torch.autograd.Function):
    """Linear and Conv1D, which keeps its weight transposed; of all tokens in one row: a caller folds them.

    What autograd calls a view of a custom function must not be changed in place, and some models do.
    """

    @staticmethod
    def forward(ctx, value, weight, bias, module, recorder):
        recorder.require_rows_first(module, value.shape[0])
        ctx.save_for_backward(value, weight)
        ctx.module, ctx.recorder = module, recorder
        flat = value.reshape(-1, value.shape[-1])
        with layer_precision():
            return product(flat, weight.t() if isinstance(module, Conv1D) else weight, bias)

    @staticmethod
    def backward(ctx, gradient):
        value, weight = ctx.saved_tensors
        module, recorder = ctx.module, ctx.recorder
        recorder.check(module, value.shape[0])
        # Detached: what is kept must not keep the graph that has the keeper. Under autocast the pass is in
        # half the digits; norms and sums are not, or a norm would read low and let a unit through.
        rows = recorder.units.rows
        read, back = (_as_rows(side.to(sum_dtype(weight.dtype)), rows) for side in (value.detach(), gradient))
        transposed = isinstance(module, Conv1D)
        if module.weight.requires_grad:
            recorder.matrix(module.weight, *((read, back) if transposed else (back, read)))
        if module.bias is not None and module.bias.requires_grad:
            recorder.vector(module.bias, back)
        if not ctx.needs_input_grad[0]:
            return (None,) * 5
        back_through = (weight if transposed else weight.t()).to(gradient.dtype)
        with layer_precision():  # what a norm and a sum are made of; they themselves keep all digits
            onward = product(gradient, back_through).view(value.shape)
        return onward.to(value.dtype), None, None, None, None


class _LookUp(torch.autograd.Function):
    """Embedding; positions are often looked up once for the whole batch, here once for each row."""

    @staticmethod
    def forward(ctx, index, weight, module, recorder):
        rows = recorder.units.rows
        if index.shape[0] != 1:
            recorder.require_rows_first(module, index.shape[0], folded=False)
        ctx.index = index.expand(rows, *index.shape[1:]) if index.shape[0] == 1 else index
        ctx.module, ctx.recorder = module, recorder
        value = functional.embedding(index, weight)
        return value.expand(rows, *value.shape[1:]) if index.shape[0] == 1 else value

    @staticmethod
    def backward(ctx, gradient):
        index, module = ctx.index, ctx.module
        ctx.recorder.check(module, index.shape[0], again=True)
        index = index.reshape(index.shape[0], -1)
        gradient = _as_rows(gradient, index.shape[0])
        if module.padding_idx is not None:  # autograd gives that row no gradient
            gradient = gradient.masked_fill((index == module.padding_idx).unsqueeze(-1), 0.0)
        ctx.recorder.lookup(module.weight, index, gradient.to(sum_dtype(gradient.dtype)))
        return (None,) * 4


class _Normalize(torch.autograd.Function):
    """LayerNorm."""

    @staticmethod
    def forward(ctx, value, weight, bias, module, recorder):
        recorder.require_rows_first(module, value.shape[0])
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
        gradient, full = gradient.contiguous().to(value.dtype), sum_dtype(value.dtype)
        if weight is not None and weight.requires_grad:
            wide = scale.to(full)
            normalized = torch.addcmul(-mean.to(full) * wide, value.to(full), wide).mul_(gradient)
            recorder.vector(module.weight, _as_rows(normalized, recorder.units.rows))
        if bias is not None and bias.requires_grad:
            recorder.vector(module.bias, _as_rows(gradient.to(full), recorder.units.rows))
        if not ctx.needs_input_grad[0]:
            return (None,) * 5
        back = torch.ops.aten.native_layer_norm_backward(
            gradient, value, module.normalized_shape, mean, scale, weight, bias, [True, False, False]
        )
        return back[0].to(ctx.dtype), None, None, None, None


class _Copy(torch.autograd.Function):
    """A parameter as one copy for each row: a view, so that the layer computes what it always does.

    Autograd then has the gradient of each copy, which is what the row has: whatever the layer does with its
    weight, as long as it does it row by row.
    """

    @staticmethod
    def forward(ctx, parameter, module, recorder, dimensions):
        ctx.parameter, ctx.module, ctx.recorder = parameter, module, recorder
        between = [1] * max(0, dimensions - 1 - parameter.dim())
        return parameter.detach().expand(recorder.units.rows, *between, *parameter.shape)

    @staticmethod
    def backward(ctx, gradient):
        ctx.recorder.require_rows_first(ctx.module, gradient.shape[0], folded=False)
        flat = gradient.reshape(gradient.shape[0], 1, -1)
        ctx.recorder.vector(ctx.parameter, flat.to(sum_dtype(ctx.parameter.dtype)))
        return (None,) * 4


class _ScaledAfterwards(TorchFunctionMode):
    """Lets the library's normalizations, which want one weight for all rows, take one for each."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function is functional.layer_norm:
            return self._layer_norm(*args, **kwargs)
        return (
            self._rms_norm(*args, **kwargs) if function is functional.rms_norm else function(*args, **kwargs)
        )

    def _layer_norm(self, value, shape, weight=None, bias=None, eps=1e-5):
        value = functional.layer_norm(value, shape, eps=eps)
        value = value if weight is None else value * weight
        return value if bias is None else value + bias

    def _rms_norm(self, value, shape, weight=None, eps=None):
        value = functional.rms_norm(value, shape, eps=eps)
        return value if weight is None else value * weight


FUNCTIONS = {nn.Linear: _Multiply, Conv1D: _Multiply, nn.Embedding: _LookUp, nn.LayerNorm: _Normalize}


class _RecordedEmbedding(nn.Embedding):
    """What a subclass of Embedding reaches by `super().forward` while a pass is recorded."""

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        return _LookUp.apply(index, self.weight, self, self.__dict__["_recorder"])


@functools.cache
def _with_recorded_lookup(kind: type) -> type:
    """Return a subclass whose method resolution order has our lookup right before Embedding."""
    return type(kind.__name__, (kind, _RecordedEmbedding), {})


def _scales_or_shifts(module: nn.Module) -> bool:
    """Return whether a layer of a class of its own may be a normalization: no part of it is a matrix."""
    small = all(
        p.dim() == 1 or (p.dim() == 2 and "norm" in type(module).__name__.lower()) for p in _own(module)
    )
    return not list(module.children()) and small


def _own(module: nn.Module) -> list[nn.Parameter]:
    return [p for p in module.parameters(recurse=False) if p.requires_grad]


def _has_bias_of_distance(module: nn.Module) -> bool:
    """Return whether an attention adds a learned bias by distance, as T5's: the same for all rows."""
    return hasattr(module, "compute_bias") and isinstance(
        getattr(module, "relative_attention_bias", None), nn.Embedding
    )


def by_structure(module: nn.Module) -> bool:
    """Return whether a module is known by what it is made of, and not by its class."""
    return type(module) not in FUNCTIONS


def _refuse_mixing(name: str, module: nn.Module) -> None:
    """Refuse a module that mixes rows, whether or not it is trained."""
    if isinstance(module, nn.modules.batchnorm._BatchNorm):
        raise UnsupportedModel(
            f"{name} ({type(module).__name__}): mixes the rows of a batch, so that no row has a gradient of "
            "its own; replace it by GroupNorm (opacus.validators.ModuleValidator.fix does)"
        )
    if getattr(module, "expert_capacity", None) is not None:
        raise UnsupportedModel(
            f"{name} ({type(module).__name__}): an expert takes so many tokens of a batch and no more, so "
            "that rows compete"
        )
    if isinstance(module, nn.Embedding) and (module.max_norm is not None or module.scale_grad_by_freq):
        raise UnsupportedModel(f"{name}: an Embedding with max_norm or scale_grad_by_freq mixes rows")


def owners(model: nn.Module) -> list[nn.Module]:
    """Return the modules that own trainable parameters.

    Raises:
        UnsupportedModel: a module whose per-unit gradient is not known; it is named.
    """
    modules, inside = [], set()
    for name, module in model.named_modules():
        _refuse_mixing(name, module)
        if _has_bias_of_distance(module) and _own(module.relative_attention_bias):
            modules.append(module)
            inside.add(module.relative_attention_bias)
        if not _own(module) or module in inside:
            continue
        known = type(module) in FUNCTIONS or isinstance(module, (nn.Embedding, nn.Linear))
        if known or _scales_or_shifts(module):
            modules.append(module)
        # A container may list a parameter of a layer inside it once more, as BERT's head does with a bias, or
        # one that nothing uses: whether it is used is seen after the pass.
        elif not list(module.children()):
            raise UnsupportedModel(
                f"{name} ({type(module).__name__}): per-unit gradients are known for "
                f"{', '.join(t.__name__ for t in FUNCTIONS)}, and normalizations; freeze its parameters or "
                "replace it"
            )
    return modules


def slow_activations(model: nn.Module) -> list[nn.Module]:
    """Return the activations that have a faster form, which takes their place while recording."""
    return [module for module in model.modules() if type(module) in SLOW_ACTIVATIONS]


def _on_copies(module: nn.Module, recorder: Recorder, forward):
    """Return a forward that computes with a copy of each of the module's own parameters for each row."""

    def on_copies(*args, **kwargs):
        value = args[0] if args else next(iter(kwargs.values()))
        recorder.require_rows_first(module, value.shape[0], folded=False)
        before = dict(module._parameters)
        for name, parameter in before.items():
            if parameter is not None and parameter.requires_grad:
                module._parameters[name] = _Copy.apply(parameter, module, recorder, value.dim())
        try:
            with _ScaledAfterwards():
                return forward(*args, **kwargs)
        finally:
            module._parameters.update(before)

    return on_copies


def _bias_on_copies(module: nn.Module, recorder: Recorder, compute_bias):
    """Return T5's `compute_bias` with a table of its own for each row, so that no row shares it."""
    table = module.relative_attention_bias

    def on_copies(*args, **kwargs):
        weight = table._parameters["weight"]
        copies = _Copy.apply(weight, table, recorder, 3)
        try:
            biases = []
            for copy in copies:
                table._parameters["weight"] = copy
                biases.append(compute_bias(*args, **kwargs))
            return torch.cat(biases)
        finally:
            table._parameters["weight"] = weight

    return on_copies


def _checked(module: nn.Module, recorder: Recorder, forward):
    """Return the forward of a subclass of Linear that refuses, in a trial, to be more than a Linear."""

    def checked(*args, **kwargs):
        given = forward(*args, **kwargs)
        recorder.require_rows_first(module, args[0].shape[0] if args else 0)
        if len(args) != 1 or kwargs or not isinstance(given, torch.Tensor):
            same = False
        else:
            expected = functional.linear(args[0], module.weight, module.bias)
            same = given.shape == expected.shape and torch.allclose(given, expected, rtol=1e-3, atol=1e-5)
        if not same:
            raise UnsupportedModel(
                f"{type(module).__name__}: is a Linear that does something else; freeze it"
            )
        return given

    return checked


def _recorded_forward(module: nn.Module, recorder: Recorder):
    if type(module) in SLOW_ACTIVATIONS:
        return tanh_gelu
    function = FUNCTIONS.get(type(module), _Multiply if isinstance(module, nn.Linear) else None)
    if function is None:
        return _on_copies(module, recorder, module.forward)
    if function is _LookUp:
        return lambda index: function.apply(index, module.weight, module, recorder)
    if function is _Multiply:
        if by_structure(module) and recorder.folds is not None:
            return _checked(module, recorder, module.forward)
        return lambda value: function.apply(value, module.weight, module.bias, module, recorder).view(
            *value.shape[:-1], -1
        )
    return lambda value: function.apply(value, module.weight, module.bias, module, recorder)


@contextmanager
def recording(modules: list[nn.Module], recorder: Recorder) -> Iterator[None]:
    """Swap the forward of every module for the length of one pass."""
    with ExitStack() as swapped:
        for module in modules:
            if _has_bias_of_distance(module):
                swapped.enter_context(
                    _swapped(module, "compute_bias", _bias_on_copies(module, recorder, module.compute_bias))
                )
            elif isinstance(module, nn.Embedding) and by_structure(module):
                swapped.callback(setattr, module, "__class__", type(module))
                swapped.callback(module.__dict__.pop, "_recorder")
                module.__dict__["_recorder"], module.__class__ = recorder, _with_recorded_lookup(type(module))
            else:
                swapped.enter_context(_swapped(module, "forward", _recorded_forward(module, recorder)))
        yield


@contextmanager
def _swapped(module: nn.Module, name: str, function) -> Iterator[None]:
    """Give a module another method for a while."""
    before = module.__dict__.get(name)
    setattr(module, name, function)
    try:
        yield
    finally:
        delattr(module, name)
        if before is not None:
            setattr(module, name, before)
