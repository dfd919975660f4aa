"""The clipped sum of per-unit gradients from one forward and one backward pass.

The gradient of one row with respect to a layer's weight is a product of two things that an ordinary pass
already computes: what went into the layer and the gradient at what came out. So the parameters are frozen
for the pass (no weight gradient of the whole batch is formed), both tensors are kept for every layer, and
the gradient of each privacy unit is one batched matrix product. Contributions to one parameter are added
before the norm is taken, so weights that two layers share (a tied embedding) are exact.

Source: Goodfellow 2015 (per-example norms from activations and output gradients); Bu et al. 2023,
"Differentially Private Optimization on Large Model at Small Cost", section 3 (book-keeping).
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby

import torch
from torch import nn
from transformers import PreTrainedModel
from transformers.pytorch_utils import Conv1D

from privhelpers import validate
from privhelpers.errors import InvalidParameter, UnsupportedModel
from privhelpers.models.scoring import row_losses

SUPPORTED = (nn.Linear, Conv1D, nn.Embedding, nn.LayerNorm)


@dataclass(frozen=True)
class Batch:
    """Rows of one physical batch: ids and labels of shape [rows, length]; -100 marks padding."""

    ids: torch.Tensor
    labels: torch.Tensor


@dataclass(frozen=True)
class _Groups:
    """Rows ordered so that units with equally many rows are neighbours.

    Attributes:
        order: the row at each place, shape [rows].
        sizes: (units, rows of each) of each run of equal units, in order.
        units: the unit at each place of the per-unit results, shape [units].
    """

    order: torch.Tensor
    sizes: list[tuple[int, int]]
    units: torch.Tensor


def _group_rows(unit: torch.Tensor) -> _Groups:
    names, counts = torch.unique(unit, return_counts=True)
    if names[0] != 0 or names[-1] != len(names) - 1:
        raise InvalidParameter("unit: must number the units 0, 1, ..., each with at least one row")
    rank = counts[unit] * len(names) + unit  # by number of rows first, then by unit
    by_count = torch.argsort(counts, stable=True)
    sizes = [(len(list(run)), int(count)) for count, run in groupby(counts[by_count].tolist())]
    return _Groups(torch.argsort(rank, stable=True), sizes, by_count)


class _Recorder:
    """Keeps, for one pass, each layer's input and output gradient, and turns them into unit gradients."""

    def __init__(self, model: nn.Module, rows: int) -> None:
        self.rows = rows
        self.captured: list[tuple[nn.Module, torch.Tensor, torch.Tensor]] = []
        self.owners = _owners(model)

    @contextmanager
    def attached(self, model: nn.Module) -> Iterator[None]:
        trainable = [p for p in model.parameters() if p.requires_grad]
        handles = [m.register_forward_hook(self._hook) for m in self.owners]
        for parameter in trainable:
            parameter.requires_grad_(False)
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()
            for parameter in trainable:
                parameter.requires_grad_(True)

    def _hook(self, module: nn.Module, inputs: tuple, output: torch.Tensor) -> torch.Tensor:
        value = inputs[0]
        if value.shape[0] == 1 and self.rows > 1:  # positions are looked up once for the whole batch
            value = value.expand(self.rows, *value.shape[1:])
            output = output.expand(self.rows, *output.shape[1:])
        if value.shape[0] != self.rows:
            raise UnsupportedModel(
                f"{type(module).__name__}: its first dimension is {value.shape[0]}, not the {self.rows} rows"
            )
        if not output.requires_grad:
            output = output.detach().requires_grad_()
        output.register_hook(lambda gradient: self.captured.append((module, value.detach(), gradient)))
        return output


def _owners(model: nn.Module) -> list[nn.Module]:
    """Return the modules that own trainable parameters, refusing any whose gradient is not known here."""
    owners = []
    for name, module in model.named_modules():
        own = [p for p in module.parameters(recurse=False) if p.requires_grad]
        if not own:
            continue
        if type(module) not in SUPPORTED:
            known = ", ".join(t.__name__ for t in SUPPORTED)
            raise UnsupportedModel(
                f"{name} ({type(module).__name__}): per-unit gradients are known for {known}; "
                "freeze its parameters or replace it"
            )
        if isinstance(module, nn.Embedding) and (module.max_norm is not None or module.scale_grad_by_freq):
            raise UnsupportedModel(f"{name}: an Embedding with max_norm or scale_grad_by_freq mixes rows")
        if len(own) != len(list(module.parameters(recurse=False))):
            raise UnsupportedModel(f"{name}: freeze all of its parameters or none")
        owners.append(module)
    return owners


def _unit_blocks(value: torch.Tensor, groups: _Groups) -> Iterator[tuple[slice, torch.Tensor]]:
    """Yield (places of the units, their rows side by side: [units, rows of a unit * length, width])."""
    unit = row = 0
    for units, each in groups.sizes:
        block = value[row : row + units * each]
        yield slice(unit, unit + units), block.reshape(units, -1, value.shape[-1])
        unit, row = unit + units, row + units * each


