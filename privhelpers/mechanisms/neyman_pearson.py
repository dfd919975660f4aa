"""The best test between two known distributions, with a coin where an atom sits on the threshold.

The statistic is T = log(null / alternative) throughout, and a small T speaks against the null.

>>> round(gaussian_test(mean_null=0, mean_alternative=1, sd=1, fpr=0.05).threshold, 6)
-1.144854
>>> randomized_test([0.5, 0.5], [0.25, 0.75], fpr=0.05).rejects  # a fair coin or a loaded one, one toss
(0.0, 0.1)
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from privhelpers import validate
from privhelpers.errors import InvalidParameter
from privhelpers.mechanisms import checks


@dataclass(frozen=True)
class GaussianTest:
    """The most powerful test between two normal distributions of equal spread.

    Attributes:
        threshold: reject the null when T = log(null / alternative) lies below it.
        cut: the same test in the unit of the observation.
        fpr: probability of rejecting a true null, in (0, 1).
        fnr: probability of keeping a false null, in (0, 1).
    """

    threshold: float
    cut: float
    fpr: float
    fnr: float


def gaussian_test(*, mean_null: float, mean_alternative: float, sd: float, fpr: float) -> GaussianTest:
    """Return the Neyman-Pearson test of N(mean_null, sd^2) against N(mean_alternative, sd^2).

    Args:
        mean_null, mean_alternative: finite and different.
        sd: standard deviation of both, greater than 0.
        fpr: in (0, 1).

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Neyman and Pearson 1933; Lehmann and Romano 2005, theorem 3.2.1.
    """
    checks.finite(mean_null=mean_null, mean_alternative=mean_alternative)
    validate.positive(sd=sd)
    validate.probability(fpr=fpr)
    if fpr == 1 or mean_null == mean_alternative:
        raise InvalidParameter(
            f"fpr = {fpr!r}, mean_null = {mean_null!r}, mean_alternative = {mean_alternative!r}: "
            "fpr must be below 1 and the means must differ"
        )
    # Under the null T has mean +d^2/2 and standard deviation d, under the alternative mean -d^2/2.
    distance = abs(mean_alternative - mean_null) / sd
    threshold = distance**2 / 2 + distance * float(ndtri(fpr))
    direction = 1 if mean_alternative > mean_null else -1
    cut = mean_null - direction * sd * float(ndtri(fpr))
    fnr = float(ndtr(-(threshold + distance**2 / 2) / distance))
    return GaussianTest(threshold=threshold, cut=cut, fpr=fpr, fnr=fnr)


@dataclass(frozen=True)
class RandomizedTest:
    """The most powerful test between two discrete distributions.

    Attributes:
        rejects: probability of rejecting the null for each outcome, in [0, 1].
        threshold: T below it rejects, T above it does not.
        coin: probability of rejecting on T equal to the threshold, in [0, 1].
        fpr: probability of rejecting a true null: exactly the one asked for.
        fnr: probability of keeping a false null.
    """

    rejects: tuple[float, ...]
    threshold: float
    coin: float
    fpr: float
    fnr: float


def randomized_test(null: Sequence[float], alternative: Sequence[float], *, fpr: float) -> RandomizedTest:
    """Return the Neyman-Pearson test of one discrete distribution against another.

    Outcomes are rejected from the smallest T upward while the FPR lasts; on the outcomes where it runs
    out, a coin spends the rest. Without the coin the test would miss the FPR, and some power with it.

    Args:
        null, alternative: masses of the same outcomes in the same order, each row sums to 1.
        fpr: in [0, 1].

    Raises:
        InvalidParameter: a row is no distribution, the rows differ in length, or fpr is out of range.

    Source: Lehmann and Romano 2005, theorem 3.2.1.
    """
    p, q = checks.distribution("null", null), checks.distribution("alternative", alternative)
    checks.unit_interval(fpr=fpr)
    if p.size != q.size:
        raise InvalidParameter(f"alternative: {q.size} masses for {p.size} outcomes of the null")
    with np.errstate(divide="ignore", invalid="ignore"):
        # Ratios that are equal on paper must meet in one atom, whatever the last bit of a division says.
        statistic = np.round(np.log(p) - np.log(q), 12)
    rejects, left, threshold, coin = np.zeros(p.size), float(fpr), -np.inf, 1.0
    for value in np.unique(statistic[~np.isnan(statistic)]):
        atom = statistic == value
        mass = p[atom].sum()
        threshold, coin = float(value), float(min(1.0, left / mass)) if mass > 0 else 1.0
        rejects[atom] = coin
        left = max(0.0, left - mass)
        if coin < 1:
            break
    return RandomizedTest(
        rejects=tuple(rejects.tolist()),
        threshold=threshold,
        coin=coin,
        fpr=float(rejects @ p),
        fnr=float((1 - rejects) @ q),
    )
