"""One row a model, one a broken variant, and the table of the front page."""

import pandas as pd
import pytest

from privhelpers.artifacts import Store
from privhelpers.attacks import summary
from privhelpers.errors import InvalidParameter, MissingArtifact

MEMBERSHIP = {
    "perplexity": 2.5,
    "auc": [0.6, 0.5, 0.7],
    "tpr_at_1pct_fpr": [0.02, 0.01, 0.03],
    "membership_advantage": 0.2,
    "null_auc": [0.51, 0.45, 0.56],
    "patient_auc": [0.65, 0.55, 0.75],
    "best_attack": "loss/patient",
    "best_attack_auc": [0.7, 0.6, 0.8],
    "best_attack_tpr_at_1pct_fpr": [0.05, 0.02, 0.08],
}
EXTRACTION = {
    "attempts": 1400,
    "distinct_generations": 1390,
    "matches": {
        name: {"leaks": leaks}
        for name, leaks in (("strict", 3), ("strict_control", 0), ("loose", 250), ("loose_control", 260))
    },
}
MEMORIZATION = {
    "exposure_difference": [4.0, 3.0, 5.0],
    "suffix": {"recalled": 2, "control": 0, "notes": 100},
}
CANARIES = [
    {"planted": planted, "copies": 4 * planted, "extracted": planted, "exposure_bits": 1.0 + 4 * planted}
    for planted in (True, False)
]
BROKEN = {
    "claimed_epsilon": 1.0,
    "true_epsilon": None,
    "audit_epsilon_lower": 4.0,
    "perplexity": 2.0,
    "best_attack_auc": [0.55, 0.5, 0.6],
    "fault": "no noise",
}


@pytest.fixture
def store(tmp_path):
    store = Store(tmp_path, "course")
    for model in ("baseline", "dp-eps-8", "dp-eps-1"):
        store.write_json(f"extraction/{model}/attack.json", EXTRACTION)
        store.write_json(f"membership_inference/{model}/attack.json", MEMBERSHIP)
        store.write_json(f"memorization/{model}/attack.json", MEMORIZATION)
        store.write_jsonl(f"memorization/{model}/canaries.jsonl", CANARIES)
    for model, epsilon in (("dp-eps-8", 7.99), ("dp-eps-1", 0.99)):
        store.write_json(
            f"private_training/{model}/metrics.json", {"spent": {"epsilon": epsilon, "delta": 1e-5}}
        )
    bounds = {"baseline": None, "dp-eps-8": 3.25, "dp-eps-1": None}
    rows = {name: {"audit_epsilon_lower": bound} for name, bound in bounds.items()}
    store.write_json("auditing/audit.json", {"models": rows})
    store.write_json("broken_dpsgd/broken.json", {"broken": {"noise off": BROKEN}})
    return store


def test_a_row_has_the_bounds_from_both_sides_and_the_best_attack(store):
    row = summary.collect(store, "dp-eps-8")
    assert (row["epsilon"], row["audit_epsilon_lower"]) == (7.99, 3.25)
    assert (row["best_attack"], row["best_attack_auc"], row["best_attack_auc_high"]) == (
        "loss/patient",
        0.7,
        0.8,
    )
    assert (row["best_attack_tpr_at_1pct_fpr"], row["patient_auc_low"]) == (0.05, 0.55)
    assert (row["canaries_extracted"], row["control_canaries_extracted"]) == (1, 0)
    assert summary.collect(store, "baseline")["audit_epsilon_lower"] is None


def test_broken_variants_come_with_claim_truth_and_interval(store):
    row = summary.collect_broken(store)["noise off"]
    assert (row["claimed_epsilon"], row["true_epsilon"], row["audit_epsilon_lower"]) == (1.0, None, 4.0)
    assert (row["best_attack_auc_low"], row["best_attack_auc"]) == (0.5, 0.55)
    whole = summary.as_json({"baseline": summary.collect(store, "baseline")}, {"noise off": row})
    assert set(whole) == {"models", "broken"} and set(whole["broken"]) == {"noise off"}


def test_the_front_page_puts_both_bounds_side_by_side(store):
    names = ("baseline", "dp-eps-8", "dp-eps-1")
    table = pd.DataFrame.from_dict({name: summary.collect(store, name) for name in names}, orient="index")
    shown = summary.headline(table)
    assert shown["ε at most (at least)"].tolist() == ["none", "7.99 (3.25)", "0.99 (not audited)"]
    assert shown.loc["dp-eps-8", "strict leaks (control)"] == "3 (0) of 1400"


def test_what_has_not_run_is_named(store):
    with pytest.raises(MissingArtifact, match="dp-eps-4"):
        summary.collect(store, "dp-eps-4")


def test_a_summary_without_canaries_is_refused():
    with pytest.raises(InvalidParameter, match="canaries"):
        summary._canaries([])
