"""The only reader of other chapters' artifacts, the tidy table and the front page."""

import json

import pandas as pd
import pytest
import toy_results
from toy_results import PATIENTS

from privhelpers import results, stats
from privhelpers.artifacts import sha256_of
from privhelpers.errors import DamagedArtifact, InvalidParameter, MissingArtifact


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return results.Results(toy_results.write(tmp_path_factory.mktemp("results")))


@pytest.fixture(scope="module")
def table(runs):
    return pd.DataFrame(row for m in ("public", "baseline") for row in results.measurements(runs, m))


def test_one_row_per_model_measure_and_arm(table):
    assert not table["measure"].str.contains("_|lira").any(), "in words"
    assert list(table.columns) == list(results.COLUMNS)
    assert table.groupby("model").size().tolist() == [25, 25]
    arms = table[table["family"] != "utility"].groupby(["model", "measure"])["arm"].agg(list)
    assert all(sorted(names) == ["control", "member"] for names in arms)
    assert ((table["low"] <= table["estimate"]) & (table["estimate"] <= table["high"])).all()


def test_rows_are_json_and_say_what_was_counted(runs):
    rows = results.measurements(runs, "baseline")
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
    by = {(row["measure"], row["arm"]): row for row in rows}
    auc = by["AUC, loss", "member"]
    assert (auc["estimate"], auc["n"], auc["clusters"], auc["distinct_n"]) == (0.6, 48, 24, None)
    assert by["AUC, loss", "control"]["clusters"] == PATIENTS
    strict = by["strict leaks", "member"]
    assert (strict["estimate"], strict["n"], strict["distinct_n"], strict["clusters"]) == (1 / 8, 8, 7, 4)
    finished = by["notes finished", "member"]  # notes 0, 1 and 2 belong to two patients
    assert (finished["estimate"], finished["n"]) == (2 / PATIENTS, PATIENTS)
    exact = stats.clopper_pearson(2, PATIENTS)
    assert (finished["low"], finished["high"]) == (exact.low, exact.high)
    assert by["exposure (bits)", "member"]["estimate"] == pytest.approx(5.2)  # one rank counted among all
    assert by["exposure (bits)", "control"]["estimate"] == pytest.approx(0.2)
    assert by["canaries extracted", "member"]["estimate"] == pytest.approx(0.2)


def test_the_perplexity_is_that_of_the_chapter(runs, tmp_path):
    row = results.measurements(runs, "baseline")[0]
    known = runs.of("baseline").membership["perplexity"]
    assert row["estimate"] == pytest.approx(known) and row["low"] < known < row["high"]
    assert row["clusters"] == PATIENTS
    store = toy_results.write(tmp_path, ["baseline"])
    wrong = runs.of("baseline").membership | {"perplexity": known * 1.01}
    store.write_json("membership_inference/baseline/attack.json", wrong)
    with pytest.raises(DamagedArtifact, match="perplexity"):
        results.Results(store).of("baseline").held_out()


def test_scores_carry_their_patients_and_are_higher_for_members(runs):
    notes = runs.of("baseline").scores("loss")
    members, others = notes[notes["member"]], notes[~notes["member"]]
    assert members["score"].mean() > others["score"].mean()
    assert set(members["patient"]) == {f"t-{k}" for k in range(PATIENTS)}
    assert notes.index[0] == "t00" and len(notes) == 48
    with pytest.raises(InvalidParameter, match="zlib"):
        runs.of("baseline").scores("zlib")


def test_a_private_model_has_losses_of_a_model_of_other_people(runs):
    private = runs.of("dp-eps-8")
    assert set(private.other_people) == set(private.scores("loss").index)
    assert runs.of("baseline").other_people is None and runs.of("public").other_people is None
    with pytest.raises(MissingArtifact, match="dp-eps-4"):
        _ = runs.of("dp-eps-4").other_people
    with pytest.raises(MissingArtifact, match="dp-eps-4"):
        results.measurements(runs, "dp-eps-4")


