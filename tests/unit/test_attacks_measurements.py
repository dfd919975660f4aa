"""The tidy table and the comparisons, from a store with a handful of patients."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from privhelpers import stats
from privhelpers.artifacts import Store
from privhelpers.attacks import comparisons, measurements
from privhelpers.errors import DamagedArtifact, InvalidParameter, MissingArtifact

PATIENTS, NOTES = 12, 2
MARGINS = {"membership": 0.05, "extraction": 0.05, "canaries": 0.05, "exposure (bits)": 1.0}


def notes(letter):
    return [
        {
            "note_id": f"{letter}{k:02d}",
            "patient_id": f"{letter}-{k // NOTES}",
            "text": "a b c"[: 1 + 2 * (k % 3)],
        }
        for k in range(PATIENTS * NOTES)
    ]


def losses(shift, seed):
    draws = np.random.default_rng(seed).normal(1.5, 0.3, size=(2, PATIENTS * NOTES))
    names = ([note["note_id"] for note in notes(letter)] for letter in "th")
    sides = zip(("members", "others"), names, (draws[0] - shift, draws[1]), strict=True)
    return {side: dict(zip(ids, values.tolist(), strict=True)) for side, ids, values in sides}


def perplexity(held):
    tokens = [len(note["text"].split()) + 1 for note in notes("h")]
    return math.exp(np.average(list(held.values()), weights=tokens))


def write_model(store, model, shift, seed):
    found = losses(shift, seed)
    scores = {note: -loss for side in found.values() for note, loss in side.items()}
    one = {"auc": [0.6, 0.5, 0.7]}
    attack = {
        "perplexity": perplexity(found["others"]),
        "attacks": {name: {"sample": one} for name in measurements.ATTACKS},
        "nulls": {f"{name}/sample": {"held_out": [0.5, 0.4, 0.6]} for name in measurements.ATTACKS},
    }
    home = f"membership_inference/{model}"
    store.write_json(f"{home}/losses.json", found)
    store.write_json(f"{home}/scores.json", {name: scores for name in measurements.ATTACKS[1:]})
    store.write_json(f"{home}/attack.json", attack)
    hits = {"strict": [0], "strict_control": [], "loose": [0, 1, 2], "loose_control": [1]}
    store.write_json(f"extraction/{model}/hits.json", hits)
    texts = [{"prompt": f"p{k % 4}", "text": str(k)} for k in range(8)]
    store.write_jsonl(f"extraction/{model}/generations.jsonl", texts)
    matches = {"strict": {"patients": 1}, "strict_control": {"patients": 0}}
    extraction = {"patients": PATIENTS, "distinct_generations": 7, "matches": matches}
    store.write_json(f"extraction/{model}/attack.json", extraction)
    memory = {"attributes": {"in_context/member": [0.5, 0.3, 0.7], "in_context/control": [0.25, 0.1, 0.5]}}
    store.write_json(f"memorization/{model}/attack.json", memory)
    guesses = [
        {"arm": arm, "note_id": note["note_id"], "correct": arm == "member" and k < 3}
        for arm, letter in (("member", "t"), ("control", "h"))
        for k, note in enumerate(notes(letter))
    ]
    store.write_jsonl(f"memorization/{model}/guesses.jsonl", guesses)
    canaries = [
        {"planted": planted, "extracted": planted and k == 0, "exposure_bits": 3.0 * planted + 0.1 * k}
        for planted in (True, False)
        for k in range(5)
    ]
    store.write_jsonl(f"memorization/{model}/canaries.jsonl", canaries)


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("measurements"), "course")
    for part, letter in (("train", "t"), ("heldout", "h")):
        store.write_jsonl(f"synthetic_records/{part}.jsonl", notes(letter))
    tokenizer = Tokenizer(WordLevel({"a": 0, "b": 1, "c": 2, "[UNK]": 3}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    store.write_bytes("public_pretraining/public/tokenizer.json", tokenizer.to_str().encode())
    for seed, (model, shift) in enumerate((("public", 0.0), ("baseline", 2.0))):
        write_model(store, model, shift, seed)
    return measurements.open_source(store)


@pytest.fixture(scope="module")
def table(source):
    return measurements.frame(row for m in ("public", "baseline") for row in measurements.rows(source, m))


def test_one_row_a_model_measure_and_arm(table):
    assert list(table.columns) == list(measurements.COLUMNS)
    assert table.groupby("model").size().tolist() == [25, 25]
    arms = table[table["family"] != "utility"].groupby(["model", "measure"])["arm"].agg(list)
    assert all(sorted(own) == ["control", "member"] for own in arms)
    assert ((table["low"] <= table["estimate"]) & (table["estimate"] <= table["high"])).all()


def test_rows_are_json_and_say_what_was_counted(source):
    rows = measurements.rows(source, "baseline")
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


def test_the_perplexity_is_clustered_and_that_of_the_chapter(source):
    found = measurements.held_out(source, "baseline")
    known = source.store.read_json("membership_inference/baseline/attack.json")["perplexity"]
    interval = found.interval()
    assert interval.estimate == pytest.approx(known) and interval.low < known < interval.high
    assert found.log_perplexity.clusters == PATIENTS
    wrong = replace(source, tokens={note: k + 1 for k, note in enumerate(source.tokens)})
    with pytest.raises(DamagedArtifact, match="perplexity"):
        measurements.held_out(wrong, "baseline")


def test_scores_carry_their_patients_and_are_higher_for_members(source):
    found = measurements.read_scores(source, "baseline", "loss")
    assert found.arms[0].mean() > found.arms[2].mean()
    assert set(found.arms[1]) == {f"t-{k}" for k in range(PATIENTS)}
    assert found.ids[0] == "t00" and len(found.ids) == 48
    with pytest.raises(InvalidParameter, match="zlib"):
        measurements.read_scores(source, "baseline", "zlib")


def test_what_has_not_run_is_named(source):
    with pytest.raises(MissingArtifact, match="dp-eps-4"):
        measurements.rows(source, "dp-eps-4")


def test_a_row_that_stands_twice_or_misses_its_interval_is_refused(source):
    rows = measurements.rows(source, "baseline")
    with pytest.raises(InvalidParameter, match="stands twice"):
        measurements.frame([*rows, rows[0]])
    with pytest.raises(InvalidParameter, match="misses"):
        measurements.frame([{**rows[0], "low": rows[0]["high"]}])


def test_every_attack_is_compared_with_its_control(source):
    pairs = comparisons.compare(source, "baseline")
    never = [pair for pair in pairs if pair.against == comparisons.NEVER_TRAINED]
    assert len(never) == 11 and len(pairs) == 16
    by = {pair.measure: pair for pair in never}
    area = by["AUC, loss"]
    arms = measurements.read_scores(source, "baseline", "loss").arms
    assert area.estimate == stats.clustered_auc(*arms) and area.null == 0.5
    assert by["notes finished"].counts == (2, PATIENTS, 0, PATIENTS)
    assert by["canaries extracted"].counts == (1, 5, 0, 5)
    assert by["diagnoses guessed"].counts == (6, PATIENTS, 3, PATIENTS)
    welch = stats.mean_difference([3.0 + 0.1 * k for k in range(5)], [0.1 * k for k in range(5)])
    assert by["exposure (bits)"].estimate.interval().low == pytest.approx(welch.low)
    against_public = [pair for pair in pairs if pair.against == comparisons.PUBLIC]
    assert {pair.family for pair in against_public} == {"membership"} and len(against_public) == 5
    assert len(comparisons.compare(source, "public")) == 11


def test_the_frame_corrects_both_questions_for_all_rows(source):
    pairs = [pair for m in ("public", "baseline") for pair in comparisons.compare(source, m)]
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


def test_comparisons_need_margins_and_names_of_their_own(source):
    pairs = comparisons.compare(source, "public")
    with pytest.raises(InvalidParameter, match="margins"):
        comparisons.frame(pairs, margins={"membership": 0.05})
    with pytest.raises(InvalidParameter, match="twice"):
        comparisons.frame([*pairs, pairs[0]], margins=MARGINS)


def test_scores_of_other_notes_are_not_paired(source, tmp_path):
    store = Store(tmp_path, "course")
    write_model(store, "public", 0.0, 0)
    write_model(store, "baseline", 0.0, 1)
    found = losses(0.0, 1)
    found["members"].pop("t03")
    store.write_json("membership_inference/baseline/losses.json", found)
    with pytest.raises(InvalidParameter, match="not those of the public"):
        comparisons.compare(replace(source, store=store), "baseline")


def test_what_could_be_seen_in_counts():
    pair = comparisons.Comparison(
        "m", "extraction", "patients named", "never trained", counts=(0, 224, 0, 224)
    )
    assert pair.detectable() == pytest.approx(stats.detectable_rate(224))
    assert pair.equivalence(0.05).verdict == "equivalent"
