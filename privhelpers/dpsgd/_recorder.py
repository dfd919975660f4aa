"""One pass: what each layer read and what came back to it, turned into contributions of the units."""

from collections.abc import Mapping

import torch
from torch import nn

from privhelpers.dpsgd._contributions import GramCache, LookedUp, Materialized, Product, Tied, row_squares
from privhelpers.dpsgd._units import Units
from privhelpers.errors import UnsupportedModel

Contribution = Materialized | Product | LookedUp | Tied

# Arithmetic of the ghost norm over memory traffic of the materialized one at equal cost on a CPU.
# A gradient that does not fit a core's cache travels twice as far.
_GHOST_COST, _CACHED = 30, 1 << 19
_MOST_BYTES = 1 << 28  # of all materialized gradients of a pass; beyond it, ghost


def prefers_ghost(length: int, m: int, n: int) -> bool:
    """Return whether the ghost norm of an m by n weight is cheaper than the materialized one.

    A fixed rule of shapes, never a timing, so that every machine computes the same sums.

    Args:
        length: tokens of one unit, padding included.
        m, n: shape of the weight.

    >>> prefers_ghost(32, 128, 128), prefers_ghost(128, 128, 512), prefers_ghost(128, 768, 768)
    (True, False, True)
    """
    cost = _GHOST_COST if m * n <= _CACHED else 2 * _GHOST_COST
    return length * length * (m + n) < cost * m * n


