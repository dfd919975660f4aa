"""The scores of gradient canaries if a run is what it claims to be, and whether real ones look like them."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import ks_2samp

from privhelpers import rng, validate
from privhelpers.errors import InvalidParameter
from privhelpers.lower_bounds._scores import check_scores
from privhelpers.mechanisms import participation_log_ratio

_MOST_CANARIES = 10_000_000  # at some 40 bytes each
_MOST_STEPS = 1_000_000  # at some 20 microseconds or more
Shows = Callable[[np.random.Generator, NDArray[np.bool_], int], NDArray[np.float64]]


def simulate_scores(
    *,
    canaries: int,
    noise_multiplier: float,
    sample_rate: float,
    steps: int,
    seed: int,
    shows: Shows | None = None,
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return the coins and scores that gradient canaries have if the run does what it claims.

    Args:
        canaries: number of canaries, each with a coordinate of its own, from 1 to 10 million.
        noise_multiplier: noise standard deviation over the clipping norm, greater than 0.
        sample_rate: probability that an included canary enters a step, in (0, 1].
        steps: number of steps, from 1 to 1 million.
        seed: of coins, draws and noise.
        shows: for a run with a fault, what a step shows at the coordinates, over the clipping norm: of the
            generator, the coins and the number of the step. The scores still believe the claim.

    Returns:
        (included, scores), both of shape [canaries]; a score is the log-likelihood ratio over all steps.

    Raises:
        InvalidParameter: a value is out of its range.
    """
    canaries = validate.positive_int(_MOST_CANARIES, canaries=canaries)
    steps = validate.positive_int(_MOST_STEPS, steps=steps)
    noise_multiplier = validate.positive(noise_multiplier=noise_multiplier)
    sample_rate = validate.probability(sample_rate=sample_rate)
    if shows is not None:
        validate.function(shows=shows)
    generator = rng.make(seed, "audit/simulation")
    included = generator.random(canaries) < 0.5
    scores = np.zeros(canaries)
    for step in range(steps):
        if shows is not None:
            seen = shows(generator, included, step)
        else:
            drawn = included & (generator.random(canaries) < sample_rate)
            seen = drawn + noise_multiplier * generator.standard_normal(canaries)
        scores += participation_log_ratio(seen, noise_multiplier=noise_multiplier, sample_rate=sample_rate)
    return included, scores


def claim_p_value(
    included: ArrayLike,
    scores: ArrayLike,
    *,
    noise_multiplier: float,
    sample_rate: float,
    steps: int,
    seed: int,
    times: int = 10,
) -> float:
    """Return how well the scores of gradient canaries fit the mechanism that the run claims to be.

    A test of the code and no bound: a small p-value shows that something else ran, not how much it leaks.

    Args:
        included, scores: of the run, shape [canaries].
        noise_multiplier, sample_rate, steps: claimed.
        seed: of the simulation that the scores are compared with.
        times: simulated canaries for each one of the run, 1 or more; 10 million together at most.

    Returns:
        Two-sample Kolmogorov-Smirnov p-value, of included and excluded canaries, doubled for the two.

    Raises:
        InvalidParameter: a value is out of its range, or one of the two groups is empty.
    """
    coins, values = check_scores(included, scores)
    times = validate.positive_int(_MOST_CANARIES // coins.size, times=times)
    if coins.all() or not coins.any():
        raise InvalidParameter("included: needs canaries of both kinds")
    claim = {"noise_multiplier": noise_multiplier, "sample_rate": sample_rate, "steps": steps}
    expected, simulated = simulate_scores(canaries=times * coins.size, **claim, seed=seed)
    groups = ((values[coins], simulated[expected]), (values[~coins], simulated[~expected]))
    return min(1.0, 2 * min(float(ks_2samp(*pair).pvalue) for pair in groups))
