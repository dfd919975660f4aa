"""The bank of shadow models and the attacks that use it."""

import numpy as np

from privhelpers import stats
from privhelpers.artifacts import Store
from privhelpers.attacks import panel
from privhelpers.attacks.bank import Bank
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


def areas_in_turn(bank, references):
    """Mean AUC of every attack, each model attacked with all others."""
    areas = {}
    for target in range(len(bank.inside)):
        target_signals = {name: values[target] for name, values in bank.signals.items()}
        rest = bank.only(models=[m for m in range(len(bank.inside)) if m != target])
        scores = {"loss": -target_signals["loss"], **panel.shadow_scores(target_signals, rest, references)}
        for name, values in scores.items():
            area = stats.auc(values[bank.inside[target]], values[~bank.inside[target]])
            areas.setdefault(name, []).append(area)
    return {name: np.mean(values) for name, values in areas.items()}


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


def test_every_attack_with_shadow_models_beats_the_loss_where_texts_differ():
    areas = areas_in_turn(*made())
    assert set(areas) == {
        *("loss", "shadow_classifier", "reference_shadows"),
        *("lira_online_fixed", "lira_online_each", "lira_offline_fixed", "lira_offline_each"),
    }
    for name in ("reference_shadows", "shadow_classifier", "lira_online_fixed", "lira_offline_fixed"):
        assert areas[name] > areas["loss"] + 0.1, name


def test_nothing_is_found_where_training_left_no_trace():
    for name, area in areas_in_turn(*made(effect=0.0)).items():
        assert abs(area - 0.5) < 0.06, name
