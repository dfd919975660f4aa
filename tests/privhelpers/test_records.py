"""The private records and the public corpus: spans, split, canaries, and the same bytes everywhere."""

import dataclasses
import hashlib
import json
import os
import random
import re
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from privhelpers.artifacts import Store
from privhelpers.errors import InvalidParameter, UnsafeIdentifier
from privhelpers.records import (
    MEDICATIONS,
    SPACE_BITS,
    Stays,
    annotate_public,
    by_patient,
    drug_questions,
    make_hospital_records,
    make_public_corpus,
    read_canaries,
    read_notes,
    read_public,
    refuse_unsafe,
    take_few,
    write_records,
)
from privhelpers.records._canaries import LEVELS, SPACE, make_canaries
from privhelpers.records._identifiers import PeopleFactory

SIZES = {
    "patients": 300,
    "validation_patients": 60,
    "heldout_patients": 300,
    "canaries_per_level": 6,
    "crowd_patients": 200,
}
GROUPS = ("train", "validation", "heldout", "crowd")
ROOT = Path(__file__).parents[2]
NAME = re.compile(r"\b[A-Z][A-Za-z]+ [A-Z]\. [A-Z][A-Za-z]+")
BAD = "Call " + "-".join(("212", "736", "5000"))


@pytest.fixture(scope="module")
def records():
    return make_hospital_records(seed=11, **SIZES)


@pytest.fixture(scope="module")
def public():
    return make_public_corpus(seed=3, documents=4000)


def everything(records):
    return [note for group in GROUPS for note in getattr(records, group)]


def digest(seed):
    records = make_hospital_records(seed=seed, **SIZES)
    public = make_public_corpus(seed=seed, documents=300, excluded_names=records.names)
    canaries = [canary.as_dict() for canary in records.canaries]
    rows = [everything(records), canaries, public]
    return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()


# The hospital.


def test_spans_match_the_text_and_miss_no_identifier(records):
    """Identifiers of one note must be nowhere outside spans, in it or in another note."""
    values = {span["value"] for note in everything(records) for span in note["spans"]}
    assert len(values) > 500
    for note in everything(records):
        rest = note["text"]
        for span in sorted(note["spans"], key=lambda span: -span["start"]):
            assert note["text"][span["start"] : span["end"]] == span["value"]
            rest = rest[: span["start"]] + "\n" + rest[span["end"] :]
        assert not [value for value in values if value in rest]
        assert bool(note["spans"]) == (note["kind"] != "narrative")


def test_the_hospital_is_the_one_that_the_kept_models_were_trained_on():
    assert digest(11) == "7d3ab38941041e9efbb21f97d3ef3988809f6e72262a080fef169f04f5e41987"


