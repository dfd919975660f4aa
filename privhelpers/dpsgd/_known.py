"""Of which parts of a run it is known that they treat rows apart, in every batch and at all weights.

A layer of somebody's own can treat rows apart in every batch that was compared and mix them in the next, or
keep what it read where nobody looks. So what is known is a short list: the layers of torch and transformers
that compute in float32, those of peft, and what these libraries give them. Anything else is named, and a run
with it claims its budget.
"""

import contextlib
import random
import sys
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from functools import partial, partialmethod
from inspect import getattr_static
from types import BuiltinFunctionType, FunctionType, MethodType, NoneType

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import nn
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.utils._device import DeviceContext
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack
from torch.utils.hooks import RemovableHandle
from transformers import PreTrainedTokenizerBase
from transformers.integrations.moe import ALL_EXPERTS_FUNCTIONS
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from privhelpers.dpsgd._checks import FULL_DIGITS, digits_of, heard_by_name, repeatable, streams_kept
from privhelpers.dpsgd._losses import Batch, losses_by_row

_LIBRARIES = ("torch", "transformers", "peft", "tokenizers", "sentencepiece")
# Not those that quantize, trace or compile: one scale for a batch mixes its rows.
_LAYERS = ("transformers.models.", "transformers.activations", "transformers.pytorch_utils", "peft.")
# Of torch those that hold others, or work on a number or on the last dimensions: attention, recurrence and
# what is told a dimension can take the first, which is the batch.
_HOLDING = (nn.Module, nn.Sequential, nn.ModuleList, nn.ModuleDict, nn.ParameterList, nn.ParameterDict)
_BY_NUMBER = (nn.Identity, nn.Dropout, nn.ReLU, nn.GELU, nn.SiLU, nn.Tanh, nn.Sigmoid, nn.LeakyReLU, nn.Mish)
_BY_NUMBER += (nn.ELU, nn.Softplus, nn.Hardtanh, nn.ReLU6)
_BY_ROW = (nn.Linear, nn.Embedding, nn.LayerNorm, nn.RMSNorm, nn.Conv1d)
_UNREAD = (nn.CrossEntropyLoss,)  # of labels, which a pass does not give the model
_OF_TORCH = frozenset(_HOLDING + _BY_NUMBER + _BY_ROW + _UNREAD)
# Where rows meet: attention that takes a largest or least number over the batch, or reads the tokens of the
# largest scores (which of equal ones follows from how far a row is padded); adapters with one router for all.
_TOGETHER = ("nystromformer", "doge", "deepseek_v32", "deepseek_v4", "glm_moe_dsa", "glm5_next", "axk2")
_TOGETHER += ("mra", "dots3_note", "hy_v4", "mistral_large4", "minimax_m3_vl", "qwen4_exp")
_TOGETHER += ("gemma4_assistant", "gemma4_unified_assistant")
_TOGETHER = (*(f"transformers.models.{name}." for name in _TOGETHER), "peft.tuners.lily.")
# What draws for each number that it gives, so for each row by itself.
_DRAWN_BY_NUMBER = ("native_dropout", "_fused_dropout", "bernoulli", "bernoulli_", "uniform_", "normal_")
_DRAWN_BY_NUMBER += ("rand", "rand_like", "randn", "randn_like")
_VALUES = (bool, int, float, str, NoneType, torch.dtype, torch.device, torch.Size)
_VALUES += (torch.no_grad, RemovableHandle)
_TENSORS = (torch.Tensor, nn.Parameter, nn.Buffer)
_LISTS, _TABLES = (tuple, list, set), (dict, OrderedDict)
# What only calls something else, and where it keeps that.
_AROUND = {MethodType: ("__func__", "__self__"), staticmethod: ("__func__",), classmethod: ("__func__",)}
_AROUND |= {property: ("fget",), contextlib._GeneratorContextManager: ("func",)}
_GLOBAL_HOOKS = [value for name, value in vars(nn.modules.module).items() if name.startswith("_global_")]
_CHOSEN = (ALL_ATTENTION_FUNCTIONS, ALL_MASK_ATTENTION_FUNCTIONS, ALL_EXPERTS_FUNCTIONS)


