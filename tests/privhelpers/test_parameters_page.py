"""A chapter started by hand: the values that it goes on with are those that its cell allows."""

from types import SimpleNamespace

import IPython
import pytest

from privhelpers import parameters
from privhelpers.errors import InvalidParameter

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
