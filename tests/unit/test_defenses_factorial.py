"""The factorial: its cells, its contrasts against known answers, and one tiny cell from notes to outcome."""

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from privhelpers import models, records, stats, training
from privhelpers.artifacts import Store
from privhelpers.attacks import extraction
from privhelpers.defenses import Span, arms, factorial, readings, suite
from privhelpers.defenses import material as material_of
from privhelpers.defenses.factorial import Figure, Layers, effects
from privhelpers.errors import InvalidParameter

GENERATOR = np.random.default_rng(0)


def figure(value, draws=200, spread=0.01):
    return Figure(value, value + spread * GENERATOR.standard_normal(draws), 10)


def test_there_are_sixteen_cells_and_eight_trainings():
    cells = factorial.cells()
    assert len(set(cells)) == 16 and cells[0].name == "none"
    assert len({cell.name for cell in cells}) == 16
    assert len(factorial.trainings()) == 8
    assert {cell.training for cell in cells} == set(factorial.trainings())
    assert Layers(True, True, True, True).name == "scrub + dedup + DP + filter"


def test_effects_recover_a_model_without_and_with_interactions():
    def value(cell):
        return 1 + 0.5 * cell.scrub - 0.2 * cell.dedup - 0.9 * cell.dp + 0.3 * (cell.scrub and cell.dp)

    exact = {cell: Figure(value(cell), np.full(50, value(cell)), 1) for cell in factorial.trainings()}
    table = effects(exact)
    found = table["effect"].to_dict()
    # a main effect averages over the other layers: half of the interaction is in each
    wanted = {
        "scrub": 0.65,
        "dedup": -0.2,
        "DP": -0.75,
        "scrub x dedup": 0,
        "scrub x DP": 0.3,
        "dedup x DP": 0,
    }
    assert found == pytest.approx(wanted)


def test_effects_agree_with_least_squares():
    figures = {cell: figure(GENERATOR.normal()) for cell in factorial.cells()}
    table = effects(figures, factors=factorial.LAYERS)
    rows = pd.DataFrame(
        [[int(getattr(cell, layer)) for layer in factorial.LAYERS] for cell in figures],
        columns=factorial.LAYERS,
    )
    signs = 2 * rows - 1
    columns = [np.ones(16), *(signs[layer] for layer in factorial.LAYERS)]
    columns += [signs[a] * signs[b] for a, b in itertools.combinations(factorial.LAYERS, 2)]
    estimates = [f.estimate for f in figures.values()]
    solved = np.linalg.lstsq(np.column_stack(columns), estimates, rcond=None)[0]
    assert np.allclose(table["effect"][:4], 2 * solved[1:5])
    assert np.allclose(table["effect"][4:], 4 * solved[5:])


def test_an_interval_covers_and_a_flag_says_whether_it_excludes_zero():
    calm = {cell: figure(1.0 - cell.dp) for cell in factorial.trainings()}
    table = effects(calm)
    assert (table["low"] <= table["effect"]).all() and (table["effect"] <= table["high"]).all()
    assert table.loc["DP", "away_from_0"] and table.loc["DP", "effect"] == pytest.approx(-1)
    assert (table["away_from_0"] == ((table["low"] > 0) | (table["high"] < 0))).all()


def test_a_missing_cell_or_another_resample_is_refused():
    figures = {cell: figure(1.0) for cell in factorial.trainings()}
    with pytest.raises(InvalidParameter, match="scrub"):
        effects({cell: f for cell, f in figures.items() if cell != Layers(scrub=True)})
    with pytest.raises(InvalidParameter, match="resamples"):
        effects(figures | {Layers(): figure(1.0, draws=10)})


