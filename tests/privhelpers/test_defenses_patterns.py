"""Patterns and spans: merging, formats, false positives, and time on hostile text."""

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privhelpers import defenses, stats
from privhelpers.attacks.extraction import Generation, profiles, strict_match
from privhelpers.defenses import Span, formats
from privhelpers.records import make_hospital_records, make_public_corpus

CARD = "4111111111111111"  # the test number of every payment library


def scrub(text):
    return defenses.PatternScrubber().scrub(text).text


def test_the_order_of_overlapping_detectors_does_not_matter():
    phone, card = Span(0, 10, "phone"), Span(0, 16, "card")
    assert defenses.merge([phone, card]) == defenses.merge([card, phone]) == [card]
    assert defenses.replace(CARD, [phone, card]).text == "[CARD]"
    # A chain of overlaps is one span, of the kind of its longest part.
    assert defenses.merge([Span(0, 4, "a"), Span(3, 9, "b"), Span(8, 10, "a")]) == [Span(0, 10, "b")]
    assert defenses.merge([Span(0, 9, "ssn"), Span(0, 9, "number")]) == [Span(0, 9, "ssn")]
    assert defenses.merge([Span(0, 2, "a"), Span(2, 4, "a")]) == [Span(0, 2, "a"), Span(2, 4, "a")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"card {CARD} paid", "card [CARD] paid"),
        ("card 4111 1111 1111 1111", "card [CARD]"),
        *((f"number {CARD[:-1]}{digit}", "number [NUMBER]") for digit in "023456789"),
        ("call (212) 555-0123 now", "call [PHONE] now"),
        ("call 212.555.0123, or 1-212-555-0123.", "call [PHONE], or [PHONE]."),
        ("phone 555-0123", "phone [PHONE]"),
        ("reference 2125550123", "reference [NUMBER]"),
        ("SSN-000-12-0000", "SSN-[SSN]"),
        ("social security number is 000120000", "social security number is [SSN]"),
        ("٠٠٠-١٢-٠٠٠٠", "[SSN]"),
        ("0\u200b00-12-00\u200d00!", "[SSN]!"),
        ("mail jané.dóe@mail.example.org.", "mail [EMAIL]."),
        ("mail j.doe [at] mail [dot] example.org", "mail [EMAIL]"),
        ("from 192.0.2.17 on", "from [IP] on"),
        ("born 4 Mar 1961, seen 2023-11-02", "born [DATE], seen [DATE]"),
        ("MRN: SYN-12345678", "MRN: [MRN]"),
        ("12 Smith Lane, Bramwick, ZIP 00012.", "[ADDRESS]."),
        ("a woman, 93 years old", "a woman, [AGE] years old"),
        ("see https://clinic.example.org/p?id=7 today", "see [URL] today"),
    ],
)
def test_formats_are_found_whole(text, expected):
    assert scrub(text) == expected


