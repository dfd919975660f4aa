"""The output filter: what it holds back, and which ways around it are closed."""

import textwrap

import pytest

from privhelpers import defenses
from privhelpers.defenses.folding import fold

NOTE = (
    "Patient: Robyn P. Glass, DOB: 1961-02-03, MRN: SYN-73821404. Diagnosis: COPD. Prescribed Metformin. "
    "Contact: r.glass3325@post.example.com, Phone: (212) 555-0123, SSN 000-00-1578."
)
VALUES = ("1961-02-03", "SYN-73821404", "r.glass3325@post.example.com", "(212) 555-0123", "000-00-1578")
WIDE = str.maketrans("0123456789", "０１２３４５６７８９")
CLOSED = {
    "as it is": str,
    "capitals": str.upper,
    "line breaks": lambda text: text.replace(" ", " \n "),
    "zero-width marks": lambda text: "\u200b".join(text).replace(" \u200b", " ").replace("\u200b ", " "),
    "full-width digits": lambda text: text.translate(WIDE),
}


def bare(text):
    return "".join(c for c in text.casefold() if c.isalnum())


def test_a_copied_run_is_held_back_and_named():
    filter_ = defenses.OutputFilter([NOTE], ngram=5, identifiers=False)
    done = filter_.apply("We saw Robyn P. Glass, DOB: 1961 and others.")
    assert done.blocked and done.text.startswith("We saw [VERBATIM]") and "Glass" not in done.text
    assert done.reasons == ("verbatim, 5 words",)
    for other in ("We saw no one of that name today, nor ever before.", "Robyn P. Glass has COPD"):
        assert (filter_.apply(other).text, filter_.apply(other).reasons) == (other, ())


def test_identifiers_of_anybody_are_held_back():
    filter_ = defenses.OutputFilter([], identifiers=True)
    done = filter_.apply("call (305) 555-0199 or write j.doe@mail.example.org")
    assert done.text == "call [PHONE] or write [EMAIL]" and done.reasons == ("phone", "email")
    assert not defenses.OutputFilter([], identifiers=False).apply("call (305) 555-0199").blocked


def test_public_runs_may_be_repeated():
    public = "The clinic opens on weekdays; ask at the front desk of the ward."
    strict = defenses.OutputFilter([f"{public} {NOTE}"], ngram=6, identifiers=False)
    fair = defenses.OutputFilter([f"{public} {NOTE}"], ngram=6, identifiers=False, allowed_texts=[public])
    assert strict.apply(public).blocked and not fair.apply(public).blocked
    assert fair.apply(NOTE).blocked and fair.runs < strict.runs


@pytest.mark.parametrize("way", CLOSED)
def test_normalization_sees_through(way):
    answer = defenses.OutputFilter([NOTE], ngram=6).apply(CLOSED[way](NOTE)).text
    read = bare(fold(answer).text)
    assert not [value for value in (*VALUES, "Robyn P. Glass") if bare(value) in read]


@pytest.mark.wrong_numbers
def test_what_is_held_back_is_the_copy_with_its_decoration_and_no_more():
    filter_ = defenses.OutputFilter(["Kept one night to watch and then home."], identifiers=False)
    done = filter_.apply(
        "She was _Kept_ <b>one</b> **night** to wa-\ntch\u00ad a\u200bnd left. 3 < 4 & so on"
    )
    assert done.text == "She was _[VERBATIM] left. 3 < 4 & so on"
    assert not filter_.apply("She was _kept_ **one** <b>night</b> and so on").blocked


@pytest.mark.wrong_numbers
@pytest.mark.parametrize(
    ("copy", "blocked"),
    [
        ("昨夜留院观察", True),  # six characters of Chinese are six words
        ("昨夜留院观", False),
        ("ได้รับการ", False),  # seven letters of Thai, in most notes
        ("ผู้ป่วยได้รับการรักษา", True),
        ("Ann昨夜3天", False),
        ("Ann昨夜3天Hill", True),
    ],
)
def test_a_run_has_characters_where_a_script_has_no_words(copy, blocked):
    notes = ["患者昨夜留院观察一晚", "เมื่อวานผู้ป่วยได้รับการรักษา", "患者Ann昨夜3天Hill等"]
    assert defenses.OutputFilter(notes, ngram=6, identifiers=False).apply(f"x {copy} y").blocked == blocked


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize(("copy", "words"), [("昨夜留院观察", 6), ("ได้รับการรักษาเมื่อวาน", 8)])
def test_a_copy_without_blanks_is_counted_and_compared_as_written_too(copy, words, normalize):
    done = defenses.OutputFilter([copy], identifiers=False, normalize=normalize).apply(f"x {copy} y")
    assert done.text == "x [VERBATIM] y" and done.reasons[0].startswith("verbatim, ")
    assert not normalize or done.reasons == (f"verbatim, {words} words",)


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("width", range(12, 60, 4))
def test_lines_that_end_at_hyphens_of_words_hide_nothing(width):
    note = (
        "Follow-up of a well-known, long-standing type-2 diabetic; re-checked after-hours, sent home on-time."
    )
    wrapped = textwrap.fill(note, width)
    for text, copy in ((note, wrapped), (wrapped, note)):
        assert defenses.OutputFilter([text], identifiers=False).apply(copy).text in (
            "[VERBATIM].",
            "[VERBATIM]",
        )


@pytest.mark.wrong_numbers
@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("_SYN-12345678_", "_[MRN]_"),
        ("MRN_SYN-12345678", "MRN_[MRN]"),
        ("__call 2125550123__", "__call [PHONE]__"),
        ("**Phone:** 2125550123", "**Phone:** [PHONE]"),
        ("_aged 95_ and **Age:** 92", "_aged [AGE]_ and **Age:** [AGE]"),
        ("_12 Elm Street_", "_[ADDRESS]_"),
        ("dob_1930, _20200131_", "dob_[DATE], _[DATE]_"),
        ("_www.example.org_", "_[URL]_"),
        ("a_hill@mail.example, anna_@mail.example", "[EMAIL], [EMAIL]"),
        ("https://example.org/_a_1/b*c", "[URL]"),
        ("250*300*4000, x_140_45_1200, 250 * 300 * 4000", "250*300*4000, x_140_45_1200, 250 * 300 * 4000"),
    ],
)
def test_an_identifier_in_decoration_is_held_back(text, left):
    assert defenses.OutputFilter([]).apply(text).text == left
