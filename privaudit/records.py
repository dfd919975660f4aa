"""Records of a user, read from files of JSONL, CSV or Parquet and checked row by row.

A record has a `patient_id` and a `text`. With a `note_id`, that is what must be unique; without one, the same
text of the same patient twice is the same record twice. A repeated text under another `note_id` is a note
that the model saw more than once: it is counted, and scored once. Other fields are ignored, except
`identifiers`, a list of strings in the text that name the patient. One that is in no text of its patient is
counted and left out, because nothing would find it; if that is true of most, the list was not read as it was
meant, and the file is refused.

Ids that read the same, whatever their case, width, white space and characters without a shape, are one
patient. The same text under two ids may be one person or a phrase that fits many: it stays with two patients,
and the report counts it.

No message quotes a record: it may be forwarded to someone who must not see the records.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, StrictBool, StrictStr, ValidationError

from privaudit.rows import name_of, read_rows
from privhelpers.errors import BadRecords
from privhelpers.text import blank, found_among, normalize, owners_of_texts, same_as

FEWEST_PATIENTS = 50  # in each file: with fewer, only the loudest leak could be told from chance
FEWEST_CANARIES = 20
FEWEST_TEXTS = 50  # of a synthetic data set
_UNFAIR = 1e-4  # a coin that gives so uneven a split is not believed
_SHORTEST_STRING = 6  # letters of a string that names a patient: shorter ones come by chance
# Six digits or more, as in record numbers, telephone numbers and dates; and addresses of mail. A dot before a
# blank ends a sentence, and the number with it.
_NUMBER = re.compile(r"(?<!\d)\d(?:(?:\.(?! )| \. |[-/() ]){0,3}\d){5,}(?!\d)")
_MAIL = re.compile(r"[\w.%+'-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}")
_WHOLE = re.compile(r"([0-9]+)(?:\.0+)?")  # a number, as a spreadsheet may write it


def _filled(text: str) -> str:
    if blank(text):
        raise ValueError("is empty")
    if "\0" in text:
        raise ValueError("holds a NUL character; remove it")
    return text


_Filled = Annotated[StrictStr, AfterValidator(_filled)]
_PROBLEMS = {
    "missing": "is missing",
    "string_type": "must be text: a string in quotes, or a column of text",
    "bool_type": "must be true or false",
    "list_type": "must be a list of strings",
    "string_unicode": "contains half of a character (a lone surrogate); remove it",
    "model_type": "must be an object with named fields, in braces",
}


class _TextRow(BaseModel):
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)
    text: _Filled


class _Row(_TextRow):
    patient_id: _Filled
    note_id: _Filled | None = None
    identifiers: list[_Filled] | None = None


class _CanaryRow(_TextRow):
    inserted: StrictBool


def _read_checked(
    path: str | Path, kind: type[BaseModel], columns: Mapping[str, str] | None
) -> tuple[str, list[tuple[str, BaseModel]]]:
    """Return the SHA-256 of a file, and place and checked row of each of its records."""
    sha256, rows = read_rows(path, columns)
    return sha256, [(where, _checked(where, kind, row)) for where, row in rows]


def _checked(where: str, kind: type[BaseModel], row: object) -> BaseModel:
    try:
        return kind.model_validate(row)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or "the record"
        problem = _PROBLEMS.get(first["type"]) or str(first.get("ctx", {}).get("error", "is invalid"))
        if first["type"] == "missing":
            problem += f"; if the file calls it otherwise, say so in columns, such as '{field}=...'"
        raise BadRecords(f"{where}: {field} {problem}") from None


@dataclass(frozen=True, slots=True)
class Note:
    """One record.

    Attributes:
        line: its number in its file, from 1.
        patient: whose it is, in the one spelling of `text.normalize`.
        text: what it says.
        identifiers: strings in it that name the patient, if the file says which.
    """

    line: int
    patient: str
    text: str
    identifiers: tuple[str, ...] = ()


@dataclass(frozen=True)
class RecordFile:
    """The records of one file.

    Attributes:
        name: of the file, without its folder.
        sha256: of its bytes.
        lines: how many it has.
        notes: its records, each text of a patient once.
        not_found: identifiers that are in no text of their patient; no note has them.
    """

    name: str
    sha256: str
    lines: int
    notes: tuple[Note, ...]
    not_found: int = 0

    @property
    def patients(self) -> list[str]:
        """The patients, in the order of first appearance."""
        return list(dict.fromkeys(note.patient for note in self.notes))

    @property
    def repeated(self) -> int:
        """Lines that repeat a note of the same patient under another `note_id`."""
        return self.lines - len(self.notes)

    @property
    def shared(self) -> int:
        """Notes whose text another patient has too: perhaps one person under two ids."""
        owners = owners_of_texts((note.patient, note.text) for note in self.notes)
        return sum(count for count in owners.values() if count > 1)


@dataclass(frozen=True)
class Canary:
    """A text that was made for the audit; `inserted` says whether it was trained on."""

    line: int
    text: str
    inserted: bool


@dataclass(frozen=True)
class CanaryFile:
    """The canaries of one file; the attributes are those of `RecordFile`."""

    name: str
    sha256: str
    canaries: tuple[Canary, ...]


@dataclass(frozen=True)
class TextFile:
    """The texts of one synthetic data set, in their order; the other attributes are those of `RecordFile`."""

    name: str
    sha256: str
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Files:
    """The checked files of an audit: members, held-out records and perhaps canaries and synthetic texts."""

    members: RecordFile
    heldout: RecordFile
    canaries: CanaryFile | None = None
    synthetic: TextFile | None = None


def _with_own_identifiers(name: str, notes: list[Note]) -> tuple[tuple[Note, ...], int]:
    """Return notes with those of their identifiers that are in a text of their patient, and count the others.

    Raises:
        BadRecords: most are in none.
    """
    texts: dict[str, list[str]] = {}
    declared: dict[str, dict[str, None]] = {}
    for note in notes:
        texts.setdefault(note.patient, []).append(note.text)
        declared.setdefault(note.patient, {}).update(dict.fromkeys(note.identifiers))
    found = {
        patient: set(found_among(values, texts[patient])) if values else set()
        for patient, values in declared.items()
    }
    missing = {patient: values.keys() - found[patient] for patient, values in declared.items()}
    total, not_found = (sum(map(len, of.values())) for of in (declared, missing))
    if 2 * not_found > total:
        line = next(note.line for note in notes if missing[note.patient].intersection(note.identifiers))
        raise BadRecords(
            f"{name}, line {line}: {not_found} of {total} identifiers are in no text of their patient, the "
            "first one here; write them as the text has them, as a JSON list or with | between, and numbers "
            "as text (a spreadsheet drops zeros and adds .0)"
        )
    if not not_found:
        return tuple(notes), 0
    kept = (
        replace(note, identifiers=tuple(one for one in note.identifiers if one in found[note.patient]))
        for note in notes
    )
    return tuple(kept), not_found


def naming_strings(notes: Sequence[Note]) -> dict[str, str]:
    """Return strings that name one patient of these alone, normalized, and whose they are.

    Those that the records declare, and numbers of six digits or more and mail addresses in the text. What
    two patients share names neither.
    """
    owners: dict[str, set[str]] = {}
    written: dict[str, str] = {}
    for note in notes:
        text = normalize(note.text)
        for value in [*map(normalize, note.identifiers), *_NUMBER.findall(text), *_MAIL.findall(text)]:
            if _length(value) >= _SHORTEST_STRING:
                owners.setdefault(same_as(value), set()).add(note.patient)
                written.setdefault(same_as(value), value)
    return {written[value]: next(iter(people)) for value, people in owners.items() if len(people) == 1}


def _length(value: str) -> int:
    """Return the letters of a string; a wide one, as of Chinese or Korean, says as much as three."""
    return sum(3 if unicodedata.east_asian_width(character) == "W" else 1 for character in value)


def read_records(path: str | Path, columns: Mapping[str, str] | None = None) -> RecordFile:
    """Read a file of records.

    Args:
        path: JSONL, CSV or Parquet with `patient_id` and `text`, and perhaps `note_id` and `identifiers`.
        columns: what the file calls these fields, where it calls them otherwise.

    Raises:
        BadRecords: a line is broken, blank, not UTF-8 or repeated, a field is missing, empty or of the wrong
            type, most identifiers are in no text of their patient, or there are fewer than 50 patients. The
            message says which line.
    """
    line_of_id: dict[str, int] = {}
    line_of_note: dict[tuple[str, str], int] = {}
    unnamed: set[tuple[str, str]] = set()
    sha256, rows = _read_checked(path, _Row, columns)
    notes = []
    for number, (where, row) in enumerate(rows, 1):
        key = (normalize(row.patient_id), row.text)
        if row.note_id is not None and (earlier := line_of_id.setdefault(row.note_id, number)) != number:
            raise BadRecords(f"{where}: the note_id of line {earlier} again; each record needs its own")
        if (earlier := line_of_note.setdefault(key, number)) == number:
            notes.append(Note(number, *key, tuple(row.identifiers or ())))
        elif row.note_id is None or key in unnamed:
            raise BadRecords(
                f"{where}: the patient and text of line {earlier} again; remove one of them, or give "
                "each record a note_id if the model was trained on both"
            )
        if row.note_id is None:
            unnamed.add(key)
    found, not_found = _with_own_identifiers(name_of(path), notes)
    records = RecordFile(name_of(path), sha256, len(rows), found, not_found)
    if len(records.patients) < FEWEST_PATIENTS:
        raise BadRecords(
            f"{records.name}: {len(records.patients)} patients in {len(rows)} lines; at least "
            f"{FEWEST_PATIENTS} are needed to tell a leak from chance"
        )
    return records


def read_canaries(path: str | Path, columns: Mapping[str, str] | None = None) -> CanaryFile:
    """Read a file of canaries, with `text` and `inserted` (true or false).

    Raises:
        BadRecords: as for records; a text is there twice, fewer than 20 canaries, or a split between inserted
            ones and others that no fair coin gives, which would make every bound wrong.
    """
    sha256, rows = _read_checked(path, _CanaryRow, columns)
    line_of_text: dict[str, int] = {}
    for number, (where, row) in enumerate(rows, 1):
        if (earlier := line_of_text.setdefault(normalize(row.text), number)) != number:
            raise BadRecords(f"{where}: the text of line {earlier} again")
    from scipy.stats import (
        binomtest,
    )  # late: it loads longer than all else here, and few audits have canaries

    canaries = tuple(Canary(number, row.text, row.inserted) for number, (_, row) in enumerate(rows, 1))
    inserted = sum(canary.inserted for canary in canaries)
    counts = f"{name_of(path)}: {inserted} inserted of {len(canaries)} canaries"
    if len(canaries) < FEWEST_CANARIES or inserted in (0, len(canaries)):
        raise BadRecords(f"{counts}; needs {FEWEST_CANARIES} or more, some inserted and some kept out")
    if binomtest(inserted, len(canaries)).pvalue < _UNFAIR:
        raise BadRecords(f"{counts}; a fair coin must decide for each one, and no fair coin gives that")
    return CanaryFile(name_of(path), sha256, canaries)


def read_texts(path: str | Path, columns: Mapping[str, str] | None = None) -> TextFile:
    """Read the texts of a synthetic data set; one that is there twice counts twice.

    Raises:
        BadRecords: as for records, or there are fewer than 50 texts.
    """
    sha256, rows = _read_checked(path, _TextRow, columns)
    if len(rows) < FEWEST_TEXTS:
        raise BadRecords(f"{name_of(path)}: {len(rows)} texts; at least {FEWEST_TEXTS} are needed")
    return TextFile(name_of(path), sha256, tuple(row.text for _, row in rows))


def _line_of_text(rows: Iterable[Note]) -> dict[str, int]:
    """Return the first line of each text, whatever its case and white space."""
    return {normalize(note.text): note.line for note in reversed(list(rows))}


def _number(patient: str) -> str | None:
    """Return the digits of an id that is a number, without leading zeros; None for another one."""
    whole = _WHOLE.fullmatch(patient)
    return whole and whole[1].lstrip("0")


def _refuse_overlap(members: RecordFile, heldout: RecordFile) -> None:
    """Refuse two files that share a patient or a text: a record cannot be trained on and held out."""
    texts = _line_of_text(members.notes)
    patients, numbers = (
        {of(note.patient): note.line for note in reversed(members.notes)} for of in (str, _number)
    )
    numbers.pop(None, None)
    for note in heldout.notes:
        lines = {"patient": patients.get(note.patient), "text": texts.get(normalize(note.text))}
        known = numbers.get(_number(note.patient))
        if known and lines["patient"] is None:
            raise BadRecords(
                f"{heldout.name}, line {note.line}: its patient has the number of the one in {members.name}, "
                f"line {known}, written otherwise: one file lost its leading zeros, or got .0 at the end, as "
                "in a spreadsheet; write the ids of both files as text, in one way, or, if these are two "
                "patients, a letter before the ids of one file"
            )
        for what, line in lines.items():
            if line is not None:
                raise BadRecords(
                    f"{heldout.name}, line {note.line}: its {what} is in {members.name}, line {line}; "
                    f"a held-out {what} must be one that the model never saw"
                )


def _refuse_contradiction(canaries: CanaryFile, members: RecordFile, heldout: RecordFile) -> None:
    """Refuse a canary that was kept out and is among the members, or was inserted and is held out."""
    for inserted, file in ((False, members), (True, heldout)):
        lines = _line_of_text(file.notes)
        for canary in canaries.canaries:
            if canary.inserted == inserted and normalize(canary.text) in lines:
                raise BadRecords(
                    f"{canaries.name}, line {canary.line}: inserted is {str(inserted).lower()}, but the text "
                    f"is in {file.name}, line {lines[normalize(canary.text)]}"
                )


def read_files(
    records: str | Path,
    holdout: str | Path,
    canaries: str | Path | None = None,
    *,
    synthetic: str | Path | None = None,
    columns: Mapping[str, str] | None = None,
) -> Files:
    """Read the files of an audit and refuse what could not be believed.

    Args:
        records: what the model, or the maker of the synthetic texts, was trained on: JSONL, CSV or Parquet.
        holdout: what it never saw, of other patients of the same kind.
        canaries: texts made for the audit, if there are any.
        synthetic: the texts of a synthetic data set, if one is audited.
        columns: what the files call `patient_id`, `text`, `note_id`, `identifiers` and `inserted`, where
            they call them otherwise.

    Raises:
        BadRecords: naming file and line.
    """
    members, heldout = (read_records(path, columns) for path in (records, holdout))
    _refuse_overlap(members, heldout)
    made = None if canaries is None else read_canaries(canaries, columns)
    if made is not None:
        _refuse_contradiction(made, members, heldout)
    texts = None if synthetic is None else read_texts(synthetic, columns)
    return Files(members, heldout, made, texts)
