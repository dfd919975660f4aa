"""`privai-leak residual`: the identifiers that scrubbed notes still contain.

    privai-leak residual --text notes --out sheet.csv    counts by pattern, and makes a sheet of notes to read
    privai-leak residual --sheet sheet.csv               estimates from the sheet what the scrubber missed

Patterns find numbers, addresses, and dates, but no names, and they take an invented date for a real one. So a
person reads a random sample and counts what identifies someone. No message quotes a note; the sheet
contains whole notes and is as confidential as they are.
"""

import argparse
import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, NonNegativeInt, PositiveInt, create_model
from tqdm.auto import tqdm

from privaudit.console import terminal
from privaudit.rows import TextRow, columns_option, decoded, name_of, read_rows
from privhelpers import rng, validate
from privhelpers.artifacts import is_there, write_atomic
from privhelpers.defenses.patterns import RULES, find_identifiers
from privhelpers.errors import BadRecords, InvalidParameter
from privhelpers.stats import clopper_pearson
from privhelpers.text import blank, inert, quoted

FILES = (".txt", ".jsonl", ".csv", ".tsv", ".parquet")
# What a person counts, and the kinds of patterns that belong to it; the others have its name.
KINDS = ("name", "date", "age", "address", "contact", "number", "other")
_KIND_OF = dict.fromkeys(("phone", "email", "url"), "contact")
_KIND_OF |= dict.fromkeys(("ssn", "card", "ip", "mrn"), "number")
_HELP = """Each share has an exact 95% interval (Clopper-Pearson) over notes. It assumes that the notes are
independent; if patients have several notes each, the true interval is wider."""
_SHEET_HELP = """Read the notes of {0} from the top. For each one that you read, write yes under `read`, and
under `missed_...` how many strings of this kind still identify someone, whether or not `found` counts them.
Then: privai-leak residual --sheet={0}"""


SheetRow: type[BaseModel] = create_model(  # a row of a filled sheet
    "SheetRow",
    __base__=TextRow,
    read=(bool, False),
    of_notes=(PositiveInt, ...),
    **{f"missed_{kind}": (NonNegativeInt, 0) for kind in KINDS},
)


def add_parser(commands: argparse._SubParsersAction, **form: Any) -> None:
    """Declare the command and its options."""
    told = "count the identifiers that scrubbed notes still contain, by pattern and by a person"
    parser = commands.add_parser("residual", help=told, description=_HELP, **form)
    parser.add_argument("--text", help=f"scrubbed notes: a file or a folder of files, {', '.join(FILES)}")
    parser.add_argument("--columns", default="", help="the files' name of the text: 'text=note'")
    parser.add_argument("--out", help="new file, .csv: a sheet with a random sample of the notes to read")
    parser.add_argument("--sample", type=int, default=200, help="notes of the sheet; default 200")
    parser.add_argument("--sheet", help="a sheet that a person has filled in")


def run(given: argparse.Namespace) -> int:
    """Run the command; return its exit code.

    Raises:
        InvalidParameter: an option is missing or invalid.
        BadRecords: a file cannot be read, or a sheet is not filled in.
    """
    if bool(given.text) == bool(given.sheet):
        raise InvalidParameter("give either --text=notes or --sheet=sheet.csv")
    if given.sheet:
        print(inert(judge_sheet(given.sheet), keep="\n"))
        return 0
    size = validate.positive_int(sample=given.sample)
    if given.out and is_there(given.out):
        raise InvalidParameter(f"--out={quoted(given.out)}: is there already; name a new file")
    columns = columns_option(given.columns)
    notes = read_notes(given.text, columns)
    found = [Counter(kinds) for kinds in _kinds([text for _, text in notes])]
    print(
        table(found, dict.fromkeys(kind for kind, _ in RULES), len(notes), "a pattern finds an identifier in")
    )
    if given.out:
        write_atomic(Path(given.out), make_sheet(notes, found, size), new=True)
        print(f"\n{_SHEET_HELP.format(quoted(given.out))}")
    return 0


