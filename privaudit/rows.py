"""Rows of a user's file, from JSONL, CSV tables, and Parquet, each with its fields checked.

JSONL has one object a line, whatever the file's ending; `.csv` and `.tsv` have a first row of names, divided
by commas, semicolons, tabs, bars, or the character that a line `sep=;` above it names. Text is UTF-8, with or
without a byte order mark.

No message quotes a record: it may be forwarded to someone who must not see the records.
"""

import ast
import csv
import hashlib
import io
import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    PositiveInt,
    StrictBool,
    StrictStr,
    ValidationError,
)

from privhelpers.artifacts import is_there, parse_json
from privhelpers.errors import BadRecords, DamagedArtifact, InvalidParameter
from privhelpers.text import blank, quoted, stands_in

FIELDS = ("patient_id", "text", "note_id", "identifiers", "inserted", "id", "answer")
# What programs, and people, write for a missing value.
MISSING = frozenset(("NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NaT", "None", "NULL", "null", r"\N"))
MISSING |= {"(null)", "(NULL)", "#NULL!"}
NOTHING = MISSING | {"none", "NONE", "nil", "n.a.", "N.A.", ".", "-", "--", "–", "—"}
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_PARQUET = b"PAR1"  # how such a file begins and ends
_DIVIDERS = "\t;,|"
_SEP = re.compile(r'"?sep=([\t;,|])"?[ \r]*\n', re.IGNORECASE)  # a first line that spreadsheets write
_RULE = re.compile(r"[-=:+\s]+")  # a line of dashes under the names, from a database
_LONGEST_CELL = 1_000_000  # characters: an unclosed quote makes a longer one
_STRING = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ITEM = rf"(?:{_STRING}|\d+\b|None\b|null\b|nan\b)"
_LIST = re.compile(rf"[\[({{][\s,;]*+(?:{_ITEM}[\s,;]*+)*+[\])}}]", re.DOTALL)
_BETWEEN = re.compile(r"[;；\r\n\t]+")


def name_of(path: str | Path) -> str:
    """Return the name of a file for messages and reports."""
    return ascii(Path(path).name)[1:-1]


def columns_of(text: str) -> dict[str, str]:
    """Return field -> the file's name of its column, as `--columns` gives them.

    Raises:
        ValueError: a pair has no `=`, its field is unknown, or a field or a column is named twice.

    >>> columns_of("patient_id=mrn text='progress note'")
    {'patient_id': 'mrn', 'text': 'progress note'}
    """
    if text.isdigit():  # a shell sets COLUMNS to the width of its window
        return {}
    pairs = [word.split("=", 1) for word in shlex.split(text)]
    if any(len(pair) < 2 or pair[0] not in FIELDS for pair in pairs):
        raise ValueError(
            f"must be pairs such as 'patient_id=mrn text=note'; the fields are {', '.join(FIELDS)}"
        )
    columns = dict(pairs)
    if len(columns) < len(pairs) or len(set(columns.values())) < len(pairs) or not all(columns.values()):
        raise ValueError("each field, and each column, can be named once")
    return columns


def columns_option(given: str | None) -> dict[str, str] | None:
    """Return what `--columns` gives, or None if it is not given.

    Raises:
        InvalidParameter: as `columns_of`, with the name of the option.
    """
    try:
        return columns_of(given) if given else None
    except ValueError as error:
        raise InvalidParameter(f"--columns={quoted(given)}: {error}") from None


