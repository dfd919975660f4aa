"""The bank of shadow models and the attacks that use it."""

import numpy as np
import pytest

from privhelpers.artifacts import Store
from privhelpers.attacks import panel
from privhelpers.attacks.bank import Bank
from privhelpers.errors import InvalidParameter
from privhelpers.results import Results

NOTES = tuple(f"t{n:03d}" for n in range(200))


def made(models=8, effect=0.5, seed=0):
    """Losses that differ in difficulty and fall by `effect` where a model trained on the note."""
    generator = np.random.default_rng(seed)
    inside = generator.random((models, len(NOTES))) < 0.5
    difficulty = generator.uniform(1, 4, len(NOTES))
    loss = difficulty - effect * inside + generator.normal(0, 0.1, inside.shape)
    noise = generator.normal(0, 0.1, inside.shape)
    bank = Bank(NOTES, inside, {"loss": loss, "min_k": -2 * loss + noise, "min_k_plus_plus": noise})
    return bank, {"public": difficulty + generator.normal(0, 0.3, len(NOTES))}


def test_the_bank_comes_back_as_it_was_written(tmp_path):
    bank, _ = made()
    store = Store(tmp_path, "test")
    bank.write(store)
    again = Results(store).shadow_bank
    assert again.notes == bank.notes and (again.inside == bank.inside).all()
    assert all((again.signals[name] == values).all() for name, values in bank.signals.items())


def test_notes_are_found_by_name_and_kept_in_the_order_asked_for():
    bank, _ = made()
    few = bank.only(notes=np.array(["t005", "t001"]), models=[2, 0])
    assert few.notes == ("t005", "t001") and few.inside.shape == (2, 2)
    assert (few.inside == bank.inside[[2, 0]][:, [5, 1]]).all()
    assert (few.signals["loss"] == bank.signals["loss"][[2, 0]][:, [5, 1]]).all()
    assert bank.rows(["x", "t001"]).tolist() == [False, True]
    with pytest.raises(InvalidParameter, match="'x'"):
        bank.only(notes=["x"])


def test_a_table_that_does_not_fit_is_refused():
    bank, _ = made()
    with pytest.raises(InvalidParameter, match="shapes"):
        Bank(NOTES[1:], bank.inside, bank.signals)
    with pytest.raises(InvalidParameter, match="shapes"):
        Bank(NOTES, bank.inside, {"min_k": bank.signals["min_k"]})


def test_every_attack_with_shadow_models_beats_the_loss_where_texts_differ():
    bank, references = made()
    scores = panel.in_turn(bank, references)
    areas = {
        name: np.mean([panel.area_and_rate(s, i)[0] for s, i in zip(rows, bank.inside, strict=True)])
        for name, rows in scores.items()
    }
    assert set(areas) == {
        *("loss", "min_k", "min_k_plus_plus", "reference_public", "shadow_classifier", "reference_shadows"),
        *("lira_online_fixed", "lira_online_each", "lira_offline_fixed", "lira_offline_each"),
    }
    for name in ("reference_public", "shadow_classifier", "lira_online_fixed", "lira_offline_fixed"):
        assert areas[name] > areas["loss"] + 0.1, name
    assert areas["min_k_plus_plus"] == pytest.approx(0.5, abs=0.05)


def test_nothing_is_found_where_training_left_no_trace():
    bank, references = made(effect=0.0)
    for name, rows in panel.in_turn(bank, references).items():
        areas = [panel.area_and_rate(s, i)[0] for s, i in zip(rows, bank.inside, strict=True)]
        assert abs(np.mean(areas) - 0.5) < 0.06, name


def test_the_target_is_never_among_its_own_shadow_models():
    bank, references = made()
    before = panel.in_turn(bank, references, targets=[0])
    flipped = bank.inside.copy()
    flipped[0] = ~flipped[0]  # the target's own membership must not enter its scores
    after = panel.in_turn(Bank(bank.notes, flipped, bank.signals), references, targets=[0])
    assert all((before[name] == after[name]).all() for name in before)


def test_refusals():
    bank, references = made(models=2)
    with pytest.raises(InvalidParameter, match="least"):
        panel.in_turn(bank, references)
    with pytest.raises(InvalidParameter, match="target"):
        panel.shadow_scores({"loss": np.zeros(3)}, bank, references)


def test_tables_hold_the_mean_over_targets_and_its_span():
    bank, references = made()
    turns = panel.in_turn(bank, references)
    table = panel.over_targets(turns, bank.inside)
    areas = [panel.area_and_rate(s, i)[0] for s, i in zip(turns["loss"], bank.inside, strict=True)]
    assert table.loc["loss"].tolist()[::2] == pytest.approx([np.mean(areas), min(areas)])
    assert table.loc["loss", "highest AUC"] == max(areas)


def test_more_shadow_models_make_a_better_attack():
    bank, references = made(models=17, effect=0.15)
    areas, rates = panel.by_count(bank, references, [2, 16], targets=range(4))
    assert areas.loc[16, "lira_offline_fixed"] > areas.loc[2, "lira_offline_fixed"]
    assert set(areas.columns) == set(rates.columns) and "loss" not in areas.columns
