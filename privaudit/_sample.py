"""Which of the notes are asked about, and in which order.

Large files and large models meet in a budget: patients are drawn at random, so that what is found holds for
all. The seed and the texts alone decide: the same records draw the same sample, and everything that is drawn
afterwards, whatever the file is called, what kind of file it is, how it names its columns and its patients,
and in which order it has them.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from privaudit._files import FEWEST_PATIENTS, Files, Note, RecordFile
from privaudit._settings import Settings
from privaudit._target import Target
from privhelpers import rng
from privhelpers.errors import BadRecords


@dataclass(frozen=True)
class Sample:
    """The notes that are asked about.

    Attributes:
        notes: members first; patients, and the notes of each, in an order that texts and seed decide.
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
        """The patient of each note, as a number: the place among the patients of the sample."""
        numbers: dict[str, int] = {}
        return np.array([numbers.setdefault(note.patient, len(numbers)) for note in self.notes])

    def of(self, *, member: bool) -> list[Note]:
        """Return the notes of one side."""
        return [note for note, is_member in zip(self.notes, self.member, strict=True) if is_member == member]

    def texts_by_patient(self, *, member: bool) -> list[list[str]]:
        """Return the texts of each patient of one side."""
        people: dict[str, list[str]] = {}
        for note in self.of(member=member):
            people.setdefault(note.patient, []).append(note.text)
        return list(people.values())


def content_key(seed: int, contents: Iterable[str]) -> bytes:
    """Return random bytes that a seed and some strings decide: what is sorted by them is in random order."""
    stream = rng.derive(seed, "checkup/drawn").to_bytes(8, "big")
    hashed = hashlib.blake2b(key=stream, digest_size=16)
    for content in contents:
        data = content.encode("utf-8", "surrogatepass")
        hashed.update(len(data).to_bytes(8, "big") + data)
    return hashed.digest()


def _drawn_notes(file: RecordFile, settings: Settings) -> list[Note]:
    """Return all notes of a file, or those that are drawn, in random order, patient by patient."""
    by_patient: dict[str, list[Note]] = {}
    for note in file.notes:
        by_patient.setdefault(note.patient, []).append(note)
    people = []
    for notes in by_patient.values():
        contents = sorted([note.text, *sorted(note.identifiers)] for note in notes)
        people.append((content_key(settings.seed, [part for row in contents for part in row]), notes))
    people.sort(key=lambda one: one[0])
    drawn = []
    for key, notes in people[: settings.patients]:
        # With the patient: a text that many share is not drawn for all of them or for none.
        ordered = sorted(notes, key=lambda note: content_key(settings.seed, [key.hex(), note.text]))
        drawn += ordered[: settings.notes]
    return drawn


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
