"""What one layer adds to the gradients of all units: its squared norms, and its share of the clipped sum.

A matrix that multiplies has, for one unit, the gradient L^T R, where L and R are tall and narrow: one row a
token. Its squared norm can be had in two ways. Ghost: the sum of the entries of (L L^T) * (R R^T), which
never forms the gradient and costs tokens^2. Materialized: form L^T R and take its norm, which costs memory
traffic.

Source: Goodfellow 2015 (products of activations and output gradients); Li et al. 2022, "Large Language
Models Can Be Strong Differentially Private Learners", section 4 (ghost norm); Bu et al. 2023,
"Differentially Private Optimization on Large Model at Small Cost", section 3 (both in one pass).
"""

import functools
from collections.abc import Callable

import torch

from privhelpers.dpsgd._units import Units
from privhelpers.models.precision import WIDE, add_product, products

_ROW = 2048  # values in a row whose norm is taken at once, at most, if rows are joined
# Tokens whose inner products are taken at once: fewer multiply slowly, more do twice what once would do.
_PIECE = 64 if WIDE else 32
_LOST = 2.0**-12  # a squared norm below this part of what its terms could reach has lost too many digits


def sum_dtype(dtype: torch.dtype) -> torch.dtype:
    """Return the type of norms and sums for weights of a type: never less than float32.

    In three digits, a gradient that was clipped to the bound is up to 0.4% longer than it.
    """
    return torch.promote_types(dtype, torch.float32)


def row_squares(value: torch.Tensor) -> torch.Tensor:
    """Return the sum of squares over all but the first axis, last axis first, shape [units].

    One flat float32 norm over millions of values reads low, and a norm that reads low lets a unit through
    above the bound.
    """
    if value.dim() == 3:
        value = value.reshape(value.shape[0], -1, value.shape[2] * _joined(*value.shape[1:]))
    squares = torch.linalg.vector_norm(value, dim=-1).square_()
    return squares.reshape(value.shape[0], -1).sum(1)


