"""Records on disk: what `synthetic_records` writes and later chapters read. Nothing unsafe is written."""

import json
from collections.abc import Iterable, Sequence

import numpy as np

from privhelpers.artifacts import Store
from privhelpers.errors import InvalidParameter
from privhelpers.records._canaries import DIGITS, SPACE
from privhelpers.records._hospital import Records
from privhelpers.records._identifiers import refuse_unsafe
from privhelpers.records._vocabulary import MEDICATIONS
from privhelpers.text import blank, normalize
from privhelpers.validate import shown

HOME = "synthetic_records"
PARTS = ("train", "validation", "heldout", "crowd")


def _checked(rows: Iterable[dict], name: str) -> list[dict]:
    rows = list(rows)
    for number, row in enumerate(rows, 1):
        refuse_unsafe(json.dumps(row, ensure_ascii=False), f"{name}, line {number}")
        for span in row.get("spans", ()):
            if row["text"][span["start"] : span["end"]] != span["value"]:
                raise InvalidParameter(
                    f"{name}, line {number}: the span of {span['identifier']} does not fit"
                )
    return rows


def write_records(store: Store, records: Records, public: Sequence[str]) -> None:
    """Write all records of a run, or none of them if one has an identifier that could be real.

    Raises:
        UnsafeIdentifier: naming the file, the line and the value.
    """
    parts = {part: _checked(getattr(records, part), f"{part}.jsonl") for part in PARTS}
    texts = _checked(({"text": text} for text in public), "public.jsonl")
    canaries = _checked((canary.as_dict() for canary in records.canaries), "canaries.json")
    for part, rows in parts.items():
        store.write_jsonl(f"{HOME}/{part}.jsonl", rows)
    store.write_jsonl(f"{HOME}/public.jsonl", texts)
    space = {"digits": DIGITS, "size": SPACE}
    store.write_json(f"{HOME}/canaries.json", {"space": space, "canaries": canaries})


def read_notes(store: Store, part: str) -> list[dict]:
    """Return the notes of `train`, `validation`, `heldout`, or `crowd`; see `Records`."""
    if part not in PARTS:
        raise InvalidParameter(f"part = {shown(part)}: must be one of {', '.join(PARTS)}")
    return store.read_jsonl(f"{HOME}/{part}.jsonl")


def drug_questions(
    notes: Sequence[dict], answers: Sequence[str] = MEDICATIONS
) -> tuple[list[str], np.ndarray]:
    """Return each note up to the name of its drug, and the drug's number among the answers.

    In a note the drug follows the diagnosis, so the beginning is a question and the drug is its answer.

    Args:
        notes: none of a canary, which names no drug.
        answers: of the domain of the notes.

    Returns:
        The beginnings, without a blank at the end, and an array of the same length.
    """
    starts = [note["text"][: note["text"].index(note["medication"])].rstrip() for note in notes]
    return starts, np.array([answers.index(note["medication"]) for note in notes])


def read_public(store: Store) -> list[str]:
    """Return the documents of the public corpus."""
    return [row["text"] for row in store.read_jsonl(f"{HOME}/public.jsonl")]


def read_canaries(store: Store) -> tuple[list[dict], dict]:
    """Return the canaries, planted and controls, and the space that their secrets come from."""
    stored = store.read_json(f"{HOME}/canaries.json")
    return stored["canaries"], stored["space"]


def by_patient(notes: Sequence[dict]) -> dict[str, list[str]]:
    """Return the texts of each patient, in the order of first appearance: the privacy units.

    Ids that read the same by `text.normalize`, which ignores case, width, white space, and characters without
    a shape, are one patient, under the first spelling, as in an audit. An id that lost its leading zeros is
    another one.

    Raises:
        InvalidParameter: an id is not a text, or is blank.
    """
    units: dict[str, list[str]] = {}
    first: dict[str, str] = {}  # spelling of each patient
    for number, note in enumerate(notes):
        patient = note["patient_id"]
        if not isinstance(patient, str) or blank(patient):
            raise InvalidParameter(
                f"notes[{number}]: patient_id = {shown(patient)}: must be a text that is not empty"
            )
        units.setdefault(first.setdefault(normalize(patient), patient), []).append(note["text"])
    return units
