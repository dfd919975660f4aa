"""Canaries: texts made for the audit, of which a coin decided which were trained on.

The coin makes this the one part of an audit that needs no likeness between two files, and the only one that
can refute an epsilon.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import binom

from privaudit.encode import content_key
from privaudit.records import Canary, Files
from privaudit.settings import Settings
from privhelpers import stats
from privhelpers.errors import InvalidParameter
from privhelpers.lower_bounds import (
    ADD_REMOVE,
    BINOMIAL,
    BY_RANK,
    BY_SIGN,
    REPLACEMENT,
    SHARES,
    AuditResult,
    audit_in_one_run,
    most_certifiable,
    swap_pairs,
)
from privhelpers.stats import Interval


@dataclass(frozen=True)
class Claim:
    """A claimed epsilon, and what the canaries certify from below.

    Attributes:
        epsilon, delta: as claimed, for one record more or less.
        lower: what the canaries certify, at the same delta.
        most_certifiable: what so many canaries could have certified at most.
    """

    epsilon: float
    delta: float
    lower: AuditResult
    most_certifiable: float

    @property
    def refuted(self) -> bool:
        """Whether the certified bound lies above the claim."""
        return self.lower.epsilon_lower > self.epsilon


@dataclass(frozen=True)
class CanaryResult:
    """How well the inserted canaries are told from those that were kept out.

    Attributes:
        inserted, kept_out: how many.
        auc: of the score; the interval takes each canary as a unit of its own.
        p, reverse_p: chance of so much if the coin left no trace; the same of those that were kept out.
        claim: None if no epsilon was claimed.
    """

    inserted: int
    kept_out: int
    auc: Interval
    p: float
    reverse_p: float
    claim: Claim | None


def require_testable(files: Files, settings: Settings) -> None:
    """Refuse a claim that nothing could test, and settings with which no test could flag anything.

    Raises:
        InvalidParameter: an epsilon is claimed without canaries; or too few permutations.
    """
    settings.require_permutations(2 + (files.canaries is not None))  # of one attack at least
    if settings.epsilon is not None and files.canaries is None:
        raise InvalidParameter(
            "epsilon and delta: a claim can only be tested with canaries; give a file of them, or "
            "leave the claim out"
        )


def audit_canaries(canaries: Sequence[Canary], scores: np.ndarray, settings: Settings) -> CanaryResult:
    """Tell inserted canaries from the others, and hold the result against a claimed epsilon.

    Args:
        canaries: with the outcome of each coin, fair and independent of the others; or one half of them was
            chosen at random.
        scores: higher for those that look inserted, made without the coins.
        settings: of the audit; the confidence of the lower bound is 1 - alpha / 2, the tests have the rest.

    Source: Steinke, Nasr and Jagielski 2023.
    """
    # The order of the file decides nothing: of equal scores, of pairs and of what is drawn.
    order = sorted(range(len(canaries)), key=lambda n: content_key(settings.seed, [canaries[n].text]))
    coins, scores = np.array([canaries[n].inserted for n in order]), np.asarray(scores)[order]
    inside, outside = scores[coins], scores[~coins]
    units = np.arange(len(inside)), np.arange(len(outside))
    area = stats.auc_interval(inside, units[0], outside, units[1], draws=settings.draws, seed=settings.seed)
    p, reverse_p = (
        stats.permutation_scores(scores[:, None], side, draws=settings.permutations, seed=settings.seed)[0]
        for side in (coins, ~coins)
    )
    claim = None if settings.epsilon is None else _claim(coins, scores, settings)
    return CanaryResult(len(inside), len(outside), area, float(p[0]), float(reverse_p[0]), claim)


def _claim(coins: np.ndarray, scores: np.ndarray, settings: Settings) -> Claim:
    """Return the lower bound on epsilon, and the largest that so many canaries could give.

    By the binomial bound, which holds for whatever mechanism made the claim. Exactly one half inserted may
    mean that the half was sampled, and its members are not independent coins; pairs of an inserted one and
    another are, and independent coins that happen to fall so may be paired too. The error is divided so that
    taking the one or the other after looking stays within it.
    """
    half = 2 * int(coins.sum()) == coins.size
    chance = float(binom.pmf(coins.size // 2, coins.size, 0.5)) if coins.size % 2 == 0 else 0.0
    bound = {"delta": settings.delta, "confidence": 1 - settings.share / (1 + chance), "method": BINOMIAL}
    adjacency, by = ADD_REMOVE, BY_RANK
    if half:
        pairs, coins = swap_pairs(coins, settings.seed)
        scores, adjacency, by = scores[pairs[:, 0]] - scores[pairs[:, 1]], REPLACEMENT, BY_SIGN
    lower = audit_in_one_run(coins, scores, adjacency=adjacency, by=by, **bound)
    most = most_certifiable(canaries=len(coins), shares=SHARES, adjacency=adjacency, **bound)
    return Claim(settings.epsilon, settings.delta, replace(lower, confidence=1 - settings.share), most)
