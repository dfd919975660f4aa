"""The pictures of memorization: what they show and what they refuse."""

import figure_checks
import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

from privhelpers import figures
from privhelpers.errors import InvalidParameter

HOSTILE = r"_x $\frac{1}$ <b>&amp;"  # unbalanced TeX, markup, and a first letter that legends drop


def precision_table():
    return pd.DataFrame(
        {"ranking": r, "k": k, "arm": arm, "rate": 0.5, "low": 0.3, "high": 0.7}
        for r in (HOSTILE, "zlib", "reference", "lower case")
        for k in (10, 25, 50)
        for arm in ("member", "control")
    )


def duplication_table():
    return pd.DataFrame(
        {
            "model": model,
            "copies": copies,
            **{f"exposure{end}": v for end, v in (("", 5.0), ("_low", 4.0), ("_high", 6.0))},
            **{f"extracted{end}": v for end, v in (("", 0.5), ("_low", 0.2), ("_high", 0.8))},
        }
        for model in ("public", "baseline", "dp-eps-1", "dp-eps-4", "dp-eps-8", HOSTILE)
        for copies in (0, 1, 2, 4, 8, 16)
    )


NEEDED = {"member": [1, 30, 30, 900, np.inf], "control": [1e5, np.inf, np.inf]}
MAKERS = {
    "precision_by_count": lambda: figures.precision_by_count(precision_table(), 0.1),
    "discovery_by_attempts": lambda: figures.discovery_by_attempts(NEEDED, {"member": 2, "control": 0}),
    "ranks_of_truth": lambda: figures.ranks_of_truth({HOSTILE: [1, 1, 4], "b": [3, 9, 12]}, 12),
    "duplication_curves": lambda: figures.duplication_curves(duplication_table(), 1.44, 10.0),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_figure_of_the_book(name):
    figure_checks.check(MAKERS[name], shows=None if name == "discovery_by_attempts" else HOSTILE)


@pytest.mark.parametrize("name", MAKERS)
def test_uncertainty_is_drawn(name):
    axes = MAKERS[name]().axes[0]
    bars = [box for box in axes.containers if isinstance(box, mpl.container.ErrorbarContainer)]
    assert bars and all(bar.lines[2] for bar in bars)


@pytest.mark.parametrize("name", MAKERS)
def test_lines_differ_without_color(name):
    axes = MAKERS[name]().axes[0]
    curves = [line for line in axes.lines if len(line.get_xdata()) > 2 and line.get_marker() != "_"]
    looks = {(str(c._dash_pattern), c.get_marker(), c.get_markerfacecolor() == "white") for c in curves}
    assert len(looks) == len(curves)


def test_the_curve_of_discovery_is_the_share_of_notes():
    axes = MAKERS["discovery_by_attempts"]().axes[0]
    member = next(line for line in axes.lines if line.get_label() == "trained on")
    shares = dict(zip(np.round(member.get_xdata(), 6), member.get_ydata(), strict=True))
    assert shares[1.0] == 0.2 and shares[100.0] == 0.6 and max(shares.values()) == 0.8


@pytest.mark.parametrize(
    "call",
    [
        lambda: figures.precision_by_count(precision_table().drop(columns="k"), 0.1),
        lambda: figures.precision_by_count(precision_table().query("arm == 'member'"), 0.1),
        lambda: figures.precision_by_count(precision_table().assign(low=0.6), 0.1),
        lambda: figures.discovery_by_attempts({"member": [1]}, {"member": 1}),
        lambda: figures.duplication_curves(duplication_table().drop(columns="extracted_low"), 1.44, 10),
    ],
)
def test_refusals(call):
    with pytest.raises(InvalidParameter):
        call()
