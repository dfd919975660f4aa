"""Which rows belong to which privacy unit, in an order that batched matrix products like."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import torch

from privhelpers.errors import InvalidParameter

_WHOLE = (torch.int32, torch.int64)


@dataclass(frozen=True)
class Units:
    """Rows in an order in which units with equally many rows are neighbors.

    Attributes:
        count: number of units.
        rows: number of rows.
        runs: (units, rows of each) of each run of equal units, in order.
        order: the row at each place, shape [rows]; None if rows stay as they are.
        names: the unit at each place of per-unit results, shape [units]; None if they stay as they are.
    """

    count: int
    rows: int
    runs: tuple[tuple[int, int], ...]
    order: torch.Tensor | None = None
    names: torch.Tensor | None = None

    def arrange(self, value: torch.Tensor) -> torch.Tensor:
        """Return a tensor of shape [rows, ...] in our order."""
        return value if self.order is None else value[self.order.to(value.device)]

    def by_name(self, value: torch.Tensor) -> torch.Tensor:
        """Return per-unit results, shape [units], in the caller's numbering."""
        if self.names is None:
            return value
        return torch.empty_like(value).index_copy_(0, self.names.to(value.device), value)

    def blocks(self, value: torch.Tensor) -> Iterator[tuple[slice, torch.Tensor]]:
        """Yield (places of the units, their rows side by side: [units, rows of a unit * length, width])."""
        if self.order is None and value.dim() == 3:  # as it is: the most common case, many times a step
            yield slice(None), value
            return
        unit = row = 0
        for units, each in self.runs:
            block = value[row : row + units * each]
            yield slice(unit, unit + units), block.reshape(units, -1, value.shape[-1])
            unit, row = unit + units, row + units * each

    def spread(self, value: torch.Tensor) -> torch.Tensor:
        """Return, for each row, the value of its unit: shape [units] to [rows]."""
        if self.order is None:
            return value
        return torch.repeat_interleave(value, self._rows_of_each().to(value.device))

    def sizes(self) -> torch.Tensor:
        """Return, for each row, how many rows its unit has, shape [rows]."""
        return self.spread(self._rows_of_each())

    def _rows_of_each(self) -> torch.Tensor:
        return torch.tensor([each for units, each in self.runs for _ in range(units)])


def group_rows(unit: torch.Tensor | None, rows: int) -> Units:
    """Return the units of a batch.

    Args:
        unit: the unit of each row, numbered from 0 without gaps, shape [rows]; None: a row is a unit.
        rows: number of rows of the batch.

    Raises:
        InvalidParameter: `unit` has another shape, or gaps.
    """
    if unit is None:
        return Units(rows, rows, ((rows, 1),))
    if not isinstance(unit, torch.Tensor) or unit.shape != (rows,) or unit.dtype not in _WHOLE:
        raise InvalidParameter(f"unit: must be a tensor with a whole number for each of {rows} rows")
    unit = unit.cpu()
    names, counts = torch.unique(unit, return_counts=True)
    if names[0] != 0 or names[-1] != len(names) - 1:
        raise InvalidParameter("unit: must number the units 0, 1, ..., each with at least one row")
    rank = counts[unit] * len(names) + unit  # by number of rows first, then by unit
    by_count = torch.argsort(counts, stable=True)
    runs = tuple((len(list(run)), int(each)) for each, run in groupby(counts[by_count].tolist()))
    return Units(len(names), rows, runs, torch.argsort(rank, stable=True), by_count)
