"""Every score of membership that one model and its records allow, each beside its controls.

A score is HIGHER for what looks more like a member. A patient's score is the mean over the patient's notes:
the patient is the unit, of the tests as of the harm.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from privhelpers.attacks import controls, groups, signals
from privhelpers.attacks.scores import Arms, Measured, measure, split
from privhelpers.errors import ControlFailed
from privhelpers.own_model._chance import Shuffled, shuffled
from privhelpers.own_model._target import Reading
from privhelpers.stats import Interval

WORDS = {
    "loss": "how well the model predicts a note (loss)",
    "zlib": "the same, per byte of the compressed note (zlib ratio)",
    "min_k": "how well it predicts a note's least likely words (Min-K%)",
    "min_k_plus_plus": "the same, against what it expects there (Min-K%++)",
    "lower_case": "how much worse it predicts the note in lower case",
    "reference": "how much better it predicts a note than the reference model does",
}


@dataclass(frozen=True)
class Controls:
    """What an attack finds where there is nothing to find.

    Attributes:
        untrained: area, and share told at 1 % wrong accusations, on a model with fresh weights; None if it
            was not asked.
        untrained_p: p-values of both.
        held_out: area of one half of the held-out patients against the other.
        permuted: area after the labels were dealt anew.
    """

    untrained: Measured | None
    untrained_p: tuple[float, float] | None
    held_out: Interval
    permuted: Interval


@dataclass(frozen=True)
class Attack:
    """One attack on membership.

    Attributes:
        name: key of `WORDS`.
        patient, note: what it achieves for patients, and for single notes.
        p: chance of so high an area, and of so many members told first.
        controls: the same where it must fail.
        arms: the patients' scores.
    """

    name: str
    patient: Measured
    note: Measured
    p: tuple[float, float]
    controls: Controls
    arms: Arms

    @property
    def words(self) -> str:
        """What the attack looks at, in plain words."""
        return WORDS[self.name]


def scores_of(
    reading: Reading,
    texts: Sequence[str],
    *,
    lower: Reading | None = None,
    reference: Reading | None = None,
) -> dict[str, np.ndarray]:
    """Return the score of each text under each attack that the readings allow.

    Args:
        reading: of the texts by the audited model.
        texts: what was read.
        lower: of the texts in lower case, by the same model.
        reference: of the texts by another model, whose tokens may be others: both are counted per byte.

    Source: see `attacks.signals`.
    """
    rows = list(zip(reading.log_p, reading.mean, reading.deviation, strict=True))
    found = signals.Signals(
        loss=reading.loss,
        min_k=np.array([signals.min_k(log_p) for log_p, _, _ in rows]),
        min_k_plus_plus=np.array([signals.min_k(signals.standardized(*row)) for row in rows]),
        tokens=reading.tokens,
        zlib_bytes=np.array([len(zlib.compress(text.encode())) for text in texts]),
        lower_loss=None if lower is None else lower.loss,
        token_log_p=tuple(reading.log_p),
    )
    scores = signals.scores(found)
    if reference is not None:
        size = np.array([len(text.encode()) for text in texts])
        own, other = (r.loss * r.tokens / size for r in (reading, reference))
        scores["reference"] = other - own
    # A score that is the same for all says nothing: an uncased tokenizer has no lower case to tell apart.
    return {name: values for name, values in scores.items() if np.ptp(values) > 1e-9}


def patient_table(scores: Mapping[str, np.ndarray], patients: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return one row a patient and one column an attack, and the patients, sorted."""
    columns = [groups.group_means(values, patients) for values in scores.values()]
    return np.stack([values for values, _ in columns], axis=1), columns[0][1]


def _both(scores: Mapping[str, np.ndarray], patients: np.ndarray, member: np.ndarray, how: dict) -> Shuffled:
    table, names = patient_table(scores, patients)
    inside = np.isin(names, patients[member])
    return shuffled(table, inside, times=how["times"], seed=how["seed"])


def measure_attacks(
    scores: Mapping[str, np.ndarray],
    patients: np.ndarray,
    member: np.ndarray,
    *,
    untrained: Mapping[str, np.ndarray] | None = None,
    draws: int = 500,
    times: int = 9999,
    seed: int = 0,
) -> list[Attack]:
    """Measure every attack for patients and notes, with intervals, tests and controls.

    Args:
        scores: of each note, by attack.
        patients: of each note.
        member: whether each note was trained on.
        untrained: scores of the same notes under fresh weights; attacks that it lacks have no such control.
        draws: bootstrap resamples of patients.
        times: shuffles of the tests.
        seed: of both.
    """
    how = {"times": times, "seed": seed}
    tests = _both(scores, patients, member, how)
    fresh = {name: untrained[name] for name in scores if name in (untrained or {})}
    fresh_tests = _both(fresh, patients, member, how) if fresh else None
    found = []
    for n, (name, values) in enumerate(scores.items()):
        notes = split(values, patients, member)
        people = notes.by_patient()
        null, null_p = None, None
        if name in fresh:
            arms = split(fresh[name], patients, member).by_patient()
            null, column = measure(arms, draws=draws, seed=seed), list(fresh).index(name)
            null_p = (float(fresh_tests.ranking[column]), float(fresh_tests.few[column]))
        null_areas = controls.nulls(people, trained=True, draws=max(100, draws // 2), seed=seed)
        found.append(
            Attack(
                name=name,
                patient=measure(people, draws=draws, seed=seed),
                note=measure(notes, draws=draws, seed=seed),
                p=(float(tests.ranking[n]), float(tests.few[n])),
                controls=Controls(
                    null,
                    null_p,
                    null_areas["held_out"],
                    null_areas["permuted"],
                ),
                arms=people,
            )
        )
    return found


def loss_p(reading: Reading, patients: np.ndarray, member: np.ndarray, *, times: int, seed: int) -> float:
    """Return the smaller p-value of the loss attack's two tests on a model, doubled for having two.

    For a reference model, which is said to have seen nobody: it should find nothing.
    """
    tests = _both({"loss": -reading.loss}, patients, member, {"times": times, "seed": seed})
    return float(min(1.0, 2 * min(tests.ranking[0], tests.few[0])))


def broken_controls(attacks: Sequence[Attack]) -> list[str]:
    """Return what is wrong with the tools themselves: an area beyond luck where labels were dealt by lot."""
    problems = []
    for attack in attacks:
        for name in ("held_out", "permuted"):
            try:
                controls.require_null(
                    f"{attack.name}, {name.replace('_', ' ')}", getattr(attack.controls, name)
                )
            except ControlFailed as error:
                problems.append(str(error))
    return problems
