"""The scores of gradient canaries if a run is what it claims to be, and whether real ones look like them."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import ks_2samp

from privhelpers import rng, validate
from privhelpers.audit._scores import check_scores
from privhelpers.errors import InvalidParameter
from privhelpers.mechanisms import participation_log_ratio


@dataclass(frozen=True)
class Fault:
    """How a run differs from its claim, as far as its canaries can tell; the defaults are no fault.

    Attributes:
        noise: standard deviation of the noise over the claimed one, 0 or more; 0 where nobody added any.
        rate: sample rate over the claimed one, greater than 0.
        shuffled: whether the batches of an epoch divide the units among them, instead of Poisson draws.
        clipped_mean_of: units expected in a batch, where the mean of the batch is clipped and not each unit,
            so that canaries share C; as if nothing but canaries, far longer than C, were in it.
    """

    noise: float = 1.0
    rate: float = 1.0
    shuffled: bool = False
    clipped_mean_of: float | None = None

    def __post_init__(self) -> None:
        """Refuse faults out of range."""
        validate.non_negative(noise=self.noise)
        validate.positive(rate=self.rate)
        if self.clipped_mean_of is not None:
            validate.positive(clipped_mean_of=self.clipped_mean_of)


_NONE = Fault()


def simulate_scores(
    *,
    canaries: int,
    noise_multiplier: float,
    sample_rate: float,
    steps: int,
    seed: int,
    fault: Fault = _NONE,
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return the coins and scores that gradient canaries have if the run does what it claims, or nearly so.

    Args:
        canaries: number of canaries, each with a coordinate of its own, 1 or more.
        noise_multiplier: claimed noise standard deviation over the clipping norm, greater than 0.
        sample_rate: claimed probability that an included canary enters a step, in (0, 1].
        steps: number of steps, 1 or more.
        seed: of coins, draws and noise.
        fault: what runs differently; the scores still believe the claim.

    Returns:
        (included, scores), both of shape [canaries]; a score is the log-likelihood ratio over all steps.

    Raises:
        InvalidParameter: a value is out of its range, the rate of the fault included.
    """
    validate.positive_int(canaries=canaries, steps=steps)
    validate.positive(noise_multiplier=noise_multiplier)
    validate.probability(sample_rate=sample_rate)
    rate, deviation = fault.rate * sample_rate, fault.noise * noise_multiplier
    validate.probability(sample_rate=rate)
    generator = rng.make(seed, "audit/simulation")
    included = generator.random(canaries) < 0.5
    scores = np.zeros(canaries)
    batches = max(1, round(1 / rate))
    for step in range(steps):
        if not fault.shuffled:
            drawn = included & (generator.random(canaries) < rate)
        else:
            if step % batches == 0:
                batch_of = generator.permutation(canaries) % batches
            drawn = included & (batch_of == step % batches)
        length = 1.0  # of what a canary adds to the sum, over C
        if fault.clipped_mean_of and drawn.any():
            length = fault.clipped_mean_of / math.sqrt(drawn.sum())
        seen = length * drawn + deviation * generator.standard_normal(canaries)
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

    A test of the code and no bound: a small p-value says that something else ran, not how much it leaks.

    Args:
        included, scores: of the run, shape [canaries].
        noise_multiplier, sample_rate, steps: claimed.
        seed: of the simulation that the scores are compared with.
        times: simulated canaries for each one of the run, 1 or more.

    Returns:
        Two-sample Kolmogorov-Smirnov p-value, of included and excluded canaries, doubled for the two.

    Raises:
        InvalidParameter: a value is out of its range, or one of the two groups is empty.
    """
    coins, values = check_scores(included, scores)
    validate.positive_int(times=times)
    if coins.all() or not coins.any():
        raise InvalidParameter("included: needs canaries of both kinds")
    claim = {"noise_multiplier": noise_multiplier, "sample_rate": sample_rate, "steps": steps}
    expected, simulated = simulate_scores(canaries=times * coins.size, **claim, seed=seed)
    groups = ((values[coins], simulated[expected]), (values[~coins], simulated[~expected]))
    return min(1.0, 2 * min(float(ks_2samp(*pair).pvalue) for pair in groups))
