"""What an audit says of nothing, of perfection, and of the mechanism that was claimed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import ks_2samp

from privhelpers import rng, validate
from privhelpers.audit.fdp import fdp_epsilon_lower, fdp_excess
from privhelpers.audit.one_run import one_run_epsilon_lower, one_run_p_value
from privhelpers.audit.result import significance_of
from privhelpers.audit.scores import BINOMIAL, FDP, METHODS, check_scores
from privhelpers.errors import InvalidParameter


@dataclass(frozen=True)
class FalseAlarms:
    """How often an audit finds leakage where nothing leaks: guesses by coin.

    Attributes:
        corrected: share of runs in which it does, the error divided among all numbers of guesses.
        uncorrected: the same if the best of all of them is reported as if it were the only one.
        runs: simulated runs.
        searched: numbers of guesses that were tried.
    """

    corrected: float
    uncorrected: float
    runs: int
    searched: int


def _enough(
    canaries: int, guesses: Sequence[int], delta: float, method: str, error: float
) -> NDArray[np.int64]:
    """Return, for each number of guesses, how many must be right to refute an epsilon of 0."""
    numbers = np.asarray(guesses)
    low, high = numbers // 2, numbers + 1  # refuted at high (or by nothing), not at low
    while np.any(high - low > 1):
        middle = (low + high) // 2
        tried = np.minimum(middle, numbers)
        if method == FDP:
            shape = {"canaries": canaries, "guesses": numbers, "correct": tried}
            refuted = fdp_excess(**shape, mu=0.0, significance=error) > 1e-12
        else:
            counts = zip(numbers.tolist(), tried.tolist(), strict=True)
            null = {"canaries": canaries, "epsilon": 0.0, "delta": delta}
            refuted = np.array([one_run_p_value(guesses=r, correct=v, **null) < error for r, v in counts])
        refuted |= middle > numbers
        low, high = np.where(refuted, low, middle), np.where(refuted, middle, high)
    return high


def false_alarms(
    *,
    canaries: int,
    runs: int = 500,
    delta: float = 1e-5,
    confidence: float = 0.95,
    method: str = BINOMIAL,
    guesses: Sequence[int] | None = None,
    seed: int = 0,
) -> FalseAlarms:
    """Simulate audits of a run that leaks nothing, and count those that certify an epsilon above 0.

    Args:
        canaries: fair coins of a run, 1 or more.
        runs: simulated runs, 1 or more.
        delta, confidence, method: as in `audit_in_one_run`.
        guesses: numbers of guesses that are searched; left out, every number from 1 to `canaries`.
        seed: of the coins.

    Raises:
        InvalidParameter: a value is out of its range.
    """
    validate.positive_int(canaries=canaries, runs=runs)
    validate.delta(delta)
    if method not in METHODS:
        raise InvalidParameter(f"method = {method!r}: must be one of {', '.join(METHODS)}")
    numbers = list(range(1, canaries + 1)) if guesses is None else list(guesses)
    # In order of confidence, the guesses of somebody who knows nothing are right like fair coins.
    right = np.cumsum(rng.make(seed, "audit/null").integers(2, size=(runs, canaries)), axis=1)
    right = right[:, np.asarray(numbers) - 1]
    rates = []
    for searched in (len(numbers), 1):
        error = significance_of(confidence, searched)
        alarms = right >= _enough(canaries, numbers, delta, method, error)
        rates.append(float(alarms.any(axis=1).mean()))
    return FalseAlarms(*rates, runs=runs, searched=len(numbers))


def most_certifiable(
    *, canaries: int, delta: float, confidence: float = 0.95, searched: int = 1, method: str = BINOMIAL
) -> float:
    """Return the epsilon that perfect guesses at every canary certify: no audit of so many can say more.

    Args:
        canaries: fair coins, 1 or more.
        delta, confidence, searched, method: as in `audit_in_one_run`.

    Raises:
        InvalidParameter: a value is out of its range.

    >>> round(most_certifiable(canaries=1000, delta=1e-9), 2)
    5.81
    """
    bounds = {BINOMIAL: one_run_epsilon_lower, FDP: fdp_epsilon_lower}
    if method not in bounds:
        raise InvalidParameter(f"method = {method!r}: must be one of {', '.join(METHODS)}")
    counts = {"canaries": canaries, "guesses": canaries, "correct": canaries}
    return bounds[method](**counts, delta=delta, confidence=confidence, searched=searched)


def simulate_scores(
    *, canaries: int, noise_multiplier: float, sample_rate: float, steps: int, seed: int
) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return the coins and scores that gradient canaries have if the run does what it claims.

    Args:
        canaries: number of canaries, each with a coordinate of its own, 1 or more.
        noise_multiplier: noise standard deviation over the clipping norm, greater than 0.
        sample_rate: probability that an included canary enters a step, in (0, 1].
        steps: number of steps, 1 or more.
        seed: of coins, draws and noise.

    Returns:
        (included, scores), both of shape [canaries]; a score is the log-likelihood ratio over all steps.

    Raises:
        InvalidParameter: a value is out of its range.
    """
    validate.positive_int(canaries=canaries, steps=steps)
    validate.positive(noise_multiplier=noise_multiplier)
    validate.probability(sample_rate=sample_rate)
    generator = rng.make(seed, "audit/simulation")
    included = generator.random(canaries) < 0.5
    scores = np.zeros(canaries)
    for _ in range(steps):
        drawn = included & (generator.random(canaries) < sample_rate)
        seen = drawn + noise_multiplier * generator.standard_normal(canaries)
        scores += log_ratio(seen, noise_multiplier=noise_multiplier, sample_rate=sample_rate)
    return included, scores


def log_ratio(
    seen: NDArray[np.float64], *, noise_multiplier: float, sample_rate: float
) -> NDArray[np.float64]:
    """Return the log-likelihood ratio of one step: "included" against "excluded".

    Args:
        seen: the noisy sum at each canary's coordinate, in clipping norms.
        noise_multiplier, sample_rate: as in `simulate_scores`.
    """
    exponent = (2 * seen - 1) / (2 * noise_multiplier**2)
    absent = np.log1p(-sample_rate) if sample_rate < 1 else -np.inf
    return np.logaddexp(absent, np.log(sample_rate) + exponent)


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
