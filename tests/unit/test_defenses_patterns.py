"""Patterns and spans: merging, formats, false positives, and time on hostile text."""

import itertools
import re
import time

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privhelpers import defenses, stats
from privhelpers.defenses import Span, folding, formats, measuring
from privhelpers.defenses.patterns import luhn
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
    assert luhn(CARD) and not any(luhn(CARD[:-1] + d) for d in "023456789")


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
    found = defenses.PatternScrubber().find_all(note["text"] for note in notes)
    table = measuring.recall(notes, found).set_index("identifier")
    for identifier in STRICT:
        n, hits = table.loc[identifier, ["n", "hits"]].astype(int)
        if n >= 740:
            assert stats.clopper_pearson(hits, n).low >= 0.995
        assert hits == n, identifier
    assert table.loc[list(STRICT), "n"].sum() >= 3000
    pooled = table.loc[list(STRICT)].sum()
    assert stats.clopper_pearson(int(pooled["hits"]), int(pooled["n"])).low >= 0.995
    assert table.loc["name", "hits"] == 0  # what no pattern can find


def test_false_alarms_on_text_without_identifiers_have_a_small_upper_bound():
    from privhelpers.records.public import annotate_public

    corpus = make_public_corpus(seed=5, documents=11_500)
    clean = [note["text"] for note in annotate_public(corpus, seed=5) if not note["spans"]]
    rate = measuring.false_alarms(clean, defenses.find_identifiers)
    assert len(clean) >= 7_500 and rate.high < 0.0005, rate


def test_coverage_counts_letters_and_digits_only():
    text = "tel (212) 555-0123."
    assert measuring.covered(text, 4, 18, [Span(5, 8, "a"), Span(10, 18, "b")]) == 1
    assert measuring.covered(text, 4, 18, [Span(5, 8, "a")]) == pytest.approx(0.3)
    assert measuring.covered(text, 4, 18, []) == 0


def test_recall_and_precision_count_places():
    notes = [
        {
            "patient_id": f"p{i}",
            "text": "Ann 12 x",
            "spans": [{"identifier": "name", "start": 0, "end": 3, "value": "Ann"}],
        }
        for i in range(4)
    ]
    found = [[Span(0, 3, "name")], [Span(0, 2, "name")], [Span(4, 6, "number")], []]
    (row,) = measuring.recall(notes, found).to_dict("records")
    assert (row["n"], row["hits"], row["partly"], row["patients"]) == (4, 1, 1, 4)
    assert row["low"] <= row["rate"] == 0.25 <= row["high"]
    table = measuring.precision(notes, found).set_index("kind")
    assert table.loc["all", "n"] == 3 and table.loc["all", "hits"] == 2 and table.loc["number", "hits"] == 0
    with pytest.raises(InvalidParameter, match="found"):
        measuring.recall(notes, found[:2])
    with pytest.raises(InvalidParameter, match="repeat"):
        measuring.false_alarms(["a", "a"], defenses.find_identifiers)


def test_unusual_notes_know_where_everything_stands():
    notes = formats.make_unusual_notes(seed=3, people=30)
    assert len(notes) == 90 and notes == formats.make_unusual_notes(seed=3, people=30)
    for note in notes:
        for span in note["spans"]:
            assert note["text"][span["start"] : span["end"]] == span["value"]
            assert span["form"] in formats.FORMATS[span["identifier"]]
    seen = {(span["identifier"], span["form"]) for note in notes for span in note["spans"]}
    assert len(seen) > 30


def test_what_stays_is_one_row_a_patient():
    notes = [
        {"patient_id": "p1", "condition": "COPD", "text": "Mill Room: 44 year old woman, COPD."},
        {
            "patient_id": "p1",
            "condition": "Asthma",
            "text": "Round with Dr Vale: woman, 44, Asthma on Mill Room.",
        },
        {"patient_id": "p2", "condition": "GERD", "text": "GERD visit, Short Stay."},
    ]
    table = measuring.what_stays(notes)
    assert table.to_dict("index") == {
        "p1": {"age": "44", "sex": "woman", "conditions": "Asthma, COPD", "wards": "Mill Room"}
    }


def test_scrubbers_are_compared_on_every_set_of_notes():
    notes = formats.make_unusual_notes(seed=1, people=8)

    class Nothing:
        def find_all(self, texts):
            return [[] for _ in texts]

    scrubbers = {"patterns": defenses.PatternScrubber(), "nothing": Nothing()}
    done = measuring.compare(scrubbers, {"a": notes, "b": notes[:6]})
    assert set(done.found) == {("a", "patterns"), ("a", "nothing"), ("b", "patterns"), ("b", "nothing")}
    rates = done.recall.set_index(["notes", "scrubber", "identifier"])["rate"]
    assert (rates.xs("nothing", level="scrubber") == 0).all() and rates.max() > 0
    assert set(done.precision["scrubber"]) == {"patterns"}  # nothing found, nothing to be right about


def test_more_knowledge_never_leaves_fewer_alone():
    table = pd.DataFrame({"sex": list("wmwm"), "age": ["30", "30", "30", "40"], "wards": list("aabb")})
    shares = measuring.alone_by_knowledge(table, ["sex", "age", "wards"], below=(2,))
    assert shares["rate"].tolist() == [0.0, 0.5, 1.0] and (shares["n"] == 4).all()
    assert ((shares["low"] <= shares["rate"]) & (shares["rate"] <= shares["high"])).all()


def test_removed_copies_are_told_apart():
    notes = [
        {"patient_id": p, "kind": k, "text": t}
        for p, k, t in (
            ("c1", "canary", "one two three four"),
            ("c1", "canary", "one two three four"),
            ("p1", "report", "five six seven eight"),
            ("p2", "report", "five six seven eight"),
        )
    ]
    counts = measuring.removed_copies(notes, defenses.deduplicate(notes))
    assert counts == {"removed": 2, "of canaries": 1, "for another patient": 1}


def test_the_usual_patterns_have_the_known_gaps():
    missed = (
        "(212) 555-0123",
        "212 555 0123",
        "+1 212 555 0123",
        "000 12 0000",
        "jan\u00e9@mail.example.org",
    )
    assert [measuring.usual_kinds(text) for text in missed] == ["-"] * len(missed)
    assert measuring.usual_kinds("reference 2125550123") == "phone"
    assert measuring.usual_kinds("999.999.999.999") == "ip" and measuring.usual_kinds(CARD) == "phone, card"
