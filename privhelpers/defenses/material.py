"""What the factorial trains on: a part of the hospital, scrubbed, deduplicated, patient by patient.

part = part_of_hospital(train_notes, held_notes, canaries, patients=220, seed=0)
training_texts(part.chosen, Layers(scrub=True), scrubbed=..., deduplicate=...)
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from privhelpers import rng, validate
from privhelpers.defenses.dedup import deduplicate
from privhelpers.defenses.factorial import Layers
from privhelpers.defenses.spans import Span, replace
from privhelpers.errors import InvalidParameter
from privhelpers.text import stands_in


class Finder(Protocol):
    """Anything that finds identifiers in many texts at once, such as a `NerScrubber`."""

    def find_all(self, texts: Sequence[str]) -> list[list[Span]]:
        """Return the identifiers of each text."""
        ...


@dataclass(frozen=True)
class Part:
    """A part of the hospital.

    Attributes:
        chosen: notes to train on, copies of canaries included.
        members: those of them that are no canaries.
        never: notes of as many never-trained patients.
        strangers: notes of as many other patients of the training notes, for a model of other people.
        canaries: planted ones with these copies, and all controls.
    """

    chosen: list[dict]
    members: list[dict]
    never: list[dict]
    strangers: list[dict]
    canaries: list[dict]

    @property
    def everyone(self) -> list[dict]:
        """Notes of members, then of never-trained patients."""
        return self.members + self.never

    @property
    def member(self) -> np.ndarray:
        """Whether each note of `everyone` is a member's."""
        return np.arange(len(self.everyone)) < len(self.members)


def part_of_hospital(
    train_notes: Sequence[dict],
    held_notes: Sequence[dict],
    canaries: Sequence[dict],
    *,
    patients: int,
    copies: Collection[int],
    seed: int,
) -> Part:
    """Draw patients by lot, as many who are trained on as who are not, and the canaries with these copies.

    Args:
        train_notes: of the hospital, canaries included.
        held_notes: of patients whom no model of the book was trained on.
        canaries: planted ones and controls.
        patients: of each kind, 1 or more; at most half of those who can be trained on, or the strangers are
            fewer.
        copies: of the planted canaries to take, such as {1, 4, 16}.
        seed: of the lot.

    Raises:
        InvalidParameter: nobody is left in one of the groups.
    """
    validate.positive_int(patients=patients)
    taken = {}
    for part, notes in (("member", train_notes), ("never", held_notes)):
        names = sorted({note["patient_id"] for note in notes if note["kind"] != "canary"})
        lot = rng.make(seed, f"defenses/{part}").permutation(names).tolist()
        taken[part], rest = set(lot[:patients]), set(lot[patients : 2 * patients])
        taken.setdefault("stranger", rest)  # those of the training notes, which come first
    asked = [c for c in canaries if not c["planted"] or c["copies"] in copies]
    inside = taken["member"] | {c["patient_id"] for c in asked if c["planted"]}
    chosen = [note for note in train_notes if note["patient_id"] in inside]
    found = Part(
        chosen=chosen,
        members=[note for note in chosen if note["kind"] != "canary"],
        never=[note for note in held_notes if note["patient_id"] in taken["never"]],
        strangers=[note for note in train_notes if note["patient_id"] in taken["stranger"]],
        canaries=asked,
    )
    if not found.members or not found.never or not found.strangers or taken["member"] & taken["never"]:
        raise InvalidParameter(
            f"patients = {patients}: there must be members, others to train on, and never-trained ones"
        )
    return found


def scrub_all(finder: Finder, notes: Sequence[dict]) -> list[str]:
    """Return the text of each note with a placeholder for each identifier that is found."""
    texts = [note["text"] for note in notes]
    return [replace(text, spans).text for text, spans in zip(texts, finder.find_all(texts), strict=True)]


def left_standing(notes: Sequence[dict], scrubbed: Sequence[str]) -> tuple[int, int]:
    """Return how many planted identifiers still stand in the scrubbed texts, and how many there were."""
    pairs = [
        (span["value"], text) for note, text in zip(notes, scrubbed, strict=True) for span in note["spans"]
    ]
    return sum(stands_in(value, text) for value, text in pairs), len(pairs)


def without_near_duplicates(texts: Sequence[str]) -> list[str]:
    """Return the texts of one patient, each near-duplicate of an earlier one left out."""
    return [note["text"] for note in deduplicate([{"text": text} for text in texts]).kept]


def training_texts(
    notes: Sequence[dict],
    cell: Layers,
    *,
    scrubbed: Sequence[str],
    deduplicate: Callable[[list[str]], Sequence[str]] = without_near_duplicates,
) -> dict[str, list[str]]:
    """Return the texts that a cell trains on, by patient: scrubbed first, then rid of near-duplicates.

    Duplicates are looked for among the notes of one patient. Across patients, what is kept of one would
    depend on another, and a guarantee about the removal of one patient would no longer hold for the notes
    that went in.

    Args:
        notes: of the members, with `patient_id` and `text`, copies of canaries included.
        cell: which layers are on.
        scrubbed: text of each note after scrubbing, in the order of `notes`.
        deduplicate: returns those of the texts of one patient that stay.

    Source: Debenedetti et al. 2024, for what deduplication across people does to a guarantee.
    """
    texts: dict[str, list[str]] = {}
    for note, clean in zip(notes, scrubbed, strict=True):
        texts.setdefault(note["patient_id"], []).append(clean if cell.scrub else note["text"])
    if cell.dedup:
        return {patient: list(deduplicate(own)) if len(own) > 1 else own for patient, own in texts.items()}
    return texts
