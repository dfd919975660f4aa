"""What an experiment may conclude: equivalence, many tests at once, and what it could have seen.

A large p-value says that an experiment saw nothing. Equivalence says more: differences of the margin or
above are refuted. A small experiment sees nothing and refutes nothing.

>>> from privhelpers.stats._estimates import Estimate
>>> tost(Estimate(0.01, 0.01, 200, 201), margin=0.05).verdict
'equivalent'
>>> tost(Estimate(0.01, 0.05, 200, 201), margin=0.05).verdict
'undecided'
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm, t

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
            if nothing varied.
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
    # If nothing varied, the data do not show how far the truth may be from them: nothing is refuted.
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


def adjust(p_values: Mapping[str, float]) -> dict[str, float]:
    """Return p-values raised by Holm's method, each to be compared with 5% whatever the number of tests.

    The probability of any false alarm stays at 5% under every dependence between the tests, as by
    Bonferroni's method, which never raises a p-value by less.

    Args:
        p_values: by name, each in [0, 1]; one or more.

    Raises:
        InvalidParameter: there is no p-value, or one is outside [0, 1].

    Source: Holm, Scandinavian Journal of Statistics 6 (1979).

    >>> {name: round(p, 3) for name, p in adjust({"a": 0.01, "b": 0.04, "c": 0.03}).items()}
    {'a': 0.03, 'b': 0.06, 'c': 0.06}
    """
    if not isinstance(p_values, Mapping) or not p_values:
        raise InvalidParameter(f"p_values = {validate.shown(p_values)}: give one or more, by name")
    values = checks.rates("p_values", list(p_values.values()))
    order = np.argsort(values)
    adjusted = np.empty_like(values)
    adjusted[order] = np.maximum.accumulate(values[order] * np.arange(values.size, 0, -1))
    return dict(zip(p_values, np.minimum(adjusted, 1).tolist(), strict=True))


def _reach(power: float, tail: float) -> float:
    return float(norm.isf(tail) + norm.ppf(validate.open_unit(power=power)))


def detectable(standard_error: float, *, power: float = 0.8, alpha: float = 0.05) -> float:
    """Return the smallest true difference that an experiment finds with probability `power`.

    Args:
        standard_error: of the difference, as the experiment had it (clustered), 0 or more.
        power: wanted, in (0, 1).
        alpha: two-sided error, in (0, 1).

    Raises:
        InvalidParameter: a value is outside its range.

    >>> round(detectable(0.01), 4)
    0.028
    """
    standard_error = validate.non_negative(standard_error=standard_error)
    return _reach(power, validate.open_unit(alpha=alpha) / 2) * standard_error


def detectable_auc(members: int, nonmembers: int, *, power: float = 0.8, alpha: float = 0.05) -> float:
    """Return the smallest true area under the ROC curve that can be distinguished from one half.

    Args:
        members, nonmembers: independent units of each arm, such as patients; 1 or more.
        power: wanted, in (0, 1).
        alpha: two-sided error, in (0, 1).

    Source: the Mann-Whitney variance without ties.

    >>> round(detectable_auc(224, 224), 3)
    0.577
    """
    members, nonmembers = validate.positive_int(members=members, nonmembers=nonmembers)
    spread = math.sqrt((members + nonmembers + 1) / (12 * members * nonmembers))
    return min(1.0, 0.5 + _reach(power, validate.open_unit(alpha=alpha) / 2) * spread)


def detectable_rate(
    units: int,
    *,
    control: float = 0.0,
    control_units: int | None = None,
    power: float = 0.8,
    alpha: float = 0.05,
) -> float:
    """Return the smallest true rate that can be distinguished from a control rate, with so many units an arm.

    Args:
        units: independent units in the arm, such as patients; 1 or more.
        control: true rate of the control arm, in [0, 1).
        control_units: of the control arm; by default as many as in the other.
        power: wanted, in (0, 1).
        alpha: two-sided error, in (0, 1).

    Raises:
        InvalidParameter: a value is outside its range.

    Source: Cohen (1988), section 6.3.

    >>> round(detectable_rate(224), 4)
    0.0174
    """
    other = validate.positive_int(control_units=units if control_units is None else control_units)
    units, control = validate.positive_int(units=units), float(checks.rates("control", control))
    reach = _reach(power, validate.open_unit(alpha=alpha) / 2) * math.sqrt(1 / units + 1 / other)
    angle = math.asin(math.sqrt(control)) + reach / 2
    return 1.0 if angle >= math.pi / 2 else math.sin(angle) ** 2
