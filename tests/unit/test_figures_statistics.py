"""The pictures of certainty, and the four figures of all models."""

import figure_checks
import numpy as np
import pandas as pd
import pytest

from privhelpers import figures, stats
from privhelpers.errors import InvalidParameter
from privhelpers.stats import Equivalence

HOSTILE = r"_x $\frac{1}$ <b>&amp;"  # unbalanced TeX, markup, and a first letter that legends drop
MODELS = [
    "public",
    "baseline",
    "best_nonprivate",
    "dp-eps-0.5",
    "dp-eps-1",
    "dp-eps-4",
    "dp-eps-8",
    "dp-eps-10",
]
RATES = np.geomspace(0.01, 0.5, 30)


def outcome(difference, error, margin=0.05):
    return stats.tost(stats.Estimate(difference, error, 500, 501), margin=margin)


def bars(models=MODELS, measures=("notes finished", "diagnoses guessed", "canaries extracted")):
    rows = [
        {"measure": m, "model": name, "arm": arm, "rate": 0.1, "low": 0.0 if k else 0.05, "high": 0.9}
        for m in measures
        for k, name in enumerate(models)
        for arm in ("member", "control")
    ]
    return pd.DataFrame(rows)


MAKERS = {
    "coverage_by_rate": lambda: figures.coverage_by_rate(
        RATES, {"Wald": RATES, HOSTILE: 1 - RATES, "third": np.full(30, 0.95)}
    ),
    "coverage_by_clusters": lambda: figures.coverage_by_clusters(
        [10, 30, 100, 300],
        {
            f"correlation {r:g}": {"plain": [0.8, 0.5, 0.4, r], HOSTILE: [0.9, 0.94, 0.95, 1.0]}
            for r in (0.3, 0.6)
        },
        data_sets=500,
    ),
    "false_alarms_by_tests": lambda: figures.false_alarms_by_tests(
        [1, 2, 5, 50], {"none": [0.05, 0.1, 0.2, 0.9], HOSTILE: [0.05, 0.05, 0.04, 0.05]}, simulations=1000
    ),
    "equivalence_intervals": lambda: figures.equivalence_intervals(
        {HOSTILE: outcome(0.01, 0.01), "20 patients, nothing leaks": outcome(0.0, 0.1)}, margin=0.05
    ),
    "patients_needed": lambda: figures.patients_needed(
        [0, 0.5, 1], {"an AUC is within 0.02 of 0.5": [1000, 2000, 3500], HOSTILE: [80, 100, 250]}
    ),
    "leakage_by_epsilon": lambda: figures.leakage_by_epsilon(
        [0.5, 1, 4, 8, 10],
        {"AUC, loss": ([0.5] * 5, [0.45] * 5, [0.55] * 5), HOSTILE: ([0.6] * 5, [0.55] * 5, [0.65] * 5)},
        {"public": (0.48, 0.46, 0.5), "baseline": (0.96, 0.95, 0.97), "best_nonprivate": (0.6, 0.58, 0.62)},
    ),
    "leakage_bars": lambda: figures.leakage_bars(bars([*MODELS, HOSTILE])),
    "trade_off": lambda: figures.trade_off(
        [22.0, 2.4, 3.0],
        [0.48, 0.96, 0.53],
        ["public", "baseline", HOSTILE],
        [0.46, 0.95, 0.51],
        [0.5, 0.97, 0.55],
        perplexity_ends=([21.0, 2.3, 2.9], [23.0, 2.5, 3.1]),
        control=(0.46, 0.5),
    ),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_figure_of_the_book(name):
    figure_checks.check(MAKERS[name], shows=HOSTILE)


def test_every_panel_shows_every_point():
    figure = MAKERS["coverage_by_clusters"]()
    assert len(figure.axes) == 2
    for axes in figure.axes:
        low, high = axes.get_ylim()
        heights = np.concatenate([line.get_ydata() for line in axes.lines])
        assert low <= heights.min() and heights.max() <= high


def test_filled_points_are_the_equivalent_ones():
    axes = MAKERS["equivalence_intervals"]().axes[0]
    points = [line for line in axes.lines if line.get_marker() == "o"]
    assert [line.get_markerfacecolor() != "white" for line in points] == [True, False]


def test_verdicts_stand_beside_their_interval():
    figure = MAKERS["equivalence_intervals"]()
    shown = [text.get_text() for axes in figure.axes[0].child_axes for text in axes.get_yticklabels()]
    assert shown == ["equivalent", "undecided"]


def test_every_bar_has_its_control():
    figure = MAKERS["leakage_bars"]()
    assert len(figure.axes) == 3
    for axes in figure.axes:
        hatched = [bar for bar in axes.patches if bar.get_hatch()]
        assert len(hatched) == len(axes.patches) / 2 == len(MODELS) + 1


def test_the_control_band_of_the_trade_off_is_where_it_was_measured():
    axes = MAKERS["trade_off"]().axes[0]
    (band,) = [patch for patch in axes.patches if patch.get_hatch()]
    box = band.get_extents().transformed(axes.transData.inverted())
    assert (box.y0, box.y1) == pytest.approx((0.46, 0.5))


@pytest.mark.parametrize(
    "call",
    [
        lambda: figures.coverage_by_rate(RATES, {}),
        lambda: figures.coverage_by_rate(RATES, {"a": [0.5]}),
        lambda: figures.coverage_by_rate(RATES, {"a": RATES + 1}),
        lambda: figures.coverage_by_clusters([1, 2], {}, data_sets=10),
        lambda: figures.coverage_by_clusters([1], {"a": {"x": [0.5]}, "b": {"y": [0.5]}}, data_sets=10),
        lambda: figures.false_alarms_by_tests([1, 2], {"a": [0.5]}, simulations=10),
        lambda: figures.equivalence_intervals({}, margin=0.1),
        lambda: figures.equivalence_intervals({"a": outcome(0.0, 0.1)}, margin=0),
        lambda: figures.equivalence_intervals(
            {"a": Equivalence(0.5, 0.6, 0.7, 0.1, 0.5, 0.5, 0.05)}, margin=0.1
        ),
        lambda: figures.patients_needed([0, 1], {"a": [1, 0]}),
        lambda: figures.leakage_by_epsilon([0.0], {"a": ([0.5], [0.4], [0.6])}, {}),
        lambda: figures.leakage_by_epsilon([1.0], {"a": ([0.5], [0.6], [0.6])}, {}),
        lambda: figures.leakage_bars(bars().iloc[:-1]),
    ],
)
def test_what_cannot_be_drawn_is_refused(call):
    with pytest.raises(InvalidParameter):
        call()
