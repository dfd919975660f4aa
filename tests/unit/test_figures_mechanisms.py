"""The pictures of the mechanisms: what they show, in the style of the book, and what they refuse."""

import figure_checks
import numpy as np
import pytest

from privhelpers import figures
from privhelpers.errors import InvalidParameter

HOSTILE = r"_x $\frac{1}$ <b>&amp;"  # unbalanced TeX, markup, and a first letter that legends drop
ANSWERS = np.linspace(0, 100, 51)
DENSITY = np.exp(-np.abs(ANSWERS - 50) / 10) / 20
FALLING = np.linspace(0.7, 0.3, 51)
RUNS = np.arange(1, 31)


def posterior(**changes):
    given = {
        "likelihoods": {"class with David": DENSITY, HOSTILE: DENSITY[::-1]},
        "posteriors": {1.0: FALLING, 0.5: FALLING, 4.0: FALLING},
        "ranges": {e: (0.2, 0.8) for e in (0.5, 1.0, 4.0)},
        "readings": [40, 60],
    }
    return figures.posterior_by_answer(ANSWERS, **{**given, **changes})


MAKERS = {
    "posterior_by_answer": posterior,
    "noise_ratio": lambda: figures.noise_ratio(
        [0.01, 0.1, 1, 10], {1e-5: [2, 1.5, 1.2, 0.8], 1e-9: [1.4, 1.3, 1.1, 0.9]}
    ),
    "composition_bounds": lambda: figures.composition_bounds(
        RUNS, {"basic": 0.1 * RUNS, HOSTILE: np.sqrt(RUNS), "optimal": 0.09 * RUNS}, epsilon=0.1
    ),
    "possible_outputs": lambda: figures.possible_outputs(
        {"count 0": [1, 0, 0, 1, 0], HOSTILE: [1, 0, 1, 0, 0]}, first=0.3
    ),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_figure_of_the_book(name):
    figure_checks.check(MAKERS[name], shows=None if name == "noise_ratio" else HOSTILE)


@pytest.mark.parametrize("name", ["posterior_by_answer", "noise_ratio", "composition_bounds"])
def test_lines_differ_without_color(name):
    for axes in MAKERS[name]().axes:
        labeled = [line for line in axes.lines if not str(line.get_label()).startswith("_child")]
        styles = [(line.get_linestyle(), line._dash_pattern) for line in labeled]
        assert len({str(style) for style in styles}) == len(labeled)


def test_beliefs_come_with_the_range_of_their_epsilon():
    right = posterior().axes[1]
    levels = [line.get_ydata()[0] for line in right.lines if len(set(line.get_ydata())) == 1]
    assert sorted(levels) == pytest.approx([0.2] * 3 + [0.8] * 3)


def test_possible_outputs_marks_those_that_only_one_count_gives():
    (axes,) = MAKERS["possible_outputs"]().axes
    (line,) = axes.lines
    assert list(line.get_xdata()) == [2, 3]


@pytest.mark.parametrize(
    "call",
    [
        lambda: posterior(ranges={1.0: (0.2, 0.8)}),
        lambda: posterior(likelihoods={}),
        lambda: posterior(posteriors={1.0: FALLING[:-1]}, ranges={1.0: (0, 1)}),
        lambda: figures.noise_ratio([0, 1], {1e-5: [1, 1]}),
        lambda: figures.noise_ratio([1, 2], {1e-5: [1, float("nan")]}),
        lambda: figures.composition_bounds([1, 2], {str(i): [1, 2] for i in range(9)}, epsilon=1),
        lambda: figures.possible_outputs({}, first=0.0),
        lambda: figures.possible_outputs({"a": [1, 0], "b": [1]}, first=0.0),
    ],
)
def test_bad_input_is_refused_with_a_typed_error(call):
    with pytest.raises(InvalidParameter):
        call()
