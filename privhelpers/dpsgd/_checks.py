"""What is checked of a model before its clipped sums count.

A sum of clipped gradients moves by no more than the bound when a unit leaves only if the model reads each row
apart from the others, if every use of a trained weight is heard, and if nothing keeps what it read. Each is
asked of the model as it stands: a pass that breaks one is refused by name. What no comparison can show, that
it holds for all rows and at all weights, is known of the libraries' own layers in float32 alone: `not_known`
names the others.
"""

import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from types import FunctionType, MethodType

import torch
from torch import nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from transformers import PreTrainedModel
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

from privhelpers.dpsgd._layers import listening
from privhelpers.dpsgd._losses import Batch, losses_by_row
from privhelpers.dpsgd._recorder import Recorder, Workspace
from privhelpers.dpsgd._units import group_rows
from privhelpers.errors import PrivHelpersError, UnsupportedModel
from privhelpers.models.encoding import IGNORED
from privhelpers.models.precision import layers_in
from privhelpers.text import quoted

# Of the largest norm of a row, by the digits of the pass: more is another gradient. Among other rows of the
# same shape no sum has another order.
_TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-3}
_SAME_SHAPE = {torch.float64: 1e-9, torch.float32: 1e-5}
LOSS = {torch.float64: 1e-8, torch.float32: 1e-4}
_SHORT = 0.05  # for fewer digits than those
_LIBRARIES = {"torch", "transformers", "peft", "accelerate", "numpy"} | sys.stdlib_module_names
_NONE, _ANY = (0.0, 0.0, 0.0), (math.inf, math.inf, math.inf)


@contextmanager
def _gradients_aside(parameters: dict[str, nn.Parameter]) -> Iterator[None]:
    """Put every `.grad` aside for a while."""
    before = {name: p.grad for name, p in parameters.items()}
    for parameter in parameters.values():
        parameter.grad = None
    try:
        yield
    finally:
        for name, parameter in parameters.items():
            parameter.grad = before[name]


@contextmanager
def all_heard(model: nn.Module, parameters: dict[str, nn.Parameter]) -> Iterator[None]:
    """Refuse a pass in which autograd fills a `.grad`, as a use was not heard, or what is kept is written."""
    tables = [table for module in model.modules() for table in (module._buffers, module._parameters)]

    def kept() -> list[tuple[torch.Tensor, int]]:
        held = (value for table in tables for value in table.values() if value is not None)
        return [(value, value._version) for value in held]

    before = kept()
    with _gradients_aside(parameters):
        yield
        filled = [name for name, p in parameters.items() if p.grad is not None]
        if filled:
            raise UnsupportedModel(
                f"{filled[0]}: is used outside of the layers whose per-unit gradients are known; freeze it"
            )
    after = kept()
    pairs = zip(before, after, strict=False)
    if len(before) != len(after) or any(a is not b or i != j for (a, i), (b, j) in pairs):
        raise UnsupportedModel(_written(model, before))


def _written(model: nn.Module, before: list[tuple[torch.Tensor, int]]) -> str:
    known = {(id(value), version) for value, version in before}
    names = [name for name, value in _kept(model) if (id(value), value._version) not in known]
    return _WRITTEN.format(names[0] if names else type(model).__name__)


_WRITTEN = (
    "{}: a buffer or a weight is written while the model reads, and what it keeps of the rows is "
    "neither clipped nor covered by noise; compute it before training"
)


