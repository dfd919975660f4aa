"""ROC curves of membership scores, with patient-clustered intervals.

A HIGHER score means MORE member-like: pass the negative loss, not the loss.

The arithmetic works on weights: scores are sorted once, and each bootstrap draw is a few sums over the weight
of members and of non-members in every group of equal scores, most member-like group first, shape
(draws, groups).

>>> auc([0, 4, 6, 7], [1, 2, 3, 5]) == 11 / 16
True

Sources: Hanley and McNeil, Radiology 143 (1982), for the area; Carlini et al., S&P 2022, section IV, for the
true-positive rate at a low false-positive rate.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from privhelpers import rng, validate
from privhelpers.stats import checks
from privhelpers.stats._proportions import Interval
from privhelpers.stats.clustered import weight_blocks, widen_point_interval


class PooledScores:
    """The scores of both arms sorted once, in tie groups from the most member-like down."""

    def __init__(self, member_scores: ArrayLike, nonmember_scores: ArrayLike) -> None:
        """Sort the scores of members and of non-members, higher = more member-like."""
        members = checks.vector("member_scores", member_scores)
        nonmembers = checks.vector("nonmember_scores", nonmember_scores)
        _, group = np.unique(-np.concatenate([members, nonmembers]), return_inverse=True)
        self.groups = int(group.max()) + 1
        self.codes = group[: members.size], group[members.size :]

    def weight(self, arm: int, weights: np.ndarray) -> np.ndarray:
        """Return the weight of an arm in each tie group, shape (draws, groups)."""
        cells = (self.codes[arm] + self.groups * np.arange(len(weights))[:, None]).ravel()
        totals = np.bincount(cells, weights=weights.ravel(), minlength=self.groups * len(weights))
        return totals.reshape(len(weights), self.groups)

    def equal(self) -> list[np.ndarray]:
        """Return the weights with every note counted once, one draw."""
        return [self.weight(arm, np.ones((1, self.codes[arm].size))) for arm in (0, 1)]


def areas(member: np.ndarray, nonmember: np.ndarray) -> np.ndarray:
    """Return Pr[member > non-member] + Pr[tie] / 2 of each draw."""
    # Counts stay whole until the last division, so that equal scores give exactly one half.
    below = nonmember.sum(axis=1, keepdims=True) - np.cumsum(nonmember, axis=1)
    wins = np.sum(member * (below + nonmember / 2), axis=1)
    return wins / (member.sum(axis=1) * nonmember.sum(axis=1))


def _cumulative(weight: np.ndarray) -> np.ndarray:
    return np.cumsum(weight, axis=1) / weight.sum(axis=1, keepdims=True)


def _gaps(member: np.ndarray, nonmember: np.ndarray) -> np.ndarray:
    """Return TPR - FPR of each draw at every threshold, shape (draws, groups)."""
    return _cumulative(member) - _cumulative(nonmember)


def advantages(member: np.ndarray, nonmember: np.ndarray) -> np.ndarray:
    """Return the largest TPR - FPR of each draw; 0 if accusing no one is best.

    The threshold is chosen on the scores it is judged by, so the value is above 0 even if nothing leaks:
    by about 0.63 sqrt(1/n + 1/m) for independent notes.

    Source: Yeom et al., CSF 2018, definition 4.
    """
    return np.maximum(_gaps(member, nonmember).max(axis=1), 0)


def curve_heights(member: np.ndarray, nonmember: np.ndarray, fpr: np.ndarray) -> np.ndarray:
    """Return each draw's ROC, points joined by straight lines, at the given rates, shape (draws, rates)."""
    rise, run = (np.pad(_cumulative(weight), ((0, 0), (1, 0))) for weight in (member, nonmember))
    return np.stack([np.interp(fpr, x, y) for x, y in zip(run, rise, strict=True)])


def replicates(
    statistic: Callable[[np.ndarray, np.ndarray], np.ndarray],
    pooled: PooledScores,
    patients: tuple[ArrayLike, ArrayLike],
    draws: int,
    seed: int,
) -> np.ndarray:
    """Return a statistic of patient-clustered draws, both arms resampled separately."""
    draws = checks.draws(draws)
    names = ("member_patients", "nonmember_patients")
    arms = [
        checks.cluster_codes(name, labels, codes.size)
        for name, labels, codes in zip(names, patients, pooled.codes, strict=True)
    ]
    # One stream for every statistic: intervals of one comparison come from the same resampled patients.
    generator = rng.make(seed, "stats.membership")
    blocks = weight_blocks(arms, draws, generator)
    return np.concatenate([statistic(pooled.weight(0, a), pooled.weight(1, b)) for a, b in blocks])


def bootstrap_intervals(
    statistics: Callable[[np.ndarray, np.ndarray], np.ndarray],
    pooled: PooledScores,
    patients: tuple[ArrayLike, ArrayLike],
    *,
    draws: int,
    seed: int,
    level: float,
) -> list[Interval]:
    """Return a patient-clustered percentile interval of each statistic, all from the same resamples.

    Args:
        statistics: values of each draw in [0, 1], shape (draws, statistics), from the weights of both arms.
        pooled: scores of both arms.
        patients: patient of each member note, and of each non-member note.
        draws, seed: of the resampling.
        level: nominal coverage, in (0, 1).
    """
    drawn = replicates(statistics, pooled, patients, draws, seed)
    ends = np.percentile(drawn, [50 * (1 - level), 50 * (1 + level)], axis=0)
    method = f"patient-clustered percentile bootstrap, {draws} draws"
    rows = zip(statistics(*pooled.equal())[0], *ends, strict=True)
    return [widen_point_interval(Interval(*map(float, row), level, method), *patients) for row in rows]


