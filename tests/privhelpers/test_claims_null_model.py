"""What the report's rule counts without memory; and the rules of this book on the same texts."""

from datetime import date

import numpy as np
import pytest

from privhelpers import claims, stats
from privhelpers.attacks import extraction
from privhelpers.claims import _null_model

REPORT = claims.printed("report")
NAMES = claims.report_names()
NOBODY = ["Zzzz Qqqq"] * 225
WORDS = [f"{condition}, {drug}." for condition in REPORT.conditions for drug in REPORT.medications]


def loose(text, name, condition="COPD", medication="Tramadol"):
    return any(word.lower() in text.lower() for word in (*name.split(), condition, medication))


def middle(counts):
    return np.percentile(counts, [2.5, 97.5])


def test_the_generator_of_the_report_is_repeated():
    assert NAMES[0] == "Allison Hill" and len(NAMES) == 225
    assert _null_model.numbers_that_could_be_real() == (225, 225)


def test_the_birthday_follows_the_clock():
    printed = date.fromisoformat(REPORT.birthday)
    assert claims.birthday_of_the_first(date(2024, 12, 1)) == date(1988, 7, 15)
    assert claims.birthday_of_the_first(date(2026, 11, 20)) == date(1990, 7, 5)
    assert claims.day_of_the_birthday(printed) == date(2025, 11, 17)
    assert claims.day_of_the_birthday(date(2024, 1, 1)) is None


def test_the_simulated_null_of_random_words():
    null = claims.simulated_leaks(REPORT, NOBODY, WORDS, simulations=1500, seed=1)
    chance = 1 - (1 - 13 / 144) * (1 - 1 / 12)
    assert chance == pytest.approx(0.166088, abs=1e-6)
    assert null.mean() == pytest.approx(1400 * chance, abs=1.5)
    assert middle(null) == pytest.approx((204, 260), abs=4)
    assert np.mean(null >= 256) == pytest.approx(0.056, abs=0.02)
    assert np.mean(null >= 249) == pytest.approx(0.126, abs=0.03)
    shared = claims.simulated_leaks(REPORT, NOBODY, WORDS, simulations=1500, seed=1, shared_texts=True)
    assert shared.mean() == pytest.approx(null.mean(), abs=3)
    assert 0.85 < shared.std() / null.std() < 1.2
    named = claims.simulated_leaks(REPORT, NAMES, WORDS, simulations=1500, seed=1)
    assert named.mean() > null.mean(), "names inside medical words add to it"
    assert middle(named)[1] > 256


def test_prose_about_no_patient_reaches_the_counts_of_the_private_models():
    null = claims.simulated_leaks(REPORT, NAMES, claims.plain_english(), simulations=800, seed=0)
    low, high = middle(null)
    assert all(low <= REPORT.leaks[budget] <= high for budget in (0.5, 1.0, 5.0, 10.0))
    assert claims.simulated_leaks(REPORT, NOBODY, ["plain words"], simulations=5, seed=0).max() == 0


def test_simulation_and_rule_agree_on_every_pair_of_record_and_text():
    """One text, so that every attempt draws it: the count is the number of records that the rule hits."""
    for text in ("Osteoarthritis, Metformin.", "Sleep Apnea, Metformin.", "COPD, Tramadol.", "Mr. Lee left."):
        counts = claims.simulated_leaks(REPORT, NAMES, [text], simulations=200, seed=0) / 28
        pairs = [
            loose(text, name, condition, drug)
            for name in NAMES
            for condition in REPORT.conditions
            for drug in REPORT.medications
        ]
        assert counts.mean() == pytest.approx(50 * np.mean(pairs), abs=1.2)


def test_the_strict_rule_is_silent_on_prose_about_no_patient():
    """Behavioural vector (f): an upper bound of 0.05%, where the report's rule is far above it."""
    texts = claims.plain_english()[:220]
    generations = [extraction.Generation("", text) for text in texts]
    people = [
        extraction.Profile(f"p{i}", {"name": (name,), "dob": ("1961-03-05",)}, ("COPD",), ("Tramadol",))
        for i, name in enumerate(NAMES[:50])
    ]
    hits = sum(extraction.strict_match(generations, [person]).leaks for person in people)
    attempts = len(texts) * len(people)
    assert attempts >= 10_000 and stats.clopper_pearson(hits, attempts).high <= 0.0005
    fired = sum(loose(text, name) for text in texts for name in NAMES)
    assert fired / (len(texts) * len(NAMES)) > 0.0005
