"""Rates of independent trials, and the comparison of two of them.

>>> interval = clopper_pearson(5, 1400)
>>> f"{interval.low:.4f} to {interval.high:.4f}"
'0.0012 to 0.0083'
>>> two_proportion(256, 1400, 5, 1400).label
'medium'

Sources: Wilson (1927); Clopper and Pearson (1934); Cohen, Statistical Power Analysis (2nd ed., 1988), 6.2.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

from scipy.stats import beta, chi2_contingency, fisher_exact, norm

from privhelpers import validate
from privhelpers.errors import InvalidParameter
from privhelpers.stats import checks
from privhelpers.validate import shown

# Cohen (1988), section 6.2.3; below the first bound he gives no word.
MOST_TRIALS = 1_000_000_000  # Fisher's test multiplies two such counts in 64 bits
EFFECT_BOUNDS = ((0.2, "negligible"), (0.5, "small"), (0.8, "medium"))


@dataclass(frozen=True)
class Interval:
    """An estimate with its confidence interval.

    Attributes:
        estimate: the value computed from all observations.
        low, high: ends of the interval, in the unit of the estimate.
        level: coverage that the method aims at, in (0, 1).
        method: how the interval was made, in words for a caption.
    """

    estimate: float
    low: float
    high: float
    level: float
    method: str

    def __contains__(self, value: float) -> bool:
        """Return whether `value` is in the closed interval: `0.5 in interval`."""
        return self.low <= value <= self.high


@dataclass(frozen=True)
class TwoProportion:
    """Two rates side by side; every test takes all trials as independent.

    Attributes:
        chi_squared, chi_squared_p: Pearson's statistic without correction (1 degree of freedom), its p-value.
        yates, yates_p: the same with the continuity correction of Yates.
        fisher_p, odds_ratio: exact two-sided p-value and the sample odds ratio (nan for 0/0, inf for x/0).
        difference: rate of a minus rate of b.
        cohens_h: 2 asin(sqrt(rate a)) - 2 asin(sqrt(rate b)), in radians.
        label: Cohen's word for the absolute value of h.
    """

    chi_squared: float
    chi_squared_p: float
    yates: float
    yates_p: float
    fisher_p: float
    odds_ratio: float
    difference: float
    cohens_h: float
    label: str

    @property
    def z(self) -> float:
        """The pooled two-proportion z: its square is `chi_squared`, its sign the sign of the difference."""
        return math.copysign(math.sqrt(self.chi_squared), self.difference)


def _counts(successes: int, trials: int, arm: str = "") -> tuple[int, int]:
    trials = validate.positive_int(**{f"trials{arm}": trials})
    successes = validate.non_negative_int(**{f"successes{arm}": successes})
    if trials > MOST_TRIALS:
        raise InvalidParameter(f"trials{arm} = {shown(trials)}: must be at most {MOST_TRIALS:,}")
    if successes > trials:
        raise InvalidParameter(f"successes{arm} = {successes}: must not exceed trials{arm} = {trials}")
    return successes, trials


def _wilson(successes: int, trials: int, tail: float) -> tuple[float, float]:
    z = norm.isf(tail)
    middle = (successes + z**2 / 2) / (trials + z**2)
    reach = z / (trials + z**2) * math.sqrt(successes * (trials - successes) / trials + z**2 / 4)
    return middle - reach, middle + reach


def _wald(successes: int, trials: int, tail: float) -> tuple[float, float]:
    rate = successes / trials
    reach = norm.isf(tail) * math.sqrt(rate * (1 - rate) / trials)
    return rate - reach, rate + reach


def _clopper_pearson(successes: int, trials: int, tail: float) -> tuple[float, float]:
    low = beta.ppf(tail, successes, trials - successes + 1) if successes else 0.0
    high = beta.isf(tail, successes + 1, trials - successes) if successes < trials else 1.0
    return low, high


Ends = Callable[[int, int, float], tuple[float, float]]


def _interval(successes: int, trials: int, level: float, ends: Ends, name: str) -> Interval:
    successes, trials = _counts(successes, trials)
    level = validate.open_unit(level=level)
    low, high = ends(successes, trials, (1 - level) / 2)
    estimate = successes / trials
    # Rounding may leave the estimate 1e-17 outside when it is 0 or 1; no rate is below 0 or above 1.
    low, high = max(0.0, min(float(low), estimate)), min(1.0, max(float(high), estimate))
    return Interval(estimate, low, high, level, name)


def wilson(successes: int, trials: int, level: float = 0.95) -> Interval:
    """Return Wilson's score interval of a rate: close to its nominal coverage on average.

    Args:
        successes: trials with the outcome, 0 to `trials`.
        trials: independent trials, 1 or more.
        level: nominal coverage, in (0, 1).

    Raises:
        InvalidParameter: a count is negative or not whole, or successes exceed trials.
    """
    return _interval(successes, trials, level, _wilson, "Wilson")


def wald(successes: int, trials: int, level: float = 0.95) -> Interval:
    """Return Wald's interval, estimate plus or minus z standard errors: here to show how it fails.

    Of no hits it makes [0, 0]; near 0 and 1 it covers far less often than it claims.

    Args:
        successes: trials with the outcome, 0 to `trials`.
        trials: independent trials, 1 or more.
        level: nominal coverage, in (0, 1).

    Raises:
        InvalidParameter: a count is negative or not whole, or successes exceed trials.

    Source: Brown, Cai and DasGupta, Statistical Science 16 (2001), section 2.
    """
    return _interval(successes, trials, level, _wald, "Wald")


def clopper_pearson(successes: int, trials: int, level: float = 0.95) -> Interval:
    """Return the Clopper-Pearson interval of a rate: its coverage is never below nominal.

    Args:
        successes: trials with the outcome, 0 to `trials`.
        trials: independent trials, 1 or more.
        level: least coverage, in (0, 1).

    Raises:
        InvalidParameter: a count is negative or not whole, or successes exceed trials.
    """
    return _interval(successes, trials, level, _clopper_pearson, "Clopper-Pearson")


def newcombe_difference(one: Interval, two: Interval) -> Interval:
    """Return the difference of two rates, with an interval that stays open if nothing was hit.

    A bootstrap of no hits in either arm is the interval [0, 0], which claims certainty. Here the ends come
    from the intervals of the two rates, joined as Newcombe joins Wilson's.

    Args:
        one, two: rates with intervals of the same level, of independent arms.

    Raises:
        InvalidParameter: one is not an interval, or their levels differ.

    Source: Newcombe, Statistics in Medicine 17 (1998), method 10, with other intervals inside.

    >>> difference = newcombe_difference(clopper_pearson(0, 20), clopper_pearson(0, 20))
    >>> round(difference.low, 3), difference.estimate, round(difference.high, 3)
    (-0.168, 0.0, 0.168)
    """
    if not isinstance(one, Interval) or not isinstance(two, Interval) or one.level != two.level:
        raise InvalidParameter(f"one, two = {shown(one)}, {shown(two)}: must be intervals of the same level")
    estimate = one.estimate - two.estimate
    low = estimate - math.hypot(one.estimate - one.low, two.high - two.estimate)
    high = estimate + math.hypot(one.high - one.estimate, two.estimate - two.low)
    return Interval(estimate, low, high, one.level, "Newcombe, of the intervals of the arms")


def effect_label(cohens_h: float) -> str:
    """Return Cohen's word for the absolute value of h: negligible, small, medium or large.

    Raises:
        InvalidParameter: h is not a finite number.
    """
    checks.vector("cohens_h", [cohens_h])
    return next((word for bound, word in EFFECT_BOUNDS if abs(cohens_h) < bound), "large")


def two_proportion(successes_a: int, n_a: int, successes_b: int, n_b: int) -> TwoProportion:
    """Compare two rates by chi-squared, Yates, Fisher and Cohen's h.

    The tests are right for independent trials. Generations that share prompts are not: divide the
    chi-squared statistic by `design_effect`, or compare `clustered_proportion` intervals.

    Args:
        successes_a, successes_b: trials with the outcome in each arm.
        n_a, n_b: trials in each arm, 1 or more.

    Raises:
        InvalidParameter: a count is negative or not whole, or successes exceed trials.
    """
    successes_a, n_a = _counts(successes_a, n_a, "_a")
    successes_b, n_b = _counts(successes_b, n_b, "_b")
    table = [[successes_a, n_a - successes_a], [successes_b, n_b - successes_b]]
    if successes_a + successes_b in (0, n_a + n_b):
        # Both arms always, or never: the statistic is 0/0, and nothing speaks against equal rates.
        pearson = yates = (0.0, 1.0)
    else:
        pearson = chi2_contingency(table, correction=False)[:2]
        yates = chi2_contingency(table, correction=True)[:2]
    odds_ratio, fisher_p = fisher_exact(table)
    rate_a, rate_b = successes_a / n_a, successes_b / n_b
    h = 2 * (math.asin(math.sqrt(rate_a)) - math.asin(math.sqrt(rate_b)))
    return TwoProportion(
        *map(float, (*pearson, *yates, fisher_p, odds_ratio)), rate_a - rate_b, h, effect_label(h)
    )
