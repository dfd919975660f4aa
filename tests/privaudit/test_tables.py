"""Tables and lists of identifiers as pandas, spreadsheets, R, Stata and databases write them."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest

from privaudit.records import read_canaries, read_records, read_texts, strings_of
from privhelpers.errors import BadRecords

pytestmark = pytest.mark.wrong_numbers

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
FRAME = pd.DataFrame({"patient_id": [f"{n:03d}" for n in range(60)], "text": NOTES})


def read(path):
    return [(note.patient, note.text) for note in read_records(path).notes]


def rows(notes=NOTES):
    return [(f"{n:03d}", note) for n, note in enumerate(notes)]


@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["LF", "CRLF"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC])
@pytest.mark.parametrize("divider", list(",;\t|"))
@pytest.mark.parametrize("index", [False, True])
def test_a_table_of_pandas_is_read_as_it_was_written(tmp_path, divider, quoting, ends, index):
    path = tmp_path / "m.csv"
    FRAME.to_csv(path, sep=divider, quoting=quoting, lineterminator=ends, index=index)
    assert read(path) == rows()


@pytest.mark.parametrize(
    "order", [["text", "patient_id"], ["patient_id", "text", "note_id"], ["note_id", "text", "patient_id"]]
)
@pytest.mark.parametrize("divider", list(",;\t|"))
def test_the_order_of_columns_does_not_matter(tmp_path, order, divider):
    path = tmp_path / "m.csv"
    FRAME.assign(note_id=[f"n{n}" for n in range(60)])[order].to_csv(path, sep=divider, index=False)
    assert read(path) == rows()


UNQUOTED = [note.replace("\n", " ").replace("\t", " ") for note in NOTES]


@pytest.mark.parametrize(
    "columns", [["patient_id", "text"], ["text", "patient_id"], ["patient_id", "text", "x"]]
)
@pytest.mark.parametrize("ends", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_a_table_with_tabs_and_without_quoting_has_a_record_a_line(tmp_path, columns, ends):
    """As MySQL, Stata or R (quote = FALSE) write it."""
    table = FRAME.assign(text=UNQUOTED, x="1")[columns]
    lines = ["\t".join(columns), *("\t".join(row) for row in table.itertuples(index=False))]
    path = tmp_path / "m.tsv"
    path.write_bytes(ends.join([*lines, ""]).encode())
    assert read(path) == rows(UNQUOTED)


def stray(columns, divider, first='"Pain is worse.', second='Wound of 5"'):
    """Return a table in which two notes have one quote each."""
    lines = [divider.join(columns)]
    for n in range(60):
        row = {
            "patient_id": f"p{n}",
            "text": {3: first, 4: second}.get(n, f"note {n}"),
            "x": "1",
            "note_id": f"n{n}",
        }
        lines.append(divider.join(row[name] for name in columns))
    return "\n".join([*lines, ""])


COLUMNS = [
    ["patient_id", "text"],
    ["text", "patient_id"],
    ["patient_id", "text", "x"],
    ["note_id", "patient_id", "text"],
]


@pytest.mark.parametrize("columns", COLUMNS, ids="-".join)
def test_two_quotes_in_a_table_with_tabs_merge_no_rows(tmp_path, columns):
    path = tmp_path / "m.tsv"
    path.write_text(stray(columns, "\t"))
    texts = [text for _, text in read(path)]
    assert len(texts) == 60 and texts[3:5] == ['"Pain is worse.', 'Wound of 5"']


@pytest.mark.parametrize("first", ['"Pain is worse.', '"Pain, and worse.', '"Pain; is | worse.'])
@pytest.mark.parametrize("columns", COLUMNS, ids="-".join)
@pytest.mark.parametrize("divider", list(",;|"))
def test_two_quotes_in_another_table_are_refused_by_line(tmp_path, columns, divider, first):
    path = tmp_path / "m.csv"
    path.write_text(stray(columns, divider, first))
    with pytest.raises(BadRecords, match=r"^m\.csv, row [45]\b"):
        read(path)


@pytest.mark.parametrize("case", [str.upper, str.lower, str.title])
def test_ids_of_letters_tell_merged_rows_too(tmp_path, case):
    ids = [case("abcdef"[n // 10] + "klmnopqrst"[n % 10]) for n in range(60)]
    notes = {3: '"Pain is worse.', 4: 'Wound of 5"'}
    lines = [f"{one},{notes.get(n, 'stable')} {n}" for n, one in enumerate(ids)]
    lines[4] = f"{ids[4]},{notes[4]}"
    path = tmp_path / "m.csv"
    path.write_text("\n".join(["patient_id,text", *lines, ""]))
    with pytest.raises(BadRecords, match=r"^m\.csv, row 4: lines 5 to 6 "):
        read(path)


def test_two_quotes_in_a_table_of_texts_are_refused_by_line(tmp_path):
    notes = [f"note {n}" for n in range(60)]
    notes[3:5], notes[20] = ['"Pain is worse.', 'Wound of 5"'], 'Wound of 5" seen'
    path = tmp_path / "s.csv"
    path.write_text("\n".join(["text", *notes, ""]))
    with pytest.raises(BadRecords, match=r"^s\.csv, row 4: lines 5 to 6 "):
        read_texts(path)


def test_two_quotes_among_canaries_are_refused_by_line(tmp_path):
    notes = [f"canary {n},{n % 2}" for n in range(60)]
    notes[3:5] = ['"Pain is worse.,1', 'Wound of 5",0']
    path = tmp_path / "c.csv"
    path.write_text("\n".join(["text,inserted", *notes, ""]))
    with pytest.raises(BadRecords, match=r"^c\.csv, row 4: lines 5 to 6 "):
        read_canaries(path)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('p4,"Wound', r"row \d+: "),  # never closed
        ('p4,"Wound" of', r"row 5: broken"),
        (r'p4,"He said \"ok\" then"', r"row 5: broken .*doubled"),
        ("p4,Wound\rof", r"row 5: broken .*line feed"),
        ("p4,a,b", r"row 5: 3 cells under 2 names"),
        ("p4", r"row 5: 1 cells"),
        ("NA,text", "row 5: patient_id is empty"),
        ("nan,text", "row 5: patient_id is empty"),
        (",text", "row 5: patient_id is empty"),
        ("", "row 5: is blank"),
        (",", "row 5: is blank"),
    ],
)  # fmt: skip
def test_a_row_that_cannot_be_read_is_refused_by_its_number(tmp_path, line, words):
    lines = ["patient_id,text", *(f"p{n},note {n}" for n in range(60))]
    lines[5] = line
    path = tmp_path / "m.csv"
    path.write_bytes("\n".join([*lines, ""]).encode())
    with pytest.raises(BadRecords, match=rf"^m\.csv, {words}"):
        read(path)


def test_line_ends_of_an_old_mac_are_refused(tmp_path):
    path = tmp_path / "m.csv"
    path.write_bytes("\r".join(["patient_id,text", *(f"p{n},note {n}" for n in range(60)), ""]).encode())
    with pytest.raises(BadRecords, match=r"^m\.csv, row .*line feed"):
        read(path)


@pytest.mark.parametrize("tail", ["\n\n", "\r\n \r\n", ",\n", ",,\n,\n", '"",""\n'])
def test_blank_rows_at_the_end_are_no_records(tmp_path, tail):
    path = tmp_path / "m.csv"
    FRAME.to_csv(path, index=False)
    path.write_bytes(path.read_bytes() + tail.encode())
    assert read(path) == rows()
    lines = tmp_path / "m.jsonl"
    FRAME.to_json(lines, orient="records", lines=True)
    lines.write_text(lines.read_text() + "\n  \n")
    assert read(lines) == rows()


def test_a_divider_at_the_end_of_each_line_leaves_a_column_without_a_name(tmp_path):
    path = tmp_path / "m.csv"
    path.write_text("\n".join(["patient_id,text,,", *(f"{n:03d},note {n},," for n in range(60)), ""]))
    assert read(path) == rows([f"note {n}" for n in range(60)])


def r_table(frame, *, divider, names, doubled):
    """Write a table as R's write.csv (doubled quotes) and write.table (its default: a backslash) do."""

    def quoted(text):
        return '"' + text.replace('"', '""' if doubled else r"\"") + '"'

    head = [quoted(name) for name in frame.columns]
    lines = [divider.join([quoted("")] * (names == "with a column") + head)]
    for n, row in enumerate(frame.itertuples(index=False), 1):
        lines.append(divider.join([quoted(str(n))] * (names != "none") + [quoted(cell) for cell in row]))
    return "\n".join([*lines, ""])


