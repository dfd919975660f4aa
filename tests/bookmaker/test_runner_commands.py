"""Options as make passes them, and builds of the same profile, of which the second is refused."""

import argparse

import pytest

from bookmaker.runner import build
from bookmaker.runner.commands import count, hours, port, words
from privhelpers.errors import RunFailed


@pytest.mark.parametrize(
    ("read", "valid", "refused"),
    [
        (count, {"": None, "1": 1, "12": 12}, ("0", "-1", "two", "9" * 5000)),
        (port, {"": 8000, "1": 1, "65535": 65535}, ("0", "-1", "99999", "x", "1" * 5000)),
        (hours, {"": 24.0, "0.5": 0.5, "720": 720.0}, ("0", "-1", "721", "x", "nan", "inf")),
        (words(int), {"": [], "  ": [], "3 4": [3, 4], "-1": [-1]}, ("1 two", "`x`", "x" * 100_000)),
    ],
)
def test_an_option_is_read_or_refused_in_a_short_line(read, valid, refused):
    assert {text: read(text) for text in valid} == valid
    for text in refused:
        with pytest.raises(argparse.ArgumentTypeError) as error:
            read(text)
        assert len(str(error.value)) < 500


def test_builds_that_name_their_profiles_in_another_order_do_not_refuse_each_other(tmp_path):
    """One that finds the first of them held has taken none that the other one still wants."""
    with build.alone(tmp_path, ["first"]):
        for names in (["second", "first"], ["first", "second"]):
            with pytest.raises(RunFailed, match="first"), build.alone(tmp_path, names):
                raise AssertionError
            assert not (tmp_path / "runs" / "second").exists()
