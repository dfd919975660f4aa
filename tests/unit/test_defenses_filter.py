"""The output filter: what it holds back, what goes around it, and what the bypasses really change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from privhelpers import defenses
from privhelpers.defenses import measuring
from privhelpers.defenses.bypasses import BYPASSES, bare, recovered, recovery_rates
from privhelpers.errors import InvalidParameter

NOTE = (
    "Patient: Robyn P. Glass, DOB: 1961-02-03, MRN: SYN-73821404. Diagnosis: COPD. Prescribed Metformin. "
    "Contact: r.glass3325@post.example.com, Phone: (212) 555-0123, SSN 000-00-1578."
)
VALUES = ("1961-02-03", "SYN-73821404", "r.glass3325@post.example.com", "(212) 555-0123", "000-00-1578")
REPAIRED = ("as it is", "capitals", "line breaks", "zero-width marks", "full-width digits")
OPEN = ("letters apart", "backwards")


def test_a_copied_run_is_held_back_and_named():
    filter_ = defenses.OutputFilter([NOTE], ngram=5, identifiers=False)
    done = filter_.apply("We saw Robyn P. Glass, DOB: 1961 and others.")
    assert done.blocked and done.text.startswith("We saw [VERBATIM]") and "Glass" not in done.text
    assert done.reasons == ("verbatim, 5 words",)
    other = filter_.apply("We saw nobody of that name today, nor ever before.")
    assert not other.blocked and other.reasons == () and other.text.startswith("We saw nobody")


def test_a_copy_shorter_than_a_run_passes():
    filter_ = defenses.OutputFilter([NOTE], ngram=5, identifiers=False)
    assert not filter_.apply("Robyn P. Glass has COPD").blocked


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


@pytest.mark.parametrize("name", REPAIRED)
def test_normalization_sees_through(name):
    bypass = BYPASSES[name]
    filter_ = defenses.OutputFilter([NOTE], ngram=6)
    answer = filter_.apply(bypass.change(NOTE)).text
    assert not [value for value in VALUES if recovered(value, answer, bypass)]
    assert not recovered("Robyn P. Glass", answer, bypass)


@pytest.mark.parametrize("name", OPEN)
def test_normalization_does_not_see_through(name):
    bypass = BYPASSES[name]
    answer = defenses.OutputFilter([NOTE], ngram=6).apply(bypass.change(NOTE))
    assert all(recovered(value, answer.text, bypass) for value in VALUES)


def test_comparing_as_written_misses_capitals_and_digit_words():
    plain = defenses.OutputFilter([NOTE], ngram=6, normalize=False, identifiers=False)
    assert plain.apply(NOTE).blocked
    for name in ("capitals", "digits in words"):
        bypass = BYPASSES[name]
        answer = plain.apply(bypass.change(NOTE))
        assert all(recovered(value, answer.text, bypass) for value in VALUES[:2])
    full = defenses.OutputFilter([NOTE], ngram=6)
    bypass = BYPASSES["digits in words"]
    assert not recovered("(212) 555-0123", full.apply(bypass.change(NOTE)).text, bypass)


@pytest.mark.parametrize("name", BYPASSES)
def test_a_bypass_loses_nothing_for_its_reader(name):
    bypass = BYPASSES[name]
    assert all(recovered(value, bypass.change(NOTE), bypass) for value in VALUES[:2])
    if name != "other words":
        assert bare(bypass.undo(bypass.change("Robyn P. Glass"))) == "robynpglass"


@given(st.text(max_size=60))
def test_any_text_is_filtered_without_protected_runs(text):
    done = defenses.OutputFilter([], identifiers=False).apply(text)
    assert done.text == text and not done.blocked


@given(st.lists(st.sampled_from("abcdefgh"), min_size=6, max_size=40).map(" ".join))
def test_a_protected_text_never_passes_whole(text):
    done = defenses.OutputFilter([text], ngram=6, identifiers=False).apply(text)
    assert done.text == "[VERBATIM]"


def test_runs_are_words():
    with pytest.raises(InvalidParameter, match="ngram"):
        defenses.OutputFilter([NOTE], ngram=0)


def notes_with_spans():
    spans = [
        {"identifier": "x", "start": NOTE.index(v), "end": NOTE.index(v) + len(v), "value": v} for v in VALUES
    ]
    return [{"patient_id": p, "text": NOTE, "spans": spans} for p in ("p1", "p2")]


def test_recovery_is_counted_for_each_way_and_filter():
    filters = {
        "open": defenses.OutputFilter([], identifiers=False),
        "full": defenses.OutputFilter([NOTE], ngram=6),
    }
    table = recovery_rates(notes_with_spans(), filters).set_index(["bypass", "filter"])
    assert (table["n"] == 2 * len(VALUES)).all() and len(table) == 2 * len(BYPASSES)
    assert table.loc[("as it is", "open"), "rate"] == 1 and table.loc[("as it is", "full"), "rate"] == 0
    assert ((table["low"] <= table["rate"]) & (table["rate"] <= table["high"])).all()
    with pytest.raises(InvalidParameter, match="none holds"):
        recovery_rates([{"patient_id": "p", "text": "x", "spans": []}], filters)


def test_the_share_held_back_is_of_characters():
    filter_ = defenses.OutputFilter([NOTE], ngram=6, identifiers=False)
    shares = measuring.held_back(filter_, [{"text": NOTE}, {"text": "nothing of it"}])
    assert shares[0] == pytest.approx(1, abs=0.02) and shares[1] == 0
