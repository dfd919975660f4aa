"""The pictures of the defenses."""

import itertools

import figure_checks
import pandas as pd
import pytest

from privhelpers import figures
from privhelpers.errors import InvalidParameter

HOSTILE = r"_x $\frac{1}$ <b>&amp;"  # unbalanced TeX, markup, and a first letter that legends drop
ENDS = {"rate": 0.5, "low": 0.4, "high": 0.7}
SHARES = ([0.1, 0.5, 0.9], [0.0, 0.4, 0.8], [0.2, 0.6, 1.0])


def table(**columns):
    rows = itertools.product(*columns.values())
    return pd.DataFrame([dict(zip(columns, row, strict=True)) | ENDS for row in rows])


RECALL = table(
    notes=["held-out templates", "unusual formats"],
    scrubber=["patterns", "recognizer", "both", HOSTILE],
    identifier=["name", "dob", "mrn", "email", "phone", "ssn", "address"],
)
BYPASSES = table(bypass=[f"way {i}" for i in range(11)], filter=["as written", HOSTILE])
MAKERS = {
    "scrubbing_recall": lambda: figures.scrubbing_recall(RECALL),
    "small_classes": lambda: figures.small_classes(
        ["condition", "and age", "and ward"], {"alone": SHARES, HOSTILE: SHARES}
    ),
    "proposal_curves": lambda: figures.proposal_curves({"sure": (25, 5), HOSTILE: (9, 13)}, 0.8),
    "filter_bypasses": lambda: figures.filter_bypasses(BYPASSES),
}


@pytest.mark.parametrize("name", MAKERS)
def test_a_figure_of_the_book(name):
    figure_checks.check(MAKERS[name], shows=HOSTILE)


def test_every_rate_is_drawn_where_it_lies():
    rows = table(bypass=["a", "b"], filter=["one"])
    rows.loc[1, ["rate", "low", "high"]] = [0.2, 0.1, 0.3]
    (container,) = figures.filter_bypasses(rows).axes[0].containers
    assert container[0].get_xdata().tolist() == [0.5, 0.2]
    ends = [segment[:, 0].tolist() for segment in container[2][0].get_segments()]
    assert ends == [pytest.approx([0.4, 0.7]), pytest.approx([0.1, 0.3])]


def test_a_missing_rate_leaves_its_place_empty():
    rows = RECALL[~((RECALL["identifier"] == "ssn") & (RECALL["scrubber"] == "patterns"))]
    first, *_ = figures.scrubbing_recall(rows).axes[0].containers
    assert len(first[0].get_xdata()) == 6


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: figures.scrubbing_recall(RECALL.drop(columns="rate")), "no column"),
        (lambda: figures.filter_bypasses(BYPASSES.iloc[:0]), "no rows"),
        (lambda: figures.filter_bypasses(BYPASSES.assign(low=0.6)), "contain"),
        (lambda: figures.filter_bypasses(table(bypass=["a"], filter=list("abcde"))), "at most 4"),
        (lambda: figures.small_classes(["a"], {"x": SHARES}), "3 values for 1"),
        (lambda: figures.small_classes(["a"], {}), "one series"),
        (lambda: figures.proposal_curves({}, 0.8), "one or more"),
    ],
)
def test_what_cannot_be_drawn_is_refused(make, match):
    with pytest.raises(InvalidParameter, match=match):
        make()