def strings_of(cell: str, text: str = "") -> list[str]:
    """Return the strings of a cell.

    They are a list of quoted strings in brackets, as Python, JSON, or numpy writes it, or are divided by
    bars, semicolons, or line breaks. A comma divides only a list in brackets, because it may be part of a
    name. A string that the text contains with its semicolon is one string. A missing value has no strings.

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
    """Return a quoted string without its quotes, or a number as written."""
    for read in (json.loads, ast.literal_eval) if item[0] in "'\"" else ():
        try:
            return read(item)
        except (ValueError, SyntaxError):  # the other language, a line break, or a backslash
            continue
    return item.strip("'\"")


def decoded(data: bytes, name: str) -> str:
    """Return the text of a file; a refusal names the first line that is not UTF-8."""
    try:
        text, end = data.decode("utf-8-sig"), None
    except UnicodeDecodeError as error:
        text, end = "", error.start
    if "\0" in text:
        end = len(text.partition("\0")[0].encode())
    if end is not None:
        line = data[:end].count(b"\n") + 1
        raise BadRecords(
            f"{name}, line {line}: not UTF-8 text; unpack an archive, export a workbook, and save it as "
            "UTF-8 (in a spreadsheet: 'CSV UTF-8')"
        )
    return text


def _json_rows(text: str, columns: Mapping[str, str], name: str) -> Iterator[tuple[str, object]]:
    """Yield place and value of each line of JSONL, with our names of the fields."""
    for number, line in enumerate(text.rstrip().split("\n") if text.strip() else [], 1):
        where = f"{name}, line {number}"
        try:
            row = parse_json(line, where)
        except DamagedArtifact as error:
            cause = error.__cause__
            raise BadRecords(
                f"{where}: blank, or not one JSON object a line ({getattr(cause, 'msg', None) or cause}); in "
                "pandas: to_json(path, orient='records', lines=True); a table must be named .csv, .tsv or "
                ".parquet"
            ) from None
        if isinstance(row, dict) and columns:
            row = dict(zip(_named(list(row), columns, where), row.values(), strict=True))
        yield where, row


def _named(theirs: Sequence[str], columns: Mapping[str, str], where: str) -> list[str]:
    """Return the name of each column as ours, or as the file has it.

    A field that `columns` renames may keep its own name in a file that lacks the other.
    """
    named = [name for name in theirs if name]  # empty: an index, or a divider at the end of each line
    if len(set(named)) < len(named):
        raise BadRecords(f"{where}: two columns have one name; rename one")
    ours = {own: field for field, own in columns.items() if own in theirs}
    return [ours.get(name, f"other {name}" if name in ours.values() else name) for name in theirs]


def _parquet_rows(data: bytes, columns: Mapping[str, str], name: str) -> Iterator[tuple[str, object]]:
    """Yield place and values of each row of a Parquet file, without the missing values."""
    if not data.startswith(_PARQUET) or not data.endswith(_PARQUET):
        raise BadRecords(f"{name}: not Parquet, or not all of it; save it again")
    from arro3.io import read_parquet  # late: few files need it

    try:
        table = read_parquet(io.BytesIO(data)).read_all()
        fields = enumerate(_named(table.column_names, columns, name))
        cells = {field: table.column(n).to_pylist() for n, field in fields if field in FIELDS}
    except BadRecords:
        raise
    except BaseException as error:  # where the reader panics, it raises no Exception
        if isinstance(error, KeyboardInterrupt | SystemExit | MemoryError):
            raise
        raise BadRecords(
            f"{name}: cannot be read as Parquet ({quoted(error, 150)}); save it again"
        ) from error
    for number in range(1, table.num_rows + 1):
        row = {field: column[number - 1] for field, column in cells.items()}
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
    """Return whether a canary was inserted; another word stays, and is refused later."""
    inserted = values.get("inserted")
    return {} if inserted is None else {"inserted": _TRUTH.get(str(inserted).strip().casefold(), inserted)}


@dataclass(frozen=True)
class _TableRow:
    """One row of a table: its cells and its lines of the file."""

    cells: list[str]
    lines: list[str]
    first: int

    @property
    def has_bare_quotes(self) -> bool:
        """Whether a cell contains a quote but is not itself quoted with doubled quotes."""
        written, inside = "".join(self.lines).count('"'), "".join(self.cells).count('"')
        return inside > 0 and (written < 2 * inside + 2 or written % 2 == 1)

    def id_forms(self, divider: str, places: Sequence[int], size: int) -> set[tuple[str, ...]] | None:
        """Return the forms of the ids of each line, or None if a line has too few cells for a row."""
        pieces = [line.rstrip("\r\n").split(divider) for line in self.lines]
        if any(len(piece) < size for piece in pieces):
            return None
        return {tuple(_form_of(piece[place]) for place in places) for piece in pieces}


def _form_of(cell: str) -> str:
    """Return the form of an id: words with a digit are equal, others if length and case agree."""

    def form(word: re.Match) -> str:
        letters = ("A" if letter.isupper() else "a" for letter in word[0])
        return "0" if re.search(r"\d", word[0]) else "".join(letters)

    return re.sub(r"[^\W_]+", form, cell.strip().strip('"').strip())


def _form_of_table(
    lines: Sequence[str], columns: Mapping[str, str], divider: str | None
) -> dict[str, object]:
    """Return the options of the csv module for a table.

    Args:
        lines: of the file, the row of names first.
        columns: field -> its name in the file.
        divider: as the file states it; None: the one that gives the most known names, then the most names.
    """
    known = {*FIELDS, *columns.values()}

    def cells(line: str, divider: str) -> list[str]:
        return next(csv.reader([line.replace("\r", " ")], delimiter=divider), [])

    def names(divider: str) -> tuple[int, int]:
        found = cells(lines[0], divider)
        return sum(name.strip() in known for name in found), len(found)

    divider = divider or max(_DIVIDERS, key=names)
    # Blanks after a divider, in front of names or quotes.
    spaced = any(name.startswith(" ") for name in cells(lines[0], divider)[1:])
    spaced = spaced or any(re.match(' +"', cell) for cell in cells(lines[1], divider)[1:])
    return {"delimiter": divider, "skipinitialspace": spaced}


def _rows_of_lines(lines: Sequence[str], first: int, name: str, form: Mapping) -> list[_TableRow]:
    """Return the rows of a table, the row of names first, without blank rows at the end.

    Args:
        lines: of the file, from the row of names on.
        first: the number of the first of them.
        name: of the file.
        form: options of the csv module.
    """
    reader, rows, read = csv.reader(lines, strict=True, **form), [], 0
    try:
        for cells in reader:
            rows.append(_TableRow(cells, list(lines[read : reader.line_num]), first + read))
            read = reader.line_num
    except csv.Error as error:
        raise BadRecords(
            f"{name}, row {len(rows)}: broken ({quoted(error)}); end lines with a line feed, put text in "
            "double quotes, and double the quotes inside (in R: qmethod='double')"
        ) from None
    while rows and all(map(blank, rows[-1].cells)):
        rows.pop()
    return rows


def _whole_rows(lines: Sequence[str], first: int, name: str, form: Mapping) -> list[_TableRow]:
    """Return the rows of a table, as `_rows_of_lines`, after deciding what its double quotes mean.

    Some programs put text with quotes in double quotes, others write quotes as they are. If the first rule
    reads a note of the second kind that begins with a quote, the note continues until one that ends with a
    quote, and all rows between them merge. So a table with tabs that is whole without quoting is read that
    way.
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
    """Refuse a row of several lines if each of them looks like a row of its own.

    Args:
        rows: without the row of names.
        ours: the names of the columns.
        divider: of the cells.
        name: of the file.
    """
    text_at = ours.index("text") if "text" in ours else len(ours)
    # Columns after the text count from the end, because the text may contain dividers.
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
                "by their double quotes, but each looks like a record; put every text in double quotes, "
                "double those inside, or save the table as JSONL or Parquet"
            )


