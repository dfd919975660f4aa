"""The clipped sum of per-unit gradients from one forward and one backward pass.

The gradient of one row with respect to a layer's weight is a product of two things that an ordinary pass
already computes: what went into the layer and the gradient at what came out. Both are kept (the
book-keeping), the norm of each unit's whole gradient follows from them, and so does the clipped sum once the
norms are known. Contributions to one parameter are added before its norm is taken, so weights that two layers
share (a tied embedding) are exact.

Source: Goodfellow 2015 (per-example norms from activations and output gradients); Bu et al. 2023,
"Differentially Private Optimization on Large Model at Small Cost", section 3 (book-keeping).
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel

from privhelpers import validate
from privhelpers.dpsgd import _checks
from privhelpers.dpsgd._contributions import sum_dtype
from privhelpers.dpsgd._layers import owners, recording, slow_activations
from privhelpers.dpsgd._losses import Batch, losses_by_row
from privhelpers.dpsgd._recorder import Recorder, Workspace
from privhelpers.dpsgd._units import group_rows
from privhelpers.errors import InvalidParameter, UnsupportedModel
from privhelpers.models.precision import full_precision


@dataclass(frozen=True)
class GivenGradients:
    """Gradients of units that have no text: each is zero but for one row of one parameter.

    An audit plants such units (its canaries), so that its bound is about the code that clips and sums
    the patients.

    Attributes:
        parameter: name of a trainable parameter with two dimensions.
        row: which of its rows, shape [units].
        gradient: of the row, shape [units, width].
    """

    parameter: str
    row: torch.Tensor
    gradient: torch.Tensor


def trainable(model: nn.Module) -> dict[str, nn.Parameter]:
    """Return the parameters that are trained, by name.

    Raises:
        UnsupportedModel: there is none, or the model is not of Hugging Face.
    """
    config, device = (getattr(model, name, None) for name in ("config", "device"))
    if not (isinstance(config, PreTrainedConfig) and isinstance(device, torch.device)):
        raise UnsupportedModel(f"{type(model).__name__}: is not a Hugging Face model, which has a config")
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not parameters:
        raise UnsupportedModel(
            f"{type(model).__name__}: all its weights are frozen, so there is nothing to train; "
            "set requires_grad on some"
        )
    return parameters


class LazySums(dict[str, torch.Tensor]):
    """The sums by name of the parameter; each is made when it is first used.

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
        total = torch.empty_like(like, dtype=sum_dtype(like.dtype))
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
            its trainable parameters are in Linear, Conv1D, Embedding and LayerNorm modules, in subclasses
            of these, or in normalizations of a class of their own, such as RMSNorm.
        max_grad_norm: clipping bound C of one unit's gradient, Euclidean norm, greater than 0.

    Raises:
        UnsupportedModel: a trainable module whose per-unit gradient is not known.
        InvalidParameter: a value is out of its range.
    """

    def __init__(self, model: PreTrainedModel, *, max_grad_norm: float) -> None:
        """Check the model once."""
        max_grad_norm = validate.positive(max_grad_norm=max_grad_norm)
        self.model, self._bound = model, max_grad_norm
        self.parameters = trainable(model)
        self.modules, self.activations = owners(model), slow_activations(model)
        self.names = {id(p): name for name, p in self.parameters.items()}
        held = Counter(id(p) for m in self.modules for p in m.parameters(recurse=False) if p.requires_grad)
        self.shared = {identity for identity, times in held.items() if times > 1}
        if getattr(model.config, "is_encoder_decoder", False):  # both halves may look up in one table
            self.shared |= {id(m.weight) for m in self.modules if isinstance(m, nn.Embedding)}
        self.workspace = Workspace()
        self._folding: set[int] = set()  # identities of layers that read all tokens in one dimension
        self._checked = False

    @property
    def max_grad_norm(self) -> float:
        """The clipping bound; it cannot be changed."""
        return self._bound

    def zero_sums(self) -> dict[str, torch.Tensor]:
        """Return zeros for a clipped sum, by name of the parameter, in float32 or more."""
        return {n: torch.zeros_like(p, dtype=sum_dtype(p.dtype)) for n, p in self.parameters.items()}

    def totals(self, start: Callable[[dict[str, torch.Tensor]], None]) -> "LazySums":
        """Return room for a clipped sum on top of what `start` fills it with, tensor by tensor."""
        return LazySums(self.parameters, start)

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
            into: what is added to, as `zero_sums()` or `totals()` gives it.
            scale: a public factor, such as one over the expected batch size.

        Returns:
            Norms of the units' gradients, shape [units]; not a private output.

        Raises:
            UnsupportedModel: a gradient per unit is not known for this batch.
            InvalidParameter: the batch has no labels, or gradients that are given do not fit the model.
        """
        given = isinstance(batch, GivenGradients)
        recorder = self._from_given(batch) if given else self._backward_pass(batch, unit)
        with torch.no_grad(), self._full_precision():
            norms = recorder.norms()
            bad = ~torch.isfinite(norms)
            factors = scale * self.factors(norms).masked_fill(bad, 0.0)
            like = next(iter(self.parameters.values()))
            factors = factors.to(like.device, sum_dtype(like.dtype))
            recorder.add_clipped_sums(into, factors, bad.to(like.device))
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
        recorder = self._backward_pass(batch, unit)
        with torch.no_grad(), self._full_precision():
            by_parameter = recorder.norms_by_parameter()
            return {name: recorder.units.by_name(norms) for name, norms in by_parameter.items()}

    def check(self, batch: Batch, alone: Sequence[Batch] | None = None) -> None:
        """Compare the norms of each row's gradient in a batch with one backward pass for the row alone.

        The first batch that is added is compared if nothing was before.

        Args:
            batch: two rows or more that differ, and another number of rows than of tokens.
            alone: each row as a batch of its own, such as without padding; None: as it is in the batch.

        Raises:
            UnsupportedModel: rows mix, padding is read, a use of a weight is missed, or a buffer is written.
        """
        rows = range(len(batch["labels"]))
        alone = alone or [{name: value[row : row + 1] for name, value in batch.items()} for row in rows]
        with _checks.checking(self.model):
            self._folding = _checks.folding_layers(self.model, self.modules, batch)
            self._checked = True  # for the passes that are compared
            try:
                compared = _checks.compare_rows(self.model, self.parameters, self.layer_norms, batch, alone)
            finally:
                self._checked = False
        self._checked = compared  # rows whose gradient is not finite prove nothing

    @contextmanager
    def _full_precision(self) -> Iterator[None]:
        """Compute in all digits: what shortens a forward pass may never shorten a norm or a sum."""
        with full_precision(), torch.autocast(self.model.device.type, enabled=False):
            yield

    def _backward_pass(self, batch: Batch, unit: torch.Tensor | None) -> Recorder:
        if "labels" not in batch or not len(batch["labels"]):
            raise InvalidParameter("batch: must contain `labels`, with a row or more")
        if not self._checked:
            self.check(_checks.few_rows(batch))
        units = group_rows(unit, batch["labels"].shape[0])
        recorder = Recorder(units, self.workspace, self.names, self.shared, self._folding)
        with (
            recording([*self.modules, *self.activations], recorder),
            _checks.require_all_captured(self.parameters),
            torch.enable_grad(),
        ):
            losses = losses_by_row(self.model, {k: units.arrange(v) for k, v in batch.items()})
            if unit is not None:
                losses = losses / units.sizes().to(losses)  # the mean over a unit's rows
            with self._full_precision():
                losses.sum().backward()
        return recorder

    def _from_given(self, given: "GivenGradients") -> Recorder:
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
        gradient = given.gradient.to(sum_dtype(table.dtype))
        recorder.lookup(table, given.row[:, None], gradient[:, None, :])
        return recorder


def clipped_gradient_sum(
    model: PreTrainedModel,
    batch: Batch,
    *,
    max_grad_norm: float,
    unit: torch.Tensor | None = None,
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

    Returns:
        (sums by parameter name, norms of shape [units]).

    Raises:
        UnsupportedModel: a trainable module, or a use of one, whose per-unit gradient is not known.
        InvalidParameter: max_grad_norm or unit is out of its range.

    Source: Abadi et al. 2016, algorithm 1 (without its noise).
    """
    engine = ClippedGradients(model, max_grad_norm=max_grad_norm)
    sums = engine.zero_sums()
    return sums, engine.add(batch, unit, into=sums)
