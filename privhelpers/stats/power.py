"""How many patients a claim needs, and what an experiment that is done could have seen.

>>> patients_for_rates(0.05, 0.01)
250
>>> patients_for_rates(0.05, 0.01, per_patient=4, icc=0.5)
157
"""

import math

from scipy.optimize import brentq
from scipy.stats import norm
from statsmodels.stats.power import NormalIndPower
from statsmodels.stats.proportion import proportion_effectsize

from privhelpers import validate
from privhelpers.errors import InvalidParameter
from privhelpers.stats import checks
from privhelpers.stats.dependence import kish_design_effect

AREA_SPREAD = math.sqrt(1 / 12)  # of a placement where nothing leaks: uniform on [0, 1]


def _reach(power: float, tail: float) -> float:
    return float(norm.isf(tail) + norm.ppf(checks.open_unit("power", power)))


def _patients(observations: float, per_patient: float, icc: float) -> int:
    """Return how many patients give as much as so many independent observations, 2 at the least."""
    effect = kish_design_effect(per_patient, icc=icc)
    return max(2, math.ceil(observations * effect / per_patient - 1e-9))


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
    validate.non_negative(standard_error=standard_error)
    return _reach(power, checks.open_unit("alpha", alpha) / 2) * standard_error


def detectable_rate(units: int, *, control: float = 0.0, power: float = 0.8, alpha: float = 0.05) -> float:
    """Return the smallest true rate that is told from a control rate, with so many units in each arm.

    Args:
        units: independent units in each arm, such as patients; 1 or more.
        control: true rate of the control arm, in [0, 1).
        power: wanted, in (0, 1).
        alpha: two-sided error, in (0, 1).

    Raises:
        InvalidParameter: a value is outside its range.

    Source: Cohen (1988), section 6.3.

    >>> round(detectable_rate(224), 4)
    0.0174
    """
    units, control = checks.count("units", units, low=1), float(checks.rates("control", control))
    reach = _reach(power, checks.open_unit("alpha", alpha) / 2) * math.sqrt(2 / units)
    angle = math.asin(math.sqrt(control)) + reach / 2
    return 1.0 if angle >= math.pi / 2 else math.sin(angle) ** 2


def patients_for_rates(
    rate_a: float,
    rate_b: float,
    *,
    power: float = 0.8,
    alpha: float = 0.05,
    per_patient: float = 1,
    icc: float = 0.0,
) -> int:
    """Return how many patients in each arm tell two rates apart.

    Args:
        rate_a, rate_b: the true rates, in [0, 1], different.
        power: probability of finding the difference, in (0, 1), above `alpha`.
        alpha: two-sided error, in (0, 1).
        per_patient: observations of each patient, 1 or more.
        icc: their intraclass correlation, in [0, 1].

    Raises:
        InvalidParameter: the rates are equal, or a value is outside its range.

    Source: Cohen, Statistical Power Analysis (2nd ed., 1988), section 6.4; the design effect of Kish.
    """
    first, second = (float(checks.rates(name, r)) for name, r in (("rate_a", rate_a), ("rate_b", rate_b)))
    if first == second:
        raise InvalidParameter(f"rate_a and rate_b = {rate_a!r}: must differ, no sample finds no difference")
    if not checks.open_unit("alpha", alpha) < checks.open_unit("power", power):
        raise InvalidParameter(f"power = {power!r}: must be above alpha = {alpha!r}")
    size = abs(proportion_effectsize(first, second))
    # The library returns the size of the first arm; both are equal.
    single = NormalIndPower().solve_power(effect_size=size, alpha=alpha, power=power, ratio=1.0)
    return _patients(float(single), per_patient, icc)


def _hanley_mcneil(area: float, size: float) -> float:
    """Return the variance of an area between two arms of `size` independent scores."""
    first, second = area / (2 - area), 2 * area**2 / (1 + area)
    spread = (size - 1) * (first + second - 2 * area**2)
    return (area * (1 - area) + spread) / size**2


def patients_for_auc(
    area: float, *, power: float = 0.8, alpha: float = 0.05, per_patient: float = 1, icc: float = 0.0
) -> int:
    """Return how many patients in each arm tell an attack's area under the ROC curve from one half.

    Args:
        area: the true area, in (0.5, 1).
        power: probability of finding it, in (0, 1).
        alpha: two-sided error, in (0, 1).
        per_patient: notes of each patient, 1 or more.
        icc: intraclass correlation of their scores, in [0, 1].

    Raises:
        InvalidParameter: a value is outside its range.

    Source: Hanley and McNeil, Radiology 143 (1982), for the variance; the design effect of Kish.
    """
    area, alpha = checks.open_unit("area", area), checks.open_unit("alpha", alpha)
    if area <= 0.5:
        raise InvalidParameter(f"area = {area!r}: must be above 0.5, where nothing leaks")
    miss, found = float(norm.isf(alpha / 2)), float(norm.ppf(checks.open_unit("power", power)))

    def short(size: float) -> float:
        null, true = (math.sqrt(_hanley_mcneil(a, size)) for a in (0.5, area))
        return miss * null + found * true - (area - 0.5)

    enough = 2.0
    while short(enough) > 0:
        enough *= 2
    single = enough if enough == 2.0 else brentq(short, enough / 2, enough)
    return _patients(float(single), per_patient, icc)


def patients_for_equivalence(
    margin: float,
    *,
    spread: float,
    power: float = 0.8,
    alpha: float = 0.05,
    per_patient: float = 1,
    icc: float = 0.0,
) -> int:
    """Return how many patients in each arm show that two arms differ by less than a margin.

    The truth is taken to be no difference at all; if there is one, more patients are needed.

    Args:
        margin: smallest difference that would matter, greater than 0.
        spread: standard deviation of one observation: sqrt(p (1 - p)) for a rate p, `AREA_SPREAD` for an
            area under the ROC curve near one half.
        power: probability that both one-sided tests reject, in (0, 1).
        alpha: error of each, in (0, 1).
        per_patient: observations of each patient, 1 or more.
        icc: their intraclass correlation, in [0, 1].

    Raises:
        InvalidParameter: a value is outside its range.

    Source: Julious, Statistics in Medicine 23 (2004), section 5.

    >>> patients_for_equivalence(0.05, spread=AREA_SPREAD)
    571
    """
    validate.positive(margin=margin, spread=spread)
    both = 1 - (1 - checks.open_unit("power", power)) / 2  # the misses of two tests add up
    reach = _reach(both, checks.open_unit("alpha", alpha))
    return _patients(2 * (spread * reach / margin) ** 2, per_patient, icc)
