"""Who carries which identifier, whose came out, and what a note is without them.

A note is a mapping with `text`, `patient_id`, `kind` and `spans`, each span with identifier, start, end
and value: what `privhelpers.records` reads.

>>> spans = [{"identifier": "name", "start": 8, "end": 11, "value": "Ann"}]
>>> note = {"text": "Patient Ann, seen.", "patient_id": "p1", "kind": "report", "spans": spans}
>>> without_identifiers(note)
'Patient [name], seen.'
>>> came_out(["the patient is  ANN"], carriers([note]))
{'name': {'p1'}}
>>> touched(note, [(0, 7), (7, 11), (11, 12)])
[False, True, False]
"""

from collections.abc import Iterable, Mapping, Sequence

from privhelpers.text import found_in, normalize

Carriers = dict[str, dict[str, set[str]]]


def carriers(notes: Iterable[Mapping], *, kind: str = "report") -> Carriers:
    """Return by identifier and patient the values that stand in the notes of one kind."""
    found: Carriers = {}
    for note in notes:
        if note["kind"] == kind:
            for span in note["spans"]:
                own = found.setdefault(span["identifier"], {})
                own.setdefault(note["patient_id"], set()).add(normalize(span["value"]))
    return found


def came_out(texts: Iterable[str], people: Carriers) -> dict[str, set[str]]:
    """Return by identifier the patients one of whose values stands in the texts (`text.stands_in`).

    Args:
        texts: what a model wrote.
        people: what `carriers` returned.
    """
    written = "\0".join(texts)  # no value runs from one text into the next
    values = {value for own in people.values() for them in own.values() for value in them}
    found = set(found_in(values, written))
    return {
        kind: {patient for patient, values in own.items() if values & found} for kind, own in people.items()
    }


def without_identifiers(note: Mapping) -> str:
    """Return the text of a note with the kind of each identifier, in brackets, in its place."""
    text = note["text"]
    for span in sorted(note["spans"], key=lambda span: -span["start"]):
        text = f"{text[: span['start']]}[{span['identifier']}]{text[span['end'] :]}"
    return text


def touched(note: Mapping, pieces: Sequence[tuple[int, int]]) -> list[bool]:
    """Return whether each piece of a note's text, given by start and end, holds a part of an identifier."""
    return [
        any(start < span["end"] and end > span["start"] for span in note["spans"]) for start, end in pieces
    ]
