"""What the report's rule counts without memory; and the rules of this book on the same texts."""

from datetime import date

import numpy as np
import pytest

from privhelpers import report, stats
from privhelpers.attacks import extraction
from privhelpers.errors import InvalidParameter
from privhelpers.report import null_model

NAMES = null_model.report_names()
NOBODY = ["Zzzz Qqqq"] * 225


def test_the_generator_of_the_report_is_repeated():
    assert NAMES[0] == "Allison Hill" and len(NAMES) == 225
    assert null_model.report_names(3) == NAMES[:3]
    assert null_model.could_be_real() == (225, 225)


def test_the_birthday_follows_the_clock():
    printed = date.fromisoformat(report.published.BIRTHDAY)
    assert null_model.birthday_of_the_first(date(2024, 12, 1)) == date(1988, 7, 15)
    assert null_model.birthday_of_the_first(date(2026, 11, 20)) == date(1990, 7, 5)
    assert null_model.day_of_the_birthday(printed) == date(2025, 11, 17)
    assert null_model.day_of_the_birthday(date(2024, 1, 1)) is None


def test_the_exact_chance():
    assert null_model.condition_collisions() == 13
    assert null_model.chance_of_a_hit() == pytest.approx(0.166088, abs=1e-6)
    assert null_model.chance_of_a_hit() == pytest.approx(1 - (1 - 13 / 144) * (11 / 12))


def test_the_simulated_null_of_random_words():
    null = null_model.vocabulary_null(NOBODY, simulations=1500, seed=1)
    assert null.mean == pytest.approx(1400 * null_model.chance_of_a_hit(), abs=1.5)
    assert null.mean == pytest.approx(232, abs=2)
    assert null.interval == pytest.approx((204, 260), abs=4)
    assert null.at_least(256) == pytest.approx(0.056, abs=0.02)
    assert null.at_least(249) == pytest.approx(0.126, abs=0.03)
    named = null_model.vocabulary_null(NAMES, simulations=1500, seed=1)
    assert named.mean > null.mean, "names that stand in medical words add to it"
    assert named.contains(249) and named.contains(256)


def test_sharing_random_texts_changes_little():
    """Words are drawn evenly and records are too: no text is a better guess than another."""
    how = {"simulations": 800, "seed": 0}
    one = null_model.vocabulary_null(NOBODY, **how)
    shared = null_model.vocabulary_null(NOBODY, **how, shared_texts=True)
    assert shared.mean == pytest.approx(one.mean, abs=3)
    assert 0.85 < shared.counts.std() / one.counts.std() < 1.2


def test_prose_about_nobody_reaches_the_counts_of_the_private_models():
    null = null_model.text_null(NAMES, null_model.plain_english(), simulations=800, seed=0)
    assert all(null.contains(report.published.LEAKS[b]) for b in report.published.BUDGETS)
    assert null_model.text_null(NOBODY, ["plain words"], simulations=5, seed=0).counts.max() == 0


def test_a_simulation_repeats_with_its_seed():
    how = {"simulations": 20, "seed": 3}
    first, again = (null_model.vocabulary_null(NAMES, **how).counts for _ in range(2))
    assert first.tolist() == again.tolist()
    assert null_model.vocabulary_null(NAMES, simulations=20, seed=4).counts.tolist() != first.tolist()


def test_simulation_and_rule_agree():
    """The table behind the simulation is the rule, record by record."""
    record = {"name": "Sue Lee", "condition": "Arthritis", "medication": "Tramadol"}
    texts = ["Osteoarthritis, Metformin.", "Sleep Apnea, Metformin.", "COPD, Metformin.", "COPD, Tramadol."]
    assert [null_model.word_rule(text, **record) for text in texts] == [True, True, False, True]


def test_both_arms_of_one_generator_differ_by_chance_alone():
    """Behavioural vector (d): the interval of the difference covers 0 about as often as it says."""
    covered = 0
    for seed in range(60):
        first, second = null_model.generator_against_itself(attempts=700, seed=seed)
        a, b = first / 700, second / 700
        half = 1.96 * np.sqrt((a * (1 - a) + b * (1 - b)) / 700)
        covered += abs(a - b) <= half
    assert covered >= 52


def test_the_strict_rule_is_silent_on_prose_about_nobody():
    """Behavioural vector (f): an upper bound of 0.05 %, where the report's rule is far above it."""
    texts = null_model.plain_english(texts=600)
    generations = [extraction.Generation("", text) for text in texts]
    people = [
        extraction.Profile(f"p{i}", {"name": (name,), "dob": ("1961-03-05",)}, ("COPD",), ("Tramadol",))
        for i, name in enumerate(NAMES[:50])
    ]
    hits = sum(extraction.strict_match(generations, [person]).leaks for person in people)
    attempts = len(texts) * len(people)
    assert attempts >= 10_000 and stats.clopper_pearson(hits, attempts).high <= 0.0005
    loose = sum(
        null_model.word_rule(text, name=name, condition="COPD", medication="Tramadol")
        for text in texts
        for name in NAMES
    )
    assert loose / (len(texts) * len(NAMES)) > 0.0005


@pytest.mark.parametrize(
    "call",
    [
        lambda: null_model.report_names(0),
        lambda: null_model.vocabulary_null(NAMES, simulations=0, seed=0),
        lambda: null_model.text_null(NAMES, ["a"], simulations=-1, seed=0),
        lambda: null_model.plain_english(words=0),
        lambda: null_model.generator_against_itself(attempts=0, seed=0),
    ],
)
def test_refusals(call):
    with pytest.raises(InvalidParameter):
        call()
