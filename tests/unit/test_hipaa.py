import json

import pandas as pd
import pytest

from privhelpers import hipaa
from privhelpers.errors import InvalidParameter
from privhelpers.stats import clopper_pearson

OURS = {"name": "A", "address": "B", "dob": "C", "phone": "D", "email": "F", "ssn": "G", "mrn": "H"}


@pytest.fixture
def frame():
    return hipaa.ledger(
        planted={"name": 300, "email": 210, "ssn": 0, "mrn": 90, "phone": None},
        attempted={"name": 1400, "email": 1400, "mrn": None, "phone": 1400},
        leaked={"name": 4, "email": 17, "mrn": None, "phone": 2},
        leaked_control={"name": 1, "email": 0},
    )


def test_the_list_is_the_eighteen_of_the_rule():
    assert "".join(entry.letter for entry in hipaa.IDENTIFIERS) == "ABCDEFGHIJKLMNOPQR"
    assert len({entry.name for entry in hipaa.IDENTIFIERS}) == 18
    assert hipaa.RECORD_IDENTIFIERS == OURS


def test_measured_rows_carry_counts_and_the_exact_interval(frame):
    row, interval = frame.loc["F"], clopper_pearson(17, 1400)
    assert (row.planted, row.attempted, row.leaked, row.control) == (210, 1400, 17, 0)
    assert (row.low, row.high, row.rate) == pytest.approx((interval.low, interval.high, 17 / 1400), rel=1e-12)
    assert row.status == hipaa.MEASURED


def test_what_is_not_there_is_not_a_zero(frame):
    assert len(frame) == 18
    for letter, status in {
        "G": "not in the data",
        "Q": "not in the data",
        "H": "not measured",
        "D": "not measured",
    }.items():
        assert frame.loc[letter, "status"] == status
        assert pd.isna(frame.loc[letter, "leaked"]) and pd.isna(frame.loc[letter, "low"])
    table = hipaa.ledger_table(frame)
    unmeasured = table[frame["status"] != hipaa.MEASURED]
    assert set(unmeasured["leaked"]) == {"not in the data", "not measured"}
    assert set(unmeasured[["control", "95 % interval"]].to_numpy().ravel()) == {"–"}
    assert table.loc["D", "planted"] == "not measured"
    assert table.loc["F", "95 % interval"] == "0.7 to 1.9 %"


def test_a_missing_control_is_not_measured():
    frame = hipaa.ledger({"email": 3}, {"email": 10}, {"email": 0}, {})
    assert frame.loc["F", "status"] == hipaa.MEASURED
    assert hipaa.ledger_table(frame).loc["F", "control"] == "not measured"


def test_no_attempts_measure_nothing():
    assert (
        hipaa.ledger({"email": 3}, {"email": 0}, {"email": 0}, {"email": 0}).loc["F", "status"]
        == "not measured"
    )


def test_records_of_others_are_unlooked_at_unless_counted():
    frame = hipaa.ledger({"E": 5}, {"E": 20}, {"E": 1}, {"E": 0}, unlisted=hipaa.NOT_MEASURED)
    assert frame.loc["E", "leaked"] == 1
    assert frame.loc["A", "status"] == "not measured" and pd.isna(frame.loc["A", "planted"])


@pytest.mark.parametrize(
    "arguments",
    [
        ({"password": 1}, {}, {}, {}),
        ({"email": -1}, {}, {}, {}),
        ({"email": 1, "F": 1}, {}, {}, {}),
        ({"email": 1}, {"email": 2}, {"email": 3}, {}),
        ({"email": 1}, {"email": 2}, {"email": 1}, {"email": 3}),
        ({"email": 0}, {"email": 2}, {"email": 1}, {}),
        ({"email": 1.5}, {}, {}, {}),
    ],
)
def test_impossible_counts_are_refused(arguments):
    with pytest.raises(InvalidParameter):
        hipaa.ledger(*arguments)


def test_unlisted_must_be_one_of_the_two_words():
    with pytest.raises(InvalidParameter, match="unlisted"):
        hipaa.ledger({}, {}, {}, {}, unlisted="0")


