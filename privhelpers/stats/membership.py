"""How well a score separates members from non-members, with patient-clustered intervals.

A HIGHER score means MORE member-like: pass the negative loss, not the loss.

>>> auc([0, 4, 6, 7], [1, 2, 3, 5]) == 11 / 16
True
>>> tpr_at_fpr([1, 3], [0, 2], [0, 0.25, 0.5]).tolist()
[0.5, 0.75, 1.0]

Sources: Hanley and McNeil, Radiology 143 (1982), for the area; Yeom et al., CSF 2018, definition 4, for
the advantage; Carlini et al., S&P 2022, section IV, for the true-positive rate at a low false-positive rate.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import isotonic_regression

from privhelpers import rng
from privhelpers.stats import checks
from privhelpers.stats.clustered import percentile_interval, weight_blocks
from privhelpers.stats.proportions import Interval


@dataclass(frozen=True)
class RocCurve:
    """A ROC curve on a grid, with a pointwise band.

    Attributes:
        fpr: false-positive rates of the grid, in (0, 1], increasing.
        tpr, low, high: true-positive rate and its band, same shape as `fpr`.
        level: nominal coverage of the band at each point, in (0, 1).
        method: how the band was made.
    """

    fpr: np.ndarray
    tpr: np.ndarray
    low: np.ndarray
    high: np.ndarray
    level: float
    method: str


class _Pooled:
    """The scores of both arms sorted once, in tie groups from the most member-like down."""

    def __init__(self, member_scores: ArrayLike, nonmember_scores: ArrayLike) -> None:
        members = checks.vector("member_scores", member_scores)
        nonmembers = checks.vector("nonmember_scores", nonmember_scores)
        _, group = np.unique(-np.concatenate([members, nonmembers]), return_inverse=True)
        self.groups = int(group.max()) + 1
        self.codes = group[: members.size], group[members.size :]

    def mass(self, arm: int, weights: np.ndarray) -> np.ndarray:
        """Return the share of an arm's weight in each tie group, shape (draws, groups)."""
        cells = (self.codes[arm] + self.groups * np.arange(len(weights))[:, None]).ravel()
        totals = np.bincount(cells, weights=weights.ravel(), minlength=self.groups * len(weights))
        return totals.reshape(len(weights), self.groups) / weights.sum(axis=1, keepdims=True)

    def equal(self) -> list[np.ndarray]:
        """Return the masses with every note counted once, one draw."""
        return [self.mass(arm, np.ones((1, self.codes[arm].size))) for arm in (0, 1)]


def _areas(member: np.ndarray, nonmember: np.ndarray) -> np.ndarray:
    below = 1 - np.cumsum(nonmember, axis=1)
    return np.sum(member * (below + nonmember / 2), axis=1)


def _advantages(member: np.ndarray, nonmember: np.ndarray) -> np.ndarray:
    gaps = np.cumsum(member, axis=1) - np.cumsum(nonmember, axis=1)
    return np.maximum(gaps.max(axis=1), 0)


def _curve_heights(member: np.ndarray, nonmember: np.ndarray, fpr: np.ndarray) -> np.ndarray:
    """Return each draw's ROC, points joined by straight lines, at the given rates, shape (draws, rates)."""
    rise, run = (np.pad(np.cumsum(mass, axis=1), ((0, 0), (1, 0))) for mass in (member, nonmember))
    return np.stack([np.interp(fpr, x, y) for x, y in zip(run, rise, strict=True)])


def _hull_heights(member: np.ndarray, nonmember: np.ndarray, fpr: np.ndarray) -> np.ndarray:
    """Return the upper concave hull of each draw's ROC at the given rates, shape (draws, rates)."""
    heights = np.empty((len(member), fpr.size))
    for row, (gain, cost) in enumerate(zip(member, nonmember, strict=True)):
        present = gain + cost > 0
        gain, cost = gain[present], cost[present]
        # Pooling adjacent violators of the member share per tie group yields the segments of the hull.
        blocks = isotonic_regression(gain / (gain + cost), weights=gain + cost, increasing=False).blocks
        x = np.concatenate([[0.0], np.cumsum(cost)])[blocks]
        y = np.concatenate([[0.0], np.cumsum(gain)])[blocks]
        start = 1 if x[1] == 0 else 0  # a first vertical segment: the hull starts at its upper end
        heights[row] = np.interp(fpr, x[start:], y[start:])
    return heights