def test_tables_of_r(tmp_path):
    path = tmp_path / "m.csv"
    for names in ("none", "with a column"):
        path.write_text(r_table(FRAME, divider=",", names=names, doubled=True))
        assert read(path) == rows()
    path.write_text(r_table(FRAME, divider=" ", names="without a column", doubled=False))
    with pytest.raises(BadRecords, match=r"^m\.csv, row \d: "):
        read(path)
    path.write_text(r_table(FRAME, divider="\t", names="without a column", doubled=True))
    with pytest.raises(BadRecords, match=r"^m\.csv, row 1: 3 cells under 2 names.*row names"):
        read(path)
    path.write_text(r_table(FRAME, divider="\t", names="none", doubled=False))
    with pytest.raises(BadRecords, match=r"^m\.csv, row 3: broken .*qmethod='double'"):
        read(path)


QUOTED = [f"{n}, stable; a note" for n in range(60)]


@pytest.mark.parametrize("second", [", ", ","])
@pytest.mark.parametrize("names", ["patient_id, text", '"patient_id", "text"', "patient_id,text"])
def test_blanks_after_a_divider_belong_to_no_cell(tmp_path, names, second):
    path = tmp_path / "m.csv"
    path.write_text("\n".join([names, *(f'{n:03d}{second}"{note}"' for n, note in enumerate(QUOTED)), ""]))
    assert read(path) == rows(QUOTED)


