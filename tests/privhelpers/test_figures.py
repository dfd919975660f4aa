import functools
import os
import re
from itertools import pairwise
from pathlib import Path

import figure_checks
import matplotlib as mpl
import numpy as np
import pytest
from figure_checks import lightness

from bookmaker.runner.run import environment
from privhelpers import figures, stats
from privhelpers.figures import _style as style

# Unbalanced TeX: the math parser would raise on it, HTML would vanish, a leading _ would leave the legend.
HOSTILE = r"_x $\frac{1}$ <b>&amp;"
BOOK_CSS = Path(__file__).parents[2] / "book" / "_static" / "book.css"
MODELS = ["public", "baseline", "best_nonprivate", "dp-eps-0.5", "dp-eps-1", "dp-eps-8", "dp-eps-10", HOSTILE]


@functools.cache
def curve(shift):
    generator = np.random.default_rng(0)
    scores, labels = generator.normal(size=(2, 120)), np.arange(120)
    return stats.roc_curve(scores[0] + shift, labels, scores[1], labels, draws=40)


AREAS, LOWS, HIGHS = np.linspace(0.5, 0.9, 8), np.linspace(0.45, 0.85, 8), np.linspace(0.55, 0.95, 8)
WORDS = {"xlabel": "perplexity", "ylabel": "area"}


def trade_off(names=MODELS, costs=None, gains=(AREAS, LOWS, HIGHS), **more):
    costs = np.linspace(2, 30, len(names)) if costs is None else costs
    return figures.trade_off(names, costs, gains, **WORDS, **more)


MAKERS = {
    "bands": lambda: figures.bands(
        [1, 2, 3], {HOSTILE: [3, 2.5, 2.6]}, xlabel="epoch", ylabel="loss", reference=2.5
    ),
    "roc": lambda: figures.roc({"baseline": curve(1.0), HOSTILE: curve(0.0)}),
    "trade_off": lambda: trade_off(hollow=MODELS[3:], reference=0.5, control=(0.45, 0.55)),
}
SHOWS_MODEL_TEXT = {"roc", "trade_off"}


@pytest.mark.parametrize("name", MAKERS)
def test_a_figure_of_the_book(name):
    figure_checks.check(MAKERS[name], shows=HOSTILE if name in SHOWS_MODEL_TEXT else None)


def test_a_figure_shows_itself_without_pyplot_and_twice_alike():
    first, again = (MAKERS["bands"]()._repr_png_() for _ in range(2))
    assert first[:8] == b"\x89PNG\r\n\x1a\n" and first == again


def test_mechanisms_differ_in_grey():
    values = sorted(lightness(color) for color in (style.NON_PRIVATE, style.DP, style.ATTACK, style.PUBLIC))
    assert min(np.diff(values)) >= 10
    assert values[-1] <= 80  # still visible on white


def on_a_dark_page(color):
    """What `book.css` makes of a color: turned over, hues kept, brighter."""
    rule = re.search(r"invert\(1\) hue-rotate\(180deg\) brightness\(([0-9.]+)\)", BOOK_CSS.read_text())
    weights = np.array([0.213, 0.715, 0.072])  # of the filter's own luminance
    turned = 1 - np.array(mpl.colors.to_rgb(color))
    return np.clip(np.clip(2 * weights @ turned - turned, 0, 1) * float(rule[1]), 0, 1)


def test_series_and_models_differ_on_a_dark_page():
    for colors in (
        *(style.series_colors(count) for count in (2, 3, 4)),
        [look["color"] for look in style.model_looks(["public", "best_nonprivate", "baseline"]).values()],
    ):
        light, dark = ([mpl.colors.to_rgb(c) for c in colors], [on_a_dark_page(c) for c in colors])
        for seen in (light, dark):
            assert min(np.linalg.norm(np.subtract(a, b)) for a, b in pairwise(seen)) > 0.2, colors
        assert min(map(max, dark)) > 0.35, "seen on black"


def test_blue_darkens_with_epsilon():
    values = [lightness(style.dp_color(epsilon)) for epsilon in (0.25, 0.5, 1, 4, 8, 16)]
    assert all(np.diff(values) < -4) and values[0] <= 80
    assert style.dp_color(1000) == style.dp_color(16)


def test_models_differ_by_marker_where_colors_are_close():
    looks = style.model_looks(MODELS)
    assert len({look["marker"] for look in looks.values()}) == len(MODELS)
    assert looks["dp-eps-8"]["label"] == "ε = 8" and looks[HOSTILE]["label"] == HOSTILE
    assert looks["dp-eps-8"]["color"] == style.dp_color(8)


def test_control_characters_become_visible_escapes():
    assert style.literal("a\u202eb\x1b[31m\n") == "a\\u202eb\\x1b[31m\\n"
    assert len(style.literal("x" * 500)) == 48


def test_uncertainty_is_drawn():
    axes = MAKERS["trade_off"]().axes[0]
    assert any(isinstance(box, mpl.container.ErrorbarContainer) for box in axes.containers)
    assert len(MAKERS["roc"]().axes[0].collections) >= 2


def test_a_users_matplotlibrc_changes_no_figure(tmp_path):
    """What a user's file says is in the settings before a notebook begins."""

    def picture():
        return style.drawn(lambda: style.canvas()[0])()._repr_png_()

    plain = picture()
    with mpl.rc_context({"savefig.facecolor": "yellow", "savefig.bbox": "tight", "axes.linewidth": 5}):
        assert picture() == plain
        figures.use_style()
        assert (mpl.rcParams["axes.linewidth"], mpl.rcParams["savefig.facecolor"]) == (0.8, "auto")
    assert environment(tmp_path, tmp_path)["MATPLOTLIBRC"] == os.devnull
