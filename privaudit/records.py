"""What an audit is given: records, canaries and texts, checked row by row.

A record has a `patient_id` and a `text`. With a `note_id`, that must be unique; without one, the same text of
the same patient twice is the same record twice. A repeated text under another `note_id` is a note that the
model saw more than once: it is counted, and scored once. Other fields are ignored, except `identifiers`, a
list of strings in the text that name the patient. One that is in no text of its patient is counted and left
out, because nothing would find it; if that is true of most, the list was not read as it was meant, and the
file is refused.

Ids that read the same, whatever their case, width, white space and invisible characters, are one patient. The
same text under two ids may be one person or a phrase that fits many: it stays with two patients, and the
report counts it.

No message quotes a record: it may be forwarded to someone who must not see the records.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from privaudit import kit
from privaudit.kit import Manifest
from privaudit.rows import CanaryRow, RecordRow, TextRow, name_of, read_rows
from privhelpers.errors import BadRecords
from privhelpers.text import found_among, normalize, owners_of_texts

FEWEST_PATIENTS = 50  # in each file: fewer would show only a very large leak
FEWEST_CANARIES = 20
FEWEST_TEXTS = 50  # of a synthetic data set
_UNFAIR = 1e-4  # least p-value of a split by a fair coin
_WHOLE = re.compile(r"([0-9]+)(?:\.0+)?")  # a number, perhaps from a spreadsheet


@dataclass(frozen=True, slots=True)
class Note:
    """One record.

    Attributes:
        line: its number in its file, from 1.
        patient: its patient's id, normalized by `text.normalize`.
        text: its text.
        identifiers: strings in it that name the patient, if the file lists them.
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
        lines: number of its lines.
        notes: its records, each text of a patient once.
        not_found: number of identifiers that are in no text of their patient.
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
    """A text that was made for the audit.

    Attributes:
        line: its number in its file, from 1.
        text: its text.
        inserted: whether it was trained on.
        secret: the part of the text that nothing but training on it tells, or "".
        copies: how often it is among the training records if it is inserted, all under one patient_id.
        patient: its patient's id, normalized, or "".
    """

    line: int
    text: str
    inserted: bool
    secret: str = ""
    copies: int = 1
    patient: str = ""


@dataclass(frozen=True)
class CanaryFile:
    """The canaries of one file; `kit` is the manifest of their kit, other attributes as in `RecordFile`."""

    name: str
    sha256: str
    canaries: tuple[Canary, ...]
    kit: Manifest | None = None


@dataclass(frozen=True)
class TextFile:
    """The texts of one synthetic data set, in their order; other attributes as in `RecordFile`."""

    name: str
    sha256: str
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Files:
    """The checked files of an audit: members, held-out records, and perhaps canaries and synthetic texts."""

    members: RecordFile
    heldout: RecordFile
    canaries: CanaryFile | None = None
    synthetic: TextFile | None = None