def test_an_area_is_that_of_stats_and_its_replicates_are_shared():
    members, others = GENERATOR.normal(0.5, 1, 40), GENERATOR.normal(0, 1, 40)
    patients = np.repeat(np.arange(20), 2)
    found = factorial.area(members, patients, others, patients, draws=100, seed=3)
    same = stats.auc_interval(members, patients, others, patients, draws=100, seed=3)
    assert (found.estimate, found.interval().low, found.interval().high) == (
        same.estimate,
        same.low,
        same.high,
    )
    assert found.n == 80
    # shifting both arms changes no replicate: the same people were drawn
    shifted = factorial.area(members + 1, patients, others + 1, patients, draws=100, seed=3)
    assert (shifted.replicates == found.replicates).all()


def test_a_difference_resamples_clusters():
    clusters = np.repeat(np.arange(10), 30)
    values = np.repeat(GENERATOR.normal(size=10), 30)
    control = np.zeros(300)
    wide = factorial.difference(values, clusters, control, clusters, draws=400)
    narrow = factorial.difference(values, np.arange(300), control, np.arange(300), draws=400)
    assert wide.estimate == pytest.approx(values.mean()) == pytest.approx(narrow.estimate)
    assert wide.replicates.std() > 3 * narrow.replicates.std()


def test_a_weighted_mean_is_the_log_of_a_perplexity():
    values, weights = [1.0, 2.0, 4.0], [10, 20, 10]
    found = factorial.weighted_mean(values, weights, ["a", "b", "c"], draws=100)
    assert found.estimate == pytest.approx((10 + 40 + 40) / 40)
    assert found.replicates.min() >= 1 and found.replicates.max() <= 4


def rates(hits, trials, control_hits, control_trials):
    arms = stats.clopper_pearson(hits, trials), stats.clopper_pearson(control_hits, control_trials)
    return factorial.joined(*arms)


def test_a_difference_of_rates_is_open_at_zero_and_contains_its_estimate():
    nothing = rates(0, 20, 0, 40)
    assert nothing.low < -0.05 and nothing.high > 0.1 and nothing.estimate == 0
    all_of_them = rates(20, 20, 0, 20)
    assert 0.7 < all_of_them.low < all_of_them.estimate == 1 <= all_of_them.high
    swapped = rates(3, 20, 9, 30), rates(9, 30, 3, 20)
    assert swapped[0].low == pytest.approx(-swapped[1].high)


def test_a_row_has_the_fields_that_later_chapters_read():
    interval = stats.clopper_pearson(1, 4)
    line = factorial.row(Layers(dp=True), "suffix recall", "trained", interval, n=4)
    assert list(line) == ["cell", "measure", "arm", "estimate", "low", "high", "n", "distinct_n"]
    assert line["cell"] == "DP" and line["distinct_n"] is None


# Texts of a cell.

NOTES = [
    {"patient_id": "a", "text": "Ann, flu"},
    {"patient_id": "b", "text": "Ann, flu"},
    {"patient_id": "a", "text": "Ann, flu"},
    {"patient_id": "a", "text": "home"},
]


def unique(texts):
    return list(dict.fromkeys(texts))


def texts(**on):
    clean = [note["text"].replace("Ann", "[NAME]") for note in NOTES]
    return material_of.training_texts(NOTES, Layers(**on), scrubbed=clean, deduplicate=unique)


def test_layers_change_the_texts_patient_by_patient():
    assert texts() == {"a": ["Ann, flu", "Ann, flu", "home"], "b": ["Ann, flu"]}
    assert texts(dedup=True) == {"a": ["Ann, flu", "home"], "b": ["Ann, flu"]}
    assert texts(scrub=True, dedup=True) == {"a": ["[NAME], flu", "home"], "b": ["[NAME], flu"]}
    assert texts(dp=True) == texts() and texts(filter=True) == texts()


