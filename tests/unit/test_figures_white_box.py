"""The picture of the loss attack along the generalization gap."""

import figure_checks
import pytest

from privhelpers.errors import InvalidParameter
from privhelpers.figures import white_box as figures

HOSTILE = r"_x $\frac{1}$ <b>&amp;"  # unbalanced TeX, markup, and a first letter that legends drop


def auc_by_gap():
    return figures.auc_by_gap(
        {"GPT-2": ([0.0, 0.1, 0.3], [0.5, 0.6, 0.7]), HOSTILE: ([0.0, 0.05], [0.5, 0.52])}
    )


def test_a_figure_of_the_book():
    figure_checks.check(auc_by_gap, shows=HOSTILE)


def test_networks_differ_in_more_than_color():
    (axes,) = auc_by_gap().axes
    lines = [line for line in axes.lines if line.get_marker() not in ("None", "")]
    assert len({(line.get_marker(), line.get_linestyle()) for line in lines}) == 2


@pytest.mark.parametrize("given", [{}, {"a": ([0.1], [0.5, 0.6])}])
def test_what_cannot_be_drawn_is_refused(given):
    with pytest.raises(InvalidParameter):
        figures.auc_by_gap(given)
