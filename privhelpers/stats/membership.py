"""How well a score separates members from non-members, with patient-clustered intervals.

A HIGHER score means MORE member-like: pass the negative loss, not the loss.

>>> auc([0, 4, 6, 7], [1, 2, 3, 5]) == 11 / 16
True
>>> tpr_at_fpr([1, 3], [0, 2], [0, 0.25, 0.5]).tolist()
[0.5, 0.75, 1.0]

Sources: Hanley and McNeil, Radiology 143 (1982), for the area; Yeom et al., CSF 2018, definition 4, for
the advantage; Carlini et al., S&P 2022, section IV, for the true-positive rate at a low false-positive rate.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from privhelpers.errors import InvalidParameter
from privhelpers.stats import checks
from privhelpers.stats.clustered import percentile_interval
from privhelpers.stats.proportions import Interval
from privhelpers.stats.roc import (
    PooledScores,
    advantages,
    areas,
    curve_heights,
    gaps,
    hull_heights,
    replicates,
)


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


def auc(member_scores: ArrayLike, nonmember_scores: ArrayLike) -> float:
    """Return the area under the ROC curve: Pr[member > non-member] + Pr[tie] / 2.

    The plain Mann-Whitney area with ties counted half, not the area under the convex hull, which is larger.

    Args:
        member_scores: score of each member note, higher = more member-like, shape (n,).
        nonmember_scores: score of each non-member note, shape (m,).

    Raises:
        InvalidParameter: an arm is empty or holds a value that is not finite.
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

    Member patients and non-member patients are resampled separately, with all their notes.

    Args:
        member_scores, nonmember_scores: one score per note, higher = more member-like.
        member_patients, nonmember_patients: patient of each note (any labels), as long as the scores.
        draws: bootstrap draws, 1 or more.
        seed: seed of the resampling, 0 or more.
        level: nominal coverage, in (0, 1).

    Raises:
        InvalidParameter: lengths differ, a score is not finite, or an arm has fewer than 2 patients.
    """
    level, pooled = checks.open_unit("level", level), PooledScores(member_scores, nonmember_scores)
    drawn = replicates(areas, pooled, (member_patients, nonmember_patients), draws, seed)
    method = f"patient-clustered percentile bootstrap, {draws} draws"
    return percentile_interval(areas(*pooled.equal())[0], drawn, level, method)


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
    """
    rates = checks.rates("fpr", fpr)
    heights = hull_heights(*PooledScores(member_scores, nonmember_scores).equal(), rates.ravel())[0]
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
    """
    return float(advantages(*PooledScores(member_scores, nonmember_scores).equal())[0])


def membership_advantage_interval(
    member_scores: ArrayLike,
    member_patients: ArrayLike,
    nonmember_scores: ArrayLike,
    nonmember_patients: ArrayLike,
    *,
    draws: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    method: str = "band",
) -> Interval:
    """Return the largest TPR - FPR with a patient-clustered interval.

    A maximum over thresholds is too large on average, and resampling makes it too large once more, so no
    percentiles of it hold the truth as often as they say. The `band` resamples the whole curve of TPR - FPR
    around itself. Its low end is the estimate minus what the curve exceeds the truth by somewhere; its high
    end adds what it falls short by at the worst single threshold. It covers more often than it says.

    Args:
        member_scores, nonmember_scores: one score per note, higher = more member-like.
        member_patients, nonmember_patients: patient of each note (any labels), as long as the scores.
        draws: bootstrap draws, 1 or more.
        seed: seed of the resampling, 0 or more.
        level: nominal coverage, in (0, 1).
        method: `band`, or `basic` (2 x estimate - percentiles), which covers about 0.85 to 0.93 at 0.95.

    Raises:
        InvalidParameter: lengths differ, a score is not finite, an arm has fewer than 2 patients, or the
            method is unknown.

    Source: Davison and Hinkley, Bootstrap Methods (1997), section 5.2.1, for the basic one; the proof of
        the band is in the chapter.
    """
    if method not in ("band", "basic"):
        raise InvalidParameter(f"method = {method!r}: must be band or basic")
    level, pooled = checks.open_unit("level", level), PooledScores(member_scores, nonmember_scores)
    curve = gaps(*pooled.equal())[0]
    drawn = replicates(gaps, pooled, (member_patients, nonmember_patients), draws, seed)
    estimate, tail = max(float(curve.max()), 0.0), (1 - level) / 2
    if method == "basic":
        low, high = 2 * estimate - np.quantile(np.maximum(drawn.max(axis=1), 0), [1 - tail, tail])
    else:
        drawn -= curve
        low = estimate - np.quantile(drawn.max(axis=1), 1 - tail)
        high = estimate - np.quantile(drawn, tail, axis=0).min()
    # The bias may push both ends below the estimate; the estimate itself stays inside.
    low, high = min(max(low, 0.0), estimate), min(max(high, estimate), 1.0)
    return Interval(
        estimate, float(low), float(high), level, f"patient-clustered {method} bootstrap, {draws} draws"
    )


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
    """
    level, pooled = checks.open_unit("level", level), PooledScores(member_scores, nonmember_scores)
    grid = np.geomspace(1 / pooled.codes[1].size, 1, 60) if fpr is None else checks.rates("fpr", fpr, above=0)

    def heights(member: np.ndarray, nonmember: np.ndarray) -> np.ndarray:
        return curve_heights(member, nonmember, grid)

    drawn = replicates(heights, pooled, (member_patients, nonmember_patients), draws, seed)
    low, high = np.percentile(drawn, [50 * (1 - level), 50 * (1 + level)], axis=0)
    method = f"patient-clustered percentile bootstrap, {draws} draws"
    return RocCurve(grid, heights(*pooled.equal())[0], low, high, level, method)
