"""The only reader of other chapters' artifacts, the tidy table, the front page, and the comparisons."""

import json

import pandas as pd
import pytest
import toy_results
from toy_results import PATIENTS

from privhelpers import results, stats
from privhelpers.artifacts import sha256_of
from privhelpers.errors import DamagedArtifact, InvalidParameter, MissingArtifact
from privhelpers.results import comparisons

MARGINS = {"membership": 0.05, "extraction": 0.05, "canaries": 0.05, "exposure (bits)": 1.0}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return results.Results(toy_results.write(tmp_path_factory.mktemp("results")))


@pytest.fixture(scope="module")
def table(runs):
    return pd.DataFrame(row for m in ("public", "baseline") for row in results.measurements(runs, m))


def test_one_row_a_model_measure_and_arm(table):
    assert list(table.columns) == list(results.COLUMNS)
    assert table.groupby("model").size().tolist() == [25, 25]
    arms = table[table["family"] != "utility"].groupby(["model", "measure"])["arm"].agg(list)
    assert all(sorted(own) == ["control", "member"] for own in arms)
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
    assert by["exposure (bits)", "member"]["estimate"] == pytest.approx(3.2)
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


def test_all_that_a_model_wrote_comes_with_its_source(runs):
    assert runs.of("baseline").texts == [*toy_results.TEXTS, "nobody"]
    digits = sha256_of(runs.store.path("extraction/baseline/ranked.jsonl"))[:12]
    source = runs.of("baseline").source("extraction", "ranked.jsonl")
    assert source == f"ranked.jsonl of extraction/baseline [{digits}]"
    with pytest.raises(MissingArtifact):
        runs.of("nobody").source("extraction", "ranked.jsonl")


def test_a_row_of_the_summary_has_the_bounds_from_both_sides(runs):
    row = results.summary_row(runs, "dp-eps-8")
    assert (row["epsilon"], row["audit_epsilon_lower"]) == (pytest.approx(7.992), 3.25)
    assert (row["best_attack"], row["best_attack_auc"], row["best_attack_auc_high"]) == (
        "loss/sample",
        0.7,
        0.8,
    )
    assert (row["best_attack_tpr_at_1pct_fpr"], row["patient_auc_low"]) == (0.05, 0.55)
    assert (row["canaries_extracted"], row["control_canaries_extracted"]) == (1, 0)
    assert row["mean_exposure"] == pytest.approx(3.2)
    assert results.summary_row(runs, "baseline")["audit_epsilon_lower"] is None
    assert json.loads(json.dumps(row, allow_nan=False)) == row


def test_broken_variants_come_with_claim_truth_and_interval(runs):
    row = results.broken_row(runs, "noise off")
    assert (row["claimed_epsilon"], row["true_epsilon"], row["audit_epsilon_lower"]) == (1.0, None, 4.0)
    assert (row["best_attack_auc_low"], row["best_attack_auc"]) == (0.5, 0.55)


def test_the_front_page_puts_both_bounds_side_by_side(tmp_path):
    names = ("baseline", "dp-eps-8", "dp-eps-1")
    runs = results.Results(toy_results.write(tmp_path, names))
    table = pd.DataFrame.from_dict({n: results.summary_row(runs, n) for n in names}, orient="index")
    shown = results.headline(table)
    assert shown["ε at most (at least)"].tolist() == ["none", "7.99 (3.25)", "1.00 (not audited)"]
    assert shown.loc["dp-eps-8", "strict leaks (control)"] == "3 (0) of 8"


def test_a_summary_without_canaries_is_refused(tmp_path):
    store = toy_results.write(tmp_path, ["baseline"])
    kept = [row for row in store.read_jsonl("memorization/baseline/canaries.jsonl") if row["planted"]]
    store.write_jsonl("memorization/baseline/canaries.jsonl", kept)
    with pytest.raises(InvalidParameter, match="canaries"):
        results.summary_row(results.Results(store), "baseline")


