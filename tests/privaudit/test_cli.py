"""The command `privai-leak`: the audit of `make audit`, from any folder and in its own words."""

import argparse
import dataclasses

import pytest

from privaudit import bundle, cli
from privhelpers.errors import BadRecords, InvalidParameter, RunFailed


def test_the_command_verifies_and_says_its_exit_codes(tmp_path, capsys):
    path = str(tmp_path / "out.zip")
    (tmp_path / "out.zip").write_bytes(bundle.make({"report.html": b""}))
    assert cli.main(["verify", path]) == 0
    (tmp_path / "out.zip").write_bytes(b"x")
    assert cli.main(["verify", path]) == 1
    capsys.readouterr()
    assert cli.main(["verify", str(tmp_path / "gone.zip")]) == 2
    assert capsys.readouterr().err.startswith("refused: bundle ")
    for words in ([], ["audit"], ["verify"]):
        with pytest.raises(SystemExit) as left:
            cli.main([*words, "--help"])
        assert left.value.code == 0 and "exit codes:" in capsys.readouterr().out


def test_the_command_speaks_of_its_own_options(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["audit", "--model=net"]) == 2
    message = capsys.readouterr().err
    assert "missing: --records=members.jsonl, --holdout=nonmembers.jsonl" in message
    assert "for example: privai-leak audit --model=my-model" in message
    assert cli.main(["audit", "--model=MODEL", "--records=x", "--holdout=x"]) == 2
    assert "--model=MODEL: there is nothing at that place" in capsys.readouterr().err


def test_the_audit_is_the_one_of_make_and_starts_where_the_caller_stands(tmp_path, monkeypatch):
    seen = []
    monkeypatch.setattr("privaudit.cli.run", lambda root, options: seen.append((root, options)))
    monkeypatch.chdir(tmp_path)
    for name in ("net", "m.jsonl", "h.jsonl"):
        (tmp_path / name).touch()
    files = ["--records", "m.jsonl", "--holdout", "h.jsonl"]
    assert cli.main(["audit", "--model", "net", "--dry-run", "--notes", "ALL", "--pdf=", *files]) == 0
    ((root, options),) = seen
    assert (root, options.records, options.dry_run, options.pdf) == (tmp_path, "m.jsonl", True, True)
    assert options.settings == {"notes": None, "seed": 0, "epsilon": None, "delta": None}


def test_every_field_of_the_options_is_an_option(capsys):
    parser = cli._parser
    names = {field.name for field in dataclasses.fields(cli.Options)}
    parsed = parser().parse_args(["audit", *(f"--{name.replace('_', '-')}=x" for name in names)])
    assert {name for name, value in vars(parsed).items() if value == "x"} == names
    with pytest.raises(SystemExit):
        parser().parse_args(["audit", "--help"])
    assert "RECORDS= is --records" in " ".join(capsys.readouterr().out.split())


def test_an_option_that_is_refused_is_named_by_its_field_once():
    """The library knows no option: it says what is wrong, and the command says where."""
    given = argparse.Namespace(**{field.name: "" for field in dataclasses.fields(cli.Options)})
    given.model = given.records = given.holdout = "."
    given.dry_run = "maybe"
    with pytest.raises(InvalidParameter, match=r"^--dry-run=maybe: must be yes or no$"):
        cli.read_options(given)


def test_an_interrupt_and_a_failure_end_with_their_own_exit_codes(tmp_path, monkeypatch, capsys):
    for raised, code, told in (
        (KeyboardInterrupt(), 130, ""),
        (RunFailed("no room"), 1, "failed: no room\n"),
        (BadRecords("m.jsonl, line 1: broken"), 2, "refused: m.jsonl, line 1: broken\n"),
    ):

        def work(*_, error=raised):
            raise error

        monkeypatch.setattr("privaudit.cli.read_options", work)
        assert cli.main(["audit"]) == code and capsys.readouterr().err == told
