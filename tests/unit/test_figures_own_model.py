"""The pictures of an audit."""

import figure_checks
import numpy as np
import pytest

from privhelpers import figures, stats
from privhelpers.errors import InvalidParameter

HOSTILE = r"_x $\frac{1}$ <b>&amp;"
SCORES = np.random.default_rng(0).normal(size=(2, 120))


def area(value):
    return stats.Interval(value, value - 0.03, value + 0.03, 0.95, "made up")


AREAS = {"loss": area(0.9), HOSTILE: area(0.7)}
MAKERS = {
    "patient_scores": lambda: figures.patient_scores(*SCORES),
    "attacks_and_controls": lambda: figures.attacks_and_controls(
        AREAS, {HOSTILE: area(0.5)}, names=("this model", "trained on nothing")
    ),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_figure_of_the_book(name):
    figure_checks.check(MAKERS[name], shows=HOSTILE if name == "attacks_and_controls" else None)


def test_nothing_to_draw_is_refused():
    with pytest.raises(InvalidParameter, match="one or more"):
        figures.attacks_and_controls({}, {}, names=("a", "b"))
    with pytest.raises(InvalidParameter, match="of these only"):
        figures.attacks_and_controls(AREAS, {"zlib": area(0.5)}, names=("a", "b"))
    with pytest.raises(InvalidParameter):
        figures.patient_scores([], [1.0])


def test_every_patient_is_counted_in_its_group():
    figure = figures.patient_scores(*SCORES, bins=10)
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert labels == ["trained on (120 patients)", "held out (120 patients)"]
