"""Estimates that can be compared between the cells of the factorial.

All cells are measured on the same people, so one resample of the people serves every cell, and a contrast of
cells has an interval of its own. It covers the choice of patients, not the draw of training: each cell is
trained once.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from privhelpers import rng
from privhelpers.stats import Interval, checks, roc
from privhelpers.stats.clustered import percentile_interval, weight_blocks, widen_point_interval


@dataclass(frozen=True)
class Resampled:
    """A number of one cell, with what it would have been on other people.

    Attributes:
        estimate: on these people.
        replicates: on each resample of them, shape [draws]; the same resamples in every cell.
        n: observations behind it, of both arms together.
        patients: of an area: the patient of each note, of each arm.
    """

    estimate: float
    replicates: np.ndarray
    n: int
    patients: tuple[ArrayLike, ...] = field(default=(), repr=False, compare=False)

    def interval(self, level: float = 0.95) -> Interval:
        """Return the percentile interval; of an area that no draw changes, exact ends."""
        method = f"cluster bootstrap, {self.replicates.size} draws"
        found = percentile_interval(self.estimate, self.replicates, level, method)
        return widen_point_interval(found, *self.patients) if self.patients else found


def resampled_auc(
    member_scores: ArrayLike,
    member_patients: ArrayLike,
    other_scores: ArrayLike,
    other_patients: ArrayLike,
    *,
    draws: int = 300,
    seed: int = 0,
) -> Resampled:
    """Return an AUC; its replicates are paired with other cells' if the patients are in the same order.

    Args:
        member_scores, member_patients: of notes trained on, higher is more member-like.
        other_scores, other_patients: of notes of never-trained patients.
        draws: resamples of patients.
        seed: of the resampling, the same for all cells.
    """
    pooled = roc.PooledScores(member_scores, other_scores)
    patients = member_patients, other_patients
    drawn = roc.replicates(roc.areas, pooled, patients, draws, seed)
    return Resampled(float(roc.areas(*pooled.equal())[0]), drawn, sum(map(np.size, pooled.codes)), patients)


def resampled_difference(
    values: ArrayLike,
    clusters: ArrayLike,
    control: ArrayLike,
    control_clusters: ArrayLike,
    *,
    draws: int = 300,
    seed: int = 0,
) -> Resampled:
    """Return the mean of `values` minus the mean of the control, each arm resampled by clusters.

    Args:
        values, clusters: of the trained arm: numbers, or 0 and 1 for a rate.
        control, control_clusters: of the never-trained arm.
        draws, seed: as of `resampled_auc`.
    """
    arms = [checks.vector(n, v) for n, v in (("values", values), ("control", control))]
    groups = (("clusters", clusters), ("control_clusters", control_clusters))
    owners = [checks.cluster_codes(*group, arm.size) for group, arm in zip(groups, arms, strict=True)]
    generator = rng.make(seed, "factorial/difference")
    blocks = weight_blocks(owners, checks.draws(draws), generator)
    drawn = [(a @ arms[0]) / a.sum(1) - (b @ arms[1]) / b.sum(1) for a, b in blocks]
    return Resampled(float(arms[0].mean() - arms[1].mean()), np.concatenate(drawn), sum(a.size for a in arms))


def resampled_mean(
    values: ArrayLike, weights: ArrayLike, clusters: ArrayLike, *, draws: int = 300, seed: int = 0
) -> Resampled:
    """Return a weighted mean, such as the loss per token over a set of notes: the log of its perplexity.

    Args:
        values: one a note.
        weights: such as tokens of the note, greater than 0.
        clusters: patient of each note.
        draws, seed: as of `resampled_auc`.
    """
    values, weights = checks.vector("values", values), checks.vector("weights", weights)
    owners = [checks.cluster_codes("clusters", clusters, values.size)]
    blocks = weight_blocks(owners, checks.draws(draws), rng.make(seed, "factorial/mean"))
    drawn = [(w @ (weights * values)) / (w @ weights) for (w,) in blocks]
    return Resampled(float(np.average(values, weights=weights)), np.concatenate(drawn), values.size)
