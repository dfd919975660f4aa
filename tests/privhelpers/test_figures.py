"""The charts: the style of the book, what they show, what they refuse, and text that cannot break them."""

import functools

import figure_checks
import numpy as np
import pandas as pd
import pytest

from privhelpers import figures, stats
from privhelpers.errors import InvalidParameter
from privhelpers.stats import Interval

# Unbalanced TeX: the math parser would raise on it, HTML would vanish, a leading _ would leave the legend.
HOSTILE = r"_x $\frac{1}$ <b>&amp;"
SHOWN = f" {HOSTILE}"
MODELS = ["public", "baseline", "best_nonprivate", "dp-eps-0.5", "dp-eps-1", "dp-eps-8", "dp-eps-10", HOSTILE]
VALUES = np.array([0.9, 0.6, 0.0])
SERIES = {"members": (VALUES, VALUES * 0.9, VALUES + 0.05), HOSTILE: VALUES}
ROWS = ["baseline", "dp-eps-8", HOSTILE]
NOISE = np.array([1e-4, 1e-2, 1.0])


@functools.cache
def curve(shift):
    generator = np.random.default_rng(0)
    scores, labels = generator.normal(size=(2, 120)), np.arange(120)
    return stats.roc_curve(scores[0] + shift, labels, scores[1], labels, draws=40)


def trade_off(names=MODELS, **changes):
    areas = np.linspace(0.5, 0.9, 8)
    given = {
        "costs": np.linspace(2, 30, 8),
        "gains": (areas, areas - 0.05, areas + 0.05),
        "xlabel": "perplexity",
        "ylabel": "area",
    }
    return figures.trade_off(names, **given | changes)


def at(places, *rates):
    ends = [Interval(r, max(0, r - 0.1), min(1, r + 0.1), 0.95, "test") for r in rates]
    return dict(zip(places, ends, strict=True))


def by_noise(**changes):
    given = {
        "attacks": {"span check": at(NOISE, 1.0, 0.2, 0.0), HOSTILE: at(NOISE[1:], 0.8, 0.1)},
        "controls": {"noise alone": at(NOISE[::2], 0.01, 0.0)},
        "ceiling": (NOISE, [1.0, 1.0, 0.2]),
        "marks": {"ε = 8": 0.5},
        "what": "tokens read",
        "xlabel": "σ",
    }
    return figures.recovery(**given | changes)


def by_batch():
    sizes = (1, 2, 4)
    attacks = {f"width {w}": at(sizes, 1.0, 0.1, 0.0) for w in (64, 96)} | {HOSTILE: at(sizes, 1, 1, 0)}
    controls = {"another batch": at(sizes, 0.05, 0.04, 0.03)}
    return figures.recovery(attacks, controls, what="tokens read", xlabel="notes (count)")


def bands(series, x=(1, 2, 3), **more):
    return figures.bands(x, series, **{"xlabel": "ε (nats)", "ylabel": "share"} | more)


OF_THE_BOOK = {
    "bands": lambda: bands(SERIES, reference=0.5, percent=True),
    "bars": lambda: figures.bars(ROWS, SERIES, xlabel="share", ylabel="models", percent=True),
    "by batch": by_batch,
    "by noise": by_noise,
    "forest": lambda: figures.forest(
        ROWS, SERIES, xlabel="area", ylabel="models", band=(0.4, 0.5), log=False
    ),
    "forest of models": lambda: figures.forest(
        ROWS, {"area": VALUES}, xlabel="area", ylabel="m", percent=True
    ),
    "roc": lambda: figures.roc({"baseline": curve(1.0), HOSTILE: curve(0.0)}),
    "trade-off": lambda: trade_off(hollow=MODELS[3:], reference=0.5, control=(0.45, 0.55)),
    "two arms": lambda: figures.two_arms(
        VALUES, VALUES - 1, xlabel="score", labels=(HOSTILE, "b"), threshold=0.5
    ),
}


