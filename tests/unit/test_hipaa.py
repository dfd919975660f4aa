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
    unmeasured = table.loc[frame["status"] != hipaa.MEASURED, ["leaked", "control", "95 % interval"]]
    assert set(unmeasured.to_numpy().ravel()) == {"not in the data", "not measured"}
    assert table.loc["D", "planted"] == "not measured"
    assert table.loc["F", "95 % interval"] == "0.71 % to 1.94 %"


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
