"""Records that somebody brings: every kind of bad line is refused by file and line, and quotes nobody."""

import json
import subprocess
import sys

import pytest
import toy_audit as toy
from hypothesis import given, settings
from hypothesis import strategies as st

from privaudit import read_files
from privaudit.records import LONGEST_LINE, read_canaries, read_records, read_texts
from privhelpers.errors import BadRecords, PrivHelpersError


def row(number: int, **more: object) -> bytes:
    return json.dumps({"patient_id": f"p{number}", "text": f"note {number}", **more}).encode() + b"\n"


GOOD = [row(n) for n in range(60)]


def written(path, lines):
    path.write_bytes(b"".join(lines))
    return path


BAD = {
    "cut": (b'{"patient_id": "x", "text": "y', "broken"),
    "no object": (b'["x"]\n', "must be an object"),
    "blank": (b"  \n", "blank"),
    "no patient": (b'{"text": "y"}\n', "patient_id is missing"),
    "no text": (b'{"patient_id": "x"}\n', "text is missing"),
    "empty text": (b'{"patient_id": "x", "text": ""}\n', "text is empty"),
    "white text": (b'{"patient_id": "x", "text": " \\n\\u00a0"}\n', "text is empty"),
    "text without a shape": (b'{"patient_id": "x", "text": "\\u200b \\u2060\\u3164"}\n', "text is empty"),
    "control text": (b'{"patient_id": "x", "text": "\\u0001\\u007f\\n"}\n', "text is empty"),
    "note_id without a shape": (
        b'{"patient_id": "x", "text": "y", "note_id": "\\u200b"}\n',
        "note_id is empty",
    ),
    "identifier without a shape": (
        b'{"patient_id": "x", "text": "y", "identifiers": ["\\u200d"]}\n',
        "identifiers.0 is empty",
    ),
    "number as patient": (b'{"patient_id": 7, "text": "y"}\n', "patient_id must be a string"),
    "null text": (b'{"patient_id": "x", "text": null}\n', "text must be a string"),
    "list as note_id": (b'{"patient_id": "x", "text": "y", "note_id": []}\n', "note_id must be a string"),
    "identifiers": (b'{"patient_id": "x", "text": "y", "identifiers": "z"}\n', "list of strings"),
    "NaN": (b'{"patient_id": "x", "text": "y", "weight": NaN}\n', "NaN is not JSON"),
    "infinity": (b'{"patient_id": "x", "text": "y", "weight": -Infinity}\n', "Infinity is not JSON"),
    "infinite number": (b'{"patient_id": "x", "text": "y", "weight": 1e400}\n', "too large for a float64"),
    "duplicate key": (b'{"patient_id": "x", "patient_id": "z", "text": "y"}\n', "duplicate key"),
    "NUL": (b'{"patient_id": "x", "text": "\x00"}\n', "NUL"),
    "escaped NUL": (b'{"patient_id": "x", "text": "y\\u0000"}\n', "NUL"),
    "half character": (b'{"patient_id": "x", "text": "\\ud800"}\n', "surrogate"),
    "deep": (b"[" * 100_000 + b"\n", "nested too deep"),
    "huge number": (b'{"patient_id": "x", "text": "y", "n": ' + b"1" * 5000 + b"}\n", "broken"),
    "long line": (b'{"patient_id": "x", "text": "' + b"y" * LONGEST_LINE + b'"}\n', "longer than"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_line_is_refused_by_file_and_line(tmp_path, kind):
    line, words = BAD[kind]
    path = written(tmp_path / "m.jsonl", [*GOOD[:30], line, *GOOD[30:]])
    if kind == "cut":
        path = written(path, [*GOOD[:30], line])
    with pytest.raises(BadRecords, match=r"^m\.jsonl, line 31\b") as refused:
        read_records(path)
    assert words in str(refused.value) and len(str(refused.value)) < 300


def test_bytes_that_are_no_utf8_are_refused_by_their_offset(tmp_path):
    offset = sum(map(len, GOOD[:30])) + 29
    path = written(tmp_path / "m.jsonl", [*GOOD[:30], b'{"patient_id": "x", "text": "\xff"}\n'])
    with pytest.raises(BadRecords, match=rf"^m\.jsonl, line 31: not UTF-8 \(byte {offset}\)"):
        read_records(path)
    assert path.read_bytes()[offset] == 0xFF


def test_a_byte_order_mark_is_passed_over_and_one_of_utf16_refused_with_its_cure(tmp_path):
    mark = b"\xef\xbb\xbf"
    assert read_records(written(tmp_path / "m.jsonl", [mark, *GOOD])).notes[0].text == "note 0"
    with pytest.raises(BadRecords, match=r"line 1: not UTF-8 \(byte 32\)"):
        read_records(written(tmp_path / "m.jsonl", [mark, b'{"patient_id": "x", "text": "\xff"}\n']))
    for kind in ("utf-16-le", "utf-16-be"):
        path = written(tmp_path / "m.jsonl", ["\ufeff".encode(kind), "{".encode(kind)])
        with pytest.raises(BadRecords, match=r"^m\.jsonl, line 1: .*UTF-16.*save the file as UTF-8"):
            read_records(path)


def test_what_makes_a_record_the_same_one(tmp_path):
    path = tmp_path / "m.jsonl"
    with pytest.raises(BadRecords, match=r"line 61: the patient and text of line 4 again"):
        read_records(written(path, [*GOOD, GOOD[3]]))
    for lines in ([row(3, note_id="n3"), *GOOD], [*GOOD, row(3, note_id="n3")]):
        with pytest.raises(BadRecords, match=r"the patient and text of line \d again"):
            read_records(written(path, lines))
    with_ids = [row(n, note_id=f"n{n}") for n in range(60)]
    with pytest.raises(BadRecords, match=r"line 61: the note_id of line 4 again"):
        read_records(written(path, [*with_ids, row(99, note_id="n3")]))
    twice = read_records(written(path, [*with_ids, row(3, note_id="n99")]))
    assert (twice.lines, len(twice.notes), twice.repeated) == (61, 60, 1)


@pytest.mark.parametrize(
    "spelled", ["P3", "\uff503", " p3\u00a0", "p\u200b3", "p3\u00ad", "\u202ep3", "P\uff13"], ids=ascii
)
def test_ids_that_read_the_same_are_one_patient(tmp_path, spelled):
    path = written(tmp_path / "m.jsonl", [*GOOD, row(99, patient_id=spelled)])
    assert len(read_records(path).patients) == 60
    with pytest.raises(BadRecords, match=r"line 61: the patient and text of line 4 again"):
        read_records(written(path, [*GOOD, row(3, patient_id=spelled)]))
    holdout = written(tmp_path / "h.jsonl", [*(row(n) for n in range(100, 160)), row(99, patient_id=spelled)])
    with pytest.raises(BadRecords, match=r"^h\.jsonl, line 61: its patient stands in m\.jsonl, line 4"):
        read_files(written(path, GOOD), holdout)


@pytest.mark.parametrize("spelled", ["\u200b", "\u00ad\u200d", "\ufeff"], ids=ascii)
def test_an_id_without_a_shape_is_none(tmp_path, spelled):
    with pytest.raises(BadRecords, match=r"line 61: patient_id is empty"):
        read_records(written(tmp_path / "m.jsonl", [*GOOD, row(99, patient_id=spelled)]))


def test_a_text_under_two_ids_is_counted(tmp_path):
    records = read_records(written(tmp_path / "m.jsonl", [*GOOD, row(99, text="Note  3")]))
    assert (len(records.patients), records.shared, records.repeated) == (61, 2, 0)
    assert read_records(written(tmp_path / "m.jsonl", GOOD)).shared == 0


@pytest.mark.parametrize("patients", [0, 1, 49])
def test_too_few_patients_are_refused(tmp_path, patients):
    with pytest.raises(BadRecords, match=rf"^m\.jsonl: {patients} patients in .* at least 50"):
        read_records(written(tmp_path / "m.jsonl", GOOD[:patients]))


def test_no_file_is_no_record(tmp_path):
    for path in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(BadRecords, match="no such file"):
            read_records(path)


@pytest.mark.parametrize("lost", ["{}", "{}.0", "{:09}.00"])
def test_numbers_that_lost_their_zeros_are_the_same_patients(tmp_path, lost):
    members = [row(n, patient_id=f"{n:06}") for n in range(60)]
    others = [row(n, patient_id=lost.format(n)) for n in range(100, 160)]
    holdout = written(tmp_path / "h.jsonl", [*others, row(99, patient_id=lost.format(3))])
    words = r"^h\.jsonl, line 61: its patient has the number of the one in m\.jsonl, line 4.*leading zeros"
    with pytest.raises(BadRecords, match=words):
        read_files(written(tmp_path / "m.jsonl", members), holdout)
    mixed = written(tmp_path / "m.jsonl", [*members, *(row(n, patient_id=f"A{n}") for n in (90, 93))])
    with pytest.raises(BadRecords, match=f"{words}.*letter before the ids of one file"):
        read_files(mixed, holdout)
    same = written(tmp_path / "h.jsonl", [*others, row(99, patient_id="000003")])
    twice = written(tmp_path / "m.jsonl", [row(98, patient_id=lost.format(3)), *members])
    where = 1 if lost.format(3) == "000003" else 5
    with pytest.raises(BadRecords, match=rf"line 61: its patient stands in m\.jsonl, line {where};"):
        read_files(twice, same)
    letters = [*others, *(row(n, patient_id=name) for n, name in ((97, "a90"), (99, "A090")))]
    written(tmp_path / "h.jsonl", letters)
    assert read_files(mixed, tmp_path / "h.jsonl"), "ids that are no numbers are compared as they stand"
    written(tmp_path / "h.jsonl", others)
    assert read_files(written(tmp_path / "m.jsonl", members), tmp_path / "h.jsonl")


def test_a_patient_or_text_in_both_files_is_refused_with_both_lines(tmp_path):
    members = written(tmp_path / "m.jsonl", GOOD)
    others = [row(n) for n in range(100, 160)]
    for bad, field in (
        (row(5, text="another"), "patient"),
        (row(200, text="NOTE  5"), "text"),
    ):
        holdout = written(tmp_path / "h.jsonl", [*others[:9], bad, *others[9:]])
        with pytest.raises(BadRecords, match=rf"^h\.jsonl, line 10: its {field} stands in m\.jsonl, line 6"):
            read_files(members, holdout)
    assert read_files(members, written(tmp_path / "h.jsonl", others)).canaries is None


def canary(number: int, inserted: object) -> bytes:
    return json.dumps({"text": f"canary {number}", "inserted": inserted}).encode() + b"\n"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([canary(n, True) for n in range(30)], "30 inserted of 30"),
        ([canary(n, n % 2 == 0) for n in range(10)], "5 inserted of 10"),
        ([canary(n, n % 2 == 0) for n in range(30)] + [canary(4, True)], "line 31: the text of line 5 again"),
        ([canary(n, 1) for n in range(30)], "line 1: inserted must be true or false"),
        ([canary(n, n == 0) for n in range(60)], "no fair coin"),
        ([*(canary(n, n % 2 == 0) for n in range(1, 30)), b'{"text": "note 3", "inserted": false}\n'],
         "line 30: inserted is false, but the text stands in m.jsonl, line 4"),
    ],
)  # fmt: skip
def test_canaries_that_prove_nothing_are_refused(tmp_path, lines, words):
    members = written(tmp_path / "m.jsonl", GOOD)
    holdout = written(tmp_path / "h.jsonl", [row(n) for n in range(100, 160)])
    with pytest.raises(BadRecords) as refused:
        read_files(members, holdout, written(tmp_path / "c.jsonl", lines))
    assert words in str(refused.value)


