"""Records of a user: files of JSONL, CSV or Parquet, read one checked row at a time.

JSONL is one object a line, whatever the file's ending; `.csv` and `.tsv` have a first row of names and
commas, semicolons, tabs or bars between, or what a line `sep=;` above it says; `.parquet` is read by groups
of rows. Text is UTF-8, with or without a byte order mark.

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
import collections
import contextlib
import csv
import hashlib
import json
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, BinaryIO

from pydantic import AfterValidator, BaseModel, ConfigDict, StrictBool, StrictStr, ValidationError
from tqdm.auto import tqdm

from privhelpers.artifacts import is_there, open_regular_file, parse_json
from privhelpers.errors import BadRecords, DamagedArtifact
from privhelpers.text import blank, found_among, normalize, owners_of_texts, quoted, same_as, stands_in

# What programs write for a missing value: R, pandas, spreadsheets, MySQL, Oracle and SPSS.
MISSING = frozenset(("NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NaT", "None", "NULL", "null", r"\N"))
MISSING |= {"(null)", "(NULL)", "#NULL!"}
# And what people write, or programs for an empty list.
NOTHING = MISSING | {"none", "NONE", "nil", "n.a.", "N.A.", ".", "-", "--", "–", "—"}
NOTHING |= {"[]", "()", "{}", "set()", "c()", "list()", "character(0)"}
_STRING = r"""[bu]?'(?:[^'\\]|\\.)*'|[bu]?"(?:[^"\\]|\\.)*"|“[^”]*”|‘[^’]*’"""
_BEFORE = r"(?:np\.|numpy\.)?[A-Za-z_]\w*\("  # array([...]), c(...), np.str_('...')
_AFTER = r"dtype\s*=\s*[^,()\]]+"  # of numpy's array
_BARE = r"[^\s,;|\[\](){}'\"“‘]+"  # a number, or what stands for a missing one
_PART = re.compile(
    rf"(?P<string>{_STRING})|{_BEFORE}|{_AFTER}|[\s,;|\[\](){{}}]+|(?P<bare>{_BARE})", re.DOTALL
)
_NUMBER = re.compile(r"[-+]?[0-9][0-9.]*(?:[eE][-+]?[0-9]+)?")
_LIST = re.compile(rf"(?:{_BEFORE})?\s*[\[({{].*[\])}}]|{_BEFORE}.*\)", re.DOTALL)
_ITEM = r'(?:\s*"((?:[^"\\]|\\.)*)"|([^",:{}]+))'
_ARRAY = re.compile(rf"\{{{_ITEM}(?:,{_ITEM})*\}}", re.DOTALL)  # of PostgreSQL, which quotes what it must
_BETWEEN = re.compile(r"[;；\r\n\t]+")


def _read(string: str) -> str:
    """Return what a string in quotes says."""
    inner = string.lstrip("bu")[1:-1]
    for read in (json.loads, ast.literal_eval):
        try:
            said = read(string)
        except (ValueError, SyntaxError, RecursionError):
            continue
        return said.decode("utf-8", "replace") if isinstance(said, bytes) else said
    return inner


def _listed(cell: str) -> list[str] | None:
    """Return the items of a list in quotes or brackets; None if a cell is not one."""
    items, at = [], 0
    is_list = bool(_LIST.fullmatch(cell)) and not (
        cell[0] == "(" and "," not in cell
    )  # "(617) 5550123 (home)"
    while at < len(cell):
        part = _PART.match(cell, at)
        bare = part and part["bare"]
        if part is None or (bare and not (is_list and (bare in NOTHING or _NUMBER.fullmatch(bare)))):
            break
        if part["string"]:
            items.append(_read(part["string"]))
        elif bare:
            items.append(bare)
        at = part.end()
    else:
        return items if is_list or items else None
    if _ARRAY.fullmatch(cell):
        parts = re.findall(_ITEM, cell[1:-1], re.DOTALL)
        return [re.sub(r"\\(.)", r"\1", quoted, flags=re.DOTALL) or plain for quoted, plain in parts]
    return None


