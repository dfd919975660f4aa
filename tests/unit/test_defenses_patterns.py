"""Patterns and spans: merging, formats, false positives, and time on hostile text."""

import itertools
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privhelpers import defenses, stats
from privhelpers.defenses import Span, folding, formats
from privhelpers.errors import InvalidParameter
from privhelpers.records import make_hospital_records, make_public_corpus

CARD = "4111111111111111"  # the test number of every payment library
SPANS = st.lists(
    st.builds(
        lambda start, size, kind: Span(start, start + size, kind),
        st.integers(0, 40),
        st.integers(1, 12),
        st.sampled_from(["a", "b", "number"]),
    ),
    max_size=12,
)


def scrub(text):
    return defenses.PatternScrubber().scrub(text).text


@given(SPANS)
def test_merged_spans_cover_the_same_places_and_never_overlap(spans):
    merged = defenses.merge(spans)
    assert {i for s in spans for i in range(s.start, s.end)} == {
        i for s in merged for i in range(s.start, s.end)
    }
    assert all(a.end <= b.start for a, b in itertools.pairwise(merged))


@given(SPANS)
def test_nothing_of_a_found_span_is_left(spans):
    text = "x" * 60
    done = defenses.replace(text, spans)
    inside = sum(s.end - s.start for s in done.spans)
    assert re.sub(r"\[[A-Z]+\]", "", done.text) == "x" * (60 - inside)


def test_the_order_of_overlapping_detectors_does_not_matter():
    phone, card = Span(0, 10, "phone"), Span(0, 16, "card")
    assert defenses.merge([phone, card]) == defenses.merge([card, phone]) == [card]
    assert defenses.replace(CARD, [phone, card]).text == "[CARD]"
    # A chain of overlaps is one span, of the kind of its longest part.
    assert defenses.merge([Span(0, 4, "a"), Span(3, 9, "b"), Span(8, 10, "a")]) == [Span(0, 10, "b")]
    assert defenses.merge([Span(0, 9, "ssn"), Span(0, 9, "number")]) == [Span(0, 9, "ssn")]
    assert defenses.merge([Span(0, 2, "a"), Span(2, 4, "a")]) == [Span(0, 2, "a"), Span(2, 4, "a")]


@pytest.mark.parametrize("span", [Span(-1, 2, "a"), Span(2, 2, "a"), Span(3, 1, "a"), Span(0, 99, "a")])
def test_a_span_outside_its_text_is_refused(span):
    with pytest.raises(InvalidParameter, match="Span"):
        defenses.replace("text", [span])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"card {CARD} paid", "card [CARD] paid"),
        ("card 4111 1111 1111 1111", "card [CARD]"),
        ("number 4111111111111112", "number [NUMBER]"),
        ("call (212) 555-0123 now", "call [PHONE] now"),
        ("call 212 555 0123", "call [PHONE]"),
        ("call +1 212 555 0123 ext. 12", "call [PHONE]"),
        ("call 212.555.0123, or 1-212-555-0123.", "call [PHONE], or [PHONE]."),
        ("phone: 2125550123", "phone: [PHONE]"),
        ("phone 555-0123", "phone [PHONE]"),
        ("reference 2125550123", "reference [NUMBER]"),
        ("SSN 000 12 0000", "SSN [SSN]"),
        ("SSN-000-12-0000", "SSN-[SSN]"),
        ("social security number is 000120000", "social security number is [SSN]"),
        ("٠٠٠-١٢-٠٠٠٠", "[SSN]"),
        ("000\u201312\u20130000", "[SSN]"),
        ("0\u200b00-12-00\u200d00!", "[SSN]!"),
        ("mail jané.dóe@mail.example.org.", "mail [EMAIL]."),
        ("mail J.DOE@MAIL.EXAMPLE.ORG", "mail [EMAIL]"),
        ("mail j.doe [at] mail [dot] example.org", "mail [EMAIL]"),
        ("from 192.0.2.17 on", "from [IP] on"),
        ("born March 4, 1961", "born [DATE]"),
        ("born 4 Mar 1961, seen 2023-11-02", "born [DATE], seen [DATE]"),
        ("MRN: SYN-12345678", "MRN: [MRN]"),
        ("record number is 0012345", "record number is [MRN]"),
        ("12 Smith Lane, Bramwick, ZIP 00012.", "[ADDRESS]."),
        ("a woman, 93 years old", "a woman, [AGE] years old"),
        ("see https://clinic.example.org/p?id=7 today", "see [URL] today"),
    ],
)
def test_formats_are_found_whole(text, expected):
    assert scrub(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "BP 120/80, pulse 72, weight 180, height 70in",
        "999.999.999.999 is no address, version 1.2.3 neither",
        "take 20 mg at 8-10 hours, 2-3 times",
        "room 12, bed 4, 87 year old man",
        "between 1999 and 2003 the rate rose from 10 to 20 percent",
        "a @ b, me@, @home, mail@host",
        "99/99/99 and 2023-19-42 are no dates",
        "score 12.5 of 100.00, ratio 3:1",
        "",
    ],
)
def test_numbers_of_a_clinic_are_left_alone(text):
    assert scrub(text) == text