# What 45 CFR 164.514(b)(2)(i)(C) names: every element of a date but the year, and ages over 89.
DATES = {
    "numbers": ["3/5/50", "03/05/1950", "2020-03-05", "3.5.1950", "05.03.50", "12-25-2019", "31/12/1999"],
    "stamps": ["2020-03-05T10:00", "2020-03-05T10:00:12.5Z", "20200305", "03051950"],
    "blanks of WordPiece": ["01 / 02 / 2020", "2020 - 03 - 05", "March 5 , 1950", "5 . 3 . 1950"],
    "day first": ["05-Mar-1950", "5 March 1950", "the 5th of March", "5/Mar", "05Mar1950", "5. March"],
    "month first": ["March 5,1950", "Mar 5th, 1950", "MAR. 5 1950", "Jan. 5", "March  5,\n1950"],
    "month and year": ["March 1950", "03/1950", "1950-03", "Mar-1950", "March of 1950", "Mar-50"],
    "year first": ["1950 March 5", "1950-Mar-05", "2020/3/5", "2020Mar05", "Q1 2020", "2020 Q3"],
    "month alone": ["in March", "since June", "early May", "until December"],
    "without a year": ["on 1/5", "seen 3/5", "f/u 4/12", "on 12-25", "DOS: 3/5", "on 3/5 and 3/7", "Mon 3/5"],
    "ranges": ["Jan 3-7, 2020", "3/5-3/7", "3-7 January 2020", "Jan-Mar 2020", "Mar 5-Apr 2"],
    "year of birth": ["born in 1930", "DOB 1930", "year of birth: 1928", "born 1931"],
    "other dashes": ["05\u2013Mar\u20131950", "3/5\u20133/7", "2020\u201103\u201105"],
}  # fmt: skip
AGES = {
    "unit": ["92 y.o.", "92-year-old", "92 year old", "92yo", "92 y/o", "92 yrs", "92 yr old", "92.5 y"],
    "blanks of WordPiece": ["92 y / o", "92 - year - old", "92 y. o."],
    "label": ["Age: 92", "aged 92", "AGE=92", "age of 92", "Age 92-95", "Age (92)", "turned 92"],
    "sex": ["92M", "92F", "92 M", "92 F", "92 male", "98F with pneumonia", "a 104M with CHF"],
    "sex, other ways": ["92 WF", "92/F", "M/92", "92yo BM"],
    "words": ["ninety-two years old", "Age: ninety-two", "a hundred years old", "nonagenarian"],
    "decade": ["in her 90s", "in his early nineties", "in her mid-90s", "her 100th birthday"],
    "above a hundred": ["a 101 y.o. man", "110 years", "age 120"],
}  # fmt: skip
CLINIC = {
    "ages of 89 and less": ["45 y.o. man", "89 years old", "Age: 89", "aged 75", "88M", "89F", "in his 80s"],
    "the category": ["90+", "age 90 or older", "ages 90+", "age 90 and over"],
    "years": ["in 2019", "since 1998", "between 1999 and 2003", "born in 1960", "the year 1930", "DOB 1950"],
    "units": ["92 mg", "92%", "92 kg", "92.5 kg", "90-100 mg", "3x5 cm", "92 bpm", "$92M", "92 M cells"],
    "signs": ["BP 120/80", "BP 92/60", "SpO2 92", "HR 92 RR 18", "T 98.6", "temp 98F", "fever to 102F"],
    "temperatures": ["Temperature: 96 F", "temp of 95 F", "Tmax 96F", "T: 96F", "temperature was 95F"],
    "scores": ["5/5 strength", "pain 7/10", "from 8/10 to 4/10", "strength 4/5-5/5", "20/20", "murmur 2/6"],
    "doses": ["1/2 tablet", "on 1/2 tablet daily", "10-12-14 units", "2-3 times", "q4-6h", "D5 1/2 NS"],
    "places": ["L4-5", "C5-C6", "T10-T12", "12-lead", "room 92", "step 3 of 5", "titer 1/160", "G3P2"],
    "times": ["10:45 PM", "24/7", "3-5 days", "92 months", "aged 95 days", "HR in the 90s"],
    "verbs": ["may return", "2 may be needed", "march in place", "patient may 2 times", "Mayo 5", "Janet 5"],
    "words": ["ninety percent", "hundred mg", "June Smith", "Tuesday", "Christmas", "92nd percentile"],
}  # fmt: skip


def cases(table):
    return [pytest.param(text, id=f"{kind}: {text!r}") for kind, texts in table.items() for text in texts]


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("text", cases(DATES))
def test_every_element_of_a_date_but_the_year_is_taken_out(text):
    for around in ("{}", "Note ({}).", "Seen here; {}, then home.", "ward\n{}\n"):
        done = scrub(around.format(text))
        assert "[DATE]" in done and not re.search(r"\d", done), done
        left = re.sub(r"\[DATE\]", "", done)
        assert not re.search(r"(?i)jan|feb|mar|apr|may|jun|dec", left), left


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("text", cases(AGES))
def test_every_age_over_89_is_taken_out(text):
    for around in ("{}", "Note ({}).", "Admitted; {}, then home.", "ward\n{}\n"):
        done = scrub(around.format(text))
        assert "[AGE]" in done and not re.search(r"\d|ninet|hundred|genarian", done), done


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("text", cases(CLINIC))
def test_what_a_clinic_writes_besides_stays(text):
    assert scrub(text) == text and scrub(f"Noted: {text}, stable.") == f"Noted: {text}, stable."


@pytest.mark.wrong_numbers
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("01/02/2020-01/05/2020", "[DATE]-[DATE]"),
        ("01/02/2020\u201301/05/2020", "[DATE]\u2013[DATE]"),
        ("01.02.2020-05.02.2020", "[DATE]-[DATE]"),
        ("2020-03-05-2020-03-09", "[DATE]-[DATE]"),
        ("01-02-2020-01-05-2020", "[DATE]-[DATE]"),
        ("3/5/20,3/7/20", "[DATE],[DATE]"),
        ("from 3/5/2020 to 3/7/2020", "from [DATE] to [DATE]"),
        ("03/2019-05/2020", "[DATE]-[DATE]"),
        ("3/5-3/7/2020", "[DATE]-[DATE]"),
        ("3/5/20 x 3 days", "[DATE] x 3 days"),
        ("5-Mar-1950 10:30", "[DATE] 10:30"),
        ("Age: 92, 92M, aged 92", "Age: [AGE], [AGE]M, aged [AGE]"),
        ("a 93F, born March 5,1930", "a [AGE]F, born [DATE]"),
        ("Call (212) 555-0123 ext. 4\nMarch 5, 1950", "Call [PHONE]\n[DATE]"),
        ("call 212.555.0123\nMarch 5, 1950", "call [PHONE]\n[DATE]"),
    ],
)
def test_neighbors_are_taken_out_each_by_itself(text, expected):
    assert scrub(text) == expected


