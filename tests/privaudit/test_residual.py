"""What scrubbed notes still contain: counted by pattern, estimated from a sheet, and never printed."""

import csv
import io
import json

import pytest

from privaudit import cli

LEFT = {"phone": "(617) 555-0123", "mrn": "SYN-12345678", "date": "2024-03-05"}


@pytest.fixture
def notes(tmp_path):
    """A folder with 100 scrubbed notes in three formats, four of which contain an identifier."""
    folder = tmp_path / "notes"
    (folder / "deep").mkdir(parents=True)
    for number in range(10):
        (folder / f"{number}.txt").write_text(f"=Seen {number} times by [NAME].\nSent home, on [DATE].")
    (folder / "3.txt").write_text(f"Call {LEFT['phone']}.")
    rows = [{"note": f"Seen on ward {number}."} for number in range(80)]
    rows[7]["note"] += f" File {LEFT['mrn']}, since {LEFT['date']}."
    rows[9]["note"] += f" Back {LEFT['date']}, then {LEFT['date']}."
    (folder / "deep" / "a.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "b.csv").write_text(
        "note\n" + "\n".join(f"Plain {n}" for n in range(9)) + f"\n{LEFT['date']}\n"
    )
    return folder


def called(capsys, *words):
    code = cli.main(["residual", *map(str, words)])
    return code, capsys.readouterr()


def test_a_folder_is_counted_by_kind_without_a_word_of_it(notes, capsys):
    code, said = called(capsys, "--text", notes, "--columns", "text=note")
    assert code == 0
    first, *kinds = said.out.splitlines()
    assert "4 of 100: 4.0% (95% interval 1.1% to 9.9%)" in first  # R: binom.test(4, 100)
    assert [line.split()[:4] for line in kinds] == [
        ["phone", "1", "in", "1"],
        ["mrn", "1", "in", "1"],
        ["date", "4", "in", "3"],
    ]
    assert not any(value in said.out + said.err for value in LEFT.values())


def test_a_sheet_that_a_person_filled_in_gives_the_share_and_the_total(notes, tmp_path, capsys):
    sheet = tmp_path / "sheet.csv"
    given = ("--text", notes, "--columns", "text=note", "--sample", 50, "--out", sheet)
    assert called(capsys, *given)[0] == 0
    rows = list(csv.DictReader(io.StringIO(sheet.read_text(encoding="utf-8-sig"))))
    assert len({row["note_id"] for row in rows}) == 50
    assert not any(row["text"].startswith("=") for row in rows), "a spreadsheet would run it"
    assert {row["found"] for row in rows} <= {"", "contact 1", "date 1", "date 2", "date 1; number 1"}

    def fill(read, missed):
        for number, row in enumerate(rows):
            row["read"] = "yes" if number in read else ""
            row["missed_name"] = str(missed.get(number, ""))
        with sheet.open("w", encoding="utf-8", newline="") as file:  # as a spreadsheet may save it
            writer = csv.DictWriter(file, rows[0], delimiter=";")
            writer.writeheader()
            writer.writerows(rows)
        return called(capsys, "--sheet", sheet)

    code, said = fill(range(40), {3: 2, 8: 1})
    assert code == 0 and "40 notes were looked at; a person found an identifier in 2 of 40: 5.0%" in said.out
    assert "(95% interval 0.6% to 16.9%); about 5 of all 100 notes (2 to 17)" in said.out
    assert said.out.splitlines()[1].split()[:3] == ["name", "3", "in"]
    for read, missed, problem in (
        ((), {}, "no note is read"),
        ((0, 2), {}, "row 2: is not read"),
        ((0,), {0: "Ann Hill"}, "row 1: missed_name must be a whole number"),
    ):
        code, said = fill(read, missed)
        assert code == 2 and problem in said.err and "Ann" not in said.err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((), "give either --text"),
        (("--text=.", "--sheet=x"), "give either --text"),
        (("--text=nowhere",), "nowhere: no file .txt"),
        (("--text=.", "--sample=0"), "sample = 0"),
        (("--text=.", "--out=."), "is there already"),
        (("--text=.", "--columns=note"), "--columns=note: must be pairs"),
        (("--text=empty.txt",), "empty.txt: is empty"),
    ],
)
def test_a_wrong_call_is_refused(tmp_path, monkeypatch, capsys, words, problem):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty.txt").write_text(" \n")
    code, said = called(capsys, *words)
    assert code == 2 and problem in said.err and not said.out