def not_known(model: nn.Module, batch: Batch) -> list[str]:
    """Return in words what of a model no proof of a bound is about; empty for a library's model in float32.

    In 16 bits the rounding of one row's gradient depends on the shape of the batch, so on the others, by as
    much as a clipping bound where notes are alike.

    What replaces a function inside of a library's module is not seen.

    Args:
        model: as it is trained, in training.
        batch: that it can read, such as one row.
    """
    modes = (*_get_current_function_mode_stack(), *_get_current_dispatch_mode_stack())
    with heard_by_name(model), repeatable(model), torch.no_grad(), _Digits() as within:
        losses_by_row(model, batch)
    digits = (digits_of(model) | within.seen) - FULL_DIGITS
    parts = [f"precision: {one}" for one in sorted(map(str, digits))]
    parts += [f"chance of all rows at once: {one}" for one in _shared_chance(model, batch)]
    around = [_named(mode) for mode in modes if type(mode) is not DeviceContext]  # which only says where
    around += ["saved_tensors_hooks"] * bool(torch._C._autograd._top_saved_tensors_default_hooks(True))
    found = _Found(model.modules())
    own = [*found.unknown(_GLOBAL_HOOKS), *(part for one in model.modules() for part in found.of_module(one))]
    parts += [*(f"torch: {one}" for one in around), *(f"model: {_named(part)}" for part in own)]
    return list(dict.fromkeys(parts))


def own_tokenizer(tokenizer: PreTrainedTokenizerBase) -> bool:
    """Return whether a tokenizer runs code that is no library's: one note may change another's ids."""
    found, kind, values = _Found(()), type(tokenizer), vars(tokenizer).values()
    if not _of_a_library(kind) or [*found.of_class(kind), *found.unknown(values)]:
        return True
    try:
        return not all(value.to_str() for value in values if isinstance(value, Tokenizer))
    except Exception:  # it has a part in Python, which cannot be written down
        return True


