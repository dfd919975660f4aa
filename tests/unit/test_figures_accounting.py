"""The pictures of accounting: what they show, what they leave out, what they refuse."""

import math

import figure_checks
import numpy as np
import pytest

from privhelpers import figures
from privhelpers.errors import InvalidParameter

ORDERS = [1.5, 2, 8, 64]
NOISE = [0.5, 1.0, 2.0]
HOSTILE = r"_x $\frac{1}$ <b>&amp;"  # unbalanced TeX, markup, and a first letter that legends drop
MAKERS = {
    "rdp_by_order": lambda: figures.rdp_by_order(ORDERS, {"exact": [1, 2, 3, 9], HOSTILE: [1, 1, 1, 1]}),
    "bound_by_order": lambda: figures.bound_by_order(
        ORDERS, {HOSTILE: [9, 5, 4, 6], "classic": [9, 6, 7, 8]}
    ),
    "epsilon_by_noise": lambda: figures.epsilon_by_noise(
        NOISE, {"PLD": [3, 2, 1], "RDP": [4, 3, 2]}, points={HOSTILE: ([1.0], [2.5])}
    ),
    "epsilon_by_steps": lambda: figures.epsilon_by_steps(
        [1, 10, 100], {"RDP": [1, 2, 3], HOSTILE: [1, 1, 2]}
    ),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_figure_of_the_book(name):
    figure_checks.check(MAKERS[name], shows=HOSTILE)


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_rdp_by_order_leaves_out_what_is_infinite():
    figure = figures.rdp_by_order(ORDERS, {"exact": [1, 2, 3, math.inf], "_printed": [1, 1, 1, 1]})
    (axes,) = figure.axes
    assert legend(figure) == ["exact", "_printed"]
    assert np.isnan(axes.lines[0].get_ydata()[-1]) and axes.get_xscale() == axes.get_yscale() == "log"
    assert "nats" in axes.get_ylabel() and "order" in axes.get_xlabel()


def test_bound_by_order_marks_the_smallest():
    figure = figures.bound_by_order(ORDERS, {"improved": [9, 5, 4, 6], "classic": [9, 6, 7, 8]})
    (axes,) = figure.axes
    marks = [line for line in axes.lines if line.get_marker() in "os"]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in marks] == [(8, 4), (2, 6)]
    assert axes.get_ylim() == (0, 18)


def test_epsilon_by_noise_has_lines_and_points():
    figure = figures.epsilon_by_noise(NOISE, {"PLD": [3, 2, 1]}, points={"published": ([1.0], [2.5])})
    (axes,) = figure.axes
    assert legend(figure) == ["PLD", "published"] and len(axes.lines) == 2
    assert "σ" in axes.get_xlabel() and "nats" in axes.get_ylabel()


def test_epsilon_by_steps_starts_at_nothing():
    (axes,) = figures.epsilon_by_steps([1, 10, 100], {"RDP": [1, 2, 3], "PLD": [0.5, 1.5, 2.5]}).axes
    assert axes.get_xlim()[0] == 0 and axes.get_ylim()[0] == 0
    assert len({line.get_linestyle() for line in axes.lines}) == 2


@pytest.mark.parametrize(
    "draw",
    [
        lambda: figures.rdp_by_order([0, 1], {"a": [1, 1]}),
        lambda: figures.rdp_by_order(ORDERS, {"a": [1, 2]}),
        lambda: figures.rdp_by_order(ORDERS, {}),
        lambda: figures.epsilon_by_noise(NOISE, {str(i): NOISE for i in range(9)}),
        lambda: figures.epsilon_by_noise(NOISE, {"a": NOISE}, points={"b": ([1.0], [1.0, 2.0])}),
        lambda: figures.epsilon_by_steps([-1, 2], {"a": [1, 1]}),
    ],
)
def test_refusals(draw):
    with pytest.raises(InvalidParameter):
        draw()