class _UnitGradients:
    """Per-unit gradients [units, *shape] by parameter; a second contribution is added to the first."""

    def __init__(self, groups: _Groups) -> None:
        self.groups = groups
        self.units = sum(count for count, _ in groups.sizes)
        self.by_parameter: dict[int, torch.Tensor] = {}

    def _room(self, parameter: torch.Tensor, zeros: bool) -> tuple[torch.Tensor, bool]:
        known = id(parameter) in self.by_parameter
        if not known:
            make = parameter.new_zeros if zeros else parameter.new_empty
            self.by_parameter[id(parameter)] = make(self.units, *parameter.shape)
        return self.by_parameter[id(parameter)], known

    def add_matrix(self, parameter: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> None:
        """Add left^T right of each unit: the gradient of a weight that multiplies."""
        out, known = self._room(parameter, zeros=False)
        pairs = zip(_unit_blocks(left, self.groups), _unit_blocks(right, self.groups), strict=True)
        for (place, a), (_, b) in pairs:
            if known:
                out[place].baddbmm_(a.transpose(1, 2), b)
            else:
                torch.bmm(a.transpose(1, 2), b, out=out[place])

    def add_sum(self, parameter: torch.Tensor, value: torch.Tensor) -> None:
        """Add the sum over positions of each unit: the gradient of a weight that is added."""
        out, _ = self._room(parameter, zeros=True)
        for place, block in _unit_blocks(value, self.groups):
            out[place] += block.sum(1)

    def add_rows(self, parameter: torch.Tensor, index: torch.Tensor, gradient: torch.Tensor) -> None:
        """Add the gradient at each looked-up position to its row of the unit's table."""
        out, _ = self._room(parameter, zeros=True)
        table = out.view(-1, out.shape[-1])
        pairs = zip(
            _unit_blocks(index[..., None], self.groups), _unit_blocks(gradient, self.groups), strict=True
        )
        for (place, chosen), (_, block) in pairs:
            start = torch.arange(place.start, place.stop, device=out.device)[:, None] * out.shape[1]
            table.index_add_(0, (chosen[..., 0] + start).reshape(-1), block.reshape(-1, out.shape[-1]))


def _normalised(module: nn.LayerNorm, value: torch.Tensor) -> torch.Tensor:
    mean = value.mean(-1, keepdim=True)
    spread = torch.rsqrt(value.var(-1, unbiased=False, keepdim=True) + module.eps)
    return (value - mean) * spread


def _per_unit(recorder: _Recorder, groups: _Groups) -> dict[int, torch.Tensor]:
    """Return per-unit gradients [units, *shape] by parameter identity."""
    gradients = _UnitGradients(groups)
    for module, value, gradient in recorder.captured:
        bias = getattr(module, "bias", None)
        if isinstance(module, nn.Embedding):
            if module.padding_idx is not None:  # autograd gives that row no gradient
                gradient = gradient.masked_fill((value == module.padding_idx).unsqueeze(-1), 0)
            gradients.add_rows(module.weight, value, gradient)
        elif isinstance(module, nn.LayerNorm):
            gradients.add_sum(module.weight, _normalised(module, value) * gradient)
        elif isinstance(module, Conv1D):
            gradients.add_matrix(module.weight, value, gradient)
        else:
            gradients.add_matrix(module.weight, gradient, value)
        if bias is not None:
            gradients.add_sum(bias, gradient)
    return gradients.by_parameter


def _squared_norm(gradient: torch.Tensor) -> torch.Tensor:
    """Return each unit's sum of squares, last axis first: one flat float32 norm over millions of values
    reads low, and a norm that reads low lets a unit through above the bound."""
    return torch.linalg.vector_norm(gradient, dim=-1).square().reshape(gradient.shape[0], -1).sum(1)


def clipped_gradient_sum(
    model: PreTrainedModel, batch: Batch, *, max_grad_norm: float, unit: torch.Tensor | None = None
) -> tuple[dict[str, torch.Tensor], torch.Tensor]:
    """Return the sum over units of their clipped gradients, and the norms before clipping.

    A row's loss is the mean over its own target tokens; a unit's gradient is the mean of its rows'
    gradients and is clipped once to `max_grad_norm`. A unit whose gradient is not finite contributes zero.

    Args:
        model: a causal language model whose trainable parameters lie in Linear, Conv1D, Embedding or
            LayerNorm modules; its `.grad` fields are not touched.
        batch: the rows; with right padding no attention mask is needed.
        max_grad_norm: clipping bound C in Euclidean norm, greater than 0.
        unit: the unit of each row, numbered from 0 without gaps, shape [rows]; default: a row is a unit.

    Returns:
        (sums by parameter name, norms of shape [units]).

    Raises:
        UnsupportedModel: a trainable module whose per-unit gradient is not known.
        InvalidParameter: max_grad_norm or unit is out of its range.

    Source: Abadi et al. 2016, algorithm 1 (without its noise). Taught in: 07_dpsgd_mechanics.
    """
    validate.positive(max_grad_norm=max_grad_norm)
    rows = batch.ids.shape[0]
    unit = torch.arange(rows) if unit is None else unit
    if unit.shape != (rows,):
        raise InvalidParameter(
            f"unit: has shape {tuple(unit.shape)}, must give one unit for each of {rows} rows"
        )
    groups = _group_rows(unit)
    recorder = _Recorder(model, rows)
    names = {id(p): name for name, p in model.named_parameters() if p.requires_grad}
    rows_of_unit = torch.bincount(unit)[unit[groups.order]]
    with recorder.attached(model), torch.enable_grad():
        logits = model(input_ids=batch.ids[groups.order].to(model.device)).logits
        losses = row_losses(logits, batch.labels[groups.order].to(model.device))
        (losses / rows_of_unit.to(losses)).sum().backward()  # the mean over a unit's rows
    with torch.no_grad():
        gradients = _per_unit(recorder, groups)
        square = sum(_squared_norm(g) for g in gradients.values())
        finite = torch.isfinite(square)
        factor = (max_grad_norm / square.sqrt().clamp_min(1e-12)).clamp_max(1.0)
        sums = {}
        for identity, gradient in gradients.items():
            if not finite.all():
                gradient[~finite] = 0.0
            weights = torch.where(finite, factor, torch.zeros_like(factor))
            sums[names[identity]] = (weights @ gradient.flatten(1)).view(gradient.shape[1:])
        norms = torch.empty_like(square)
        norms[groups.units.to(norms.device)] = square.sqrt()
    return sums, norms
