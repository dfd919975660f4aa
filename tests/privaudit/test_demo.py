"""The demonstration: small models of invented patients, whose verdicts must be those they were made for."""

import json

import pytest

from privaudit import cli, demo
from privhelpers.records import refuse_unsafe

EXPECTED = {"demo": "flagged", "demo-control": "nothing found"}


def test_what_the_package_holds_is_small_and_belongs_to_no_person():
    weights = sum(path.stat().st_size for path in demo.EXAMPLE.rglob("*.safetensors"))
    assert 0 < weights <= 2_000_000
    patients = set()
    for name in ("members.jsonl", "nonmembers.jsonl"):
        for number, line in enumerate((demo.EXAMPLE / name).read_text().splitlines(), 1):
            row = json.loads(line)
            refuse_unsafe(row["text"], f"{name}, line {number}")
            assert all(value in row["text"] for value in row["identifiers"])
            patients.add(row["patient_id"])
    assert len(patients) == 200


@pytest.mark.parametrize(("changed", "code"), [({}, 0), ({"demo-control": "flagged"}, 1)])
def test_both_verdicts_are_told_and_must_be_right(tmp_path, monkeypatch, capsys, changed, code):
    asked = []

    def audited(root, options):
        name = options.model.rpartition("/")[2]
        asked.append((name, options.records, options.holdout))
        outcome = (EXPECTED | changed)[name]
        facts = {"outcome": outcome, "answers": {"found": f"found {name}", "next": f"next {name}"}}
        (tmp_path / name).mkdir()
        (tmp_path / name / "report.json").write_text(json.dumps(facts | {"first_page": {"named": "named"}}))
        return tmp_path / name

    monkeypatch.setattr(cli, "run", audited)
    assert cli.main(["demo"]) == code
    said = capsys.readouterr()
    assert [name for name, *_ in asked] == list(EXPECTED) and asked[0][1:] == asked[1][1:]
    for name in EXPECTED:
        assert f"{name}: " in said.out and f"Found: found {name}" in said.out
        assert f"Report: {tmp_path / name}/report.html" in said.out
    assert ("failed: the verdict on demo-control" in said.err) == (code == 1)
