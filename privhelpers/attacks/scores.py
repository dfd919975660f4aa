"""Scores in two arms, of members and of controls that no model was trained on, and what they achieve.

A score is HIGHER for what looks more like a member, such as minus the loss of a note.

    arms = split(scores, patients, member)          # one score a note
    measure(arms, draws=1000).auc                   # with an interval that resamples patients
    select_attack({"loss": arms, "loss, patients": arms.by_patient()}).measured
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import ArrayLike

from privhelpers import rng, stats, validate
from privhelpers.attacks import groups
from privhelpers.errors import InvalidParameter
from privhelpers.stats import Interval, roc

LOW_RATES = (0.001, 0.01)  # false-positive rates at which an accusation may matter


@dataclass(frozen=True)
class Arms:
    """The scores of one attack and whose they are, or features in place of scores.

    Iterating gives the four arrays in the order that `stats` takes them: `stats.auc_interval(*arms)`.

    Attributes:
        member_scores, member_patients: of the notes, or patients, that were trained on.
        control_scores, control_patients: of those that were not.
        threshold: lowest score that the attack calls a member, if it has its own threshold.
    """

    member_scores: np.ndarray
    member_patients: np.ndarray
    control_scores: np.ndarray
    control_patients: np.ndarray
    threshold: float | None = None

    def __iter__(self) -> Iterator[np.ndarray]:
        """Yield scores and patients of the members, then of the controls."""
        yield from (self.member_scores, self.member_patients, self.control_scores, self.control_patients)

    def only(self, patients: Collection[str]) -> "Arms":
        """Return the arms of these patients alone."""
        mine, others = (
            np.isin(owners, list(patients)) for owners in (self.member_patients, self.control_patients)
        )
        return Arms(
            self.member_scores[mine],
            self.member_patients[mine],
            self.control_scores[others],
            self.control_patients[others],
            self.threshold,
        )

    def by_patient(self) -> "Arms":
        """Return one score per patient, the mean over the patient's notes."""
        return Arms(
            *groups.group_means(self.member_scores, self.member_patients),
            *groups.group_means(self.control_scores, self.control_patients),
        )

    def permuted(self, seed: int) -> "Arms":
        """Return the same scores with the labels of the patients permuted between the arms: a null."""
        scores = np.concatenate([self.member_scores, self.control_scores])
        return half_against_half(scores, np.concatenate([self.member_patients, self.control_patients]), seed)

    def controls_halved(self, seed: int) -> "Arms":
        """Return one half of the control patients against the other half: a null."""
        return half_against_half(self.control_scores, self.control_patients, seed)


def split(scores: ArrayLike, patients: ArrayLike, member: ArrayLike) -> Arms:
    """Return the arms of scores given in one array, by whether each is a member's."""
    scores, member = validate.array("scores", scores, float), validate.array("member", member, bool)
    patients = validate.array("patients", patients)
    if patients.ndim != 1 or not scores.shape[:1] == patients.shape == member.shape:
        raise InvalidParameter(
            f"scores {scores.shape}, patients {patients.shape}, member {member.shape}: need one each a note"
        )
    return Arms(scores[member], patients[member], scores[~member], patients[~member])


