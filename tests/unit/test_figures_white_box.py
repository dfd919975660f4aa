"""The pictures of attacks that look inside a network."""

import figure_checks
import numpy as np
import pytest

from privhelpers.errors import InvalidParameter
from privhelpers.figures import white_box as figures

HOSTILE = r"_x $\frac{1}$ <b>&amp;"  # unbalanced TeX, markup, and a first letter that legends drop
INTERVAL = (0.7, 0.65, 0.75)
ATTACKS = {"loss": INTERVAL, "attention": (0.52, 0.48, 0.56), HOSTILE: (0.6, 0.55, 0.66)}
RUNS = ["σ = 2", "σ = 0.1", HOSTILE, "no DP"]
MAKERS = {
    "auc_by_attack": lambda: figures.auc_by_attack(
        {n: ATTACKS for n in ("GPT-2", "BERT", "DistilBERT", "half")}
    ),
    "auc_by_gap": lambda: figures.auc_by_gap(
        {"GPT-2": ([0.0, 0.1, 0.3], [0.5, 0.6, 0.7]), HOSTILE: ([0.0, 0.05], [0.5, 0.52])}
    ),
    "auc_by_masks": lambda: figures.auc_by_masks(
        [1, 4, 16], {"BERT": [INTERVAL] * 3, HOSTILE: [(0.5, 0.45, 0.55)] * 3}, INTERVAL
    ),
    "norms_by_parameter": lambda: figures.norms_by_parameter(
        [HOSTILE, *(f"h.{i}.attn.c_attn.weight" for i in range(30))],
        [(-0.1 * i, -0.1 * i - 0.2, -0.1 * i + 0.1) for i in range(31)],
    ),
    "auc_by_noise": lambda: figures.auc_by_noise(
        RUNS, {n: [i] * 4 for n, i in ATTACKS.items()}, [(p, p - 1, p + 1) for p in (25, 12, 4, 3)], 26.0
    ),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_figure_of_the_book(name):
    figure_checks.check(MAKERS[name], shows=HOSTILE)


def series(axes):
    return [c for c in axes.containers if hasattr(c, "has_yerr")]


def test_every_attack_stands_beside_its_network_with_its_whole_interval():
    (axes,) = MAKERS["auc_by_attack"]().axes
    assert len(series(axes)) == 3
    for number, bars in enumerate(series(axes)):
        value, low, high = list(ATTACKS.values())[number]
        np.testing.assert_allclose(bars.lines[0].get_xdata(), value)
        np.testing.assert_allclose(np.round(bars.lines[0].get_ydata()), range(4))
        ends = np.array(bars.lines[2][0].get_segments())[:, :, 0]
        np.testing.assert_allclose(ends, [[low, high]] * 4)
    assert len({bars.lines[0].get_marker() for bars in series(axes)}) == 3


def test_networks_differ_in_more_than_color():
    (axes,) = MAKERS["auc_by_gap"]().axes
    lines = [line for line in axes.lines if line.get_marker() not in ("None", "")]
    assert len({(line.get_marker(), line.get_linestyle()) for line in lines}) == 2


def test_noise_has_leakage_on_the_left_and_utility_on_the_right():
    leak, use = MAKERS["auc_by_noise"]().axes
    assert len(series(leak)) == 3 and len(series(use)) == 1
    np.testing.assert_allclose(series(use)[0].lines[0].get_xdata(), [25, 12, 4, 3])
    assert [text.get_text().lstrip("\ufdd0") for text in leak.get_yticklabels()] == RUNS


@pytest.mark.parametrize(
    "draw",
    [
        lambda: figures.auc_by_attack({}),
        lambda: figures.auc_by_attack({"a": {"loss": INTERVAL}, "b": {"attention": INTERVAL}}),
        lambda: figures.auc_by_attack({"a": {"loss": (0.7, 0.8, 0.9)}}),
        lambda: figures.auc_by_attack({"a": {"loss": (0.7, float("nan"), 0.9)}}),
        lambda: figures.auc_by_gap({}),
        lambda: figures.auc_by_gap({"a": ([0.1], [0.5, 0.6])}),
        lambda: figures.auc_by_masks([1, 2], {"a": [INTERVAL]}, INTERVAL),
        lambda: figures.auc_by_masks([1], {}, INTERVAL),
        lambda: figures.norms_by_parameter(["a", "b"], [INTERVAL]),
        lambda: figures.auc_by_noise(["a"], {}, [INTERVAL], 3.0),
        lambda: figures.auc_by_noise(["a"], {"loss": [INTERVAL] * 2}, [INTERVAL], 3.0),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw):
    with pytest.raises(InvalidParameter):
        draw()