def test_removing_a_patient_changes_no_other_patients_texts():
    everybody = texts(dedup=True)
    others = [note for note in NOTES if note["patient_id"] != "a"]
    alone = material_of.training_texts(others, Layers(dedup=True), scrubbed=["x"], deduplicate=unique)
    assert alone == {"b": everybody["b"]}


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
    plain = training.Settings(epochs=1, learning_rate=1e-3, batch_size=16)
    private = suite.Private(8.0, 1e-3, 0.5, 2, 0.5, 1e-3)
    clean = [n["text"] for n in hospital.train]
    own = material_of.training_texts(hospital.train, cell, scrubbed=clean, deduplicate=unique)
    return suite.Trial(cell, own, plain, private.plan(len(own)), 1e-3, 0)


@pytest.mark.parametrize("cell", [Layers(), Layers(dedup=True, dp=True)])
def test_a_cell_is_trained_and_attacked(store, hospital, material, cell):
    found = suite.run(store, trial(hospital, cell), material[0])
    assert found.cell == cell and found.raw.shape == found.recalled.shape == material[0].member.shape
    assert np.isfinite(found.raw).all() and np.isfinite(found.scrubbed).all()
    assert len(found.canaries) == 10 and len(found.generations) == 14
    assert (found.epsilon is None) == (not cell.dp) and (found.epsilon or 0) <= 8
    assert [guesses.size for guesses in found.first_guess] == [len(p) for p in material[0].people]
    assert found.seconds > 0 and found.texts == sum(map(len, trial(hospital, cell).texts.values()))


def test_a_trial_without_texts_is_the_public_checkpoint(store, hospital, material):
    empty = suite.Trial(Layers(), {}, None, None, 1e-3, 0)
    (found,) = suite.run_all(store, [empty], material[0])
    public, tokenizer = models.take(store, "public")
    losses = models.score(public, tokenizer, [n["text"] for n in material[0].notes]).losses
    assert found.cell is None and np.allclose(found.raw, losses, atol=1e-5)


# Who is trained on, and what is read off the outcomes.


def test_a_part_of_the_hospital_keeps_its_groups_apart(hospital):
    rows = [canary.as_dict() for canary in hospital.canaries]
    found = material_of.part_of_hospital(
        hospital.train, hospital.heldout, rows, patients=6, copies={1, 4}, seed=0
    )
    groups = [
        {note["patient_id"] for note in notes} for notes in (found.members, found.never, found.strangers)
    ]
    assert [len(group) for group in groups] == [6, 6, 6]
    assert not groups[0] & groups[1] and not groups[0] & groups[2]
    copies = {c["copies"] for c in found.canaries if c["planted"]}
    assert copies == {1, 4} and sum(not c["planted"] for c in found.canaries) == 5
    assert len(found.chosen) - len(found.members) == 5
    assert found.member.sum() == len(found.members) and len(found.everyone) == found.member.size
    with pytest.raises(InvalidParameter, match="patients"):
        material_of.part_of_hospital(hospital.train, hospital.heldout, rows, patients=99, copies={1}, seed=0)


class Digits:
    def find_all(self, texts):
        return [[Span(i, i + 1, "digit") for i, c in enumerate(t) if c.isdigit()] for t in texts]


def test_scrubbed_texts_and_what_is_left_are_counted():
    notes = [{"text": "room 7 of Ann", "spans": [{"value": "Ann"}, {"value": "7"}]}]
    clean = material_of.scrub_all(Digits(), notes)
    assert clean == ["room [DIGIT] of Ann"]
    assert material_of.left_standing(notes, clean) == (1, 2)
    assert material_of.without_near_duplicates(["a b c d e", "A b c d e!", "x y z"]) == ["a b c d e", "x y z"]


