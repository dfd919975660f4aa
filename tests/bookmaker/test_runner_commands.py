"""Options as make passes them: an empty one counts as not given, several values may stand in one text."""

import argparse

import pytest

from bookmaker.runner.commands import Words, count, hours, port
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
    [
        "--cores=0",
        "--cores=-1",
        "--cores=two",
        f"--cores={'9' * 5000}",
        "--seeds=1 two",
        f"--seeds={'x' * 100_000}",
    ],
)
def test_what_is_no_number_is_refused(read, argument, capsys):
    with pytest.raises(SystemExit) as refused:
        read(argument)
    said = capsys.readouterr().err
    assert refused.value.code == 2 and argument.partition("=")[0] in said and len(said) < 1000


@pytest.mark.parametrize(
    ("read", "valid", "refused"),
    [
        (port, {"": 8000, "1": 1, "65535": 65535}, ("0", "-1", "99999", "x", "1" * 5000)),
        (hours, {"": 24.0, "0.5": 0.5, "720": 720.0}, ("0", "-1", "721", "x", "nan", "inf")),
    ],
)
def test_a_number_lies_in_its_range(read, valid, refused):
    assert {text: read(text) for text in valid} == valid
    for text in refused:
        with pytest.raises(argparse.ArgumentTypeError):
            read(text)


def test_a_sweep_without_budgets_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sweep, "die_with_parent", lambda: None)
    assert sweep.main(["--profile=smoke", "--epsilons=", "--cores="]) == 2
    assert capsys.readouterr().err.startswith("refused: name the budgets")
