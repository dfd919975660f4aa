"""The budget of several releases together, and the meaning of one release for several people.

All four rules keep the neighboring relation of the guarantees that go in.

>>> nine = {"epsilon": 2.0, "runs": 9, "delta_slack": 1e-5}
>>> round(advanced_composition(**nine).epsilon, 2), round(optimal_composition(**nine).epsilon, 5)
(143.79, 17.99997)
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from privhelpers import validate
from privhelpers.errors import InvalidParameter

_ROUNDED = np.finfo(float).eps  # of each number that goes into a sum


@dataclass(frozen=True)
class Guarantee:
    """An (epsilon, delta) pair.

    Attributes:
        epsilon: 0 or more, in nats.
        delta: 0 or more; a bound of 1 or more promises nothing.
    """

    epsilon: float
    delta: float


@validate.within_float64
def basic_composition(*, epsilons: Sequence[float], deltas: Sequence[float] | None = None) -> Guarantee:
    """Return the sums: what releases spend together, chosen adaptively or not.

    Args:
        epsilons: one for each release, each 0 or more.
        deltas: one for each release, each in [0, 1); left out, all are 0.

    Raises:
        InvalidParameter: a value is out of its range, the two rows differ in length, or a float64 does not
            hold the sum.

    Source: Dwork and Roth 2014, theorem 3.16 and theorem B.1 (adaptive).
    """
    deltas = [0.0] * len(epsilons) if deltas is None else deltas
    if len(epsilons) != len(deltas) or not len(epsilons):
        raise InvalidParameter(
            f"deltas: {len(deltas)} values for {len(epsilons)} epsilons; one each, at least one"
        )
    checked = [validate.guarantee(epsilon, delta) for epsilon, delta in zip(epsilons, deltas, strict=True)]
    return Guarantee(*map(math.fsum, zip(*checked, strict=True)))


def _check_runs(epsilon: float, delta: float, runs: int, delta_slack: float) -> tuple:
    epsilon, delta = validate.guarantee(epsilon, delta)
    runs = validate.positive_int(runs=runs)
    delta_slack = validate.open_unit(delta_slack=delta_slack)
    return epsilon, delta, runs, delta_slack


@validate.within_float64
def advanced_composition(*, epsilon: float, runs: int, delta_slack: float, delta: float = 0.0) -> Guarantee:
    """Return the square-root rule, which beats the sum only if epsilon is small.

    Args:
        epsilon: of each release, 0 or more.
        runs: number of releases, 1 or more.
        delta_slack: probability given up for the better rate, in (0, 1).
        delta: of each release, in [0, 1).

    Raises:
        InvalidParameter: a value is out of its range, or too large for a float64 to count with.

    Source: Dwork, Rothblum and Vadhan 2010, theorem III.3; Dwork and Roth 2014, theorem 3.20.
    """
    epsilon, delta, runs, delta_slack = _check_runs(epsilon, delta, runs, delta_slack)
    drift = runs * epsilon * math.expm1(epsilon) if epsilon < 700 else math.inf
    spread = epsilon * math.sqrt(2 * runs * -math.log(delta_slack))
    return Guarantee(drift + spread, runs * delta + delta_slack)


@np.errstate(over="ignore")  # an infinite epsilon is an answer, too
def optimal_composition(*, epsilon: float, runs: int, delta_slack: float, delta: float = 0.0) -> Guarantee:
    """Return the smallest epsilon that holds for every composition of equal (epsilon, delta) releases.

    Randomized response is the worst release of its epsilon, so the number of true answers among `runs`
    decides everything: each threshold on it requires an epsilon, and the largest of these is the answer.

    Args:
        epsilon, delta: as in `advanced_composition`.
        runs: number of releases, 1 to 10,000,000: each has its place in a list.
        delta_slack: failure probability on top of the releases' own, in (0, 1).

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Kairouz, Oh and Viswanath 2015, theorem 3.3, read between its grid points too.
    """
    epsilon, delta, runs, delta_slack = _check_runs(epsilon, delta, runs, delta_slack)
    runs = validate.positive_int(10_000_000, runs=runs)
    lies = np.arange(runs + 1)
    ways = gammaln(runs + 1) - gammaln(lies + 1) - gammaln(runs - lies + 1)
    total = runs * np.log1p(np.exp(-epsilon))  # logarithm of (1 + e^-epsilon)^runs
    chances = np.exp(ways - lies * epsilon - total)
    # At or below each threshold, and beyond it: of the two that add up to 1, the smaller is exact.
    mine, rest = np.cumsum(chances), np.append(np.cumsum(chances[:0:-1])[::-1], 0.0)
    neighbors = np.logaddexp.accumulate(ways - (runs - lies) * epsilon - total)
    rounded = _ROUNDED * (4 * gammaln(runs + 1) + 2 * runs * min(epsilon, 1e300) + runs + 10)  # relative
    left = np.where(mine < rest, mine - delta_slack, (1 - delta_slack) - rest)
    left += rounded * np.minimum(mine, rest)
    limited = left > 0
    needed = np.log(left[limited]) - neighbors[limited] + rounded
    survives = runs * math.log1p(-delta) + math.log1p(-delta_slack)
    most = min(float(needed.max(initial=0.0)), runs * epsilon * (1 + _ROUNDED))  # never beyond the sum
    return Guarantee(most, -math.expm1(survives))


def group_privacy(*, epsilon: float, size: int, delta: float = 0.0, tight: bool = False) -> Guarantee:
    """Return what a guarantee for one unit promises to a group of `size` units: delta grows too.

    Args:
        epsilon: of one unit, 0 or more.
        size: number of units in the group, 1 or more.
        delta: of one unit, in [0, 1).
        tight: use the sum of e^(i epsilon), i = 0 to size - 1, in place of its largest term times size.

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Dwork and Roth 2014, theorem 2.2 (delta 0); Vadhan 2017, lemma 2.2 and its proof.
    """
    epsilon, delta = validate.guarantee(epsilon, delta)
    size = validate.positive_int(size=size)
    if delta == 0:
        return Guarantee(size * epsilon, 0.0)
    if size * epsilon > 700:
        return Guarantee(size * epsilon, math.inf)
    if not tight:
        factor = size * math.exp((size - 1) * epsilon)
    else:
        factor = math.expm1(size * epsilon) / math.expm1(epsilon) if epsilon else size
    return Guarantee(size * epsilon, factor * delta)
