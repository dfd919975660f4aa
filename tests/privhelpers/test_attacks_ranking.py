"""Rankings of generated texts, what counts as copied, and model text on a page."""

import re

import numpy as np
import pytest
from bs4 import BeautifulSoup
from hypothesis import given, settings
from hypothesis import strategies as st

from privhelpers.attacks import case_studies as cases
from privhelpers.attacks import ranking
from privhelpers.text import inert

WORDS = st.lists(st.sampled_from("abcd"), max_size=8).map(" ".join)


def slow_run(text, note):
    """Longest common run of words, by trying every pair of places."""
    text_words, note_words, best = text.split(), note.split(), 0
    for i in range(len(text_words)):
        for j in range(len(note_words)):
            length = 0
            while text_words[i + length : i + length + 1] == note_words[j + length : j + length + 1] != []:
                length += 1
            best = max(best, length)
    return best


@settings(max_examples=150, deadline=None)
@given(texts=st.lists(WORDS, min_size=1, max_size=4), notes=st.lists(WORDS, max_size=4))
def test_longest_runs_are_those_of_a_slow_search(texts, notes):
    runs = ranking.longest_runs(texts, notes)
    for text, words, note in zip(texts, runs.words, runs.note, strict=True):
        assert words == max((slow_run(text, other) for other in notes), default=0)
        assert (note == -1) == (words == 0)
        assert words == 0 or slow_run(text, notes[note]) == words


def test_the_first_are_the_highest_and_ties_fall_by_lot():
    assert ranking.first([1, 3, 2], 2, seed=0).tolist() == [1, 2]
    tied = [tuple(ranking.first(np.zeros(20), 5, seed=s)) for s in range(20)]
    assert len(set(tied)) > 10 and tied[0] == tuple(ranking.first(np.zeros(20), 5, seed=0))
    assert ranking.first([1, 2], 9, seed=0).tolist() == [1, 0]


# Model text on a page.

HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</td></table><h1>gone",
    "&lt;b&gt; &amp; \" '",
    "$x^2$ \\(y\\) $$z$$ {glue:text}`x` ```python `code` **bold** [a](javascript:b)",
    "a\u202eb\u200bc\x1b[31m\nnew\tline\x00",
    "<!-- <mark> -->",
]


def read(page):
    return BeautifulSoup(page, "html.parser")


@pytest.mark.parametrize("text", HOSTILE)
def test_model_text_on_a_page_is_characters_and_nothing_else(text):
    spans = {text[:3]: [], "other": [(2, 9), (5, 12), (9, 9999)]}
    table = cases.side_by_side({text[:3]: text, "other": text}, spans, first=text)
    page = table._repr_html_()
    seen = read(page)
    assert {tag.name for tag in seen.find_all(True)} <= {"table", "thead", "tbody", "tr", "th", "td", "mark"}
    assert {name for tag in seen.find_all(True) for name in tag.attrs} == {"class", "style"}
    assert "mathjax_ignore" in page and "<!--" not in page
    assert seen.get_text().count(inert(text)) >= 3
    assert not re.search("[\x00-\x1f\u200b-\u202e]", page)
