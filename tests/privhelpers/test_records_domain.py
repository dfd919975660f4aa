"""Records of other domains come from the hospital's code and a file, which is refused if it is of no use."""

import copy
import re
from functools import reduce

import pytest

from privhelpers import domains
from privhelpers.artifacts import parse_yaml
from privhelpers.errors import InvalidParameter, MissingArtifact, UnsafeIdentifier
from privhelpers.records import (
    CLINICAL,
    as_domain,
    drug_questions,
    make_hospital_records,
    read_domain,
    refuse_unsafe,
)

SIZES = {"patients": 60, "validation_patients": 5, "heldout_patients": 150, "canaries_per_level": 2}
LETTERS = parse_yaml((domains.FOLDER / "letters.yml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def letters():
    return make_hospital_records(domain=domains.take("letters"), seed=3, report_share=0.5, **SIZES)


def test_letters_have_their_own_words_and_numbers_and_the_same_keys(letters):
    bank, notes = domains.take("letters"), letters.train + letters.heldout
    hospital = make_hospital_records(seed=3, **SIZES).train
    assert {key for note in notes for key in note} == {key for note in hospital for key in note}
    assert {note["condition"] for note in notes} <= set(bank.all_topics)
    for note in notes:
        refuse_unsafe(note["text"], "a letter")
        assert note["condition"] in note["text"] and "{" not in note["text"]
        assert all(note["text"][span["start"] : span["end"]] == span["value"] for span in note["spans"])
        assert bool(note["spans"]) == (note["kind"] != "narrative")
    written = " ".join(note["text"] for note in notes)
    assert "SYN-" not in written and not [word for word in CLINICAL.answers if word in written]
    for canary in letters.canaries:
        assert canary.prefix.endswith("(Account: ZZ00-") and canary.name in canary.prefix
        assert (canary.secret in written) == canary.planted
    starts, given = drug_questions(letters.heldout, bank.answers)
    for note, start, number in zip(letters.heldout, starts, given, strict=True):
        assert note["text"].startswith(f"{start} {bank.answers[number]}")


def test_ranges_are_drawn_and_lists_chosen_from():
    domain = changed(("numbers", "text", "amount"), [7, 9])
    notes = make_hospital_records(domain=domain, seed=0, **SIZES).heldout
    rates = [float(found[1]) for note in notes if (found := re.search(r"at (\S+)%", note["text"]))]
    amounts = {found[1] for note in notes if (found := re.search(r"\$(\d+)", note["text"]))}
    assert amounts == {"7", "9"} and rates and all(1.1 <= rate < 7 for rate in rates)


def changed(place, value):
    given = copy.deepcopy(LETTERS)
    *way, last = place
    inner = reduce(lambda one, key: one[key], way, given)
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return as_domain(given, "letters.yml")


REFUSED = {
    "a key is missing": (("topics",), None, "topics: is missing"),
    "a key is unknown": (("themes",), ["A"], "'themes'"),
    "no list": (("actions",), "Phone Call", "actions = "),
    "too few": (("answers",), ["Refund", "Gift"], "answers = "),
    "an entry is no text": (("topics",), ["Lost Card", 3], "topics, entry 2 = 3"),
    "an entry is given twice": (("prompts",), ["Name:", "Name:"], "prompts, entry 2"),
    "a topic is common and rare": (("rare_topics",), ["Overdraft"], "rare_topics: 'Overdraft'"),
    "a number that may be issued": (("number_prefix",), "DE12-", "number_prefix = 'DE12-'"),
    "an empty range": (("numbers", "person", "years"), "38-1", "numbers: person: years"),
    "no range": (("numbers", "person", "years"), "many", "numbers: person: years"),
    "a field of two kinds": (("numbers", "text", "desk"), "1-9", "letters.yml: desk: "),
    "no private institution": (("institutions",), {"uptown": {}}, "institutions = "),
    "a phrase too few": (("institutions", "uptown", "phrases"), ["a", "b"], "institutions: uptown: phrases"),
    "other words": (("institutions", "uptown", "words"), {"desk": ["Bay"]}, "institutions: uptown: words"),
    "a first topic that is none": (("institutions", "uptown", "first"), ["Gout"], "uptown: first: 'Gout'"),
    "a shift that repeats": (("answers",), ["Refund", "Gift", "Bonus", "Month"], "private: shift = 1"),
    "a shift that is no count": (("institutions", "uptown", "shift"), 1.5, "uptown: shift = 1.5"),
    "an unknown field": (("templates", "report"), ["{name}, {mater}, {offer}"], "report, entry 1: {mater}"),
    "a conversion": (("templates", "report"), ["{name!r}, {matter}, {offer}"], "report, entry 1: {name}"),
    "an identifier in a narrative": (("templates", "narrative"), ["{name}"], "narrative, entry 1: {name}"),
    "a report without an identifier": (("templates", "report"), ["{matter}: {offer}"], "report, entry 1: "),
    "an answer before its topic": (("templates", "narrative"), ["{offer}: {matter}"], "narrative, entry 1"),
    "a brace without its pair": (("templates", "narrative"), ["{matter"], "narrative, entry 1"),
    "a canary without a secret": (("canary", "template"), "{name}", "canary: template"),
    "a canary of no topic": (("canary", "topic"), "Gout", "canary: topic = 'Gout'"),
    "an answer within other words": (("actions",), ["Refund Form", "Call", "Chat"], "answers: 'Refund'"),
}


@pytest.mark.parametrize(("place", "value", "told"), REFUSED.values(), ids=REFUSED)
def test_a_file_that_cannot_be_used_is_refused_with_its_place(place, value, told):
    with pytest.raises(InvalidParameter, match=r"^letters\.yml") as refusal:
        changed(place, value)
    assert told in str(refusal.value)


def test_a_real_looking_number_in_a_file_is_refused():
    with pytest.raises(UnsafeIdentifier, match=r"letters\.yml: prompts: 1: the telephone number"):
        changed(("prompts",), ["Call " + "-".join(("212", "736", "5000"))])


def test_files_that_are_none_are_refused(tmp_path):
    with pytest.raises(InvalidParameter, match="domain = 'students'"):
        domains.take("students")
    with pytest.raises(MissingArtifact, match=r"none\.yml"):
        read_domain(tmp_path / "none.yml")
    file = tmp_path / "bad.yml"
    file.write_text("topics: [A\n", encoding="utf-8")
    with pytest.raises(InvalidParameter, match=r"bad\.yml: line"):
        read_domain(file)
    file.write_text("- A\n", encoding="utf-8")
    with pytest.raises(InvalidParameter, match=r"bad\.yml = "):
        read_domain(file)
