"""The 18 identifiers, the sections, and the penalties: data of the regulation."""

from bs4 import BeautifulSoup

from privhelpers import hipaa

OURS = {"name": "A", "address": "B", "dob": "C", "phone": "D", "email": "F", "ssn": "G", "mrn": "H"}
# 45 CFR 164.514(b)(2)(i), from (A) to (R): a word that each entry must hold.
WORDS = [
    *("name", "place", "date", "telephone", "fax", "email", "social security", "medical record"),
    *("health plan", "account", "certificate", "vehicle", "device", "web", "ip address", "biometric"),
    *("photograph", "any other unique"),
]
RULE = dict(zip("ABCDEFGHIJKLMNOPQR", WORDS, strict=True))


def test_the_list_is_the_eighteen_of_the_rule():
    assert [row.letter for row in hipaa.IDENTIFIERS] == list(RULE)
    assert all(RULE[row.letter] in row.name.lower() for row in hipaa.IDENTIFIERS)
    assert hipaa.RECORD_IDENTIFIERS == OURS


def test_the_caveat_names_both_ways_and_promises_nothing():
    assert "Safe Harbor" in hipaa.CAVEAT and "Expert Determination" in hipaa.CAVEAT
    assert "the holder have no actual knowledge" in hipaa.CAVEAT  # 45 CFR 164.514(b)(2)(ii)
    assert hipaa.CAVEAT.count(".") == 1 and "compliant" not in hipaa.CAVEAT.lower()


def schedule_of(year):
    (schedule,) = [schedule for schedule in hipaa.SCHEDULES if schedule.year == year]
    return schedule


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


def test_penalties_rise_by_one_factor_per_year():
    # The adjustment multiplies every amount by one number and rounds: 2024 to 2026 that of one year, 1.02598.
    older, newer = (schedule_of(year).tiers for year in (2024, 2026))
    for before, after in zip(older, newer, strict=True):
        for field in ("minimum", "maximum", "cap"):
            assert getattr(after, field) == round(getattr(before, field) * 1.02598), field


def test_penalties_of_the_audit_and_of_the_statute():
    assert [tier.cap for tier in schedule_of(2013).tiers] == [1_500_000] * 4
    current = schedule_of(2024).tiers
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


def test_a_sheet_for_readers_can_be_read_by_all_and_does_nothing():
    item = ("A <b>note</b>", "of\u202e 3 & more", "<script>alert(1)</script>")
    page = BeautifulSoup(hipaa.sheet_page([item, ("one", "two", "three")]), "html.parser")
    assert page.html["lang"] == "en" and page.title.string and page.table.caption.string
    assert all(cell["scope"] == "col" for cell in page.thead.find_all("th"))
    rows = page.tbody.find_all("tr")
    assert [row.th.get_text() for row in rows] == ["1", "2"] and all(row.th["scope"] == "row" for row in rows)
    shown = [cell.get_text() for cell in rows[0].find_all("td")]
    assert shown == ["A <b>note</b>", "of\\u202e 3 & more", "<script>alert(1)</script>", "yes / no"]
    assert not page.find_all(["script", "b", "img", "a", "link"])
    policy = page.find("meta", attrs={"http-equiv": "Content-Security-Policy"})["content"]
    assert policy.startswith("default-src 'none'") and "script" not in policy