@functools.cache
def _joined(rows: int, width: int) -> int:
    """Return how many rows of a matrix are read as one: a value in a short row takes three times as long."""
    return max((k for k in range(1, _ROW // max(1, width) + 1) if rows % k == 0), default=1)


def _inner(side: torch.Tensor) -> list[torch.Tensor]:
    """Return the inner products of each token and those up to it; side is [units, tokens, width].

    The products of two tokens are the same in either order, so those above the diagonal are left out, but for
    a small square of each piece: [units, tokens of the piece, tokens up to its end].
    """
    tokens = side.shape[1]
    size = _PIECE if side.device.type == "cpu" else tokens  # a GPU takes longer to start than to multiply
    ends = [*range(size, tokens, size), tokens]
    pieces = zip(side.split(size, 1), ends, strict=True)
    return [products(piece, side[:, :end]) for piece, end in pieces]


def _overlaps(left: list[torch.Tensor], right: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return squared norms of L^T R, by the ghost norm, and what the norms could reach, [units] each.

    Args:
        left, right: inner products of the tokens of L and of R, as `_inner` gives them.
    """
    squares = reach = 0.0
    for of_left, of_right in zip(left, right, strict=True):
        terms = of_left * of_right
        before = terms.shape[2] - terms.shape[1]  # tokens before the piece, whose products count twice
        squares = squares + terms.sum((1, 2)) + terms[:, :, :before].sum((1, 2))
        reach = reach + terms.diagonal(before, 1, 2).sqrt().sum(1)
    return squares, reach


def _cross(
    scored: torch.Tensor, inputs: torch.Tensor, read: torch.Tensor, index: torch.Tensor
) -> torch.Tensor:
    """Return the inner product of the two gradients of a tied matrix, [units]; index is [units, read, 1]."""
    picked = index.transpose(1, 2).expand(-1, scored.shape[1], -1)  # [units, scored, read]
    overlap = torch.bmm(inputs, read.transpose(1, 2))
    return overlap.mul_(scored.gather(2, picked)).sum((1, 2))


def _tied_squares(
    scored: torch.Tensor, inputs: torch.Tensor, read: torch.Tensor, index: torch.Tensor
) -> torch.Tensor:
    """Return the squared norms of the gradient of a tied matrix in float64, [units]."""
    scored, inputs, read = scored.double(), inputs.double(), read.double()
    same = index == index.transpose(1, 2)
    of_read = torch.bmm(read, read.transpose(1, 2)).mul_(same).sum((1, 2))
    return _overlaps(_inner(scored), _inner(inputs))[0] + of_read + 2 * _cross(scored, inputs, read, index)


def _recompute_if_cancelled(
    squares: torch.Tensor, reach: torch.Tensor, exact: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    """Return squared norms, computed in float64 if they were lost to cancellation.

    Terms that cancel leave their rounding behind, in the norm and in what is released: a norm that read low
    would let a unit through above the bound. So the rounding of the sum is added to such a norm.

    Args:
        squares: shape [units].
        reach: the norms if nothing canceled, shape [units].
        exact: returns the squared norms, in float64, of the units that a mask of shape [units] marks.
    """
    lost = squares < _LOST * reach.square()
    if bool(lost.any()):
        rounding = 2 * torch.finfo(squares.dtype).eps * reach[lost].double()
        squares = squares.masked_scatter(
            lost, (exact(lost).clamp_min(0.0).sqrt() + rounding).square().to(squares)
        )
    return squares


class Materialized:
    """A gradient of each unit, shape [units, *shape of the parameter]."""

    def __init__(self, gradient: torch.Tensor) -> None:
        """Keep it; it may be emptied by `drop`."""
        self.gradient = gradient

    def squared_norms(self) -> torch.Tensor:
        """Return shape [units]."""
        return row_squares(self.gradient)

    def drop(self, bad: torch.Tensor, units: Units) -> None:
        """Put zeros in the place of the units that `bad` marks, shape [units]."""
        self.gradient[bad] = 0.0

    def add_to(self, total: torch.Tensor, factors: torch.Tensor, units: Units) -> None:
        """Add the sum over units of factor times gradient to `total`."""
        total.view(-1).addmv_(self.gradient.reshape(units.count, -1).t(), factors)


class GramCache:
    """The inner products of the last matrix that was asked for: the next layer often reads the same."""

    def __init__(self) -> None:
        """Start with none."""
        self._side: torch.Tensor | None = None
        self._products: list[list[torch.Tensor]] = []

    def of(self, side: torch.Tensor, units: Units) -> list[list[torch.Tensor]]:
        """Return them for each run of equal units; side is [rows, length, width]."""
        if self._side is None or not _is_same(side, self._side):
            self._side, self._products = side, [_inner(block) for _, block in units.blocks(side)]
        return self._products


def _is_same(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Return whether two tensors are one piece of memory, read in one way; both are alive."""
    return (
        one.data_ptr() == other.data_ptr()
        and one.shape == other.shape
        and one.stride() == other.stride()
        and one.dtype == other.dtype
    )


class Product:
    """The gradient left^T right of each unit; left is [rows, length, m], right [rows, length, n]."""

    def __init__(
        self,
        left: torch.Tensor,
        right: torch.Tensor,
        units: Units,
        inner: tuple[GramCache, GramCache] | None = None,
    ) -> None:
        """Keep both sides; `inner` has what is known of the last left and of the last right."""
        self.left, self.right, self.units, self.inner = (
            left,
            right,
            units,
            inner or (GramCache(), GramCache()),
        )

    def squared_norms(self) -> torch.Tensor:
        """Return shape [units], by the ghost norm."""
        squares, self.reach = self.left.new_empty(2, self.units.count)
        sides = [self.units.blocks(side) for side in (self.left, self.right)]
        known = [i.of(side, self.units) for i, side in zip(self.inner, (self.left, self.right), strict=True)]
        for (place, left), (_, right), of_left, of_right in zip(*sides, *known, strict=True):
            value, self.reach[place] = _overlaps(of_left, of_right)
            squares[place] = _recompute_if_cancelled(
                value,
                self.reach[place],
                lambda lost, sides=(left, right): _overlaps(*(_inner(s[lost].double()) for s in sides))[0],
            )
        return squares

    def drop(self, bad: torch.Tensor, units: Units) -> None:
        """Put zeros in the place of the units that `bad` marks, shape [units]."""
        rows = units.spread(bad)[:, None, None]
        self.left, self.right = self.left.masked_fill(rows, 0.0), self.right.masked_fill(rows, 0.0)

    def add_to(self, total: torch.Tensor, factors: torch.Tensor, units: Units) -> None:
        """Add the sum over units of factor times gradient to `total`: one product of all rows."""
        left, right = self.left, self.right
        each = units.spread(factors)[:, None, None]
        if left.shape[-1] < right.shape[-1]:  # scale the narrower side
            left = left * each
        else:
            right = right * each
        add_product(total, left.reshape(-1, left.shape[-1]), right.reshape(-1, right.shape[-1]))


class LookedUp:
    """The gradient of a table whose rows were looked up: only the rows that a unit touched are kept."""

    def __init__(self, index: torch.Tensor, gradient: torch.Tensor, units: Units) -> None:
        """Add up what each unit has for each row; index is [rows, length], gradient [rows, length, width]."""
        self.index, self.full, self.units = index, gradient, units
        unit_of_row = units.spread(torch.arange(units.count, device=index.device))
        size = int(index.max()) + 1
        keys, place = torch.unique(index + unit_of_row[:, None] * size, return_inverse=True)
        self.row, self.unit = keys % size, keys // size
        flat = gradient.reshape(-1, gradient.shape[-1])
        self.gradient = flat.new_zeros(len(keys), flat.shape[1]).index_add_(0, place.reshape(-1), flat)

    def joined(self, index: torch.Tensor, gradient: torch.Tensor) -> "LookedUp":
        """Return this with a second lookup in the same table, as an encoder and a decoder share one."""
        return LookedUp(torch.cat([self.index, index], 1), torch.cat([self.full, gradient], 1), self.units)

    def squared_norms(self) -> torch.Tensor:
        """Return shape [units]."""
        squares = self.gradient.new_zeros(self.units.count)
        return squares.index_add_(0, self.unit, row_squares(self.gradient))

    def drop(self, bad: torch.Tensor, units: Units) -> None:
        """Put zeros in the place of the units that `bad` marks, shape [units]."""
        self.gradient[bad[self.unit]] = 0.0

    def add_to(self, total: torch.Tensor, factors: torch.Tensor, units: Units) -> None:
        """Add the sum over units of factor times gradient to `total`."""
        total.index_add_(0, self.row, self.gradient * factors[self.unit][:, None])


class Tied:
    """One matrix used twice: it reads the ids and, at the other end, scores them.

    The gradient is the sum of both uses, so its squared norm has a cross term: twice the sum, over pairs of a
    scored position s and a read position t of the unit, of G[s, id_t] times <a_s, e_t>.
    """

    def __init__(self, head: Product, read: LookedUp) -> None:
        """Keep both uses."""
        self.head, self.read = head, read

    def squared_norms(self) -> torch.Tensor:
        """Return shape [units]."""
        units, squares = self.head.units, self.head.squared_norms() + self.read.squared_norms()
        places = [units.blocks(v) for v in (self.head.left, self.head.right, self.read.full)]
        ids = units.blocks(self.read.index[..., None])
        for (place, scored), (_, inputs), (_, read), (_, index) in zip(*places, ids, strict=True):
            sides = (scored, inputs, read, index)
            squares[place] = _recompute_if_cancelled(
                squares[place] + 2 * _cross(*sides),
                self.head.reach[place] + torch.linalg.vector_norm(read, dim=-1).sum(1),
                lambda lost, sides=sides: _tied_squares(*(side[lost] for side in sides)),
            )
        return squares

    def drop(self, bad: torch.Tensor, units: Units) -> None:
        """Put zeros in the place of the units that `bad` marks, shape [units]."""
        self.head.drop(bad, units)
        self.read.drop(bad, units)

    def add_to(self, total: torch.Tensor, factors: torch.Tensor, units: Units) -> None:
        """Add the sum over units of factor times gradient to `total`."""
        self.head.add_to(total, factors, units)
        self.read.add_to(total, factors, units)