def _table_rows(text: str, columns: Mapping[str, str], name: str) -> Iterator[tuple[str, object]]:
    """Yield place and cells by name of each row of a table, after the row of names."""
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
                f"{where}: {len(row.cells)} cells under {len(ours)} names; put text that contains the "
                "divider, quotes, or line breaks in double quotes, and leave out row names without a column"
            )
        yield where, _cells(dict(zip(ours, row.cells, strict=True)))


def _cells(row: dict[str, str]) -> dict[str, object]:
    """Return one row of a table without missing values; a missing text or patient becomes empty."""
    absent = {"patient_id": NOTHING, "note_id": NOTHING, "text": MISSING}
    row = {name: "" if cell.strip() in absent.get(name, ()) else cell for name, cell in row.items()}
    values = {
        name: cell
        for name, cell in row.items()
        if not blank(cell) or name in ("text", "patient_id", "answer")
    }
    if "identifiers" in values:
        values["identifiers"] = strings_of(values["identifiers"], values.get("text", ""))
    return values | _truth(values)


def _filled(text: str) -> str:
    if blank(text):
        raise ValueError("is empty")
    if "\0" in text:
        raise ValueError("contains a NUL character; remove it")
    return text


_Filled = Annotated[StrictStr, AfterValidator(_filled)]
_PROBLEMS = {
    "missing": "is missing",
    "string_type": "must be text: a string in quotes, or a column of text",
    "bool_type": "must be true or false",
    "bool_parsing": "must be yes or no",
    "int_parsing": "must be a whole number",
    "greater_than_equal": "must be 0 or more",
    "list_type": "must be a list of strings",
    "string_unicode": "contains half of a character (a lone surrogate); remove it",
    "model_type": "must be an object with named fields, in braces",
}


