"""The pictures of anonymized tables: complete, readable, in one style, and refusing what they cannot draw."""

import io

import figure_checks
import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from privhelpers import anonymity, figures
from privhelpers.anonymity import tables
from privhelpers.errors import InvalidParameter

# Unbalanced TeX: the math parser would raise on it.
HOSTILE = r"$\frac{1} <b>"
QUASI = ["age", "gender", "zip_code", "nationality"]


def report():
    return anonymity.class_report(tables.four_anonymous(), QUASI, "condition")


def shares():
    columns = ["people_per_class", "unique", "unique_low", "unique_high", "small", "small_low", "small_high"]
    rows = [[0.4, 0.69, 0.68, 0.7, 1, 0.99, 1], [4, 0.01, 0.0, 0.02, 0.4, 0.38, 0.42], [90, 0, 0, 0, 0, 0, 0]]
    return pd.DataFrame(rows, columns=columns, index=["date, sex, area", "date", HOSTILE])


def beliefs():
    rows = [[0.4, 1.0, np.nan], [0.2, 0.5, 0.9]]
    return pd.DataFrame(rows, columns=["before", "table", "after"], index=["homogeneity", HOSTILE])


MAKERS = {
    "class_measures": lambda: figures.class_measures({"4-anonymous": report(), HOSTILE: report().iloc[:2]}),
    "small_class_shares": lambda: figures.small_class_shares(shares(), below=5),
    "attack_beliefs": lambda: figures.attack_beliefs(beliefs()),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_figure_of_the_book(name):
    figure_checks.check(MAKERS[name], shows=HOSTILE)


def test_every_class_of_every_release_has_a_bar_of_its_height():
    figure = MAKERS["class_measures"]()
    for axes, column in zip(figure.axes, ("size", "distinct_l", "t"), strict=True):
        heights = [bar.get_height() for box in axes.containers for bar in getattr(box, "patches", [])]
        expected = [*report()[column], *report()[column].iloc[:2]]
        assert heights == pytest.approx(expected)
    hatches = {bar.get_hatch() for bar in figure.axes[0].patches}
    assert len(hatches) == 2  # told apart in grey


def test_measured_shares_stand_on_their_place_and_carry_their_range():
    axes = MAKERS["small_class_shares"]().axes[0]
    found = {tuple(np.round(line.get_ydata(), 6)) for line in axes.lines if len(line.get_xdata()) == 3}
    assert {tuple(shares()["unique"]), tuple(shares()["small"])} <= found
    assert sum(isinstance(box, mpl.container.ErrorbarContainer) for box in axes.containers) == 2


def test_curves_are_the_poisson_shares():
    axes = MAKERS["small_class_shares"]().axes[0]
    alone = next(line for line in axes.lines if len(line.get_xdata()) == 300)
    assert np.allclose(alone.get_ydata(), np.exp(-alone.get_xdata()))


def test_a_missing_belief_is_not_drawn():
    figure = MAKERS["attack_beliefs"]()
    after = [line for line in figure.axes[0].lines if "further" in str(line.get_label())]
    assert np.isfinite(after[0].get_xdata()).tolist() == [False, True]
    markers = {line.get_marker() for line in figure.axes[0].lines}
    assert len(markers) == 3


def test_labels_of_nearby_releases_stay_apart_in_their_names():
    near = shares().assign(people_per_class=[1.1, 2.2, 4.4])
    figure = figures.small_class_shares(near, below=3)
    figure.savefig(io.BytesIO(), format="png")
    names = [text for text in figure.axes[0].texts if text.get_text() in near.index]
    starts = sorted(text.get_window_extent().x0 for text in names)
    assert len(names) == 3 and min(np.diff(starts)) > 20


@pytest.mark.parametrize(
    "call",
    [
        lambda: figures.class_measures({}),
        lambda: figures.class_measures({str(n): report() for n in range(5)}),
        lambda: figures.class_measures({"a": report().drop(columns="t")}),
        lambda: figures.small_class_shares(shares().drop(columns="unique_low"), below=5),
        lambda: figures.small_class_shares(shares(), below=1),
        lambda: figures.small_class_shares(shares().assign(people_per_class=0), below=5),
        lambda: figures.small_class_shares(shares().assign(small_low=1, small_high=0), below=5),
        lambda: figures.small_class_shares(shares().set_axis(["a", "a", "b"]), below=5),
        lambda: figures.attack_beliefs(beliefs().iloc[:0]),
        lambda: figures.attack_beliefs(beliefs().assign(table=np.nan)),
        lambda: figures.attack_beliefs(beliefs().assign(after=1.1)),
    ],
)
def test_bad_input_is_refused_with_a_typed_error(call):
    with pytest.raises(InvalidParameter):
        call()
