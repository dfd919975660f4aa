"""The leak detector: how often it fires where nothing can leak, and whether it sees what is planted."""

import pytest

from privhelpers import stats
from privhelpers.attacks.extraction import Generation, profiles, strict_match
from privhelpers.records import make_hospital_records, make_public_corpus

PEOPLE = {"patients": 400, "validation_patients": 1, "heldout_patients": 1, "canaries_per_level": 1}


@pytest.fixture(scope="module")
def members():
    records = make_hospital_records(seed=7, report_share=1.0, **PEOPLE)
    return profiles(records.train)


def test_false_positives_on_never_trained_text_have_a_small_upper_bound(members):
    """Texts full of other people's identifiers, of which the model behind them cannot know one."""
    texts = make_public_corpus(seed=8, documents=12_000)
    match = strict_match([Generation("", text) for text in texts], members)
    rate = stats.clopper_pearson(match.leaks, len(set(texts)))
    assert len(set(texts)) >= 10_000 and rate.high <= 0.0005, rate


def test_planted_identifiers_are_recalled_with_a_high_lower_bound(members):
    hits = total = 0
    for identifier in ("mrn", "email", "phone", "ssn", "name", "dob", "address"):
        values = [v for person in members for v in person.identifiers.get(identifier, ())]
        planted = [Generation("", f"Seen at noon,\n {value.upper()}  and home.") for value in values]
        matched = strict_match(planted, members).by_identifier[identifier]
        assert matched == len(values) > 100, identifier
        hits, total = hits + matched, total + len(values)
    assert stats.clopper_pearson(hits, total).low >= 0.995
