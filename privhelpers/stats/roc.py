"""The arithmetic of ROC curves on weighted scores: sort once, then every bootstrap draw is a few sums.

Each function takes the weight of members and of non-members in every tie group, shape (draws, groups),
most member-like group first, and answers for all draws at once.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from privhelpers import rng
from privhelpers.stats import checks
from privhelpers.stats.clustered import weight_blocks


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
    """Return the largest TPR - FPR of each draw; 0 where accepting nobody is best.

    The threshold is chosen on the scores it is judged by, so the value is above 0 even where nothing leaks:
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
