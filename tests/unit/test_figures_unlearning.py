"""The pictures of unlearning and of the factorial: what they show, and that nothing is lost."""

import figure_checks
import pytest

from privhelpers import figures
from privhelpers.errors import InvalidParameter

HOSTILE = r"_x $\frac{1}$ <b>&amp;"
STEPS = [0, 5, 10, 20]
AREAS = {
    "ascent": (STEPS, [0.9, 0.7, 0.3, 0.1], [0.85, 0.6, 0.2, 0.05], [0.95, 0.8, 0.4, 0.2]),
    HOSTILE: (STEPS, [0.9, 0.8, 0.6, 0.5], [0.8, 0.7, 0.5, 0.4], [1, 0.9, 0.7, 0.6]),
}
PATHS = {"ascent": (STEPS, [3, 3.5, 30, 900]), HOSTILE: (STEPS, [3, 3, 3.1, 3.4])}
MODELS = ["original", HOSTILE, "retrained"]
NAMES = ["scrub", HOSTILE, "scrub x DP"]
TRIPLE = ([0.2, -0.3, 0.0], [0.1, -0.4, -0.1], [0.3, -0.2, 0.1])
CELLS = [f"cell {number}" for number in range(7)] + [HOSTILE]
MAKERS = {
    "ascent_path": lambda: figures.ascent_path(AREAS, PATHS, standard=3.2),
    "forgetting_verdicts": lambda: figures.forgetting_verdicts(
        MODELS,
        {"loss": ([0.9, 0.2, 0.5], [0.8, 0.1, 0.4], [0.95, 0.3, 0.6]), HOSTILE: ([0.9] * 3,) * 3},
    ),
    "shard_costs": lambda: figures.shard_costs(
        [1, 10, 100], {"4 shards": [0.25, 0.94, 1], HOSTILE: [0.1, 0.6, 1]}, (50, 1.0)
    ),
    "layer_effects": lambda: figures.layer_effects(
        NAMES, {"AUC": TRIPLE, HOSTILE[:8]: TRIPLE, "bits": TRIPLE}
    ),
    "layers_tradeoff": lambda: figures.layers_tradeoff(
        CELLS, range(2, 10), [0.6] * 8, [0.5] * 8, [0.7] * 8, [False, True] * 4, public=(25, 0.5)
    ),
    "filter_costs": lambda: figures.filter_costs(
        [4, 6, 8],
        {"recalled": ([1, 1, 0.9], [0.9, 0.9, 0.8], [1, 1, 1]), HOSTILE: ([0.1] * 3, [0] * 3, [0.2] * 3)},
    ),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_figure_of_the_book(name):
    figure_checks.check(MAKERS[name], shows=None if name == "layer_effects" else HOSTILE)


def test_the_path_stands_at_its_values_and_chance_is_drawn():
    left, right = MAKERS["ascent_path"]().axes
    assert list(left.lines[0].get_ydata()) == AREAS["ascent"][1]
    assert list(left.lines[-1].get_ydata()) == [0.5, 0.5]
    assert list(right.lines[-1].get_ydata()) == [3.2, 3.2]
    assert right.get_yscale() == "log"


def test_a_collapse_over_many_powers_of_ten_keeps_its_ticks_apart():
    paths = PATHS | {"ascent": (STEPS, [2, 3, 3e3, 4e8])}
    figure_checks.check(lambda: figures.ascent_path(AREAS, paths, standard=2.2))


def test_the_first_model_is_on_top_and_the_null_is_drawn():
    (axes,) = MAKERS["forgetting_verdicts"]().axes
    low, high = axes.get_ylim()
    assert low > high
    assert [text.get_text() for text in axes.get_yticklabels()] == MODELS


def test_only_an_effect_away_from_zero_is_filled():
    axes = MAKERS["layer_effects"]().axes[0]
    filled = [
        line for line in axes.lines if line.get_marker() == "o" and line.get_markerfacecolor() != "white"
    ]
    assert sorted(x for line in filled for x in line.get_xdata()) == [-0.3, 0.2]


def test_private_cells_are_hollow():
    (axes,) = MAKERS["layers_tradeoff"]().axes
    points = [line for line in axes.lines if len(line.get_xdata()) == 1 and line.get_marker() not in "_|"]
    hollow = {line.get_xdata()[0] for line in points if line.get_markerfacecolor() == "white"}
    assert hollow == {3, 5, 7, 9}


@pytest.mark.parametrize(
    "call",
    [
        lambda: figures.ascent_path(AREAS, {"ascent": PATHS["ascent"]}, standard=3),
        lambda: figures.ascent_path({"a": ([0], [0.5], [0.6], [0.7])}, {"a": ([0], [1])}, standard=3),
        lambda: figures.ascent_path({"a": ([0], [0.5], [0.4], [0.7])}, {"a": ([0], [0])}, standard=3),
        lambda: figures.forgetting_verdicts(["a", "a"], {"x": ([0.5] * 2,) * 3}),
        lambda: figures.forgetting_verdicts(["a"], {}),
        lambda: figures.forgetting_verdicts(["a"], {"x": ([0.5, 0.4],) * 3}),
        lambda: figures.shard_costs([0, 1], {"a": [0, 1]}),
        lambda: figures.shard_costs([1], {}),
        lambda: figures.layer_effects(["a"], {}),
        lambda: figures.layer_effects(["a"], {"x": ([0.5], [0.6], [0.7])}),
        lambda: figures.layers_tradeoff(["a"], [0], [0.5], [0.5], [0.5], [True], public=(1, 0.5)),
        lambda: figures.layers_tradeoff(["a", "b"], [1], [0.5], [0.5], [0.5], [True], public=(1, 0.5)),
        lambda: figures.filter_costs([1], {}),
        lambda: figures.filter_costs([1, 2], {"a": ([1], [1], [1])}),
    ],
)
def test_bad_input_is_refused_with_a_typed_error(call):
    with pytest.raises(InvalidParameter):
        call()
