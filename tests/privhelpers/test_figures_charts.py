"""The charts: what stands in them, what they refuse, and that names of models cannot break them."""

import functools

import numpy as np
import pandas as pd
import pytest
from figure_checks import lightness

from privhelpers import figures, stats
from privhelpers.errors import InvalidParameter
from privhelpers.figures import _charts as charts
from privhelpers.text import in_words

HOSTILE = r"_x $\frac{1}$ <b>&amp;"
VALUES = np.array([0.9, 0.6, 0.0])
ENDS = VALUES, VALUES * 0.9, VALUES + 0.05
ROWS = ["baseline", "dp-eps-8", HOSTILE]


@functools.cache
def curve():
    generator, patients = np.random.default_rng(0), np.arange(120)
    members, controls = generator.normal(size=(2, 120))
    return stats.roc_curve(members + 1, patients, controls, patients, draws=40)


def table():
    return pd.DataFrame([[0.1, np.nan], [0.9, 0.4]], index=["a", HOSTILE], columns=["x", HOSTILE])


CHARTS = {
    "forest": lambda **more: figures.forest(ROWS, {"members": ENDS, HOSTILE: VALUES}, xlabel="area", **more),
    "bands": lambda **more: figures.bands(
        [1, 2, 3], {"members": ENDS, HOSTILE: VALUES}, xlabel="ε (nats)", ylabel="share", **more
    ),
    "bars": lambda **more: figures.bars(ROWS, {"members": ENDS, HOSTILE: VALUES}, xlabel="share", **more),
    "two_arms": lambda **more: figures.two_arms(
        VALUES, VALUES - 1, xlabel="score (nats)", labels=("members", HOSTILE), **more
    ),
    "roc": lambda **more: figures.roc({"baseline": curve(), HOSTILE: curve()}, **more),
    "heat": lambda **more: figures.heat(table(), label="share", xlabel="column", ylabel="row", **more),
}


def words(figure):
    from matplotlib.text import Text

    return [text.get_text() for text in figure.findobj(Text) if text.get_text()]


@pytest.mark.parametrize("name", CHARTS)
def test_axes_are_named_and_a_hostile_name_is_text(name):
    figure = CHARTS[name]()
    axes = figure.axes[0]
    assert axes.get_xlabel()
    assert any("_x $" in word for word in words(figure))
    assert figure._repr_png_().startswith(b"\x89PNG")


@pytest.mark.parametrize("name", ["forest", "bands", "bars"])
def test_a_control_is_hollow_and_only_a_series_can_be_one(name):
    plain, control = CHARTS[name](), CHARTS[name](controls=[HOSTILE])
    assert plain._repr_png_() != control._repr_png_()
    with pytest.raises(InvalidParameter, match="no series is called strangers"):
        CHARTS[name](controls=["strangers"])


def test_models_bring_their_own_look():
    figure = figures.forest(["baseline", "dp-eps-8"], {"area": [0.9, 0.5]}, xlabel="area")
    assert {"baseline", "ε = 8"} <= set(words(figure))


def test_series_differ_in_lightness_however_many_controls_and_models_stand_beside_them():
    names = ["a", "baseline", "b", "public", "c", "dp-eps-1", "dp-eps-8", "x", "y"]
    looks = charts._looks(names, controls=["x", "y"])
    shades = [lightness(looks[name]["color"]) for name in "abc"]
    assert min(np.diff(shades)) >= 15 and shades[-1] <= 80
    assert looks["dp-eps-1"]["marker"] != looks["dp-eps-8"]["marker"]


def test_a_forest_grows_with_its_marks_so_that_they_do_not_touch():
    series = {f"dp-eps-{epsilon + 1}": np.full(6, 0.5) for epsilon in range(8)}
    figure = figures.forest([str(row) for row in range(6)], series, xlabel="share")
    transform = figure.axes[0].transData.transform
    heights = sorted(transform((0.5, bar.lines[0].get_ydata()[0]))[1] for bar in figure.axes[0].containers)
    size = figure.axes[0].containers[0].lines[0].get_markersize() * figure.dpi / 72
    assert min(np.diff(heights)) >= size


def test_a_model_has_one_name_in_charts_and_tables():
    models = ["public", "baseline", "best_nonprivate", "dp-eps-0.5"]
    shares = pd.DataFrame(np.eye(4), index=models, columns=models)
    heat, forest = figures.heat(shares, label="s"), figures.forest(models, {"a": [0.5] * 4}, xlabel="a")
    for axis in (heat.axes[0].xaxis, heat.axes[0].yaxis, forest.axes[0].yaxis):
        assert [label.get_text() for label in axis.get_ticklabels()] == list(map(in_words, models))