@pytest.fixture(scope="module")
def read_all(store, hospital, material):
    """One outcome serves all eight trainings: what is tested is how it is read."""
    (public,) = suite.run_all(store, [suite.Trial(Layers(), {}, None, None, 1e-3, 0)], material[0])
    result = public.canaries[0]
    known = [replace(one, extracted=one.planted) for one in public.canaries]
    trained = replace(
        public, canaries=tuple(known), recalled=material[0].member.copy(), raw=public.raw - material[0].member
    )
    outcomes = {cell: replace(trained, cell=cell) for cell in factorial.trainings()}
    strangers = {Layers(): public, Layers(dp=True): public}
    how = {"known": "", "draws": 50}
    found = readings.read(outcomes, public, material[0], lambda text: "", strangers=strangers, **how)
    return found, readings.control(public, material[0], **how), outcomes, public, result


def test_the_filter_changes_texts_and_nothing_else(read_all):
    found = read_all[0]
    held = found.figures[readings.HELD_BACK]
    assert set(held) == {cell for cell in factorial.cells() if cell.filter}
    assert all(one.estimate == 0 for one in held.values())  # this filter holds back everything of everybody
    for measure, by_cell in found.figures.items():
        if measure == readings.HELD_BACK:
            continue
        without, behind = by_cell[Layers()], by_cell[Layers(filter=True)]
        if measure in readings.IN_TEXT[:2]:
            assert without.estimate == 1 and behind.estimate == 0
        elif measure not in readings.IN_TEXT:
            assert without.estimate == behind.estimate


def test_every_rate_has_its_control_arm_and_every_line_is_unique(read_all):
    rows = pd.DataFrame(read_all[0].rows)
    assert not rows.duplicated(["cell", "measure", "arm"]).any()
    rates = rows[rows["measure"].isin([*readings.IN_TEXT, "diagnosis by name"])]
    assert (rates.groupby(["cell", "measure"])["arm"].nunique() == 3).all()
    assert (rows["low"] <= rows["estimate"]).all() and (rows["estimate"] <= rows["high"]).all()
    prompts = rows[(rows["measure"] == "prompts that leaked") & (rows["arm"] != "difference")]
    assert (prompts["distinct_n"] <= prompts["n"]).all()
    assert set(rows["cell"]) == {cell.name for cell in factorial.cells()}


def test_memory_is_what_lies_above_a_model_of_other_people(read_all):
    found = read_all[0]
    above = found.figures["above control, patient, loss"]
    own = found.figures["membership, patient, loss"]
    assert set(above) == {c for c in factorial.cells() if not c.scrub}
    assert own[Layers()].estimate > 0.5
    # the outcome of these cells is the control plus a nat for every member
    null = read_all[1].figures["membership, patient, loss"][Layers()]
    assert above[Layers()].estimate == pytest.approx(own[Layers()].estimate - null.estimate)
    assert above[Layers()].estimate > 0


def test_tables_say_what_the_lines_say(read_all):
    found = read_all[0]
    shown = found.shown(["membership, note, loss"], factorial.trainings())
    assert list(shown.columns) == ["note, loss"] and len(shown) == 8
    table = found.rates(readings.IN_TEXT)
    assert table.loc["none", ("canaries extracted", "trained")] == 1
    assert table.loc["none", ("canaries extracted", "never trained")] == 0
    where = {"none": Layers(), "filter": Layers(filter=True)}
    words = found.verdicts(where, {"canaries extracted": 0.0})
    assert words.loc["canaries extracted"].tolist() == ["leaks", "not seen"]
    both = found.perplexities([Layers()])
    assert both.loc["none", "raw"] == pytest.approx(np.exp(found.figures["loss, raw"][Layers()].estimate))
    with pytest.raises(KeyError):
        found.interval("nothing", Layers())


def test_nulls_are_required_and_a_filter_is_counted(read_all, material):
    _, _, outcomes, public, _ = read_all
    table = arms.require_nulls(outcomes, public, material[0], draws=50)
    assert table.shape == (8, 4)
    never = [note for note, own in zip(material[0].notes, material[0].member, strict=True) if not own]
    assert arms.held_back(lambda text: False, never).estimate == 0
    assert arms.held_back(lambda text: False, never).high > 0