def test_other_fields_and_line_ends_do_not_matter(tmp_path):
    lines = [row(n, kind="report", spans=[{"a": 1}])[:-1] + b"\r\n" for n in range(60)]
    records = read_records(written(tmp_path / "m.jsonl", [*lines[:-1], lines[-1].rstrip()]))
    assert len(records.notes) == 60 and records.notes[7].line == 8 and not records.repeated


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60))
def test_no_bytes_break_the_door(tmp_path_factory, junk):
    path = written(tmp_path_factory.getbasetemp() / "junk.jsonl", [*GOOD[:2], junk])
    with pytest.raises(BadRecords):
        read_records(path)


NOTES = [f'note {n}, "quoted"; two\nlines' for n in range(60)]


def table(path, head, divider=",", ends="\n"):
    """Write 60 records as a spreadsheet would."""
    rows = [[f"{n:03d}", note.replace('"', '""')] for n, note in enumerate(NOTES)]
    lines = [divider.join(head), *(f'{number}{divider}"{note}"' for number, note in rows)]
    path.write_bytes(("".join(line + ends for line in lines)).encode())
    return path


@pytest.mark.parametrize(
    ("name", "divider", "ends"),
    [("m.csv", ",", "\n"), ("m.csv", ";", "\r\n"), ("m.CSV", ",", "\r\n"), ("m.tsv", "\t", "\n")],
)
def test_a_table_holds_the_same_records(tmp_path, name, divider, ends):
    path = table(tmp_path / name, ["patient_id", "text"], divider, ends)
    for start in (b"", b"\xef\xbb\xbf"):
        path.write_bytes(start + path.read_bytes())
        records = read_records(path)
        assert [note.text for note in records.notes] == NOTES and not records.repeated
        assert (records.notes[7].patient, records.notes[7].line) == ("007", 8)


