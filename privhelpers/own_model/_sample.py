"""Which of the notes are asked about.

Large files and large models meet in a budget: patients are drawn by lot, so that what is found holds for all.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privhelpers import rng
from privhelpers.errors import BadRecords
from privhelpers.own_model._files import FEWEST_PATIENTS, Files, Note, RecordFile
from privhelpers.own_model._settings import Settings
from privhelpers.own_model._target import Target


@dataclass(frozen=True)
class Sample:
    """The notes that are asked about.

    Attributes:
        notes: members first.
        member: whether each was trained on, shape [notes].
        unreadable: notes that a tokenizer makes nothing of.
    """

    notes: list[Note]
    member: np.ndarray
    unreadable: int

    @property
    def texts(self) -> list[str]:
        """The text of each note."""
        return [note.text for note in self.notes]

    @property
    def patients(self) -> np.ndarray:
        """The patient of each note."""
        return np.array([note.patient for note in self.notes])

    def of(self, *, member: bool) -> list[Note]:
        """Return the notes of one side."""
        return [note for note, is_member in zip(self.notes, self.member, strict=True) if is_member == member]

    def texts_by_patient(self, *, member: bool) -> list[list[str]]:
        """Return the texts of each patient of one side."""
        people: dict[str, list[str]] = {}
        for note in self.of(member=member):
            people.setdefault(note.patient, []).append(note.text)
        return list(people.values())


def _drawn_notes(file: RecordFile, settings: Settings) -> list[Note]:
    """Return all notes of a file, or those of patients drawn by lot."""
    generator = rng.make(settings.seed, f"checkup/drawn/{file.name}")
    patients = file.patients
    kept = [patients[i] for i in sorted(generator.permutation(len(patients))[: settings.patients])]
    by_patient: dict[str, list[Note]] = {patient: [] for patient in kept}
    for note in file.notes:
        if note.patient in by_patient:
            by_patient[note.patient].append(note)
    return [
        notes[i]
        for notes in by_patient.values()
        for i in sorted(generator.permutation(len(notes))[: settings.notes])
    ]


def draw_sample(files: Files, models: Sequence[Target], settings: Settings) -> Sample:
    """Return the notes that every model can be asked about; without a model, all that were drawn.

    Raises:
        BadRecords: fewer than 50 patients are left.
    """
    sides = [_drawn_notes(file, settings) for file in (files.members, files.heldout)]
    notes, member = [*sides[0], *sides[1]], np.repeat([True, False], [len(side) for side in sides])
    readable = np.ones(len(notes), dtype=bool)
    for model in models:
        readable &= model.readable([note.text for note in notes])
    kept = [note for note, keep in zip(notes, readable, strict=True) if keep]
    sample = Sample(kept, member[readable], int((~readable).sum()))
    for side, file in ((True, files.members), (False, files.heldout)):
        if len(sample.texts_by_patient(member=side)) < FEWEST_PATIENTS:
            raise BadRecords(f"{file.name}: the tokenizer makes nothing of the notes of too many patients")
    return sample
