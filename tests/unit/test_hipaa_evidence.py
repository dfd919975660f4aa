import pytest

from privhelpers import artifacts, hipaa
from privhelpers.errors import InvalidParameter, MissingArtifact
from privhelpers.stats import clopper_pearson


def note(patient, name, kind="report"):
    span = {"identifier": "name", "start": 8, "end": 8 + len(name), "value": name}
    return {"patient_id": patient, "kind": kind, "text": f"Patient {name}.", "spans": [span]}


MEMBERS = hipaa.carriers([note(f"p{i}", f"Member M. {letter * 3}") for i, letter in enumerate("abcdefghij")])
CONTROLS = hipaa.carriers(
    [note(f"h{i}", f"Other O. {letter * 3}") for i, letter in enumerate("abcdefghijkl")]
)
TEXTS = ["So MEMBER m. aaa came", "and member m. bbb", "nobody"]


@pytest.fixture
def store(tmp_path):
    store = artifacts.Store(tmp_path, "toy")
    store.write_jsonl("extraction/m/generations.jsonl", [{"prompt": "", "text": text} for text in TEXTS[:2]])
    store.write_jsonl("extraction/m/ranked.jsonl", [{"text": TEXTS[2]}])
    canaries = [{"planted": i < 4, "extracted": i < 3} for i in range(8)]
    store.write_jsonl("memorization/m/canaries.jsonl", canaries)
    ends = {"member": (0.1, 0.05, 0.2), "control": (0.0, 0.0, 0.02)}
    recalled = {
        f"report/{arm}": dict(zip(("rate", "low", "high"), values, strict=True)) | {"notes": 100}
        for arm, values in ends.items()
    }
    store.write_json("memorization/m/attack.json", {"recalled": recalled})
    who = {"best_attack": "loss/sample", "best_attack_auc": [0.9, 0.85, 0.95], "patients": [20, 20]}
    who["nulls"] = {"loss/sample": {"held_out": [0.5, 0.45, 0.55]}}
    store.write_json("membership_inference/m/attack.json", who)
    return store


def test_the_rate_is_that_of_the_statistics_room():
    for hits, n in ((0, 50), (5, 1400), (15, 15), (1, 20)):
        interval = clopper_pearson(hits, n)
        assert hipaa.exact_rate(hits, n) == pytest.approx((hits / n, interval.low, interval.high), rel=1e-12)
    for hits, n in ((1, 0), (3, 2), (-1, 5)):
        with pytest.raises(InvalidParameter):
            hipaa.exact_rate(hits, n)


def test_a_ledger_counts_patients_of_both_groups():
    frame = hipaa.patient_ledger(TEXTS, MEMBERS, CONTROLS)
    row = frame.loc["A"]
    assert (row.planted, row.attempted, row.carriers, row.leaked) == (10, 3, 10, 2)
    assert (row.control_carriers, row.control) == (12, 0)
    assert (frame.drop("A")["status"] == hipaa.NOT_IN_DATA).all()


def test_four_attacks_are_read_each_with_control_and_source(store):
    assert hipaa.written(store, "m") == TEXTS
    found = hipaa.measured_of(store, "m", TEXTS, MEMBERS, CONTROLS)
    assert [one.kind for one in found] == ["content"] * 3 + ["membership"]
    assert found[0].figure[0] == 0.2 and found[0].n == 10 and found[0].control[0] == 0
    assert found[1].figure[0] == 0.75 and found[1].control == hipaa.exact_rate(0, 4)
    assert found[2].found and found[2].n == 100
    assert found[3].figure == (0.9, 0.85, 0.95) and found[3].control[0] == 0.5 and found[3].n == 10
    assert len({one.source.fingerprint for one in found}) == 4
    assert hipaa.combine("m", found, []).evidence == hipaa.CONTENT


def test_a_model_that_was_not_attacked_has_no_evidence(store):
    with pytest.raises(MissingArtifact):
        hipaa.measured_of(store, "other", TEXTS, MEMBERS, CONTROLS)
    with pytest.raises(MissingArtifact):
        hipaa.written(store, "other")


def test_the_share_of_identifiers_is_counted_in_characters():
    assert hipaa.identifier_share([note("p", "abcd")]) == pytest.approx(4 / 13)
