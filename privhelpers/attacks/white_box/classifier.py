"""Learn on a fifth of the patients what membership looks like, and be measured on the others.

A white-box attacker knows for some texts whether they were trained on. From these a logistic regression
learns; its figures count on patients that it has not seen, members and others alike.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from privhelpers import rng, stats, validate
from privhelpers.attacks import controls
from privhelpers.errors import InvalidParameter
from privhelpers.stats import Interval


@dataclass(frozen=True)
class Scored:
    """The scores of notes whose patients the attack did not learn from; higher is more member-like.

    Attributes:
        scores, patients: of the members' notes, shape [notes].
        other_scores, other_patients: of the non-members' notes.
        threshold: from which score on the attack says "member".
    """

    scores: np.ndarray
    patients: np.ndarray
    other_scores: np.ndarray
    other_patients: np.ndarray
    threshold: float

    @property
    def arms(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """What the functions of `stats` take."""
        return self.scores, self.patients, self.other_scores, self.other_patients


@dataclass(frozen=True)
class Measured:
    """What an attack reaches, with intervals over patients.

    Attributes:
        auc: area under the ROC curve.
        advantage: true positive rate minus false positive rate at the attack's own threshold, the
            "privacy leakage" of Jagannatha et al. 2021.
        tpr_at_1pct_fpr: true positive rate at 1 % false positives.
        notes, patients: scored, members and others together.
        scored: what was measured.
    """

    auc: Interval
    advantage: Interval
    tpr_at_1pct_fpr: Interval
    notes: int
    patients: int
    scored: Scored = field(repr=False)

    def as_dict(self) -> dict[str, object]:
        """Return plain values; an interval is [estimate, low, high]."""
        return {name: as_plain(value) for name, value in vars(self).items() if name != "scored"}


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
) -> Scored:
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
    return Scored(*found[0], *found[1], threshold=0.0)


def loss_attack(
    losses: ArrayLike,
    patients: ArrayLike,
    other_losses: ArrayLike,
    other_patients: ArrayLike,
    *,
    share: float = 0.2,
    seed: int = 0,
) -> Scored:
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
    return Scored(*found, threshold=-float(np.mean(losses)))


def permuted_attack(
    features: np.ndarray,
    patients: ArrayLike,
    other_features: np.ndarray,
    other_patients: ArrayLike,
    *,
    share: float = 0.2,
    seed: int = 0,
) -> Scored:
    """Return `learned_attack` after "member" was dealt anew to the patients of both groups: a null.

    Args:
        features, patients, other_features, other_patients, share, seed: as in `learned_attack`.
    """
    pooled = np.concatenate([features, other_features])
    owners = np.concatenate([np.asarray(patients), np.asarray(other_patients)])
    side = controls.split_by_patient(owners, seed)
    return learned_attack(pooled[side], owners[side], pooled[~side], owners[~side], share=share, seed=seed)


def halves_attack(
    other_features: np.ndarray, other_patients: ArrayLike, *, share: float = 0.2, seed: int = 0
) -> Scored:
    """Return `learned_attack` of one half of the non-members' patients against the other half: a null.

    Args:
        other_features, other_patients: of the non-members' notes.
        share, seed: as in `learned_attack`.
    """
    values, owners = np.asarray(other_features), np.asarray(other_patients)
    side = controls.split_by_patient(owners, seed)
    return learned_attack(values[side], owners[side], values[~side], owners[~side], share=share, seed=seed)


def measure(scored: Scored, *, draws: int = 1000, seed: int = 0) -> Measured:
    """Return AUC, advantage and true positive rate at 1 % false positives, with intervals over patients.

    Args:
        scored: of an attack.
        draws: bootstrap resamples of patients.
        seed: of the resampling.
    """
    resampling = {"draws": draws, "seed": seed}
    member = np.repeat([True, False], [len(scored.scores), len(scored.other_scores)])
    said = np.concatenate([scored.scores, scored.other_scores]) >= scored.threshold
    owners = np.concatenate([scored.patients.astype(str), scored.other_patients.astype(str)])

    def advantage(said: np.ndarray, member: np.ndarray) -> float:
        return float(said[member].mean() - said[~member].mean())

    return Measured(
        auc=stats.auc_interval(*scored.arms, **resampling),
        advantage=stats.clustered_bootstrap(advantage, owners, said, member, **resampling),
        tpr_at_1pct_fpr=stats.tpr_at_fpr_interval(*scored.arms, fpr=0.01, **resampling),
        notes=len(said),
        patients=len(np.unique(owners)),
        scored=scored,
    )


def as_plain(value: object) -> object:
    """Return a value in the form of a file: an interval as [estimate, low, high], an attack as its figures.

    Args:
        value: an interval, what an attack reached, or mappings and lists of them, at any depth.
    """
    if isinstance(value, Interval):
        return [value.estimate, value.low, value.high]
    if isinstance(value, Measured):
        return value.as_dict()
    if isinstance(value, Mapping):
        return {key: as_plain(own) for key, own in value.items()}
    return [as_plain(own) for own in value] if isinstance(value, (list, tuple)) else value
