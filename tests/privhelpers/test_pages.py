"""Numbers that sentences quote are Python's own: the page formats them."""

from types import SimpleNamespace

import IPython
import numpy as np
import pytest

from privhelpers import pages, parameters
from privhelpers.errors import InvalidParameter


@pytest.mark.parametrize("value", [None, True, [1], np.array([1, 2]), 1j])
def test_values_that_a_sentence_cannot_quote_are_refused(value):
    with pytest.raises(InvalidParameter, match="auc"):
        pages.tell(auc=value)


def test_glued_numbers_reach_the_page(monkeypatch):
    seen = {}
    monkeypatch.setattr("myst_nb.glue", lambda name, value, display: seen.update({name: (value, display)}))
    pages.tell(auc=np.float64(0.75), n=np.int64(3), loss=np.float32(2), words="1,024")
    assert seen == {"auc": (0.75, False), "n": (3, False), "loss": (2.0, False), "words": ("1,024", False)}
    assert [type(value) for value, _ in seen.values()] == [float, int, float, str]


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1400, "1,400"),
        (1234.5, "1,234"),
        (0.123456, "0.123"),
        (np.float32(2.5e-5), "2.5·10⁻⁵"),
        (float("inf"), "unbounded"),
        (float("nan"), "undefined"),
        (False, "no"),
        (None, "none"),
        ((3, 0.25), "3, 0.25"),
    ],
)
def test_a_table_of_facts_rounds_as_a_reader_would(value, shown):
    table = pages.facts({"what it is": value})
    assert table.index.tolist() == ["what it is"] and table.columns.tolist() == [""]
    assert table.iloc[0, 0] == shown


def test_a_long_text_of_facts_is_shown_whole():
    table = pages.facts({"what it is": "word " * 40})
    assert "word " * 39 in table._repr_html_() and "word " * 39 in repr(table)


# A chapter started by hand: the values that it goes on with are those that its cell allows.


CELL = """profile: str = "course"  # folder under runs/
epsilon: float = 1.0  # of one release; in [0.05, 8]
draws: int = 1000  # resamples; in [100, 100000]
"""


@pytest.fixture
def notebook(monkeypatch):
    """Pretend that these cells ran in a notebook; returns its variables."""

    def run(*cells, before="1 + 1"):
        variables = {}
        for cell in cells:
            exec(cell, variables)
        del variables["__builtins__"]
        ran = SimpleNamespace(input_hist_raw=[before, *cells])
        shell = SimpleNamespace(history_manager=ran, user_ns=variables)
        monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
        return variables

    return run


def test_outside_of_a_notebook_there_is_nothing_to_check():
    parameters.check()


def test_papermills_values_get_their_declared_type(notebook):
    for cells, value in (([CELL], 1.0), ([CELL, "# Parameters\nepsilon = 2\n"], 2.0)):
        variables = notebook(*cells)
        parameters.check()
        assert variables["epsilon"] == value and isinstance(variables["epsilon"], float)


@pytest.mark.parametrize(
    "cells, words",
    [
        ([CELL, "# Parameters\nepsilon = 20\n"], r"parameters\.epsilon = 20: .*\[0\.05, 8\]"),
        ([CELL, "# Parameters\nepsilon = '2'\n"], r"parameters\.epsilon = '2'"),
        ([CELL, "# Parameters\nepsilom = 2\n"], "epsilom: no such parameter; did you mean epsilon"),
        ([CELL, "draws = 1.5"], r"parameters\.draws = 1\.5: must be a whole number"),
        ([CELL.replace("= 1000", "= 10")], r"parameters\.draws = 10"),
        ([CELL, CELL.replace("= 1000", "= 10")], r"parameters\.draws = 10"),
    ],
    ids=["range", "type", "name", "later cell", "edited cell", "cell run again"],
)
def test_others_are_refused_by_name(notebook, cells, words):
    notebook(*cells)
    with pytest.raises(InvalidParameter, match=words):
        parameters.check()


def test_claims_are_a_list_with_check_marks_and_crosses():
    made = pages.claims([("The model <leaks>.", np.True_), ("ε is small.", False)])
    assert repr(made) == "✓ The model <leaks>.\n✗ ε is small."
    assert made._repr_html_() == (
        '<ul class="claims"><li>✓ The model &lt;leaks&gt;.</li><li>✗ ε is small.</li></ul>'
        f"<p>{pages.NOT_SHOWN}</p>"
    )


@pytest.mark.parametrize(
    "claims",
    [
        [],
        [("", True)],
        [("Two\nlines.", True)],
        [("One.", True), ("One.", True)],
        [("NaN.", float("nan"))],
        [("An array.", np.array([True, False]))],
        [("Counted.", 2)],
    ],
)
def test_a_claim_without_one_sentence_or_one_condition_is_refused(claims):
    with pytest.raises(InvalidParameter):
        pages.claims(claims)
