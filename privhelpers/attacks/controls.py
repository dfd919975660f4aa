"""Where an attack must fail: what it finds there is its error, and too much of it stops the build.

Three nulls serve every attack on membership: a target that was trained on none of the notes, labels permuted
between patients, and held-out patients against other held-out patients.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from privhelpers import rng, stats
from privhelpers.errors import ControlFailed
from privhelpers.stats import Interval

# A book makes a few hundred such checks: at 4.5 standard errors one honest build in about 1,000 stops.
_STANDARD_ERRORS = 4.5


def require_null(what: str, interval: Interval, *, null: float = 0.5) -> None:
    """Refuse a control whose figure is not what chance gives.

    Args:
        what: the attack and its control, for the message.
        interval: of the figure; its width gives the standard error.
        null: what chance gives, 0.5 for an AUC.

    Raises:
        ControlFailed: the figure lies further from `null` than 4.5 standard errors.

    >>> require_null("loss attack, held-out halves", Interval(0.51, 0.47, 0.55, 0.95, "bootstrap"))
    """
    error = (interval.high - interval.low) / (2 * norm.isf((1 - interval.level) / 2))
    if not abs(interval.estimate - null) <= _STANDARD_ERRORS * error:
        raise ControlFailed(
            f"{what}: {interval.estimate:.4f} [{interval.low:.4f}, {interval.high:.4f}] where {null:g} is "
            "expected; look for a difference between the groups other than membership"
        )


def split_by_patient(patients: ArrayLike, seed: int) -> np.ndarray:
    """Return a mask over notes that puts half of the patients, at random, on one side; shape [notes]."""
    names, codes = np.unique(np.asarray(patients), return_inverse=True)
    side = np.zeros(len(names), dtype=bool)
    side[rng.make(seed, "controls/split").permutation(len(names))[: len(names) // 2]] = True
    return side[codes]


def split_auc(scores: ArrayLike, patients: ArrayLike, *, draws: int = 1000, seed: int = 0) -> Interval:
    """Return the AUC of one half of the patients against the other: nothing separates them.

    Args:
        scores: of held-out notes, higher is more member-like, shape [notes].
        patients: patient of each note.
        draws: bootstrap resamples of patients.
        seed: of the split and the bootstrap.
    """
    scores, patients = np.asarray(scores), np.asarray(patients)
    side = split_by_patient(patients, seed)
    halves = (scores[side], patients[side], scores[~side], patients[~side])
    return stats.auc_interval(*halves, draws=draws, seed=seed)


def permuted_auc(
    scores: ArrayLike,
    patients: ArrayLike,
    other_scores: ArrayLike,
    other_patients: ArrayLike,
    *,
    draws: int = 1000,
    seed: int = 0,
) -> Interval:
    """Return the AUC after "member" and "non-member" were dealt to the patients of both groups anew.

    Args:
        scores, patients: of the members' notes.
        other_scores, other_patients: of the non-members' notes; no patient is in both groups.
        draws: bootstrap resamples of patients.
        seed: of the permutation and the bootstrap.
    """
    pooled = np.concatenate([np.asarray(scores), np.asarray(other_scores)])
    owners = np.concatenate([np.asarray(patients), np.asarray(other_patients)])
    return split_auc(pooled, owners, draws=draws, seed=seed)
