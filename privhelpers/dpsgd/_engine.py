"""The clipped sum of per-unit gradients from one forward and one backward pass.

The gradient of one row with respect to a layer's weight is a product of two things that an ordinary pass
already computes: what went into the layer and the gradient at what came out. Both are kept (the
book-keeping), the norm of each unit's whole gradient follows from them, and so does the clipped sum once the
norms are known. Contributions to one parameter are added before its norm is taken, so weights that two layers
share (a tied embedding) are exact.

Source: Goodfellow 2015 (per-example norms from activations and output gradients); Bu et al. 2023,
"Differentially Private Optimization on Large Model at Small Cost", section 3 (book-keeping).
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional
from torch.overrides import TorchFunctionMode
from transformers import PreTrainedModel

from privhelpers import validate
from privhelpers.dpsgd._contributions import in_full
from privhelpers.dpsgd._layers import listening, owners, slow_activations
from privhelpers.dpsgd._losses import losses_by_row
from privhelpers.dpsgd._recorder import MEMORY, Recorder, Workspace
from privhelpers.dpsgd._units import group_rows
from privhelpers.errors import InvalidParameter, PrivHelpersError, UnsupportedModel
from privhelpers.models.encoding import IGNORED
from privhelpers.models.precision import all_digits, layers_in
from privhelpers.text import quoted

Batch = Mapping[str, torch.Tensor]
# Of the largest norm of a row, by the digits of the pass: more is another gradient.
_TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-3}
_NONE, _ANY = (0.0, 0.0, 0.0), (math.inf, math.inf, math.inf)


@dataclass(frozen=True)
class GivenGradients:
    """Gradients of units that have no text: each is zero but for one row of one parameter.

    An audit plants such units (its canaries), so that what it says holds for the code that clips and sums
    the patients.

    Attributes:
        parameter: name of a trainable parameter with two dimensions.
        row: which of its rows, shape [units].
        gradient: what the row holds, shape [units, width].
    """

    parameter: str
    row: torch.Tensor
    gradient: torch.Tensor


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters that are trained, by name.

    Raises:
        UnsupportedModel: there is none.
    """
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not parameters:
        raise UnsupportedModel(
            f"{type(model).__name__}: all its weights are frozen, so there is nothing to train; "
            "set requires_grad on some"
        )
    return parameters


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
def _all_heard(model: nn.Module, parameters: dict[str, nn.Parameter]) -> Iterator[None]:
    """Refuse a pass in which autograd fills a `.grad`, as a use was not heard, or what is kept is written."""
    tables = [table for module in model.modules() for table in (module._buffers, module._parameters)]

    def kept() -> list[tuple[torch.Tensor, int]]:
        held = (value for table in tables for value in table.values() if value is not None)
        return [(value, value._version) for value in held if not value.requires_grad]

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
    "{}: a buffer or a frozen weight is written while the model reads, and what it keeps of the rows is "
    "neither clipped nor covered by noise; compute it before training"
)


