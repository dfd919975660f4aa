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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn
from transformers import PreTrainedModel

from privhelpers import validate
from privhelpers.dpsgd._layers import by_structure, listening, owners, slow_activations
from privhelpers.dpsgd._losses import losses_by_row
from privhelpers.dpsgd._recorder import MEMORY, Recorder, Workspace
from privhelpers.dpsgd._units import group_rows
from privhelpers.errors import InvalidParameter, UnsupportedModel

Batch = Mapping[str, torch.Tensor]
# Of the largest norm of a row, by the digits of the pass: more is another gradient.
_TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-3}


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


@contextmanager
def _empty_gradients(parameters: dict[str, nn.Parameter]) -> Iterator[None]:
    """Put every `.grad` aside, and refuse the pass if autograd fills one: then a use was not heard."""
    before = {name: p.grad for name, p in parameters.items()}
    for parameter in parameters.values():
        parameter.grad = None
    try:
        yield
        filled = [name for name, p in parameters.items() if p.grad is not None]
        if filled:
            raise UnsupportedModel(
                f"{filled[0]}: is used outside of the layers whose per-unit gradients are known; freeze it"
            )
    finally:
        for name, parameter in parameters.items():
            parameter.grad = before[name]


@contextmanager
def _without_chance(model: nn.Module) -> Iterator[None]:
    """Give the same numbers every time, without dropout, and leave each layer as it was.

    A layer with quantized weights stays in training: libraries pack such weights anew for evaluation, and
    what training reads from them afterwards is not quite the same.
    """
    before = {module: module.training for module in model.modules()}
    for module in before:
        quantized = any(not p.is_floating_point() for p in module.parameters(recurse=False))
        module.training = quantized and module.training
    try:
        yield
    finally:
        for module, training in before.items():
            module.training = training


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
            raise InvalidParameter(f"memory = {memory!r}: must be one of {', '.join(MEMORY)}")
        self.model, self.max_grad_norm, self.memory = model, max_grad_norm, memory
        self.parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.modules, self.activations = owners(model), slow_activations(model)
        self.names = {id(p): name for name, p in self.parameters.items()}
        held = Counter(id(p) for m in self.modules for p in m.parameters(recurse=False) if p.requires_grad)
        self.shared = {identity for identity, times in held.items() if times > 1}
        if model.config.is_encoder_decoder:  # both halves may look up in one table
            self.shared |= {id(m.weight) for m in self.modules if isinstance(m, nn.Embedding)}
        self.workspace, self.folding, self._proven = Workspace(), set(), False

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
            into: a tensor for every trainable parameter, by name, contiguous.
            scale: a public factor, such as one over the expected batch size.

        Returns:
            Norms of the units' gradients, shape [units]; not a private output.
        """
        given = isinstance(batch, GivenGradients)
        recorder = self._recall(batch) if given else self._listen(batch, unit)
        with torch.no_grad(), self._in_full():
            norms = recorder.norms()
            bad = ~torch.isfinite(norms)
            factors = scale * self.factors(norms).masked_fill(bad, 0.0)
            like = next(iter(into.values()))
            recorder.pour(into, factors.to(like), bad.to(like.device))
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

    def _in_full(self) -> torch.autocast:
        """Return a context without autocast: it may shorten the forward pass, never a norm or a sum."""
        return torch.autocast(self.model.device.type, enabled=False)

    def _listen(self, batch: Batch, unit: torch.Tensor | None) -> Recorder:
        if not self._proven:
            self._prove(batch)
        units = group_rows(unit, batch["labels"].shape[0])
        recorder = Recorder(units, self.workspace, self.names, self.shared, self.memory, self.folding)
        with (
            listening([*self.modules, *self.activations], recorder),
            _empty_gradients(self.parameters),
            torch.enable_grad(),
        ):
            losses = losses_by_row(self.model, {k: units.arrange(v) for k, v in batch.items()})
            if unit is not None:
                losses = losses / units.sizes().to(losses)  # the mean over a unit's rows
            with self._in_full():
                losses.sum().backward()
        return recorder

    def _prove(self, batch: Batch) -> None:
        """Refuse a model whose layers do not keep rows apart, or whose norms are not those of autograd.

        What a layer's first dimension is cannot be told from one pass: it can be the length, and equal the
        number of rows by chance. So the first row is read twice and three times over. Then, where a layer is
        known by its structure alone, the first rows have their gradients taken one by one.
        """
        with _without_chance(self.model):
            try:
                self._check(batch)
            except BaseException:
                self._proven = False
                raise

    def _check(self, batch: Batch) -> None:
        """Read one row twice and three times over, and compare two rows with autograd where needed."""
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
        self._proven = True  # for the pass that is compared
        if self.folding or any(map(by_structure, self.modules)):
            self._proven = self._compare({k: v[:2] for k, v in batch.items()})

    def _compare(self, batch: Batch) -> bool:
        """Refuse the model if the norms of a few rows, by parameter, are not those of one backward a row.

        Return whether there was a row to compare: one whose gradient is finite.
        """
        compared, ours = False, self.layer_norms(batch)
        rows = batch["labels"].shape[0]
        some = {n: p for n, p in self.parameters.items() if n in ours}
        digits = {p.dtype for p in self.model.parameters()}
        if torch.is_autocast_enabled(self.model.device.type):
            digits.add(torch.bfloat16)
        tolerance = max(_TOLERANCE.get(dtype, 0.05) for dtype in digits)
        for row in range(rows):
            with torch.enable_grad():
                loss = losses_by_row(self.model, {k: v[row : row + 1] for k, v in batch.items()}).sum()
                theirs = torch.autograd.grad(loss, list(some.values()), allow_unused=True)
            norms = [0.0 if g is None else float(g.double().norm()) for g in theirs]
            if not all(map(math.isfinite, norms)):
                continue
            compared, allowed = True, max(norms) * tolerance
            for name, norm in zip(some, norms, strict=True):
                if not abs(float(ours[name][row]) - norm) <= allowed:
                    raise UnsupportedModel(
                        f"{name}: its gradient's norm for one row is {norm:.6g} by autograd, and "
                        f"{float(ours[name][row]):.6g} from what the layer read; freeze it"
                    )
        return compared

    def _recall(self, given: "GivenGradients") -> Recorder:
        units = group_rows(None, given.row.shape[0])
        recorder = Recorder(units, self.workspace, self.names)
        recorder.lookup(self.parameters[given.parameter], given.row[:, None], given.gradient[:, None, :])
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
    sums = {name: torch.zeros_like(p) for name, p in engine.parameters.items()}
    return sums, engine.add(batch, unit, into=sums)
