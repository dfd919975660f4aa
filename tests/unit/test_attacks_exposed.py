"""Who is exposed: groups of notes and patients, and the table of all models."""

import numpy as np
import pandas as pd
import pytest

from privhelpers.attacks import exposed


def data(n=240, seed=0):
    generator = np.random.default_rng(seed)
    patients = np.array([f"p{k // 2:04d}" for k in range(n)])
    member = np.arange(n) < n // 2
    buckets = np.where(np.arange(n) % 4 < 2, "common", "rare")
    scores = generator.normal(size=n) + member * np.where(buckets == "rare", 2.0, 0.0)
    return scores, patients, member, buckets


def test_members_are_compared_within_their_bucket():
    scores, patients, member, buckets = data()
    shifted = scores + 100 * (buckets == "rare")  # difficulty alone must not count
    found = exposed.within(shifted, patients, member, buckets, draws=50)
    assert found["rare"].auc.estimate > 0.85
    assert abs(found["common"].auc.estimate - 0.5) < 0.15
    assert found["common"].n == (60, 60)


def test_small_buckets_and_missing_scores_are_left_out():
    scores, patients, member, buckets = data()
    buckets = buckets.copy()
    buckets[:4] = "tiny"
    scores[buckets == "rare"] = np.nan
    assert set(exposed.within(scores, patients, member, buckets, draws=20)) == {"common"}


def test_tables_and_lines_keep_the_buckets_that_all_models_have():
    scores, patients, member, buckets = data()
    both = exposed.within(scores, patients, member, buckets, draws=20)
    found = {"a": both, "b": {"rare": both["rare"]}}
    assert exposed.common_buckets(found) == ["rare"]
    assert exposed.estimates(found).loc["rare", "b"] == both["rare"].auc.estimate
    assert exposed.lines(found)["a"][1].tolist() == [both["rare"].auc.low]
    assert list(exposed.estimates({"a": both}, ["rare", "common"]).index) == ["rare", "common"]


def test_people_have_their_notes_and_profile():
    notes = [
        {"patient_id": "b", "condition": "x"},
        {"patient_id": "a", "condition": "x"},
        {"patient_id": "b", "condition": "y"},
    ]
    found = exposed.people(notes, [True, False, True])
    assert found.index.tolist() == ["a", "b"] and found["notes"].tolist() == [1, 2]
    assert found["member"].tolist() == [False, True]
    assert np.exp(found["log_p"].to_numpy()) == pytest.approx([0.5, 0.5])


def attack(auc):
    row = {"auc": auc, "tpr_at_1pct_fpr": [0.1, 0.0, 0.2]}
    levels = {"sample": row, "admission": row, "patient": {**row, "auc": [a + 0.1 for a in auc]}}
    return {
        "attacks": {"loss": levels, "zlib": levels},
        "patient_auc": levels["patient"]["auc"],
        "leakage_percent": {
            "sample": {"leakage in %": 40.0, "low": 30, "high": 50},
            "patient": {"leakage in %": 42.0, "low": 30, "high": 50},
        },
        "best_attack": "zlib/patient",
        "best_attack_auc": auc,
        "best_attack_tpr_at_1pct_fpr": row["tpr_at_1pct_fpr"],
        "advance_attack": "zlib",
    }


AREAS = {
    "baseline": [0.8, 0.7, 0.85],
    "best_nonprivate": [0.6, 0.55, 0.65],
    "dp-eps-8": [0.52, 0.49, 0.55],
}


@pytest.fixture
def rows():
    spent = dict.fromkeys(AREAS) | {"dp-eps-8": {"epsilon": 1.0, "delta": 1e-5}}
    return exposed.collect({name: attack(auc) for name, auc in AREAS.items()}, spent)


def test_one_row_a_model_with_its_limit_and_its_worst_interval(rows):
    assert rows.loc["dp-eps-8", "largest advantage"] == pytest.approx(0.462123, abs=1e-6)
    assert rows.loc["baseline", "largest advantage"] == 1 and np.isnan(rows.loc["baseline", "epsilon"])
    assert rows.loc["dp-eps-8", "highest end"] == pytest.approx(0.65)
    assert rows.loc["dp-eps-8", "of"] == "loss/patient"
    assert rows.loc["dp-eps-8", "intervals above"] == 2  # both patient levels: 0.59 and above
    assert rows.loc["dp-eps-8", "tries"] == 4  # admissions are notes here and count once
    assert exposed.column(rows, "loss note")[0].tolist() == [0.8, 0.6, 0.52]


def test_published_claims_and_verdicts_state_what_was_found(rows):
    claims = exposed.published(rows, rare_gain=0.05, epoch_gain=-0.01)
    assert claims["here"].tolist() == ["40.0", "40.0", "40.0 to 40.0", "+2.0", "+0.100", "+0.050", "-0.010"]
    ranges = {"baseline": (0.7, 0.75), "best_nonprivate": (0.55, 0.65), "dp-eps-8": (0.55, 0.65)}
    assert exposed.verdicts(rows, ranges)["verdict"].tolist() == ["above", "inside", "below"]
    assert isinstance(claims, pd.DataFrame)
