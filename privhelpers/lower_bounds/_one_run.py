"""Lower bounds from one training run: how many coins can an attacker guess against a privacy guarantee?

Each canary is included by a fair coin of its own. Two questions are asked of the same guesses. The binomial
bound finds which (epsilon, delta) they refute: every guess is right with probability at most
e^epsilon / (1 + e^epsilon), whatever the other coins are, and a delta adds a little to the tail. The f-DP
bound finds which whole trade-off curve they refute, among curves of Gaussian differential privacy.

>>> round(one_run_epsilon_lower(canaries=1000, guesses=100, correct=100, delta=1e-5), 3)
3.465
>>> round(fdp_epsilon_lower(canaries=1000, guesses=100, correct=90, delta=1e-5), 3)
2.456
"""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, ndtr, ndtri
from scipy.stats import binom

from privhelpers import validate
from privhelpers.lower_bounds._result import ADD_REMOVE, check_adjacency, check_guesses, significance_of
from privhelpers.mechanisms import gdp_epsilon

_LARGEST_MU = 64.0


def one_run_p_value(*, canaries: int, guesses: int, correct: int, epsilon: float, delta: float) -> float:
    """Return the largest chance that an (epsilon, delta)-DP run gives for so many right guesses.

    Args:
        canaries: number of canaries, each included by an independent fair coin, 1 to 1,000,000.
        guesses: number of coins guessed at; the others are abstained from, 0 to `canaries`.
        correct: number of right guesses, 0 to `guesses`.
        epsilon: hypothesis in nats, 0 or more.
        delta: hypothesis, in [0, 1).

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Steinke, Nasr and Jagielski 2023.
    """
    canaries, guesses, correct = check_guesses(canaries=canaries, guesses=guesses, correct=correct)
    epsilon, delta = validate.guarantee(epsilon, delta)
    return _p_value(canaries, guesses, correct, epsilon, delta)


def _p_value(canaries: int, guesses: int, correct: int, epsilon: float, delta: float) -> float:
    rate = expit(epsilon)
    tail = float(binom.sf(correct - 1, guesses, rate))
    if delta == 0 or correct == 0:
        return min(tail, 1.0)
    # A failure of probability delta can shift each guess: the worst case spreads it over the next counts.
    fewer = np.arange(1, correct + 1)
    shifted = binom.sf(correct - 1 - fewer, guesses, rate) - tail
    return min(1.0, tail + 2 * canaries * delta * float(np.max(shifted / fewer)))


def one_run_epsilon_lower(
    *,
    canaries: int,
    guesses: int,
    correct: int,
    delta: float,
    confidence: float = 0.95,
    searched: int = 1,
    adjacency: str = ADD_REMOVE,
) -> float:
    """Return the largest epsilon that so many right guesses refute; 0 if they refute none.

    Args:
        canaries, guesses, correct: as in `one_run_p_value`.
        delta: of the guarantee that is audited, in [0, 1).
        confidence: of the bound, in (0, 1).
        searched: number of choices among which this one was picked after looking; Bonferroni, 1 or more.
        adjacency: what a coin decides: "add/remove" of a unit, or "replacement" of one unit by another, which
            is two steps of add/remove: the hypothesis is then (2 epsilon, (1 + e^epsilon) delta), and the
            epsilon returned is still for add/remove.

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Steinke, Nasr and Jagielski 2023; Vadhan 2017, lemma 2.2 (replacement).
    """
    canaries, guesses, correct = check_guesses(canaries=canaries, guesses=guesses, correct=correct)
    check_adjacency(adjacency)
    _, delta = validate.guarantee(0.0, delta)
    error = significance_of(confidence, searched)

    def excess(epsilon: float) -> float:
        """Below 0 if the hypothesis is refuted."""
        if adjacency == ADD_REMOVE:
            return _p_value(canaries, guesses, correct, epsilon, delta) - error
        twice = min(1.0, delta * (1 + math.exp(min(epsilon, 700.0))))
        return _p_value(canaries, guesses, correct, 2 * epsilon, twice) - error

    if guesses == 0 or excess(0.0) >= 0:
        return 0.0
    high = 1.0
    while excess(high) < 0:
        high *= 2
    root = brentq(excess, 0.0, high, xtol=1e-9)
    return max(0.0, root - 1e-9)  # the side on which the hypothesis is still refuted


