"""The pictures of hypothesis tests: what they show and what they refuse."""

import figure_checks
import numpy as np
import pytest

from privhelpers import figures
from privhelpers.errors import InvalidParameter

HOSTILE = r"_x $\frac{1}$ <b>&amp;"  # unbalanced TeX, markup, and a first letter that legends drop
FPR = [0.001, 0.01, 0.1, 1.0]
MAKERS = {
    "tradeoffs": lambda: figures.tradeoffs(
        {HOSTILE: ([0, 0.3, 1], [1, 0.3, 0]), "ε = 1": ([0, 1], [0.9, 0])},
        corners=([0.3], [0.3]),
        epsilons={"ε = 1": 1.0},
    ),
    "ceilings": lambda: figures.ceilings(
        FPR, {HOSTILE: [0.002, 0.02, 0.2, 1], "b": [0.003, 0.03, 0.3, 1]}, points=[(0.01, 0.02, 0.015, 0.03)]
    ),
    "what_epsilon_buys": lambda: figures.what_epsilon_buys(
        [0.1, 1, 10], {HOSTILE: [0.1, 0.2, 0.9], "b": [0, 0.5, 1]}
    ),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_figure_of_the_book(name):
    figure_checks.check(MAKERS[name], shows=HOSTILE)


@pytest.mark.parametrize("name", MAKERS)
def test_lines_differ_without_color(name):
    (axes,) = MAKERS[name]().axes
    curves = [line for line in axes.lines if line.get_linestyle() != "None"]
    assert len({(str(c._dash_pattern), c.get_linewidth()) for c in curves if len(c.get_xdata()) > 1}) >= 2


def test_a_measured_attack_carries_its_interval():
    (axes,) = MAKERS["ceilings"]().axes
    (bars,) = axes.containers
    ends = bars.lines[2][0].get_segments()[0][:, 1]
    assert ends == pytest.approx([0.015, 0.03])
    assert axes.get_xscale() == axes.get_yscale() == "log"


def test_corners_stand_where_they_are():
    (axes,) = MAKERS["tradeoffs"]().axes
    marked = [line for line in axes.lines if line.get_marker() == "o"]
    assert np.allclose(marked[0].get_xydata(), [[0.3, 0.3]])


@pytest.mark.parametrize(
    "draw",
    [
        lambda: figures.tradeoffs({}),
        lambda: figures.tradeoffs({"a": ([0, 1.2], [1, 0])}),
        lambda: figures.tradeoffs({"a": ([0, 1], [1, 0.5, 0])}),
        lambda: figures.ceilings([0, 1], {"a": [0, 1]}),
        lambda: figures.ceilings(FPR, {"a": [0.1]}),
        lambda: figures.ceilings(FPR, {}, points=[(0.1, 0.2, 0.3, 0.4)]),
        lambda: figures.what_epsilon_buys([0, 1], {"a": [0, 1]}),
        lambda: figures.what_epsilon_buys([1, 2], {"a": [0, 1.5]}),
    ],
)
def test_refusals(draw):
    with pytest.raises(InvalidParameter):
        draw()
