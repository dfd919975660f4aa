"""What is written comes back, and nothing unsafe is written at all."""

import dataclasses

import pytest

from privhelpers.artifacts import Store
from privhelpers.errors import InvalidParameter, UnsafeIdentifier
from privhelpers.records import (
    by_patient,
    make_hospital_records,
    make_public_corpus,
    read_canaries,
    read_notes,
    read_public,
    write_records,
)

BAD = "Call " + "-".join(("212", "736", "5000"))


@pytest.fixture(scope="module")
def records():
    return make_hospital_records(
        seed=4, patients=40, validation_patients=10, heldout_patients=40, canaries_per_level=2
    )


@pytest.fixture(scope="module")
def public(records):
    return make_public_corpus(seed=4, documents=60, excluded_names=records.names)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "artifacts", "smoke")


def test_records_come_back_as_written(store, records, public):
    write_records(store, records, public)
    for part in ("train", "validation", "heldout"):
        assert read_notes(store, part) == getattr(records, part)
    canaries, space = read_canaries(store)
    assert canaries == [canary.as_dict() for canary in records.canaries]
    assert space == {"digits": 7, "size": 10**7}
    assert read_public(store) == public
    with pytest.raises(InvalidParameter, match="test"):
        read_notes(store, "test")


def poisoned(records, public, place):
    """Return records and public text with one number that could be real, in the last row of `place`."""
    if place == "public":
        return records, [*public[:-1], f"{public[-1]} {BAD}"]
    rows = list(getattr(records, place))
    if place == "canaries":
        rows[-1] = dataclasses.replace(rows[-1], suffix=f" {BAD}")
    else:
        rows[-1] = {**rows[-1], "text": f"{rows[-1]['text']} {BAD}"}
    return dataclasses.replace(records, **{place: rows}), public


@pytest.mark.parametrize("place", ["train", "validation", "heldout", "canaries", "public"])
def test_one_unsafe_number_leaves_nothing_on_disk(store, records, public, place):
    with pytest.raises(UnsafeIdentifier, match=f"{place}.*line .*telephone"):
        write_records(store, *poisoned(records, public, place))
    assert not [path for path in store.root.rglob("*") if path.is_file()]


def test_an_unsafe_run_keeps_the_good_files_of_an_earlier_one(store, records, public):
    write_records(store, records, public)
    with pytest.raises(UnsafeIdentifier):
        write_records(store, *poisoned(records, public, "heldout"))
    assert read_notes(store, "heldout") == records.heldout and read_public(store) == public


def test_a_span_that_does_not_fit_is_refused(store, records, public):
    rows = [dict(note) for note in records.train]
    number = next(i for i, note in enumerate(rows) if note["spans"])
    first = {**rows[number]["spans"][0], "start": rows[number]["spans"][0]["start"] + 1}
    rows[number]["spans"] = [first, *rows[number]["spans"][1:]]
    with pytest.raises(InvalidParameter, match=rf"line {number + 1}: the span"):
        write_records(store, dataclasses.replace(records, train=rows), public)
    assert not store.root.exists()


def test_units_hold_every_note_of_their_patient_once(records):
    units = by_patient(records.train)
    assert sum(map(len, units.values())) == len(records.train)
    for canary in records.canaries:
        assert units.get(canary.patient_id, []) == [canary.text] * canary.copies


def test_ids_that_read_the_same_are_one_unit(records):
    spelled = ["P3", "p4", "p3", "P3 ", "\uff303", "p\u200b3", "P\uff14", "03"]
    notes = [{"patient_id": patient, "text": str(n)} for n, patient in enumerate(spelled)]
    units = by_patient(notes)
    assert list(units.items()) == [("P3", list("02345")), ("p4", list("16")), ("03", ["7"])]
    for part in (records.train, records.heldout):  # those of the book's hospital are as they are written
        assert list(by_patient(part)) == list(dict.fromkeys(note["patient_id"] for note in part))


@pytest.mark.parametrize("patient", ["", " \n", "\u200b", 3, None])
def test_a_note_of_nobody_joins_no_unit(patient):
    with pytest.raises(InvalidParameter, match=r"^notes\[1\]: patient_id = .*: must be a text"):
        by_patient([{"patient_id": "p1", "text": "a"}, {"patient_id": patient, "text": "b"}])
