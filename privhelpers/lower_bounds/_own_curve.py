"""A lower bound from DP-SGD's own trade-off curve: how much noise can the run have had at most?

The family is Poisson-sampled DP-SGD with the sample rate and the steps of the run and any noise. Every canary
gets one call, in or out, by a rule that sees all scores and no coin. On a trade-off curve f two error rates
add up to at least min over a of a + f(a), which is 1 minus the total variation distance: 1 - delta(0).

Given the scores, if they are independent, the coins are still independent, so whatever the rule is, each call
is wrong with at least the smaller of two posteriors, which has mean (1 - delta(0)) / 2. So the errors are at
least a binomial count, and its Clopper-Pearson limit refutes every noise whose curve demands more of them.
A rule that chose its threshold by the coins would break this: it would count its own luck.

The curve compares a mixture (the canary takes part with the sample rate, in each step) against noise alone,
which is what a removal compares. Read backward it is the curve of an addition, with the same total variation
distance, so one limit serves both; the epsilon reported covers both, as the accountant's does.

>>> wide = own_curve_epsilon_lower(canaries=12000, correct=8200, sample_rate=0.1, steps=150, delta=1e-5)
>>> few = own_curve_epsilon_lower(canaries=12000, correct=6300, sample_rate=0.1, steps=150, delta=1e-5)
>>> round(wide, 1), round(few, 2)
(4.6, 0.3)
"""

import math
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import brentq
from scipy.special import ndtri
from scipy.stats import beta

from privhelpers import accounting
from privhelpers.lower_bounds._result import AuditResult, check_guesses, significance_of
from privhelpers.lower_bounds._scores import check_scores

OWN_CURVE = "DP-SGD's own curve"
_LEAST_NOISE = 0.1  # noise multiplier at which the search ends: what it spends guarantees nothing
_FINE = 1e-6  # of log sigma
_MOST_REACHED = 1 - 1e-15  # of an advantage whose Gaussian is finite


@lru_cache(maxsize=4096)  # every search begins at the least noise
def _distance(**run: float) -> float:
    """Return the total variation distance that a run's curve allows."""
    return accounting.delta_at(epsilon=0.0, **run)


def own_curve_epsilon_lower(
    *,
    canaries: int,
    correct: int,
    sample_rate: float,
    steps: int,
    delta: float,
    confidence: float = 0.95,
) -> float:
    """Return the epsilon of the least noise that so many right guesses refute; 0 if they refute none.

    A bound within the family: it holds for a run of Poisson-sampled DP-SGD with this rate and these steps,
    whatever its noise. A bound above the claim of a run refutes the claim itself, which is in the family.

    Args:
        canaries: each included by an independent fair coin and guessed at once, 1 to 1,000,000.
        correct: right guesses, by a rule that saw no coin, 0 to `canaries`.
        sample_rate: probability that an included canary enters a step, in (0, 1].
        steps: of the run, 1 or more.
        delta: of the guarantee that is audited, in (0, 1).
        confidence: of the bound, in (0, 1).

    Returns:
        Nats, add/remove; at most what a noise multiplier of 0.1 spends. The noise is rounded up, and its
        epsilon down (`accounting.epsilon_lower`): never above what exact curves give.

    Raises:
        InvalidParameter: a value is out of its range, or PLD cannot tell the run's epsilon at this delta from
            what a float64 rounds: another accountant's is an upper bound, which certifies nothing.

    Source: Clopper and Pearson 1934; Kairouz, Oh and Viswanath 2015 (the errors that a curve demands);
    Nasr et al. 2023, section 4 (a trade-off curve instead of epsilon and delta).
    """
    canaries, _, correct = check_guesses(canaries=canaries, guesses=canaries, correct=correct)
    run = accounting.check_run(noise_multiplier=1.0, sample_rate=sample_rate, steps=steps, delta=delta)
    del run["noise_multiplier"]
    return _searched(canaries=canaries, correct=correct, error=significance_of(confidence), **run)


@lru_cache(maxsize=4096)  # a search of a fifth of a second; simulated audits ask for the same count again
def _searched(*, canaries: int, correct: int, error: float, delta: float, **run: float) -> float:
    wrong = float(beta.isf(error, canaries - correct + 1, correct)) if correct else 1.0
    advantage = min(1 - 2 * wrong, _MOST_REACHED)
    if advantage <= 0:
        return 0.0

    def excess(log_sigma: float) -> float:
        """Below 0 where the noise is refuted; nearly linear in its logarithm."""
        reached = _distance(noise_multiplier=math.exp(log_sigma), **run)
        return math.log(ndtri((1 + min(reached, _MOST_REACHED)) / 2) / ndtri((1 + advantage) / 2))

    # Distances add up over steps: delta(0) <= q T (2 Phi(1 / (2 sigma)) - 1) < q T / (sigma sqrt(2 pi)).
    low, high = math.log(_LEAST_NOISE), math.log(run["sample_rate"] * run["steps"] / advantage)
    if high <= low or excess(low) <= 0:
        refuted = _LEAST_NOISE
    else:
        refuted = math.exp(brentq(excess, low, high, xtol=_FINE) + _FINE)
    return accounting.epsilon_lower(noise_multiplier=refuted, **run, delta=delta)


def own_curve_audit(
    included: ArrayLike,
    scores: ArrayLike,
    *,
    sample_rate: float,
    steps: int,
    delta: float,
    confidence: float = 0.95,
) -> AuditResult:
    """Return the bound from scores that are independent of each other, as with gradient canaries.

    Args:
        included: the coin of each canary, fair and independent of the others, shape [canaries].
        scores: higher for canaries that look included, made without the coins and independent of each other;
            those above the median are called included, shape [canaries].
        sample_rate, steps, delta, confidence: as in `own_curve_epsilon_lower`.

    Raises:
        InvalidParameter: a value is out of its range.
    """
    coins, values = check_scores(included, scores)
    median = np.sort(values)[(values.size - 1) // 2]  # the lower one: no mean of infinities
    canaries, correct = int(coins.size), int(((values > median) == coins).sum())
    run = {"sample_rate": sample_rate, "steps": steps, "delta": delta, "confidence": confidence}
    bound = own_curve_epsilon_lower(canaries=canaries, correct=correct, **run)
    return AuditResult(bound, delta, confidence, OWN_CURVE, canaries, canaries, correct)
