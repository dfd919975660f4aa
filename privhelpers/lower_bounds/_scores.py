"""From scores to guesses to a bound: which coins are guessed at is fixed before the scores are seen.

An attacker who tries every number of guesses and reports the best bound finds leakage in pure noise. Here a
few shares of the canaries are declared beforehand, each gets its part of the error, and the best is taken.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privhelpers import rng, validate
from privhelpers.errors import InvalidParameter
from privhelpers.lower_bounds._one_run import fdp_mu_lower, one_run_epsilon_lower
from privhelpers.lower_bounds._result import (
    ADD_REMOVE,
    REPLACEMENT,
    AuditResult,
    check_adjacency,
    check_guesses,
)
from privhelpers.mechanisms import gdp_epsilon

SHARES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)  # of the canaries that are guessed at, searched by default
BINOMIAL, FDP = "one run, binomial", "one run, f-DP"
BY_RANK, BY_SIGN = "rank", "sign"


def check_scores(included: ArrayLike, scores: ArrayLike) -> tuple[NDArray[np.bool_], NDArray[np.float64]]:
    """Return coins and scores as arrays, or refuse them.

    Raises:
        InvalidParameter: lengths differ, there is no canary, a coin is neither 0 nor 1, a score is NaN.
    """
    coins, values = validate.array("included", included), validate.array("scores", scores, float)
    if coins.ndim != 1 or coins.shape != values.shape or coins.size == 0:
        raise InvalidParameter(
            f"included, scores: shapes {coins.shape}, {values.shape}; need one of each a canary"
        )
    if not np.isin(coins, (0, 1)).all():
        raise InvalidParameter("included: must be true or false for every canary")
    if np.isnan(values).any():
        raise InvalidParameter(f"scores: {int(np.isnan(values).sum())} of them are not a number")
    return coins.astype(bool), values


def count_correct(
    included: ArrayLike, scores: ArrayLike, guesses: int, *, by: str = BY_RANK
) -> tuple[int, int]:
    """Return (guesses, right guesses) of an attacker who guesses at the canaries that it is surest of.

    Args:
        included: whether each canary was included, shape [canaries].
        scores: higher for canaries that look included, shape [canaries].
        guesses: number of guesses, 1 to the number of canaries; by rank, an odd number is lowered by one.
        by: "rank": the highest half of the guesses are called included and the lowest half excluded; "sign":
            a score above 0 is called included, the largest sizes first.

    Among equal scores a fixed permutation decides, and never the place in the list.

    Raises:
        InvalidParameter: a value is out of its range.

    >>> count_correct([1, 1, 0, 0], [3.0, -1.0, 2.0, -2.0], 2)
    (2, 2)
    >>> count_correct([1, 1, 0, 0], [3.0, -1.0, 2.0, -2.0], 4)
    (4, 2)
    """
    coins, values = check_scores(included, scores)
    guesses = validate.positive_int(coins.size, guesses=guesses)
    validate.one_of((BY_RANK, BY_SIGN), by=by)
    shuffled = rng.make(0, "audit/ties").permutation(coins.size)  # a list may be ordered by the coins
    if by == BY_SIGN:
        surest = np.lexsort((shuffled, -np.abs(values)))[:guesses]
        return guesses, int(np.sum((values[surest] > 0) == coins[surest]))
    order, half = np.lexsort((shuffled, -values)), guesses // 2
    called, ruled_out = order[:half], order[coins.size - half :]
    return 2 * half, int(coins[called].sum() + (~coins[ruled_out]).sum())


def searched_guesses(canaries: int, shares: Sequence[float] = SHARES) -> list[int]:
    """Return the numbers of guesses that `shares` of the canaries make: even, different, at least 2.

    Raises:
        InvalidParameter: no share, or a value out of its range.
    """
    canaries = validate.positive_int(canaries=canaries)
    shares = validate.row("shares", shares)
    shares = [validate.probability(shares=share) for share in shares or [None]]
    return sorted({max(2, 2 * round(share * canaries / 2)) for share in shares if canaries > 1})


def audit_in_one_run(
    included: ArrayLike,
    scores: ArrayLike,
    *,
    delta: float,
    confidence: float = 0.95,
    method: str = FDP,
    shares: Sequence[float] = SHARES,
    by: str = BY_RANK,
    adjacency: str = ADD_REMOVE,
) -> AuditResult:
    """Return the best bound over the declared shares of guesses, each with its part of the error.

    Args:
        included: the coin of each canary, fair and independent of the others, shape [canaries].
        scores: higher for canaries that look included, made without the coins, shape [canaries].
        delta: of the guarantee that is audited, in (0, 1).
        confidence: of the bound, in (0, 1).
        method: "one run, f-DP" (a bound within Gaussian curves) or "one run, binomial".
        shares: of the canaries that are guessed at, declared before the scores are seen, in (0, 1].
        by: as in `count_correct`.
        adjacency: what a coin decides; the epsilon returned is for add/remove in both cases.

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Steinke, Nasr and Jagielski 2023; Mahloujifar, Melis and Chaudhuri 2025.
    """
    coins, values = check_scores(included, scores)
    validate.one_of((BINOMIAL, FDP), method=method)
    check_adjacency(adjacency)
    delta = validate.delta(delta)  # a bound of 0 is found without it
    numbers = searched_guesses(coins.size, shares)
    if not numbers:
        raise InvalidParameter("included: one canary alone cannot be ranked")
    bounds = []
    for number in numbers:
        guesses, correct = count_correct(coins, values, min(number, coins.size), by=by)
        counts = {"canaries": int(coins.size), "guesses": guesses, "correct": correct}
        error = {"confidence": confidence, "searched": len(numbers)}
        if method == BINOMIAL:
            bound = one_run_epsilon_lower(**counts, **error, delta=delta, adjacency=adjacency)
        else:  # two steps of add/remove from a mu-GDP run are 2 mu-GDP
            mu = fdp_mu_lower(**counts, **error) / (2 if adjacency == REPLACEMENT else 1)
            bound = gdp_epsilon(mu=mu, delta=delta) if mu > 0 else 0.0
        bounds.append((bound, guesses, correct))
    bound, guesses, correct = max(bounds, key=lambda one: one[0])
    return AuditResult(bound, delta, confidence, method, int(coins.size), guesses, correct, len(numbers))


def most_certifiable(
    *, canaries: int, method: str = BINOMIAL, shares: Sequence[float] = (1.0,), **settings: object
) -> float:
    """Return the epsilon that `audit_in_one_run` certifies if all guesses are right: its most.

    Args:
        canaries: fair coins, 2 to 1,000,000.
        method, shares: as there; by default every canary is guessed at (of an odd number, perhaps all but
            one: see `searched_guesses`), and nothing searched.
        settings: `delta`, `confidence` and `adjacency` of that audit.

    Raises:
        InvalidParameter: a value is out of its range.

    >>> round(most_certifiable(canaries=1000, delta=1e-9), 2)
    5.81
    """
    canaries, _, _ = check_guesses(canaries=canaries, guesses=canaries, correct=canaries)
    if canaries < 2:
        raise InvalidParameter("canaries = 1: must be 2 or more, as one alone cannot be ranked")
    sure = np.ones(canaries)
    return audit_in_one_run(sure, sure, by=BY_SIGN, method=method, shares=shares, **settings).epsilon_lower


def swap_pairs(planted: ArrayLike, seed: int) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Match every planted canary with a control at random, so that a fixed half becomes independent coins.

    If chance decided which half of the canaries was planted, the pairs do not say which of the two it was:
    given the pairs, each is planted with probability one half, whatever the others are. A coin then decides
    which of two patients is in the data: replacement of one by the other.

    Args:
        planted: whether each canary was planted; half of them, chosen at random, shape [canaries].
        seed: of the matching and of who comes first.

    Returns:
        (canaries of each pair, shape [pairs, 2]; whether the first is the planted one, shape [pairs]).

    Raises:
        InvalidParameter: the halves are not equal.
    """
    mask = validate.array("planted", planted, bool)
    if mask.ndim != 1 or mask.size == 0 or 2 * int(mask.sum()) != mask.size:
        raise InvalidParameter(
            f"planted: {int(mask.sum())} of {mask.size}; must be one half, chosen at random"
        )
    generator = rng.make(seed, "audit/pairs")
    inside, outside = generator.permutation(np.flatnonzero(mask)), np.flatnonzero(~mask)
    first = generator.random(inside.size) < 0.5
    pairs = np.where(first[:, None], np.c_[inside, outside], np.c_[outside, inside])
    return pairs, first
