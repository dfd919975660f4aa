"""The pictures of utility: budgets, seeds, and models that were trained in another way."""

import figure_checks
import numpy as np
import pytest

from privhelpers import figures
from privhelpers.errors import InvalidParameter

HOSTILE = r"_x $\frac{1}$ <b>&amp;"  # unbalanced TeX, markup, and a first letter that legends drop
LINES = {"public": 25.0, "best_nonprivate": 2.0, "baseline": 2.4}
RUNS = {"dp-eps-1": [9.0, 9.5, 9.1], HOSTILE: [3.0, 3.1]}
INTERVALS = {"dp-eps-1": (9.0, 8.6, 9.5), HOSTILE: (3.0, 2.9, 3.1)}
MAKERS = {
    "perplexity_by_epsilon": lambda: figures.perplexity_by_epsilon(
        [8, 1],
        [3, 9],
        LINES,
        lows=[2.8, 8.5],
        highs=[3.2, 9.6],
        repeats=([1, 1, 8], [9.5, 9.1, 3.1]),
        others={"LoRA": (8, 3.6), HOSTILE: (1, 12)},
    ),
    "luck_by_model": lambda: figures.luck_by_model(RUNS, INTERVALS),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_figure_of_the_book(name):
    figure_checks.check(MAKERS[name], shows=HOSTILE)


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def line_called(axes, label):
    (line,) = [line for line in axes.lines if str(line.get_label()).lstrip("\ufdd0") == label]
    return line


def test_every_run_and_every_other_model_has_its_place():
    figure = MAKERS["perplexity_by_epsilon"]()
    (axes,) = figure.axes
    again = line_called(axes, "the same, other seeds")
    assert list(again.get_xdata()) == [1, 1, 8] and list(again.get_ydata()) == [9.5, 9.1, 3.1]
    lora = line_called(axes, "LoRA")
    assert (lora.get_xdata(), lora.get_ydata()) == ([8], [3.6]) and lora.get_linestyle() == "None"
    markers = {line_called(axes, name).get_marker() for name in ("the same, other seeds", "LoRA", HOSTILE)}
    assert len(markers) == 3
    assert set(legend(figure)) >= {"DP-SGD", "LoRA", HOSTILE, "public checkpoint", "best non-private"}


def test_the_axis_reaches_what_lies_beyond_the_curve():
    figure = figures.perplexity_by_epsilon([1, 8], [9, 3], {}, others={"LoRA": (8, 30.0)})
    low, high = figure.axes[0].get_ylim()
    assert low < 3 and high > 30
    assert max(figure.axes[0].get_yticks()) >= 30


def test_seeds_are_drawn_around_their_mean_and_the_interval_around_its_estimate():
    figure = figures.luck_by_model({"dp-eps-1": [9.0, 11.0]}, {"dp-eps-1": (9.0, 8.1, 9.9)})
    (axes,) = figure.axes
    seeds = line_called(axes, "one run for each seed")
    assert np.allclose(seeds.get_xdata(), [-10, 10])
    (bar,) = axes.containers
    assert np.allclose([end.get_xdata()[0] for end in bar.lines[1]], [-10, 10])
    assert len(set(seeds.get_ydata())) == 1
    assert axes.get_yticklabels()[0].get_text() == "DP, ε = 1"


def test_each_kind_of_mark_is_in_the_legend_once():
    assert legend(MAKERS["luck_by_model"]()) == [
        "one run for each seed",
        "95 % interval over held-out patients",
    ]


@pytest.mark.parametrize(
    "call",
    [
        lambda: figures.luck_by_model({}, {}),
        lambda: figures.luck_by_model({"a": [1, 2]}, {"b": (1, 1, 2)}),
        lambda: figures.luck_by_model({"a": [1]}, {"a": (1, 1, 2)}),
        lambda: figures.luck_by_model({"a": [1, 0]}, {"a": (1, 1, 2)}),
        lambda: figures.luck_by_model({"a": [1, float("nan")]}, {"a": (1, 1, 2)}),
        lambda: figures.luck_by_model({"a": [1, 2]}, {"a": (1, 1.5, 2)}),
        lambda: figures.perplexity_by_epsilon([1], [3], {}, repeats=([1, 1], [3])),
        lambda: figures.perplexity_by_epsilon([1], [3], {}, repeats=([0], [3])),
        lambda: figures.perplexity_by_epsilon([1], [3], {}, others={"LoRA": (8, 0)}),
        lambda: figures.perplexity_by_epsilon([1], [3], {}, others={"LoRA": (float("inf"), 2)}),
    ],
)
def test_bad_input_is_refused_with_a_typed_error(call):
    with pytest.raises(InvalidParameter):
        call()
