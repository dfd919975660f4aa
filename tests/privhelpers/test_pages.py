"""Numbers that sentences quote are Python's own: the page formats them."""

import numpy as np
import pytest

from privhelpers import pages
from privhelpers.errors import InvalidParameter


@pytest.mark.parametrize("value", [None, True, [1], np.array([1, 2]), 1j])
def test_values_that_a_sentence_cannot_quote_are_refused(value):
    with pytest.raises(InvalidParameter, match="auc"):
        pages.tell(auc=value)


def test_glued_numbers_reach_the_page(monkeypatch):
    seen = {}
    monkeypatch.setattr("myst_nb.glue", lambda name, value, display: seen.update({name: (value, display)}))
    pages.tell(auc=np.float64(0.75), n=np.int64(3), loss=np.float32(2), words="1,024")
    assert seen == {"auc": (0.75, False), "n": (3, False), "loss": (2.0, False), "words": ("1,024", False)}
    assert [type(value) for value, _ in seen.values()] == [float, int, float, str]


@pytest.mark.parametrize("condition", [True, np.True_])
def test_the_wording_follows_the_run(condition):
    assert pages.choose(condition, "more", "no more") == "more"
    assert pages.choose(not condition, "more", "no more") == "no more"
    for wrong in (float("nan"), np.array([True, False])):
        with pytest.raises(InvalidParameter, match="condition"):
            pages.choose(wrong, "more", "no more")


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (1400, "1,400"),
        (np.int64(7), "7"),
        (0.123456, "0.123"),
        (0.0, "0"),
        (1234.5, "1,234"),
        (np.float32(2.5e-5), "2.5·10⁻⁵"),
        (-1e-7, "-1·10⁻⁷"),
        (float("inf"), "unbounded"),
        (float("nan"), "undefined"),
        (np.True_, "yes"),
        (False, "no"),
        ("", "none"),
        (None, "none"),
        ((3, 0.25), "3, 0.25"),
    ],
)
def test_a_table_of_facts_rounds_as_a_reader_would(value, shown):
    table = pages.facts({"what it is": value})
    assert table.index.tolist() == ["what it is"] and table.columns.tolist() == [""]
    assert table.iloc[0, 0] == shown
