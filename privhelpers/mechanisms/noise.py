"""Continuous noise: how much a guarantee needs, and the mechanisms that add it.

The real-valued mechanisms here carry the proofs of the textbook. On a computer their outputs are
floating-point numbers, which leak (see `floating`); `grid` holds the mechanisms to release with.

>>> laplace_scale(sensitivity=1, epsilon=0.5)
2.0
>>> round(classic_gaussian_sigma(sensitivity=1, epsilon=1, delta=1e-5), 3)
4.845
>>> round(gaussian_sigma(sensitivity=1, epsilon=1, delta=1e-5), 3)
3.731
"""

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import stats
from scipy.optimize import brentq

from privhelpers import validate
from privhelpers.errors import InvalidParameter
from privhelpers.mechanisms import checks
from privhelpers.mechanisms.tradeoff import log_gdp_delta


def laplace_scale(*, sensitivity: float, epsilon: float) -> float:
    """Return the scale b of the Laplace noise that gives epsilon-DP; its variance is 2 b squared.

    Args:
        sensitivity: L1 sensitivity of the query, greater than 0, in the unit of its answer.
        epsilon: greater than 0.

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Dwork, McSherry, Nissim and Smith 2006, section 3; Dwork and Roth 2014, theorem 3.6.
    """
    validate.positive(sensitivity=sensitivity, epsilon=epsilon)
    return sensitivity / epsilon


def laplace_mechanism(
    answer: ArrayLike, *, sensitivity: float, epsilon: float, generator: np.random.Generator
) -> float | NDArray[np.float64]:
    """Return the answer, or each coordinate of it, plus Laplace noise.

    Args:
        answer: number or array; for an array the sensitivity is that of the whole in the L1 norm.
        sensitivity, epsilon: as in `laplace_scale`.
        generator: source of chance.

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Dwork and Roth 2014, definition 3.3.
    """
    scale = laplace_scale(sensitivity=sensitivity, epsilon=epsilon)
    return checks.plain(np.asarray(answer) + generator.laplace(scale=scale, size=np.shape(answer)))


def classic_gaussian_sigma(*, sensitivity: float, epsilon: float, delta: float) -> float:
    """Return sensitivity * sqrt(2 ln(1.25 / delta)) / epsilon, for epsilon up to 1 only.

    The chapter proves it for epsilon up to 1 and delta up to 1/2; a test holds it against the exact curve
    for larger deltas too. For larger epsilons it ends by giving too little noise (at delta 1e-5 from 8.42
    on), so they are refused: `gaussian_sigma` has no such limit.

    Args:
        sensitivity: L2 sensitivity of the query, greater than 0.
        epsilon: in (0, 1].
        delta: in (0, 1).

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Dwork and Roth 2014, appendix A, theorem A.1.
    """
    validate.positive(sensitivity=sensitivity, epsilon=epsilon)
    validate.delta(delta)
    if epsilon > 1:
        raise InvalidParameter(
            f"epsilon = {epsilon!r}: the classic formula is proved in (0, 1] only; use gaussian_sigma"
        )
    return sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def gaussian_sigma(*, sensitivity: float, epsilon: float, delta: float) -> float:
    """Return the smallest standard deviation of Gaussian noise that gives (epsilon, delta)-DP.

    The returned value was put back into the exact curve and does not exceed delta there.

    Args:
        sensitivity: L2 sensitivity of the query, greater than 0.
        epsilon: greater than 0.
        delta: in (0, 1).

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Balle and Wang 2018, theorem 8 and algorithm 1.
    """
    validate.positive(sensitivity=sensitivity, epsilon=epsilon)
    validate.delta(delta)
    tail = -stats.norm.ppf(delta)
    # The first half of the exact curve alone bounds it, and can be inverted by hand: a safe start.
    root = math.hypot(tail, math.sqrt(2 * epsilon))
    safe = 2 * epsilon / (tail + root) if tail > 0 else root - tail

    def excess(mu: float) -> float:
        return log_gdp_delta(mu, epsilon) - math.log(delta)

    unsafe = 2 * safe
    while excess(unsafe) <= 0:
        unsafe *= 2
    mu = brentq(excess, safe, unsafe, xtol=1e-14 * safe, rtol=1e-14) if excess(safe) < 0 else safe
    while excess(mu) > 0:
        mu *= 1 - 1e-12
    return sensitivity / mu


def gaussian_mechanism(
    answer: ArrayLike, *, sensitivity: float, epsilon: float, delta: float, generator: np.random.Generator
) -> float | NDArray[np.float64]:
    """Return the answer, or each coordinate of it, plus Gaussian noise of the analytic calibration.

    Args:
        answer: number or array; for an array the sensitivity is that of the whole in the L2 norm.
        sensitivity, epsilon, delta: as in `gaussian_sigma`.
        generator: source of chance.

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Balle and Wang 2018, section 3.
    """
    sigma = gaussian_sigma(sensitivity=sensitivity, epsilon=epsilon, delta=delta)
    return checks.plain(np.asarray(answer) + generator.normal(scale=sigma, size=np.shape(answer)))
