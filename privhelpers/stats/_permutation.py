"""Permutation tests on whole patients: exact, with no formula for the spread.

If nothing leaks, "member" and "never trained on" are exchangeable labels. So the labels are permuted, each
patient with all their notes, and the measured difference is compared with the permuted ones.
"""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import rankdata

from privhelpers import rng, validate
from privhelpers.errors import InvalidParameter
from privhelpers.stats import checks

BLOCK = 4_000_000  # cells held at once
SLACK = 1e-12  # rounding must not make a permutation that repeats the real labels look less extreme
_WHOLE = 1e-9  # 0.29 of 100 is 29, and 28.999999999999996 in floating point


def permutation_test(
    statistic: Callable[[np.ndarray], np.ndarray],
    member: ArrayLike,
    *,
    draws: int = 1000,
    seed: int = 0,
    cells: int | None = None,
) -> np.ndarray:
    """Return the p-value of each statistic, from permutations of the labels of the patients.

    Args:
        statistic: takes labels of shape [permutations, patients] and returns [permutations, statistics],
            larger for more evidence; values that differ by less than 1e-12, or by less than that
            share of the real one, count as equal.
        member: the real label of each patient.
        draws: permutations, 1 to 10 million; the least p-value is 1 / (draws + 1).
        seed: of the permutations, 0 or more.
        cells: numbers that one permutation takes in memory; by default one a patient.

    Raises:
        InvalidParameter: a value is out of its range, or `statistic` is not a function.

    Source: Phipson and Smyth, Stat. Appl. Genet. Mol. Biol. 9 (2010), for the 1 that is added.

    >>> scores = np.arange(40.0)
    >>> permutation_test(lambda labels: labels @ scores[:, None], scores >= 20, draws=99)
    array([0.01])
    """
    validate.function(statistic=statistic)
    draws, member = checks.draws(draws), checks.vector("member", member).astype(bool)
    cells = member.size if cells is None else validate.positive_int(cells=cells)
    generator, step = rng.make(seed, "stats.permutation"), max(1, BLOCK // cells)
    real, as_extreme = statistic(member[None])[0], 0
    least = real - SLACK * np.maximum(1, np.abs(real))
    for start in range(0, draws, step):
        size = min(step, draws - start)
        permuted = generator.permuted(np.broadcast_to(member, (size, member.size)), axis=1)
        as_extreme = as_extreme + (statistic(permuted) >= least).sum(axis=0)
    return (1 + as_extreme) / (1 + draws)


def permutation_scores(
    scores: ArrayLike, member: ArrayLike, *, fpr: float = 0.01, draws: int = 1000, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Return two one-sided p-values of each attack: of its AUC, and of its hits at a low false-positive rate.

    Args:
        scores: one row a patient, one column an attack; higher is more member-like.
        member: whether each patient is a member, shape [patients].
        fpr: share of the non-members that the second test lets an attacker accuse, in (0, 1).
        draws, seed: as of `permutation_test`. Equal scores count as in random order, on average.

    Raises:
        InvalidParameter: shapes differ, a score is not a number, or all patients are of one kind.
    """
    scores, member = validate.array("scores", scores, float), validate.array("member", member, bool)
    fits = scores.ndim == 2 and scores.size and member.shape == scores.shape[:1]
    fits = fits and 0 < member.sum() < member.size
    if not fits or np.isnan(scores).any():
        raise InvalidParameter(
            "scores, member: need numbers and a label for each patient, with patients of both kinds"
        )
    members, others = int(member.sum()), int((~member).sum())
    allowed = min(math.floor(validate.open_unit(fpr=fpr) * others + _WHOLE), others - 1)
    ranks = rankdata(scores, axis=0) / (members * others)  # their sum grows as the AUC does
    columns = [_ordered(column) for column in scores.T]
    top = 8 * (allowed + 8)  # ranks that usually contain that many non-members

    def hits(labels: np.ndarray, order: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
        """Return how many members rank above the first non-member beyond those allowed.

        Of m members and n non-members with the score of that one, in random order, a share of
        (r + 1) / (n + 1) of the members is expected before it, if r of these non-members are allowed.
        """
        seen = ends[min(top, member.size) - 1]
        wrong = np.cumsum(~labels[:, order[:seen]], axis=1, dtype=np.int32)
        if not (wrong[:, -1] > allowed).all():
            wrong = np.cumsum(~labels[:, order], axis=1, dtype=np.int32)
        place, rows = (wrong > allowed).argmax(axis=1), np.arange(len(labels))
        start, end = starts[place], ends[place]
        before = np.where(start > 0, wrong[rows, start - 1], 0)
        equal = wrong[rows, end - 1] - before
        return start - before + (end - start - equal) * (allowed - before + 1) / (equal + 1)

    def both(labels: np.ndarray) -> np.ndarray:
        return np.hstack([labels @ ranks, np.stack([hits(labels, *one) for one in columns], axis=1)])

    p = permutation_test(both, member, draws=draws, seed=seed)
    return p[: len(columns)], p[len(columns) :]


def _ordered(column: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the order of scores, highest first, and the first and last place of each tie."""
    order = np.argsort(-column, kind="stable")
    _, group, sizes = np.unique(-column, return_inverse=True, return_counts=True)
    ends = np.cumsum(sizes)[group[order]]
    return order, ends - sizes[group[order]], ends