class TextRow(BaseModel):
    """A synthetic text."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)
    text: _Filled


class RecordRow(TextRow):
    """A record of a patient."""

    patient_id: _Filled
    note_id: _Filled | None = None
    identifiers: list[_Filled] | None = None


class CanaryRow(TextRow):
    """A canary; its secret is a part of its text."""

    inserted: StrictBool
    secret: _Filled | None = None
    copies: PositiveInt = 1
    patient_id: _Filled | None = None


class AnswerRow(BaseModel):
    """An answer of a model to a question; it may be empty."""

    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)
    id: _Filled
    answer: StrictStr


def read_rows(
    path: str | Path, kind: type[BaseModel], columns: Mapping[str, str] | None = None
) -> tuple[str, list[tuple[str, BaseModel]]]:
    """Return the SHA-256 of a file, and place and checked fields of each of its records.

    Args:
        path: JSONL, or `.csv`, `.tsv`, and `.parquet`.
        kind: the fields of a record: `TextRow`, `RecordRow`, `CanaryRow`, or `AnswerRow`.
        columns: field -> its name in the file, if that differs.

    Raises:
        BadRecords: the file is missing or broken, or a field is wrong; the message names file and row.
    """
    name, columns = name_of(path), dict(columns or {})
    if not is_there(path) or not Path(path).is_file():
        raise BadRecords(f"{name}: no such file")
    data, form = Path(path).read_bytes(), Path(path).suffix.lower()
    if form == ".parquet":
        rows = _parquet_rows(data, columns, name)
    elif form in (".csv", ".tsv"):
        rows = _table_rows(decoded(data, name), columns, name)
    else:
        rows = _json_rows(decoded(data, name), columns, name)
    return hashlib.sha256(data).hexdigest(), [(where, _checked(where, kind, row)) for where, row in rows]


def _checked(where: str, kind: type[BaseModel], row: object) -> BaseModel:
    try:
        return kind.model_validate(row)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = ".".join(map(str, first["loc"])) or "the record"
        problem = _PROBLEMS.get(first["type"]) or str(first.get("ctx", {}).get("error", "is invalid"))
        if first["type"] == "missing":
            problem += f"; if the file has another name for it, give that in columns, such as '{field}=...'"
        raise BadRecords(f"{where}: {field} {problem}") from None
