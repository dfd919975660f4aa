"""The accountant that the PrivAI-Leak report prints, kept to be refuted: it is not an upper bound.

It takes q^2 times the divergence of the plain Gaussian for the subsampled one's. The factor is the
leading term of a series for a small rate and much noise; everything that it leaves out is positive.
"""

import math

import numpy as np
from numpy.typing import NDArray

from privhelpers import validate
from privhelpers.accounting._bounds import check_run
from privhelpers.accounting._renyi import check_noise, rdp_to_epsilon

PRINTED_ORDERS = tuple([1 + x / 10 for x in range(1, 100)] + [float(x) for x in range(12, 65)])
SEARCHED = (0.1, 50.0)  # noise multipliers between which it looks
TOLERANCE = 0.05  # of its epsilon, in nats, on either side of the target


def _printed_rdp(*, noise_multiplier: float, sample_rate: float, steps: int) -> NDArray[np.float64]:
    """Return what the report takes for the Rényi divergence, at each of `PRINTED_ORDERS`.

    Args:
        noise_multiplier, sample_rate, steps: as in `accounting.epsilon`.

    Raises:
        InvalidParameter: a value is out of its range.
    """
    run = check_run(noise_multiplier=noise_multiplier, sample_rate=sample_rate, steps=steps, delta=0.5)
    noise_multiplier, sample_rate, steps, _ = run.values()
    orders = np.array(PRINTED_ORDERS)
    plain = orders / (2 * noise_multiplier**2)
    factor = np.where(orders <= 1 / sample_rate, sample_rate**2, min(1.0, 1.5 * sample_rate))
    return steps * factor * plain


def printed_epsilon(*, noise_multiplier: float, sample_rate: float, steps: int, delta: float) -> float:
    """Return the epsilon that the report's accountant prints; compare it with `accounting.epsilon`.

    Args:
        noise_multiplier, sample_rate, steps, delta: as in `accounting.epsilon`.

    Raises:
        InvalidParameter: a value is out of its range.
    """
    curve = _printed_rdp(noise_multiplier=noise_multiplier, sample_rate=sample_rate, steps=steps)
    return rdp_to_epsilon(orders=PRINTED_ORDERS, rdp=curve, delta=delta, conversion="classic").epsilon


def printed_calibration(*, target_epsilon: float, sample_rate: float, steps: int, delta: float) -> float:
    """Return the noise multiplier that the report's search ends with, before its clamps.

    The search stops within `TOLERANCE` on either side of the target, halves its bracket once more, and
    returns the middle of what is left: a value that was never tried.

    Args:
        target_epsilon: greater than 0.
        sample_rate, steps, delta: as in `accounting.epsilon`.

    Raises:
        InvalidParameter: a value is out of its range.
    """
    target_epsilon = validate.positive(target_epsilon=target_epsilon)
    low, high = SEARCHED
    for _ in range(50):
        sigma = (low + high) / 2
        spent = printed_epsilon(noise_multiplier=sigma, sample_rate=sample_rate, steps=steps, delta=delta)
        low, high = (low, sigma) if spent < target_epsilon else (sigma, high)
        if abs(spent - target_epsilon) < TOLERANCE:
            break
    return (low + high) / 2


def clamped(sigma: float, *, target_epsilon: float) -> float:
    """Return the noise multiplier after the report's clamps, which lower what the budget asked for.

    Args:
        sigma: result of the search, greater than 0.
        target_epsilon: greater than 0; decides the cap.

    Raises:
        InvalidParameter: a value is out of its range.
    """
    sigma, target_epsilon = validate.positive(sigma=sigma, target_epsilon=target_epsilon)
    cap = 5.0 if target_epsilon <= 1 else 3.0 if target_epsilon <= 5 else 2.0
    return max(min(sigma, cap), 0.5)


@np.errstate(over="ignore")
def curve_epsilon(*, noise_multiplier: float, delta: float, scale: float = 8.0) -> float:
    """Return the epsilon on the curve that the report's published pairs lie on.

    All four pairs fit min over orders of scale * order / sigma^2 + ln(1/delta) / (order - 1), with a scale of
    8: sixteen Gaussian releases without amplification would have it. The printed code does not.

    Args:
        noise_multiplier: greater than 0.
        delta: in (0, 1).
        scale: greater than 0.

    Returns:
        Nats; infinite if it exceeds a float64.

    Raises:
        InvalidParameter: a value is out of its range.
    """
    noise_multiplier = check_noise(noise_multiplier)
    scale = validate.positive(scale=scale)
    delta = validate.delta(delta)
    # The minimum over all real orders, which lies at 1 + sqrt(ln(1/delta) / slope).
    slope, cost = scale / noise_multiplier**2, math.log(1 / delta)
    orders = np.array(PRINTED_ORDERS)
    return float(np.min(slope * orders + cost / (orders - 1)))
