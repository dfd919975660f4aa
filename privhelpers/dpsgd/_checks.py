"""What is checked of a model before its clipped sums count.

A sum of clipped gradients moves by no more than the bound when a unit leaves only if the model reads each row
apart from the others, if every use of a trained weight is heard, and if nothing keeps what it read. Each is
asked of the model as it stands: a pass that breaks one is refused by name. No comparison can show that it
holds for all rows and at all weights: `_known` says of what that is known.
"""

import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from transformers import PreTrainedModel

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
FULL_DIGITS = frozenset(_TOLERANCE)
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
        named = ((name, module._buffers | module._parameters) for name, module in model.named_modules())
        names = [f"{name}.{key}" for name, table in named for key in table if table[key] is not None]
        written = (n for n, (a, i), (b, j) in zip(names, before, after, strict=False) if a is not b or i != j)
        raise _written(next(written, type(model).__name__))


def _written(name: str) -> UnsupportedModel:
    other = ", or choose a rope_type that no row changes, neither dynamic nor longrope" * ("rotary" in name)
    return UnsupportedModel(
        f"{name.lstrip('.')}: is written while the model reads, and what it keeps of the rows is neither "
        f"clipped nor covered by noise; compute it before training{other}"
    )


@contextmanager
def keeping_nothing(model: nn.Module) -> Iterator[None]:
    """Refuse passes after which a number that the model holds is another, however it was written."""
    before = _contents(model)
    yield
    after = _contents(model)
    for name in before | after:
        if before.get(name) != after.get(name):
            raise _written(name)


def _contents(model: nn.Module) -> dict[str, object]:
    """Return by name what outlives a pass: of tensors, a number that changes with their bits."""
    held: dict[str, object] = {}
    for name, module in model.named_modules():
        for table in (vars(module), module._buffers, module._parameters):
            held |= {f"{name}.{key}": value for key, value in table.items()}
        config = getattr(vars(module).get("config"), "__dict__", {})
        held |= {f"{name}.config.{key}": value for key, value in config.items()}
    return {name: _content(value) for name, value in held.items() if not name.endswith(_TABLES)}


_TABLES = ("._buffers", "._parameters", "_hooks")  # what is in them stands there by its own name, or runs


def _content(value: object) -> object:
    if isinstance(value, torch.Tensor):
        whole = _WHOLE.get(value.element_size())
        if value.layout is not torch.strided or whole is None or value.is_quantized or value.is_meta:
            return None
        return value.detach().contiguous().view(whole).sum(dtype=torch.int64).item()
    if isinstance(value, tuple | list):
        return [_content(one) for one in value]
    if type(value) is dict:
        return {name: _content(one) for name, one in value.items()}
    return repr(value) if isinstance(value, int | float | str | set | torch.dtype) else type(value)


_WHOLE = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
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
    """Lets every value through, so that a model in training gives the same numbers every time.

    No layer is dropped, so that one that mixes rows is always compared, and what a router's scores are
    jittered by is the middle of its range.
    """

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function in _DROPOUTS:
            return args[0] if args else kwargs["input"]
        if function is torch.rand and args in (([],), ((),)):  # a layer whose number is low is dropped
            return torch.ones(())
        if function is torch.Tensor.uniform_ and len(args) == 3 and not kwargs:
            return args[0].fill_((args[1] + args[2]) / 2)
        if function is functional.scaled_dot_product_attention:
            names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal")
            args, kwargs = (), dict(zip(names, args, strict=False)) | kwargs | {"dropout_p": 0.0}
        return function(*args, **kwargs)


@contextmanager
def streams_kept(model: PreTrainedModel) -> Iterator[None]:
    """Leave the random streams of torch, NumPy and Python as they were."""
    python, numpy = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=[model.device] if model.device.type == "cuda" else []):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)


@contextmanager
def repeatable(model: PreTrainedModel) -> Iterator[None]:
    """Run the model as it is, in training or not, without dropout, and leave the random streams as they were.

    Layers stay in training: some mix rows there alone, and libraries pack quantized weights anew for
    evaluation. They multiply in all digits, so that what is compared differs by little else.
    """
    with streams_kept(model), _WithoutDropout(), layers_in("highest"):
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
        with keeping_nothing(self._model), repeatable(self._model):
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
    return max(by_digits.get(digits, _SHORT) for digits in digits_of(model))


def digits_of(model: nn.Module) -> set[torch.dtype]:
    """Return the types of the numbers that a model computes with."""
    digits = {p.dtype for p in (*model.parameters(), *model.buffers()) if p.is_floating_point()}
    kind = next(model.parameters()).device.type
    shortened = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
    return digits | ({torch.get_autocast_dtype(kind)} if shortened else set())
