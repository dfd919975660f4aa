"""What one layer adds to the gradients of all units: its squared norms, and its share of the clipped sum.

A matrix that multiplies has, for one unit, the gradient L^T R, where L and R are tall and narrow: one row a
token. Its squared norm can be had in two ways. Ghost: the sum of the entries of (L L^T) * (R R^T), which
never forms the gradient and costs tokens^2. Materialised: form L^T R and take its norm, which costs memory
traffic.

Source: Goodfellow 2015 (products of activations and output gradients); Li et al. 2022, "Large Language
Models Can Be Strong Differentially Private Learners", section 4 (ghost norm); Bu et al. 2023,
"Differentially Private Optimization on Large Model at Small Cost", section 3 (both in one pass).
"""

import torch

from privhelpers.dpsgd._units import Units


def row_squares(value: torch.Tensor) -> torch.Tensor:
    """Return the sum of squares over all but the first axis, last axis first, shape [units].

    One flat float32 norm over millions of values reads low, and a norm that reads low lets a unit through
    above the bound.
    """
    squares = torch.linalg.vector_norm(value, dim=-1).square_()
    return squares.reshape(value.shape[0], -1).sum(1)


class Materialised:
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


class Product:
    """The gradient left^T right of each unit; left is [rows, length, m], right [rows, length, n]."""

    def __init__(self, left: torch.Tensor, right: torch.Tensor, units: Units) -> None:
        """Keep both sides."""
        self.left, self.right, self.units = left, right, units

    def squared_norms(self) -> torch.Tensor:
        """Return shape [units], by the ghost norm."""
        squares = self.left.new_empty(self.units.count)
        pairs = zip(self.units.blocks(self.left), self.units.blocks(self.right), strict=True)
        for (place, left), (_, right) in pairs:
            overlap = torch.bmm(left, left.transpose(1, 2))
            squares[place] = overlap.mul_(torch.bmm(right, right.transpose(1, 2))).sum((1, 2))
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
        total.addmm_(left.reshape(-1, left.shape[-1]).t(), right.reshape(-1, right.shape[-1]))


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
        units, cross = self.head.units, self.head.left.new_empty(self.head.units.count)
        places = [units.blocks(v) for v in (self.head.left, self.head.right, self.read.full)]
        ids = units.blocks(self.read.index[..., None])
        for (place, scored), (_, inputs), (_, read), (_, index) in zip(*places, ids, strict=True):
            picked = index.transpose(1, 2).expand(-1, scored.shape[1], -1)  # [units, scored, read]
            overlap = torch.bmm(inputs, read.transpose(1, 2))
            cross[place] = overlap.mul_(scored.gather(2, picked)).sum((1, 2))
        return self.head.squared_norms() + self.read.squared_norms() + 2 * cross

    def drop(self, bad: torch.Tensor, units: Units) -> None:
        """Put zeros in the place of the units that `bad` marks, shape [units]."""
        self.head.drop(bad, units)
        self.read.drop(bad, units)

    def add_to(self, total: torch.Tensor, factors: torch.Tensor, units: Units) -> None:
        """Add the sum over units of factor times gradient to `total`."""
        self.head.add_to(total, factors, units)
        self.read.add_to(total, factors, units)
