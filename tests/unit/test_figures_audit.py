"""The pictures of the audit: what they show, and that no bound is lost."""

import figure_checks
import numpy as np
import pytest

from privhelpers import figures
from privhelpers.errors import InvalidParameter

HOSTILE = r"_x $\frac{1}$ <b>&amp;"
SCORES, COINS = np.linspace(-3, 3, 60), np.arange(60) % 3 == 0
MODELS = ["dp-eps-0.5", "dp-eps-1", "dp-eps-4", "dp-eps-8", "dp-eps-10"]
UPPERS, LOWERS = [0.5, 1, 4, 8, 10], [0, 0.2, 1.9, 3.4, 4.1]
VARIANTS = ["honest", "noise off", HOSTILE]
MAKERS = {
    "canary_scores": lambda: figures.canary_scores(SCORES, COINS),
    "audit_bounds": lambda: figures.audit_bounds(
        MODELS, UPPERS, LOWERS, {"one run, binomial": [0, 0.1, 1.5, 2.5, 3], HOSTILE: [0, 0, 1, 2, 2.5]}
    ),
    "audit_ceilings": lambda: figures.audit_ceilings(
        [10, 100, 1000], {"binomial": [1, 3.4, 5.7], HOSTILE: [2, 5, 9]}, mark=400
    ),
    "broken_gallery": lambda: figures.broken_gallery(
        VARIANTS, [1, 1, 0.25], [0.2, 5.5, 0], [0.51, 0.6, 0.52], [0.49, 0.57, 0.5], [0.53, 0.63, 0.54]
    ),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_figure_of_the_book(name):
    figure_checks.check(MAKERS[name], shows=None if name == "canary_scores" else HOSTILE)


def line_called(axes, label):
    (line,) = [line for line in axes.lines if str(line.get_label()).lstrip("\ufdd0") == label]
    return line


def test_lower_and_upper_bounds_stand_at_their_values_zero_included():
    (axes,) = MAKERS["audit_bounds"]().axes
    assert list(line_called(axes, "upper bound (accountant)").get_ydata()) == UPPERS
    assert list(line_called(axes, "lower bound (audit, f-DP)").get_ydata()) == LOWERS
    assert list(line_called(axes, HOSTILE).get_ydata()) == [0, 0, 1, 2, 2.5]
    assert axes.get_ylim()[0] == 0 and axes.get_ylim()[1] > 10
    ticks = [text.get_text() for text in axes.get_yticklabels()]
    assert ticks[0] == "0" and "8" in ticks
    assert axes.get_xticklabels()[0].get_text() == "DP, ε = 0.5"


def test_markers_differ_where_colors_do_not():
    (axes,) = MAKERS["audit_bounds"]().axes
    assert len({line.get_marker() for line in axes.lines}) == 4


def test_only_a_bound_above_the_claim_is_called_refuted():
    left = MAKERS["broken_gallery"]().axes[0]
    assert list(line_called(left, "audit: refuted").get_xdata()) == [5.5]
    assert list(line_called(left, "audit: not refuted").get_xdata()) == [0.2, 0]
    assert list(line_called(left, "claimed ε").get_xdata()) == [1, 1, 0.25]
    equal = figures.broken_gallery(["a"], [1], [1], [0.5], [0.4], [0.6]).axes[0]
    assert not [line for line in equal.lines if line.get_label() == "audit: refuted"]


def test_both_kinds_of_canaries_are_counted():
    figure = MAKERS["canary_scores"]()
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["included (n = 20)", "excluded (n = 40)"]


@pytest.mark.parametrize(
    "call",
    [
        lambda: figures.canary_scores([1.0, 2.0], [1, 1]),
        lambda: figures.canary_scores([1.0, float("inf")], [1, 0]),
        lambda: figures.canary_scores([1.0], [1, 0]),
        lambda: figures.audit_bounds(["a", "a"], [1, 2], [0, 1]),
        lambda: figures.audit_bounds(["a"], [1], [-0.1]),
        lambda: figures.audit_bounds(["a"], [1, 2], [0, 1]),
        lambda: figures.audit_bounds(["a"], [1], [0], {str(n): [0] for n in range(6)}),
        lambda: figures.audit_bounds(["a"], [1], [0], {"x": [0, 1]}),
        lambda: figures.audit_ceilings([1, 2], {}),
        lambda: figures.audit_ceilings([0, 2], {"a": [0, 1]}),
        lambda: figures.audit_ceilings([1, 2], {"a": [1]}),
        lambda: figures.broken_gallery(["a"], [1], [1], [0.5], [0.6], [0.7]),
        lambda: figures.broken_gallery(["a", "a"], [1, 1], [1, 1], [0.5] * 2, [0.4] * 2, [0.6] * 2),
        lambda: figures.broken_gallery(["a"], [1], [-1], [0.5], [0.4], [0.6]),
    ],
)
def test_bad_input_is_refused_with_a_typed_error(call):
    with pytest.raises(InvalidParameter):
        call()
