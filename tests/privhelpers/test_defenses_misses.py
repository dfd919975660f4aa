"""The simulated scrubber, and what a scrubber leaves of each identifier."""

import numpy as np
import pytest

from privhelpers import defenses
from privhelpers.defenses import Span, formats, misses
from privhelpers.errors import InvalidParameter

NOTES = formats.make_unusual_notes(seed=0, people=200)


def scrubbed(note, spans):
    return defenses.replace(note["text"], spans).text


@pytest.mark.parametrize("recall", [0.5, 0.9, 0.99])
def test_each_identifier_is_missed_with_the_same_probability(recall):
    rows = misses.mentions(NOTES, misses.miss_at_random(NOTES, recall, seed=3))
    deviation = np.sqrt(recall * (1 - recall) / len(rows))
    assert abs(rows["left"].mean() - (1 - recall)) < 4 * deviation
    # Misses are independent: the one before says nothing about the next.
    after_a_miss = rows["left"].shift(fill_value=False)
    assert abs(rows["left"][after_a_miss].mean() - (1 - recall)) < 4 * deviation / np.sqrt(1 - recall)


def test_the_same_seed_misses_the_same_and_full_recall_misses_nothing():
    one, same, other = (misses.miss_at_random(NOTES, 0.9, seed=seed) for seed in (1, 1, 2))
    assert one == same != other
    assert not misses.mentions(NOTES, misses.miss_at_random(NOTES, 1, seed=1))["left"].any()


def test_what_is_left_follows_its_prompt_in_the_scrubbed_note_and_the_rest_is_gone():
    found = misses.miss_at_random(NOTES, 0.8, seed=0)
    rows = misses.mentions(NOTES, found)
    texts = [scrubbed(n, spans) for n, spans in zip(NOTES, found, strict=True) for _ in n["spans"]]
    for text, row in zip(texts, rows.itertuples(), strict=True):
        assert text.startswith(row.prompt)
        rest = text[len(row.prompt) :]
        assert rest.startswith(row.value if row.left else f"[{row.kind.upper()}]")


def test_a_span_that_begins_before_the_identifier_ends_the_prompt():
    true = {"identifier": "name", "start": 10, "end": 18, "value": "Ann Hill"}
    note = {"patient_id": "p", "text": "seen: Mrs Ann Hill, well", "spans": [true]}
    (row,) = misses.mentions([note], [[Span(0, 4, "x"), Span(6, 13, "name")]]).itertuples()
    assert (row.prompt, row.left) == ("[X]: ", False)


@pytest.mark.parametrize("recall", [0, 1.1, "much"])
def test_a_recall_out_of_its_range_is_refused(recall):
    with pytest.raises(InvalidParameter, match="recall"):
        misses.miss_at_random(NOTES, recall, seed=0)


def test_spans_of_other_notes_are_refused():
    with pytest.raises(InvalidParameter, match="found"):
        misses.mentions(NOTES, [[]])