def test_a_chart_can_be_drawn_into_axes_that_exist():
    host = figures.heat(table(), label="share")
    before = len(host.axes[0].lines)
    assert figures.forest(["a"], {"x": [0.5]}, xlabel="x", axes=host.axes[0]) is host
    assert len(host.axes[0].lines) > before


@pytest.mark.parametrize("count, length", [(4, 6), (4, 24), (7, 12), (9, 12), (3, 48)])
def test_a_legend_stays_within_the_figure(count, length):
    names = [f"{place}".ljust(length, "x") for place in range(count)]
    figure = figures.bands([1, 2], {name: [1, 2] for name in names}, xlabel="x", ylabel="y")
    (legend,) = figure.legends
    assert legend.get_window_extent().width <= figure.bbox.width


def ticks(axis):
    low, high = axis.get_view_interval()
    return [float(f"{tick:.6g}") for tick in axis.get_majorticklocs() if low <= tick <= high]


def test_a_logarithmic_axis_of_few_places_has_its_ticks_there():
    doubling = figures.bands([1, 2, 4, 8], {"a": [1, 2, 3, 4]}, xlabel="x", ylabel="y", log_x=True)
    assert ticks(doubling.axes[0].xaxis) == [1, 2, 4, 8]
    close = [10, 10.5, 11, 1000]
    thinned = figures.bands(close, {"a": [1, 2, 3, 4]}, xlabel="x", ylabel="y", log_x=True)
    assert ticks(thinned.axes[0].xaxis) == [10, 1000]
    odd = np.geomspace(0.6, 6, 9)  # labels of three digits would not say where the ticks stand
    figure = figures.bands(odd, {"a": odd}, xlabel="x", ylabel="y", log_x=True)
    assert ticks(figure.axes[0].xaxis) == [1, 2, 5]


@pytest.mark.parametrize("low, high", [(5.1, 5.9), (11, 19), (2, 9), (11, 90), (0.02, 1.5), (1, 1e6)])
def test_a_logarithmic_axis_always_has_three_ticks_or_more(low, high):
    places = np.geomspace(low, high, 40)
    figure = figures.bands(places, {"a": places}, xlabel="x", ylabel="y", log_x=True, log_y=True)
    assert all(3 <= len(ticks(axis)) <= 9 for axis in (figure.axes[0].xaxis, figure.axes[0].yaxis))


def test_a_table_of_zeros_has_no_scale_below_zero():
    figure = figures.heat(pd.DataFrame([[0.0, 0.0]]), label="share")
    assert figure.axes[0].images[0].get_clim() == (0, 1)


def test_a_zero_is_drawn_as_a_point():
    figure = figures.bars(["a", "b"], {"x": [0.0, 0.5]}, xlabel="share")
    points = [line for line in figure.axes[0].lines if line.get_marker() not in ("", "None", None)]
    assert [list(line.get_xdata()) for line in points] == [[0.0]]


@pytest.mark.parametrize("stacked", [False, True])
def test_a_zero_has_no_bar_and_the_legend_keeps_its_edge(stacked):
    parts = {"x": [0.0, 0.5], "y": [0.3, 0.2]}
    figure = figures.bars(["a", "b"], parts, xlabel="share", stacked=stacked, controls=["x"])
    assert all(bool(bar.get_linewidth()) == bool(bar.get_width()) for bar in figure.axes[0].patches)
    assert all(box.get_linewidth() for box in figure.legends[0].get_patches())


def test_stacked_bars_stand_behind_one_another():
    figure = figures.bars(["a"], {"x": [0.2], "y": [0.3]}, xlabel="share", stacked=True)
    assert sorted(round(patch.get_x(), 3) for patch in figure.axes[0].patches) == [0, 0.2]


@pytest.mark.parametrize(
    "draw",
    [
        lambda: figures.forest(["a"], {}, xlabel="x"),
        lambda: figures.forest(["a"], {"x": [1, 2]}, xlabel="x"),
        lambda: figures.bands([1], {"x": ([1], [2], [3])}, xlabel="x", ylabel="y"),
        lambda: figures.bands([1, 2], {"x": [float("nan"), 1]}, xlabel="x", ylabel="y"),
        lambda: figures.bars(["a"], {"x": [-1]}, xlabel="x", stacked=True),
        lambda: figures.two_arms([], [1], xlabel="x"),
        lambda: figures.roc({}),
        lambda: figures.heat(pd.DataFrame(), label="x"),
        lambda: figures.trade_off(["a", "a"], [1, 2], [0.5, 0.6], xlabel="x", ylabel="y"),
        lambda: figures.trade_off(["a"], [1], ([0.5], [0.6], [0.7]), xlabel="x", ylabel="y"),
        lambda: figures.trade_off(["a"], [1], [0.5, 0.6], xlabel="x", ylabel="y"),
        lambda: figures.trade_off(["a"], [0.0], [0.5], xlabel="x", ylabel="y"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw):
    with pytest.raises(InvalidParameter):
        draw()
