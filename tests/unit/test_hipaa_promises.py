import math

import pytest

from privhelpers import hipaa, mechanisms
from privhelpers.errors import InvalidParameter

# 45 CFR 164.514(b)(2)(i), from (A) to (R): a word that each entry must hold.
WORDS = [
    *("name", "place", "date", "telephone", "fax", "email", "social security", "medical record"),
    *("health plan", "account", "certificate", "vehicle", "device", "web", "ip address", "biometric"),
    *("photograph", "any other unique"),
]
RULE = dict(zip("ABCDEFGHIJKLMNOPQR", WORDS, strict=True))


def promise(**changes):
    values = {"model": "dp-eps-1", "epsilon": 1.0, "delta": 1e-5, "fpr": 0.01, "posterior": {0.1: 0.2320}}
    values |= {"cap": 0.027193, "curve": 0.02, "certified": 0.34, "reached": 0.0131}
    return hipaa.Promise(**(values | changes))


def test_every_letter_is_the_regulations():
    assert [row.letter for row in hipaa.IDENTIFIERS] == list(RULE)
    for row in hipaa.IDENTIFIERS:
        assert RULE[row.letter] in row.name.lower()


def test_a_limited_data_set_removes_sixteen_kinds():
    by_word = {row.letter: row.limited_data_set for row in hipaa.IDENTIFIERS}
    assert {letter for letter, word in by_word.items() if word == "must go"} == set("ADEFGHIJKLMNOPQ")
    assert by_word["C"] == "may stay" and "the rest must go" in by_word["B"]
    assert by_word["R"] == "not on that list"


def test_sections_are_named_once_and_promise_nothing():
    numbers = [section.number for section in hipaa.SECTIONS]
    assert len(set(numbers)) == len(numbers) >= 6
    assert {"164.514(b)(1)", "164.514(b)(2)", "164.514(e)", "164.502(b)", "164.514(d)"} <= set(numbers)
    text = " ".join(section.asks for section in hipaa.SECTIONS).lower()
    assert "actual knowledge" in text and "complian" not in text and "epsilon" not in text


def test_penalties_rise_by_one_factor_a_year():
    # The adjustment multiplies every amount by one number and rounds: 2024 to 2026 that of one year, 1.02598.
    older, newer = (hipaa.schedule_of(year).tiers for year in (2024, 2026))
    for before, after in zip(older, newer, strict=True):
        for field in ("minimum", "maximum", "cap"):
            assert getattr(after, field) == round(getattr(before, field) * 1.02598), field


def test_penalties_of_the_audit_and_of_the_statute():
    assert [tier.cap for tier in hipaa.schedule_of(2013).tiers] == [1_500_000] * 4
    current = hipaa.schedule_of(2024).tiers
    assert (current[0].minimum, current[-1].cap) == (141, 2_134_831)
    assert hipaa.SCHEDULES[-1].tiers[-1].cap == 2_190_294
    for schedule in hipaa.SCHEDULES:
        assert (
            "CFR" in schedule.source
            and " FR " in schedule.published
            and schedule.from_day.startswith(str(schedule.year))
        )
        minima = [tier.minimum for tier in schedule.tiers]
        assert minima == sorted(minima)
        assert all(tier.minimum <= tier.maximum <= tier.cap for tier in schedule.tiers)
    table = hipaa.penalty_table()
    assert len(table) == 12 and "2,190,294" in set(table["yearly cap"])
    assert all(" FR " in published for published, _ in table.index)


def test_a_year_without_a_schedule_is_refused():
    with pytest.raises(InvalidParameter, match="must be one of 2013, 2024, 2026"):
        hipaa.schedule_of(2025)


def test_a_promise_agrees_with_the_mechanisms():
    one = promise()
    odds = 0.1 / 0.9 * one.odds_factor
    assert odds / (1 + odds) == pytest.approx(mechanisms.posterior_range(prior=0.1, epsilon=1.0)[1])
    assert one.members_by_guarantee == pytest.approx(
        1000 * mechanisms.largest_tpr(fpr=0.01, epsilon=1.0, delta=1e-5), abs=1e-3
    )
    assert one.odds_factor == pytest.approx(math.e) and one.strangers == 10


@pytest.mark.parametrize(
    "changes",
    [
        {"posterior": {0.1: 0.05}},
        {"curve": 0.03},
        {"reached": None},
        {"certified": None},
        {"epsilon": -1.0},
        {"delta": 0.0},
        {"fpr": 0.0},
        {"cap": 1.2},
    ],
)
def test_contradictions_are_refused(changes):
    with pytest.raises(InvalidParameter):
        promise(**changes)


def test_the_table_shows_both_bounds_and_says_where_none_is():
    silent = promise(model="dp-eps-8", certified=None, reached=None)
    table = hipaa.promise_table([promise(), silent])
    columns = ["at least", "by the curve", "shown by the audit"]
    assert table.loc["dp-eps-1", columns].tolist() == ["0.34", "20.0", "13.1"]
    assert table.loc["dp-eps-8", "at least"] == table.loc["dp-eps-8", "shown by the audit"] == "not audited"
    sure = hipaa.promise_table([promise(posterior={0.5: 0.9999})])
    assert sure.loc["dp-eps-1", "50 % becomes"] == "over 99.9 %"


def test_the_text_is_plain_and_promises_no_law():
    text = hipaa.promise_text(promise())
    assert "10 % likely" in text and "23.2 % sure" in text and "20.0 at most" in text and "0.34" in text
    assert "Nobody tested" in hipaa.promise_text(promise(certified=None, reached=None))
    assert "complian" not in text.lower() and "hipaa" not in text.lower()


def test_a_declared_limit_is_held_against_the_curve():
    assert promise().budget(50) == promise().budget(20) == "tolerated"
    assert promise().budget(19) == "exceeds tolerance"
    assert {promise().budget(50), promise().budget(1)} <= set(hipaa.ANSWERS["budget"])
