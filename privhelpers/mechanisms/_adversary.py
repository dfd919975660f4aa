"""An observer's belief after an answer, and how far a guarantee lets that belief move.

>>> low, high = posterior_range(prior=0.5, epsilon=1)
>>> round(low, 3), round(high, 3)
(0.269, 0.731)
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit

from privhelpers import validate
from privhelpers.errors import InvalidParameter
from privhelpers.mechanisms import _checks

_LEAST_NOISE = 1e-100


def posterior(log_ratio: ArrayLike, *, prior: float) -> float | NDArray[np.float64]:
    """Return the belief in the first of two data sets after an answer, by the theorem of Bayes.

    Args:
        log_ratio: number or array; logarithm of the answer's density under the first data set over that
            under the second, in nats.
        prior: belief in the first before the answer, in (0, 1).

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Dwork, McSherry, Nissim and Smith 2006, for the reading of epsilon as a bound on this ratio.
    """
    prior = validate.open_unit(prior=prior)
    return _checks.plain(expit(logit(prior) + _checks.real("log_ratio", log_ratio)))


def posterior_range(*, prior: float, epsilon: float) -> tuple[float, float]:
    """Return the lowest and the highest belief that an epsilon-DP answer can leave behind.

    Args:
        prior: belief in one of two neighboring data sets before the answer, in (0, 1).
        epsilon: 0 or more.

    Raises:
        InvalidParameter: a value is out of its range.

    Source: as `posterior`.
    """
    epsilon = validate.non_negative(epsilon=epsilon)
    low, high = posterior(np.array([-epsilon, epsilon]), prior=prior)
    return float(low), float(high)


def participation_log_ratio(
    seen: ArrayLike, *, noise_multiplier: float, sample_rate: float
) -> NDArray[np.float64]:
    """Return how much likelier each output is if a unit takes part than if it does not, as a log, in nats.

    Args:
        seen: outputs of the Poisson-subsampled Gaussian mechanism along a direction of the unit alone, over
            the clipping norm: noise around 1 if the unit entered the sample, around 0 otherwise.
        noise_multiplier: noise standard deviation over the clipping norm, 1e-100 or more.
        sample_rate: probability that a unit that takes part enters the sample, in (0, 1].

    Raises:
        InvalidParameter: a value is out of its range.

    >>> participation_log_ratio(0.5, noise_multiplier=1.0, sample_rate=0.3).round(12) + 0.0
    np.float64(0.0)
    """
    noise_multiplier = validate.positive(noise_multiplier=noise_multiplier)
    sample_rate = validate.probability(sample_rate=sample_rate)
    if noise_multiplier < _LEAST_NOISE:
        raise InvalidParameter(
            f"noise_multiplier = {noise_multiplier}: must be {_LEAST_NOISE} or more, or its square underflows"
        )
    noise_multiplier = float(noise_multiplier)
    variance = noise_multiplier * noise_multiplier  # no power, which would overflow with an error
    # Of a unit that takes part: a mixture. The density without the unit cancels.
    entered = np.log(sample_rate) + (2 * _checks.real("seen", seen) - 1) / (2 * variance)
    stayed_out = np.log1p(-sample_rate) if sample_rate < 1 else -np.inf
    return np.logaddexp(stayed_out, entered)