def strings_of(cell: str, text: str = "") -> list[str]:
    """Return the strings that a cell holds.

    They are a list as Python, JSON, numpy, R or PostgreSQL writes it, or are divided by bars, semicolons or
    line breaks. A comma divides only a list in quotes or brackets, because it may be part of a name; what is
    written in the text with its semicolon is one string. A cell for a missing value holds none.

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
    items = [] if cell.strip() in NOTHING else _listed(cell.strip())
    if items is None:
        items = []
        for piece in cell.split("|"):
            whole = not _BETWEEN.search(piece.strip()) or stands_in(piece, text)
            items += [piece] if whole else _BETWEEN.split(piece)
    return [item.strip() for item in items if not blank(item) and item.strip() not in NOTHING]


LONGEST_LINE = 1_000_000  # bytes, and characters of a row of a table
FIELDS = ("patient_id", "text", "note_id", "identifiers", "inserted")
_NAME = 1024  # characters of the name of a file, which has 255 bytes at most
_BOM, _WIDE = b"\xef\xbb\xbf", (b"\xff\xfe", b"\xfe\xff")
_PACKED = (b"PK\x03\x04", b"\x1f\x8b", b"\xd0\xcf\x11\xe0")  # .xlsx and .zip, .gz, .xls
_TABLES, _PARQUET = (".csv", ".tsv"), ".parquet"
_ROWS = 1000  # of a Parquet file that are held at once
_DIVIDER = re.compile(r'"?sep=([\t;,|])"?\s*', re.IGNORECASE)  # a first line that spreadsheets write
_RULE = re.compile(r"\s*[-=:+][-=:+\s]*")
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
_ONE_A_LINE = "write one JSON object a line (in pandas: to_json(path, orient='records', lines=True))"
_PROBLEMS = {
    "missing": "is missing",
    "string_type": "must be a string, in quotes",
    "value_error": "is empty",
    "bool_type": "must be true or false",
    "list_type": "must be a list of strings",
    "string_unicode": "holds half of a character (a lone surrogate); remove it",
    "model_type": "must be an object with named fields, in braces",
}


def name_of(path: str | Path) -> str:
    """Return the name of a file as a message and a report show it."""
    return ascii(Path(path).name)[1:-1][:_NAME]


@contextlib.contextmanager
def open_and_hash(path: str | Path) -> Iterator[tuple[BinaryIO, str]]:
    """Open a file to be read; yield it, and the SHA-256 of what it holds.

    Raises:
        BadRecords: there is no such file.
    """
    if not is_there(path) or not Path(path).is_file():
        raise BadRecords(f"{name_of(path)}: no such file")
    with open_regular_file(Path(path)) as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        file.seek(0)
        yield file, sha256


def _lines(file: BinaryIO) -> Iterator[tuple[str, int, str]]:
    """Yield place, number and text of each line, never holding more than one line of bounded length.

    Bytes that are not clean UTF-8 are refused by their offset.
    """
    name, offset, number = name_of(file.name), 0, 0
    while raw := file.readline(LONGEST_LINE + 1):
        number += 1
        where = f"{name}, line {number}"
        if len(raw) > LONGEST_LINE:
            raise BadRecords(f"{where}: longer than {LONGEST_LINE:,} bytes; split the record")
        if number == 1 and raw.startswith(_WIDE):
            raise BadRecords(
                f"{where}: a byte order mark of UTF-16 (byte 0); save the file as UTF-8 (in a "
                "spreadsheet: 'CSV UTF-8')"
            )
        if number == 1 and raw.startswith(_PACKED):
            raise BadRecords(f"{where}: a packed file or workbook; unpack it, or save it as 'CSV UTF-8'")
        skipped = len(_BOM) if number == 1 and raw.startswith(_BOM) else 0
        if b"\0" in raw:
            place = offset + raw.index(0)
            raise BadRecords(f"{where}: holds a NUL (byte {place}); save the file as UTF-8")
        try:
            text = raw[skipped:].decode("utf-8")
        except UnicodeDecodeError as error:
            place = offset + skipped + error.start
            raise BadRecords(f"{where}: not UTF-8 (byte {place}); save the file as UTF-8") from error
        yield where, number, text
        offset += len(raw)


def _by_column(value: dict) -> bool:
    """Return whether an object is a whole table, as pandas writes it unless it is asked for lines."""
    return value.keys() >= {"columns", "data"} or (
        bool(value) and all(isinstance(inner, dict | list) for inner in value.values())
    )


def _json_rows(file: BinaryIO) -> Iterator[tuple[str, int, object]]:
    """Yield place, number and value of each line of JSONL."""
    empty = ""
    for where, number, line in _lines(file):
        if not line.strip():
            empty = empty or where
            continue
        if empty:  # blank lines at the end of a file are usual
            raise BadRecords(f"{empty}: is blank; each line must hold one record")
        if number == 1 and line.lstrip().startswith("["):
            raise BadRecords(f"{where}: a JSON list; {_ONE_A_LINE}")
        try:
            value = parse_json(line.rstrip("\r\n"), where)
        except DamagedArtifact as error:
            cause = error.__cause__
            told = f"column {cause.colno}: {cause.msg}" if isinstance(cause, json.JSONDecodeError) else cause
            told = "nested too deep" if isinstance(cause, RecursionError) else told
            hint = "" if number > 1 else "; a table must be named .csv, .tsv or .parquet"
            raise BadRecords(f"{where}: broken, not one JSON object a line ({told}){hint}") from None
        if number == 1 and isinstance(value, dict) and _by_column(value):
            raise BadRecords(f"{where}: all records in one JSON object; {_ONE_A_LINE}")
        yield where, number, value


def _truth(cell: object) -> object:
    """Return what a cell of a table says is true or false; any other one is returned as it is."""
    return _TRUTH.get(str(cell).strip().casefold(), cell)


def _cells(names: Iterable[str], cells: Iterable[str]) -> dict:
    """Return one row of a table by name; an empty or missing value is left out, but a text or a patient."""
    row = {
        name: cell
        for name, cell in zip(names, cells, strict=True)
        if not blank(cell) or name in ("text", "patient_id")
    }
    if row.get("patient_id", "").strip() in NOTHING:
        row["patient_id"] = ""
    if row.get("note_id", "").strip() in NOTHING:
        del row["note_id"]
    if row.get("text", "").strip() in MISSING:
        row["text"] = ""
    if "identifiers" in row:
        row["identifiers"] = strings_of(row["identifiers"], row.get("text", ""))
    if "inserted" in row:
        row["inserted"] = _truth(row["inserted"])
    return row


def _divider(first: str, columns: Mapping[str, str]) -> str:
    """Return what divides a row of names: what gives the most names that we know, and then the most names."""
    known = {*FIELDS, *columns.values()}

    def names(divider: str) -> tuple[int, int]:
        cells = next(csv.reader([first.replace("\r", " ")], delimiter=divider), [])
        return sum(cell.strip() in known for cell in cells), len(cells)

    return max("\t;,|", key=names)


def _has_blanks(first: str, second: str, divider: str) -> bool:
    """Return whether a table has blanks after its dividers, before names or before what is in quotes."""
    names, cells = (
        next(csv.reader([one.replace("\r", " ")], delimiter=divider), []) for one in (first, second)
    )
    return any(name.startswith(" ") for name in names[1:]) or any(
        cell.startswith(" ") and cell.lstrip(" ").startswith('"') for cell in cells[1:]
    )


def _records(lines: Iterator[str], form: dict, name: str) -> Iterator[tuple[list, list[str]]]:
    """Yield the cells of each row of a table, the row of names first, and its lines in the file.

    Args:
        lines: of the file.
        form: of the table, as the csv module takes it.
        name: of the file.
    """
    taken: list[str] = []
    held, row = 0, 0

    def whole() -> Iterator[str]:
        nonlocal held
        for text in lines:
            held += len(text)
            if taken and held > LONGEST_LINE:  # of a row, which quotes can take over any number of lines
                raise BadRecords(
                    f"{name}, row {row}: longer than {LONGEST_LINE:,} characters; split the record, or "
                    "close a double quote"
                )
            taken.append(text)
            yield text

    for cells in csv.reader(whole(), strict=True, **form):
        yield cells, taken.copy()
        held, row = 0, row + 1
        taken.clear()


def _table_rows(file: BinaryIO, columns: Mapping[str, str]) -> Iterator[tuple[str, int, object]]:
    """Yield place, number and cells of each row of a table, the row of names not counted."""
    csv.field_size_limit(LONGEST_LINE)
    lines = _lines(file)
    first = next(lines, ("", 0, ""))[2]
    name, before = name_of(file.name), 0
    if said := _DIVIDER.fullmatch(first):
        first, before = next(lines, ("", 0, ""))[2], 1
        if first and (blank(first) or (said[1] not in first and any(one in first for one in "\t;,|"))):
            raise BadRecords(
                f"{name}, line 2: is no row of names with the divider that line 1 says; remove a blank line, "
                "or line 1 where it is wrong"
            )
    elif first.lstrip('"')[:4].lower() == "sep=":
        raise BadRecords(f"{name}, line 1: sep= must name one divider, a tab or ; , or |; remove the line")
    divider = said[1] if said else _divider(first, columns)
    second = next(lines, ("", 0, ""))[2]
    form = {"delimiter": divider, "skipinitialspace": _has_blanks(first, second, divider)}

    def texts() -> Iterator[str]:
        file.seek(0)
        return (text for _, number, text in _lines(file) if number > before)

    form["quoting"] = _quoting(texts, form, columns, name, before)
    number, where, empty = 0, f"{name}, row of names", ""
    try:
        rows = _records(texts(), form, name)
        names = _named([one.strip() for one in next(rows, ([],))[0]], columns, where)
        for number, (cells, _) in enumerate(rows, 1):
            where = f"{name}, row {number}"
            if all(map(blank, cells)):
                empty = empty or where
                continue
            if number == 1 and _RULE.fullmatch("".join(cells)):
                raise BadRecords(
                    f"{where}: a line of dashes under the names, as databases print it; remove it"
                )
            if empty:  # blank rows at the end of a file are usual
                raise BadRecords(f"{empty}: is blank; each row must hold one record")
            if len(cells) != len(names):
                raise BadRecords(
                    f"{where}: {len(cells)} cells under {len(names)} names; put text that holds the divider, "
                    "quotes or line breaks in double quotes, and leave out row names that have no column"
                )
            yield where, number, _cells(names, cells)
    except csv.Error as error:
        hint = "; save the table as CSV with double quotes, and those inside doubled (in R: qmethod='double')"
        if "new-line character" in str(error):
            hint = "; end each line with a line feed, and put text with other line ends in double quotes"
        raise BadRecords(f"{name}, row {number + 1}: broken ({quoted(error)}){hint}") from None


def _form_of(cell: str) -> str:
    """Return the form of an id: words with a digit are alike, and others of the same length and case."""
    cell = cell.strip().strip('"').strip()

    def form(word: re.Match) -> str:
        letters = ("A" if letter.isupper() else "a" for letter in word[0])
        return "0" if re.search(r"\d", word[0]) else "".join(letters)

    return re.sub(r"[^\W_]+", form, cell)


def _quoting(
    texts: Callable[[], Iterator[str]], form: dict, columns: Mapping[str, str], name: str, before: int
) -> int:
    """Return how the csv module is to read the quotes of a table, whose form is known otherwise.

    A program either puts text with quotes in double quotes, or writes quotes as they are. A note that begins
    with a quote tells the two apart: read in the first way, it goes on until a note that ends with one, and
    all rows between become one. Such a row shows in its lines, each of which has as many cells as the table
    and the ids of a row. A table with tabs that is whole without quoting is then read so.

    Raises:
        BadRecords: some rows may be one row or several, and nothing tells which.
    """
    divider = form["delimiter"]
    bare, failed = False, False  # whether quotes are in the middle of a cell
    merged: dict[int, tuple[int, int, set]] = {}  # row of several lines -> first and last one, forms of ids
    known: set[tuple[str, ...]] = set()  # forms of the ids of rows of one line
    plain, ended, size = divider == "\t", False, 0  # whether each line is a row

    def every() -> Iterator[str]:
        nonlocal plain, ended, size
        for text in texts():
            size = size or text.count(divider) + 1
            ended = ended or blank(text)
            plain = plain and size > 1 and (blank(text) or (not ended and text.count(divider) + 1 == size))
            yield text

    lines = every()
    try:
        rows, line = _records(lines, form, name), before
        names, taken = next(rows, ([], []))
        plain = plain and '"' not in "".join(taken)
        ours = _named([one.strip() for one in names], columns, f"{name}, row of names")
        text_at = ours.index("text") if "text" in ours else len(ours)
        # From the end for a column after the text, which may hold dividers.
        ids = [
            place if place < text_at else place - len(ours)
            for place, field in enumerate(ours)
            if field in ("patient_id", "note_id", "inserted")
        ]
        line += len(taken)
        for number, (cells, taken) in enumerate(rows, 1):
            written, inside = "".join(taken).count('"'), "".join(cells).count('"')
            bare = bare or (inside > 0 and (written < 2 * inside + 2 or written % 2 == 1))
            failed = failed or len(cells) != len(names)
            pieces = [text.rstrip("\r\n").split(divider) for text in taken]
            if all(len(piece) >= len(names) for piece in pieces):
                forms = {tuple(_form_of(piece[place]) for place in ids) for piece in pieces}
                if len(taken) == 1:
                    known |= forms
                else:
                    merged[number] = line + 1, line + len(taken), forms
            line += len(taken)
    except (csv.Error, BadRecords):  # the second reading says what is wrong
        failed = True
        if plain:
            with contextlib.suppress(BadRecords):
                collections.deque(lines, maxlen=0)
    unsure = [row for row, (_, _, forms) in merged.items() if (forms <= known if ids else bare)]
    if plain and (failed or bare or unsure):
        return csv.QUOTE_NONE
    if unsure:
        begin, end, _ = merged[unsure[0]]
        raise BadRecords(
            f"{name}, row {unsure[0]}: lines {begin} to {end} are one record by their double quotes, and "
            "look like a record each; put every text in double quotes, those inside doubled, or save the "
            "table as JSONL or Parquet"
        )
    return csv.QUOTE_MINIMAL


def _parquet_rows(file: BinaryIO, columns: Mapping[str, str]) -> Iterator[tuple[str, int, object]]:
    """Yield place, number and values of each row of a Parquet file."""
    import pyarrow as pa  # late: few files need it
    import pyarrow.parquet as pq

    name, number = name_of(file.name), 0
    try:
        table = pq.ParquetFile(file)
        theirs = list(table.schema_arrow.names)
        names = dict(zip(theirs, _named(theirs, columns, name), strict=True))
        wanted = [own for own, field in names.items() if field in FIELDS]
        for batch in table.iter_batches(_ROWS, columns=wanted):
            for row in batch.to_pylist():
                number += 1
                yield f"{name}, row {number}", number, _parquet_row(row, names)
    except (pa.ArrowException, OSError) as error:
        after = f", after row {number}" if number else ""
        raise BadRecords(
            f"{name}{after}: cannot be read as Parquet ({quoted(error, 150)}); save it again"
        ) from error


def _parquet_row(row: Mapping[str, object], names: Mapping[str, str]) -> dict:
    """Return one row by our names, without the missing values."""
    values = {names[own]: value for own, value in row.items() if value is not None}
    for field in {"patient_id", "note_id", "identifiers"} & values.keys():  # often kept as numbers
        if type(values[field]) is int:
            values[field] = str(values[field])
    own = values.get("identifiers")
    if isinstance(own, str):
        values["identifiers"] = strings_of(own, str(values.get("text", "")))
    elif isinstance(own, list):
        values["identifiers"] = [one for one in own if one is not None]
    if "inserted" in values:
        values["inserted"] = _truth(values["inserted"])
    return values


def _named(theirs: list[str], columns: Mapping[str, str], where: str) -> list[str]:
    """Return the name of each column as ours, or as the file has it.

    A field that `columns` gives another name may keep its own in a file that lacks the other.
    """
    named = [name for name in theirs if name]  # an index, or what a divider at the end of each line leaves
    if len(set(named)) < len(named):
        raise BadRecords(f"{where}: two columns of one name; rename one")
    ours = {theirs_: field for field, theirs_ in columns.items() if theirs_ in theirs}
    return [ours.get(name, f"other {name}" if name in ours.values() else name) for name in theirs]


def read_rows(
    file: BinaryIO,
    kind: type[BaseModel],
    columns: Mapping[str, str] | None = None,
    *,
    progress: bool = False,
) -> Iterator[tuple[str, int, BaseModel]]:
    """Yield place, number and checked row of each record of a file.

    Args:
        file: from `open_and_hash`: JSONL, or `.csv`, `.tsv` and `.parquet`.
        kind: what a row must be.
        columns: field -> what the file calls it, where it calls it otherwise.
        progress: whether to count the records on a bar.

    Raises:
        BadRecords: a row is invalid; the message names file and row.
    """
    path, columns = Path(file.name), dict(columns or {})
    form = path.suffix.lower()
    if form in _TABLES:
        rows = _table_rows(file, columns)
    elif form == _PARQUET:
        rows = _parquet_rows(file, columns)
    else:
        rows = _json_rows(file)
    title = f"reading {name_of(path)}"
    for where, number, value in tqdm(rows, title, unit="record", leave=False, disable=not progress):
        if isinstance(value, dict) and columns and form not in (*_TABLES, _PARQUET):
            value = dict(zip(_named(list(value), columns, where), value.values(), strict=True))
        yield where, number, _checked(kind, value, where, table=form in (*_TABLES, _PARQUET))


def _checked(kind: type[BaseModel], value: object, where: str, *, table: bool) -> BaseModel:
    """Return one value as a checked row."""
    try:
        row = kind.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        field = ascii(".".join(map(str, first["loc"])) or "the line").strip("'")
        problem = _PROBLEMS.get(first["type"], first["msg"].lower())
        if first["type"] == "string_type" and table:
            problem = "must be text; cast the column to text"
        if first["type"] == "list_type" and table:
            problem = "must be text or a list of texts; cast the column to text"
        if first["type"] == "missing" and (table or where.endswith("line 1")):
            problem += f"; if the file calls it otherwise, say so in columns, such as '{field}=...'"
        raise BadRecords(f"{where}: {field} {problem}") from None
    for name, content in vars(row).items():
        text = str(content if not isinstance(content, list) else "".join(content))
        if "\0" in text:
            raise BadRecords(f"{where}: {name} holds a NUL character; remove it")
        if len(text) > LONGEST_LINE:
            raise BadRecords(f"{where}: {name} longer than {LONGEST_LINE:,} characters; split the record")
    return row


FEWEST_PATIENTS = 50  # in each file: with fewer, only the loudest leak could be told from chance
FEWEST_CANARIES = 20
FEWEST_TEXTS = 50  # of a synthetic data set
_WHOLE = re.compile(r"([0-9]+)(?:\.0+)?")  # a number, as a spreadsheet may write it
_UNFAIR = 1e-4  # a coin that gives so uneven a split is not believed
_SHORTEST_STRING = 6  # letters of a string that names a patient: shorter ones come by chance
# Six digits or more, as in record numbers, telephone numbers and dates; and addresses of mail. A dot before a
# blank ends a sentence, and the number with it.
_NUMBER = re.compile(r"(?<!\d)\d(?:(?:\.(?! )| \. |[-/() ]){0,3}\d){5,}(?!\d)")
_MAIL = re.compile(r"[\w.%+'-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}")


def _not_blank(text: str) -> str:
    if blank(text):
        raise ValueError("is empty")
    return text


_Filled = Annotated[StrictStr, AfterValidator(_not_blank)]


class _Row(BaseModel):
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)
    patient_id: _Filled
    text: _Filled
    note_id: _Filled | None = None
    identifiers: list[_Filled] | None = None


class _TextRow(BaseModel):
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)
    text: _Filled


class _CanaryRow(BaseModel):
    model_config = ConfigDict(extra="ignore", hide_input_in_errors=True)
    text: _Filled
    inserted: StrictBool


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


def read_records(
    path: str | Path, columns: Mapping[str, str] | None = None, *, progress: bool = False
) -> RecordFile:
    """Read a file of records.

    Args:
        path: JSONL, CSV or Parquet with `patient_id` and `text`, and perhaps `note_id` and `identifiers`.
        columns: what the file calls these fields, where it calls them otherwise.
        progress: whether to show a bar.

    Raises:
        BadRecords: a line is broken, blank, too long, not UTF-8 or repeated, a field is missing, empty or of
            the wrong type, most identifiers are in no text of their patient, or there are fewer than 50
            patients. The message says which line.
    """
    line_of_id: dict[str, int] = {}
    line_of_note: dict[tuple[str, str], int] = {}
    unnamed: set[tuple[str, str]] = set()
    notes, lines = [], 0
    with open_and_hash(path) as (file, sha256):
        for where, number, row in read_rows(file, _Row, columns, progress=progress):
            lines = number
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
    records = RecordFile(name_of(path), sha256, lines, found, not_found)
    if len(records.patients) < FEWEST_PATIENTS:
        raise BadRecords(
            f"{records.name}: {len(records.patients)} patients in {lines} lines; at least {FEWEST_PATIENTS} "
            "are needed to tell a leak from chance"
        )
    return records


def read_canaries(path: str | Path, columns: Mapping[str, str] | None = None) -> CanaryFile:
    """Read a file of canaries, with `text` and `inserted` (true or false).

    Raises:
        BadRecords: as for records; a text stands twice, fewer than 20 canaries, or a split between inserted
            ones and others that no fair coin gives, which would make every bound wrong.
    """
    canaries, line_of_text = [], {}
    with open_and_hash(path) as (file, sha256):
        for where, number, row in read_rows(file, _CanaryRow, columns):
            if (earlier := line_of_text.setdefault(normalize(row.text), number)) != number:
                raise BadRecords(f"{where}: the text of line {earlier} again")
            canaries.append(Canary(number, row.text, row.inserted))
    from scipy.stats import binomtest  # late: it loads longer than all else here, and few bring canaries

    inserted = sum(canary.inserted for canary in canaries)
    counts = f"{name_of(path)}: {inserted} inserted of {len(canaries)} canaries"
    if len(canaries) < FEWEST_CANARIES or inserted in (0, len(canaries)):
        raise BadRecords(f"{counts}; needs {FEWEST_CANARIES} or more, some inserted and some kept out")
    if binomtest(inserted, len(canaries)).pvalue < _UNFAIR:
        raise BadRecords(f"{counts}; a fair coin must decide for each one, and no fair coin gives that")
    return CanaryFile(name_of(path), sha256, tuple(canaries))


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


def read_texts(
    path: str | Path, columns: Mapping[str, str] | None = None, *, progress: bool = False
) -> TextFile:
    """Read the texts of a synthetic data set; one that stands twice counts twice.

    Raises:
        BadRecords: as for records, or there are fewer than 50 texts.
    """
    with open_and_hash(path) as (file, sha256):
        texts = tuple(row.text for _, _, row in read_rows(file, _TextRow, columns, progress=progress))
    if len(texts) < FEWEST_TEXTS:
        raise BadRecords(f"{name_of(path)}: {len(texts)} texts; at least {FEWEST_TEXTS} are needed")
    return TextFile(name_of(path), sha256, texts)


def read_files(
    records: str | Path,
    holdout: str | Path,
    canaries: str | Path | None = None,
    *,
    synthetic: str | Path | None = None,
    columns: Mapping[str, str] | None = None,
    progress: bool = False,
) -> Files:
    """Read the files of an audit and refuse what could not be believed.

    Args:
        records: what the model, or the maker of the synthetic texts, was trained on: JSONL, CSV or Parquet.
        holdout: what it never saw, of other patients of the same kind.
        canaries: texts made for the audit, if there are any.
        synthetic: the texts of a synthetic data set, if one is audited.
        columns: what the files call `patient_id`, `text`, `note_id`, `identifiers` and `inserted`, where
            they call them otherwise.
        progress: whether to show bars.

    Raises:
        BadRecords: naming file and line.
    """
    members, heldout = (read_records(path, columns, progress=progress) for path in (records, holdout))
    _refuse_overlap(members, heldout)
    made = None if canaries is None else read_canaries(canaries, columns)
    if made is not None:
        _refuse_contradiction(made, members, heldout)
    texts = None if synthetic is None else read_texts(synthetic, columns, progress=progress)
    return Files(members, heldout, made, texts)
