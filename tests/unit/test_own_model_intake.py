"""Records that somebody brings: every kind of bad line is refused by file and line, and quotes nobody."""

import json

import pytest
import toy_audit as toy
from hypothesis import given, settings
from hypothesis import strategies as st

from privhelpers.errors import BadRecords, PrivHelpersError
from privhelpers.own_model import _files, read_files


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
    "number as patient": (b'{"patient_id": 7, "text": "y"}\n', "patient_id must be a string"),
    "null text": (b'{"patient_id": "x", "text": null}\n', "text must be a string"),
    "list as note_id": (b'{"patient_id": "x", "text": "y", "note_id": []}\n', "note_id must be a string"),
    "identifiers": (b'{"patient_id": "x", "text": "y", "identifiers": "z"}\n', "list of strings"),
    "NaN": (b'{"patient_id": "x", "text": "y", "weight": NaN}\n', "NaN is not JSON"),
    "infinity": (b'{"patient_id": "x", "text": "y", "weight": -Infinity}\n', "Infinity is not JSON"),
    "duplicate key": (b'{"patient_id": "x", "patient_id": "z", "text": "y"}\n', "duplicate key"),
    "NUL": (b'{"patient_id": "x", "text": "\x00"}\n', "NUL"),
    "escaped NUL": (b'{"patient_id": "x", "text": "\\u0000"}\n', "NUL"),
    "half character": (b'{"patient_id": "x", "text": "\\ud800"}\n', "surrogate"),
    "deep": (b"[" * 100_000 + b"\n", "nested too deep"),
    "huge number": (b'{"patient_id": "x", "text": "y", "n": ' + b"1" * 5000 + b"}\n", "broken"),
    "long line": (b'{"patient_id": "x", "text": "' + b"y" * _files.LONGEST_LINE + b'"}\n', "longer than"),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_line_is_refused_by_file_and_line(tmp_path, kind):
    line, words = BAD[kind]
    path = written(tmp_path / "m.jsonl", [*GOOD[:30], line, *GOOD[30:]])
    if kind == "cut":
        path = written(path, [*GOOD[:30], line])
    with pytest.raises(BadRecords, match=r"^m\.jsonl, line 31\b") as refused:
        _files.read_records(path)
    assert words in str(refused.value) and len(str(refused.value)) < 300


def test_bytes_that_are_no_utf8_are_refused_by_their_offset(tmp_path):
    offset = sum(map(len, GOOD[:30])) + 29
    path = written(tmp_path / "m.jsonl", [*GOOD[:30], b'{"patient_id": "x", "text": "\xff"}\n'])
    with pytest.raises(BadRecords, match=rf"^m\.jsonl, line 31: not UTF-8 \(byte {offset}\)"):
        _files.read_records(path)
    assert path.read_bytes()[offset] == 0xFF


@pytest.mark.parametrize("start", [b"\xef\xbb\xbf", "\ufeff".encode("utf-16-le")])
def test_a_byte_order_mark_is_refused(tmp_path, start):
    with pytest.raises(BadRecords, match=r"^m\.jsonl, line 1: (starts with a byte order mark|.*\(byte 0\))"):
        _files.read_records(written(tmp_path / "m.jsonl", [start, *GOOD]))


def test_what_makes_a_record_the_same_one(tmp_path):
    path = tmp_path / "m.jsonl"
    with pytest.raises(BadRecords, match=r"line 61: the patient and text of line 4 again"):
        _files.read_records(written(path, [*GOOD, GOOD[3]]))
    for lines in ([row(3, note_id="n3"), *GOOD], [*GOOD, row(3, note_id="n3")]):
        with pytest.raises(BadRecords, match=r"the patient and text of line \d again"):
            _files.read_records(written(path, lines))
    with_ids = [row(n, note_id=f"n{n}") for n in range(60)]
    with pytest.raises(BadRecords, match=r"line 61: the note_id of line 4 again"):
        _files.read_records(written(path, [*with_ids, row(99, note_id="n3")]))
    twice = _files.read_records(written(path, [*with_ids, row(3, note_id="n99")]))
    assert (twice.lines, len(twice.notes), twice.repeated) == (61, 60, 1)


@pytest.mark.parametrize(
    "spelled", ["P3", "\uff503", " p3\u00a0", "p\u200b3", "p3\u00ad", "\u202ep3", "P\uff13"], ids=ascii
)
def test_ids_that_read_the_same_are_one_patient(tmp_path, spelled):
    path = written(tmp_path / "m.jsonl", [*GOOD, row(99, patient_id=spelled)])
    assert len(_files.read_records(path).patients) == 60
    with pytest.raises(BadRecords, match=r"line 61: the patient and text of line 4 again"):
        _files.read_records(written(path, [*GOOD, row(3, patient_id=spelled)]))
    holdout = written(tmp_path / "h.jsonl", [*(row(n) for n in range(100, 160)), row(99, patient_id=spelled)])
    with pytest.raises(BadRecords, match=r"^h\.jsonl, line 61: its patient stands in m\.jsonl, line 4"):
        read_files(written(path, GOOD), holdout)


@pytest.mark.parametrize("spelled", ["\u200b", "\u00ad\u200d", "\ufeff"], ids=ascii)
def test_an_id_without_a_shape_is_none(tmp_path, spelled):
    with pytest.raises(BadRecords, match=r"line 61: patient_id is empty"):
        _files.read_records(written(tmp_path / "m.jsonl", [*GOOD, row(99, patient_id=spelled)]))


def test_a_text_under_two_ids_is_counted(tmp_path):
    records = _files.read_records(written(tmp_path / "m.jsonl", [*GOOD, row(99, text="Note  3")]))
    assert (len(records.patients), records.shared, records.repeated) == (61, 2, 0)
    assert _files.read_records(written(tmp_path / "m.jsonl", GOOD)).shared == 0


@pytest.mark.parametrize("patients", [0, 1, 49])
def test_too_few_patients_are_refused(tmp_path, patients):
    with pytest.raises(BadRecords, match=rf"^m\.jsonl: {patients} patients in .* at least 50"):
        _files.read_records(written(tmp_path / "m.jsonl", GOOD[:patients]))


def test_no_file_is_no_record(tmp_path):
    for path in (tmp_path / "none.jsonl", tmp_path):
        with pytest.raises(BadRecords, match="no such file"):
            _files.read_records(path)


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
    records = _files.read_records(written(tmp_path / "m.jsonl", [*lines[:-1], lines[-1].rstrip()]))
    assert len(records.notes) == 60 and records.notes[7].line == 8 and not records.repeated


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=60))
def test_no_bytes_break_the_door(tmp_path_factory, junk):
    path = written(tmp_path_factory.getbasetemp() / "junk.jsonl", [*GOOD[:2], junk])
    with pytest.raises(BadRecords):
        _files.read_records(path)


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
            _files.read_records(written(tmp_path / "m.jsonl", [line.encode()]))
        assert secret not in str(refused.value)


def test_the_toys_of_the_other_tests_are_good(tmp_path):
    toy.write(tmp_path / "m.jsonl", toy.notes("m", 60, seed=1))
    assert len(_files.read_records(tmp_path / "m.jsonl").patients) == 60
