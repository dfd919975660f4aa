"""The three rules about text: one spelling, one match, one way to make it harmless."""

import re
import sys
import unicodedata
from html import unescape

import pytest
import spellings
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from privhelpers.accounting import PrivacySpent
from privhelpers.spelling import UNSEEN
from privhelpers.text import (
    found_among,
    found_in,
    inert,
    inserted,
    normalize,
    places,
    rounded_down,
    rounded_up,
    stands_in,
)


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("Ann  B.\nHill ", "ann b. hill"),
        ("ＡＮＮ", "ann"),
        ("Jose\u0301", "jos\u00e9"),
        ("stra\u00dfe", "STRASSE"),
        ("O\u2019Brien\u2013Hill", "o'brien-hill"),
        ("a\u200bn\u00adn", "ann"),
        ("Zoe\u200b\u0308", "zo\u00eb"),  # trial 8532 of seed 2
        ("a\u00a0b", "a b"),
    ],
)
def test_what_reads_the_same_has_one_spelling(text, other):
    assert normalize(text) == normalize(other)


# Every character that is assigned, and some of those that are not, or are for private use.
EVERYTHING = "".join(
    c
    for c in map(chr, range(sys.maxunicode + 1))
    if unicodedata.category(c) not in ("Cn", "Co") or ord(c) % 997 == 0
)
DASHES, APOSTROPHES, QUOTES = "\u02d7\u2043\u2212", "´ʹʻʼʽʿ׳‘’‚‛′ꞌ", "״“”„‟″"
PLAIN = dict.fromkeys(DASHES, "-") | dict.fromkeys(APOSTROPHES, "'") | dict.fromkeys(QUOTES, '"')
PLAIN |= dict.fromkeys("⁄∕", "/") | dict.fromkeys(UNSEEN, "")


def as_read(character):
    """Return a character as every reader sees it: a digit, a dash, a blank, nothing, or itself."""
    said = {"Cf": "", "Pd": "-", "Zs": " "}.get(unicodedata.category(character), character)
    if unicodedata.category(character) == "Nd":
        return str(unicodedata.decimal(character))
    return PLAIN.get(character, said)


def normalized_one_by_one(text):
    """Return the one spelling of a text as its definition says it, with a look at each character."""
    folded = text.replace("´", "'")
    for _ in range(3):
        folded = unicodedata.normalize("NFKD", folded).casefold()
    plain = "".join(map(as_read, unicodedata.normalize("NFKD", folded)))
    return " ".join(unicodedata.normalize("NFKC", plain).split())


def test_the_short_way_is_right_for_every_character():
    ascii_text = "".join(map(chr, range(128)))
    assert normalize(ascii_text) == normalized_one_by_one(ascii_text)
    texts = [
        "".join(f"E{c}\u0301" for c in EVERYTHING[n : n + 1000]) for n in range(0, len(EVERYTHING), 1000)
    ]
    assert all(normalize(text) == normalized_one_by_one(text) for text in texts)


@pytest.mark.parametrize(
    ("value", "text", "stands"),
    [
        ("Ann B. Hill", "Ann B. Hillary", False),
        ("000006789", "000 00 6789", True),
        ("000-00-6789", "SSN_000-00-6789", True),
        ("000-00-6789", "000-00-67890", False),
        ("(617) 555-0123", "+1 617 555 0123", True),
        ("SYN-12345678", "syn-1234 5678", True),
        ("44", "aged 44.", True),
        ("a.hill0001@mail.example.org", "<A.Hill0001@mail.example.org>", True),
        ("...", "a ... b", False),
        ("", "anything", False),
    ],
)
def test_the_rule(value, text, stands):
    assert stands_in(value, text) == stands
    assert bool(places(value, text)) == stands


@pytest.mark.wrong_numbers
@pytest.mark.parametrize(("value", "text"), spellings.SAME)
def test_a_value_is_found_in_every_spelling(value, text):
    assert stands_in(value, text) and places(value, text)
    assert found_among([value, "nobody"], ["", text]) == found_in([value, "nobody"], text) == [value]