@dataclass(frozen=True)
class RocCurve:
    """A ROC curve on a grid, with a pointwise band.

    Attributes:
        fpr: false-positive rates of the grid, in (0, 1], increasing.
        tpr, low, high: true-positive rate and its band, same shape as `fpr`; none falls as `fpr` rises.
        level: nominal coverage of the band at each point, in (0, 1).
        method: how the band was made.
    """

    fpr: np.ndarray
    tpr: np.ndarray
    low: np.ndarray
    high: np.ndarray
    level: float
    method: str


def auc(member_scores: ArrayLike, nonmember_scores: ArrayLike) -> float:
    """Return the area under the ROC curve: Pr[member > non-member] + Pr[tie] / 2.

    The plain Mann-Whitney area with ties counted half, not the area under the convex hull, which is larger.

    Args:
        member_scores: score of each member note, higher = more member-like, shape (n,).
        nonmember_scores: score of each non-member note, shape (m,).

    Raises:
        InvalidParameter: an arm is empty or contains a value that is not finite.
    """
    return float(areas(*PooledScores(member_scores, nonmember_scores).equal())[0])


def auc_interval(
    member_scores: ArrayLike,
    member_patients: ArrayLike,
    nonmember_scores: ArrayLike,
    nonmember_patients: ArrayLike,
    *,
    draws: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """Return the area under the ROC curve with a patient-clustered percentile bootstrap.

    Member patients and non-member patients are resampled separately, with all their notes. Arms that are
    separated perfectly get exact ends (`clustered.widen_point_interval`). Near 1 the interval may cover too
    rarely: an area of 0.98 in 91% of 1000 draws with 100 single notes an arm instead of 95%; in 94% and
    99% of 300 with 20 and 10. `permutation_scores` tests it with no formula for its spread.

    Args:
        member_scores, nonmember_scores: one score per note, higher = more member-like.
        member_patients, nonmember_patients: patient of each note (any labels), as long as the scores.
        draws: bootstrap draws, 1 or more.
        seed: seed of the resampling, 0 or more.
        level: nominal coverage, in (0, 1).

    Raises:
        InvalidParameter: lengths differ, a score is not finite, or an arm has fewer than 2 patients.
    """
    level, pooled = validate.open_unit(level=level), PooledScores(member_scores, nonmember_scores)
    patients, options = (member_patients, nonmember_patients), {"draws": draws, "seed": seed, "level": level}
    return bootstrap_intervals(lambda *weights: areas(*weights)[:, None], pooled, patients, **options)[0]


def roc_curve(
    member_scores: ArrayLike,
    member_patients: ArrayLike,
    nonmember_scores: ArrayLike,
    nonmember_patients: ArrayLike,
    *,
    fpr: ArrayLike | None = None,
    draws: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> RocCurve:
    """Return the ROC curve on a grid of false-positive rates with a patient-clustered band.

    Heights are read off the ROC itself, neighboring points joined, not off its hull: on scores that separate
    nothing they average the false-positive rate, and the band keeps its coverage. On scores that separate it
    covers too rarely if few non-members decide: at a rate of 0.01 with 100 single notes an arm, in 84%
    of 1000 draws instead of 95%. There set the threshold on other non-members, and count the members above
    it with `clustered_proportion`.

    Args:
        member_scores, nonmember_scores: one score per note, higher = more member-like.
        member_patients, nonmember_patients: patient of each note (any labels), as long as the scores.
        fpr: grid, in (0, 1], or one rate; default 60 log-spaced rates from 1 / (non-member notes) to 1.
        draws: bootstrap draws, 1 or more.
        seed: seed of the resampling, 0 or more.
        level: nominal coverage of the band at each rate, in (0, 1).

    Raises:
        InvalidParameter: lengths differ, a score is not finite, or an arm has fewer than 2 patients.
    """
    level, pooled = validate.open_unit(level=level), PooledScores(member_scores, nonmember_scores)
    fpr = np.geomspace(1 / pooled.codes[1].size, 1, 60) if fpr is None else fpr
    grid = np.atleast_1d(checks.rates("fpr", fpr, above=0))

    def heights(member: np.ndarray, nonmember: np.ndarray) -> np.ndarray:
        return curve_heights(member, nonmember, grid)

    patients, options = (member_patients, nonmember_patients), {"draws": draws, "seed": seed, "level": level}
    band = bootstrap_intervals(heights, pooled, patients, **options)
    tpr = np.array([one.estimate for one in band])
    low, high = (np.where(grid < 1, [getattr(one, end) for one in band], 1.0) for end in ("low", "high"))
    # The curve rises, so that an end of one rate is one of the rates above it, or below it, too.
    order = np.argsort(grid)
    low[order] = np.minimum.accumulate(low[order[::-1]])[::-1]
    high[order] = np.maximum.accumulate(high[order])
    method = f"patient-clustered percentile bootstrap, {draws} draws"
    return RocCurve(grid, tpr, low, high, level, method)