@pytest.mark.parametrize("divider", list(";,|\t"))
def test_a_table_may_say_first_what_divides_it(tmp_path, divider):
    """As a spreadsheet has it; such a line counts as no row."""
    path = table(tmp_path / "m.csv", ["patient_id", "text"], divider, "\r\n")
    path.write_bytes(b"\xef\xbb\xbfsep=" + f"{divider}\r\n".encode() + path.read_bytes())
    records = read_records(path)
    assert [note.text for note in records.notes] == NOTES and records.notes[7].line == 8
    path.write_bytes(b"sep=;\n")
    with pytest.raises(BadRecords, match=r"^m\.csv: 0 patients in 0 lines"):
        read_records(path)


@pytest.mark.parametrize(
    ("first", "line"),
    [("sep=;", 2), ("sep=,\n", 2), ("sep=,\n ", 2), ("sep=;,", 1), ("sep= ,", 1), ('"sep=:"', 1)],
)
def test_a_line_that_says_a_wrong_divider_is_named(tmp_path, first, line):
    path = table(tmp_path / "m.csv", ["patient_id", "text"])
    path.write_bytes(f"{first}\n".encode() + path.read_bytes())
    with pytest.raises(BadRecords, match=rf"^m\.csv, line {line}: .*remove"):
        read_records(path)