@pytest.mark.wrong_numbers
@pytest.mark.parametrize(("value", "text"), spellings.OTHERS)
def test_another_value_is_not_found(value, text):
    assert not stands_in(value, text) and not places(value, text) and not found_among([value], [text])


@pytest.mark.wrong_numbers
def test_a_value_is_located_despite_markup_between_its_letters():
    text = "患者 <b>Ann</b>&nbsp;Hi\u00adll, tel ( 617 ) 555 - 0123 and dis-\ncharged"
    found = [
        text[start:end]
        for value in ("Ann Hill", "617-555-0123", "discharged")
        for start, end in places(value, text)
    ]
    assert found == ["Ann</b>&nbsp;Hi\u00adll", "617 ) 555 - 0123", "dis-\ncharged"]


def test_many_values_are_searched_in_many_texts():
    values = ["Ann Hill", "Bob Lee", "617-555-0123", "12 Elm St", "A. B", "...", "Ann Hillary", "nobody"]
    texts = [
        "bob LEE, (617) 555-0123; Joann Hill",
        "",
        "seen: a b, 12  elm st.",
        "annhill hillary",
        "hill ann",
    ]
    one_by_one = [value for value in values if any(stands_in(value, text) for text in texts)]
    assert found_among(values, texts) == one_by_one == ["Bob Lee", "617-555-0123", "12 Elm St"]
    assert found_among(values[:2], ["Ann", "Hill", "Ann Hill"]) == ["Ann Hill"]
    assert found_among([], texts) == found_among(values, []) == []


@pytest.mark.parametrize(
    ("value", "text", "expected"),
    [
        ("ann hill", "Ann Hill and ann\n hill", ["Ann Hill", "ann\n hill"]),
        ("strasse 1", "die Straße 1!", ["Straße 1"]),
        ("000006789", "no. 000-00-6789.", ["000-00-6789"]),
        ("fine", "  a \ufb01ne day", ["\ufb01ne"]),
    ],
)
def test_places_are_those_of_the_text_as_it_was_written(value, text, expected):
    assert [text[start:end] for start, end in places(value, text)] == expected


def test_active_characters_are_escaped():
    left = {c for c in set(inert(EVERYTHING)) if unicodedata.category(c)[0] in "CZ"}
    assert left == {" "}
    assert inert("a\u202eb\x1b[31m\n\ud800") == r"a\u202eb\x1b[31m\n\ud800"
    assert inert("a\n\tb\r", keep="\n\t") == "a\n\tb\\r"
    for letter in "\u034f\u115f\u17b5\u180b\u2800\u3164\ufe0f\uffa0\U000e0100":  # they have no shape
        assert inert(f"Ann{letter}Hill") == f"Ann{ascii(letter)[1:-1]}Hill"
    pile, kept = "e" + 7 * "\u0301", "x" + 4 * "\u0323"
    assert inert(pile + kept) == pile[:5] + 3 * r"\u0301" + kept
    ordinary = "ε = 8, naïve café, second line 日本, $x$ *a* 👍, Việt, שָּׁלוֹם"
    assert inert(ordinary) == ordinary


@given(st.text())
def test_html_shows_the_characters(text):
    page = inert(text, html=True)
    assert unescape(page) == unescape(inert(text).replace("&", "&amp;"))
    assert not re.search(r"[<>\"']|&(?!amp;|lt;|gt;|quot;|#x27;)", page)


@given(st.floats(min_value=1e-12, max_value=1e12))
def test_a_rounded_bound_stays_on_the_safe_side(number):
    above, below = rounded_up(number), rounded_down(number)
    assert below <= number <= above and above - below <= 1.01e-3 * number
    spent = PrivacySpent(number, 1e-5, 1.0, 0.1, 100)
    assert float(str(spent).split()[2]) >= number


def test_a_template_inserts_text_inert_and_our_markup_as_it_is():
    ours = Markup("<b>\u00a0</b>")
    assert inserted("a\u202e\u00a0", keep="\u00a0") == "a\\u202e\u00a0"
    assert inserted(ours) is ours and inserted(0.5) == 0.5 and inserted(None) is None
