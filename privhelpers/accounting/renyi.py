"""Rényi accounting by hand: one step of the Poisson-subsampled Gaussian, many steps, one epsilon.

Everything is kept as logarithms: at order 8192 the moment of a single step would overflow a float64.

>>> spent = rdp(noise_multiplier=1.0, sample_rate=1.0, steps=3, orders=[2, 8])
>>> spent.tolist()  # the Gaussian alone: steps * order / (2 sigma^2)
[3.0, 12.0]
>>> rdp_to_epsilon(orders=[2, 8], rdp=spent, delta=1e-5).order
2.0
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, gammasgn, log_ndtr, logsumexp

from privhelpers import validate
from privhelpers.errors import InvalidParameter

# Dense low orders for small noise, a geometric tail for large noise: the best order grows with sigma.
RDP_ORDERS = tuple(
    [1 + x / 20 for x in range(1, 200)] + [float(x) for x in range(11, 64)] + [2.0**k for k in range(6, 14)]
)
CONVERSIONS = ("improved", "classic")
_FIRST_TERMS, _MOST_TERMS = 32, 2048  # of the series of a fractional order
_NEGLIGIBLE = 1e-8  # a term over the divergence: what the series may stay above the truth
_ROUNDING = 1e-15  # of a logarithm that is nearly zero; added, to stay above
_SMALLEST_ORDER = 1.01  # the conversion divides by order - 1 and is of no use closer to 1


@dataclass(frozen=True)
class RenyiBound:
    """What a curve of Rényi divergences says about one delta.

    Attributes:
        epsilon: smallest over the orders, in nats.
        order: the one that gave it; at the first or last of the list, a longer list may give less.
    """

    epsilon: float
    order: float


def check_orders(orders: Sequence[float]) -> NDArray[np.float64]:
    """Return the orders as an array, or refuse what is not a row of finite numbers above 1."""
    array = np.asarray(orders, dtype=float) if np.size(orders) else np.zeros(0)
    if array.ndim != 1 or not array.size or not np.all(np.isfinite(array) & (array > 1)):
        raise InvalidParameter(f"orders = {orders!r}: must be at least one finite number above 1")
    return array


def _log_binomial(order: float | NDArray, k: NDArray) -> tuple[NDArray, NDArray]:
    """Return logarithm and sign of the binomial coefficient, which alternates once k exceeds a real order."""
    logs = gammaln(order + 1) - gammaln(k + 1) - gammaln(order - k + 1)
    return logs, gammasgn(order - k + 1)


def _log_moment_whole(order: int, sigma: float, q: float) -> float:
    """Return log E[ratio^order] for a whole order: 1 plus a sum of terms that are all positive."""
    k = np.arange(2, order + 1)  # the terms 0 and 1 of the binomial sum make the 1
    gain = k * (k - 1) / (2 * sigma**2)
    ways, _ = _log_binomial(float(order), k)
    # log(e^gain - 1), which overflows in the other order
    logs = ways + k * math.log(q) + (order - k) * math.log1p(-q) + gain + np.log(-np.expm1(-gain))
    return float(np.logaddexp(0.0, logsumexp(logs)))


def _series(orders: NDArray, sigma: float, q: float, terms: int) -> tuple[NDArray, NDArray]:
    """Return the logarithm of the sum of the first `terms` terms and that of the last term, each [orders].

    The integral over the noise is cut where both parts of the mixture are equal. Left of the cut the power
    is expanded in the ratio of the two parts, right of it in the inverse ratio.
    """
    cut = sigma**2 * (math.log1p(-q) - math.log(q)) + 0.5
    order, i = orders[:, None], np.arange(terms)[None, :]
    j = order - i
    ways, sign = _log_binomial(order, i)
    left = ways + i * math.log(q) + j * math.log1p(-q) + i * (i - 1) / (2 * sigma**2)
    right = ways + j * math.log(q) + i * math.log1p(-q) + j * (j - 1) / (2 * sigma**2)
    logs = np.concatenate([left + log_ndtr((cut - i) / sigma), right + log_ndtr((j - cut) / sigma)], axis=1)
    total = logsumexp(logs, axis=1, b=np.concatenate([sign, sign], axis=1))
    return total, np.logaddexp(logs[:, terms - 1], logs[:, -1])


def _log_moments_fractional(orders: NDArray, sigma: float, q: float) -> NDArray:
    """Return log E[ratio^order] for each order by its series, with as many terms as each order needs.

    Past the order the terms alternate and shrink: the last one bounds the error and is added, to stay above.
    """
    result, waiting = np.empty(orders.shape), np.arange(orders.size)
    terms = max(_FIRST_TERMS, 2 * math.ceil(orders.max()))
    while waiting.size:
        total, last = _series(orders[waiting], sigma, q, terms)
        result[waiting] = np.logaddexp(total, last) + _ROUNDING
        waiting = waiting[np.exp(last - total) > _NEGLIGIBLE * np.abs(total)] if terms < _MOST_TERMS else []
        waiting, terms = np.asarray(waiting, dtype=int), 2 * terms
    return result


def _log_moments(orders: NDArray, sigma: float, q: float) -> NDArray:
    whole = orders == np.floor(orders)
    logs = np.empty(orders.shape)
    logs[whole] = [_log_moment_whole(int(order), sigma, q) for order in orders[whole]]
    if not whole.all():
        logs[~whole] = _log_moments_fractional(orders[~whole], sigma, q)
    return np.maximum(logs, 0.0)  # a divergence is never negative; rounding can make it so


def rdp(
    *, noise_multiplier: float, sample_rate: float, steps: int, orders: Sequence[float] = RDP_ORDERS
) -> NDArray[np.float64]:
    """Return the Rényi divergence, at each order, that `steps` Poisson-subsampled Gaussian steps spend.

    Add/remove adjacency; the larger of the two directions, which is the one of the data set with the unit.

    Args:
        noise_multiplier: noise standard deviation over the clipping norm, greater than 0.
        sample_rate: probability that a unit takes part in a step, in (0, 1].
        steps: number of steps, 1 or more.
        orders: finite numbers above 1, whole or not; shape [orders].

    Returns:
        Divergences in nats, shape [orders]; infinite where they exceed a float64.

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Mironov 2017, proposition 7 (Gaussian) and proposition 1 (composition); Mironov, Talwar and
    Zhang 2019, section 3.3 (sampled Gaussian). Taught in: 04_renyi_accounting.
    """
    validate.positive(noise_multiplier=noise_multiplier)
    validate.probability(sample_rate=sample_rate)
    validate.positive_int(steps=steps)
    alpha = check_orders(orders)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        if sample_rate == 1:
            one_step = alpha / (2 * noise_multiplier**2)
        else:
            one_step = _log_moments(alpha, noise_multiplier, sample_rate) / (alpha - 1)
    return steps * np.where(np.isnan(one_step), np.inf, one_step)


def rdp_to_epsilon(
    *, orders: Sequence[float], rdp: Sequence[float], delta: float, conversion: str = "improved"
) -> RenyiBound:
    """Return the smallest epsilon that a curve of Rényi divergences implies at `delta`.

    "classic" is R + ln(1/delta) / (order - 1). "improved" is never larger: it also uses that the loss
    beyond epsilon counts only in part, and that a tiny divergence bounds delta by itself.

    Args:
        orders: above 1, shape [orders].
        rdp: divergence at each order, 0 or more and possibly infinite, in nats; shape [orders].
        delta: in (0, 1).
        conversion: "improved" or "classic".

    Raises:
        InvalidParameter: a value is out of its range, or the rows differ in length.

    Source: Mironov 2017, proposition 3 (classic); Balle et al. 2020 and Canonne, Kamath and Steinke 2020,
    proposition 12 (improved). Taught in: 04_renyi_accounting.
    """
    validate.delta(delta)
    alpha, spent = check_orders(orders), np.asarray(rdp, dtype=float)
    if spent.shape != alpha.shape or not np.all(spent >= 0):
        raise InvalidParameter(f"rdp: must be {alpha.size} numbers of 0 or more, one for each order")
    if conversion not in CONVERSIONS:
        raise InvalidParameter(f"conversion = {conversion!r}: must be one of {', '.join(CONVERSIONS)}")
    bounds = spent - math.log(delta) / (alpha - 1)
    if conversion == "improved":
        bounds = bounds + np.log1p(-1 / alpha) - np.log(alpha) / (alpha - 1)
        # Total variation is at most sqrt(1 - e^-R) at every order: that alone may be within delta.
        bounds = np.where(delta**2 + np.expm1(-spent) > 0, 0.0, bounds)
    bounds = np.where(alpha < _SMALLEST_ORDER, np.inf, bounds)
    best = int(np.argmin(bounds))
    return RenyiBound(max(0.0, float(bounds[best])), float(alpha[best]))