def _shared_chance(model: nn.Module, batch: Batch) -> list[str]:
    """Return by name what a pass draws for several rows together, such as whether a layer is dropped.

    Who shares a pass follows from who was drawn, and with it how far a row is padded. So one unit more gives
    the others another chance, and no clipping bounds by how much that moves their sum. Numbers of each row's
    own, whose law follows no other row and no length, are as good as alone.
    """
    passes, length = [], next((value.shape[1] for value in batch.values() if value.dim() > 1), 0)
    for rows, tokens in ((2, length), (3, length), (2, length // 2)):
        cut = {n: value[:1, :tokens] if value.dim() > 1 else value[:1] for n, value in batch.items()}
        copies = {name: torch.cat([value] * rows) for name, value in cut.items()}
        with streams_kept(model), torch.no_grad(), _Scalars(1.0), _Draws() as draws:
            losses_by_row(model, copies)
        passes.append(draws)
    shared = ["Python or NumPy"] * any(draws.elsewhere for draws in passes)
    if len({tuple(name for name, _ in draws.numbers) for draws in passes}) > 1:
        return [*shared, "draws that follow the rows or their length"]
    for (name, two), (_, three) in zip(*(draws.numbers for draws in passes[:2]), strict=True):
        by_number = name.partition(" ")[0] in _DRAWN_BY_NUMBER or "attention" in name
        shared += [name] * (3 * two != 2 * three or not by_number)
    calls = []
    for scalar in (1.0, 0.0):  # a layer whose number is low is dropped: other calls, or none that succeeds
        with contextlib.suppress(Exception), repeatable(model), torch.no_grad(), _Scalars(scalar):
            with _Draws() as draws:
                losses_by_row(model, copies)
            calls.append(draws.calls)
    return [*dict.fromkeys(shared), *["whether a layer is dropped"] * (len(set(calls)) + len(calls) != 3)]


class _Scalars(TorchFunctionMode):
    """Gives one number wherever a pass draws a single one."""

    def __init__(self, number: float) -> None:
        super().__init__()
        self._number = torch.tensor(number)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.rand and args in (([],), ((),)):
            return self._number.clone()
        return function(*args, **(kwargs or {}))


class _Draws(TorchDispatchMode):
    """Counts the calls of a pass, and of each that draws, with its bounds, the random numbers."""

    def __enter__(self) -> "_Draws":
        self.calls, self.numbers, self._before = 0, [], self._others()
        return super().__enter__()

    def __exit__(self, *error: object) -> None:
        self.elsewhere = self._before != self._others()
        return super().__exit__(*error)

    @staticmethod
    def _others() -> tuple[object, ...]:
        _, numbers, place, *_ = np.random.get_state()
        return random.getstate(), numbers.tobytes(), place

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        first = out[0] if isinstance(out, tuple) else out
        self.calls += 1
        name = function.overloadpacket.__name__
        draws = torch.Tag.nondeterministic_seeded in function.tags or "random" in name
        bounds = [f"{one:g}" for one in (*args, *(kwargs or {}).values()) if type(one) is float]
        if "attention" in name:  # which of its kernels runs follows the length; none draws without dropout
            draws &= any(type(one) is float and one > 0 for one in args)
        if isinstance(first, torch.Tensor) and draws:
            self.numbers.append((" ".join([name, *bounds]), first.numel()))
        return out


class _Digits(TorchFunctionMode):
    """Notes the types of the numbers that a pass computes: autocast may begin inside of it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[torch.dtype] = set()

    def __torch_function__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        if isinstance(out, torch.Tensor) and out.is_floating_point():
            self.seen.add(out.dtype)
        return out


def _named(part: object) -> str:
    return getattr(part, "__qualname__", type(part).__qualname__)


def _of_a_library(part: type | FunctionType) -> bool:
    """Return whether a class stands in a library's module under its name, or a function was written there.

    A function keeps the names of the module that it was written in, whatever it was told to look like.
    """
    function = isinstance(part, FunctionType)
    if function and part.__globals__ is vars(contextlib):  # a decorator, around what is looked into
        return True
    name = str(part.__globals__.get("__name__") if function else part.__module__)
    there, package = sys.modules.get(name), sys.modules.get(name.partition(".")[0])
    installed = getattr(package, "__name__", None) in _LIBRARIES and tuple(package.__path__)
    if not (installed and str(getattr(there, "__file__", None)).startswith(installed)):
        return False
    if function:
        return part.__globals__ is vars(there)
    for step in part.__qualname__.split("."):
        there = getattr_static(there, step, None)
    return there is part


class _Found:
    """Walks through what parts are made of; each class and function once.

    Args:
        modules: of the model, which are walked through by themselves.
    """

    def __init__(self, modules: Iterable[nn.Module]) -> None:
        """Begin with nothing seen."""
        self._seen: dict[int, object] = {id(module): module for module in modules}

    def of_module(self, module: nn.Module) -> Iterator[object]:
        """Yield what is not known of one module beside those inside of it."""
        kind, held = type(module), vars(module)
        apart = kind.__module__.startswith(_LAYERS) and not kind.__module__.startswith(_TOGETHER)
        apart |= kind in _OF_TORCH or (kind is nn.Softmax and module.dim == -1)
        if not (apart and _of_a_library(kind)):
            yield kind
            return
        yield from self.of_class(kind)
        yield from self.shadows(module)
        yield from self.unknown(value for name, value in held.items() if "state_dict" not in name)
        values = getattr(held.get("config"), "__dict__", {}).values()
        yield from self.unknown(values)
        names = [value for value in values if isinstance(value, str)]
        yield from self.unknown(table[name] for table in _CHOSEN for name in names if name in table)

    def of_class(self, kind: type) -> Iterator[object]:
        """Yield the functions of a class, and of those before it, that are no library's."""
        for one in kind.__mro__:
            if id(one) not in self._seen and _of_a_library(one):
                self._seen[id(one)] = one
                yield from self.unknown(filter(_runs, vars(one).values()))

    def shadows(self, part: object) -> Iterator[object]:
        """Yield what an object has in place of a method of its class."""
        for name, value in vars(part).items():
            if callable(value) and getattr_static(type(part), name, self) is not self:
                yield value

    def unknown(self, parts: Iterable[object]) -> Iterator[object]:
        """Yield what is not known of values, and of what they hold, wrap or were given."""
        for part in parts:
            if isinstance(part, torch.Tensor):
                if type(part) not in _TENSORS or part.is_quantized:
                    yield type(part)
                hooks = (part._backward_hooks, getattr(part, "_post_accumulate_grad_hooks", None))
                yield from self.unknown(filter(None, hooks))
            elif type(part) not in _VALUES and id(part) not in self._seen:
                self._seen[id(part)] = part
                yield from self._unknown(part)

    def _unknown(self, part: object) -> Iterator[object]:
        if type(part) in _TABLES:
            yield from self.unknown(part.values())
        elif type(part) in _LISTS:
            yield from self.unknown(part)
        elif isinstance(part, partial | partialmethod):
            yield from self.unknown((part.func, *part.args, *part.keywords.values()))
        elif type(part) in _AROUND:
            yield from self.unknown(getattr(part, name) for name in _AROUND[type(part)])
        elif isinstance(part, FunctionType) and _of_a_library(part):
            cells = (cell.cell_contents for cell in part.__closure__ or () if cell != type(cell)())
            given = (*cells, *(part.__defaults__ or ()), *(part.__kwdefaults__ or {}).values())
            yield from self.unknown(filter(_runs, given))
        elif isinstance(part, BuiltinFunctionType | type):
            name, written = str(part.__module__), isinstance(part, type)
            if not (
                name == "builtins" or _of_a_library(part) if written else name.partition(".")[0] == "torch"
            ):
                yield part
        elif callable(part) or type(part).__module__.startswith("torch") or not _of_a_library(type(part)):
            yield part


def _runs(value: object) -> bool:
    """Return whether a value can be called, or makes a method; a class is known by its objects."""
    makes = type(value) in _AROUND or isinstance(value, partialmethod)
    return makes or (callable(value) and not isinstance(value, type))
