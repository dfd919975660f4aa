"""Records of a user: read as programs write them, or refused by file and line without quoting anyone."""

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import parquet

from privaudit import read_files
from privaudit.records import read_canaries, read_records, read_texts
from privaudit.rows import strings_of
from privhelpers.errors import BadRecords

# Quotes, dividers, line breaks and what a spreadsheet takes for something else.
SPECIAL = {
    2: 'She said "stay", and left.',
    3: '"Pain is worse." she said',
    4: 'Wound of 5"',
    5: "Seen at 10:30;\nno fever, no cough",
    6: "tab\there, bar | there",
    7: "a backslash \\ and \\n",
    8: "line one\n\nline three\n",
    9: "“smart quotes” – and ‘others’",
    10: "=1+1",
    11: "'single'",
    12: '""',
    13: "Pain is worse.\nStop aspirin, ibuprofen",
}
NOTES = [SPECIAL.get(n, f"Note {n} of a visit, stable") for n in range(60)]
UNQUOTED = [note.replace("\n", " ").replace("\t", " ") for note in NOTES]
FRAME = pd.DataFrame({"patient_id": [f"{n:03d}" for n in range(60)], "text": NOTES})
NUMBERED = [f"note {n}" for n in range(60)]
BOM = b"\xef\xbb\xbf"


def row(number: int, **more: object) -> bytes:
    return json.dumps({"patient_id": f"p{number}", "text": f"note {number}", **more}).encode() + b"\n"


GOOD = [row(n) for n in range(60)]
OTHERS = [row(n) for n in range(100, 160)]


def written(path, lines):
    path.write_bytes(b"".join(lines))
    return path


def read(path):
    return [(note.patient, note.text) for note in read_records(path).notes]


def rows(notes=NOTES):
    return [(f"{n:03d}", note) for n, note in enumerate(notes)]


def refuse(read_file, *paths, place):
    """Check that files are refused by the place of the first wrong record, in a short sentence."""
    with pytest.raises(BadRecords, match=rf"^{place}\b") as refused:
        read_file(*paths)
    assert len(str(refused.value)) < 400 and "Secret" not in str(refused.value)
    return str(refused.value)


# Tables as programs write them


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
@pytest.mark.parametrize("divider", list(",;\t|"))
@pytest.mark.parametrize("columns", [["patient_id", "text"], ["note_id", "text", "patient_id"]], ids="-".join)
@pytest.mark.parametrize("said", [False, True], ids=["", "sep="])
def test_a_table_of_pandas_is_read_as_it_was_written(tmp_path, divider, quoting, ends, columns, said):
    path, table = tmp_path / "m.csv", FRAME.assign(note_id=[f"n{n}" for n in range(60)])[columns]
    table.to_csv(path, sep=divider, quoting=quoting, lineterminator=ends, index=len(columns) == 2)
    path.write_bytes(BOM * said + f"sep={divider}{ends}".encode() * said + path.read_bytes())
    assert read(path) == rows()
    assert read_records(path).notes[7].line == 8


@pytest.mark.wrong_numbers
@pytest.mark.parametrize(
    "columns", [["patient_id", "text"], ["text", "patient_id"], ["patient_id", "text", "x"]]
)
@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_a_table_with_tabs_and_without_quoting_has_a_record_a_line(tmp_path, columns, ends):
    """As MySQL, Stata or R (quote = FALSE) write it."""
    table = FRAME.assign(text=UNQUOTED, x="1")[columns]
    lines = ["\t".join(columns), *("\t".join(cells) for cells in table.itertuples(index=False))]
    path = tmp_path / "m.tsv"
    path.write_bytes(ends.join([*lines, ""]).encode())
    assert read(path) == rows(UNQUOTED)


def stray(columns, divider, first='"Pain is worse.', second='Wound of 5"', name="p{}".format):
    """Return a table in which two notes have one quote each."""
    lines = [divider.join(columns)]
    for n in range(60):
        text = {3: first, 4: second}.get(n, f"note {n}")
        cells = {"patient_id": name(n), "text": text, "x": "1", "note_id": f"n{n}", "inserted": str(n % 2)}
        lines.append(divider.join(cells[column] for column in columns))
    return "\n".join([*lines, ""])


