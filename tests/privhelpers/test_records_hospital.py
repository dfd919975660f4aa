"""The private records: spans, split, canaries and frequencies, and the same bytes everywhere."""

import hashlib
import itertools
import json
import os
import random
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
from scipy import stats

from privhelpers.errors import InvalidParameter
from privhelpers.records import (
    CONDITIONS,
    RARE_CONDITIONS,
    Stays,
    make_hospital_records,
    make_public_corpus,
    zipf_probabilities,
)
from privhelpers.records._canaries import LEVELS, SPACE, make_canaries
from privhelpers.records._identifiers import PeopleFactory
from privhelpers.records._vocabulary import HOSPITALS

SIZES = {"patients": 300, "validation_patients": 60, "heldout_patients": 300, "canaries_per_level": 6}
GROUPS = ("train", "validation", "heldout")
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def records():
    return make_hospital_records(seed=11, **SIZES)


def everything(records):
    return [note for group in GROUPS for note in getattr(records, group)]


def digest(seed):
    records = make_hospital_records(seed=seed, **SIZES)
    public = make_public_corpus(seed=seed, documents=300, excluded_names=records.names)
    canaries = [canary.as_dict() for canary in records.canaries]
    rows = [everything(records), canaries, public]
    return hashlib.sha256(json.dumps(rows, sort_keys=True).encode()).hexdigest()


def test_spans_match_the_text(records):
    spans = [(note, span) for note in everything(records) for span in note["spans"]]
    assert len(spans) > 500
    for note, span in spans:
        assert note["text"][span["start"] : span["end"]] == span["value"]


def test_spans_miss_no_identifier(records):
    """Identifiers of one note must stand nowhere outside spans, in it or in another note."""
    values = {span["value"] for note in everything(records) for span in note["spans"]}
    for note in everything(records):
        rest = note["text"]
        for span in sorted(note["spans"], key=lambda span: -span["start"]):
            rest = rest[: span["start"]] + "\n" + rest[span["end"] :]
        assert not [value for value in values if value in rest]
        assert bool(note["spans"]) == (note["kind"] != "narrative")


def test_the_same_seed_gives_the_same_bytes_under_another_hash_seed_locale_and_time_zone():
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import test_records_hospital as t"
    )
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


def test_the_split_is_by_patient(records):
    patients = [{note["patient_id"] for note in getattr(records, group)} for group in GROUPS]
    assert len(set().union(*patients)) == sum(map(len, patients))
    assert len(patients[2]) == SIZES["heldout_patients"]
    planted = {canary.patient_id for canary in records.canaries if canary.planted}
    assert len(patients[0]) == SIZES["patients"] + len(planted)


def test_no_two_patients_share_an_identifier(records):
    owners = {}
    for note in everything(records):
        for span in note["spans"]:
            if span["identifier"] != "dob":
                assert owners.setdefault(span["value"], note["patient_id"]) == note["patient_id"]


def test_admissions_count_up_and_drugs_stay(records):
    drugs, admissions = {}, {}
    for note in records.heldout:
        key = note["patient_id"], note["condition"]
        assert drugs.setdefault(key, note["medication"]) == note["medication"]
        admissions.setdefault(note["patient_id"], []).append(note["admission"])
    assert all(seen == list(range(len(seen))) for seen in admissions.values())
    assert {len(seen) for seen in admissions.values()} == {1, 2, 3, 4, 6}


def test_canaries_stand_in_the_training_notes_as_often_as_declared(records):
    assert Counter(canary.copies for canary in records.canaries) == {
        **dict.fromkeys(LEVELS, SIZES["canaries_per_level"]),
        0: SIZES["canaries_per_level"] * len(LEVELS),
    }
    texts = Counter(note["text"] for note in records.train)
    owners = Counter(note["patient_id"] for note in records.train if note["kind"] == "canary")
    for canary in records.canaries:
        assert canary.text == canary.prefix + canary.secret + canary.suffix
        assert texts[canary.text] == owners[canary.patient_id] == canary.copies
        assert canary.planted == (canary.copies > 0)