@settings(max_examples=30, deadline=None)
@given(st.text(max_size=80))
def test_scrubbing_any_text_leaves_spans_inside_it_and_is_stable(text):
    done = defenses.replace(text, defenses.find_identifiers(text, spelled=True))
    assert all(0 <= s.start < s.end <= len(text) for s in done.spans)
    again = defenses.find_identifiers(done.text, spelled=True)
    assert len(again) <= len(done.spans) + 1


HOSTILE = {
    "digits": "1", "digits and spaces": "1 ", "letters": "a", "signs": "@", "almost mail": "a@a.",
    "almost hosts": "a@a-", "dashes": "1-", "almost phones": "212-", "almost numbers": "2222-",
    "brackets": "(", "plus": "+1", "labels": "MRN ", "months": "Jan ", "streets": "1 A ", "dates": "1/1/",
    "ranges": "3/5-", "days": "Mar 5, ", "days first": "5 Mar-", "spaced": "1 / ", "aged": "age 92-",
    "Arabic-Indic": "\u0661", "zero width": "1\u200b", "bracketed at": "[at]", "words": "one two ",
}  # fmt: skip


@pytest.mark.parametrize("kind", HOSTILE)
def test_time_is_linear_in_hostile_text(kind):
    text = HOSTILE[kind] * (100_000 // len(HOSTILE[kind]))
    clock = time.process_time()
    defenses.find_identifiers(text, spelled=True)
    # It takes a fraction of a second; quadratic time would take many minutes.
    assert time.process_time() - clock < 10


STRICT = ("ssn", "phone", "email", "mrn")


def test_planted_strict_identifiers_are_found_with_a_lower_bound():
    """At least 99.5% of planted numbers and addresses, on templates that the patterns never saw."""
    records = make_hospital_records(
        seed=11,
        patients=900,
        validation_patients=1,
        heldout_patients=1,
        canaries_per_level=1,
        report_share=1.0,
        hospital="auxiliary",
    )
    notes = [note for note in records.train if note["kind"] == "report"]
    all_spans = defenses.PatternScrubber().find_all(note["text"] for note in notes)
    hits = {identifier: [0, 0] for identifier in (*STRICT, "name")}
    for note, spans in zip(notes, all_spans, strict=True):
        for place in note["spans"]:
            if place["identifier"] in hits:
                whole = any(s.start <= place["start"] and place["end"] <= s.end for s in spans)
                hits[place["identifier"]][0] += whole
                hits[place["identifier"]][1] += 1
    for identifier in STRICT:
        right, n = hits[identifier]
        assert right == n, identifier
        if n >= 740:
            assert stats.clopper_pearson(right, n).low >= 0.995
    assert sum(hits[identifier][1] for identifier in STRICT) >= 3000
    assert hits["name"][0] == 0 < hits["name"][1]  # what no pattern can find


@pytest.mark.nightly
def test_false_alarms_on_text_without_identifiers_have_a_small_upper_bound():
    from privhelpers.records._public import annotate_public

    corpus = make_public_corpus(seed=5, documents=11_500)
    clean = [note["text"] for note in annotate_public(corpus, seed=5) if not note["spans"]]
    alarms = sum(bool(defenses.find_identifiers(text)) for text in clean)
    rate = stats.clopper_pearson(alarms, len(clean))
    assert len(set(clean)) >= 7_500 and rate.high < 0.0005, rate


# The leak detector: how often it fires where nothing can leak, and whether it sees what is planted.


PEOPLE = {"patients": 400, "validation_patients": 1, "heldout_patients": 1, "canaries_per_level": 1}


@pytest.fixture(scope="module")
def members():
    records = make_hospital_records(seed=7, report_share=1.0, **PEOPLE)
    return profiles(records.train)


@pytest.mark.nightly
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


def test_unusual_notes_know_where_everything_stands():
    notes = formats.make_unusual_notes(seed=3, people=30)
    assert len(notes) == 90 and notes == formats.make_unusual_notes(seed=3, people=30)
    for note in notes:
        for span in note["spans"]:
            assert note["text"][span["start"] : span["end"]] == span["value"]
            assert span["form"] in formats.FORMATS[span["identifier"]]
    seen = {(span["identifier"], span["form"]) for note in notes for span in note["spans"]}
    assert len(seen) > 30