def fdp_mass(*, canaries: int, guesses: int, correct: int, mu: float, significance: float) -> float:
    """Return the probability that a mu-GDP run needs, at least, to give `correct` guesses their chance.

    If `correct` or more right guesses have probability `significance` or more, then each smaller count has a
    tail that cannot be below a recursion, and the tail at 0 is all there is: above 1 means refuted.

    Args:
        canaries, guesses, correct: as in `one_run_p_value`.
        mu: of the Gaussian trade-off curve, 0 or more.
        significance: error of the test, in (0, 1].

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Mahloujifar, Melis and Chaudhuri 2025.
    """
    canaries, guesses, correct = check_guesses(canaries=canaries, guesses=guesses, correct=correct)
    mu = validate.non_negative(mu=mu)
    significance = validate.probability(significance=significance)
    tail, above = significance, 0.0  # Pr[V >= count + 1], and the sum of the tails beyond it
    for count in range(correct - 1, -1, -1):
        right = ((count + 1) * tail + above) / canaries  # E[V; V > count] / m
        above += tail
        wrong = canaries * ndtr(ndtri(min(right, 1.0)) - mu)  # E[r - V; V >= count] is not below it
        grown = (wrong + above) / (guesses - count)
        if grown <= tail:  # nothing grows any more, here or further down
            break
        tail = float(grown)
    return tail


def fdp_mu_lower(
    *, canaries: int, guesses: int, correct: int, confidence: float = 0.95, searched: int = 1
) -> float:
    """Return the largest mu whose Gaussian trade-off curve so many right guesses refute; 0 if none.

    Args:
        canaries, guesses, correct, confidence, searched: as in `one_run_epsilon_lower`.

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Mahloujifar, Melis and Chaudhuri 2025.
    """
    canaries, guesses, correct = check_guesses(canaries=canaries, guesses=guesses, correct=correct)
    counts = {"canaries": canaries, "guesses": guesses, "correct": correct}
    error = significance_of(confidence, searched)

    def excess(mu: float) -> float:
        """Above 0 if the curve is refuted."""
        return fdp_mass(**counts, mu=mu, significance=error) - 1

    # Guesses no better than random refute no curve, however they are rounded.
    if 2 * correct <= guesses or excess(0.0) <= 1e-12:
        return 0.0
    if excess(_LARGEST_MU) > 0:
        return _LARGEST_MU
    return max(0.0, brentq(excess, 0.0, _LARGEST_MU, xtol=1e-9) - 1e-8)


def fdp_epsilon_lower(
    *,
    canaries: int,
    guesses: int,
    correct: int,
    delta: float,
    confidence: float = 0.95,
    searched: int = 1,
) -> float:
    """Return the epsilon at `delta` of the largest Gaussian trade-off curve that is refuted; 0 if none.

    A run that is not mu-GDP need not break (epsilon, delta) at one delta: the bound is one within the family
    of Gaussian curves. If the claimed curve lies above the Gaussian one with the same epsilon, as for
    DP-SGD does except in its far tail, it is a bound on the accountant's epsilon.

    Args:
        canaries, guesses, correct, confidence, searched: as in `one_run_epsilon_lower`.
        delta: of the guarantee that is audited, in (0, 1).

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Mahloujifar, Melis and Chaudhuri 2025; Dong, Roth and Su 2022, corollary 2.13.
    """
    delta = validate.delta(delta)
    counts = {"canaries": canaries, "guesses": guesses, "correct": correct}
    mu = fdp_mu_lower(**counts, confidence=confidence, searched=searched)
    return gdp_epsilon(mu=mu, delta=delta) if mu > 0 else 0.0