@pytest.mark.parametrize("name", OF_THE_BOOK)
def test_a_figure_of_the_book(name):
    figure_checks.check(OF_THE_BOOK[name], shows=f"{SHOWN} (n = 3)" if name == "two arms" else SHOWN)


# Places.


def ticks(axis):
    low, high = axis.get_view_interval()
    return [float(f"{tick:.6g}") for tick in axis.get_majorticklocs() if low <= tick <= high]


@pytest.mark.parametrize("low, high", [(5.1, 5.9), (11, 19), (2, 9), (11, 90), (0.02, 1.5), (1, 1e6)])
def test_a_logarithmic_axis_always_has_three_ticks_or_more(low, high):
    places = np.geomspace(low, high, 40)
    (axes,) = bands({"a": places}, places, log_x=True, log_y=True, markers=False).axes
    assert all(3 <= len(ticks(axis)) <= 9 for axis in (axes.xaxis, axes.yaxis))


@pytest.mark.parametrize(
    "draw",
    [
        lambda: figures.forest(["a"], {}, xlabel="x"),
        lambda: figures.forest(["a"], {"x": [1, 2]}, xlabel="x"),
        lambda: bands({"x": ([1], [2], [3])}, [1]),
        lambda: bands({"x": [float("nan"), 1]}, [1, 2]),
        lambda: figures.bars(["a"], {"x": [-1]}, xlabel="x", stacked=True),
        lambda: figures.two_arms([], [1], xlabel="x"),
        lambda: figures.roc({}),
        lambda: figures.heat(pd.DataFrame(), label="x"),
        lambda: trade_off(["a", "a"]),
        lambda: trade_off(["a"], costs=[0.0], gains=[0.5]),
        lambda: by_noise(ceiling=([0.0, 1.0], [1.0, 1.0])),
        lambda: by_noise(attacks={"a": {}}),
        lambda: by_noise(controls={"a": {1.0: Interval(0.5, 0.6, 0.7, 0.95, "test")}}),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw):
    with pytest.raises(InvalidParameter):
        draw()


@pytest.mark.parametrize(
    "draw",
    [
        lambda controls: figures.forest(ROWS, SERIES, xlabel="area", controls=controls),
        lambda controls: bands(SERIES, controls=controls),
        lambda controls: figures.bars(ROWS, SERIES, xlabel="share", controls=controls),
        lambda controls: figures.roc({HOSTILE: curve(0.0)}, controls=controls),
    ],
)
def test_a_control_is_hollow_and_must_be_a_series(draw):
    assert draw([])._repr_png_() != draw([HOSTILE])._repr_png_()
    with pytest.raises(InvalidParameter, match="no series is called strangers"):
        draw(["strangers"])


@pytest.mark.parametrize(
    "places, shown",
    [
        ([1, 2, 4, 8], [1, 2, 4, 8]),
        ([10, 10.5, 11, 1000], [10, 1000]),
        (np.geomspace(0.6, 6, 9), [1, 2, 5]),  # labels of three digits would not say where the ticks are
    ],
)
def test_a_logarithmic_axis_of_few_places_has_its_ticks_there(places, shown):
    assert ticks(bands({"a": places}, places, log_x=True).axes[0].xaxis) == shown


def test_a_table_of_shares_and_a_chart_within_another_are_drawn():
    shares = pd.DataFrame([[0.0, np.nan], [0.0, 0.0]], index=["a", HOSTILE], columns=["x", "y"])
    axes = figures.heat(shares, label="share").axes[0]
    assert axes.collections[0].get_clim() == (0, 1)
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", SHOWN]
    host = bands(SERIES)
    before = len(host.axes[0].lines)
    assert figures.forest(["a"], {"x": [0.5]}, xlabel="x", log=True, axes=host.axes[0]) is host
    assert len(host.axes[0].lines) > before