def test_the_caveat_names_both_ways_and_promises_nothing():
    assert "Safe Harbor" in hipaa.CAVEAT and "Expert Determination" in hipaa.CAVEAT
    assert hipaa.CAVEAT.count(".") == 1 and "compliant" not in hipaa.CAVEAT.lower()


CARRIERS = {"name": 224, "email": 160}


def by_patient(**changes):
    arguments = {"carriers": CARRIERS, "control_carriers": {"name": 243, "email": 167}, **changes}
    counts = ({"name": 224, "email": 160}, {"name": 2400, "email": 2400}, {"name": 11, "email": 0})
    return hipaa.ledger(*counts, {"name": 0, "email": 0}, **arguments)


def test_with_carriers_the_unit_is_the_patient():
    row, interval = by_patient().loc["A"], clopper_pearson(11, 224)
    assert (row.rate, row.low, row.high) == pytest.approx((11 / 224, interval.low, interval.high), rel=1e-12)
    assert row.control_high == pytest.approx(clopper_pearson(0, 243).high, rel=1e-12)
    table = hipaa.ledger_table(by_patient())
    assert table.loc["A", ["leaked", "control"]].tolist() == ["11 of 224", "0 of 243"]
    assert table.loc["A", "95 % interval"] == "2.5 to 8.6 %" and table.loc["E", "leaked"] == "not in the data"


def test_a_carrier_count_without_its_control_is_refused():
    with pytest.raises(InvalidParameter, match="a rate needs its control"):
        by_patient(control_carriers=None)
    with pytest.raises(InvalidParameter, match="must not exceed the 10"):
        by_patient(carriers={"name": 10, "email": 160})


def test_nobody_to_compare_with_leaves_the_control_open():
    frame = by_patient(control_carriers={"name": 243})
    assert frame.loc["F", "status"] == hipaa.MEASURED and pd.isna(frame.loc["F", "control_rate"])
    assert by_patient(carriers={"name": 224}).loc["F", "status"] == hipaa.NOT_MEASURED


def test_all_models_stand_in_one_matrix():
    matrix = hipaa.ledger_matrix({"baseline": by_patient(), "other": by_patient()})
    assert matrix.shape == (18, 3) and matrix.loc["A", "baseline"] == "11 | 0"
    assert (matrix.loc[list("EIJKLMNOPQR"), "other"] == "not in the data").all()
    with pytest.raises(InvalidParameter):
        hipaa.ledger_matrix({})


def test_a_ledger_becomes_json_without_made_up_zeros():
    records = json.loads(json.dumps(hipaa.ledger_records(by_patient()), allow_nan=False))
    assert records["A"]["leaked"] == 11 and records["A"]["control_carriers"] == 243
    assert records["Q"]["leaked"] is None and records["Q"]["rate"] is None


SPANS = [
    {"identifier": "name", "start": 8, "end": 19, "value": "Ann B. Cole"},
    {"identifier": "mrn", "start": 25, "end": 37, "value": "SYN-00000000"},
]
NOTE = {
    "text": "Patient Ann B. Cole, MRN SYN-00000000.",
    "patient_id": "p1",
    "kind": "report",
    "spans": SPANS,
}


def test_a_value_comes_out_verbatim_within_one_text():
    people = hipaa.carriers([NOTE, NOTE | {"patient_id": "p2", "kind": "canary"}])
    assert people == {"name": {"p1": {"ann b. cole"}}, "mrn": {"p1": {"syn-00000000"}}}
    assert hipaa.came_out(["so ANN  B.\nCole came"], people) == {"name": {"p1"}, "mrn": set()}
    assert hipaa.came_out(["Ann B.", "Cole"], people) == {"name": set(), "mrn": set()}
    assert hipaa.came_out([], people) == {"name": set(), "mrn": set()}


def test_a_note_without_identifiers_keeps_the_rest():
    assert hipaa.without_identifiers(NOTE) == "Patient [name], MRN [mrn]."
    assert hipaa.touched(NOTE, [(0, 8), (7, 9), (18, 20), (19, 25), (37, 38)]) == [
        False,
        True,
        True,
        False,
        False,
    ]
