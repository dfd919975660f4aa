"""The parameters cell: what it declares, and that nothing but what it allows goes through."""

import math

import pytest
import toy_chain
from hypothesis import given, settings
from hypothesis import strategies as st

from bookmaker.runner import profiles
from privhelpers.errors import DamagedArtifact, InvalidParameter
from privhelpers.parameters import checked, declared_in

CELL = """profile: str = "toy"  # name # with a hash
seed: int = 0  # source of chance; in [0, 1000]
sigma: float = 1  # noise multiplier; in (0, 1e3)
mark: str = "a#b"  # text with a hash; one of a#b, c
sizes: list[int] = [1, 2]  # sizes; in [1, 64]
rates: list[float] = [
    0.5,
    1,
]  # over several lines; in (0, 1]
names: list[str] = ["a"]  # names
copy: bool = False  # called like a method of pydantic's models
"""
KNOWN = declared_in(CELL, "toy")


def test_declared_names_types_defaults_and_help(tmp_path):
    toy_chain.write_notebook(tmp_path / "toy.ipynb", CELL, ["1 + 1"])
    declared = profiles.declared(tmp_path / "toy.ipynb")
    assert declared == KNOWN and list(declared)[:4] == ["profile", "seed", "sigma", "mark"]
    assert declared["mark"].default == "a#b" and declared["mark"].allowed == "one of a#b, c"
    assert declared["rates"].type_name == "list[float]" and declared["rates"].default == [0.5, 1]
    assert declared["sigma"].allowed == "a number in (0, 1e3)"
    assert declared["profile"].help == "name # with a hash"


def test_values_get_their_declared_type():
    given = {
        "sigma": 3,
        "rates": [1],
        "copy": True,
        "mark": "c",
        "profile": "Ana-María ε ≤ 8 日本語 `a` | $b$",
    }
    values = checked(KNOWN, given, "here")
    assert values == given and isinstance(values["sigma"], float) and isinstance(values["rates"][0], float)


REFUSED = {  # name -> values, and one word of what must be
    "seed": ([True, 1.0, "1", -1, 1001, 10**6000, None], "[0, 1000]"),
    "sigma": ([math.nan, math.inf, True, "1.0", 0, 1000.0], "(0, 1e3)"),
    "mark": (["d", 1], "one of a#b, c"),
    "profile": ([1, None, "\ud800", "clinic\n\n<script>1</script>", "clinic\x1b[2J", "clinic\x00"], "text"),
    "sizes": ([[1, True], [1, 65], 1, (1, 2)], "[1, 64]"),
    "rates": ([[math.nan]], "(0, 1]"),
    "names": ([["a", 1], "abc", ["a", "b\nc"]], "texts"),
    "copy": ([1, "false"], "true or false"),
}
INVISIBLE = (
    "clinic\u2028x",
    "clinic\u202ex",
    "cli\u200bnic",
    "\ufeffclinic",
    "clinic\U000e0041",
    "x" * 10**4 + "\n",
)


@pytest.mark.parametrize("name", REFUSED)
def test_a_value_that_is_not_allowed_is_refused_in_one_line(name):
    values, allowed = REFUSED[name]
    for value in (*values, *(INVISIBLE if name == "profile" else ())):
        with pytest.raises(InvalidParameter) as refusal:
            checked(KNOWN, {name: value}, "params/mine.yml, toy")
        text = str(refusal.value)
        assert text.startswith(f"params/mine.yml, toy.{name} = ") and allowed in text
        assert "\n" not in text and len(text) < 300


@pytest.mark.parametrize(("name", "near"), [("sigmo", "sigma"), ("seed = 1; import os #", "")])
def test_an_unknown_name_is_refused_with_its_neighbors(name, near):
    with pytest.raises(InvalidParameter) as refusal:
        checked(KNOWN, {name: 3}, "here")
    assert near in str(refusal.value)


@pytest.mark.parametrize(
    "line",
    [
        "seed = 0  # in [0, 1]",
        "import os  # no",
        "seed: int  # in [0, 1]",
        "seed: int = 0",
        "seed: int = 0  # source of chance",
        "seed: int = 0  # in [2, 1]",
        "seed: complex = 0  # in [0, 1]",
        "seed: int = max(0, 1)  # in [0, 1]",
        "seed: int = 0  # in [0, 1]\nseed: int = 0  # in [0, 1]",
        "seed: int = = 0",
    ],
)
def test_a_cell_that_breaks_the_grammar_is_refused(line):
    with pytest.raises(InvalidParameter, match="toy"):
        declared_in(line, "toy")


def test_a_notebook_without_the_cell_and_a_file_that_is_no_notebook_are_refused(tmp_path):
    path = tmp_path / "toy.ipynb"
    path.write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    with pytest.raises(InvalidParameter, match="toy: 0 cells"):
        profiles.declared(path)
    for text in ("", "{}", "[1]", '{"nbformat": 4, "cells": 3}'):
        path.write_text(text)
        with pytest.raises(DamagedArtifact, match=r"toy\.ipynb"):
            profiles.declared(path)


@settings(max_examples=60, deadline=None)
@given(
    st.floats(-1e3, 1e3),
    st.floats(0, 1e3),
    st.sampled_from("(["),
    st.sampled_from(")]"),
    st.floats(-2e3, 2e3),
)
def test_range_brackets_mean_what_mathematics_means(low, width, opening, closing, value):
    high = low + width
    known = declared_in(f"x: float = 0.0  # anything; in {opening}{low!r}, {high!r}{closing}", "here")
    for tried in (value, low, high):
        above = low < tried or (opening == "[" and tried == low)
        inside = above and (tried < high or (closing == "]" and tried == high))
        try:
            accepted = checked(known, {"x": tried}, "here") == {"x": tried}
        except InvalidParameter:
            accepted = False
        assert accepted == inside