def _kept(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors that outlive a pass, by name."""
    yield from model.named_buffers()
    yield from model.named_parameters()


def _contents(model: nn.Module) -> dict[str, object]:
    """Return a number for each buffer and weight that changes with its bits, however it is written."""
    whole = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return {
        name: value.detach().contiguous().view(whole[value.element_size()]).sum(dtype=torch.int64).item()
        for name, value in _kept(model)
        if value.layout is torch.strided and value.element_size() in whole and value.device.type != "meta"
    }


_DROPOUTS = (
    functional.dropout,
    functional.dropout1d,
    functional.dropout2d,
    functional.dropout3d,
    functional.alpha_dropout,
    functional.feature_alpha_dropout,
    torch.dropout,
)


class _WithoutDropout(TorchFunctionMode):
    """Lets every value through, so that a model in training gives the same numbers every time."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function in _DROPOUTS:
            return args[0] if args else kwargs["input"]
        if function is functional.scaled_dot_product_attention:
            names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
            args, kwargs = (), dict(zip(names, args, strict=False)) | kwargs | {"dropout_p": 0.0}
        return function(*args, **kwargs)


@contextmanager
def repeatable(model: PreTrainedModel) -> Iterator[None]:
    """Run the model as it is, in training or not, without dropout, and leave the random streams as they were.

    Layers stay in training: some mix rows there alone, and libraries pack quantized weights anew for
    evaluation. They multiply in all digits, so that what is compared differs by little else.
    """
    devices = [model.device] if model.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices), _WithoutDropout(), layers_in("highest"):
        yield


@contextmanager
def heard_by_name(model: PreTrainedModel) -> Iterator[None]:
    """Refuse a model by name if a pass that is listened to fails: a layer does what is not known."""
    try:
        yield
    except (RuntimeError, LookupError, AttributeError, TypeError, ValueError) as error:
        if isinstance(error, PrivHelpersError | torch.OutOfMemoryError):
            raise
        raise UnsupportedModel(
            f"{type(model).__name__}: cannot read these rows, or has a layer whose per-unit gradients are "
            f"not known: {quoted(str(error))}"
        ) from error


def _length(batch: Batch) -> int:
    """Return the tokens of a row."""
    return next((value.shape[1] for value in batch.values() if value.dim() > 1), 0)


def _size(batch: Batch) -> tuple[float, float, float]:
    """Return rows, tokens of a row, and tokens of a batch."""
    rows, length = len(batch["labels"]), _length(batch)
    return rows, length, rows * length


def _made_of(batch: Batch, rows: int, length: int) -> dict[str, torch.Tensor]:
    """Return `rows` different rows of `length` tokens: those of a batch, again and again, turned.

    They begin at a token that is asked for. Masks stay in their places, so that they keep their form.
    """
    labels, made = batch["labels"], {name: [] for name in batch}
    for row in range(rows):
        number, again = row % len(labels), row // len(labels)
        begin = int((labels[number] != IGNORED).to(torch.uint8).argmax()) if labels.dim() > 1 else 0
        for name, value in batch.items():
            one = value[number : number + 1]
            if value.dim() > 1:
                one = (one if "mask" in name else one.roll(again - begin, 1))[:, :length]
            made[name].append(one)
    return {name: torch.cat(values) for name, values in made.items()}