def test_a_blank_at_the_start_of_a_text_is_kept(tmp_path):
    path, notes = tmp_path / "m.csv", [' she said "stay", twice', *NOTES[1:]]
    notes[1] = 'Told, "stay"'
    FRAME.assign(text=notes).to_csv(path, index=False)
    assert read(path) == rows(notes)


@pytest.mark.parametrize("sign", ["NA", "<NA>", "nan", "NULL", r"\N", "(null)", "#NULL!", "#N/A"])
def test_a_missing_value_is_no_text_note_or_identifier(tmp_path, sign):
    lines = [f"{n},Note {n},{sign},{sign}" for n in range(60)]
    path = tmp_path / "m.csv"
    path.write_text("\n".join(["patient_id,text,note_id,identifiers", *lines, ""]))
    assert read(path) == [(str(n), f"Note {n}") for n in range(60)]
    lines[6] = f"6,{sign},,"
    path.write_text("\n".join(["patient_id,text,note_id,identifiers", *lines, ""]))
    with pytest.raises(BadRecords, match=r"^m\.csv, row 7: text is empty"):
        read(path)


@pytest.mark.parametrize(
    "rule", ["---,----", "-----------,-----", "|---|:---|", "======,======", "----+----,-"]
)
def test_a_line_of_dashes_under_the_names_is_no_record(tmp_path, rule):
    divider, edge = ("|", "|") if rule.startswith("|") else (",", "")
    lines = [f"{edge}{n:03d}{divider}Note {n}{edge}" for n in range(60)]
    path = tmp_path / "m.csv"
    path.write_text("\n".join([f"{edge}patient_id{divider}text{edge}", rule, *lines, ""]))
    with pytest.raises(BadRecords, match=r"^m\.csv, row 1: a line of dashes"):
        read(path)


@pytest.mark.parametrize("name", ["m.csv", "m.tsv", "m.jsonl"])
@pytest.mark.parametrize("start", [b"PK\x03\x04\x14\x00", b"\x1f\x8b\x08\x00", b"\xd0\xcf\x11\xe0\xa1\xb1"])
def test_a_workbook_or_a_packed_file_is_refused_with_its_cure(tmp_path, name, start):
    (tmp_path / name).write_bytes(start + bytes(100))
    with pytest.raises(BadRecords, match=rf"^{name}, line 1: a packed file or workbook"):
        read(tmp_path / name)


