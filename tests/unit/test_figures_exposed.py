"""What shadow models say of one note."""

import figure_checks
import pytest

from privhelpers import figures
from privhelpers.errors import InvalidParameter

MAKERS = {
    "shadow_evidence": lambda: figures.shadow_evidence([1.0, 2.0, 1.5], [-1.0, 0.0], 1.2),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_figure_of_the_book(name):
    figure_checks.check(MAKERS[name])


def test_the_evidence_shows_both_groups_and_the_target():
    figure = MAKERS["shadow_evidence"]()
    axes = figure.axes[0]
    marks = [line for line in axes.lines if line.get_linestyle() == "None"]
    assert [len(line.get_xdata()) for line in marks] == [3, 2]
    (target,) = [line for line in axes.lines if line.get_label() == "the attacked model"]
    assert target.get_xdata()[0] == 1.2


def test_one_model_on_a_side_is_refused():
    with pytest.raises(InvalidParameter, match="inside"):
        figures.shadow_evidence([1.0], [0.0, 1.0], 0.5)
