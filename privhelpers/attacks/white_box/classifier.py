"""Learn on a fifth of the patients what membership looks like, and be measured on the others.

A white-box attacker knows for some texts whether they were trained on. From these a logistic regression
learns; its figures count on patients that it has not seen, members and others alike.
"""

import numpy as np
from numpy.typing import ArrayLike
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from privhelpers import rng, validate
from privhelpers.attacks.scores import Arms
from privhelpers.errors import InvalidParameter


def known_to_attacker(patients: ArrayLike, *, share: float = 0.2, seed: int = 0) -> np.ndarray:
    """Return which notes the attacker learns from: those of a share of the patients, shape [notes].

    Args:
        patients: patient of each note.
        share: of the patients, in (0, 1]; two at least, and one at least is left to be measured.
        seed: of the draw.
    """
    validate.probability(share=share)
    names, codes = np.unique(np.asarray(patients), return_inverse=True)
    if len(names) < 4:
        raise InvalidParameter(f"patients: {len(names)} are too few to learn from some and measure on others")
    taken = min(max(2, round(share * len(names))), len(names) - 2)
    chosen = np.zeros(len(names), dtype=bool)
    chosen[rng.make(seed, "white box/known").permutation(len(names))[:taken]] = True
    return chosen[codes]


def learned_attack(
    features: np.ndarray,
    patients: ArrayLike,
    other_features: np.ndarray,
    other_patients: ArrayLike,
    *,
    share: float = 0.2,
    seed: int = 0,
) -> Arms:
    """Train a standardized logistic regression on a share of the patients and score the others' notes.

    Args:
        features, patients: of the members' notes, shape [notes, numbers] and [notes].
        other_features, other_patients: of the non-members' notes.
        share, seed: as in `known_to_attacker`, for each group.

    Source: Jagannatha et al. 2021, section 5.1.
    """
    arms = [(np.asarray(features, float), patients), (np.asarray(other_features, float), other_patients)]
    for name, (values, _) in zip(("features", "other_features"), arms, strict=True):
        if values.ndim != 2 or not np.isfinite(values).all():
            raise InvalidParameter(f"{name}: must be finite numbers of shape [notes, numbers]")
    known = [known_to_attacker(owners, share=share, seed=seed) for _, owners in arms]
    learnt = np.concatenate([values[k] for (values, _), k in zip(arms, known, strict=True)])
    labels = np.repeat([1, 0], [int(k.sum()) for k in known])
    # Balanced: the attack does not know how many members there are, and its threshold must not depend on it.
    regression = LogisticRegression(max_iter=2000, class_weight="balanced")
    attack = make_pipeline(StandardScaler(), regression).fit(learnt, labels)
    found = [
        (attack.decision_function(values[~k]), np.asarray(owners)[~k])
        for (values, owners), k in zip(arms, known, strict=True)
    ]
    return Arms(*found[0], *found[1], threshold=0.0)


def loss_attack(
    losses: ArrayLike,
    patients: ArrayLike,
    other_losses: ArrayLike,
    other_patients: ArrayLike,
    *,
    share: float = 0.2,
    seed: int = 0,
) -> Arms:
    """Return the loss attack's scores of the notes that `learned_attack` is measured on.

    Its threshold is the mean loss of all members (S-BBA): it learns from nobody, but is measured on the same.

    Args:
        losses, patients: of the members' notes, in nats per token.
        other_losses, other_patients: of the non-members' notes.
        share, seed: as in `known_to_attacker`.

    Source: Yeom et al. 2018, section 3.3; Jagannatha et al. 2021, section 4.1.1.
    """
    found = []
    for values, owners in ((losses, patients), (other_losses, other_patients)):
        rest = ~known_to_attacker(owners, share=share, seed=seed)
        found += [-np.asarray(values, float)[rest], np.asarray(owners)[rest]]
    return Arms(*found, threshold=-float(np.mean(losses)))
