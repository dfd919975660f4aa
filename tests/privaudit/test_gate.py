"""A pipeline fails on what a report says, and gets the report on standard output."""

import json
import os
import sys

import pytest
import toy_audit as toy

from privaudit import cli, gate, verdict
from privhelpers.errors import RunFailed


def facts(outcome="nothing found", low=0.5, claim=None, canaries=True):
    return {
        "outcome": outcome,
        "attacks": [{"patient": {"auc": [low + 0.1, low, low + 0.2]}}, {"patient": {"auc": [1, 1, 1]}}],
        "canaries": {"claim": claim} if canaries else None,
    }


REFUTED = facts(verdict.FLAGGED, claim={"refuted": True})


@pytest.mark.parametrize(
    ("report", "given", "code", "told"),
    [
        (facts("flagged"), "flagged", 3, "holds: flagged"),
        (facts("flagged"), "undecided", 0, "holds: none"),
        (facts("undecided"), "flagged, undecided", 3, "holds: undecided"),
        (facts("nothing found"), "flagged,undecided", 0, "holds: none"),
        (facts(low=0.551), "auc>0.55", 3, "holds: auc>0.55"),
        (facts(low=0.55), "auc > .55,flagged", 0, "holds: none"),
        (REFUTED, "epsilon-refuted,flagged", 3, "holds: epsilon-refuted, flagged"),
        (facts(claim={"refuted": False}), "epsilon-refuted", 0, "holds: none"),
        (facts(canaries=False), "epsilon-refuted", 0, "holds: none"),
        (REFUTED, "", 0, ""),
    ],
)
def test_the_exit_code_follows_the_conditions(tmp_path, monkeypatch, capsys, report, given, code, told):
    (tmp_path / "report.json").write_text(json.dumps(report))
    for name in ("net", "m", "h", "c"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli, "run", lambda root, options: tmp_path)
    claim = ["--epsilon=1", "--delta=1e-5", "--canaries=c"]
    files = ["--model=net", "--records=m", "--holdout=h"]
    assert cli.main(["audit", *files, *claim, f"--fail-if={given}"]) == code
    said = capsys.readouterr().err
    assert told in said if given else not said


def test_the_words_of_the_gate_are_those_of_the_verdict():
    assert {gate.Finding.FLAGGED, gate.Finding.UNDECIDED} == {verdict.FLAGGED, verdict.UNDECIDED}


def test_a_report_goes_to_a_pipe_whole_and_alone(tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    rows = {letter: toy.notes(letter, 50, seed=n) for n, letter in enumerate("mh")}
    files = [toy.write(tmp_path / f"{letter}.jsonl", notes).name for letter, notes in rows.items()]
    texts = toy.write(tmp_path / "s.jsonl", [{"text": row["text"]} for row in rows["m"]]).name
    given = [f"--synthetic={texts}", f"--records={files[0]}", f"--holdout={files[1]}", "--pdf=no"]
    code = cli.main(["audit", *given, "--out=out", "--effort=quick", "--fail-if=flagged", "--json=-"])
    out, err = capfd.readouterr()
    assert code == 3 and "[audit] --fail-if holds: flagged" in err
    assert out.encode() == (tmp_path / "out" / "report.json").read_bytes()


def test_a_pipe_that_closes_early_is_a_failure(monkeypatch):
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w") as out:
        monkeypatch.setattr(sys, "stdout", out)
        with pytest.raises(RunFailed, match="the report's folder is complete"):
            cli._copy(b"{}", "-")