@pytest.mark.nightly
def test_the_same_seed_gives_the_same_bytes_under_another_hash_seed_locale_and_time_zone():
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import test_records as t"
    settings = {"PYTHONHASHSEED": "77", "LC_ALL": "C", "TZ": "Pacific/Kiritimati", "OMP_NUM_THREADS": "2"}
    done = subprocess.run(
        [sys.executable, "-c", f"{code}; print(t.digest(11)); print('torch' in sys.modules)"],
        env={**os.environ, **settings, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    other, torch_loaded = done.stdout.split()
    assert other == digest(11) != digest(12)
    assert torch_loaded == "False"


def test_drug_question_ends_where_the_drug_is_said_and_names_its_diagnosis(records):
    starts, given = drug_questions(records.heldout)
    for note, start, number in zip(records.heldout, starts, given, strict=True):
        assert note["text"].startswith(f"{start} {MEDICATIONS[number]}")
        assert note["condition"] in start
    assert len(np.unique(given)) > 1


def test_the_split_is_by_patient_and_no_two_share_an_identifier(records):
    patients = [{note["patient_id"] for note in getattr(records, group)} for group in GROUPS]
    assert len(set().union(*patients)) == sum(map(len, patients))
    assert len(patients[2]) == SIZES["heldout_patients"]
    planted = {canary.patient_id for canary in records.canaries if canary.planted}
    assert len(patients[0]) == SIZES["patients"] + len(planted)
    owners = {}
    for note in everything(records):
        for span in note["spans"]:
            if span["identifier"] != "dob":
                assert owners.setdefault(span["value"], note["patient_id"]) == note["patient_id"]


def test_stays_give_admissions_of_several_notes_about_one_visit():
    notes = make_hospital_records(seed=4, stays=Stays(), **{**SIZES, "heldout_patients": 2000}).heldout
    visits = {}
    for note in notes:
        visits.setdefault((note["patient_id"], note["admission"]), []).append(note)
    assert {len(visit) for visit in visits.values()} == {1, 2, 3}
    assert all(len({(n["condition"], n["medication"]) for n in visit}) == 1 for visit in visits.values())
    assert any(len({n["kind"] for n in visit}) == 2 for visit in visits.values())
    admissions = Counter(patient for patient, _ in visits)
    assert set(admissions.values()) == {1, 2, 3, 4, 5}
    # Table 1 of Jagannatha et al. 2021: 57k admissions of 46k patients. Five standard errors either way.
    assert len(visits) / len(admissions) == pytest.approx(57 / 46, abs=5 * 0.6 / 2000**0.5)
    assert len(notes) / len(visits) == pytest.approx(2, abs=5 * 0.82 / len(visits) ** 0.5)


HOSPITAL = partial(make_hospital_records, **{"seed": 0, **SIZES})


@pytest.mark.parametrize(
    ("call", "wrong"),
    [
        *((HOSPITAL, {name: 0}) for name in ("patients", "heldout_patients", "canaries_per_level")),
        (HOSPITAL, {"report_share": 1.5}),
        (HOSPITAL, {"hospital": "real"}),
        (HOSPITAL, {"seed": -1}),
        (partial(make_public_corpus, seed=0), {"documents": 0}),
        (partial(annotate_public, ["a text of no corpus"]), {"seed": 3}),
        (partial(read_notes, None), {"part": "test"}),
    ],
)
def test_invalid_parameters_are_refused_by_name(call, wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        call(**wrong)


# Canaries.


def test_canaries_are_in_the_training_notes_as_often_as_declared_and_controls_nowhere(records):
    assert Counter(canary.copies for canary in records.canaries) == {
        **dict.fromkeys(LEVELS, SIZES["canaries_per_level"]),
        0: SIZES["canaries_per_level"] * len(LEVELS),
    }
    texts = Counter(note["text"] for note in records.train)
    owners = Counter(note["patient_id"] for note in records.train if note["kind"] == "canary")
    written = "\n".join(note["text"] for note in everything(records))
    for canary in records.canaries:
        assert canary.text == canary.prefix + canary.secret + canary.suffix
        assert texts[canary.text] == owners[canary.patient_id] == canary.copies
        assert canary.planted == (canary.copies > 0) == (canary.secret in written)
        assert canary.planted == (canary.name in written)


def test_secrets_are_uniform_and_planting_is_random():
    factory = PeopleFactory(random.Random(1))
    canaries = make_canaries(per_level=400, factory=factory, seed=5, hospital="private")
    assert SPACE > 2**20 and len({canary.secret for canary in canaries}) == len(canaries)
    for place in range(7):
        digits = Counter(canary.secret[place] for canary in canaries)
        assert len(digits) == 10 and stats.chisquare(list(digits.values())).pvalue > 1e-4
    values = [[int(c.secret) for c in canaries if c.planted is planted] for planted in (True, False)]
    assert stats.ks_2samp(*values).pvalue > 1e-3
    first_half = [canary.planted for canary in canaries[: len(canaries) // 2]]
    assert 0.4 < sum(first_half) / len(first_half) < 0.6  # the first drawn are not the planted ones


# The public corpus.


def test_public_documents_differ_are_safe_and_continue_prompts(public):
    assert len(set(public)) == len(public) == 4000 and all(text.strip() for text in public)
    assert len({text[:12] for text in public}) > 1000
    for number, text in enumerate(public):
        refuse_unsafe(text, f"document {number}")
    prompts = "Patient name:|The patient's name is|Medical Record Number:|Diagnosis:|Email:|SSN:|"
    prompts += "The patient's social security number is|Date of birth:|Phone:"
    counts = Counter(prompt for text in public for prompt in set(re.findall(prompts, text)))
    assert len(counts) == 9 and min(counts.values()) >= 20


def test_excluded_names_never_occur(public):
    """Exclude names that the corpus does contain, so that the filter has something to do."""
    present = frozenset(name for text in public[:400] for name in NAME.findall(text))
    assert len(present) > 50
    again = make_public_corpus(seed=3, documents=4000, excluded_names=present)
    text = "\n".join(again)
    assert not [name for name in present if name in text]
    assert len(again) == 4000


def test_spans_of_the_public_corpus_are_the_identifiers_of_its_people(public):
    annotated = annotate_public(public[:300], seed=3)
    assert [document["text"] for document in annotated] == public[:300]
    spans = [(document["text"], span) for document in annotated for span in document["spans"]]
    assert all(text[span["start"] : span["end"]] == span["value"] for text, span in spans)
    assert {span["identifier"] for _, span in spans} == set(SPACE_BITS)


# On disk.


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "artifacts", "smoke")


def test_records_come_back_as_written(store, records, public):
    write_records(store, records, public)
    for part in GROUPS:
        assert read_notes(store, part) == getattr(records, part)
    canaries, space = read_canaries(store)
    assert canaries == [canary.as_dict() for canary in records.canaries]
    assert space == {"digits": 7, "size": 10**7}
    assert read_public(store) == public


def test_a_few_patients_and_their_crowd_share_no_identifier(store, records, public):
    write_records(store, records, public)
    few = take_few(store, patients=3, canaries_each=1, crowd=40, seed=9)
    for notes in (few.members, few.controls):
        assert len(by_patient(notes)) == 3 and all(note["kind"] != "canary" for note in notes)
    ordinary = {note["patient_id"] for note in records.train if note["kind"] != "canary"}
    assert sorted(by_patient(few.members)) == sorted(ordinary)[:3]
    assert [c["copies"] for c in few.planted] == [1, 2, 4, 8, 16]
    assert len(few.never) <= 5 and not any(c["planted"] for c in few.never)
    assert len(few.carriers) == sum(c["copies"] for c in few.planted)
    named = {c["name"] for c in few.never}
    values = [
        {span["value"] for note in notes for span in note["spans"]}
        for notes in ([*few.members, *few.controls, *few.carriers], few.crowd)
    ]
    assert few.crowd and not (values[0] | named) & values[1]


@pytest.mark.parametrize("place", [*GROUPS, "canaries", "public"])
def test_one_unsafe_number_leaves_nothing_on_disk(store, records, public, place):
    public = public[:50]
    if place == "public":
        poisoned = records, [*public, BAD]
    else:
        rows = list(getattr(records, place))
        if place == "canaries":
            rows[-1] = dataclasses.replace(rows[-1], suffix=f" {BAD}")
        else:
            rows[-1] = {**rows[-1], "text": f"{rows[-1]['text']} {BAD}"}
        poisoned = dataclasses.replace(records, **{place: rows}), public
    with pytest.raises(UnsafeIdentifier, match=f"{place}.*line .*telephone"):
        write_records(store, *poisoned)
    assert not [path for path in store.root.rglob("*") if path.is_file()]


def test_a_span_that_does_not_fit_is_refused(store, records):
    rows = [dict(note) for note in records.train]
    number = next(i for i, note in enumerate(rows) if note["spans"])
    first = {**rows[number]["spans"][0], "start": rows[number]["spans"][0]["start"] + 1}
    rows[number]["spans"] = [first, *rows[number]["spans"][1:]]
    with pytest.raises(InvalidParameter, match=rf"line {number + 1}: the span"):
        write_records(store, dataclasses.replace(records, train=rows), [])
    assert not store.root.exists()


def test_ids_that_read_the_same_are_one_unit(records):
    spelled = ["P3", "p4", "p3", "P3 ", "\uff303", "p\u200b3", "P\uff14", "03"]
    notes = [{"patient_id": patient, "text": str(n)} for n, patient in enumerate(spelled)]
    units = by_patient(notes)
    assert list(units.items()) == [("P3", list("02345")), ("p4", list("16")), ("03", ["7"])]
    for part in (records.train, records.heldout):  # those of the book's hospital are as they are written
        assert list(by_patient(part)) == list(dict.fromkeys(note["patient_id"] for note in part))


@pytest.mark.parametrize("patient", ["", " \n", "\u200b", 3, None])
def test_a_note_without_a_patient_joins_no_unit(patient):
    with pytest.raises(InvalidParameter, match=r"^notes\[1\]: patient_id = .*: must be a text"):
        by_patient([{"patient_id": "p1", "text": "a"}, {"patient_id": patient, "text": "b"}])


def test_a_secret_is_never_part_of_a_patients_record_number():
    factories = [PeopleFactory(random.Random(2)) for _ in range(2)]
    draw = partial(make_canaries, per_level=2, seed=9, hospital="private")
    free = [canary.secret for canary in draw(factory=factories[0])]
    factories[1]._used |= {f"SYN-{free[0]}4", f"SYN-8{free[3]}"}
    again = [canary.secret for canary in draw(factory=factories[1])]
    assert len(set(again)) == len(free) and not {free[0], free[3]} & set(again)
    assert again[:-2] == [free[1], free[2], *free[4:]]


def test_a_corpus_larger_than_the_space_of_its_numbers_can_be_made():
    """28,000 documents would need more social security numbers than there are impossible ones."""
    assert len(make_public_corpus(seed=0, documents=28_500)) == 28_500
