"""Permutation tests that deal out whole clusters: exact without a formula for the spread.

If nothing leaks, "member" and "never trained on" are labels that might as well lie on other patients. So
they are dealt anew, patient by patient with all notes, and the measured difference is held against those.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from privhelpers import rng
from privhelpers.stats import checks
from privhelpers.stats.roc import PooledScores, areas

BLOCK = 4_000_000  # cells held at once


@dataclass(frozen=True)
class Permutation:
    """The outcome of a permutation test.

    Attributes:
        estimate: the statistic of the labels as they are.
        p_value: share of dealings at least as far from the null, the real one included; never 0.
        draws: dealings tried.
        clusters: clusters that were dealt to.
    """

    estimate: float
    p_value: float
    draws: int
    clusters: int


def _outcome(estimate: float, dealt: np.ndarray, null: float, clusters: int) -> Permutation:
    # Rounding must not make a dealing that repeats the real one look less extreme than it.
    far = np.abs(dealt - null) >= abs(estimate - null) * (1 - 1e-12) - 1e-15
    return Permutation(float(estimate), float((1 + far.sum()) / (1 + dealt.size)), dealt.size, clusters)


def _dealt_labels(in_a: int, clusters: int, draws: int, generator: np.random.Generator) -> np.ndarray:
    """Return which clusters each dealing puts in arm a, shape (draws, clusters)."""
    order = generator.random((draws, clusters)).argsort(axis=1)
    return (order < in_a).astype(np.float64)


def permutation_difference(
    values_a: ArrayLike,
    clusters_a: ArrayLike,
    values_b: ArrayLike,
    clusters_b: ArrayLike,
    *,
    draws: int = 2000,
    seed: int = 0,
) -> Permutation:
    """Test mean(a) - mean(b) by dealing the arms to whole clusters anew.

    Args:
        values_a, values_b: one number per observation of each arm.
        clusters_a, clusters_b: cluster of each observation; no cluster is in both arms.
        draws: dealings, 1 or more; the least p-value is 1 / (draws + 1).
        seed: of the dealings, 0 or more.

    Raises:
        InvalidParameter: lengths differ, a value is not finite, an arm has fewer than 2 clusters, or a
            cluster is in both arms.

    Source: Phipson and Smyth, Stat. Appl. Genet. Mol. Biol. 9 (2010), for the 1 that is added.
    """
    draws = checks.count("draws", draws, low=1)
    a, b = checks.vector("values_a", values_a), checks.vector("values_b", values_b)
    codes_a, count_a = checks.cluster_codes("clusters_a", clusters_a, a.size)
    codes_b, count_b = checks.cluster_codes("clusters_b", clusters_b, b.size)
    checks.no_common("clusters_a", clusters_a, "clusters_b", clusters_b)
    sums = np.concatenate([np.bincount(codes_a, weights=a), np.bincount(codes_b, weights=b)])
    sizes = np.concatenate([np.bincount(codes_a), np.bincount(codes_b)])
    generator, clusters = rng.make(seed, "stats.permutation"), count_a + count_b
    dealt, step = [], max(1, BLOCK // clusters)
    for start in range(0, draws, step):
        labels = _dealt_labels(count_a, clusters, min(step, draws - start), generator)
        inside, notes = labels @ sums, labels @ sizes
        dealt.append(inside / notes - (sums.sum() - inside) / (sizes.sum() - notes))
    return _outcome(a.mean() - b.mean(), np.concatenate(dealt), 0.0, clusters)


def permutation_auc(
    member_scores: ArrayLike,
    member_patients: ArrayLike,
    nonmember_scores: ArrayLike,
    nonmember_patients: ArrayLike,
    *,
    draws: int = 1000,
    seed: int = 0,
) -> Permutation:
    """Test an area under the ROC curve against one half by dealing membership to whole patients anew.

    Args:
        member_scores, nonmember_scores: one score per note, higher = more member-like.
        member_patients, nonmember_patients: patient of each note; no patient is in both arms.
        draws: dealings, 1 or more.
        seed: of the dealings, 0 or more.

    Raises:
        InvalidParameter: lengths differ, a score is not finite, an arm has fewer than 2 patients, or a
            patient is in both arms.
    """
    draws, pooled = checks.count("draws", draws, low=1), PooledScores(member_scores, nonmember_scores)
    codes_a, count_a = checks.cluster_codes("member_patients", member_patients, pooled.codes[0].size)
    codes_b, count_b = checks.cluster_codes("nonmember_patients", nonmember_patients, pooled.codes[1].size)
    checks.no_common("member_patients", member_patients, "nonmember_patients", nonmember_patients)
    owners, groups = np.concatenate([codes_a, count_a + codes_b]), np.concatenate(pooled.codes)
    generator, clusters = rng.make(seed, "stats.permutation"), count_a + count_b
    dealt, step = [], max(1, BLOCK // owners.size)
    for start in range(0, draws, step):
        size = min(step, draws - start)
        labels = _dealt_labels(count_a, clusters, size, generator)[:, owners]
        cells = (groups + pooled.groups * np.arange(size)[:, None]).ravel()
        arms = (
            np.bincount(cells, weights=side.ravel(), minlength=pooled.groups * size).reshape(size, -1)
            for side in (labels, 1 - labels)
        )
        dealt.append(areas(*arms))
    return _outcome(areas(*pooled.equal())[0], np.concatenate(dealt), 0.5, clusters)


def sign_flip(
    differences: ArrayLike, clusters: ArrayLike, *, draws: int = 2000, seed: int = 0
) -> Permutation:
    """Test the mean of paired differences by swapping the two measurements of whole clusters.

    Args:
        differences: first measurement minus second of each observation, shape (n,).
        clusters: cluster of each observation (any labels), shape (n,).
        draws: swaps, 1 or more; with few clusters no p-value is below 2 ** (1 - clusters).
        seed: of the swaps, 0 or more.

    Raises:
        InvalidParameter: lengths differ, a difference is not finite, or there are fewer than 2 clusters.

    >>> sign_flip([1, 1, 1, 1], ["a", "b", "c", "d"], draws=4000).p_value > 0.1
    True
    """
    draws, gaps = checks.count("draws", draws, low=1), checks.vector("differences", differences)
    codes, count = checks.cluster_codes("clusters", clusters, gaps.size)
    sums = np.bincount(codes, weights=gaps, minlength=count)
    generator = rng.make(seed, "stats.sign_flip")
    dealt, step = [], max(1, BLOCK // count)
    for start in range(0, draws, step):
        signs = generator.integers(2, size=(min(step, draws - start), count)) * 2 - 1
        dealt.append(signs @ sums / gaps.size)
    return _outcome(gaps.mean(), np.concatenate(dealt), 0.0, count)
