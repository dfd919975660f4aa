"""Canaries: texts made for the audit, of which a coin decided which were trained on.

The coin makes this the one part of an audit that needs no likeness between two files, and the only one that
can refute an epsilon.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import binom, binomtest

from privhelpers import stats, validate
from privhelpers.audit import (
    ADD_REMOVE,
    BINOMIAL,
    BY_RANK,
    BY_SIGN,
    REPLACEMENT,
    AuditResult,
    audit_in_one_run,
    most_certifiable,
    searched_guesses,
    swap_pairs,
)
from privhelpers.errors import BadRecords, InvalidParameter
from privhelpers.own_model._chance import shuffled
from privhelpers.own_model._records import Canary
from privhelpers.stats import Interval

_UNFAIR = 1e-4  # a coin that gives so uneven a split is not believed


@dataclass(frozen=True)
class Claim:
    """A claimed epsilon, and what the canaries certify from below.

    Attributes:
        epsilon, delta: as claimed, for one record more or less.
        lower: what the canaries certify, at the same delta.
        most: what so many canaries could have certified at most.
    """

    epsilon: float
    delta: float
    lower: AuditResult
    most: float

    @property
    def refuted(self) -> bool:
        """Whether the certified bound lies above the claim."""
        return self.lower.epsilon_lower > self.epsilon


@dataclass(frozen=True)
class CanaryResult:
    """How well the inserted canaries are told from those that were kept out.

    Attributes:
        inserted, kept: how many.
        auc: of the score; the interval takes each canary as a unit of its own.
        p: chance of so much if the coin left no trace.
        claim: None if no epsilon was claimed.
    """

    inserted: int
    kept: int
    auc: Interval
    p: float
    claim: Claim | None


def check_claim(epsilon: float | None, delta: float | None) -> None:
    """Refuse half a claim, or one that no accountant makes.

    Raises:
        InvalidParameter: one of the two is missing, or out of its range.
    """
    if (epsilon is None) != (delta is None):
        raise InvalidParameter("epsilon and delta: one means nothing without the other; give both or neither")
    if epsilon is not None:
        validate.positive(epsilon=epsilon)
        validate.delta(delta)


def check_coin(canaries: Sequence[Canary]) -> None:
    """Refuse canaries that no fair coin can have dealt: every bound would be wrong.

    Raises:
        BadRecords: far too many, or too few, were inserted.
    """
    inserted = sum(canary.inserted for canary in canaries)
    if binomtest(inserted, len(canaries)).pvalue < _UNFAIR:
        raise BadRecords(
            f"canaries: {inserted} inserted of {len(canaries)}; a fair coin must decide for each one, and no "
            "fair coin gives that"
        )


def audit_canaries(
    canaries: Sequence[Canary],
    scores: np.ndarray,
    *,
    epsilon: float | None = None,
    delta: float | None = None,
    confidence: float = 0.99,
    times: int = 9999,
    draws: int = 500,
    seed: int = 0,
) -> CanaryResult:
    """Tell inserted canaries from the others, and hold the result against a claimed epsilon.

    Args:
        canaries: with the outcome of each coin, fair and independent of the others; or one half of them was
            chosen by lot.
        scores: higher for those that look inserted, made without the coins.
        epsilon, delta: the claim, in nats and for one record more or less; both or neither.
        confidence: of the lower bound, in (0, 1).
        times: shuffles of the test.
        draws: bootstrap draws of the interval.
        seed: of both.

    Source: Steinke, Nasr and Jagielski 2023.
    """
    check_claim(epsilon, delta)
    check_coin(canaries)
    coins = np.array([canary.inserted for canary in canaries])
    inside, outside = scores[coins], scores[~coins]
    area = stats.auc_interval(
        inside, np.arange(len(inside)), outside, np.arange(len(outside)), draws=draws, seed=seed
    )
    p = shuffled(scores[:, None], coins, times=times, seed=seed).ranking[0]
    claim = None
    if epsilon is not None:
        lower, most = _certified(coins, scores, delta=delta, confidence=confidence, seed=seed)
        claim = Claim(epsilon, delta, lower, most)
    return CanaryResult(len(inside), len(outside), area, float(p), claim)


def _certified(
    coins: np.ndarray, scores: np.ndarray, *, delta: float, confidence: float, seed: int
) -> tuple[AuditResult, float]:
    """Return the lower bound on epsilon, and the largest that so many canaries could give.

    By the binomial bound, which holds for whatever mechanism made the claim. Exactly one half inserted may
    mean that a lot chose the half, whose members are no independent coins; pairs of an inserted one and
    another are, and independent coins that happen to fall so may be paired too. The error is divided so that
    taking the one or the other after looking stays within it.
    """
    half = 2 * int(coins.sum()) == coins.size
    chance = float(binom.pmf(coins.size // 2, coins.size, 0.5)) if coins.size % 2 == 0 else 0.0
    how = {"delta": delta, "confidence": 1 - (1 - confidence) / (1 + chance)}
    adjacency = ADD_REMOVE
    if half:
        pairs, coins = swap_pairs(coins, seed)
        scores, adjacency = scores[pairs[:, 0]] - scores[pairs[:, 1]], REPLACEMENT
    lower = audit_in_one_run(
        coins, scores, method=BINOMIAL, adjacency=adjacency, by=BY_SIGN if half else BY_RANK, **how
    )
    most = most_certifiable(
        canaries=len(coins), searched=len(searched_guesses(len(coins))), method=BINOMIAL, **how
    )
    return replace(lower, confidence=confidence), most / (2 if half else 1)