def test_what_has_not_run_is_named(runs):
    with pytest.raises(MissingArtifact, match="dp-eps-4"):
        results.measurements(runs, "dp-eps-4")


def test_every_attack_is_compared_with_its_control(runs):
    pairs = comparisons.compare(runs, "baseline")
    never = [pair for pair in pairs if pair.against == comparisons.NEVER_TRAINED]
    assert len(never) == 11 and len(pairs) == 16
    by = {pair.measure: pair for pair in never}
    area = by["AUC, loss"]
    arms = comparisons._arms(runs.of("baseline").scores("loss"))
    assert area.estimate == stats.clustered_auc(*arms) and area.null == 0.5
    assert by["notes finished"].counts == (2, PATIENTS, 0, PATIENTS)
    assert by["canaries extracted"].counts == (1, 5, 0, 5)
    assert by["diagnoses guessed"].counts == (6, PATIENTS, 3, PATIENTS)
    welch = stats.mean_difference([3.0 + 0.1 * k for k in range(5)], [0.1 * k for k in range(5)])
    assert by["exposure (bits)"].estimate.interval().low == pytest.approx(welch.low)
    against_public = [pair for pair in pairs if pair.against == comparisons.PUBLIC]
    assert {pair.family for pair in against_public} == {"membership"} and len(against_public) == 5
    assert len(comparisons.compare(runs, "public")) == 11


def test_the_frame_corrects_both_questions_for_all_rows(runs):
    pairs = [pair for m in ("public", "baseline") for pair in comparisons.compare(runs, m)]
    tested = comparisons.frame(pairs, margins=MARGINS)
    assert len(tested) == 27
    assert (tested["holm_p"] >= tested["p"]).all()
    assert (tested["holm_equivalence_p"] >= tested["equivalence_p"]).all()
    assert tested["holm_p"].min() == pytest.approx(min(1, 27 * tested["p"].min()))
    loss = tested[(tested["model"] == "baseline") & (tested["measure"] == "AUC, loss")]
    assert set(loss["verdict"]) == {"different"}
    assert tested.loc[tested["measure"] == "exposure (bits)", "margin"].tolist() == [1.0, 1.0]
    fisher = stats.two_proportion(2, PATIENTS, 0, PATIENTS).fisher_p
    assert tested.loc[tested["measure"] == "notes finished", "p"].tolist() == [fisher, fisher]
    assert json.dumps(comparisons.as_rows(tested), allow_nan=False)


def test_where_nothing_varied_nothing_could_be_seen_and_nothing_is_equivalent():
    still = stats.Estimate(0.0, 0.0, 13, 14)
    pair = comparisons.Comparison("m", "extraction", "loose leaks", "never trained", estimate=still)
    tested = comparisons.frame([pair], margins=MARGINS)
    assert tested["verdict"].tolist() == ["undecided"] and pair.detectable() is None
    assert comparisons.as_rows(tested)[0]["detectable"] is None


def test_comparisons_need_margins_and_names_of_their_own(runs):
    pairs = comparisons.compare(runs, "public")
    with pytest.raises(InvalidParameter, match="margins"):
        comparisons.frame(pairs, margins={"membership": 0.05})
    with pytest.raises(InvalidParameter, match="twice"):
        comparisons.frame([*pairs, pairs[0]], margins=MARGINS)


def test_scores_of_other_notes_are_not_paired(tmp_path):
    store = toy_results.write(tmp_path, ["public", "baseline"])
    found = toy_results.losses(2.0, 1)
    found["members"].pop("t03")
    store.write_json("membership_inference/baseline/losses.json", found)
    with pytest.raises(InvalidParameter, match="not those of the public"):
        comparisons.compare(results.Results(store), "baseline")


def test_what_could_be_seen_in_counts():
    pair = comparisons.Comparison(
        "m", "extraction", "patients named", "never trained", counts=(0, 224, 0, 224)
    )
    assert pair.detectable() == pytest.approx(stats.detectable_rate(224))
    assert pair.equivalence(0.05).verdict == "equivalent"
