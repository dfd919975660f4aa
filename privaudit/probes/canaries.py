"""Canaries: how well scores tell those that were trained on from those that a coin kept out.

The coin makes them the one part of an audit that needs no likeness between two files, and the only one that
can refute an epsilon.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import binom

from privaudit.encode import content_key
from privaudit.kit import Manifest, Unit
from privaudit.records import FEWEST_CANARIES, Canary, Files
from privaudit.settings import Settings
from privhelpers import stats
from privhelpers.errors import InvalidParameter
from privhelpers.lower_bounds import (
    ADD_REMOVE,
    BINOMIAL,
    BY_RANK,
    BY_SIGN,
    FDP,
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
    """A claimed epsilon, and the lower bounds that the canaries certify.

    The claim is refuted if `gaussian` is above it. Only then `lower` is looked at, which says whether it is
    refuted whatever the mechanism. What is claimed of a training with Gaussian noise is claimed of a
    mechanism, so the two tests in this order share one error (Maurer, Hothorn and Lehmacher 1995).

    Attributes:
        epsilon, delta: as claimed, for one unit added or removed.
        unit: a record, or a patient with all records.
        lower: the bound that the canaries certify for any mechanism, at the same delta.
        gaussian: the bound for a training with Gaussian noise, such as DP-SGD.
        most_certifiable, most_gaussian: the largest bounds that this many canaries can certify.
    """

    epsilon: float
    delta: float
    unit: Unit
    lower: AuditResult
    gaussian: AuditResult
    most_certifiable: float
    most_gaussian: float

    @property
    def refuted(self) -> bool:
        """Whether the claim is refuted, at least of a training with Gaussian noise."""
        return self.gaussian.epsilon_lower > self.epsilon

    @property
    def refuted_for_any(self) -> bool:
        """Whether the claim is refuted whatever the mechanism."""
        return self.refuted and self.lower.epsilon_lower > self.epsilon

    @property
    def decisive(self) -> AuditResult:
        """The bound with which the claim is refuted, or which came closest."""
        return self.lower if self.refuted_for_any else self.gaussian


@dataclass(frozen=True)
class Tier:
    """Canaries with the same number of copies; attributes as in `CanaryResult`."""

    copies: int
    inserted: int
    kept_out: int
    auc: Interval


@dataclass(frozen=True)
class CanaryResult:
    """How well scores tell inserted canaries from those that were kept out.

    Attributes:
        inserted, kept_out: how many.
        auc: of the score; each canary is a unit of the interval.
        p, reverse_p: p-value of higher scores for inserted canaries, and for those kept out.
        claim: None if no epsilon was claimed.
        tiers: the same by number of copies, if there are several numbers.
    """

    inserted: int
    kept_out: int
    auc: Interval
    p: float
    reverse_p: float
    claim: Claim | None
    tiers: tuple[Tier, ...] = ()


def require_testable(files: Files, settings: Settings) -> None:
    """Refuse a claim without canaries, and settings with which no test could flag anything.

    Raises:
        InvalidParameter: an epsilon is claimed without canaries; or too few permutations.
    """
    settings.require_permutations(2 + (files.canaries is not None))  # of one attack at least
    if settings.epsilon is not None and files.canaries is None:
        raise InvalidParameter(
            "epsilon and delta: a claim can only be tested with canaries; give a file of them, or "
            "leave the claim out"
        )
    if settings.epsilon is not None and files.canaries.kit is None:
        single = sum(canary.copies == 1 for canary in files.canaries.canaries)
        if single < FEWEST_CANARIES:
            raise InvalidParameter(
                f"epsilon and delta: {single} canaries have one copy, and only these test a claim for one "
                f"record; give {FEWEST_CANARIES} or more of them, or leave the claim out"
            )


def audit_canaries(
    canaries: Sequence[Canary], scores: np.ndarray, settings: Settings, kit: Manifest | None = None
) -> CanaryResult:
    """Tell inserted canaries from the others, and test a claimed epsilon.

    Args:
        canaries: with the outcome of each coin, fair and independent of the others; or, without a kit, one
            half of them was chosen at random.
        scores: higher for those that look inserted, made without the coins.
        settings: of the audit; the confidence of the lower bound is 1 - alpha / 2, the tests have the rest.
        kit: the kit of the canaries, if they have one: its coins are independent, and it has the unit of the
            claim.

    Source: Steinke, Nasr and Jagielski 2023; Mahloujifar, Melis and Chaudhuri 2025.
    """
    # The order of the file must not decide ties, pairs, or samples.
    order = sorted(range(len(canaries)), key=lambda n: content_key(settings.seed, [canaries[n].text]))
    coins, scores = np.array([canaries[n].inserted for n in order]), np.asarray(scores)[order]
    copies = np.array([canaries[n].copies for n in order])
    for number in np.unique(copies):  # more copies move a score more, so each number has its own middle
        scores = np.where(copies == number, scores - np.median(scores[copies == number]), scores)
    p, reverse_p = (
        stats.permutation_scores(scores[:, None], side, draws=settings.permutations, seed=settings.seed)[0]
        for side in (coins, ~coins)
    )
    whole, *tiers = (
        Tier(number, int(coins[which].sum()), int((~coins[which]).sum()), area)
        for number, which in [(0, copies > 0), *((n, copies == n) for n in np.unique(copies).tolist())]
        if (area := _area(coins[which], scores[which], settings)) is not None
    )
    claim = None if settings.epsilon is None else _claim(coins, scores, copies, settings, kit)
    return CanaryResult(
        whole.inserted,
        whole.kept_out,
        whole.auc,
        float(p[0]),
        float(reverse_p[0]),
        claim,
        tuple(tiers) if len(tiers) > 1 else (),
    )


def _area(coins: np.ndarray, scores: np.ndarray, settings: Settings) -> Interval | None:
    """Return the area under the ROC curve of canaries, or None if all coins fell on one side."""
    inside, outside = scores[coins], scores[~coins]
    if not inside.size or not outside.size:
        return None
    units = np.arange(len(inside)), np.arange(len(outside))
    return stats.auc_interval(inside, units[0], outside, units[1], draws=settings.draws, seed=settings.seed)


def countable(copies: np.ndarray, unit: Unit) -> np.ndarray:
    """Return which canaries a claim for a unit is about, shape [canaries].

    The copies of a canary have one patient_id. A claim for one patient covers them all. One for one record
    does not: to add a canary with four copies is to add four records, which the claim lets show more.
    """
    return (copies == 1) | (unit == Unit.PATIENT)


def _claim(
    coins: np.ndarray, scores: np.ndarray, copies: np.ndarray, settings: Settings, kit: Manifest | None
) -> Claim:
    """Return the lower bounds on epsilon, and the largest that this many canaries can give.

    The binomial bound holds for any mechanism; the f-DP bound for one whose trade-off curve is Gaussian or
    above it, as in DP-SGD where such guesses look. Without a kit, if exactly one half is inserted, that half
    may have been sampled, so the coins are not independent; pairs of an inserted canary and another one are,
    and independent coins that happen to split evenly may be paired, too. The error is divided so that
    choosing between the two after looking stays within it.
    """
    unit = Unit.RECORD if kit is None else kit.unit
    counted = countable(copies, unit)
    coins, scores = coins[counted], scores[counted]
    half = kit is None and 2 * int(coins.sum()) == coins.size
    even = kit is None and coins.size % 2 == 0
    chance = float(binom.pmf(coins.size // 2, coins.size, 0.5)) if even else 0.0
    bound = {"delta": settings.delta, "confidence": 1 - settings.share / (1 + chance)}
    adjacency, by = ADD_REMOVE, BY_RANK
    if half:
        pairs, coins = swap_pairs(coins, settings.seed)
        scores, adjacency, by = scores[pairs[:, 0]] - scores[pairs[:, 1]], REPLACEMENT, BY_SIGN
    bound["adjacency"] = adjacency
    lower, gaussian = (
        audit_in_one_run(coins, scores, by=by, method=method, **bound) for method in (BINOMIAL, FDP)
    )
    most, most_gaussian = (
        most_certifiable(canaries=len(coins), shares=SHARES, method=method, **bound)
        for method in (BINOMIAL, FDP)
    )
    lower, gaussian = (replace(one, confidence=1 - settings.share) for one in (lower, gaussian))
    return Claim(settings.epsilon, settings.delta, unit, lower, gaussian, most, most_gaussian)