def test_a_long_note_in_the_first_row_is_read(tmp_path):
    path, notes = tmp_path / "m.csv", ["a long note, " * 20_000, *NOTES[1:]]
    csv.field_size_limit(131_072)
    FRAME.assign(text=notes).to_csv(path, index=False)
    assert read(path)[0] == ("000", notes[0])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "cp1252"])
def test_another_encoding_is_refused(tmp_path, encoding):
    path = tmp_path / "m.csv"
    text = "patient_id\ttext\n" + "".join(f"p{n}\tcafé {n}\n" for n in range(60))
    path.write_bytes(text.encode(encoding))
    with pytest.raises(BadRecords, match=r"^m\.csv, line \d: .*UTF-8"):
        read(path)


def test_a_spreadsheet_writes_its_divider_first(tmp_path):
    path = tmp_path / "m.csv"
    FRAME.to_csv(path, index=False, sep=";", lineterminator="\r\n")
    path.write_bytes(b"\xef\xbb\xbfsep=;\r\n" + path.read_bytes())
    assert read(path) == rows()


def test_the_divider_is_the_one_that_gives_our_names(tmp_path):
    path = tmp_path / "m.csv"
    lines = [
        "patient_id;text;age, in years;weight, in kg;a, b",
        *(f"{n:03d};note {n};1;2;3" for n in range(60)),
    ]
    path.write_text("\n".join(lines))
    assert read(path) == rows([f"note {n}" for n in range(60)])


@pytest.mark.parametrize("orient", ["records", "columns", "index", "split", "table", "values"])
@pytest.mark.parametrize("indent", [None, 1])
def test_a_table_in_one_json_value_is_refused_with_the_cure(tmp_path, orient, indent):
    path = tmp_path / "m.json"
    FRAME.to_json(path, orient=orient, indent=indent)
    with pytest.raises(BadRecords, match=r"^m\.json, line 1: .*one JSON object a line"):
        read(path)


def test_json_without_identifiers_has_null(tmp_path):
    path = tmp_path / "m.jsonl"
    lists = [[f"Name{n} Hill"] if n % 2 else None for n in range(60)]
    texts = [f"Name{n} Hill was seen." for n in range(60)]
    FRAME.assign(text=texts, identifiers=lists).to_json(path, orient="records", lines=True)
    assert [len(note.identifiers) for note in read_records(path).notes] == [0, 1] * 30


@pytest.mark.parametrize("kind", ["list", "array", "categorical", "string", "Int64", "null in list"])
def test_columns_of_parquet(tmp_path, kind):
    pytest.importorskip("pyarrow")
    names = [f"Name{n} Hill" for n in range(60)]
    table = pd.DataFrame(
        {"patient_id": range(60), "text": [f"{name}, number 10{n:04d}" for n, name in enumerate(names)]}
    )
    if kind == "list":
        table["identifiers"] = [[name] for name in names]
    elif kind == "array":
        table["identifiers"] = [np.array([name], dtype=object) for name in names]
    elif kind == "categorical":
        table["identifiers"] = pd.Categorical(names)
        table["text"] = pd.Categorical(table["text"])
    elif kind == "string":
        table["identifiers"] = pd.array(names, dtype="string")
    elif kind == "Int64":
        table["identifiers"] = pd.array([int(f"10{n:04d}") if n else None for n in range(60)], dtype="Int64")
    else:
        table["identifiers"] = [[name, None] for name in names]
    table.to_parquet(path := tmp_path / "m.parquet")
    records = read_records(path)
    assert records.notes[7].identifiers == (("100007",) if kind == "Int64" else ("Name7 Hill",))
    assert records.not_found == 0 and records.notes[7].patient == "7"


@pytest.mark.parametrize(
    "bad", [[[1.5]] * 60, [{"a": "b"}] * 60, [1.5] * 60, [["a", ["b"]]][:0] or [[["a"]]] * 60]
)
def test_identifiers_of_parquet_that_are_no_text_are_refused(tmp_path, bad):
    pytest.importorskip("pyarrow")
    FRAME.assign(identifiers=bad).to_parquet(path := tmp_path / "m.parquet")
    with pytest.raises(BadRecords, match=r"^m\.parquet, row 1: identifiers.* must be"):
        read(path)


