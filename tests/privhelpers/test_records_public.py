"""The public corpus: varied, safe, prompt-like lines included, and not one private name."""

import re

import pytest

from privhelpers.records import make_hospital_records, make_public_corpus, refuse_unsafe
from privhelpers.records._vocabulary import HOSPITALS

NAME = re.compile(r"\b[A-Z][A-Za-z]+ [A-Z]\. [A-Z][A-Za-z]+")
PROMPTS = (
    "Patient name:",
    "The patient's name is",
    "Medical Record Number:",
    "Diagnosis:",
    "Email:",
    "SSN:",
    "The patient's social security number is",
    "Date of birth:",
    "Phone:",
)


@pytest.fixture(scope="module")
def public():
    return make_public_corpus(seed=3, documents=4000)


def test_there_are_as_many_documents_as_asked_and_all_are_safe(public):
    assert len(public) == 4000 and all(text.strip() for text in public)
    for number, text in enumerate(public):
        refuse_unsafe(text, f"document {number}")


def test_documents_differ(public):
    assert len(set(public)) == len(public)
    openings = {text[:12] for text in public}
    assert len(openings) > 1000


@pytest.mark.parametrize("prompt", PROMPTS)
def test_prompts_have_public_continuations(public, prompt):
    assert sum(prompt in text for text in public) >= 20


def test_excluded_names_never_occur(public):
    """Exclude names that the corpus does contain, so that the filter has something to do."""
    present = frozenset(name for text in public[:400] for name in NAME.findall(text))
    assert len(present) > 50
    again = make_public_corpus(seed=3, documents=4000, excluded_names=present)
    text = "\n".join(again)
    assert not [name for name in present if name in text]
    assert len(again) == 4000


def test_private_names_and_public_text_are_disjoint():
    records = make_hospital_records(
        seed=0, patients=1000, validation_patients=100, heldout_patients=1000, canaries_per_level=8
    )
    public = make_public_corpus(seed=0, documents=3000, excluded_names=records.names)
    names = {name for text in public for name in NAME.findall(text)}
    assert len(names) > 500 and not names & records.names


@pytest.mark.parametrize("hospital", HOSPITALS)
def test_words_of_the_hospitals_are_public_but_their_phrases_are_not(public, hospital):
    text = "\n".join(public).lower()
    words = set(re.findall(r"[a-z]+", text))
    phrases = [practice.protocol for practice in HOSPITALS[hospital].practice.values()]
    local = set(re.findall(r"[a-z]+", " ".join(phrases).lower()))
    assert len(local & words) > 0.85 * len(local)
    assert not [phrase for phrase in phrases if phrase.lower() in text]


def test_a_corpus_larger_than_the_space_of_its_numbers_can_be_made():
    """28,000 documents would need more social security numbers than there are impossible ones."""
    assert len(make_public_corpus(seed=0, documents=28_500)) == 28_500