def test_a_table_of_one_column_may_say_what_divides_it(tmp_path):
    path = tmp_path / "s.csv"
    path.write_text("sep=;\ntext\n" + "".join(f"text {n}\n" for n in range(60)))
    assert len(read_texts(path).texts) == 60


def test_columns_are_named_by_option(tmp_path):
    columns = {"patient_id": "mrn", "text": "Note Text"}
    path = table(tmp_path / "m.csv", ["mrn", "Note Text"])
    assert [note.text for note in read_records(path, columns).notes] == NOTES
    with pytest.raises(
        BadRecords,
        match=r"^m\.csv, row 1: patient_id is missing.*in columns, such as 'patient_id=\.\.\.'",
    ):
        read_records(path)
    own = table(tmp_path / "own.csv", ["patient_id", "text"])
    assert len(read_records(own, columns).notes) == 60, "a file that has the names of ours keeps them"
    lines = [json.dumps({"mrn": f"p{n}", "Note Text": f"note {n}", "text": "other"}) for n in range(60)]
    path = written(tmp_path / "m.jsonl", ["\n".join(lines).encode()])
    assert read_records(path, columns).notes[3].text == "note 3"


def test_a_cell_in_which_nothing_can_be_seen_is_an_empty_one(tmp_path):
    cells = [f"p{n},one {n},{chr(0x200B) if n else ''}\n" for n in range(60)]
    path = written(tmp_path / "m.csv", [b"patient_id,text,note_id\n", "".join(cells).encode()])
    assert len(read_records(path).notes) == 60


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("p1,one\np2", r"row 2: 1 cells under 2 names; put text .* in double quotes"),
        ("p1,one\np2,a,b", r"row 2: 3 cells under 2 names"),
        ("p1,one\n\np2,two", r"row 2: is blank"),
        ("p1,one\np2,", r"row 2: text is empty"),
        (",one", r"row 1: patient_id is empty"),
        ('p1,"one', r"row 1: broken \(unexpected end of data\)"),
        ('p1,"o"ne', r"row 1: broken \(',' expected after '\"'\)"),
        ("p1,one\np1,one", r"row 2: the patient and text of line 1 again"),
        ("p1,Mrs Secret\0", r"line 2: holds a NUL"),
    ],
)
def test_a_bad_row_of_a_table_is_refused_by_its_number(tmp_path, rows, words):
    path = written(tmp_path / "m.csv", [b"patient_id,text\n", rows.encode()])
    with pytest.raises(BadRecords, match=rf"^m\.csv, {words}") as refused:
        read_records(path)
    assert "Secret" not in str(refused.value)