TWO = ["Anna Hill", "Old Anna Hill"]
ODD = ["Anna O'Brien", 'Ann "Nan" Hill', "Hill, Anna", "Zoë 林", "617-555-0123"]
FRAMES = pd.DataFrame({"identifiers": [TWO]})


@pytest.mark.parametrize("items", [TWO, ODD, ODD[:1], ["Hill, Anna"], ["123456", "000123"]], ids=str)
@pytest.mark.parametrize(
    "write",
    [
        str,
        lambda items: str(tuple(items)),
        lambda items: str([np.str_(item) for item in items]),
        lambda items: str(np.array(items)),
        lambda items: str(np.array(items, dtype=object)),
        lambda items: repr(np.array(items)),
        lambda items: repr(np.array(items, dtype=object)),
        lambda items: str([items]),
        json.dumps,
        lambda items: json.dumps(items, ensure_ascii=False),
        lambda items: json.dumps(items, indent=1),
        lambda items: f"c({json.dumps(items, ensure_ascii=False)[1:-1]})",
        lambda items: json.dumps(items, ensure_ascii=False)[1:-1],
        lambda items: str(items).replace("', ", "'; "),
        lambda items: "{" + ",".join('"' + item.replace('"', r"\"") + '"' for item in items) + "}",
        "|".join,
        " | ".join,
        ";".join,
        "; ".join,
        "\n".join,
        "\r\n".join,
        "\t".join,
    ],
)  # fmt: skip
def test_a_list_of_identifiers_is_read_however_it_is_written(write, items):
    assert strings_of(write(items)) == items


@pytest.mark.parametrize(
    ("cell", "items"),
    [(cell, []) for cell in ("NA", "NaN", "nan", "None", "[]", "()", "{}", "set()", "<NA>", "NULL", "['']")]
    + [(cell, []) for cell in ("[nan]", "[None]", "c()", "character(0)", ".", " ", "|", ";", "[ ]")]
    + [(cell, []) for cell in ("array([], dtype=object)", "[]\n")]
    + [(cell, []) for cell in (r"\N", "(null)", "#NULL!", "NONE", "nil", "n.a.", "--", "—")]
    + [
        ("{Anna Hill,Old Anna Hill}", TWO),
        ('{Anna,"Hill, Anna",NULL}', ["Anna", "Hill, Anna"]),
        ("{'Anna Hill'}", ["Anna Hill"]),
        ("{'Anna Hill', 'Old Anna Hill'}", TWO),
        ("['Anna Hill', None]", ["Anna Hill"]),
        ("['Anna Hill', nan, 123456]", ["Anna Hill", "123456"]),
        ("[123456, 123457]", ["123456", "123457"]),
        ("[u'Anna Hill', u'Old Anna Hill']", TWO),
        ("[“Anna Hill”, “Old Anna Hill”]", TWO),
        ("Anna Hill", ["Anna Hill"]),
        ("Hill, Anna", ["Hill, Anna"]),
        ("Hill, Anna|Hill, A.", ["Hill, Anna", "Hill, A."]),
        ("Hill, Anna; Hill, A.", ["Hill, Anna", "Hill, A."]),
        ("(617) 555-0123", ["(617) 555-0123"]),
        ("(617) 555-0123 (home)", ["(617) 555-0123 (home)"]),
        ("(617)", ["(617)"]),
        ("O'Brien", ["O'Brien"]),
        ("'s-Gravenhage", ["'s-Gravenhage"]),
        ("Ann Hill (Old)", ["Ann Hill (Old)"]),
        ("[Hill, Anna]", ["[Hill, Anna]"]),
        ("123456.0", ["123456.0"]),
        ("6.17556E+09", ["6.17556E+09"]),
        ("1 Elm St; Apt 4|Anna Hill", ["1 Elm St; Apt 4", "Anna Hill"]),
        ("{'name': 'Anna Hill'}", ["{'name': 'Anna Hill'}"]),
        ("Anna Hill；Old Anna Hill", TWO),
    ],
)  # fmt: skip
def test_a_cell_of_identifiers(cell, items):
    assert strings_of(cell, "Lives at 1 Elm St; Apt 4, Boston") == items


