"""The parameters cell: what it declares, and that nothing else than it allows goes through."""

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
delta: float = 1e-5  # probability; in (0, 1)
sizes: list[int] = [1, 2]  # sizes; in [1, 64]
rates: list[float] = [
    0.5,
    1,
]  # over several lines; in (0, 1]
names: list[str] = ["a"]  # names
copy: bool = False  # called like a method of pydantic's models
"""


@pytest.fixture
def notebook(tmp_path):
    def write(cell=CELL):
        path = tmp_path / "toy.ipynb"
        toy_chain.write_notebook(path, cell, ["1 + 1"])
        return path

    return write


def test_declared_names_types_defaults_and_help(notebook):
    declared = profiles.declared(notebook())
    assert list(declared) == ["profile", "seed", "sigma", "mark", "delta", "sizes", "rates", "names", "copy"]
    assert declared["mark"].default == "a#b" and declared["mark"].allowed == "one of a#b, c"
    assert declared["rates"].type_name == "list[float]" and declared["rates"].default == [0.5, 1]
    assert declared["sigma"].allowed == "a number in (0, 1e3)"
    assert declared["profile"].help == "name # with a hash"


def test_resolve_returns_every_parameter_in_its_type(notebook):
    values = profiles.resolve(notebook(), {"sigma": 3, "rates": [1], "copy": True, "mark": "c"})
    assert values["sigma"] == 3.0 and isinstance(values["sigma"], float)
    assert values["rates"] == [1.0] and isinstance(values["rates"][0], float)
    assert values == {
        **values,
        "seed": 0,
        "delta": 1e-5,
        "sizes": [1, 2],
        "names": ["a"],
        "copy": True,
        "mark": "c",
    }


TEXT = "text on one line, every character of it visible"
TEXTS = "a list of texts, each on one line, every character of it visible"
REFUSED = [
    ("seed", True, "a whole number in [0, 1000]"),
    ("seed", 1.0, "a whole number in [0, 1000]"),
    ("seed", "1", "a whole number in [0, 1000]"),
    ("seed", -1, "a whole number in [0, 1000]"),
    ("seed", 1001, "a whole number in [0, 1000]"),
    ("seed", 10**6000, "a whole number in [0, 1000]"),
    ("seed", None, "a whole number in [0, 1000]"),
    ("sigma", math.nan, "a number in (0, 1e3)"),
    ("sigma", math.inf, "a number in (0, 1e3)"),
    ("sigma", True, "a number in (0, 1e3)"),
    ("sigma", "1.0", "a number in (0, 1e3)"),
    ("sigma", 0, "a number in (0, 1e3)"),
    ("sigma", 1000.0, "a number in (0, 1e3)"),
    ("mark", "d", "one of a#b, c"),
    ("mark", 1, "one of a#b, c"),
    ("profile", 1, TEXT),
    ("profile", None, TEXT),
    ("profile", "\ud800", f"{TEXT}; character 1 is \\ud800"),
    ("profile", "clinic\n\n<script>1</script>", f"{TEXT}; character 7 is \\n"),
    ("profile", "clinic\r", f"{TEXT}; character 7 is \\r"),
    ("profile", "clinic\x1b[2J", f"{TEXT}; character 7 is \\x1b"),
    ("profile", "clinic\x00", f"{TEXT}; character 7 is \\x00"),
    ("profile", "clinic\x85", f"{TEXT}; character 7 is \\x85"),
    ("profile", "clinic\u2028x", f"{TEXT}; character 7 is \\u2028"),
    ("profile", "clinic\u202ex", f"{TEXT}; character 7 is \\u202e"),
    ("profile", "clinic\ufe0f", f"{TEXT}; character 7 is \\ufe0f"),
    ("profile", "clinic" + 5 * "\u0301", f"{TEXT}; one letter has too many marks"),
    ("profile", "clinic\u2066x", f"{TEXT}; character 7 is \\u2066"),
    ("profile", "cli\u200bnic", f"{TEXT}; character 4 is \\u200b"),
    ("profile", "\ufeffclinic", f"{TEXT}; character 1 is \\ufeff"),
    ("profile", "clinic\U000e0041", f"{TEXT}; character 7 is \\U000e0041"),
    ("profile", "x" * 10_000 + "\n", f"{TEXT}; character 10001 is \\n"),
    ("sizes", [1, True], "a list of whole numbers, each in [1, 64]"),
    ("sizes", [1, 65], "a list of whole numbers, each in [1, 64]"),
    ("sizes", 1, "a list of whole numbers, each in [1, 64]"),
    ("sizes", (1, 2), "a list of whole numbers, each in [1, 64]"),
    ("rates", [math.nan], "a list of numbers, each in (0, 1]"),
    ("names", ["a", 1], TEXTS),
    ("names", "abc", TEXTS),
    ("names", ["a", "b\nc"], f"{TEXTS}; character 2 is \\n"),
    ("copy", 1, "true or false"),
    ("copy", "false", "true or false"),
]


@pytest.mark.parametrize("name, value, allowed", REFUSED, ids=range(len(REFUSED)))
def test_a_value_that_is_not_allowed_is_refused_in_one_line(notebook, name, value, allowed):
    with pytest.raises(InvalidParameter) as refusal:
        profiles.resolve(notebook(), {name: value}, where="params/mine.yml")
    text = str(refusal.value)
    assert text.startswith(f"params/mine.yml, toy.{name} = ") and text.endswith(f": must be {allowed}")
    assert "\n" not in text and len(text) < 300


@pytest.mark.parametrize("text", ["", "Ana-María Ñúñez & Söhne <p@q.example>", "日本語 ε ≤ 8", "`a` | $b$"])
def test_any_visible_text_is_allowed(notebook, text):
    assert profiles.resolve(notebook(), {"profile": text})["profile"] == text


def test_an_unknown_name_is_refused_with_its_neighbors(notebook):
    with pytest.raises(InvalidParameter, match=r"toy\.sigmo = 3: .*did you mean sigma\? known: profile"):
        profiles.resolve(notebook(), {"sigmo": 3})


def test_code_as_a_name_is_an_unknown_name(notebook):
    with pytest.raises(InvalidParameter, match="no such parameter"):
        profiles.resolve(notebook(), {"seed = 1; import os #": 3})


@pytest.mark.parametrize(
    "line, complaint",
    [
        ("seed = 0  # in [0, 1]", "must be `name: type = value"),
        ("import os  # no", "must be `name: type = value"),
        ("seed: int  # in [0, 1]", "must be `name: type = value"),
        ("seed: int = 0", "must end with a comment"),
        ("seed: int = 0  # source of chance", "must end with its range"),
        ("seed: int = 0  # in [2, 1]", "range of its comment is empty"),
        ("seed: int = 5  # in [0, 1]", r"notebooks/toy.ipynb, toy.seed = 5: must be"),
        ("seed: complex = 0  # in [0, 1]", "type 'complex' must be one of"),
        ("seed: int = max(0, 1)  # in [0, 1]", "malformed"),
        ("seed: int = 0  # in [0, 1]\nseed: int = 0  # in [0, 1]", "declared twice"),
        ("seed: int = = 0", "parameters cell"),
    ],
)
def test_a_cell_that_breaks_the_grammar_is_refused(notebook, line, complaint):
    with pytest.raises(InvalidParameter, match=complaint):
        profiles.resolve(notebook(line), {})


def test_a_notebook_without_the_cell_and_a_file_that_is_no_notebook_are_refused(tmp_path):
    path = tmp_path / "toy.ipynb"
    path.write_text('{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}')
    with pytest.raises(InvalidParameter, match="0 cells are tagged"):
        profiles.declared(path)
    for text in ("", "{}", "[1]", '{"nbformat": 4, "cells": 3}'):
        path.write_text(text)
        with pytest.raises(DamagedArtifact, match=r"toy\.ipynb: not a notebook"):
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
        inside = (low < tried or (opening == "[" and tried == low)) and (
            tried < high or (closing == "]" and tried == high)
        )
        try:
            accepted = checked(known, {"x": tried}, "here") == {"x": tried}
        except InvalidParameter:
            accepted = False
        assert accepted == inside
