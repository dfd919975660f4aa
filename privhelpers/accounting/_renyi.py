"""Rényi accounting by hand: one step of the Poisson-subsampled Gaussian, many steps, one epsilon.

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

from privhelpers import validate
from privhelpers.accounting._moments import SampledGaussianMoments
from privhelpers.errors import InvalidParameter

# Dense low orders for small noise, a geometric tail for large noise: the best order grows with sigma.
RDP_ORDERS = tuple(
    [1 + x / 20 for x in range(1, 200)] + [float(x) for x in range(11, 64)] + [2.0**k for k in range(6, 14)]
)
LARGEST_NOISE = 1e100
LARGEST_ORDER = 1_000_000  # of a sampled Gaussian
CONVERSIONS = ("improved", "classic")
_SMALLEST_ORDER = 1.01  # the conversion divides by order - 1 and is of no use closer to 1


@dataclass(frozen=True)
class RenyiBound:
    """The epsilon of a curve of Rényi divergences at one delta.

    Attributes:
        epsilon: smallest over the orders, in nats.
        order: the one that gave it; at the first or last of the list, a longer list may give less.
    """

    epsilon: float
    order: float


def check_noise(noise_multiplier: float) -> float:
    """Return a noise multiplier, and refuse one that is not positive or whose square is beyond a float64."""
    noise_multiplier = validate.positive(noise_multiplier=noise_multiplier)
    if not 1 / LARGEST_NOISE <= noise_multiplier <= LARGEST_NOISE:
        raise InvalidParameter(
            f"noise_multiplier = {noise_multiplier!r}: must be in [{1 / LARGEST_NOISE:g}, {LARGEST_NOISE:g}]"
        )
    return noise_multiplier


def _numbers(values: Sequence[float]) -> NDArray[np.float64]:
    """Return numbers as an array; an empty one for texts, truths and rows of several lengths."""
    try:
        given = np.asarray(values)
        if given.dtype.kind == "O" and all(type(value) in (int, float) for value in given.flat):
            given = given.astype(float)  # numpy stores whole numbers of more than 64 bits as objects
    except (ValueError, OverflowError):
        return np.zeros(0)
    return given.astype(float) if given.dtype.kind in "iuf" else np.zeros(0)


def check_orders(orders: Sequence[float]) -> NDArray[np.float64]:
    """Return the orders as an array, or refuse what is not a row of finite numbers above 1."""
    array = _numbers(orders)
    if array.ndim != 1 or not array.size or not np.all(np.isfinite(array) & (array > 1)):
        raise InvalidParameter(
            f"orders = {validate.shown(orders)}: must be at least one number above 1 within a float64"
        )
    return array


def check_divergences(rdp: Sequence[float], orders: Sequence[float]) -> NDArray[np.float64]:
    """Return a divergence for each order as an array, or refuse other values."""
    spent, size = _numbers(rdp), len(orders)
    if spent.shape != (size,) or not np.all(spent >= 0):
        raise InvalidParameter(f"rdp: must be {size} numbers of 0 or more, one for each order")
    return spent


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
        Divergences in nats, shape [orders]; infinite if they exceed a float64.

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Mironov 2017, proposition 7 (Gaussian) and proposition 1 (composition); Mironov, Talwar and
    Zhang 2019, section 3.3 (sampled Gaussian).
    """
    noise_multiplier = check_noise(noise_multiplier)
    sample_rate = validate.probability(sample_rate=sample_rate)
    steps = validate.positive_int(steps=steps)
    alpha = check_orders(orders)
    if sample_rate < 1 and alpha.max() > LARGEST_ORDER:
        raise InvalidParameter(
            f"orders: {alpha.max():g} is above {LARGEST_ORDER:,}, and a sampled Gaussian has a term for each "
            "whole number up to its order; leave it out"
        )
    return steps * SampledGaussianMoments(alpha, sample_rate=sample_rate)(noise_multiplier) / (alpha - 1)


def conversion_costs(orders: NDArray, *, delta: float, conversion: str = "improved") -> NDArray[np.float64]:
    """Return what each order adds to its divergence to make an epsilon; the values are checked by the caller.

    Args:
        orders: above 1, shape [orders].
        delta: in (0, 1).
        conversion: "improved" or "classic".

    Source: as `rdp_to_epsilon`.
    """
    costs = -math.log(delta) / (orders - 1)
    if conversion == "improved":
        costs = costs + np.log1p(-1 / orders) - np.log(orders) / (orders - 1)
    return np.where(orders < _SMALLEST_ORDER, np.inf, costs)


def with_costs(spent: NDArray, costs: NDArray, *, delta: float) -> NDArray[np.float64]:
    """Return the epsilon of each order, 0 if its divergence alone bounds the total variation by delta.

    Total variation is at most sqrt(1 - e^-R), at every order.
    """
    return np.where(np.expm1(-spent) > -(delta**2), 0.0, np.maximum(spent + costs, 0.0))


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
    proposition 12 (improved).
    """
    delta = validate.delta(delta)
    alpha, spent = check_orders(orders), check_divergences(rdp, orders)
    validate.one_of(CONVERSIONS, conversion=conversion)
    costs = conversion_costs(alpha, delta=delta, conversion=conversion)
    bounds = with_costs(spent, costs, delta=delta) if conversion == "improved" else spent + costs
    best = int(np.argmin(bounds))
    return RenyiBound(max(0.0, float(bounds[best])), float(alpha[best]))