def test_control_secrets_and_names_stand_nowhere(records):
    text = "\n".join(note["text"] for note in everything(records))
    for canary in records.canaries:
        if not canary.planted:
            assert canary.secret not in text and canary.name not in text


def test_secrets_are_uniform_and_planting_is_by_lot():
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


def test_a_secret_is_never_part_of_a_patients_record_number():
    free = [
        c.secret
        for c in make_canaries(
            per_level=2, factory=PeopleFactory(random.Random(2)), seed=9, hospital="private"
        )
    ]
    crowded = PeopleFactory(random.Random(2))
    crowded._used |= {f"SYN-{free[0]}4", f"SYN-8{free[3]}"}
    again = [c.secret for c in make_canaries(per_level=2, factory=crowded, seed=9, hospital="private")]
    assert len(set(again)) == len(free) and not {free[0], free[3]} & set(again)
    assert again[:-2] == [free[1], free[2], *free[4:]]


def test_common_conditions_come_first(records):
    probabilities = zipf_probabilities(32, 1.1)
    assert probabilities.sum() == pytest.approx(1) and (probabilities[:-1] > probabilities[1:]).all()
    assert probabilities[0] / probabilities[7] == pytest.approx(8**1.1)
    notes = [note for note in everything(records) if note["kind"] != "canary"]
    counts = Counter(note["condition"] for note in notes)
    assert counts.most_common(1)[0][0] == CONDITIONS[0]
    rare = sum(note["rare"] for note in notes)
    assert rare == sum(count for name, count in counts.items() if name not in CONDITIONS)
    assert 0.05 < rare / len(notes) < 0.3


def test_the_share_of_report_notes_is_a_parameter():
    everybody = make_hospital_records(seed=1, report_share=1.0, **SIZES)
    assert {note["kind"] for note in everybody.heldout} == {"report"}
    third = make_hospital_records(seed=1, report_share=0.3, **SIZES).heldout
    assert 0.22 < sum(note["kind"] == "report" for note in third) / len(third) < 0.38


@pytest.mark.parametrize("pair", list(itertools.combinations(HOSPITALS, 2)), ids="-".join)
def test_each_hospital_has_its_own_habits(pair):
    one, other = (HOSPITALS[name] for name in pair)
    for part in ("wards", "staff", "arrivals", "closers"):
        assert not set(getattr(one, part)) & set(getattr(other, part))
    assert set(one.case_mix) == set(other.case_mix) == set(one.practice) == set(other.practice)
    for condition, practice in one.practice.items():
        elsewhere = other.practice[condition]
        assert practice.protocol != elsewhere.protocol
        assert practice.medications[0] != elsewhere.medications[0]
        assert practice.procedures[0] != elsewhere.procedures[0]


def test_rare_diseases_come_first_in_the_referral_center():
    notes = make_hospital_records(seed=3, hospital="referral", **SIZES).heldout
    counts = Counter(note["condition"] for note in notes)
    assert counts.most_common(1)[0][0] == RARE_CONDITIONS[0]
    assert sum(note["rare"] for note in notes) / len(notes) > 0.8


def test_an_admission_has_one_note_unless_asked():
    notes = [n for n in make_hospital_records(seed=4, **SIZES).train if n["kind"] != "canary"]
    assert set(Counter((n["patient_id"], n["admission"]) for n in notes).values()) == {1}


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
        *((Stays, {name: w}) for name in ("admissions", "notes") for w in ((), (0, 0), (1, -1), (1, "2"))),
        *((Stays, {"admissions": (weight,)}) for weight in (float("nan"), float("inf"))),
        *((HOSPITAL, {name: 0}) for name in ("patients", "heldout_patients", "canaries_per_level")),
        (HOSPITAL, {"report_share": 1.5}),
        (HOSPITAL, {"hospital": "real"}),
        (HOSPITAL, {"seed": -1}),
        (partial(make_public_corpus, seed=0), {"documents": 0}),
    ],
)
def test_invalid_parameters_are_refused_by_name(call, wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        call(**wrong)