class Workspace:
    """Memory kept from step to step: fresh blocks of megabytes are paged in again each time, at a price."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._blocks: dict[int, torch.Tensor] = {}

    def take(self, parameter: torch.Tensor, units: int, like: torch.Tensor) -> torch.Tensor:
        """Return memory of shape [units, *shape of the parameter]; its content is not defined."""
        block = self._blocks.get(id(parameter))
        if block is None or block.shape[0] < units or block.dtype != like.dtype:
            block = self._blocks[id(parameter)] = like.new_empty(units, *parameter.shape)
        return block[:units]


class Recorder:
    """Collects, during one backward pass, a contribution for every trainable parameter.

    Args:
        units: which rows belong together.
        workspace: memory for materialized gradients.
        names: of the trainable parameters, by identity.
        shared: identities of the parameters that more than one layer owns.
        folding: identities of the layers that read the tokens of all rows in one dimension; None for a
            trial, which writes into `folds` how many times the rows each layer's first dimension is.
    """

    def __init__(
        self,
        units: Units,
        workspace: Workspace,
        names: dict[int, str],
        shared: set[int] = frozenset(),
        folding: set[int] | None = frozenset(),
    ) -> None:
        """Start with nothing found."""
        self.units, self.workspace, self.names, self.shared = units, workspace, names, shared
        self.folding, self.folds = folding or set(), {} if folding is None else None
        self.bytes = 0
        self.length = max(each for _, each in units.runs)
        self.inner = GramCache(), GramCache()
        self.seen: set[int] = set()
        self.matrices: dict[int, Contribution] = {}
        self.vectors: dict[int, torch.Tensor] = {}  # small and many: taken together at the end
        self.squares: dict[int, torch.Tensor] = {}

    def require_rows_first(self, module: nn.Module, first: int, *, folded: bool = True) -> None:
        """Refuse a layer that does not read row by row.

        Args:
            module: what runs.
            first: its first dimension: the rows, or all their tokens if it was seen to fold them.
            folded: whether it may.
        """
        rows = self.units.rows
        whole = folded and first % rows == 0
        if whole and self.folds is not None:  # a trial: what it does is written down
            self.folds.setdefault(id(module), first // rows)
        elif first != rows and not (whole and id(module) in self.folding):
            raise UnsupportedModel(
                f"{type(module).__name__}: its first dimension is {first}, not the {rows} rows"
            )

    def check(self, module: nn.Module, rows: int, *, again: bool = False) -> None:
        """Refuse what would make a norm wrong: a mixed first dimension, or a second use in one pass.

        Args:
            module: whose gradient came back.
            rows: its first dimension.
            again: whether a second use is added to the first, for a shared parameter.
        """
        self.require_rows_first(module, rows)
        if again and id(module.weight) in self.shared:
            return
        if id(module) in self.seen:
            kind = type(module).__name__
            raise UnsupportedModel(
                f"{kind}: ran twice in one pass, so its gradient has cross terms of both runs"
            )
        self.seen.add(id(module))

    def matrix(self, parameter: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> None:
        """Record the gradient left^T right; left is [rows, length, m], right [rows, length, n]."""
        known = self.matrices.get(id(parameter))
        if known is None and self._takes_ghost(parameter, left):
            self._keep(parameter, Product(left, right, self.units, self.inner))
            return
        if known is None:
            table = self.workspace.take(parameter, self.units.count, left)
        elif isinstance(known, Materialized):
            table = known.gradient
        else:
            self._refuse_sharing(parameter)
        pairs = zip(self.units.blocks(left), self.units.blocks(right), strict=True)
        for (place, a), (_, b) in pairs:
            if known is None:
                torch.bmm(a.transpose(1, 2), b, out=table[place])
            else:
                table[place].baddbmm_(a.transpose(1, 2), b)
        self._keep(parameter, known or Materialized(table))

    def vector(self, parameter: torch.Tensor, gradient: torch.Tensor) -> None:
        """Record a gradient that is a sum over tokens; shape [rows, length, width]."""
        if id(parameter) in self.vectors:
            self._refuse_sharing(parameter)
        sums = [block.sum(1) for _, block in self.units.blocks(gradient)]
        self.vectors[id(parameter)] = sums[0] if len(sums) == 1 else torch.cat(sums)

    def lookup(self, parameter: torch.Tensor, index: torch.Tensor, gradient: torch.Tensor) -> None:
        """Record the gradient of looked-up rows; index is [rows, length], gradient [rows, length, width]."""
        known = self.matrices.get(id(parameter))
        if isinstance(known, Materialized):
            unit = self.units.spread(torch.arange(self.units.count, device=index.device))
            place = (index + unit[:, None] * parameter.shape[0]).reshape(-1)
            table = known.gradient.view(-1, parameter.shape[1])
            table.index_add_(0, place, gradient.reshape(-1, parameter.shape[1]))
        elif isinstance(known, Product):
            self._keep(parameter, Tied(known, LookedUp(index, gradient, self.units)))
        elif isinstance(known, Tied):
            self._keep(parameter, Tied(known.head, known.read.joined(index, gradient)))
        elif isinstance(known, LookedUp):
            self._keep(parameter, known.joined(index, gradient))
        else:
            self._keep(parameter, LookedUp(index, gradient, self.units))

    def norms(self) -> torch.Tensor:
        """Return the norm of each unit's whole gradient, float64, shape [units]; once, after the pass."""
        squares = list(self._squares_of_matrices().values())
        if self.vectors:
            squares.append(row_squares(torch.cat(list(self.vectors.values()), 1)))
        if not squares:
            return torch.zeros(self.units.count, dtype=torch.float64)
        # Across layers in float64; the sum of one layer is exact to about 1e-7 in float32.
        return torch.stack(squares).double().sum(0).clamp_min(0.0).sqrt()

    def norms_by_parameter(self) -> dict[str, torch.Tensor]:
        """Return the norm of each unit's gradient of each parameter, float64, shape [units]."""
        squares = self._squares_of_matrices() | {i: row_squares(v) for i, v in self.vectors.items()}
        return {self.names[i]: value.double().clamp_min(0.0).sqrt() for i, value in squares.items()}

    def _squares_of_matrices(self) -> dict[int, torch.Tensor]:
        later = {i: self.matrices[i].squared_norms() for i in self.shared if i in self.matrices}
        return self.squares | later

    def add_clipped_sums(
        self, into: Mapping[str, torch.Tensor], factors: torch.Tensor, bad: torch.Tensor
    ) -> None:
        """Add the sum over units of factor times gradient to every parameter's total; once, at the end.

        Args:
            into: totals by name; every one is asked for, in the order of the parameters.
            factors: shape [units], in our order; 0 for a unit that is not finite.
            bad: which units are not finite, shape [units].
        """
        any_bad = bool(bad.any())  # zero times NaN is NaN: such gradients are emptied first
        parts = {}
        if self.vectors:
            sums = torch.cat(list(self.vectors.values()), 1)
            widths = [vector.shape[1] for vector in self.vectors.values()]
            poured = factors @ (sums.masked_fill(bad[:, None], 0.0) if any_bad else sums)
            parts = dict(zip(self.vectors, poured.split(widths), strict=True))
        for identity, name in self.names.items():
            total = into[name]
            if identity in self.matrices:
                self._add_matrix(self.matrices.pop(identity), total, factors, bad if any_bad else None)
            if identity in parts:
                total.add_(parts[identity].view_as(total))

    def _add_matrix(self, contribution: Contribution, total, factors, bad: torch.Tensor | None) -> None:
        """Add one contribution to its total; its memory is free afterwards."""
        if bad is not None:
            contribution.drop(bad, self.units)
        contribution.add_to(total, factors, self.units)

    def _takes_ghost(self, parameter: torch.Tensor, left: torch.Tensor) -> bool:
        if prefers_ghost(self.length * left.shape[1], *parameter.shape):
            return True
        size = self.units.count * parameter.numel() * left.element_size()
        if self.bytes + size > _MOST_BYTES:
            return True
        self.bytes += size
        return False

    def _keep(self, parameter: torch.Tensor, contribution: Contribution) -> None:
        self.matrices[id(parameter)] = contribution
        if id(parameter) not in self.shared:  # more of it may come; else while it is still in the cache
            self.squares[id(parameter)] = contribution.squared_norms()

    def _refuse_sharing(self, parameter: torch.Tensor) -> None:
        raise UnsupportedModel(
            f"{self.names[id(parameter)]}: is shared by layers other than one embedding and one output "
            "layer; untie it"
        )
