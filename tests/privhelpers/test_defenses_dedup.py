"""Near-duplicates: exact, complete above the threshold, and in an order that no hash seed changes."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privhelpers import defenses, rng
from privhelpers.defenses import dedup

WORDS = ("mill", "ward", "noon", "green", "slip", "home", "night", "watch", "pulse", "seen")


def made_texts(count=120, seed=0):
    """Texts of which many repeat another with a word or two changed."""
    draw = rng.plain(seed, "test/dedup")
    texts = []
    for _ in range(count):
        if texts and draw.random() < 0.5:
            words = draw.choice(texts).split()
            for _ in range(draw.randrange(3)):
                words[draw.randrange(len(words))] = draw.choice(WORDS)
        else:
            words = [draw.choice(WORDS) + str(draw.randrange(30)) for _ in range(25)]
        texts.append(" ".join(words))
    return texts


def brute(texts, threshold):
    sets = [dedup.shingles(text) for text in texts]
    pairs = itertools.combinations(range(len(texts)), 2)
    return {(a, b) for a, b in pairs if dedup.jaccard(sets[a], sets[b]) >= threshold}


def test_within_a_patient_nobody_changes_the_notes_of_others():
    notes = [{"patient_id": p, "text": t} for p, t in (("a", "x y z"), ("b", "x y z"), ("a", "x  y z"))]
    done = defenses.deduplicate(notes, within="patient_id")
    assert done.groups == ((0, 2),) and done.kept == notes[:2]
    # What stays of one patient is the same whoever else is there: the privacy unit is whole.
    alone = defenses.deduplicate(notes[1:2], within="patient_id").kept
    assert [n for n in done.kept if n["patient_id"] == "b"] == alone


NOTE = "Kept one night to watch and then home with a green slip for the mill ward number"
MANY = {
    "equal": [NOTE] * 400,
    "equal but for spelling": [NOTE, NOTE.upper(), f"**{NOTE}**", NOTE.replace(" ", "\u00a0\n")] * 100,
    "near": [f"{NOTE} {number}" for number in range(400)],
    "empty": ["", " ", "...", "!"] * 100,
    "one among others": [text for number in range(40) for text in (NOTE, " ".join(made_texts(1, number)))],
    "chains": [" ".join(f"w{i}" for i in range(n, n + 40)) for n in range(200)],
}


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("kind", MANY)
def test_a_note_is_compared_with_kept_notes_alone(kind, monkeypatch):
    """The work is counted: sets compared, and texts cut into words."""
    work = dict.fromkeys(("jaccard", "words"), 0)

    def counted(name, function):
        def count(*arguments):
            work[name] += 1
            return function(*arguments)

        monkeypatch.setattr(dedup, name, count)

    for name in work:
        counted(name, getattr(dedup, name))
    texts = MANY[kind]
    done = defenses.deduplicate([{"text": text} for text in texts])
    assert work["words"] <= len(set(texts)), work
    assert work["jaccard"] <= 4 * len(texts), work
    homes = {place for group in done.groups for place in group[1:]}
    assert done.kept == [{"text": text} for n, text in enumerate(texts) if n not in homes]
    if kind in ("equal", "equal but for spelling", "near"):
        assert done.groups == (tuple(range(len(texts))),)


@pytest.mark.wrong_numbers
def test_notes_without_a_word_are_compared_as_they_are_written():
    done = defenses.deduplicate(
        [{"text": text} for text in ("", "\u200b \n", "\U0001f44d", "\U0001f44e", "!", " ! ")]
    )
    assert done.groups == ((0, 1), (4, 5)) and done.removed == 2


@pytest.mark.wrong_numbers
@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from(made_texts(30)), max_size=25), st.sampled_from((0.5, 0.8, 1.0)))
def test_the_groups_are_those_of_all_pairs(texts, threshold):
    """A note goes to the first kept note that nearly repeats it."""
    groups = {}
    pairs = brute(texts, threshold)
    for place in range(len(texts)):
        home = next((first for first in groups if (first, place) in pairs), place)
        groups.setdefault(home, []).append(place)
    done = defenses.deduplicate([{"text": text} for text in texts], threshold=threshold)
    assert done.groups == tuple(tuple(group) for group in groups.values() if len(group) > 1)