def _kept(model: nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield what is not trained, by name."""
    yield from model.named_buffers()
    yield from ((name, p) for name, p in model.named_parameters() if not p.requires_grad)


def _contents(model: nn.Module) -> dict[str, object]:
    """Return a number for each buffer and frozen weight that changes with its bits, however it is written."""
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


class Totals(dict[str, torch.Tensor]):
    """What sums are added to, by name of the parameter; each is made when it is first asked for.

    So the totals take no memory while the first pass keeps its activations, and what is added to one finds it
    in the cache.
    """

    def __init__(
        self, parameters: Mapping[str, torch.Tensor], start: Callable[[dict[str, torch.Tensor]], None]
    ) -> None:
        """Begin with none."""
        super().__init__()
        self._parameters, self._start = parameters, start

    def __missing__(self, name: str) -> torch.Tensor:
        """Make one total and have it filled."""
        like = self._parameters[name]
        total = torch.empty_like(like, dtype=in_full(like.dtype))
        self._start({name: total})
        self[name] = total
        return total

    def complete(self) -> None:
        """Make all that nothing was added to."""
        for name in self._parameters:
            self[name]


class ClippedGradients:
    """The engine, for many passes over one model; `clipped_gradient_sum` is the same for one pass.

    Args:
        model: a Hugging Face model (causal, masked or sequence classification), or one with LoRA adapters;
            its trainable parameters lie in Linear, Conv1D, Embedding and LayerNorm modules, in subclasses
            of these, or in normalizations of a class of their own, such as RMSNorm.
        max_grad_norm: clipping bound C of one unit's gradient, Euclidean norm, greater than 0.
        memory: "fast", or "low" for little more memory than an ordinary pass.

    Raises:
        UnsupportedModel: a trainable module whose per-unit gradient is not known.
        InvalidParameter: a value is out of its range.
    """

    def __init__(self, model: PreTrainedModel, *, max_grad_norm: float, memory: str = "fast") -> None:
        """Check the model once."""
        validate.positive(max_grad_norm=max_grad_norm)
        if memory not in MEMORY:
            raise InvalidParameter(f"memory = {validate.shown(memory)}: must be one of {', '.join(MEMORY)}")
        self.model, self._bound, self.memory = model, max_grad_norm, memory
        self.parameters = trainable(model)
        self.modules, self.activations = owners(model), slow_activations(model)
        self.names = {id(p): name for name, p in self.parameters.items()}
        held = Counter(id(p) for m in self.modules for p in m.parameters(recurse=False) if p.requires_grad)
        self.shared = {identity for identity, times in held.items() if times > 1}
        if model.config.is_encoder_decoder:  # both halves may look up in one table
            self.shared |= {id(m.weight) for m in self.modules if isinstance(m, nn.Embedding)}
        self.workspace, self.folding = Workspace(), set()
        # The most rows, tokens of a row, and tokens of a batch that were compared, in training and not.
        self._proven: dict[bool, tuple[float, ...]] = {}

    @property
    def max_grad_norm(self) -> float:
        """The clipping bound; it cannot be changed."""
        return self._bound

    def room(self) -> dict[str, torch.Tensor]:
        """Return zeros for a clipped sum, by name of the parameter, in float32 or more."""
        return {n: torch.zeros_like(p, dtype=in_full(p.dtype)) for n, p in self.parameters.items()}

    def totals(self, start: Callable[[dict[str, torch.Tensor]], None]) -> "Totals":
        """Return room for a clipped sum on top of what `start` fills it with, tensor by tensor."""
        return Totals(self.parameters, start)

    def add(
        self,
        batch: "Batch | GivenGradients",
        unit: torch.Tensor | None = None,
        *,
        into: Mapping[str, torch.Tensor],
        scale: float = 1.0,
    ) -> torch.Tensor:
        """Add `scale` times the clipped sum of a batch to `into` and return the norms before clipping.

        Args:
            batch: what the model is called with, and `labels`; every tensor has the rows first. Or
                gradients that are given, of units that have no text.
            unit: the unit of each row, numbered from 0 without gaps, shape [rows]; None: a row is a unit.
            into: what is added to, as `room()` or `totals()` gives it.
            scale: a public factor, such as one over the expected batch size.

        Returns:
            Norms of the units' gradients, shape [units]; not a private output.

        Raises:
            UnsupportedModel: a gradient per unit is not known for this batch.
            InvalidParameter: the batch has no labels, or gradients that are given do not fit the model.
        """
        given = isinstance(batch, GivenGradients)
        recorder = self._recall(batch) if given else self._listen(batch, unit)
        with torch.no_grad(), self._in_full():
            norms = recorder.norms()
            bad = ~torch.isfinite(norms)
            factors = scale * self.factors(norms).masked_fill(bad, 0.0)
            like = next(iter(self.parameters.values()))
            factors = factors.to(like.device, in_full(like.dtype))
            recorder.pour(into, factors, bad.to(like.device))
            return recorder.units.by_name(norms)

    def factors(self, norms: torch.Tensor) -> torch.Tensor:
        """Return by what each unit's gradient is multiplied, min(1, C / norm), shape [units]."""
        return (self.max_grad_norm / norms.clamp_min(1e-12)).clamp_max(1.0)

    def layer_norms(self, batch: Batch, unit: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
        """Return the norm of each unit's gradient of each trainable parameter, before clipping.

        One forward and one backward pass; no gradient is kept. The squares add up to the square of the norm
        that `add` returns. Not a private output.

        Args:
            batch: what the model is called with, and `labels`; every tensor has the rows first.
            unit: the unit of each row, numbered from 0 without gaps, shape [rows]; None: a row is a unit.

        Returns:
            By parameter name, float64, shape [units].
        """
        recorder = self._listen(batch, unit)
        with torch.no_grad(), self._in_full():
            by_parameter = recorder.norms_by_parameter()
            return {name: recorder.units.by_name(norms) for name, norms in by_parameter.items()}

    @contextmanager
    def _in_full(self) -> Iterator[None]:
        """Compute in all digits: what shortens a forward pass may never shorten a norm or a sum."""
        with all_digits(), torch.autocast(self.model.device.type, enabled=False):
            yield

    def _listen(self, batch: Batch, unit: torch.Tensor | None) -> Recorder:
        if "labels" not in batch or not len(batch["labels"]):
            raise InvalidParameter("batch: must hold `labels`, with a row or more")
        if any(
            a > b for a, b in zip(_size(batch), self._proven.get(self.model.training, _NONE), strict=True)
        ):
            self._prove(batch)
        units = group_rows(unit, batch["labels"].shape[0])
        recorder = Recorder(units, self.workspace, self.names, self.shared, self.memory, self.folding)
        with (
            listening([*self.modules, *self.activations], recorder),
            _all_heard(self.model, self.parameters),
            torch.enable_grad(),
        ):
            losses = losses_by_row(self.model, {k: units.arrange(v) for k, v in batch.items()})
            if unit is not None:
                losses = losses / units.sizes().to(losses)  # the mean over a unit's rows
            with self._in_full():
                losses.sum().backward()
        return recorder

    def _prove(self, batch: Batch) -> None:
        """Refuse a model that does not keep rows apart, or whose norms are not those of autograd.

        What a layer's first dimension is cannot be told from one pass: it can be the length, and equal the
        number of rows by chance. So the first row is read twice and three times over. Then a row in a batch
        must give what it gives alone, with as many rows as tokens and with another number. Rows may also
        compete where there are many, so a batch larger than those before is compared as well.
        """
        known = self._proven.pop(training := self.model.training, None)
        contents = _contents(self.model)
        with repeatable(self.model):
            if known is None:
                with heard_by_name(self.model):
                    self._check_folding(batch)
            self._proven[training] = _ANY  # for the passes that are compared
            try:
                with heard_by_name(self.model):
                    trials = [batch] if known else self._trials(batch)
                    compared = [self._compare(trial) for trial in trials]
            finally:
                del self._proven[training]
        for name, content in _contents(self.model).items():
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
            trial = Recorder(group_rows(None, rows), self.workspace, self.names, folding=None)
            with torch.no_grad(), listening(self.modules, trial):
                losses_by_row(self.model, same)
            trials.append(trial.folds)
        for module in self.modules:
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

    def _compare(self, batch: Batch) -> bool:
        """Refuse the model if the norms of three rows, by parameter, are not those of one backward a row.

        Return whether there was a row to compare: one whose gradient is finite.
        """
        compared, ours = False, self.layer_norms(batch)
        digits = {p.dtype for p in self.model.parameters()}
        if torch.is_autocast_enabled(self.model.device.type):
            digits.add(torch.bfloat16)
        tolerance = max(_TOLERANCE.get(dtype, 0.05) for dtype in digits)
        for row in {0, (rows := len(batch["labels"])) // 2, rows - 1}:
            with torch.enable_grad(), _gradients_aside(self.parameters):
                losses_by_row(self.model, {k: v[row : row + 1] for k, v in batch.items()}).sum().backward()
                theirs = {
                    n: 0.0 if p.grad is None else float(p.grad.double().norm())
                    for n, p in self.parameters.items()
                }
            if not all(map(math.isfinite, theirs.values())):
                continue
            compared, allowed = True, max(theirs.values(), default=0.0) * tolerance
            for name, norm in theirs.items():
                heard = float(ours[name][row]) if name in ours else 0.0  # by no layer that is known
                if not abs(heard - norm) <= allowed:
                    raise UnsupportedModel(
                        f"{name}: its gradient's norm for one row is {norm:.6g} by autograd for that row "
                        f"alone, and {heard:.6g} in a batch; a layer mixes rows, or does more with its "
                        "weight than is known: replace or freeze it"
                    )
        return compared

    def _recall(self, given: "GivenGradients") -> Recorder:
        named, rows = isinstance(given.parameter, str), given.row.tolist()
        table = self.parameters.get(given.parameter) if named else None
        if table is None or table.dim() != 2:
            raise InvalidParameter(f"parameter = {validate.shown(given.parameter)}: no trained table")
        one_axis = given.row.dim() == 1 and len(rows) > 0
        if not (one_axis and all(type(row) is int and 0 <= row < len(table) for row in rows)):
            raise InvalidParameter(f"row: must be whole numbers from 0 to {len(table) - 1}, for each unit")
        if not given.gradient.is_floating_point():
            raise InvalidParameter(f"gradient: must be of a floating type, not {given.gradient.dtype}")
        if given.gradient.shape != (wanted := (len(rows), table.shape[1])):
            raise InvalidParameter(f"gradient: its shape must be {wanted}, not {tuple(given.gradient.shape)}")
        units = group_rows(None, given.row.shape[0])
        recorder = Recorder(units, self.workspace, self.names)
        gradient = given.gradient.to(in_full(table.dtype))
        recorder.lookup(table, given.row[:, None], gradient[:, None, :])
        return recorder


def clipped_gradient_sum(
    model: PreTrainedModel,
    batch: Batch,
    *,
    max_grad_norm: float,
    unit: torch.Tensor | None = None,
    memory: str = "fast",
) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Return the sum over units of their clipped gradients, and the norms before clipping.

    A row's loss is what the model returns as `.loss` for that row alone: the mean over its own target tokens.
    A unit's gradient is the mean of its rows' gradients and is clipped once to `max_grad_norm`. A unit whose
    gradient is not finite contributes zero.

    Args:
        model: as in `ClippedGradients`; its `.grad` fields are not touched.
        batch: what the model is called with (`input_ids`, ...), and `labels`; tensors with the rows first.
        max_grad_norm: clipping bound C in Euclidean norm, greater than 0.
        unit: the unit of each row, numbered from 0 without gaps, shape [rows]; default: a row is a unit.
        memory: "fast", or "low" for little more memory than an ordinary pass.

    Returns:
        (sums by parameter name, norms of shape [units]).

    Raises:
        UnsupportedModel: a trainable module, or a use of one, whose per-unit gradient is not known.
        InvalidParameter: max_grad_norm, unit or memory is out of its range.

    Source: Abadi et al. 2016, algorithm 1 (without its noise).
    """
    engine = ClippedGradients(model, max_grad_norm=max_grad_norm, memory=memory)
    sums = engine.room()
    return sums, engine.add(batch, unit, into=sums)