def _replicates(
    statistic: Callable[[np.ndarray, np.ndarray], np.ndarray],
    pooled: _Pooled,
    patients: tuple[ArrayLike, ArrayLike],
    draws: int,
    seed: int,
) -> np.ndarray:
    draws = checks.count("draws", draws, low=1)
    names = ("member_patients", "nonmember_patients")
    arms = [
        checks.cluster_codes(name, labels, codes.size)
        for name, labels, codes in zip(names, patients, pooled.codes, strict=True)
    ]
    # One stream for every statistic: intervals of one comparison come from the same resampled patients.
    generator = rng.make(seed, "stats.membership")
    blocks = weight_blocks(arms, draws, generator)
    return np.concatenate([statistic(pooled.mass(0, a), pooled.mass(1, b)) for a, b in blocks])


def auc(member_scores: ArrayLike, nonmember_scores: ArrayLike) -> float:
    """Return the area under the ROC curve: Pr[member > non-member] + Pr[tie] / 2.

    The plain Mann-Whitney area with ties counted half, not the area under the convex hull, which is larger.

    Args:
        member_scores: score of each member note, higher = more member-like, shape (n,).
        nonmember_scores: score of each non-member note, shape (m,).

    Raises:
        InvalidParameter: an arm is empty or holds a value that is not finite.

    Taught in: 10_membership_inference
    """
    return float(_areas(*_Pooled(member_scores, nonmember_scores).equal())[0])


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

    Member patients and non-member patients are resampled separately, with all their notes.

    Args:
        member_scores, nonmember_scores: one score per note, higher = more member-like.
        member_patients, nonmember_patients: patient of each note (any labels), as long as the scores.
        draws: bootstrap draws, 1 or more.
        seed: seed of the resampling, 0 or more.
        level: nominal coverage, in (0, 1).

    Raises:
        InvalidParameter: lengths differ, a score is not finite, or an arm has fewer than 2 patients.

    Taught in: 10_membership_inference
    """
    level, pooled = checks.open_unit("level", level), _Pooled(member_scores, nonmember_scores)
    areas = _replicates(_areas, pooled, (member_patients, nonmember_patients), draws, seed)
    method = f"patient-clustered percentile bootstrap, {draws} draws"
    return percentile_interval(_areas(*pooled.equal())[0], areas, level, method)


def tpr_at_fpr(member_scores: ArrayLike, nonmember_scores: ArrayLike, fpr: ArrayLike) -> float | np.ndarray:
    """Return the best true-positive rate of randomized thresholds at a false-positive rate.

    An attacker may flip a coin between two thresholds, which joins points of the ROC by straight lines;
    the best coins give its upper concave hull. The hull is chosen after seeing the scores, so it lies
    above the truth when there are few non-members; `tpr_at_fpr_interval` is the one to report.

    Args:
        member_scores, nonmember_scores: one score per note, higher = more member-like.
        fpr: false-positive rate or rates, in [0, 1]; at 0 the height of the curve's vertical start.

    Returns:
        A number for one rate, an array of the same shape for several.

    Raises:
        InvalidParameter: a rate is outside [0, 1], an arm is empty or a score is not finite.

    Taught in: 10_membership_inference
    """
    rates = checks.rates("fpr", fpr)
    heights = _hull_heights(*_Pooled(member_scores, nonmember_scores).equal(), rates.ravel())[0]
    return float(heights[0]) if rates.ndim == 0 else heights


def tpr_at_fpr_interval(
    member_scores: ArrayLike,
    member_patients: ArrayLike,
    nonmember_scores: ArrayLike,
    nonmember_patients: ArrayLike,
    fpr: float = 0.01,
    *,
    draws: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """Return the true-positive rate at one false-positive rate with a patient-clustered bootstrap.

    The estimate is read off the ROC itself, neighboring points joined, not off its hull: on scores that
    separate nothing it averages the false-positive rate, and the percentile interval keeps its coverage.

    Args:
        member_scores, nonmember_scores: one score per note, higher = more member-like.
        member_patients, nonmember_patients: patient of each note (any labels), as long as the scores.
        fpr: false-positive rate, in (0, 1]; below 1 / (non-member notes) the answer is an extrapolation.
        draws: bootstrap draws, 1 or more.
        seed: seed of the resampling, 0 or more.
        level: nominal coverage, in (0, 1).

    Raises:
        InvalidParameter: lengths differ, a score is not finite, or an arm has fewer than 2 patients.

    Taught in: 10_membership_inference
    """
    curve = roc_curve(
        member_scores,
        member_patients,
        nonmember_scores,
        nonmember_patients,
        fpr=[fpr],
        draws=draws,
        seed=seed,
        level=level,
    )
    return Interval(float(curve.tpr[0]), float(curve.low[0]), float(curve.high[0]), level, curve.method)


def membership_advantage(member_scores: ArrayLike, nonmember_scores: ArrayLike) -> float:
    """Return the largest TPR - FPR over all thresholds, in [0, 1].

    The threshold is chosen on the scores it is judged by, so the value is above 0 even where nothing
    leaks: by about 0.63 sqrt(1/n + 1/m) for independent notes. Read it with `membership_advantage_interval`.

    Args:
        member_scores, nonmember_scores: one score per note, higher = more member-like.

    Raises:
        InvalidParameter: an arm is empty or holds a value that is not finite.

    Taught in: 10_membership_inference
    """
    return float(_advantages(*_Pooled(member_scores, nonmember_scores).equal())[0])


def membership_advantage_interval(
    member_scores: ArrayLike,
    member_patients: ArrayLike,
    nonmember_scores: ArrayLike,
    nonmember_patients: ArrayLike,
    *,
    draws: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """Return the largest TPR - FPR with a patient-clustered basic bootstrap.

    Basic (2 x estimate - percentiles), because a maximum is biased upward and resampling adds the bias a
    second time: percentile intervals then exclude 0 where nothing leaks. Cut to [0, 1].

    Args:
        member_scores, nonmember_scores: one score per note, higher = more member-like.
        member_patients, nonmember_patients: patient of each note (any labels), as long as the scores.
        draws: bootstrap draws, 1 or more.
        seed: seed of the resampling, 0 or more.
        level: nominal coverage, in (0, 1).

    Raises:
        InvalidParameter: lengths differ, a score is not finite, or an arm has fewer than 2 patients.

    Source: Davison and Hinkley, Bootstrap Methods (1997), section 5.2.1.
    Taught in: 10_membership_inference
    """
    level, pooled = checks.open_unit("level", level), _Pooled(member_scores, nonmember_scores)
    gaps = _replicates(_advantages, pooled, (member_patients, nonmember_patients), draws, seed)
    estimate = float(_advantages(*pooled.equal())[0])
    mirrored = percentile_interval(estimate, 2 * estimate - gaps, level, "")
    # The bias may push both ends below the estimate; the estimate itself stays inside.
    low, high = max(mirrored.low, 0.0), min(max(mirrored.high, estimate), 1.0)
    method = f"patient-clustered basic bootstrap, {draws} draws"
    return Interval(estimate, min(low, estimate), high, level, method)


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

    Args:
        member_scores, nonmember_scores: one score per note, higher = more member-like.
        member_patients, nonmember_patients: patient of each note (any labels), as long as the scores.
        fpr: grid, in (0, 1]; default 60 log-spaced rates from 1 / (non-member notes) to 1.
        draws: bootstrap draws, 1 or more.
        seed: seed of the resampling, 0 or more.
        level: nominal coverage of the band at each rate, in (0, 1).

    Raises:
        InvalidParameter: lengths differ, a score is not finite, or an arm has fewer than 2 patients.

    Taught in: 10_membership_inference
    """
    level, pooled = checks.open_unit("level", level), _Pooled(member_scores, nonmember_scores)
    grid = np.geomspace(1 / pooled.codes[1].size, 1, 60) if fpr is None else checks.rates("fpr", fpr, above=0)

    def heights(member: np.ndarray, nonmember: np.ndarray) -> np.ndarray:
        return _curve_heights(member, nonmember, grid)

    replicates = _replicates(heights, pooled, (member_patients, nonmember_patients), draws, seed)
    low, high = np.percentile(replicates, [50 * (1 - level), 50 * (1 + level)], axis=0)
    method = f"patient-clustered percentile bootstrap, {draws} draws"
    return RocCurve(grid, heights(*pooled.equal())[0], low, high, level, method)
