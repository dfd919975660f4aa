"""Options as make passes them: an empty one counts as not given, several values may stand in one text."""

import argparse
import os

import pytest

from bookmaker.runner import processes
from bookmaker.runner.options import Words, count, port
from bookmaker.sweep import __main__ as sweep


@pytest.fixture
def read():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", action=Words, kind=int, default=[0])
    parser.add_argument("--cores", type=count)
    return lambda *arguments: parser.parse_args(arguments)


@pytest.mark.parametrize(
    ("arguments", "seeds"),
    [
        ((), [0]),
        (("--seeds=",), [0]),
        (("--seeds=  ",), [0]),
        (("--seeds=3 4",), [3, 4]),
        (("--seeds", "3", "4"), [3, 4]),
        (("--seeds", "3 4", "5"), [3, 4, 5]),
        (("--seeds=-1",), [-1]),
    ],
)
def test_words(read, arguments, seeds):
    assert read(*arguments).seeds == seeds


@pytest.mark.parametrize(("text", "value"), [("", None), ("1", 1), ("12", 12)])
def test_count(read, text, value):
    assert read(f"--cores={text}").cores == value


@pytest.mark.parametrize(
    "argument",
    ["--cores=0", "--cores=-1", "--cores=two", f"--cores={'9' * 5000}", "--seeds=1 two", "--seeds=`x`"],
)
def test_what_is_no_number_is_refused(read, argument, capsys):
    with pytest.raises(SystemExit) as refused:
        read(argument)
    said = capsys.readouterr().err
    assert refused.value.code == 2 and argument.partition("=")[0] in said and len(said) < 1000


@pytest.mark.parametrize("text", ["0", "-1", "99999", "x", "1" * 5000])
def test_what_is_no_port_is_refused(text):
    with pytest.raises((ValueError, argparse.ArgumentTypeError)):
        port(text)
    assert (port(""), port("1"), port("65535")) == (8000, 1, 65535)


def test_a_parent_that_is_no_number_is_not_believed(monkeypatch):
    monkeypatch.setenv(processes.PARENT, "abc")
    assert processes._parent.__wrapped__(0) == os.getppid()


def test_a_long_value_is_refused_in_a_short_line(read, capsys):
    with pytest.raises(SystemExit):
        read("--seeds=" + "x" * 100_000)
    assert "must be numbers" in (said := capsys.readouterr().err) and len(said) < 500


def test_a_sweep_without_budgets_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sweep.processes, "die_with_parent", lambda **_: None)
    assert sweep.main(["--profile=smoke", "--epsilons=", "--cores="]) == 2
    assert capsys.readouterr().err.startswith("refused: name the budgets")