def _with_own_identifiers(name: str, notes: list[Note]) -> tuple[tuple[Note, ...], int]:
    """Keep the identifiers that are in a text of their patient, and count the others.

    Raises:
        BadRecords: most are in no text.
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
            "first one here; write them as in the text, as a JSON list or divided by |, and numbers as text "
            "(a spreadsheet drops zeros and adds .0)"
        )
    if not not_found:
        return tuple(notes), 0
    kept = (
        replace(note, identifiers=tuple(one for one in note.identifiers if one in found[note.patient]))
        for note in notes
    )
    return tuple(kept), not_found


def read_records(path: str | Path, columns: Mapping[str, str] | None = None) -> RecordFile:
    """Read a file of records.

    Args:
        path: JSONL, CSV, or Parquet with `patient_id` and `text`, and perhaps `note_id` and `identifiers`.
        columns: the file's names of these fields, if they differ.

    Raises:
        BadRecords: a line is broken, blank, not UTF-8, or repeated; a field is missing, empty, or of the
            wrong type; most identifiers are in no text of their patient; or there are fewer than 50 patients.
            The message names the line.
    """
    line_of_id: dict[str, int] = {}
    line_of_note: dict[tuple[str, str], int] = {}
    unnamed: set[tuple[str, str]] = set()
    sha256, rows = read_rows(path, RecordRow, columns)
    notes = []
    for number, (where, row) in enumerate(rows, 1):
        key = (normalize(row.patient_id), row.text)
        if row.note_id is not None and (earlier := line_of_id.setdefault(row.note_id, number)) != number:
            raise BadRecords(f"{where}: repeats the note_id of line {earlier}; each record needs its own")
        if (earlier := line_of_note.setdefault(key, number)) == number:
            notes.append(Note(number, *key, tuple(row.identifiers or ())))
        elif row.note_id is None or key in unnamed:
            raise BadRecords(
                f"{where}: repeats the patient and text of line {earlier}; remove one of them, or give "
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
    """Read the canaries of a kit, or a file of them with `text` and `inserted` (true or false).

    Args:
        path: the folder of a kit, its canaries.jsonl, or another file.
        columns: the file's names of the fields, if they differ.

    Raises:
        BadRecords: as for records; a file of the kit has changed; a text repeats, or lacks its secret; there
            are fewer than 20 canaries, or no fair coin gives their split, which would make every bound wrong.
    """
    folder = kit.kit_of(path)
    if folder is not None and (Path(path).is_dir() or Path(path).name == kit.CANARIES):
        path, columns, manifest = folder / kit.CANARIES, None, kit.read_manifest(folder)
    else:
        manifest = None
    sha256, rows = read_rows(path, CanaryRow, columns)
    line_of_text: dict[str, int] = {}
    for number, (where, row) in enumerate(rows, 1):
        if (earlier := line_of_text.setdefault(normalize(row.text), number)) != number:
            raise BadRecords(f"{where}: repeats the text of line {earlier}")
        if row.secret and row.secret not in row.text:
            raise BadRecords(f"{where}: the text does not contain the secret")
    from scipy.stats import (
        binomtest,
    )  # late: it loads longer than all else here, and few audits have canaries

    canaries = tuple(
        Canary(n, row.text, row.inserted, row.secret or "", row.copies, normalize(row.patient_id or ""))
        for n, (_, row) in enumerate(rows, 1)
    )
    inserted = sum(canary.inserted for canary in canaries)
    counts = f"{name_of(path)}: {inserted} inserted of {len(canaries)} canaries"
    if len(canaries) < FEWEST_CANARIES or inserted in (0, len(canaries)):
        raise BadRecords(f"{counts}; needs {FEWEST_CANARIES} or more, some inserted and some kept out")
    if binomtest(inserted, len(canaries)).pvalue < _UNFAIR:
        raise BadRecords(f"{counts}; a fair coin must decide for each one, and no fair coin gives this split")
    return CanaryFile(name_of(path), sha256, canaries, manifest)


def read_texts(path: str | Path, columns: Mapping[str, str] | None = None) -> TextFile:
    """Read the texts of a synthetic data set; a repeated text counts each time.

    Raises:
        BadRecords: as for records, or there are fewer than 50 texts.
    """
    sha256, rows = read_rows(path, TextRow, columns)
    if len(rows) < FEWEST_TEXTS:
        raise BadRecords(f"{name_of(path)}: {len(rows)} texts; at least {FEWEST_TEXTS} are needed")
    return TextFile(name_of(path), sha256, tuple(row.text for _, row in rows))


def _line_of_text(rows: Iterable[Note]) -> dict[str, int]:
    """Return the first line of each text, whatever its case and white space."""
    return {normalize(note.text): note.line for note in reversed(list(rows))}


def _number(patient: str) -> str | None:
    """Return the digits of a numeric id without leading zeros, or None."""
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
                f"{heldout.name}, line {note.line}: its patient has the same number as the one in "
                f"{members.name}, line {known}, written differently: a spreadsheet may have dropped leading "
                "zeros or added .0; write the ids of both files as text in one way, or, if these are two "
                "patients, put a letter before the ids of one file"
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


def _without_canaries(members: RecordFile, canaries: CanaryFile) -> RecordFile:
    """Return the members of a kit's training file without its canaries.

    Raises:
        BadRecords: the file is neither the kit's nor the one that the kit was made from.
    """
    if members.sha256 == canaries.kit.records:
        return members
    if members.sha256 != canaries.kit.files[kit.TRAIN]:
        raise BadRecords(
            f"{members.name}: neither {kit.TRAIN} of the kit nor the file that the kit was made from; the "
            f"model must be trained on {kit.TRAIN}, so name that file"
        )
    made = {canary.patient for canary in canaries.canaries}
    notes = tuple(note for note in members.notes if note.patient not in made)
    return replace(members, notes=notes, lines=members.lines - canaries.kit.lines)


def read_files(
    records: str | Path,
    holdout: str | Path,
    canaries: str | Path | None = None,
    *,
    synthetic: str | Path | None = None,
    columns: Mapping[str, str] | None = None,
) -> Files:
    """Read and check the files of an audit.

    Args:
        records: what the model, or the maker of the synthetic texts, was trained on: JSONL, CSV, or Parquet.
        holdout: records that it never saw, of other patients of the same kind.
        canaries: texts made for the audit, if there are any: a file, or the folder of a kit.
        synthetic: the texts of a synthetic data set, if one is audited.
        columns: the files' names of `patient_id`, `text`, `note_id`, `identifiers`, and `inserted`, if they
            differ.

    Raises:
        BadRecords: naming file and line.
    """
    members, heldout = (read_records(path, columns) for path in (records, holdout))
    _refuse_overlap(members, heldout)
    made = None if canaries is None else read_canaries(canaries, columns)
    if made is not None and made.kit is not None:
        members = _without_canaries(members, made)
    if made is not None:
        _refuse_contradiction(made, members, heldout)
    texts = None if synthetic is None else read_texts(synthetic, columns)
    return Files(members, heldout, made, texts)