def half_of_patients(patients: ArrayLike, seed: int) -> np.ndarray:
    """Return a mask over notes that puts half of the patients, at random, on one side; shape [notes]."""
    names, codes = np.unique(np.asarray(patients), return_inverse=True)
    side = np.zeros(len(names), dtype=bool)
    side[rng.make(seed, "controls/split").permutation(len(names))[: len(names) // 2]] = True
    return side[codes]


def half_against_half(scores: ArrayLike, patients: ArrayLike, seed: int) -> Arms:
    """Return the scores of a random half of the patients against the other half."""
    return split(scores, patients, half_of_patients(patients, seed))


@dataclass(frozen=True)
class Measured:
    """What an attack achieves.

    Attributes:
        auc: area under the ROC curve, ties counted half (Mann-Whitney).
        tpr_at_01pct_fpr, tpr_at_1pct_fpr: true-positive rate at 0.1% and 1% false positives.
        advantage: largest TPR - FPR, its threshold chosen on these scores: above 0 by chance alone.
        leakage: TPR - FPR at the attack's own threshold (Jagannatha et al. 2021); None if it has none.
        arms: what was measured.
    """

    auc: Interval
    tpr_at_01pct_fpr: Interval
    tpr_at_1pct_fpr: Interval
    advantage: float
    leakage: Interval | None
    arms: Arms = field(repr=False, compare=False)

    @property
    def n(self) -> tuple[int, int]:
        """Number of scores of members and of controls."""
        return len(self.arms.member_scores), len(self.arms.control_scores)

    def as_json(self) -> dict:
        """Return plain values: estimate, low and high of each rate."""
        names = ("auc", "tpr_at_01pct_fpr", "tpr_at_1pct_fpr")
        rates = {name: as_plain(getattr(self, name)) for name in names}
        leakage = {} if self.leakage is None else {"leakage": as_plain(self.leakage)}
        return {**rates, "advantage": self.advantage, **leakage, "n": list(self.n)}


def as_plain(value: object) -> object:
    """Return a value for a file: an interval is [estimate, low, high], also inside mappings and lists."""
    if isinstance(value, Interval):
        return [value.estimate, value.low, value.high]
    if isinstance(value, Measured):
        return value.as_json()
    if isinstance(value, Mapping):
        return {key: as_plain(one) for key, one in value.items()}
    return [as_plain(one) for one in value] if isinstance(value, (list, tuple)) else value


def measure(arms: Arms, *, draws: int = 1000, seed: int = 0, level: float = 0.95) -> Measured:
    """Measure one attack with patient-clustered intervals, all from the same resampled patients.

    A rate that no draw changes, such as 0 or 1, gets exact ends in place of a point (`stats.clustered`): 0.01
    at 1% false positives was covered in 99% of 300 draws of 40 members and 500 controls. The threshold of a
    rate comes from the same controls: of fewer than 1 / rate it covers too rarely, 0.02 at 0.1% in 41% of
    300 draws of 120 and 120.

    Args:
        arms: scores of members and controls, with their patients.
        draws: bootstrap resamples of patients, 1 or more.
        seed: of the resampling.
        level: nominal coverage, in (0, 1).
    """
    level = validate.probability(level=level)
    pooled = roc.PooledScores(arms.member_scores, arms.control_scores)

    def figures(member: np.ndarray, control: np.ndarray) -> np.ndarray:
        heights = roc.curve_heights(member, control, np.array(LOW_RATES))
        return np.column_stack([roc.areas(member, control), heights])

    patients, options = (arms.member_patients, arms.control_patients), {"draws": draws, "seed": seed}
    auc, low, one = roc.bootstrap_intervals(figures, pooled, patients, **options, level=level)
    # The curve rises: no end of the lower rate is above the end of the higher one.
    low, one = replace(low, low=min(low.low, one.low)), replace(one, high=max(low.high, one.high))
    advantage = float(roc.advantages(*pooled.equal())[0])
    leakage = None
    if arms.threshold is not None:
        leakage = leakage_at(arms, arms.threshold, draws=draws, seed=seed, level=level)
    return Measured(auc, low, one, advantage, leakage, arms)


def leakage_at(
    arms: Arms, threshold: float, *, draws: int = 1000, seed: int = 0, level: float = 0.95
) -> Interval:
    """Return TPR - FPR at a threshold that is taken as known, with a patient-clustered interval.

    The answers "member" and "no member" are scores of two values, and the area under the ROC curve of such
    scores is (1 + TPR - FPR) / 2.

    Source: Yeom et al. 2018, definition 4; the "privacy leakage" of Jagannatha et al. 2021, section 4.1.
    """
    said = [scores >= threshold for scores in (arms.member_scores, arms.control_scores)]
    owners = arms.member_patients, arms.control_patients
    area = stats.auc_interval(said[0], owners[0], said[1], owners[1], draws=draws, seed=seed, level=level)
    ends = (2 * value - 1 for value in (area.estimate, area.low, area.high))
    return Interval(*ends, level, area.method)


@dataclass(frozen=True)
class Choice:
    """The attack that won on one half of the patients, measured on the other half.

    Attributes:
        name: of the winner.
        flattered: its AUC, or its true-positive rate, on the half that it was chosen on; too high on average.
        measured: what it achieves on patients who had no part in the choice.
    """

    name: str
    flattered: float
    measured: Measured


def select_attack(
    attacks: Mapping[str, Arms],
    *,
    fpr: float | None = None,
    draws: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Choice:
    """Select the attack with the highest AUC on half of the patients and measure it on the other half.

    The best of many is chosen partly by chance: measured on the same data, it looks better than it
    is, and on a model that leaks nothing the winner still seems to find something.

    Args:
        attacks: arms by name, one or more; of two that tie, the first wins.
        fpr: false-positive rate, in (0, 1], at which to compare true-positive rates; None compares AUCs.
        draws, seed, level: as of `measure`; the seed also splits the patients.
    """
    if not attacks:
        raise InvalidParameter("attacks: there is nothing to select from")
    if fpr is not None:
        fpr = validate.probability(fpr=fpr)
    halves: list[str] = []
    for side in ("member_patients", "control_patients"):
        names = np.unique(np.concatenate([getattr(arms, side) for arms in attacks.values()]))
        halves += names[half_of_patients(names, seed)].tolist()
    figures = {}
    for name, arms in attacks.items():
        pooled = roc.PooledScores(*list(arms.only(halves))[::2]).equal()
        figures[name] = roc.areas(*pooled) if fpr is None else roc.curve_heights(*pooled, np.array([fpr]))
    winner = max(figures, key=lambda name: figures[name].item())
    everyone = {*attacks[winner].member_patients, *attacks[winner].control_patients}
    rest = attacks[winner].only(everyone - set(halves))
    return Choice(winner, figures[winner].item(), measure(rest, draws=draws, seed=seed, level=level))


def levels(scores: ArrayLike, notes: Sequence[dict], member: ArrayLike) -> dict[str, Arms]:
    """Return the arms of single notes (`sample`), of admissions and of patients, each the mean of its notes.

    Args:
        scores: one per note.
        notes: with `patient_id` and `admission`.
        member: whether each note was trained on; no patient has notes on both sides.

    Source: Jagannatha, Rawat and Yu 2021, section 4.1.1, group-level attack.
    """
    sample = split(scores, groups.patients(notes), member)
    admissions = [f"{note['patient_id']}/{note['admission']}" for note in notes]
    means, names = groups.group_means(scores, admissions)
    owners = np.array([name.rpartition("/")[0] for name in names])
    admission = split(means, owners, np.isin(owners, sample.member_patients))
    return {"sample": sample, "admission": admission, "patient": sample.by_patient()}
