"""A permutation test that deals out whole patients: exact without a formula for the spread.

If nothing leaks, "member" and "never trained on" are labels that might as well lie on other patients. So
they are dealt anew, patient by patient with all notes, and the measured difference is held against those.
"""

import numpy as np
from numpy.typing import ArrayLike

from privhelpers import rng
from privhelpers.stats import _checks, checks
from privhelpers.stats.roc import PooledScores, areas

BLOCK = 4_000_000  # cells held at once


def permutation_auc(
    member_scores: ArrayLike,
    member_patients: ArrayLike,
    nonmember_scores: ArrayLike,
    nonmember_patients: ArrayLike,
    *,
    draws: int = 1000,
    seed: int = 0,
) -> float:
    """Return the p-value of an area of one half, from dealing membership to whole patients anew.

    Args:
        member_scores, nonmember_scores: one score per note, higher = more member-like.
        member_patients, nonmember_patients: patient of each note; no patient is in both arms.
        draws: dealings, 1 or more; the least p-value is 1 / (draws + 1).
        seed: of the dealings, 0 or more.

    Raises:
        InvalidParameter: lengths differ, a score is not finite, an arm has fewer than 2 patients, or a
            patient is in both arms.

    Source: Phipson and Smyth, Stat. Appl. Genet. Mol. Biol. 9 (2010), for the 1 that is added.
    """
    draws, pooled = checks.count("draws", draws, low=1), PooledScores(member_scores, nonmember_scores)
    codes_a, count_a = checks.cluster_codes("member_patients", member_patients, pooled.codes[0].size)
    codes_b, count_b = checks.cluster_codes("nonmember_patients", nonmember_patients, pooled.codes[1].size)
    _checks.no_common("member_patients", member_patients, "nonmember_patients", nonmember_patients)
    owners, groups = np.concatenate([codes_a, count_a + codes_b]), np.concatenate(pooled.codes)
    generator, clusters = rng.make(seed, "stats.permutation"), count_a + count_b
    dealt, step = [], max(1, BLOCK // owners.size)
    for start in range(0, draws, step):
        size = min(step, draws - start)
        # Which patients each dealing makes members, then which notes.
        order = generator.random((size, clusters)).argsort(axis=1)
        labels = (order < count_a).astype(np.float64)[:, owners]
        cells = (groups + pooled.groups * np.arange(size)[:, None]).ravel()
        arms = (
            np.bincount(cells, weights=side.ravel(), minlength=pooled.groups * size).reshape(size, -1)
            for side in (labels, 1 - labels)
        )
        dealt.append(areas(*arms))
    real, dealt = areas(*pooled.equal())[0], np.concatenate(dealt)
    # Rounding must not make a dealing that repeats the real one look less extreme than it.
    far = np.abs(dealt - 0.5) >= abs(real - 0.5) * (1 - 1e-12) - 1e-15
    return float((1 + far.sum()) / (1 + dealt.size))