class RowChecks:
    """What one model has shown of its rows so far.

    Args:
        model: as in `ClippedGradients`.
        parameters: the trained ones, by name.
        modules: the layers that own them.
    """

    def __init__(
        self, model: PreTrainedModel, parameters: dict[str, nn.Parameter], modules: Sequence[nn.Module]
    ) -> None:
        """Begin with nothing shown."""
        self._model, self._parameters, self._modules = model, parameters, modules
        # The most rows, tokens of a row, and tokens of a batch that were compared, in training and not.
        self._proven: dict[bool, tuple[float, ...]] = {}
        self.folding: set[int] = set()  # identities of the layers that read all tokens in one row

    def ask(self, batch: Batch, layer_norms: Callable[[Batch], dict[str, torch.Tensor]]) -> None:
        """Refuse a model that does not keep the rows apart, unless it was asked about as large a batch.

        Args:
            batch: what is about to be read.
            layer_norms: gives the norms of each row's gradient by parameter, as the engine computes them.

        Raises:
            UnsupportedModel: rows mix, or norms are not those of autograd.
        """
        known = self._proven.get(self._model.training, _NONE)
        if any(a > b for a, b in zip(_size(batch), known, strict=True)):
            self._prove(batch, layer_norms)

    def _prove(self, batch: Batch, layer_norms: Callable[[Batch], dict[str, torch.Tensor]]) -> None:
        """Refuse a model that does not keep rows apart, or whose norms are not those of autograd.

        What a layer's first dimension is cannot be told from one pass: it can be the length, and equal the
        number of rows by chance. So the first row is read twice and three times over. Then a row in a batch
        must give what it gives alone, with as many rows as tokens and with another number. Rows may also
        compete where there are many, so a batch larger than those before is compared as well.
        """
        known = self._proven.pop(training := self._model.training, None)
        contents = _contents(self._model)
        with repeatable(self._model):
            if known is None:
                with heard_by_name(self._model):
                    self._check_folding(batch)
            self._proven[training] = _ANY  # for the passes that are compared
            try:
                with heard_by_name(self._model):
                    trials = [batch] if known else self._trials(batch)
                    compared = [self._compare(trial, layer_norms) for trial in trials]
            finally:
                del self._proven[training]
        for name, content in _contents(self._model).items():
            if content != contents.get(name):
                raise UnsupportedModel(_WRITTEN.format(name))
        if all(compared):
            self._proven[training] = tuple(map(max, known or _NONE, _size(batch)))
        elif known:
            self._proven[training] = known

    def _check_folding(self, batch: Batch) -> None:
        """Read one row twice and three times over, and note the layers that read all tokens in one row."""
        trials = []
        for rows in (2, 3):
            same = {k: v[:1].expand(rows, *v.shape[1:]).contiguous() for k, v in batch.items()}
            trial = Recorder(group_rows(None, rows), Workspace(), {}, folding=None)
            with torch.no_grad(), listening(self._modules, trial):
                losses_by_row(self._model, same)
            trials.append(trial.folds)
        for module in self._modules:
            times = {folds.get(id(module), 1) for folds in trials}
            if len(times) > 1:
                raise UnsupportedModel(f"{type(module).__name__}: does not keep the rows apart")
            if times != {1}:
                self.folding.add(id(module))

    def _trials(self, batch: Batch) -> Iterator[Batch]:
        """Yield batches with another number of rows than tokens, and with as many."""
        rows, length = len(batch["labels"]), _length(batch)
        if 1 < rows != length:
            yield batch
        else:
            yield _made_of(batch, 2 if length == 3 else 3, length)
        if length > 1 and all(value.dim() < 3 for value in batch.values()):
            yield _made_of(batch, min(length, 4), min(length, 4))

    def _compare(self, batch: Batch, layer_norms: Callable[[Batch], dict[str, torch.Tensor]]) -> bool:
        """Refuse the model if the norms of three rows, by parameter, are not those of one backward a row.

        Nor may those of a row change where all others are replaced by it. Return whether there was a row to
        compare: one whose gradient is finite.
        """
        compared, ours = False, layer_norms(batch)
        middle = (rows := len(batch["labels"])) // 2
        crowd = {k: v if "mask" in k else v[middle : middle + 1].expand_as(v) for k, v in batch.items()}
        self._require_same(ours, layer_norms({k: v.contiguous() for k, v in crowd.items()}), middle)
        tolerance = allowed(self._model)
        for row in {0, middle, rows - 1}:
            torch.clear_autocast_cache()  # the engine's passes leave weights there that have no graph
            with torch.enable_grad(), _gradients_aside(self._parameters):
                losses_by_row(self._model, {k: v[row : row + 1] for k, v in batch.items()}).sum().backward()
                theirs = {
                    n: 0.0 if p.grad is None else float(p.grad.double().norm())
                    for n, p in self._parameters.items()
                }
            if not all(map(math.isfinite, theirs.values())):
                continue
            compared, most = True, max(theirs.values(), default=0.0) * tolerance
            for name, norm in theirs.items():
                heard = float(ours[name][row]) if name in ours else 0.0  # by no layer that is known
                if not abs(heard - norm) <= most:
                    raise UnsupportedModel(
                        f"{name}: its gradient's norm for one row is {norm:.6g} by autograd for that row "
                        f"alone, and {heard:.6g} in a batch; a layer mixes rows, or does more with its "
                        "weight than is known: replace or freeze it"
                    )
        return compared

    def _require_same(
        self, ours: dict[str, torch.Tensor], among_copies: dict[str, torch.Tensor], row: int
    ) -> None:
        """Refuse the model if a row's norms depend on what stands in the other rows."""
        most = allowed(self._model, _SAME_SHAPE) * max(float(norms[row]) for norms in ours.values())
        for name, norms in ours.items():
            here, there = float(norms[row]), float(among_copies[name][row])
            if math.isfinite(here) and math.isfinite(there) and not abs(here - there) <= most:
                raise UnsupportedModel(
                    f"{name}: its gradient's norm for one row is {here:.9g} among the rows of a batch, and "
                    f"{there:.9g} among copies of itself; a layer mixes rows: replace or freeze it"
                )


