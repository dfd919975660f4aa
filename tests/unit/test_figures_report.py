"""The pictures of the report audit: what they show, and what they refuse."""

import figure_checks
import numpy as np
import pytest

from privhelpers import figures
from privhelpers.errors import InvalidParameter

HOSTILE = r"_x $\frac{1}$ <b>&amp;"  # unbalanced TeX, markup, and a first letter that legends drop
COUNTS = np.random.default_rng(0).binomial(1400, 0.16, 300)
MAKERS = {
    "null_counts": lambda: figures.null_counts(
        {HOSTILE: COUNTS, "b": [0, 0, 1, 9]}, {HOSTILE: [249, 256], "b": [14]}
    ),
    "epsilon_readings": lambda: figures.epsilon_readings(
        ["38.34", "2.28"], {HOSTILE: [0.5, 9.9], "PLD": [0.007, 0.17]}
    ),
    "risk_scores": lambda: figures.risk_scores(
        ["baseline", "ε = 1"],
        [37.6, 30.1],
        {"printed": {HOSTILE: [9, 1], "canary": [15, 15]}, "fitted": {HOSTILE: [7, 0.1], "canary": [30, 30]}},
    ),
    "interval_forest": lambda: figures.interval_forest(
        ["a", "b"], [0.18, 0.01], [0.1, 0.0], [0.2, 0.02], ["Wald", HOSTILE]
    ),
    "verdict_bars": lambda: figures.verdict_bars(
        {"holds": {"none": 3}, "wrong number": {"A": 1, HOSTILE: 2}}
    ),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_figure_of_the_book(name):
    figure_checks.check(MAKERS[name], shows=HOSTILE)


def test_null_counts_show_every_reported_count_and_the_middle_of_the_null():
    figure = figures.null_counts({"one": COUNTS}, {"one": [249, 256]})
    (axes,) = figure.axes
    assert [line.get_xdata()[0] for line in axes.lines] == [249, 256]
    assert sum(bar.get_height() for bar in axes.patches[:-1]) == pytest.approx(1)
    legend = [text.get_text() for text in figure.legends[0].get_texts()]
    assert set(legend) == {"no memory, simulated", "its middle 95 %", "reported"}


def test_epsilon_readings_are_logarithmic_and_named():
    figure = MAKERS["epsilon_readings"]()
    (axes,) = figure.axes
    assert axes.get_yscale() == "log" and "nats" in axes.get_ylabel()
    assert axes.lines[1].get_ydata().tolist() == [0.007, 0.17]


def test_parts_of_a_score_are_stacked():
    figure = MAKERS["risk_scores"]()
    second = figure.axes[1].patches
    assert second[2].get_y() == pytest.approx(7) and second[2].get_height() == 30


@pytest.mark.parametrize(
    "call",
    [
        lambda: figures.null_counts({"a": [1, 2]}, {"b": [1]}),
        lambda: figures.null_counts({}, {}),
        lambda: figures.epsilon_readings(["a"], {"PLD": [0.0]}),
        lambda: figures.epsilon_readings(["a"], {"PLD": [1.0, 2.0]}),
        lambda: figures.risk_scores(["a"], [1.0, 2.0], {"t": {"x": [1.0, 1.0]}}),
        lambda: figures.risk_scores(["a"], [1.0], {"t": {"x": [1.0, 1.0]}}),
        lambda: figures.interval_forest(["a"], [0.5], [0.6], [0.7], ["g"]),
        lambda: figures.interval_forest(["a"], [0.5], [0.4], [0.7], ["g", "h"]),
        lambda: figures.verdict_bars({}),
    ],
)
def test_refusals(call):
    with pytest.raises(InvalidParameter):
        call()
