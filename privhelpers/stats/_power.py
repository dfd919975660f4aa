"""What an experiment that is done could have seen."""

import math

from scipy.stats import norm

from privhelpers import validate
from privhelpers.stats import _checks


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
    """Return the smallest true area under the ROC curve that is told from one half.

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
    """Return the smallest true rate that is told from a control rate, with so many units in each arm.

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
    units, control = validate.positive_int(units=units), float(_checks.rates("control", control))
    reach = _reach(power, validate.open_unit(alpha=alpha) / 2) * math.sqrt(1 / units + 1 / other)
    angle = math.asin(math.sqrt(control)) + reach / 2
    return 1.0 if angle >= math.pi / 2 else math.sin(angle) ** 2
