"""Options as make passes them: an empty one counts as not given, several values may stand in one text."""

import argparse

import pytest

from bookmaker.runner.commands import count, hours, port, words
from bookmaker.sweep import __main__ as sweep


@pytest.mark.parametrize(
    ("read", "valid", "refused"),
    [
        (count, {"": None, "1": 1, "12": 12}, ("0", "-1", "two", "9" * 5000)),
        (port, {"": 8000, "1": 1, "65535": 65535}, ("0", "-1", "99999", "x", "1" * 5000)),
        (hours, {"": 24.0, "0.5": 0.5, "720": 720.0}, ("0", "-1", "721", "x", "nan", "inf")),
        (
            words(int),
            {"": [], "  ": [], "3": [3], "3 4": [3, 4], "-1": [-1]},
            ("1 two", "`x`", "x" * 100_000),
        ),
    ],
)
def test_an_option_is_read_or_refused_in_a_short_line(read, valid, refused):
    assert {text: read(text) for text in valid} == valid
    for text in refused:
        with pytest.raises(argparse.ArgumentTypeError) as error:
            read(text)
        assert len(str(error.value)) < 500


def test_a_sweep_without_budgets_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sweep, "die_with_parent", lambda: None)
    assert sweep.main(["--profile=smoke", "--epsilons=", "--cores="]) == 2
    assert capsys.readouterr().err.startswith("refused: name the budgets")