def test_folding_keeps_the_places():
    text = "a\u200bb\u00a0\uff11\u0663 caf\u00e9"
    folded = folding.fold(text)
    assert folded.text == "ab 13 café"
    for place, character in enumerate(folded.text):
        start, end = folded.place(place, place + 1)
        assert folding.fold(text[start:end]).text == character
    spelled = folding.fold("x two one two five-oh y", spelled=True)
    assert spelled.text == "x 2125-0 y" and spelled.place(2, 8) == (2, 21)
    assert folding.fold("two one", spelled=True).text == "two one"


def test_check_digits():
    assert scrub(CARD) == "[CARD]" and {scrub(CARD[:-1] + d) for d in "023456789"} == {"[NUMBER]"}


@given(st.text(max_size=80))
def test_scrubbing_any_text_leaves_spans_inside_it_and_is_stable(text):
    done = defenses.PatternScrubber(spelled=True).scrub(text)
    assert all(0 <= s.start < s.end <= len(text) for s in done.spans)
    again = defenses.PatternScrubber(spelled=True).scrub(done.text)
    assert len(again.spans) <= len(done.spans) + 1


HOSTILE = {
    "digits": "1", "digits and spaces": "1 ", "letters": "a", "signs": "@", "almost mail": "a@a.",
    "almost hosts": "a@a-", "dashes": "1-", "almost phones": "212-", "almost numbers": "2222-",
    "brackets": "(", "plus": "+1", "labels": "MRN ", "months": "Jan ", "streets": "1 A ", "dates": "1/1/",
    "Arabic-Indic": "\u0661", "zero width": "1\u200b", "bracketed at": "[at]", "words": "one two ",
}  # fmt: skip


@pytest.mark.parametrize("kind", HOSTILE)
def test_time_is_linear_in_hostile_text(kind):
    piece = HOSTILE[kind]

    def seconds(size):
        text = (piece * (size // len(piece) + 1))[:size]
        clock = time.process_time()
        defenses.find_identifiers(text, spelled=True)
        return time.process_time() - clock

    # A megabyte takes about a tenth of a second; quadratic time would take hours.
    assert seconds(1_000_000) < 1.5


STRICT = ("ssn", "phone", "email", "mrn")


def test_planted_strict_identifiers_are_found_with_a_lower_bound():
    """At least 99.5 % of planted numbers and addresses, on templates that the patterns never saw."""
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


def test_false_alarms_on_text_without_identifiers_have_a_small_upper_bound():
    from privhelpers.records._public import annotate_public

    corpus = make_public_corpus(seed=5, documents=11_500)
    clean = [note["text"] for note in annotate_public(corpus, seed=5) if not note["spans"]]
    alarms = sum(bool(defenses.find_identifiers(text)) for text in clean)
    rate = stats.clopper_pearson(alarms, len(clean))
    assert len(set(clean)) >= 7_500 and rate.high < 0.0005, rate


def test_unusual_notes_know_where_everything_stands():
    notes = formats.make_unusual_notes(seed=3, people=30)
    assert len(notes) == 90 and notes == formats.make_unusual_notes(seed=3, people=30)
    for note in notes:
        for span in note["spans"]:
            assert note["text"][span["start"] : span["end"]] == span["value"]
            assert span["form"] in formats.FORMATS[span["identifier"]]
    seen = {(span["identifier"], span["form"]) for note in notes for span in note["spans"]}
    assert len(seen) > 30
