"""Records of a user: files of JSONL, CSV or Parquet, read and checked row by row.

JSONL is one object a line, whatever the file's ending; `.csv` and `.tsv` have a first row of names and
commas, semicolons, tabs or bars between, or what a line `sep=;` above it says. Text is UTF-8, with or without
a byte order mark.

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

import ast
import csv
import hashlib
import io
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict, StrictBool, StrictStr, ValidationError

from privhelpers.artifacts import is_there, parse_json
from privhelpers.errors import BadRecords, DamagedArtifact
from privhelpers.text import blank, found_among, normalize, owners_of_texts, quoted, same_as, stands_in

FIELDS = ("patient_id", "text", "note_id", "identifiers", "inserted")
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

# What programs write for a missing value, and what people write in its place.
MISSING = frozenset(("NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NaT", "None", "NULL", "null", r"\N"))
MISSING |= {"(null)", "(NULL)", "#NULL!"}
NOTHING = MISSING | {"none", "NONE", "nil", "n.a.", "N.A.", ".", "-", "--", "–", "—"}
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_DIVIDERS = "\t;,|"
_SEP = re.compile(r'"?sep=([\t;,|])"?[ \r]*\n', re.IGNORECASE)  # a first line that spreadsheets write
_RULE = re.compile(r"[-=:+\s]+")  # a line of dashes under the names, as databases print it
_LONGEST_CELL = 1_000_000  # characters: a quote that is never closed makes a longer one
_STRING = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ITEM = rf"(?:{_STRING}|\d+\b|None\b|null\b|nan\b)"
_LIST = re.compile(rf"[\[({{][\s,;]*+(?:{_ITEM}[\s,;]*+)*+[\])}}]", re.DOTALL)
_BETWEEN = re.compile(r"[;；\r\n\t]+")


# From the bytes of a file to one dictionary a record.


def name_of(path: str | Path) -> str:
    """Return the name of a file as a message and a report show it."""
    return ascii(Path(path).name)[1:-1]


def strings_of(cell: str, text: str = "") -> list[str]:
    """Return the strings that a cell holds.

    They are a list of quoted strings in brackets, as Python, JSON or numpy writes it, or are divided by bars,
    semicolons or line breaks. A comma divides only a list in brackets, because it may be part of a name; what
    is written in the text with its semicolon is one string. A cell for a missing value holds none.

    Args:
        cell: of a table.
        text: the note of the same row.

    >>> strings_of("['Anna Hill', 'Old Anna Hill']")
    ['Anna Hill', 'Old Anna Hill']
    >>> strings_of("Anna Hill; 617-555-0123", "Anna Hill called from 617-555-0123.")
    ['Anna Hill', '617-555-0123']
    >>> strings_of("Hill, Anna"), strings_of("NA")
    (['Hill, Anna'], [])
    """
    cell = cell.strip()
    if _LIST.fullmatch(cell):
        items = [_unquoted(item) for item in re.findall(rf"{_STRING}|\d+", cell, re.DOTALL)]
    else:
        items = []
        for piece in cell.split("|"):
            whole = not _BETWEEN.search(piece.strip()) or stands_in(piece, text)
            items += [piece] if whole else _BETWEEN.split(piece)
    return [item.strip() for item in items if not blank(item) and item.strip() not in NOTHING]


def _unquoted(item: str) -> str:
    """Return what a string in quotes says, or a number as it is written."""
    if item[0] not in "'\"":
        return item
    try:
        return ast.literal_eval(item)
    except (ValueError, SyntaxError):  # a line break, or a backslash of another language
        return item[1:-1]


def _decoded(data: bytes, name: str) -> str:
    """Return the text of a file, refused by the line of what is not UTF-8."""
    try:
        text, end = data.decode("utf-8-sig"), None
    except UnicodeDecodeError as error:
        text, end = "", error.start
    if "\0" in text:
        end = len(text.partition("\0")[0].encode())
    if end is not None:
        line = data[:end].count(b"\n") + 1
        raise BadRecords(
            f"{name}, line {line}: not UTF-8 text; unpack it if it is packed or a workbook, and save it as "
            "UTF-8 (in a spreadsheet: 'CSV UTF-8')"
        )
    return text


def _json_rows(text: str, name: str) -> Iterator[tuple[str, object]]:
    """Yield place and value of each line of JSONL."""
    for number, line in enumerate(text.rstrip().split("\n") if text.strip() else [], 1):
        where = f"{name}, line {number}"
        try:
            yield where, parse_json(line, where)
        except DamagedArtifact as error:
            cause = error.__cause__
            raise BadRecords(
                f"{where}: blank, or not one JSON object a line ({getattr(cause, 'msg', None) or cause}); in "
                "pandas: to_json(path, orient='records', lines=True); a table must be named .csv, .tsv or "
                ".parquet"
            ) from None


def _named(theirs: Sequence[str], columns: Mapping[str, str], where: str) -> list[str]:
    """Return the name of each column as ours, or as the file has it.

    A field that `columns` gives another name may keep its own in a file that lacks the other.
    """
    named = [name for name in theirs if name]  # an index, or what a divider at the end of each line leaves
    if len(set(named)) < len(named):
        raise BadRecords(f"{where}: two columns of one name; rename one")
    ours = {own: field for field, own in columns.items() if own in theirs}
    return [ours.get(name, f"other {name}" if name in ours.values() else name) for name in theirs]


def _parquet_rows(data: bytes, columns: Mapping[str, str], name: str) -> Iterator[tuple[str, object]]:
    """Yield place and values of each row of a Parquet file, without the missing values."""
    import pyarrow as pa  # late: few files need it
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(pa.BufferReader(data))
    except (pa.ArrowException, OSError) as error:
        raise BadRecords(
            f"{name}: cannot be read as Parquet ({quoted(error, 150)}); save it again"
        ) from error
    table = table.rename_columns(_named(table.column_names, columns, name))
    rows = table.select([field for field in FIELDS if field in table.column_names]).to_pylist()
    for number, row in enumerate(rows, 1):
        values = {field: value for field, value in row.items() if value is not None}
        for field in {"patient_id", "note_id", "identifiers"} & values.keys():  # often kept as numbers
            if type(values[field]) is int:
                values[field] = str(values[field])
        own = values.get("identifiers")
        if isinstance(own, str):
            values["identifiers"] = strings_of(own, str(values.get("text", "")))
        elif isinstance(own, list):
            values["identifiers"] = [one for one in own if one is not None]
        yield f"{name}, row {number}", values | _truth(values)


def _truth(values: Mapping[str, object]) -> dict[str, object]:
    """Return what a table says of a canary as true or false; another word stays, and is refused."""
    inserted = values.get("inserted")
    return {} if inserted is None else {"inserted": _TRUTH.get(str(inserted).strip().casefold(), inserted)}


# Tables: what divides cells, and what double quotes mean.


@dataclass(frozen=True)
class _TableRow:
    """One row of a table: its cells, and the lines of the file that it was read from."""

    cells: list[str]
    lines: list[str]
    first: int

    @property
    def has_bare_quotes(self) -> bool:
        """Whether a quote is in a cell that is not in quotes, with the quotes in it doubled."""
        written, inside = "".join(self.lines).count('"'), "".join(self.cells).count('"')
        return inside > 0 and (written < 2 * inside + 2 or written % 2 == 1)

    def id_forms(self, divider: str, places: Sequence[int], size: int) -> set[tuple[str, ...]] | None:
        """Return the forms of the ids of each line, or None if some line has too few cells to be a row."""
        pieces = [line.rstrip("\r\n").split(divider) for line in self.lines]
        if any(len(piece) < size for piece in pieces):
            return None
        return {tuple(_form_of(piece[place]) for place in places) for piece in pieces}


def _form_of(cell: str) -> str:
    """Return the form of an id: words with a digit are alike, and others of the same length and case."""

    def form(word: re.Match) -> str:
        letters = ("A" if letter.isupper() else "a" for letter in word[0])
        return "0" if re.search(r"\d", word[0]) else "".join(letters)

    return re.sub(r"[^\W_]+", form, cell.strip().strip('"').strip())


def _form_of_table(
    lines: Sequence[str], columns: Mapping[str, str], divider: str | None
) -> dict[str, object]:
    """Return the form of a table as the csv module takes it.

    Args:
        lines: of the file, the row of names first.
        columns: field -> what the file calls it.
        divider: what the file says of it; None: the one that gives the most names that we know, and then the
            most names.
    """
    known = {*FIELDS, *columns.values()}

    def cells(line: str, divider: str) -> list[str]:
        return next(csv.reader([line.replace("\r", " ")], delimiter=divider), [])

    def names(divider: str) -> tuple[int, int]:
        found = cells(lines[0], divider)
        return sum(name.strip() in known for name in found), len(found)

    divider = divider or max(_DIVIDERS, key=names)
    # Blanks after a divider, before names or before quotes.
    spaced = any(name.startswith(" ") for name in cells(lines[0], divider)[1:])
    spaced = spaced or any(re.match(' +"', cell) for cell in cells(lines[1], divider)[1:])
    return {"delimiter": divider, "skipinitialspace": spaced}


def _rows_of_lines(lines: Sequence[str], first: int, name: str, form: Mapping) -> list[_TableRow]:
    """Return the rows of a table, the row of names first and blank rows at its end left out.

    Args:
        lines: of the file, from the row of names on.
        first: the number of the first of them.
        name: of the file.
        form: of the table, as the csv module takes it.
    """
    reader, rows, read = csv.reader(lines, strict=True, **form), [], 0
    try:
        for cells in reader:
            rows.append(_TableRow(cells, list(lines[read : reader.line_num]), first + read))
            read = reader.line_num
    except csv.Error as error:
        raise BadRecords(
            f"{name}, row {len(rows)}: broken ({quoted(error)}); end lines with a line feed, put text in "
            "double quotes, and those inside doubled (in R: qmethod='double')"
        ) from None
    while rows and all(map(blank, rows[-1].cells)):
        rows.pop()
    return rows


def _whole_rows(lines: Sequence[str], first: int, name: str, form: Mapping) -> list[_TableRow]:
    """Return the rows of a table, as `_rows_of_lines`, after telling what its double quotes mean.

    A program either puts text with quotes in double quotes, or writes quotes as they are. A note that begins
    with a quote tells the two apart: read in the first way, it goes on until a note that ends with one, and
    all rows between become one. A table with tabs that is whole without quoting is then read so.
    """
    filled = list(lines)
    while filled and blank(filled[-1]):
        filled.pop()
    tabs = filled[0].count("\t") if filled and form["delimiter"] == "\t" and '"' not in filled[0] else 0
    plain = tabs > 0 and all(line.count("\t") == tabs for line in filled)
    try:
        rows = _rows_of_lines(lines, first, name, form)
    except BadRecords:
        if not plain:
            raise
        rows = []
    broken = (row.has_bare_quotes or len(row.lines) > 1 or len(row.cells) != tabs + 1 for row in rows)
    if plain and (not rows or any(broken)):
        return _rows_of_lines(lines, first, name, {**form, "quoting": csv.QUOTE_NONE})
    return rows


def _refuse_merged_rows(rows: Sequence[_TableRow], ours: Sequence[str], divider: str, name: str) -> None:
    """Refuse a row of several lines, each of which has as many cells as the table and the ids of a row.

    Args:
        rows: without the row of names.
        ours: the names of the columns.
        divider: of the cells.
        name: of the file.
    """
    text_at = ours.index("text") if "text" in ours else len(ours)
    # From the end for a column after the text, which may hold dividers.
    places = [
        place if place < text_at else place - len(ours)
        for place, field in enumerate(ours)
        if field in ("patient_id", "note_id", "inserted")
    ]
    bare = any(row.has_bare_quotes for row in rows)
    forms = [row.id_forms(divider, places, len(ours)) for row in rows]
    known = set().union(*(one for row, one in zip(rows, forms, strict=True) if one and len(row.lines) == 1))
    for number, (row, one) in enumerate(zip(rows, forms, strict=True), 1):
        if len(row.lines) > 1 and one is not None and (one <= known if places else bare):
            raise BadRecords(
                f"{name}, row {number}: lines {row.first} to {row.first + len(row.lines) - 1} are one record "
                "by their double quotes, and look like a record each; put every text in double quotes, "
                "those inside doubled, or save the table as JSONL or Parquet"
            )


def _table_rows(text: str, columns: Mapping[str, str], name: str) -> Iterator[tuple[str, object]]:
    """Yield place and cells by name of each row of a table, the row of names not counted."""
    csv.field_size_limit(_LONGEST_CELL)
    said = _SEP.match(text)
    lines = list(io.StringIO(text[said.end() :] if said else text, newline="\n"))
    form = _form_of_table([*lines[:2], "", ""], columns, said and said[1])
    head, *rows = _whole_rows(lines, 1 + bool(said), name, form) or [_TableRow([], [], 1)]
    ours = _named([one.strip() for one in head.cells], columns, f"{name}, row of names")
    _refuse_merged_rows(rows, ours, form["delimiter"], name)
    for number, row in enumerate(rows, 1):
        where = f"{name}, row {number}"
        if all(map(blank, row.cells)) or (number == 1 and _RULE.fullmatch("".join(row.cells))):
            raise BadRecords(f"{where}: is blank, or a line of dashes; remove it")
        if len(row.cells) != len(ours):
            raise BadRecords(
                f"{where}: {len(row.cells)} cells under {len(ours)} names; put text that holds the divider, "
                "quotes or line breaks in double quotes, and leave out row names that have no column"
            )
        yield where, _cells(dict(zip(ours, row.cells, strict=True)))


def _cells(row: dict[str, str]) -> dict[str, object]:
    """Return one row of a table; an empty or missing value is left out, but a text or a patient."""
    absent = {"patient_id": NOTHING, "note_id": NOTHING, "text": MISSING}
    row = {name: "" if cell.strip() in absent.get(name, ()) else cell for name, cell in row.items()}
    values = {name: cell for name, cell in row.items() if not blank(cell) or name in ("text", "patient_id")}
    if "identifiers" in values:
        values["identifiers"] = strings_of(values["identifiers"], values.get("text", ""))
    return values | _truth(values)


# From a dictionary to a checked row.


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
    "string_unicode": "holds half of a character (a lone surrogate); remove it",
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


def read_rows(
    path: str | Path, kind: type[BaseModel], columns: Mapping[str, str] | None = None
) -> tuple[str, list[tuple[str, BaseModel]]]:
    """Return the SHA-256 of a file, and place and checked row of each of its records.

    Args:
        path: JSONL, or `.csv`, `.tsv` and `.parquet`.
        kind: what a row must be.
        columns: field -> what the file calls it, where it calls it otherwise.

    Raises:
        BadRecords: there is no such file, or a row is invalid; the message names file and row.
    """
    name, columns = name_of(path), dict(columns or {})
    if not is_there(path) or not Path(path).is_file():
        raise BadRecords(f"{name}: no such file")
    data, form = Path(path).read_bytes(), Path(path).suffix.lower()
    if form == ".parquet":
        rows = _parquet_rows(data, columns, name)
    elif form in (".csv", ".tsv"):
        rows = _table_rows(_decoded(data, name), columns, name)
    else:
        rows = _renamed(_json_rows(_decoded(data, name), name), columns)
    return hashlib.sha256(data).hexdigest(), [(where, _checked(where, kind, row)) for where, row in rows]


def _renamed(rows: Iterable[tuple[str, object]], columns: Mapping[str, str]) -> Iterator[tuple[str, object]]:
    """Yield rows of JSON with the fields by our names."""
    for where, row in rows:
        if isinstance(row, dict) and columns:
            row = dict(zip(_named(list(row), columns, where), row.values(), strict=True))
        yield where, row


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


# The files of an audit.


@dataclass(frozen=True, slots=True)
class Note:
    """One record.

    Attributes:
        line: where it stands in its file, from 1.
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
        """Notes whose text stands under another patient too: perhaps one person under two ids."""
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
    sha256, rows = read_rows(path, _Row, columns)
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
        BadRecords: as for records; a text stands twice, fewer than 20 canaries, or a split between inserted
            ones and others that no fair coin gives, which would make every bound wrong.
    """
    sha256, rows = read_rows(path, _CanaryRow, columns)
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
    """Read the texts of a synthetic data set; one that stands twice counts twice.

    Raises:
        BadRecords: as for records, or there are fewer than 50 texts.
    """
    sha256, rows = read_rows(path, _TextRow, columns)
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
                    f"{heldout.name}, line {note.line}: its {what} stands in {members.name}, line {line}; "
                    f"a held-out {what} must be one that the model never saw"
                )


def _refuse_contradiction(canaries: CanaryFile, members: RecordFile, heldout: RecordFile) -> None:
    """Refuse a canary that was kept out and stands among the members, or was inserted and is held out."""
    for inserted, file in ((False, members), (True, heldout)):
        lines = _line_of_text(file.notes)
        for canary in canaries.canaries:
            if canary.inserted == inserted and normalize(canary.text) in lines:
                raise BadRecords(
                    f"{canaries.name}, line {canary.line}: inserted is {str(inserted).lower()}, but the text "
                    f"stands in {file.name}, line {lines[normalize(canary.text)]}"
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
