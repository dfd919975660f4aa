"""What an audit is made of: the files that were brought, and which of their notes are asked about.

Large files and large models meet in a budget: patients are drawn by lot, so that what is found holds for all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from privhelpers import rng
from privhelpers.errors import BadRecords
from privhelpers.own_model import _canaries, _records
from privhelpers.own_model._target import CAUSAL, Target

_SMALL, _MIDDLE = 20_000_000, 250_000_000  # weights


@dataclass(frozen=True)
class Effort:
    """How much of the records is asked about, which the size of the model decides.

    Attributes:
        patients: of each file, at most; drawn by lot.
        notes: of a patient, at most; drawn by lot.
        texts: that a causal model writes.
        tokens: of each.
        lower: whether notes are read in lower case too.
        control: whether a model with fresh weights is asked the same.
    """

    patients: int = 2000
    notes: int = 20
    texts: int = 600
    tokens: int = 64
    lower: bool = True
    control: bool = True

    @classmethod
    def of(cls, target: Target) -> "Effort":
        """Return what can be asked of a model of this size in minutes on two cores."""
        if target.parameters <= _SMALL:
            return cls(patients=2000 if target.kind == CAUSAL else 500, lower=target.kind == CAUSAL)
        if target.parameters <= _MIDDLE:
            return cls(patients=250, notes=5, texts=120, lower=False)
        return cls(patients=100, notes=3, texts=48, lower=False, control=False)


@dataclass(frozen=True)
class Files:
    """What was brought: members, held-out records and perhaps canaries, all checked."""

    members: _records.RecordFile
    others: _records.RecordFile
    canaries: _records.CanaryFile | None


def read_files(records: str | Path, holdout: str | Path, canaries: str | Path | None = None) -> Files:
    """Read the files of an audit and refuse what could not be believed.

    Args:
        records: JSONL of what the model was trained on.
        holdout: JSONL of what it never saw, of other patients of the same kind.
        canaries: JSONL of texts made for the audit, if there are any.

    Raises:
        BadRecords: naming file and line.
    """
    members, others = _records.read_records(records), _records.read_records(holdout)
    _records.refuse_overlap(members, others)
    if canaries is None:
        return Files(members, others, None)
    planted_ones = _records.read_canaries(canaries)
    _canaries.check_coin(planted_ones.canaries)
    _records.refuse_contradiction(planted_ones, members=members, others=others)
    return Files(members, others, planted_ones)


def drawn_notes(file: _records.RecordFile, effort: Effort, seed: int) -> list[_records.Note]:
    """Return the notes that are asked about: all, or those of patients drawn by lot."""
    generator = rng.make(seed, f"checkup/drawn/{file.name}")
    patients = file.patients
    if len(patients) > effort.patients:
        patients = [patients[i] for i in sorted(generator.permutation(len(patients))[: effort.patients])]
    kept, chosen = dict.fromkeys(patients), []
    by_patient: dict[str, list[_records.Note]] = {patient: [] for patient in kept}
    for note in file.notes:
        if note.patient in kept:
            by_patient[note.patient].append(note)
    for notes in by_patient.values():
        few = sorted(generator.permutation(len(notes))[: effort.notes])
        chosen += [notes[i] for i in few]
    return chosen


@dataclass(frozen=True)
class Sample:
    """The notes that are asked about.

    Attributes:
        notes: members first.
        member: whether each was trained on, shape [notes].
        left_out: notes that a tokenizer makes nothing of.
    """

    notes: list[_records.Note]
    member: np.ndarray
    left_out: int

    @property
    def texts(self) -> list[str]:
        """The text of each note."""
        return [note.text for note in self.notes]

    @property
    def patients(self) -> np.ndarray:
        """The patient of each note."""
        return np.array([note.patient for note in self.notes])

    def of(self, member: bool) -> list[list[str]]:
        """Return the texts of each patient of one side."""
        people: dict[str, list[str]] = {}
        for note, own in zip(self.notes, self.member, strict=True):
            if own == member:
                people.setdefault(note.patient, []).append(note.text)
        return list(people.values())


def draw_sample(files: Files, models: Sequence[Target], effort: Effort, *, seed: int) -> Sample:
    """Return the notes that every model can be asked about.

    Raises:
        BadRecords: fewer than 50 patients are left.
    """
    sides = [drawn_notes(file, effort, seed) for file in (files.members, files.others)]
    notes = [note for side in sides for note in side]
    member = np.repeat([True, False], [len(side) for side in sides])
    texts = [note.text for note in notes]
    kept = np.logical_and.reduce([model.readable(texts) for model in models])
    asked = Sample([n for n, keep in zip(notes, kept, strict=True) if keep], member[kept], int((~kept).sum()))
    for side, file in ((True, files.members), (False, files.others)):
        if len(asked.of(side)) < _records.FEWEST_PATIENTS:
            raise BadRecords(f"{file.name}: the tokenizer makes nothing of the notes of too many patients")
    return asked