def read_notes(place: str, columns: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return place and text of each note of a file or a folder.

    Args:
        place: a `.txt` file, which is one note, a file that `read_rows` reads, or a folder of such files.
        columns: field -> its name in the files, if that differs.

    Raises:
        BadRecords: there is no such file, or one cannot be read.
    """
    path, notes = Path(place), []
    inside = sorted(path.rglob("*")) if path.is_dir() else [path]
    files = [file for file in inside if file.is_file() and file.suffix.lower() in FILES]
    if not files:
        raise BadRecords(f"{name_of(place)}: no file {', '.join(FILES)} is there")
    for file in files:
        if file.suffix.lower() == ".txt":
            notes.append((name_of(file), decoded(file.read_bytes(), name_of(file))))
        else:
            notes += [(where, row.text) for where, row in read_rows(file, TextRow, columns)[1]]
    empty = next((where for where, text in notes if blank(text)), None)
    if empty or not notes:
        raise BadRecords(f"{empty or name_of(place)}: is empty; remove it")
    return notes


def _kinds(texts: Sequence[str]) -> Iterable[list[str]]:
    """Yield the kind of each identifier that a pattern finds in each text."""
    for text in tqdm(texts, desc="reading", unit="note", file=terminal(), disable=terminal() is None):
        yield [span.kind for span in find_identifiers(text)]


def table(found: Sequence[Mapping[str, int]], kinds: Iterable[str], notes: int, verb: str) -> str:
    """Return in words how many notes contain an identifier, of any kind and by kind.

    Args:
        found: identifiers of each note that was looked at, by kind.
        kinds: in the order of the table; those without an identifier are left out.
        notes: how many there are of which these are a random sample; the same number if it is all of them.
        verb: of the first line.
    """
    hits = [any(one.values()) for one in found]
    lines = [f"{len(found):,} notes were looked at; {verb} {_share(hits, notes)}."]
    for kind in kinds:
        count = sum(one.get(kind, 0) for one in found)
        if count:
            hits = [one.get(kind, 0) > 0 for one in found]
            lines.append(f"  {kind:8} {count:>7,} in {_share(hits, notes)}")
    return "\n".join(lines)


def _share(hits: Sequence[bool], notes: int) -> str:
    """Return how many of some notes are affected, the share, and the estimate for all notes."""
    number, seen = sum(hits), len(hits)
    share = clopper_pearson(number, seen)
    told = f"{number:,} of {seen:,}: {share.estimate:.1%} (95% interval {share.low:.1%} to {share.high:.1%})"
    if notes == seen:
        return told
    # The notes that were read are known.
    low, high = max(number, share.low * notes), min(notes - seen + number, share.high * notes)
    return f"{told}; about {share.estimate * notes:,.0f} of all {notes:,} notes ({low:,.0f} to {high:,.0f})"


def make_sheet(notes: Sequence[tuple[str, str]], found: Sequence[Counter], size: int) -> bytes:
    """Return a random sample of notes as a table (CSV) with empty columns that a person fills in.

    Args:
        notes: place and text of each note.
        found: identifiers that a pattern finds in each, by kind.
        size: how many notes to sample at most.
    """
    missed = [f"missed_{kind}" for kind in KINDS]
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(["note_id", "text", "found", "read", *missed, "of_notes"])
    for number in rng.make(0, "residual/sheet").permutation(len(notes))[:size]:
        where, text = notes[number]
        counts = Counter()
        for kind, count in found[number].items():
            counts[_KIND_OF.get(kind, kind)] += count
        hints = "; ".join(f"{kind} {counts[kind]}" for kind in KINDS if counts[kind])
        # A spreadsheet would run a text that begins like a formula.
        shown = f"'{text}" if text.lstrip().startswith(("=", "+", "-", "@")) else text
        writer.writerow([where, shown, hints, *[""] * (1 + len(missed)), len(notes)])
    return buffer.getvalue().encode("utf-8-sig")


def judge_sheet(path: str) -> str:
    """Return in words what a filled sheet says about all notes that it was sampled from.

    Args:
        path: of the sheet, as `make_sheet` writes it; a spreadsheet may have saved it with other dividers.

    Raises:
        BadRecords: no note is read, a note is left out, or a cell is not a count.
    """
    name, rows = name_of(path), [row for _, row in read_rows(path, SheetRow)[1]]
    missed = [{kind: getattr(row, f"missed_{kind}") for kind in KINDS} for row in rows]
    read = [row.read or any(counts.values()) for row, counts in zip(rows, missed, strict=True)]
    done = sum(read)
    if not done:
        raise BadRecords(f"{name}: no note is read; write yes under read, and counts under missed_...")
    if not all(read[:done]):
        raise BadRecords(
            f"{name}, row {read.index(False) + 1}: is not read, and a later one is; read from the top, "
            "because only then are the notes that were read a random sample"
        )
    return table(missed[:done], KINDS, rows[0].of_notes, "a person found an identifier in")
