"""The command `privai-leak`: the audit of `make audit`, from any folder and in its own words."""

import pytest

from privaudit import bundle, cli
from privhelpers.errors import BadRecords, RunFailed


def test_the_command_verifies_and_says_its_exit_codes(tmp_path, capsys):
    path = str(tmp_path / "out.zip")
    (tmp_path / "out.zip").write_bytes(bundle.make({"report.html": b""}))
    assert cli.main(["verify", path]) == 0
    (tmp_path / "out.zip").write_bytes(b"x")
    assert cli.main(["verify", path]) == 1
    capsys.readouterr()
    assert cli.main(["verify", str(tmp_path / "gone.zip")]) == 2
    assert capsys.readouterr().err.startswith("refused: --bundle=")
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
    assert cli.main(["audit", "--model", "net", "--dry-run", "--records", "m.jsonl"]) == 0
    ((root, options),) = seen
    assert root == tmp_path and vars(options).keys() >= cli.OPTIONS.keys()
    assert (options.dry_run, options.records, options.pdf) == ("yes", "m.jsonl", "")


def test_an_interrupt_and_a_failure_end_with_their_own_exit_codes(tmp_path, monkeypatch, capsys):
    for raised, code, told in (
        (KeyboardInterrupt(), 130, ""),
        (RunFailed("no room"), 1, "failed: no room\n"),
        (BadRecords("m.jsonl, line 1: broken"), 2, "refused: m.jsonl, line 1: broken\n"),
    ):

        def work(*_, error=raised):
            raise error

        monkeypatch.setattr("privaudit.cli.run", work)
        assert cli.main(["audit"]) == code and capsys.readouterr().err == told
