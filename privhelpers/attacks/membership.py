"""Membership inference: one threshold, all thresholds with intervals, levels, and controls.

A score is HIGHER for what looks more like a member, such as minus the loss of a note.

>>> result = yeom_attack([0.2, 0.4], [0.25, 2.0])
>>> result.true_positive_rate, result.false_positive_rate, result.membership_advantage
(0.5, 0.5, 0.0)
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from privhelpers import stats
from privhelpers.attacks import controls, groups
from privhelpers.errors import InvalidParameter
from privhelpers.stats import Interval, roc

LOW_RATES = (0.001, 0.01)  # false-positive rates at which an accusation may matter


@dataclass(frozen=True)
class ThresholdAttack:
    """An attack that says "member" when the loss is below the mean training loss.

    Attributes:
        threshold: mean loss of the members' notes, nats per token.
        true_positive_rate, false_positive_rate: shares of members and non-members called members.
        membership_advantage: their difference, in [-1, 1].
    """

    threshold: float
    true_positive_rate: float
    false_positive_rate: float
    membership_advantage: float


def yeom_attack(
    member_losses: Sequence[float], nonmember_losses: Sequence[float], *, threshold: float | None = None
) -> ThresholdAttack:
    """Attack with the mean training loss as the threshold, which a model's owner often publishes.

    With losses of single notes this is S-BBA; with mean losses of admissions or patients, and the
    threshold of the notes, A-BBA and P-BBA. The advantage is the leakage Pr[A=0|b=0] - Pr[A=0|b=1],
    where b = 0 stands for a member and A = 0 for the answer "member".

    Args:
        member_losses, nonmember_losses: mean loss of each note or group, nats per token.
        threshold: default, the mean of `member_losses`.

    Source: Yeom et al. 2018, section 3.3; named S-BBA by Jagannatha et al. 2021, section 4.1.
    """
    members, others = np.asarray(member_losses, float), np.asarray(nonmember_losses, float)
    for name, values in (("member_losses", members), ("nonmember_losses", others)):
        if values.size == 0 or not np.isfinite(values).all():
            raise InvalidParameter(f"{name}: must be one or more finite numbers")
    threshold = float(members.mean()) if threshold is None else float(threshold)
    true_positive, false_positive = float(np.mean(members < threshold)), float(np.mean(others < threshold))
    return ThresholdAttack(threshold, true_positive, false_positive, true_positive - false_positive)


@dataclass(frozen=True)
class Arms:
    """The scores of one attack at one level, and whose they are.

    Attributes:
        member_scores, member_patients: of the notes, or patients, that were trained on.
        other_scores, other_patients: of those that were not.
    """

    member_scores: np.ndarray
    member_patients: np.ndarray
    other_scores: np.ndarray
    other_patients: np.ndarray

    def only(self, patients: Collection[str]) -> "Arms":
        """Return the arms of these patients alone."""
        keep = [np.isin(own, list(patients)) for own in (self.member_patients, self.other_patients)]
        return Arms(
            self.member_scores[keep[0]],
            self.member_patients[keep[0]],
            self.other_scores[keep[1]],
            self.other_patients[keep[1]],
        )

    def by_patient(self) -> "Arms":
        """Return one score a patient, the mean over the patient's notes."""
        return Arms(
            *groups.group_means(self.member_scores, self.member_patients),
            *groups.group_means(self.other_scores, self.other_patients),
        )

    @property
    def values(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The four arrays in the order that `stats` takes them."""
        return self.member_scores, self.member_patients, self.other_scores, self.other_patients


def split(scores: ArrayLike, patients: ArrayLike, member: ArrayLike) -> Arms:
    """Return the arms of scores that stand in one array, by whether each is a member's."""
    scores, patients, member = np.asarray(scores, dtype=float), np.asarray(patients), np.asarray(member, bool)
    return Arms(scores[member], patients[member], scores[~member], patients[~member])


def by_note(ids: ArrayLike, values: ArrayLike) -> dict[str, float]:
    """Return values by the identifier of their note, rounded to six decimals for a file."""
    rounded = np.round(np.asarray(values, dtype=float), 6).tolist()
    return dict(zip(np.asarray(ids).tolist(), rounded, strict=True))


def levels(scores: ArrayLike, notes: Sequence[dict], member: ArrayLike) -> dict[str, Arms]:
    """Return the arms of single notes (`sample`), of admissions and of patients, each the mean of its notes.

    Args:
        scores: one a note.
        notes: with `patient_id` and `admission`.
        member: whether each note was trained on; no patient has notes on both sides.

    Source: Jagannatha, Rawat and Yu 2021, section 4.1.1, group-level attack.
    """
    sample = split(scores, groups.patients(notes), member)
    means, names = groups.group_means(scores, groups.admissions(notes))
    owners = np.array([name.rpartition("/")[0] for name in names])
    inside = np.isin(owners, sample.member_patients)
    admission = split(means, owners, inside)
    return {"sample": sample, "admission": admission, "patient": sample.by_patient()}


def advantage_interval(
    member_losses: ArrayLike,
    member_patients: ArrayLike,
    nonmember_losses: ArrayLike,
    nonmember_patients: ArrayLike,
    *,
    threshold: float,
    draws: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Interval:
    """Return the advantage at one threshold, as of `yeom_attack`, with a patient-clustered interval.

    The answers "member" and "non-member" are scores of two values, and the area under the ROC curve of
    such scores is (1 + TPR - FPR) / 2.

    Args:
        member_losses, member_patients: of notes or groups that were trained on.
        nonmember_losses, nonmember_patients: of the others.
        threshold: below it the answer is "member"; taken as known, not as estimated.
        draws, seed, level: as of `measure`.
    """
    answers = [np.asarray(losses) < threshold for losses in (member_losses, nonmember_losses)]
    area = stats.auc_interval(
        answers[0], member_patients, answers[1], nonmember_patients, draws=draws, seed=seed, level=level
    )
    ends = (2 * value - 1 for value in (area.estimate, area.low, area.high))
    return Interval(*ends, level, area.method)


@dataclass(frozen=True)
class Measured:
    """What an attack achieves at one level.

    Attributes:
        auc: area under the ROC curve, ties counted half (Mann-Whitney).
        tpr_at_01pct_fpr, tpr_at_1pct_fpr: true-positive rate at 0.1 % and 1 % false positives.
        advantage: largest TPR - FPR, its threshold chosen on these scores: above 0 by chance alone.
        n: scores of members and of others.
    """

    auc: Interval
    tpr_at_01pct_fpr: Interval
    tpr_at_1pct_fpr: Interval
    advantage: float
    n: tuple[int, int]

    def as_json(self) -> dict:
        """Return plain values: estimate, low and high of each rate."""
        rates = {name: getattr(self, name) for name in ("auc", "tpr_at_01pct_fpr", "tpr_at_1pct_fpr")}
        found = {name: [rate.estimate, rate.low, rate.high] for name, rate in rates.items()}
        return {**found, "advantage": self.advantage, "n": list(self.n)}


def measure(arms: Arms, *, draws: int = 1000, seed: int = 0, level: float = 0.95) -> Measured:
    """Measure one attack with patient-clustered intervals, all from the same resampled patients.

    Args:
        arms: scores of members and others, with their patients.
        draws: bootstrap resamples of patients, 1 or more.
        seed: of the resampling.
        level: nominal coverage, in (0, 1).
    """
    pooled = roc.PooledScores(arms.member_scores, arms.other_scores)

    def figures(member: np.ndarray, other: np.ndarray) -> np.ndarray:
        heights = roc.curve_heights(member, other, np.array(LOW_RATES))
        return np.column_stack([roc.areas(member, other), heights])

    drawn = roc.replicates(figures, pooled, (arms.member_patients, arms.other_patients), draws, seed)
    ends = np.percentile(drawn, [50 * (1 - level), 50 * (1 + level)], axis=0)
    method = f"patient-clustered percentile bootstrap, {draws} draws"
    equal = pooled.equal()
    rows = zip(figures(*equal)[0], *ends, strict=True)
    auc, low, one = (Interval(float(e), float(lo), float(hi), level, method) for e, lo, hi in rows)
    advantage = float(roc.advantages(*equal)[0])
    return Measured(auc, low, one, advantage, (arms.member_scores.size, arms.other_scores.size))


def table(measured: Mapping[tuple[str, str], Measured]) -> pd.DataFrame:
    """Return a row for each attack and level: AUC and true-positive rates with their intervals."""
    rows = {}
    for key, one in measured.items():
        found = one.as_json()
        rows[key] = [*found["auc"], *found["tpr_at_1pct_fpr"], *found["tpr_at_01pct_fpr"]]
    names = ("AUC", "TPR at 1 % FPR", "TPR at 0.1 %")
    columns = [f"{name}{end}" for name in names for end in ("", " low", " high")]
    return pd.DataFrame.from_dict(rows, orient="index", columns=columns).set_index(
        pd.MultiIndex.from_tuples(rows, names=["attack", "level"])
    )


def check_nulls(
    name: str, arms: Arms, *, trained: bool, draws: int = 200, seed: int = 0
) -> dict[str, list[float]]:
    """Measure an attack where it must fail, and refuse it if it does not.

    Args:
        name: of the attack and level, for the message.
        arms: its scores.
        trained: whether the target was trained on the members; if not, its own AUC must be null too.
        draws: bootstrap resamples of patients.
        seed: of the splits and the resampling.

    Returns:
        AUC and interval by control: `held_out`, `permuted` and, without training, `untrained`.

    Raises:
        ControlFailed: a control is further from one half than chance allows.
    """
    how = {"draws": draws, "seed": seed}
    found = {
        "held_out": controls.split_auc(arms.other_scores, arms.other_patients, **how),
        "permuted": controls.permuted_auc(*arms.values, **how),
    }
    if not trained:
        found["untrained"] = stats.auc_interval(*arms.values, **how)
    for control, interval in found.items():
        controls.require_null(f"{name}, {control} control", interval)
    return {control: [i.estimate, i.low, i.high] for control, i in found.items()}
