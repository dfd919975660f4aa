"""Differential privacy read as a limit on tests: what an attacker can gain at most.

The attacker tests "the unit was not in the data" (null) against "it was". FPR is the share of
non-members called members, TPR the share of members called members, FNR = 1 - TPR.

>>> round(largest_tpr(fpr=0.01, epsilon=1, delta=1e-5), 6)
0.027193
>>> round(gdp_epsilon(mu=1, delta=1e-5), 3)
4.377
>>> round(gaussian_sigma(sensitivity=1, epsilon=1, delta=1e-5), 3)
3.731
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import erfcx, log_ndtr, ndtr, ndtri

from privhelpers import validate
from privhelpers.mechanisms import _checks

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)
_ROUNDING = 1e-10  # relative: more than a delta of the exact curve is rounded by


def dp_tradeoff(fpr: ArrayLike, *, epsilon: float, delta: float = 0.0) -> float | NDArray[np.float64]:
    """Return the smallest FNR that any test can have at each FPR against an (epsilon, delta)-DP output.

    Args:
        fpr: number or array, in [0, 1].
        epsilon: 0 or more.
        delta: in [0, 1).

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Wasserman and Zhou 2010, theorem 2.4; Kairouz, Oh and Viswanath 2015, theorem 2.1; Dong, Roth and
    Su 2022, proposition 2.5.
    """
    epsilon, delta = validate.guarantee(epsilon, delta)
    _checks.unit_interval(fpr=fpr)
    alpha = np.asarray(fpr, dtype=float)
    with np.errstate(divide="ignore", over="ignore"):  # log 0 and e^large have the right limits here
        steep = 1 - delta - np.exp(epsilon + np.log(alpha))
    flat = math.exp(-epsilon) * (1 - delta - alpha)
    return _checks.plain(np.maximum(0.0, np.maximum(steep, flat)))


def gdp_tradeoff(fpr: ArrayLike, *, mu: float) -> float | NDArray[np.float64]:
    """Return the smallest FNR at each FPR when telling N(0, 1) from N(mu, 1).

    Args:
        fpr: number or array, in [0, 1].
        mu: sensitivity over noise standard deviation of one Gaussian release, 0 or more.

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Dong, Roth and Su 2022, section 2.2.
    """
    mu = validate.non_negative(mu=mu)
    _checks.unit_interval(fpr=fpr)
    return _checks.plain(ndtr(-ndtri(np.asarray(fpr, dtype=float)) - mu))


def _log_gdp_delta(mu: float, epsilon: float) -> float:
    """Return the logarithm of `gdp_delta`, which stays exact if delta itself underflows."""
    if mu / math.sqrt(8) == 0:  # delta underflows
        return -math.inf
    if epsilon == 0:
        return math.log(math.erf(mu / math.sqrt(8)))
    near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
    if mu < 0.5 and near < 40:
        # Both parts nearly cancel; over the density at `near` they are Mills ratios M, and M' = x M - 1.
        between = (near + far) / 2 + mu / 2 * _NODES
        falls = 1 - between * math.sqrt(math.pi / 2) * erfcx(between / math.sqrt(2))
        most = mu / math.sqrt(8 * math.pi) * float(_WEIGHTS @ falls)
        return math.log(max(most, 5e-324)) - near * near / 2
    mine = float(log_ndtr(-near))
    neighbors = math.log(max(float(erfcx(far / math.sqrt(2))) / 2, 5e-324)) - near * near / 2
    return mine + math.log(-math.expm1(neighbors - mine)) if neighbors < mine else -math.inf


def gdp_delta(*, mu: float, epsilon: float) -> float:
    """Return the delta at which a mu-GDP mechanism is (epsilon, delta)-DP; exact for the Gaussian mechanism.

    Args:
        mu: 0 or more.
        epsilon: 0 or more.

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Dong, Roth and Su 2022, corollary 2.13; Balle and Wang 2018, theorem 8.
    """
    mu, epsilon = validate.non_negative(mu=mu, epsilon=epsilon)
    return math.exp(_log_gdp_delta(mu, epsilon))


def gdp_epsilon(*, mu: float, delta: float) -> float:
    """Return the smallest epsilon at which a mu-GDP mechanism is (epsilon, delta)-DP.

    Args:
        mu: 0 or more.
        delta: in (0, 1).

    Returns:
        Nats; infinite if it exceeds a float64.

    Raises:
        InvalidParameter: a value is out of its range.

    Source: the inverse of `gdp_delta` in epsilon.
    """
    mu = validate.non_negative(mu=mu)
    delta = validate.delta(delta)

    def excess(epsilon: float) -> float:
        # A floor keeps the root finder finite beyond the curve's last floating-point number.
        return max(_log_gdp_delta(mu, epsilon), -1e6) - math.log(delta) + _ROUNDING

    if excess(0.0) <= 0:
        return 0.0
    # The first half of the curve alone reaches delta here, so the whole is at or below it, but for rounding.
    enough = mu * mu / 2 - mu * float(ndtri(delta))
    if not math.isfinite(enough):
        return math.inf
    enough = max(enough, 1e-12 * mu)
    while excess(enough) > 0:
        enough *= 2
    root, step = brentq(excess, 0.0, enough, xtol=1e-14 * enough, rtol=1e-14), 1e-12
    while excess(root) > 0:
        root, step = root + step * max(mu, root), 2 * step
    return root


@validate.within_float64
def gaussian_sigma(*, sensitivity: float, epsilon: float, delta: float) -> float:
    """Return the smallest standard deviation of Gaussian noise that gives (epsilon, delta)-DP.

    The returned value was put back into the exact curve and does not exceed delta there; 1e-10 of delta is
    kept back for what that curve is rounded by.

    Args:
        sensitivity: L2 sensitivity of the query, greater than 0.
        epsilon: greater than 0.
        delta: in (0, 1).

    Raises:
        InvalidParameter: a value is out of its range, or the result is beyond a float64.

    Source: Balle and Wang 2018, theorem 8 and algorithm 1.
    """
    sensitivity, epsilon = validate.positive(sensitivity=sensitivity, epsilon=epsilon)
    delta = validate.delta(delta)
    tail = -float(ndtri(delta))
    # The first half of the exact curve alone bounds it, and can be inverted by hand: a safe start.
    root = math.hypot(tail, math.sqrt(2 * epsilon))
    safe = 2 * epsilon / (tail + root) if tail > 0 else root - tail
    if not 1e-307 < safe < 1e150:  # no search can start from it
        raise ArithmeticError("a privacy loss beyond float64")

    def excess(mu: float) -> float:
        return _log_gdp_delta(mu, epsilon) - math.log(delta) + _ROUNDING

    unsafe = 2 * safe
    while excess(unsafe) <= 0:
        unsafe *= 2
    while excess(safe) > 0:
        safe /= 2
    mu, step = brentq(excess, safe, unsafe, xtol=1e-14 * safe, rtol=1e-14), 1e-12
    while excess(mu) > 0:
        mu, step = mu * (1 - step), 2 * step
    if not 0 < sensitivity / mu < math.inf:
        raise ArithmeticError("noise beyond float64")
    return sensitivity / mu


def largest_tpr(*, fpr: ArrayLike, epsilon: float, delta: float = 0.0) -> float | NDArray[np.float64]:
    """Return the largest TPR that any test can have at each FPR.

    Args:
        fpr, epsilon, delta: as in `dp_tradeoff`.

    Raises:
        InvalidParameter: a value is out of its range.

    Source: as `dp_tradeoff`.
    """
    return 1 - dp_tradeoff(fpr, epsilon=epsilon, delta=delta)


def smallest_fpr(*, tpr: ArrayLike, epsilon: float, delta: float = 0.0) -> float | NDArray[np.float64]:
    """Return the smallest FPR that a test of this TPR must have: the price of catching every member.

    Args:
        tpr: number or array, in [0, 1].
        epsilon, delta: as in `dp_tradeoff`.

    Raises:
        InvalidParameter: a value is out of its range.

    Source: the trade-off function of (epsilon, delta)-DP is its own inverse.
    """
    _checks.unit_interval(tpr=tpr)
    return dp_tradeoff(1 - np.asarray(tpr, dtype=float), epsilon=epsilon, delta=delta)


def largest_advantage(*, epsilon: float, delta: float = 0.0) -> float:
    """Return the largest TPR - FPR, (e^epsilon - 1 + 2 delta) / (e^epsilon + 1).

    Args:
        epsilon: 0 or more.
        delta: in [0, 1).

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Kairouz, Oh and Viswanath 2015, theorem 2.1; Humphries et al. 2023.
    """
    epsilon, delta = validate.guarantee(epsilon, delta)
    half = math.tanh(epsilon / 2)
    return half + delta * (1 - half)


def largest_auc(*, epsilon: float, delta: float = 0.0) -> float:
    """Return the largest area under the ROC curve of any attack, 1 - (1 - delta)^2 / (1 + e^epsilon).

    Args:
        epsilon: 0 or more.
        delta: in [0, 1).

    Raises:
        InvalidParameter: a value is out of its range.

    Source: the area under the curve of `dp_tradeoff`, which is a polygon.
    """
    epsilon, delta = validate.guarantee(epsilon, delta)
    return 1 - (1 - delta) ** 2 * (1 - math.tanh(epsilon / 2)) / 2
