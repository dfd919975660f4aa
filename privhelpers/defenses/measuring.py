"""How much a scrubber takes out, and how much it takes out in vain, with intervals clustered by patient."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import pandas as pd

from privhelpers import anonymity, stats
from privhelpers.defenses.dedup import Deduplicated
from privhelpers.defenses.output_filter import OutputFilter
from privhelpers.defenses.spans import Span
from privhelpers.errors import InvalidParameter
from privhelpers.records import SPACE_BITS

# The five patterns that tutorials hand on, as they stand there: each misses common forms, and any ten digits
# are a telephone number.
USUAL_PATTERNS: Mapping[str, str] = {
    "email": r"[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}",
    "phone": r"(?:\+1[-.])?\(?\d{3}\)?[-.]?\d{3}[-.]?\d{4}",
    "ssn": r"\b\d{3}-\d{2}-\d{4}\b",
    "card": r"\b(?:\d{4}[-\s]?){3}\d{4}\b",
    "ip": r"\b(?:\d{1,3}\.){3}\d{1,3}\b",
}


def usual_kinds(text: str) -> str:
    """Return what the usual patterns take a text for, or "-".

    >>> usual_kinds("999.999.999.999"), usual_kinds("(212) 555-0123")
    ('ip', '-')
    """
    return ", ".join(kind for kind, form in USUAL_PATTERNS.items() if re.search(form, text)) or "-"


def covered(text: str, start: int, end: int, found: Sequence[Span]) -> float:
    """Return the share of letters and digits between two places that lie in a found span, in [0, 1].

    >>> covered("tel 555-0123.", 4, 12, [Span(4, 7, "phone")])
    0.42857142857142855
    """
    places = [i for i in range(start, end) if text[i].isalnum()]
    inside = sum(any(span.start <= i < span.end for span in found) for i in places)
    return inside / len(places) if places else 1.0


def _interval(hits: Sequence[bool], patients: Sequence[str]) -> stats.Interval:
    if len(set(patients)) < 2:
        return stats.clopper_pearson(sum(hits), len(hits))
    return stats.clustered_proportion(hits, patients)


def _row(hits: Sequence[bool], patients: Sequence[str]) -> dict:
    interval = _interval(hits, patients)
    ends = {"rate": interval.estimate, "low": interval.low, "high": interval.high}
    return {"n": len(hits), "patients": len(set(patients)), "hits": int(sum(hits)), **ends}


def recall(notes: Sequence[dict], found: Sequence[Sequence[Span]], *, by: str = "identifier") -> pd.DataFrame:
    """Return, for each identifier, how many of its places were taken out whole.

    A place counts only if not one letter or digit of it is left; what is left of the others is in `partly`.

    Args:
        notes: notes with `patient_id`, `text` and `spans`.
        found: what a scrubber found in each.
        by: "identifier", or "form" for notes of `make_unusual_notes`.

    Returns:
        One row for each identifier, or identifier and form: n, patients, hits, rate, low, high, partly
        (missed places of which a part is gone).

    Raises:
        InvalidParameter: the lengths differ.
    """
    if len(notes) != len(found):
        raise InvalidParameter(f"found: has {len(found)} entries for {len(notes)} notes")
    places: dict[tuple[str, ...], list[tuple[float, str]]] = {}
    for note, spans in zip(notes, found, strict=True):
        for truth in note["spans"]:
            key = (truth["identifier"],) if by == "identifier" else (truth["identifier"], truth[by])
            share = covered(note["text"], truth["start"], truth["end"], spans)
            places.setdefault(key, []).append((share, note["patient_id"]))
    order = {name: number for number, name in enumerate(SPACE_BITS)}
    rows = []
    for key in sorted(places, key=lambda key: (order[key[0]], key)):
        shares, patients = zip(*places[key], strict=True)
        row = _row([share == 1 for share in shares], patients)
        names = dict(zip(("identifier", by), key, strict=False))
        rows.append({**names, **row, "partly": sum(0 < share < 1 for share in shares)})
    return pd.DataFrame(rows)


def precision(notes: Sequence[dict], found: Sequence[Sequence[Span]]) -> pd.DataFrame:
    """Return, for each kind of span and for all, how many of the found spans touch an identifier.

    Args:
        notes, found: as in `recall`.

    Returns:
        One row a kind, the last one "all": kind, n, patients, hits, rate, low, high; no row where nothing
        was found.
    """
    kinds: dict[str, list[tuple[bool, str]]] = {}
    for note, spans in zip(notes, found, strict=True):
        for span in spans:
            right = any(t["start"] < span.end and span.start < t["end"] for t in note["spans"])
            for kind in (span.kind, "all"):
                kinds.setdefault(kind, []).append((right, note["patient_id"]))
    rows = []
    for kind in sorted(kinds, key=lambda kind: (kind == "all", kind)):
        hits, patients = zip(*kinds[kind], strict=True)
        rows.append({"kind": kind, **_row(hits, patients)})
    return pd.DataFrame(rows)


class Finder(Protocol):
    """Anything that finds identifiers in many texts: every scrubber of this package."""

    def find_all(self, texts: Iterable[str]) -> list[list[Span]]:
        """Return the identifiers of each text."""
        ...


@dataclass(frozen=True)
class Comparison:
    """Several scrubbers on several sets of notes.

    Attributes:
        found: by notes and scrubber, the spans of each note.
        recall, precision: the tables of `recall` and of the last row of `precision`, with the columns
            notes and scrubber.
    """

    found: dict[tuple[str, str], list[list[Span]]]
    recall: pd.DataFrame
    precision: pd.DataFrame


def compare(scrubbers: Mapping[str, Finder], tests: Mapping[str, Sequence[dict]]) -> Comparison:
    """Measure every scrubber on every set of notes.

    Args:
        scrubbers: by label.
        tests: sets of notes with `patient_id`, `text` and `spans`, by label.
    """
    found, recalls, precisions = {}, [], []
    for label, notes in tests.items():
        for name, scrubber in scrubbers.items():
            spans = found[label, name] = scrubber.find_all(note["text"] for note in notes)
            here = {"notes": label, "scrubber": name}
            recalls.append(recall(notes, spans).assign(**here))
            precisions.append(
                precision(notes, spans).tail(1).drop(columns="kind", errors="ignore").assign(**here)
            )
    return Comparison(found, pd.concat(recalls, ignore_index=True), pd.concat(precisions, ignore_index=True))


def planted_texts(people: Iterable) -> dict[str, list[str]]:
    """Return, for each identifier, sentences that hold one value each, in capitals after a line break.

    Args:
        people: profiles with `identifiers`, as `attacks.extraction.profiles` returns them.
    """
    people = list(people)
    return {
        identifier: [
            f"Seen at noon,\n {value.upper()}  then home."
            for person in people
            for value in person.identifiers.get(identifier, ())
        ]
        for identifier in SPACE_BITS
    }


def held_back(output_filter: OutputFilter, notes: Sequence[Mapping]) -> list[float]:
    """Return, for each note, the share of its characters that a filter holds back, in [0, 1]."""
    return [
        sum(span.end - span.start for span in output_filter.find(note["text"])) / len(note["text"])
        for note in notes
    ]


def false_alarms(texts: Sequence[str], find: Callable[[str], Sequence[Span]]) -> stats.Interval:
    """Return the share of texts without any identifier in which something is found.

    Args:
        texts: different texts that hold no identifier.
        find: a detector.
    """
    if len(set(texts)) < len(texts):
        raise InvalidParameter("texts: some repeat; a text twice is not two trials")
    return stats.clopper_pearson(sum(bool(find(text)) for text in texts), len(texts))


_AGE_SEX = re.compile(r"\b(?:(\d\d) year old (wo)?man|(wo)?man, (\d\d))\b")
_WARD = re.compile(r"\b[A-Z]\w+ (?:Ward|Unit|Bay|Room|Stay|Wing)\b")


def what_stays(notes: Sequence[Mapping]) -> pd.DataFrame:
    """Return what a reader of scrubbed notes still learns of each patient: one row a patient.

    Args:
        notes: notes with `patient_id`, `condition` and `text`, after scrubbing.

    Returns:
        Columns age, sex, conditions, wards; patients whose notes state no age are left out.
    """
    people: dict[str, dict[str, set[str]]] = {}
    for note in notes:
        one = people.setdefault(
            note["patient_id"], {"age": set(), "sex": set(), "condition": set(), "ward": set()}
        )
        one["condition"].add(note["condition"])
        one["ward"].update(_WARD.findall(note["text"]))
        for match in _AGE_SEX.finditer(note["text"]):
            one["age"].add(match[1] or match[4])
            one["sex"].add("woman" if match[2] or match[3] else "man")
    rows = {
        patient: {name: ", ".join(sorted(values)) or "unknown" for name, values in one.items()}
        for patient, one in people.items()
        if one["age"]
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename(
        columns={"condition": "conditions", "ward": "wards"}
    )


def alone_by_knowledge(
    table: pd.DataFrame, known: Sequence[str], *, below: Sequence[int] = (2, 5)
) -> pd.DataFrame:
    """Return the share of patients in small classes as a reader learns one column after the other.

    Args:
        table: one row a patient, as `what_stays` returns it.
        known: columns, in the order in which they become known.
        below: class sizes from which on a class is not small; 2 counts those who stand alone.

    Returns:
        One row for each number of columns and size: knows (the last column), below, n, rate, low, high.
    """
    rows = []
    for more in range(1, len(known) + 1):
        for size in below:
            share = anonymity.share_in_small_classes(table, list(known[:more]), below=size)
            interval = stats.clopper_pearson(round(share * len(table)), len(table))
            ends = {"rate": interval.estimate, "low": interval.low, "high": interval.high}
            rows.append({"knows": known[more - 1], "below": size, "n": len(table), **ends})
    return pd.DataFrame(rows)


def removed_copies(notes: Sequence[Mapping], done: Deduplicated) -> dict[str, int]:
    """Return how many copies were removed, of canaries among them, and for another patient's sake."""
    copies = [(place, group[0]) for group in done.groups for place in group[1:]]
    return {
        "removed": len(copies),
        "of canaries": sum(notes[place]["kind"] == "canary" for place, _ in copies),
        "for another patient": sum(
            notes[place]["patient_id"] != notes[first]["patient_id"] for place, first in copies
        ),
    }
