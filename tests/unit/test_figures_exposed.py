"""The pictures of who is exposed."""

import figure_checks
import numpy as np
import pytest

from privhelpers import figures, stats
from privhelpers.errors import InvalidParameter

HOSTILE = r"_x $\frac{1}$ <b>&amp;"  # unbalanced TeX, markup, and a first letter that legends drop
RATES = ([0.6, 0.7, 0.8], [0.5, 0.6, 0.7], [0.7, 0.8, 0.9])
BUCKETS = ["common", "mid", HOSTILE]


def curve(shift):
    generator = np.random.default_rng(0)
    scores, labels = generator.normal(size=(2, 120)), np.arange(120)
    return stats.roc_curve(scores[0] + shift, labels, scores[1], labels, draws=40)


MAKERS = {
    "attack_areas": lambda: figures.attack_areas(BUCKETS, {"sample": RATES, "patient": RATES}),
    "attack_rocs": lambda: figures.attack_rocs({"loss": curve(1.0), HOSTILE: curve(0.0)}),
    "levels_by_model": lambda: figures.levels_by_model(
        ["baseline", "dp-eps-8", HOSTILE], {"notes": RATES, "patients": RATES}
    ),
    "leakage_by_bucket": lambda: figures.leakage_by_bucket(
        BUCKETS, {"baseline": RATES, "public": RATES}, what="condition"
    ),
    "leakage_by_epoch": lambda: figures.leakage_by_epoch([1, 2, 4], {"loss": RATES, HOSTILE: RATES}),
    "shadow_evidence": lambda: figures.shadow_evidence([1.0, 2.0, 1.5], [-1.0, 0.0], 1.2),
}
WITHOUT_WORDS_OF_A_CALLER = {"shadow_evidence"}


@pytest.mark.parametrize("name", MAKERS)
def test_a_figure_of_the_book(name):
    figure_checks.check(MAKERS[name], shows=None if name in WITHOUT_WORDS_OF_A_CALLER else HOSTILE)


def test_the_evidence_shows_both_groups_and_the_target():
    figure = figures.shadow_evidence([1.0, 2.0, 1.5], [-1.0, 0.0], 1.2)
    axes = figure.axes[0]
    marks = [line for line in axes.lines if line.get_linestyle() == "None"]
    assert [len(line.get_xdata()) for line in marks] == [3, 2]
    (target,) = [line for line in axes.lines if line.get_label() == "the attacked model"]
    assert target.get_xdata()[0] == 1.2


def test_every_interval_is_drawn_where_it_lies():
    figure = figures.leakage_by_bucket(["a", "b", "c"], {"baseline": RATES}, what="x")
    (container,) = figure.axes[0].containers
    ends = [segment[:, 1].tolist() for segment in container[2][0].get_segments()]
    assert np.allclose(ends, list(zip(*RATES[1:], strict=True)))


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: figures.attack_areas(["a"], {"sample": RATES}), "3 values for 1"),
        (lambda: figures.levels_by_model(["baseline"], {}), "one series"),
        (lambda: figures.attack_rocs({}), "curves"),
        (lambda: figures.leakage_by_epoch([1], {"loss": ([0.5], [0.6], [0.7])}), "contain"),
        (lambda: figures.shadow_evidence([1.0], [0.0, 1.0], 0.5), "inside"),
    ],
)
def test_what_cannot_be_drawn_is_refused(make, match):
    with pytest.raises(InvalidParameter, match=match):
        make()