def allowed(model: nn.Module, by_digits: Mapping[torch.dtype, float] = _TOLERANCE) -> float:
    """Return by how much of itself a number of this model may differ through rounding."""
    return max(by_digits.get(digits, _SHORT) for digits in _digits(model))


def _digits(model: nn.Module) -> set[torch.dtype]:
    """Return the types of the numbers that a model computes with."""
    digits = {p.dtype for p in (*model.parameters(), *model.buffers()) if p.is_floating_point()}
    kind = next(model.parameters()).device.type
    shortened = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
    return digits | ({torch.get_autocast_dtype(kind)} if shortened else set())


def not_known(model: nn.Module) -> list[str]:
    """Return in words what of a model no proof of a bound is about; empty for a library's model in float32.

    A layer of somebody's own can treat rows apart in every batch that was compared and mix them in the next,
    or keep what it read where nobody looks. In 16 bits the rounding of one row's gradient depends on the
    shape of the batch, so on the others, by as much as a clipping bound where notes are alike.

    What replaces a function inside of a library's module is not seen.
    """
    parts = {f"precision: {digits}": None for digits in sorted(map(str, _digits(model) - set(_TOLERANCE)))}
    found = [hook for table in _GLOBAL_HOOKS for hook in table.values()]
    for module in model.modules():
        kind = type(module)
        found += (kind.forward, kind.__call__) if _of_a_library(kind) else (kind,)
        found += (hook for name in _HOOKS for hook in (getattr(module, name, None) or {}).values())
        found += (value if isinstance(value, _FUNCTIONS) else type(value) for value in vars(module).values())
        found += (type(parameter) for parameter in module.parameters(recurse=False))
        attention = getattr(getattr(module, "config", None), "_attn_implementation", None)
        for known in (ALL_ATTENTION_FUNCTIONS, ALL_MASK_ATTENTION_FUNCTIONS):
            found += [known[attention]] if isinstance(attention, str) and attention in known else []
    own = (part for part in found if not _of_a_library(part))
    return list(parts | {f"model: {getattr(part, '__qualname__', part)}": None for part in own})


_FUNCTIONS = (FunctionType, MethodType, partial)
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
_GLOBAL_HOOKS = [getattr(nn.modules.module, f"_global{name}") for name in _HOOKS]


def _of_a_library(part: object) -> bool:
    """Return whether a class, or a function with all that it wraps, is of a library or of Python."""
    layers = [part]
    while (inner := _inside(layers[-1])) is not None:
        layers.append(inner)
    # A function keeps the module that it was written in, whatever it was told to look like.
    written_in = (getattr(one, "__globals__", {}).get("__name__") or one.__module__ or "" for one in layers)
    return all(name.partition(".")[0] in _LIBRARIES for name in written_in)


def _inside(part: object) -> object:
    names = ("func",) if isinstance(part, partial) else ("__func__", "__wrapped__")
    return next((getattr(part, name) for name in names if hasattr(part, name)), None)