def test_a_row_of_the_summary_has_the_bounds_from_both_sides(runs):
    row = results.summary_row(runs, "dp-eps-8")
    assert (row["epsilon"], row["audit_epsilon_lower"]) == (pytest.approx(7.992), 3.25)
    assert (row["best_attack"], row["best_attack_auc"], row["best_attack_auc_high"]) == (
        "loss/sample",
        0.7,
        0.8,
    )
    assert (row["best_attack_tpr_at_1pct_fpr"], row["patient_auc_low"]) == (0.05, 0.55)
    gain = [row[f"token_attacks_gain_at_01pct_fpr{end}"] for end in ("", "_low", "_high")]
    assert (row["best_attack_tpr_at_01pct_fpr_high"], gain) == (0.03, [-0.01, -0.02, 0.01])
    assert (row["canaries_extracted"], row["canaries_extracted_control"]) == (1, 0)
    exposure = [row[name] for name in ("mean_exposure", "mean_exposure_control", "exposure_at_most")]
    assert exposure == pytest.approx([5.2, 0.2, 23.25])
    assert results.summary_row(runs, "baseline")["audit_epsilon_lower"] is None
    assert json.loads(json.dumps(row, allow_nan=False)) == row


def test_the_front_page_puts_both_bounds_side_by_side(tmp_path):
    names = ("baseline", "dp-eps-8", "dp-eps-1")
    runs = results.Results(toy_results.write(tmp_path, names))
    table = pd.DataFrame.from_dict({n: results.summary_row(runs, n) for n in names}, orient="index")
    shown = results.headline(table)
    assert shown["ε at most (at least)"].tolist() == ["none", "7.99 (3.25)", "1.00 (not audited)"]
    assert shown.index.tolist() == ["baseline", "ε = 8", "ε = 1"]
    assert shown["which drug, F1 (floor)"].tolist() == ["0.60 (0.04)", "0.04 (0.04)", "0.04 (0.04)"]
    named = "numbers by name, % of 20 (of 18)"
    assert shown.loc["ε = 8", named] == "25 [9, 49] (0)"
    table.loc["dp-eps-8", "numbers_asked_control"] = 17
    with pytest.raises(InvalidParameter, match="numbers_asked: differs between models"):
        results.headline(table)


def drugs(**private):
    """What the chapter on utility keeps, with the gain of each private model and its 95% ends."""
    best = private.pop("best", (0.56, 0.52, 0.6))
    gains = {"best_nonprivate": best} | {f"dp-eps-{name[1:]}": gain for name, gain in private.items()}
    asked = {name: {"macro-F1, asked": [0.04 + end for end in gain]} for name, gain in gains.items()}
    floor = {"most frequent drug": [0.04, 0.03, 0.05]}
    return {"models": asked, "without a model": floor, "above the floor": gains}


def test_a_model_without_a_score_on_drugs_is_named(tmp_path):
    store = toy_results.write(tmp_path, ["baseline"])
    store.write_json("private_utility/utility.json", {"drugs": drugs(e8=(0.0, 0.0, 0.0))})
    with pytest.raises(MissingArtifact, match=r"utility\.json: baseline"):
        results.summary_row(results.Results(store), "baseline")


def test_a_summary_without_canaries_is_refused(tmp_path):
    store = toy_results.write(tmp_path, ["baseline"])
    kept = [row for row in store.read_jsonl("memorization/baseline/canaries.jsonl") if row["planted"]]
    store.write_jsonl("memorization/baseline/canaries.jsonl", kept)
    with pytest.raises(InvalidParameter, match="canaries"):
        results.summary_row(results.Results(store), "baseline")


def test_generated_texts_come_with_their_source(runs):
    assert runs.of("baseline").texts == [*toy_results.TEXTS, "nobody"]
    digits = sha256_of(runs.store.path("extraction/baseline/ranked.jsonl"))[:12]
    source = runs.of("baseline").source("ranked")
    assert source == f"ranked.jsonl of extraction/baseline [{digits}]"
    with pytest.raises(MissingArtifact):
        runs.of("nobody").source("ranked")


def test_broken_variants_come_with_claim_truth_and_interval(runs):
    row = results.broken_row(runs, "noise off")
    assert (row["claimed_epsilon"], row["true_epsilon"], row["audit_epsilon_lower"]) == (1.0, None, 4.0)
    assert (row["best_attack_auc_low"], row["best_attack_auc"]) == (0.5, 0.55)
