"""No difference worth the name: two one-sided tests against a margin that is named beforehand.

A large p-value says that an experiment saw nothing. Equivalence says more: differences of the margin or
above are refuted. A small experiment sees nothing and refutes nothing.

>>> from privhelpers.stats._estimates import Estimate
>>> tost(Estimate(0.01, 0.01, 200, 201), margin=0.05).verdict
'equivalent'
>>> tost(Estimate(0.01, 0.05, 200, 201), margin=0.05).verdict
'undecided'
"""

import math
from dataclasses import dataclass

from scipy.optimize import brentq
from scipy.stats import t

from privhelpers import validate
from privhelpers.errors import InvalidParameter
from privhelpers.stats import checks
from privhelpers.stats._estimates import Estimate
from privhelpers.stats._proportions import clopper_pearson, two_proportion


@dataclass(frozen=True)
class Equivalence:
    """The outcome of two one-sided tests.

    Attributes:
        difference: estimate minus the null value.
        low, high: its interval of level 1 - 2 alpha, the one that must lie inside the margins.
        margin: smallest difference that would matter.
        p_value: of the hypothesis that the true difference is the margin or more, in either direction.
        p_difference: two-sided, of the hypothesis that the true difference is 0. Like the other it is 1
            where nothing varied.
        alpha: error allowed to each of the tests.
    """

    difference: float
    low: float
    high: float
    margin: float
    p_value: float
    p_difference: float
    alpha: float

    @property
    def equivalent(self) -> bool:
        """Whether every difference of the margin or more is refuted."""
        return self.p_value < self.alpha

    @property
    def different(self) -> bool:
        """Whether a difference of 0 is refuted; may be true of an equivalent pair."""
        return self.p_difference < self.alpha

    @property
    def verdict(self) -> str:
        """The two answers as one of four phrases."""
        if self.equivalent:
            return "different, below the margin" if self.different else "equivalent"
        return "different" if self.different else "undecided"


def tost(estimate: Estimate, *, margin: float, null: float = 0.0, alpha: float = 0.05) -> Equivalence:
    """Test that an estimate differs from `null` by less than a margin.

    Args:
        estimate: with its (clustered) standard error.
        margin: smallest difference that would matter, greater than 0, chosen before the data were seen.
        null: value of no difference: 0, or 0.5 for an area under the ROC curve.
        alpha: error allowed, in (0, 1).

    Raises:
        InvalidParameter: the margin is not a number greater than 0, or alpha is outside (0, 1).

    Source: Schuirmann, Journal of Pharmacokinetics and Biopharmaceutics 15 (1987).
    """
    margin = validate.positive(margin=margin)
    alpha = validate.open_unit(alpha=alpha)
    if not isinstance(estimate, Estimate):
        raise InvalidParameter(f"estimate = {validate.shown(estimate)}: must be an `Estimate`")
    null = float(checks.vector("null", [null])[0])
    difference, error = estimate.value - null, estimate.standard_error
    room = margin - abs(difference)  # to the nearer margin, whose test has the larger p-value
    # Where nothing varied, the data do not say how far the truth may lie from them: nothing is refuted.
    p_value = float(t.sf(room / error, estimate.degrees)) if error > 0 else 1.0
    reach = float(t.isf(alpha, estimate.degrees)) * error
    return Equivalence(
        difference,
        difference - reach,
        difference + reach,
        float(margin),
        p_value,
        estimate.p_value(null),
        alpha,
    )


def tost_rates(
    successes_a: int, n_a: int, successes_b: int, n_b: int, *, margin: float, alpha: float = 0.05
) -> Equivalence:
    """Test that two rates of independent units, such as patients, differ by less than a margin.

    An exact limit of one rate and of the other hold together with 1 - alpha, and so does their difference:
    equivalence is declared wrongly with at most alpha, whatever the units and rates (by enumeration with at
    most 0.52 alpha, for arms of 5 to 400). The p-value is the least alpha at which the interval lies between
    the margins. `p_difference` is Fisher's.

    Args:
        successes_a, successes_b: units with the outcome in each arm.
        n_a, n_b: units in each arm, 1 or more.
        margin: smallest difference of rates that would matter, in (0, 1).
        alpha: error allowed, in (0, 1).

    Raises:
        InvalidParameter: successes exceed units, or the margin or alpha is outside (0, 1).

    Source: Clopper and Pearson 1934 (the limits).

    >>> tost_rates(0, 200, 0, 200, margin=0.05).verdict, tost_rates(0, 20, 0, 20, margin=0.05).verdict
    ('equivalent', 'undecided')
    """
    margin, alpha = validate.open_unit(margin=margin), validate.open_unit(alpha=alpha)
    test = two_proportion(successes_a, n_a, successes_b, n_b)

    def ends(error: float) -> tuple[float, float]:
        level = 2 * math.sqrt(1 - error) - 1  # each limit holds with the root of 1 - error
        a, b = (clopper_pearson(*arm, level=level) for arm in ((successes_a, n_a), (successes_b, n_b)))
        return a.low - b.high, a.high - b.low

    def beyond(error: float) -> float:
        low, high = ends(error)
        return max(-low, high) - margin

    least, most = 1e-12, 0.75 - 1e-9
    p_value = 1.0
    if beyond(most) < 0:
        p_value = least if beyond(least) <= 0 else brentq(beyond, least, most)
    return Equivalence(
        test.difference, *ends(min(max(alpha, least), most)), margin, float(p_value), test.fisher_p, alpha
    )
