"""The pictures of gradient inversion: what they show, in the style of the book, and what they refuse."""

import figure_checks
import numpy as np
import pytest

from privhelpers import figures
from privhelpers.errors import InvalidParameter
from privhelpers.stats import Interval

HOSTILE = r"_x $\frac{1}$ <b>&amp;"  # unbalanced TeX, markup, and a first letter that legends drop
NOISE = np.array([1e-4, 1e-2, 1.0])


def intervals(*rates):
    return [Interval(r, max(0, r - 0.1), min(1, r + 0.1), 0.95, "test") for r in rates]


def at(places, *rates):
    return dict(zip(places, intervals(*rates), strict=True))


def by_noise(**changes):
    given = {
        "attacks": {"span check": at(NOISE, 1.0, 0.2, 0.0), HOSTILE: at(NOISE[1:], 0.8, 0.1)},
        "controls": {"noise alone": at(NOISE[::2], 0.01, 0.0)},
        "ceiling": (NOISE, [1.0, 1.0, 0.2]),
        "marks": {"ε = 8": 0.5},
        "what": "tokens read",
        "xlabel": "σ",
    }
    return figures.recovery(**{**given, **changes})


def by_batch(**changes):
    sizes = (1, 2, 4)
    given = {
        "attacks": {f"width {w}": at(sizes, 1.0, 0.1, 0.0) for w in (64, 96)} | {HOSTILE: at(sizes, 1, 1, 0)},
        "controls": {"another batch": at(sizes, 0.05, 0.04, 0.03)},
        "what": "tokens read",
        "xlabel": "notes (count)",
    }
    return figures.recovery(**{**given, **changes})


def strip(**changes):
    shades = [np.full((8, 6), shade) for shade in (0.0, 0.5, 1.0)]
    given = {
        "rows": {"first": shades, HOSTILE: shades[::-1]},
        "columns": ["start", "end", "original"],
        "notes": [["0.5", "0.1", ""], ["0.4", HOSTILE, ""]],
        "xlabel": "iterations",
        "ylabel": "picture",
    }
    return figures.pictures(**{**given, **changes})


MAKERS = {"by noise": by_noise, "by batch": by_batch}


@pytest.mark.parametrize("make", [*MAKERS.values(), strip])
def test_a_figure_of_the_book(make):
    figure_checks.check(make, shows=HOSTILE)


def test_pictures_stand_in_their_rows_and_columns_dark_for_one():
    (axes,) = strip().axes
    shown = [(*image.get_extent()[::3], image.to_rgba(image.get_array())[0, 0, 0]) for image in axes.images]
    lefts, tops, lights = zip(*sorted(shown), strict=True)
    assert len({*lefts}) == 3 and len({*tops}) == 2
    assert lights == pytest.approx((1, 0, 0.5, 0.5, 0, 1), abs=0.1)


@pytest.mark.parametrize("name", MAKERS)
def test_lines_differ_without_color(name):
    (axes,) = MAKERS[name]().axes
    unnamed = ("_child", "_nolegend_")
    named = [line for line in axes.lines if not str(line.get_label()).startswith(unnamed)]
    looks = {(str(line._dash_pattern), line.get_marker(), line.get_linewidth()) for line in named}
    assert len(looks) == len(named) >= 3


def test_rates_and_ceiling_are_drawn_where_they_are():
    (axes,) = by_noise().axes
    lines = {line.get_label().lstrip("\ufdd0"): np.column_stack(line.get_data()) for line in axes.lines}
    assert lines["span check"] == pytest.approx(np.column_stack([NOISE, [1.0, 0.2, 0.0]]))
    assert lines["ceiling by differential privacy"][:, 1] == pytest.approx([1.0, 1.0, 0.2])
    assert lines["noise alone"] == pytest.approx(np.array([[1e-4, 0.01], [1.0, 0.0]]))


@pytest.mark.parametrize(
    "call",
    [
        lambda: by_noise(ceiling=(NOISE, [1.0])),
        lambda: by_noise(ceiling=([0.0, 1.0], [1.0, 1.0])),
        lambda: by_noise(attacks={}),
        lambda: by_noise(attacks={"a": {}}),
        lambda: by_noise(attacks={"a": at([0.0], 1.0)}),
        lambda: by_noise(controls={"a": {1.0: Interval(0.5, 0.6, 0.7, 0.95, "test")}}),
        lambda: by_batch(attacks={"a": at([-1], 1.0)}),
        lambda: by_batch(controls={}),
        lambda: strip(rows={}),
        lambda: strip(rows={"a": [np.zeros((8, 8))] * 2, "b": [np.zeros((8, 8))] * 3}),
        lambda: strip(rows={"a": [np.zeros((8, 8)), np.zeros((8, 8)), np.zeros((4, 4))]}),
        lambda: strip(notes=[["", "", ""]]),
    ],
)
def test_bad_input_is_refused_with_a_typed_error(call):
    with pytest.raises(InvalidParameter):
        call()
