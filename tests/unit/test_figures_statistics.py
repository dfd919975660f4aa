"""Leak rates of all models beside their controls, and utility against leakage."""

import figure_checks
import pandas as pd
import pytest

from privhelpers import figures
from privhelpers.errors import InvalidParameter

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


def bars(models=MODELS, measures=("notes finished", "diagnoses guessed", "canaries extracted")):
    rows = [
        {"measure": m, "model": name, "arm": arm, "rate": 0.1, "low": 0.0 if k else 0.05, "high": 0.9}
        for m in measures
        for k, name in enumerate(models)
        for arm in ("member", "control")
    ]
    return pd.DataFrame(rows)


MAKERS = {
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


def test_a_bar_without_its_control_is_refused():
    with pytest.raises(InvalidParameter):
        figures.leakage_bars(bars().iloc[:-1])