def with_identifiers(path, cells, texts=None):
    """Write 60 records with these cells, as pandas does."""
    texts = texts or [f"Name{n} Hill, once Name{n} Wood, MRN 00{n:04d}, seen." for n in range(60)]
    FRAME.assign(text=texts, identifiers=cells).to_csv(path, index=False)
    return path


@pytest.mark.parametrize("begins", ["Hill", "明"])
def test_an_identifier_is_not_in_the_end_of_one_note_and_the_begin_of_the_next(tmp_path, begins):
    rows = [
        {"patient_id": f"{n // 2:03d}", "text": text, "identifiers": f"Name{n // 2} {begins}"}
        for n in range(0, 120, 2)
        for text in (f"{begins} seen once", f"{begins} seen by Name{n // 2}", f"{begins} seen again")
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "m.csv", index=False)
    with pytest.raises(BadRecords, match="60 of 60 identifiers"):
        read_records(tmp_path / "m.csv")


@pytest.mark.parametrize(
    "write",
    [
        lambda items: items,
        np.array,
        tuple,
        json.dumps,
        ";".join,
        "\n".join,
        "|".join,
        list,
    ],
)
def test_two_identifiers_in_a_cell_are_two_identifiers(tmp_path, write):
    cells = [write([f"Name{n} Hill", f"Name{n} Wood"]) for n in range(60)]
    records = read_records(with_identifiers(tmp_path / "m.csv", cells))
    assert [note.identifiers for note in records.notes] == [
        (f"Name{n} Hill", f"Name{n} Wood") for n in range(60)
    ]
    assert records.not_found == 0


@pytest.mark.parametrize(
    "cells",
    [
        [float(f"1{n:04d}") for n in range(60)],  # 10000.0
        [n for n in range(60)],  # leading zeros lost
        [f"6.17556E+0{n % 10}" for n in range(60)],
        [f"Hill, Name{n}, Wood" for n in range(60)],
        [f"{{'name': 'Name{n} Hill'}}" for n in range(60)],
        [f"Name{n} Hill / Name{n} Wood" for n in range(60)],
        [f"Name{n + 1} Hill" for n in range(60)],  # of the next patient
        [f"Name{n}" if n == 59 else None for n in range(60)][::-1],  # one alone, of another patient
        [[f"Name{n} Hill", "x y", f"z{n} w"] for n in range(60)],  # most
    ],
)  # fmt: skip
def test_a_file_whose_identifiers_are_in_no_text_is_refused_by_line(tmp_path, cells):
    path = with_identifiers(tmp_path / "m.csv", cells)
    with pytest.raises(
        BadRecords, match=r"^m\.csv, line 1: \d+ of \d+ identifiers are in no text"
    ) as refused:
        read_records(path)
    assert "Name" not in str(refused.value), "a message quotes no record"


def test_a_few_identifiers_that_are_in_no_text_are_counted_and_left_out(tmp_path):
    lists = [[f"Name{n} Hill", *(["Somewhere Else"] if n < 7 else [])] for n in range(60)]
    records = read_records(with_identifiers(tmp_path / "m.csv", lists))
    assert records.not_found == 7
    assert [note.identifiers for note in records.notes] == [(f"Name{n} Hill",) for n in range(60)]


def test_an_identifier_may_be_in_another_note_of_its_patient(tmp_path):
    out = io.StringIO()
    for n in range(60):
        for text in (f"Name{n} Hill was seen.", f"Visit {n}: stable."):
            record = {"patient_id": f"p{n}", "text": text, "identifiers": [f"Name{n} Hill"]}
            out.write(json.dumps(record) + "\n")
    (tmp_path / "m.jsonl").write_text(out.getvalue())
    records = read_records(tmp_path / "m.jsonl")
    assert records.not_found == 0 and all(note.identifiers for note in records.notes)
