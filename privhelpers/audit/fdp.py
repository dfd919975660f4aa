"""The audit in one run, f-DP version: the hypothesis is a whole trade-off curve, not one point of it.

An (epsilon, delta) leaves open everything between its two lines; a Gaussian curve does not, and an attacker
who guesses at many coins meets the whole curve. The curves tried here are those of mu-Gaussian differential
privacy, and the result is stated as the epsilon that the largest refuted one has at delta.

>>> round(fdp_epsilon_lower(canaries=1000, guesses=100, correct=90, delta=1e-5), 3)
2.456
>>> fdp_epsilon_lower(canaries=1000, guesses=1000, correct=500, delta=1e-5)
0.0
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri

from privhelpers import validate
from privhelpers.audit.result import check_guesses, significance_of
from privhelpers.mechanisms import gdp_epsilon

_TRIED = 25  # curves held against the guesses at once; each round shrinks the bracket so many times
_ROUNDS = 5
_LARGEST_MU = 64.0


def fdp_excess(
    *, canaries: int, guesses: ArrayLike, correct: ArrayLike, mu: ArrayLike, significance: float
) -> NDArray[np.float64]:
    """Return by how much the guesses are too good for mu-GDP: above 0 means refuted.

    The recursion bounds, from the largest count of right guesses down, the probability mass that a mu-GDP
    run can put on each count; too little mass is left if the observed count was exceeded too often.

    Args:
        canaries: number of canaries, each included by an independent fair coin, 1 or more.
        guesses, correct, mu: numbers or arrays that fit each other's shape.
        significance: error of the test, in (0, 1).

    Returns:
        Array of the common shape.

    Source: Mahloujifar, Melis and Chaudhuri 2025.
    """
    guesses, correct, mu = np.broadcast_arrays(
        np.asarray(guesses, dtype=float), np.asarray(correct, dtype=float), np.asarray(mu, dtype=float)
    )
    right, wrong = significance * correct / canaries, significance * (guesses - correct) / canaries
    for count in range(int(correct.max(initial=0)) - 1, -1, -1):
        active = count < correct
        grown = np.where(active, np.maximum(wrong, ndtr(ndtri(right) - mu)), wrong)
        if np.array_equal(grown, wrong):
            if active.all():  # nothing grows any more, here or further down
                break
            continue
        room = np.where(guesses > count, guesses - count, 1.0)
        right = np.minimum(1.0, right + np.where(active, count / room * (grown - wrong), 0.0))
        wrong = grown
    return right + wrong - guesses / canaries


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
    check_guesses(canaries=canaries, guesses=guesses, correct=correct)
    error = significance_of(confidence, searched)
    if 2 * correct <= guesses:  # no better than chance: no curve is refuted
        return 0.0
    low, high = 0.0, _LARGEST_MU
    for round_number in range(_ROUNDS):
        inner = np.geomspace(0.01, high, _TRIED) if round_number == 0 else np.linspace(low, high, _TRIED + 2)
        tried = np.concatenate([[0.0], inner]) if round_number == 0 else inner
        excess = fdp_excess(canaries=canaries, guesses=guesses, correct=correct, mu=tried, significance=error)
        stands = np.flatnonzero(excess <= 1e-12)  # up to rounding
        first = int(stands[0]) if stands.size else tried.size - 1
        if first == 0:
            return low
        low, high = float(tried[first - 1]), float(tried[first])
    return low


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
    of Gaussian curves. Where the claimed curve lies above the Gaussian one with the same epsilon, as that of
    DP-SGD does except in its far tail, it is a bound on the accountant's epsilon.

    Args:
        canaries, guesses, correct, confidence, searched: as in `one_run_epsilon_lower`.
        delta: of the guarantee that is audited, in (0, 1).

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Mahloujifar, Melis and Chaudhuri 2025; Dong, Roth and Su 2022, corollary 2.13.
    """
    validate.delta(delta)
    counts = {"canaries": canaries, "guesses": guesses, "correct": correct}
    mu = fdp_mu_lower(**counts, confidence=confidence, searched=searched)
    return gdp_epsilon(mu=mu, delta=delta) if mu > 0 else 0.0
