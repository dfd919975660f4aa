"""The audit in one run, binomial version: how many coins can an attacker guess against (epsilon, delta)?

Each canary is included by a fair coin of its own. Against an epsilon-DP output every guess at a coin is right
with probability at most e^epsilon / (1 + e^epsilon), whatever the other coins are; so the number of right
guesses among r is at most binomial. A delta adds a little to the tail.

>>> round(float(one_run_p_value(canaries=100, guesses=10, correct=9, epsilon=0.0, delta=0.0)), 6)
0.010742
>>> round(one_run_epsilon_lower(canaries=1000, guesses=100, correct=100, delta=1e-5), 3)
3.465
"""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import binom

from privhelpers import validate
from privhelpers.audit.result import ADD_REMOVE, ADJACENCIES, check_guesses, significance_of
from privhelpers.errors import InvalidParameter


def one_run_p_value(*, canaries: int, guesses: int, correct: int, epsilon: float, delta: float) -> float:
    """Return the largest chance that an (epsilon, delta)-DP run gives for so many right guesses.

    Args:
        canaries: number of canaries, each included by an independent fair coin, 1 or more.
        guesses: number of coins guessed at; the others are abstained from, 0 to `canaries`.
        correct: number of right guesses, 0 to `guesses`.
        epsilon: hypothesis in nats, 0 or more.
        delta: hypothesis, in [0, 1).

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Steinke, Nasr and Jagielski 2023.
    """
    check_guesses(canaries=canaries, guesses=guesses, correct=correct)
    validate.non_negative(epsilon=epsilon, delta=delta)
    if delta >= 1:
        raise InvalidParameter(f"delta = {delta!r}: must be in [0, 1)")
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
            epsilon returned is still that of add/remove.

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Steinke, Nasr and Jagielski 2023; Vadhan 2017, lemma 2.2 (replacement).
    """
    check_guesses(canaries=canaries, guesses=guesses, correct=correct)
    validate.non_negative(delta=delta)
    if delta >= 1 or adjacency not in ADJACENCIES:
        raise InvalidParameter(f"delta = {delta!r}, adjacency = {adjacency!r}: one of them is not known here")
    error = significance_of(confidence, searched)

    def excess(epsilon: float) -> float:
        """Below 0 where the hypothesis is refuted."""
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