LONG = b"x" * 999 + b"\n"


@pytest.mark.parametrize("row", [b'p1,"' + LONG * 1100, (b'"' + LONG + b'",') * 1100])
def test_a_row_of_a_table_that_takes_too_many_lines_is_refused_by_its_number(tmp_path, row):
    path = written(tmp_path / "m.csv", [b"patient_id,text\np0,one\n", row])
    with pytest.raises(BadRecords, match=r"^m\.csv, row 2: (longer than 1,000,000|broken \(field larger)"):
        read_records(path)


def test_a_table_that_is_called_jsonl_is_refused_with_the_cure(tmp_path):
    path = table(tmp_path / "m.jsonl", ["patient_id", "text"])
    with pytest.raises(BadRecords, match=r"line 1: broken.*a table must be named \.csv, \.tsv or \.parquet"):
        read_records(path)
    with pytest.raises(BadRecords, match=r"row of names: two columns of one name"):
        read_records(written(tmp_path / "two.csv", [b"text,text\na,b\n"]))


def parquet(path, **columns):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(columns), path, row_group_size=25)
    return path


def test_a_parquet_file_holds_the_same_records(tmp_path):
    names = [[f"note {n}"] if n % 2 else None for n in range(60)]
    path = parquet(
        tmp_path / "m.parquet", mrn=list(range(60)), text=NOTES, identifiers=names, when=[0.5] * 60
    )
    records = read_records(path, {"patient_id": "mrn"})
    assert [note.text for note in records.notes] == NOTES and records.notes[9].patient == "9"
    assert (records.notes[9].identifiers, records.notes[8].identifiers) == (("note 9",), ())
    with pytest.raises(BadRecords, match=r"^m\.parquet, row 1: patient_id is missing"):
        read_records(path)
    for bad, words in (
        (NOTES[:30] + [None] * 30, "row 31: text is missing"),
        (list(range(60)), "row 1: text must be text; cast the column to text"),
        ([*NOTES[:59], "x" * (LONGEST_LINE + 1)], "row 60: text longer than 1,000,000 characters"),
    ):
        path = parquet(tmp_path / "bad.parquet", patient_id=[f"p{n}" for n in range(60)], text=bad)
        with pytest.raises(BadRecords, match=rf"^bad\.parquet, {words}"):
            read_records(path)
    path = parquet(tmp_path / "bad.parquet", patient_id=[float(n) for n in range(60)], text=NOTES)
    with pytest.raises(BadRecords, match=r"^bad\.parquet, row 1: patient_id must be text; cast the column"):
        read_records(path)
    whole = path.read_bytes()
    for spoiled in (b"", b"PAR1", whole[:-9], whole[:40] + b"\0" * 40 + whole[80:]):
        with pytest.raises(BadRecords, match=r"^bad\.parquet"):
            read_records(written(path, [spoiled]))


