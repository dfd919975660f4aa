"""The factorial: its cells, its estimates, and one tiny cell from notes to outcome."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from privhelpers import dpsgd, models, records, training
from privhelpers.artifacts import Store
from privhelpers.attacks import extraction
from privhelpers.defenses import Pipeline, factorial, measures, suite
from privhelpers.defenses.factorial import Layers

# One cell, from notes to outcome.


@pytest.fixture(scope="module")
def hospital():
    return records.make_hospital_records(
        seed=3,
        patients=14,
        validation_patients=2,
        heldout_patients=14,
        canaries_per_level=1,
        report_share=0.5,
    )


@pytest.fixture(scope="module")
def store(tmp_path_factory, hospital):
    store = Store(tmp_path_factory.mktemp("runs") / "artifacts", "test")
    tokenizer = models.train_tokenizer([n["text"] for n in hospital.heldout], vocab_size=400)
    models.put(store, "public", models.build("micro-gpt2", tokenizer, seed=0), tokenizer)
    return store


@pytest.fixture(scope="module")
def material(hospital):
    members = [n for n in hospital.train if n["kind"] != "canary"]
    notes = members + hospital.heldout
    people = extraction.equal_groups(extraction.profiles(members), extraction.profiles(hospital.heldout), 0)
    asked = suite.Suite(
        notes=notes,
        member=np.arange(len(notes)) < len(members),
        scrubbed=[note["text"].replace("-", " ") for note in notes],
        canaries=[c.as_dict() for c in hospital.canaries],
        digits=7,
        references=7,
        per_prompt=1,
        people=people,
        seed=0,
    )
    return asked, [n["text"] for n in hospital.train]


def trial(hospital, cell):
    threshold = 0.8 if cell.dedup else None
    texts = Pipeline(threshold=threshold, within_patients=True).prepare(hospital.train).by_patient()
    if not cell.dp:
        plain = training.Settings(epochs=1, learning_rate=1e-3, batch_size=16)
        return suite.Trial(cell, texts, None, plain, 0)
    budget = {"target_epsilon": 8.0, "target_delta": 1e-3, "sample_rate": 0.5, "max_grad_norm": 0.5}
    plan = dpsgd.plan_privacy(**budget, steps=2, units=len(texts))
    return suite.Trial(cell, texts, plan, dpsgd.Settings(learning_rate=1e-3), 0)


@pytest.mark.parametrize("cell", [Layers(), Layers(dedup=True, dp=True)])
def test_a_cell_is_trained_and_attacked(store, hospital, material, cell):
    (outcome,) = suite.run_all(store, [trial(hospital, cell)], material[0])
    assert outcome.cell == cell and outcome.raw.shape == outcome.recalled.shape == material[0].member.shape
    assert np.isfinite(outcome.raw).all() and np.isfinite(outcome.scrubbed).all()
    assert len(outcome.canaries) == 10 and len(outcome.generations) == 14
    assert (outcome.epsilon is None) == (not cell.dp) and (outcome.epsilon or 0) <= 8
    assert [guesses.size for guesses in outcome.first_guess] == [len(p) for p in material[0].people]
    assert outcome.seconds > 0 and outcome.texts == sum(map(len, trial(hospital, cell).texts.values()))


def test_a_trial_without_texts_is_the_public_checkpoint(store, hospital, material):
    empty = suite.Trial(Layers(), {}, None, None, 0)
    (outcome,) = suite.run_all(store, [empty], material[0])
    public, tokenizer = models.take(store, "public")
    losses = models.score(public, tokenizer, [n["text"] for n in material[0].notes]).losses
    assert outcome.cell is None and np.allclose(outcome.raw, losses, atol=1e-5)


# What is read off the outcomes.


@pytest.fixture(scope="module")
def read_all(store, hospital, material):
    """One outcome serves all eight trainings: what is tested is how it is read."""
    (public,) = suite.run_all(store, [suite.Trial(Layers(), {}, None, None, 0)], material[0])
    known = [replace(canary, extracted=canary.planted) for canary in public.canaries]
    trained = replace(
        public, canaries=tuple(known), recalled=material[0].member.copy(), raw=public.raw - material[0].member
    )
    outcomes = {cell: replace(trained, cell=cell) for cell in factorial.trainings()}
    strangers = {Layers(): public, Layers(dp=True): public}
    options = {"known": "", "draws": 50}
    rows = measures.measure(outcomes, public, material[0], lambda text: "", strangers=strangers, **options)
    return rows, measures.measure_public(public, material[0], **options)


def at(rows, measure, cell=None):
    (row,) = [
        r for r in rows if r.measure == measure and r.cell == (cell or Layers()) and r.estimate is not None
    ]
    return row.estimate.estimate


def test_the_filter_changes_texts_and_nothing_else(read_all):
    rows = read_all[0]
    held = [row for row in rows if row.measure == measures.HELD_BACK and row.estimate is not None]
    assert {row.cell for row in held} == {cell for cell in factorial.cells() if cell.filter}
    assert all(row.estimate.estimate == 0 for row in held)  # this filter holds back everything of everyone
    for measure in {row.measure for row in rows} - {measures.HELD_BACK}:
        without, behind = at(rows, measure), at(rows, measure, Layers(filter=True))
        if measure in measures.IN_TEXT[:2]:
            assert without == 1 and behind == 0
        elif measure not in measures.IN_TEXT:
            assert without == behind


def test_every_rate_has_its_control_arm_and_every_line_is_unique(read_all):
    frame = pd.DataFrame([row.as_dict() for row in read_all[0]])
    assert not frame.duplicated(["cell", "measure", "arm"]).any()
    rates = frame[frame["measure"].isin([*measures.IN_TEXT, "diagnosis by name"])]
    assert (rates.groupby(["cell", "measure"])["arm"].nunique() == 3).all()
    assert (frame["low"] <= frame["estimate"]).all() and (frame["estimate"] <= frame["high"]).all()
    prompts = frame[(frame["measure"] == "prompts that leaked") & (frame["arm"] != "difference")]
    assert (prompts["distinct_n"] <= prompts["n"]).all()
    assert set(frame["cell"]) == {cell.name for cell in factorial.cells()}


def test_memory_is_what_lies_above_a_model_of_other_people(read_all):
    rows, null = read_all
    above, member = "above control, patient, loss", "membership, patient, loss"
    assert {r.cell for r in rows if r.measure == above} == {c for c in factorial.cells() if not c.scrub}
    # the outcome of these cells is the control plus a nat for every member
    assert at(rows, above) == pytest.approx(at(rows, member) - at(null, member)) and at(rows, above) > 0
