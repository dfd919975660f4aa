"""Records whose truth is known and whose people cannot exist."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from privhelpers import artifacts, records, rng
from privhelpers.errors import InvalidParameter, UnsafeIdentifier
from privhelpers.records.canaries import SPACE, make_canaries
from privhelpers.records.identifiers import PeopleFactory

ROOT = Path(__file__).parents[2]
SIZES = {"patients": 120, "validation_patients": 20, "heldout_patients": 120, "canaries_per_level": 3}


@pytest.fixture(scope="module")
def hospital():
    return records.make_hospital_records(seed=0, **SIZES)


@pytest.fixture(scope="module")
def public(hospital):
    return records.make_public_corpus(seed=0, documents=800, excluded_names=hospital.names)


def everything(hospital):
    return hospital.train + hospital.validation + hospital.heldout


def test_spans_hold_their_values(hospital):
    spans = [(note["text"], span) for note in everything(hospital) for span in note["spans"]]
    assert len(spans) > 200
    assert all(text[s["start"] : s["end"]] == s["value"] for text, s in spans)


def test_every_identifier_in_a_text_has_a_span(hospital):
    values = {s["value"] for n in everything(hospital) for s in n["spans"]}
    for note in everything(hospital):
        own = {s["value"] for s in note["spans"]}
        assert {v for v in values if v in note["text"]} == own


def test_the_six_templates_all_occur(hospital):
    starts = (
        "Patient: ",
        "Medical Record - ",
        "Patient ",
        "Chart Review - ",
        "Clinical Note: ",
        "Patient Profile: ",
    )
    reports = [n["text"] for n in everything(hospital) if n["kind"] == "report"]
    assert all(any(text.startswith(start) for text in reports) for start in starts)


def test_patients_are_on_one_side_only(hospital):
    groups = [{n["patient_id"] for n in g} for g in (hospital.train, hospital.validation, hospital.heldout)]
    assert not groups[0] & groups[1] and not groups[0] & groups[2] and not groups[1] & groups[2]
    assert [len(g) for g in groups] == [120 + 15, 20, 120]


def test_identifiers_are_not_shared_by_patients(hospital):
    owner = {}
    for note in everything(hospital):
        for span in note["spans"]:
            assert owner.setdefault(span["value"], note["patient_id"]) == note["patient_id"]


def test_canaries_are_planted_as_declared(hospital):
    text = "\n".join(n["text"] for n in hospital.train)
    for canary in hospital.canaries:
        assert text.count(canary.text) == canary.copies
        assert canary.planted == (canary.copies > 0)
        assert canary.planted or canary.secret not in text
    copies = [c.copies for c in hospital.canaries]
    assert [copies.count(level) for level in (0, 1, 2, 4, 8, 16)] == [15, 3, 3, 3, 3, 3]


def test_secrets_are_uniform_in_a_space_that_cannot_be_guessed():
    assert SPACE > 2**20
    drawn = make_canaries(per_level=200, factory=PeopleFactory(rng.plain(0, "t")), seed=0)
    digits = np.array([[int(d) for d in c.secret] for c in drawn])
    assert digits.shape == (2000, 7)
    for place in digits.T:
        counts = np.bincount(place, minlength=10)
        assert ((counts - 200) ** 2 / 200).sum() < 27.9  # chi-squared, 9 degrees of freedom, p = 0.001


def test_conditions_follow_zipf(hospital):
    conditions = [n["condition"] for n in hospital.heldout]
    common = sum(c in records.CONDITIONS[:3] for c in conditions)
    rare = sum(c in records.RARE_CONDITIONS for c in conditions)
    assert common > rare > 0
    p = records.zipf_probabilities(32)
    assert p.sum() == pytest.approx(1) and (np.diff(p) < 0).all()


def test_the_report_vocabularies_are_complete():
    assert (len(records.CONDITIONS), len(records.MEDICATIONS), len(records.PROCEDURES)) == (12, 12, 10)


def test_public_text_names_no_patient(hospital, public):
    text = "\n".join(public)
    assert not [name for name in hospital.names if name in text]
    assert len(set(public)) == 800


def test_a_name_that_would_collide_is_left_out():
    first = records.make_public_corpus(seed=0, documents=50)
    faker_name = next(t for t in first if "The patient's name is" in t or "Patient name: " in t)
    words = faker_name.replace("The patient's name is ", "Patient name: ").split("Patient name: ")[1].split()
    name = " ".join(words[:3]).rstrip(".")
    assert name in "\n".join(first)
    second = records.make_public_corpus(seed=0, documents=50, excluded_names=frozenset({name}))
    assert name not in "\n".join(second)


def test_prompts_have_public_continuations(public):
    assert any(t.startswith("Patient name:") for t in public)
    assert any("The patient's social security number is" in t for t in public)


def test_hospitals_differ_in_their_habits():
    notes = {
        which: " ".join(
            n["text"] for n in records.make_hospital_records(seed=0, hospital=which, **SIZES).train
        )
        for which in ("private", "auxiliary")
    }
    assert "Harbor Ward" in notes["private"] and "Harbor Ward" not in notes["auxiliary"]


def test_same_bytes_whatever_the_clock_locale_and_hash_seed(hospital):
    code = (
        "import json, sys; from privhelpers import records;"
        f"h = records.make_hospital_records(seed=0, **{SIZES!r});"
        "p = records.make_public_corpus(seed=0, documents=800, excluded_names=h.names);"
        "sys.stdout.write(json.dumps([h.train, h.heldout, p]))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "LC_ALL": locale},
            capture_output=True,
            check=True,
        ).stdout
        for seed, zone, locale in (("1", "UTC", "C"), ("2", "Pacific/Auckland", "C.UTF-8"))
    }
    assert len(outputs) == 1
    assert json.loads(outputs.pop())[0] == hospital.train
    assert records.make_hospital_records(seed=1, **SIZES).train != hospital.train


def test_twenty_thousand_people_who_cannot_exist():
    factory = PeopleFactory(rng.plain(3, "many"))
    for number in range(2500):  # 7 identifiers each
        person = factory.person()
        values = (person.name, person.dob, person.email, person.phone, person.ssn, person.address)
        records.refuse_unsafe(f"MRN: {person.mrn} " + " ".join(values), f"person {number}")
        assert 18 <= person.age <= 89


REAL_LOOKING = [
    "123-45-" + "6789",
    "000-12-" + "3456",
    "900-70-" + "0001",
    "(212) 736-" + "5000",
    "212-555-" + "0200",
    "+1 212 736 " + "5000",
    "someone@gmail" + ".com",
    "https://www.hospital" + ".org/x",
    "8.8.8" + ".8",
    "123456789" + "3",  # a provider number with a valid check digit
    "MRN: 1234" + "567",
]


@pytest.mark.parametrize("value", REAL_LOOKING)
def test_what_could_be_real_is_refused(value):
    with pytest.raises(UnsafeIdentifier, match=r"train\.jsonl, line 3"):
        records.refuse_unsafe(f"seen today, {value}, stable.", "train.jsonl, line 3")


@pytest.mark.parametrize(
    "value",
    [
        "000-00-1234",
        "666-12-0000",
        "(917) 555-0142",
        "a.b1@mail.example.org",
        "192.0.2.17",
        "MRN SYN-12345670",
        "BP 128/84",
        "1990-02-03",
    ],
)
def test_what_cannot_be_real_passes(value):
    records.refuse_unsafe(f"seen today, {value}, stable.", "here")


def test_nothing_is_written_when_one_note_is_unsafe(tmp_path, hospital, public):
    store = artifacts.Store(tmp_path / "a", "smoke")
    hospital.heldout[-1]["text"] += " Call (212) 736-" + "5000."
    try:
        with pytest.raises(UnsafeIdentifier, match=r"heldout\.jsonl"):
            records.write_records(store, hospital, public)
    finally:
        hospital.heldout[-1]["text"] = hospital.heldout[-1]["text"][: -len(" Call (212) 736-5000.")]
    assert not (tmp_path / "a").exists()
    records.write_records(store, hospital, public)
    assert records.read_notes(store, "train") == hospital.train
    assert records.read_public(store) == public
    assert len(records.read_canaries(store)[0]) == 30


def test_refusals(tmp_path):
    for bad in ({"patients": 0}, {"report_share": 0.0}, {"hospital": "theirs"}, {"canaries_per_level": True}):
        with pytest.raises(InvalidParameter, match=next(iter(bad))):
            records.make_hospital_records(**{"seed": 0, **SIZES, **bad})
    with pytest.raises(InvalidParameter, match="part"):
        records.read_notes(artifacts.Store(tmp_path, "smoke"), "test")