def test_canaries_of_a_table(tmp_path):
    lines = [f"canary {n};{('true', 'No', '1', '0')[n % 4]}\n".encode() for n in range(40)]
    canaries = read_canaries(written(tmp_path / "c.csv", [b"text;inserted\n", *lines])).canaries
    assert [canary.inserted for canary in canaries[:4]] == [True, False, True, False]
    with pytest.raises(BadRecords, match=r"row 41: inserted must be true or false"):
        read_canaries(written(tmp_path / "c.csv", [b"text;inserted\n", *lines, b"x;perhaps\n"]))
    texts = [f"canary {n}" for n in range(40)]
    for inserted in ([0, 1] * 20, ["No", "1"] * 20, [False, True] * 20):
        read = read_canaries(parquet(tmp_path / "c.parquet", text=texts, inserted=inserted)).canaries
        assert [canary.inserted for canary in read[:4]] == [False, True, False, True]
    with pytest.raises(BadRecords, match=r"row 1: inserted must be true or false"):
        read_canaries(parquet(tmp_path / "c.parquet", text=texts, inserted=[2] * 40))


def test_texts_of_a_synthetic_data_set(tmp_path):
    rows = [json.dumps({"text": f"text {n % 55}"}).encode() + b"\n" for n in range(60)]
    texts = read_texts(written(tmp_path / "s.jsonl", rows)).texts
    assert len(texts) == 60 and len(set(texts)) == 55
    with pytest.raises(BadRecords, match=r"^s\.jsonl: 49 texts; at least 50"):
        read_texts(written(tmp_path / "s.jsonl", rows[:49]))


def test_reading_is_shown_where_somebody_looks(tmp_path, capsys):
    brought = [toy.write(tmp_path / f"{one}.jsonl", toy.notes(one, 60, seed=n)) for n, one in enumerate("mh")]
    texts = toy.write(tmp_path / "s.jsonl", [{"text": f"text {n}"} for n in range(60)])
    quiet = read_files(*brought, synthetic=texts)
    assert not capsys.readouterr().err
    assert read_files(*brought, synthetic=texts, progress=True) == quiet
    shown = capsys.readouterr().err
    assert all(f"reading {name}.jsonl: " in shown for name in "mhs")


def test_a_refusal_quotes_no_record(tmp_path):
    secret = "Mrs Secret"
    lines = [
        f'{{"patient_id": "{secret}", "text": "{secret}", "x": NaN}}\n',
        f'{{"patient_id": "{secret}", "text": 5}}\n',
        f'{{"patient_id": "{secret}" "text"}}\n',
        f'{{"patient_id": "{secret}", "text": "{secret}", "note_id": ["{secret}"]}}\n',
    ]
    for line in lines:
        with pytest.raises(PrivHelpersError) as refused:
            read_records(written(tmp_path / "m.jsonl", [line.encode()]))
        assert secret not in str(refused.value)


def test_the_toys_of_the_other_tests_are_good(tmp_path):
    toy.write(tmp_path / "m.jsonl", toy.notes("m", 60, seed=1))
    assert len(read_records(tmp_path / "m.jsonl").patients) == 60


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