COLUMNS = [
    ["patient_id", "text"],
    ["text", "patient_id"],
    ["patient_id", "text", "x"],
    ["note_id", "patient_id", "text"],
]


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("columns", COLUMNS, ids="-".join)
def test_two_quotes_in_a_table_with_tabs_merge_no_rows(tmp_path, columns):
    path = tmp_path / "m.tsv"
    path.write_text(stray(columns, "\t"))
    texts = [text for _, text in read(path)]
    assert len(texts) == 60 and texts[3:5] == ['"Pain is worse.', 'Wound of 5"']


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("first", ['"Pain is worse.', '"Pain, and worse.', '"Pain; is | worse.'])
@pytest.mark.parametrize("columns", COLUMNS, ids="-".join)
@pytest.mark.parametrize("divider", list(",;|"))
@pytest.mark.parametrize("name", ["p{}".format, lambda n: "abcdef"[n // 10] + "klmnopqrst"[n % 10]])
def test_two_quotes_in_another_table_are_refused_by_line(tmp_path, columns, divider, first, name):
    path = tmp_path / "m.csv"
    path.write_text(stray(columns, divider, first, name=name))
    refuse(read, path, place=r"m\.csv, row [45]")


@pytest.mark.wrong_numbers
@pytest.mark.parametrize(
    ("read_file", "columns"), [(read_texts, ["text"]), (read_canaries, ["text", "inserted"])]
)
def test_two_quotes_among_texts_or_canaries_are_refused_by_line(tmp_path, read_file, columns):
    path = tmp_path / "s.csv"
    path.write_text(stray(columns, ",").replace("note 20", 'Wound of 5" seen'))
    refuse(read_file, path, place=r"s\.csv, row 4: lines 5 to 6")


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("tail", ["\n\n", "\r\n \r\n", ",\n", ",,\n,\n", '"",""\n'])
def test_blank_rows_at_the_end_are_ignored(tmp_path, tail):
    path = tmp_path / "m.csv"
    FRAME.to_csv(path, index=False)
    path.write_bytes(path.read_bytes() + tail.encode())
    assert read(path) == rows()
    lines = tmp_path / "m.jsonl"
    FRAME.to_json(lines, orient="records", lines=True)
    lines.write_text(lines.read_text() + "\n  \n")
    assert read(lines) == rows()


def r_table(frame, *, divider, names, doubled):
    """Write a table as R's write.csv (doubled quotes) and write.table (its default: a backslash) do."""

    def quoted(text):
        return '"' + text.replace('"', '""' if doubled else r"\"") + '"'

    head = [quoted(name) for name in frame.columns]
    lines = [divider.join([quoted("")] * (names == "with a column") + head)]
    for n, cells in enumerate(frame.itertuples(index=False), 1):
        lines.append(divider.join([quoted(str(n))] * (names != "none") + [quoted(cell) for cell in cells]))
    return "\n".join([*lines, ""])


@pytest.mark.wrong_numbers
def test_tables_of_r(tmp_path):
    path = tmp_path / "m.csv"
    for names in ("none", "with a column"):
        path.write_text(r_table(FRAME, divider=",", names=names, doubled=True))
        assert read(path) == rows()
    for form in (
        {"divider": " ", "names": "without a column", "doubled": False},
        {"divider": "\t", "names": "without a column", "doubled": True},
        {"divider": "\t", "names": "none", "doubled": False},
    ):
        path.write_text(r_table(FRAME, **form))
        refuse(read, path, place=r"m\.csv, row \d+")


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("second", [", ", ","])
@pytest.mark.parametrize("names", ["patient_id, text", '"patient_id", "text"', "patient_id,text"])
def test_blanks_after_a_divider_belong_to_no_cell(tmp_path, names, second):
    path, notes = tmp_path / "m.csv", [f"{n}, stable; a note" for n in range(60)]
    path.write_text("\n".join([names, *(f'{n:03d}{second}"{note}"' for n, note in enumerate(notes)), ""]))
    assert read(path) == rows(notes)


@pytest.mark.wrong_numbers
def test_what_else_a_table_may_have(tmp_path):
    """A blank at the start of a text, a long note, a divider at line ends, and dividers in other names."""
    path, notes = tmp_path / "m.csv", [' she said "stay", twice', "long, " * 50_000, *NOTES[2:]]
    FRAME.assign(text=notes).to_csv(path, index=False)
    assert read(path) == rows(notes)
    path.write_text("\n".join(["patient_id,text,,", *(f"{n:03d},note {n},," for n in range(60)), ""]))
    assert read(path) == rows(NUMBERED)
    head = "patient_id;text;age, in years;weight, in kg;a, b"
    path.write_text("\n".join([head, *(f"{n:03d};note {n};1;2;3" for n in range(60))]))
    assert read(path) == rows(NUMBERED)


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("sign", ["NA", "<NA>", "nan", "NULL", r"\N", "(null)", "#NULL!", "#N/A", "\u200b"])
def test_a_missing_value_is_left_out(tmp_path, sign):
    lines = [f"{n:03d},note {n},{sign},{sign}\n" for n in range(60)]
    path = tmp_path / "m.csv"
    path.write_text("".join(["patient_id,text,note_id,identifiers\n", *lines]))
    assert read(path) == rows(NUMBERED)
    lines[6] = f"6,{sign},,\n"
    path.write_text("".join(["patient_id,text,note_id,identifiers\n", *lines]))
    refuse(read, path, place=r"m\.csv, row 7: text")


# What is refused, by the place of the first wrong record and its field

LINES = {
    b'["x"]': "",
    b"  ": "",
    b'{"text": "y"}': "patient_id",
    b'{"patient_id": "x"}': "text",
    b'{"patient_id": "x", "text": " \\n\\u00a0"}': "text",
    b'{"patient_id": "x", "text": "\\u200b \\u2060\\u3164"}': "text",
    b'{"patient_id": "x", "text": "\\u0001\\u007f\\n"}': "text",
    b'{"patient_id": "\\u200b\\u00ad", "text": "y"}': "patient_id",
    b'{"patient_id": "x", "text": "y", "note_id": "\\u200b"}': "note_id",
    b'{"patient_id": "x", "text": "y", "identifiers": ["\\u200d"]}': "identifiers.0",
    b'{"patient_id": 7, "text": "y"}': "patient_id",
    b'{"patient_id": "x", "text": null}': "text",
    b'{"patient_id": "x", "text": "y", "note_id": []}': "note_id",
    b'{"patient_id": "x", "text": "y", "identifiers": "z"}': "identifiers",
    b'{"patient_id": "x", "text": "y", "weight": NaN}': "",
    b'{"patient_id": "x", "text": "y", "weight": 1e400}': "",
    b'{"patient_id": "x", "patient_id": "z", "text": "y"}': "",
    b'{"patient_id": "x", "text": "\x00"}': "",
    b'{"patient_id": "x", "text": "y\\u0000"}': "text",
    b'{"patient_id": "x", "text": "\\ud800"}': "",
    b'{"patient_id": "x", "text": "\xff"}': "",
    b"[" * 100_000: "",
    b'{"patient_id": "x", "text": "y", "n": ' + b"1" * 5000 + b"}": "",
    row(3).rstrip(): "",
    b"patient_id,text": "",
    b'{"patient_id": "Mrs Secret" "text"}': "",
    b'{"patient_id": "Mrs Secret", "text": "Mrs Secret", "note_id": ["Mrs Secret"]}': "note_id",
}
CELLS = ('p4,"Wound" of', r'p4,"He said \"ok\" then"', "p4,Wound\rof", "p4,a,b", "p4", "NA,text", "nan,text")
CELLS += (",text", "p4,", "", ",", "p3,note 3", 'p4,"' + ("x" * 999 + "\n") * 1100)
RULES = ("---,----", "|---|:---|", "======,======", "----+----,-")
WIDE = "patient_id\ttext\n" + "".join(f"p{n}\tcafé {n}\n" for n in range(60))


def table(line, *, at=5, divider=","):
    """Return a table with a line in place of a record's, or in front of the records."""
    lines = [f"patient_id{divider}text", *(f"p{n}{divider}note {n}" for n in range(60))]
    lines[at : at + (at > 1)] = [line]
    return "\n".join([*lines, ""]).encode()


def refusals():
    """Yield files by name, with the places that their refusals name."""
    for line, field in LINES.items():
        yield (
            "m.jsonl",
            b"".join([*GOOD[:30], line, b"\n", *GOOD[30:]]),
            f"line 31: {field}" if field else "line 31",
        )
    yield "m.jsonl", b"".join([*GOOD[:30], b'{"patient_id": "x", "text": "y']), "line 31"
    for line in CELLS:
        yield "m.csv", table(line), "row 5"
    yield "m.csv", table('p4,"Wound'), r"row \d+"  # never closed
    for rule in RULES:
        yield "m.csv", table(rule, at=1, divider="|" if rule.startswith("|") else ","), "row 1"
    yield "two.csv", b"text,text\na,b\n", "row of names"
    for name in ("m.csv", "m.jsonl"):
        for encoding in ("utf-16", "utf-16-le", "utf-32", "cp1252"):
            yield name, WIDE.encode(encoding), r"line \d"
        for start in (b"PK\x03\x04\x14\x00", b"\x1f\x8b\x08\x00", b"\xd0\xcf\x11\xe0\xa1\xb1"):
            yield name, start + bytes(100), "line 1"
    for orient in ("records", "columns", "index", "split", "table", "values"):
        for indent in (None, 1):
            yield "m.json", FRAME.to_json(orient=orient, indent=indent).encode(), "line 1"
    for bad in ([1.5], {"a": "b"}, 1.5, [["a"]]):
        yield "m.parquet", parquet(FRAME.assign(identifiers=[bad] * 60)), "row 1: identifiers"
    for bad in ([None] * 60, list(range(60))):
        yield "m.parquet", parquet(FRAME.assign(text=bad)), "row 1: text"
    yield "m.parquet", parquet(FRAME.assign(patient_id=np.arange(60.0))), "row 1: patient_id"
    whole = parquet(FRAME)
    for spoiled in (b"", b"PAR1", whole[:-9], whole[:40] + b"\0" * 40 + whole[80:]):
        yield "m.parquet", spoiled, ""
    for patients in (0, 1, 49):
        yield "m.jsonl", b"".join(GOOD[:patients]), f": {patients} patients"


@pytest.mark.wrong_numbers
@pytest.mark.parametrize(("name", "data", "place"), list(refusals()))
def test_a_file_is_refused_by_its_name_line_and_field(tmp_path, name, data, place):
    comma = ", " if place and place[0] != ":" else ""
    refuse(read, written(tmp_path / name, [data]), place=f"{re.escape(name)}{comma}{place}")


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60))
def test_no_bytes_end_in_another_error(tmp_path_factory, junk):
    for name in ("junk.jsonl", "junk.csv", "junk.parquet"):
        with pytest.raises(BadRecords):
            read_records(written(tmp_path_factory.getbasetemp() / name, [*GOOD[:2], junk]))


def test_other_fields_and_line_ends_do_not_matter(tmp_path):
    lines = [row(n, kind="report", spans=[{"a": 1}])[:-1] + b"\r\n" for n in range(60)]
    records = read_records(written(tmp_path / "m.jsonl", [BOM, *lines[:-1], lines[-1].rstrip()]))
    assert [note.text for note in records.notes] == NUMBERED
    assert records.notes[7].line == 8 and not records.repeated


def test_columns_are_named_by_option(tmp_path):
    columns = {"patient_id": "mrn", "text": "Note Text"}
    theirs = FRAME.rename(columns=columns)
    theirs.to_csv(tmp_path / "m.csv", index=False)
    theirs.assign(text="other").to_json(tmp_path / "m.jsonl", orient="records", lines=True)
    (tmp_path / "m.parquet").write_bytes(parquet(theirs))
    for name in ("m.csv", "m.jsonl", "m.parquet"):
        assert [note.text for note in read_records(tmp_path / name, columns).notes] == NOTES
    assert "text=..." in refuse(read, tmp_path / "m.csv", place=r"m\.csv, row 1: text is missing")
    FRAME.to_csv(tmp_path / "own.csv", index=False)
    assert len(read_records(tmp_path / "own.csv", columns).notes) == 60, (
        "a file that has our names keeps them"
    )


# Parquet


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("kind", ["list", "categorical", "string", "Int64", "null in list"])
def test_columns_of_parquet(kind):
    """The file is what pandas 3.1.1 wrote with pyarrow 26.0.1, of a column of each kind."""
    records = read_records(Path(__file__).with_name("pandas.parquet"), {"identifiers": kind})
    assert records.notes[7].identifiers == (("100007",) if kind == "Int64" else ("Name7 Hill",))
    assert records.not_found == 0 and records.notes[7].patient == "7"


# Identifiers

TWO = ["Anna Hill", "Old Anna Hill"]
ODD = ["Anna O'Brien", 'Ann "Nan" Hill', "Hill, Anna", "Zoë 林", "617-555-0123"]
WRITERS = [
    str,
    lambda items: str(tuple(items)),
    lambda items: str(np.array(items)),
    json.dumps,
    lambda items: json.dumps(items, ensure_ascii=False, indent=1),
    lambda items: "{" + ",".join('"' + item.replace('"', r"\"") + '"' for item in items) + "}",
    *("|".join, " | ".join, ";".join, "; ".join, "\n".join, "\r\n".join, "\t".join),
]


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("items", [TWO, ODD, ODD[:1], ["Hill, Anna"], ["123456", "000123"]], ids=str)
@pytest.mark.parametrize("write", WRITERS)
def test_a_list_of_identifiers_is_read_however_it_is_written(write, items):
    assert strings_of(write(items)) == items


@pytest.mark.wrong_numbers
@pytest.mark.parametrize(
    ("cell", "items"),
    [
        (cell, [])
        for cell in ("NA", "nan", "None", "[]", "()", "{}", "NULL", "['']", "[nan]", "[None]", " ", "|")
    ]
    + [(cell, []) for cell in (r"\N", "(null)", "#NULL!", "--", "—", "[ ]\n")]
    + [
        ("['Anna Hill', None]", ["Anna Hill"]),
        ("['Anna Hill', nan, 123456]", ["Anna Hill", "123456"]),
        ("Hill, Anna", ["Hill, Anna"]),
        ("Hill, Anna|Hill, A.", ["Hill, Anna", "Hill, A."]),
        ("Hill, Anna; Hill, A.", ["Hill, Anna", "Hill, A."]),
        ("(617) 555-0123", ["(617) 555-0123"]),
        ("(617) 555-0123 (home)", ["(617) 555-0123 (home)"]),
        ("O'Brien", ["O'Brien"]),
        ("'s-Gravenhage", ["'s-Gravenhage"]),
        ("[Hill, Anna]", ["[Hill, Anna]"]),
        ("123456.0", ["123456.0"]),
        ("1 Elm St; Apt 4|Anna Hill", ["1 Elm St; Apt 4", "Anna Hill"]),
        ("{'name': 'Anna Hill'}", ["{'name': 'Anna Hill'}"]),
        ("Anna Hill；Old Anna Hill", TWO),
        (r"['C:\x']", [r"C:\x"]),
        (r'["\ud83d\ude00 Anna"]', ["😀 Anna"]),
    ],
)
def test_a_cell_of_identifiers(cell, items):
    assert strings_of(cell, "Lives at 1 Elm St; Apt 4, Boston") == items


def with_identifiers(path, cells):
    """Write 60 records with these cells, as pandas does."""
    texts = [f"Name{n} Hill, once Name{n} Wood, MRN 00{n:04d}, seen." for n in range(60)]
    FRAME.assign(text=texts, identifiers=cells).to_csv(path, index=False)
    return path


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("write", [lambda items: items, np.array, tuple, json.dumps, ";".join, "\n".join])
def test_two_identifiers_in_a_cell_are_two_identifiers(tmp_path, write):
    cells = [write([f"Name{n} Hill", f"Name{n} Wood"]) for n in range(60)]
    records = read_records(with_identifiers(tmp_path / "m.csv", cells))
    assert [note.identifiers for note in records.notes] == [
        (f"Name{n} Hill", f"Name{n} Wood") for n in range(60)
    ]
    assert records.not_found == 0


@pytest.mark.wrong_numbers
@pytest.mark.parametrize(
    "cells",
    [
        [float(f"1{n:04d}") for n in range(60)],  # 10000.0
        list(range(60)),  # leading zeros lost
        [f"6.17556E+0{n % 10}" for n in range(60)],
        [f"Hill, Name{n}, Wood" for n in range(60)],
        [f"{{'name': 'Name{n} Hill'}}" for n in range(60)],
        [str([np.str_(f"Name{n} Hill"), np.str_(f"Name{n} Wood")]) for n in range(60)],
        [f'c("Name{n} Hill", "Name{n} Wood")' for n in range(60)],  # of R
        [f"Name{n} Hill / Name{n} Wood" for n in range(60)],
        [f"Name{n + 1} Hill" for n in range(60)],  # of the next patient
        [f"Name{n}" if n == 59 else None for n in range(60)][::-1],  # one alone, of another patient
        [[f"Name{n} Hill", "x y", f"z{n} w"] for n in range(60)],  # most
    ],
)
def test_a_file_whose_identifiers_are_in_no_text_is_refused_by_line(tmp_path, cells):
    told = refuse(read, with_identifiers(tmp_path / "m.csv", cells), place=r"m\.csv, line 1")
    assert "Name" not in told, "a message quotes no record"


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("begins", ["Hill", "明"])
def test_an_identifier_is_not_in_the_end_of_one_note_and_the_begin_of_the_next(tmp_path, begins):
    lines = [
        {"patient_id": f"{n // 2:03d}", "text": text, "identifiers": f"Name{n // 2} {begins}"}
        for n in range(0, 120, 2)
        for text in (f"{begins} seen once", f"{begins} seen by Name{n // 2}", f"{begins} seen again")
    ]
    pd.DataFrame(lines).to_csv(tmp_path / "m.csv", index=False)
    assert "60 of 60 identifiers" in refuse(read, tmp_path / "m.csv", place=r"m\.csv, line 1")


@pytest.mark.wrong_numbers
def test_identifiers_are_counted_by_patient(tmp_path):
    lists = [[f"Name{n} Hill", *(["Somewhere Else"] if n < 7 else [])] for n in range(60)]
    records = read_records(with_identifiers(tmp_path / "m.csv", lists))
    assert records.not_found == 7
    assert [note.identifiers for note in records.notes] == [(f"Name{n} Hill",) for n in range(60)]
    own = [
        {"patient_id": f"p{n}", "text": text, "identifiers": [f"Name{n} Hill"] if n % 2 else None}
        for n in range(60)
        for text in (f"Name{n} Hill was seen.", f"Visit {n}: stable.")
    ]
    pd.DataFrame(own).to_json(tmp_path / "m.jsonl", orient="records", lines=True)
    records = read_records(tmp_path / "m.jsonl")
    assert records.not_found == 0 and [len(note.identifiers) for note in records.notes] == [0, 0, 1, 1] * 30


# Who is the same patient, and which files make an audit


def test_what_makes_a_record_the_same_one(tmp_path):
    path = tmp_path / "m.jsonl"
    for lines, line in (
        ([row(3, note_id="n3"), *GOOD], 5),
        ([*GOOD, row(3, note_id="n3")], 61),
        ([*(row(n, note_id=f"n{n}") for n in range(60)), row(99, note_id="n3")], 61),
    ):
        refuse(read, written(path, lines), place=rf"m\.jsonl, line {line}")
    twice = read_records(
        written(path, [*(row(n, note_id=f"n{n}") for n in range(60)), row(3, note_id="n99")])
    )
    assert (twice.lines, len(twice.notes), twice.repeated) == (61, 60, 1)
    records = read_records(written(path, [*GOOD, row(99, text="Note  3")]))
    assert (len(records.patients), records.shared, records.repeated) == (61, 2, 0)


@pytest.mark.parametrize(
    "spelled", ["P3", "\uff503", " p3\u00a0", "p\u200b3", "p3\u00ad", "\u202ep3", "P\uff13"], ids=ascii
)
def test_ids_that_read_the_same_are_one_patient(tmp_path, spelled):
    path = written(tmp_path / "m.jsonl", [*GOOD, row(99, patient_id=spelled)])
    assert len(read_records(path).patients) == 60
    refuse(read, written(path, [*GOOD, row(3, patient_id=spelled)]), place=r"m\.jsonl, line 61")
    holdout = written(tmp_path / "h.jsonl", [*OTHERS, row(99, patient_id=spelled)])
    refuse(
        read_files, written(path, GOOD), holdout, place=r"h\.jsonl, line 61: its patient .* m\.jsonl, line 4"
    )


@pytest.mark.parametrize("lost", ["{}", "{}.0", "{:09}.00"])
def test_numbers_that_lost_their_zeros_are_the_same_patients(tmp_path, lost):
    members = written(tmp_path / "m.jsonl", [row(n, patient_id=f"{n:06}") for n in range(60)])
    others = [row(n, patient_id=lost.format(n)) for n in range(100, 160)]
    holdout = written(tmp_path / "h.jsonl", [*others, row(99, patient_id=lost.format(3))])
    refuse(read_files, members, holdout, place=r"h\.jsonl, line 61: its patient .* m\.jsonl, line 4")
    same = written(tmp_path / "h.jsonl", [*others, row(99, patient_id="000003")])
    refuse(read_files, members, same, place=r"h\.jsonl, line 61: its patient .* m\.jsonl, line 4")
    letters = [*others, *(row(n, patient_id=name) for n, name in ((97, "a90"), (99, "A090")))]
    assert read_files(members, written(tmp_path / "h.jsonl", letters)).canaries is None


def test_files_that_make_no_audit_are_refused(tmp_path):
    members = written(tmp_path / "m.jsonl", GOOD)
    for bad, field in ((row(5, text="another"), "patient"), (row(200, text="NOTE  5"), "text")):
        holdout = written(tmp_path / "h.jsonl", [*OTHERS[:9], bad, *OTHERS[9:]])
        refuse(read_files, members, holdout, place=rf"h\.jsonl, line 10: its {field} .* m\.jsonl, line 6")
    for path in (tmp_path / "none.jsonl", tmp_path):
        refuse(read, path, place=f"{path.name}: no such file")


def canary(number: int, inserted: object) -> bytes:
    return json.dumps({"text": f"canary {number}", "inserted": inserted}).encode() + b"\n"


@pytest.mark.parametrize(
    ("lines", "place"),
    [
        ([canary(n, True) for n in range(30)], r"c\.jsonl: 30 inserted of 30"),
        ([canary(n, n % 2 == 0) for n in range(10)], r"c\.jsonl: 5 inserted of 10"),
        ([canary(n, n == 0) for n in range(60)], r"c\.jsonl: 1 inserted of 60"),
        ([canary(n, n % 2 == 0) for n in range(30)] + [canary(4, True)], r"c\.jsonl, line 31"),
        ([canary(n, 1) for n in range(30)], r"c\.jsonl, line 1: inserted"),
        (
            [*(canary(n, n % 2 == 0) for n in range(29)), b'{"text": "note 3", "inserted": false}\n'],
            r"c\.jsonl, line 30: inserted",
        ),
    ],
)
def test_canaries_that_prove_nothing_are_refused(tmp_path, lines, place):
    members, holdout = written(tmp_path / "m.jsonl", GOOD), written(tmp_path / "h.jsonl", OTHERS)
    refuse(read_files, members, holdout, written(tmp_path / "c.jsonl", lines), place=place)


def test_canaries_and_texts_of_tables(tmp_path):
    lines = [f"canary {n};{('true', 'No', '1', '0')[n % 4]}\n".encode() for n in range(40)]
    canaries = read_canaries(written(tmp_path / "c.csv", [b"text;inserted\n", *lines])).canaries
    assert [one.inserted for one in canaries[:4]] == [True, False, True, False]
    bad = written(tmp_path / "c.csv", [b"text;inserted\n", *lines, b"x;perhaps\n"])
    refuse(read_canaries, bad, place=r"c\.csv, row 41: inserted")
    path = tmp_path / "c.parquet"
    for inserted in ([0, 1] * 20, ["No", "1"] * 20, [False, True] * 20):
        path.write_bytes(parquet(pd.DataFrame({"text": NUMBERED[:40], "inserted": inserted})))
        assert [one.inserted for one in read_canaries(path).canaries[:4]] == [False, True, False, True]
    texts = written(tmp_path / "s.csv", [b"sep=;\ntext\n", *(f"text {n % 55}\n".encode() for n in range(60))])
    read_again = read_texts(texts).texts
    assert len(read_again) == 60 and len(set(read_again)) == 55
    refuse(read_texts, written(tmp_path / "s.csv", [b"text\n", *[b"x\n"] * 49]), place=r"s\.csv: 49 texts")


def test_files_are_refused_before_what_takes_long_is_loaded(tmp_path):
    (tmp_path / "m.jsonl").write_text("x")
    code = (
        "import sys; import privaudit; from privhelpers.errors import BadRecords\n"
        "privaudit.Settings.for_texts(effort='quick')\n"
        "try: privaudit.read_files('m.jsonl', 'm.jsonl')\n"
        "except BadRecords: print({'torch', 'sklearn', 'scipy.stats'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "set()\n", done.stderr
