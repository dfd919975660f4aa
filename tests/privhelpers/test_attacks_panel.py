"""The bank of shadow models and the attacks that use it."""

import numpy as np
import pytest

from privhelpers import artifacts, models, stats, training
from privhelpers.artifacts import Store
from privhelpers.attacks import battery, panel, shadow, signals
from privhelpers.attacks.bank import Bank
from privhelpers.attacks.scores import measure, select_attack
from privhelpers.attacks.shadow import Task
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


# The battery: every attack on one model, in one table.


def battery_of(effect, seed=0):
    """Scores of 400 notes of 200 patients under every attack; the shadow models know the first 200."""
    bank, _ = made(effect=effect, seed=seed)
    generator = np.random.default_rng(seed)
    ids = [*NOTES, *(f"x{n:03d}" for n in range(200))]
    member = np.arange(400) % 2 == 0
    start = [generator.normal(-2.0, 0.3, 10) for _ in ids]
    token_log_p = tuple(row + effect * one for row, one in zip(start, member, strict=True))
    found = signals.Signals(
        loss=np.array([-row.mean() for row in token_log_p]),
        min_k=np.array([row.min() for row in token_log_p]),
        min_k_plus_plus=np.array([row.max() for row in token_log_p]),
        tokens=np.full(400, 10),
        zlib_bytes=np.full(400, 50),
        lower_loss=None,
        token_log_p=token_log_p,
        token_greedy=(np.zeros(10, dtype=bool),) * 400,
    )
    references = {"public": {i: -row.mean() for i, row in zip(ids, start, strict=True)}}
    notes = [{"patient_id": f"p{n % 2}-{n // 4}", "admission": n // 2 % 2} for n in range(400)]
    return battery.all_scores(found, ids, references, start, bank), notes, member


def test_the_battery_has_every_attack_and_leaves_out_what_shadow_models_do_not_know():
    scores, notes, member = battery_of(0.5)
    assert len(scores) == 400 and scores["loss"].notna().all() and {*battery.ON_TOKENS} < {*scores}
    known = scores.notna().all(axis=1)
    assert known.sum() == 200 and known.iloc[:200].all()
    assert np.allclose(scores["reference_public"], 0.5 * member)
    tries = battery.arms_by_name(scores, notes, member)
    assert len(tries) == 2 * len(scores.columns), "every admission has one note"
    tables = battery.by_attack({name: measure(one, draws=50) for name, one in tries.items()})
    assert tables["lira_online_fixed"]["sample"]["n"] == [100, 100]
    assert tables["loss"]["patient"]["auc"][0] > 0.9
    assert all(rows["admission"] == rows["sample"] for rows in tables.values())


def test_what_the_battery_writes_is_what_results_reads(tmp_path):
    scores, notes, member = battery_of(0.5)
    few = scores[["loss", "reference_public", "lira_offline_fixed", "wbc"]]
    tries = battery.arms_by_name(few, notes, member)
    measured = {name: measure(one, draws=50) for name, one in tries.items()}
    nulls = {name: {"held_out": [0.5, 0.4, 0.6]} for name in tries}
    best, store = select_attack(tries, draws=50), Store(tmp_path, "test")
    battery.write(store, "m", few, notes, member, measured, nulls, best, {"perplexity": 2.0}, draws=50)
    found = Results(store).of("m")
    assert found.membership["patients"] == [100, 100] and found.membership["perplexity"] == 2.0
    assert found.membership["best_attack"] == best.name and len(found.membership["best_attack_auc"]) == 3
    assert len(found.membership["token_attacks"]["sample at 0.001"]["difference"]) == 3
    assert found.losses["members"][scores.index[0]] == -scores["loss"].iloc[0]
    saved = store.read_json("membership_inference/m/scores.json")
    assert {name: len(values) for name, values in saved.items()} == {
        "reference_public": 400,
        "lira_offline_fixed": 200,
    }


def test_the_gain_of_attacks_on_tokens_is_a_difference_of_two_rates_on_the_same_patients():
    for effect in (0.0, 0.5):
        scores, notes, member = battery_of(effect)
        gain = battery.token_gain(scores, notes, member, rate=0.1, draws=100)
        assert gain["attacks"][0] in battery.ON_TOKENS and gain["attacks"][1] not in battery.ON_TOKENS
        estimate, low, high = gain["difference"]
        assert estimate == pytest.approx(gain["tpr"][0] - gain["tpr"][1]) and low <= estimate <= high
        assert gain["controls"] == 50 and (effect > 0 or low <= 0 <= high)
    with pytest.raises(InvalidParameter, match="on tokens"):
        battery.token_gain(scores[["loss"]], notes, member)


# Shadow models: independent halves, results that survive a kill, and the classifier.


TEXTS = tuple(f"Seen in room {n}, BP 1{n}0/80, Asthma." for n in range(12))
SETTINGS = training.Settings(epochs=1, learning_rate=1e-3, batch_size=4)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("runs") / "artifacts", "test")
    tokenizer = models.train_tokenizer(list(TEXTS), vocab_size=300)
    models.put(store, "public", models.build("micro-gpt2", tokenizer, seed=0), tokenizer)
    return store


@pytest.fixture
def in_a_build(monkeypatch):
    monkeypatch.setenv(artifacts.RUNNER, "of this code")


@pytest.fixture
def counted(in_a_build):
    """Training that counts its calls."""
    calls = []

    def train(*args, **kwargs):
        calls.append(args[2])
        return training.train(*args, **kwargs)

    train.calls = calls
    return train


def tasks(count=2, **change):
    settings = training.Settings(**{**vars(SETTINGS), **change})
    return [Task(f"shadow-{n}", TEXTS[n : n + 6], TEXTS, settings, seed=n) for n in range(count)]


def run(store, train, some, **options):
    return shadow.train_all(store, "10a_test", some, train=train, progress=False, **options)


def test_a_second_run_trains_nothing_and_returns_the_same(store, counted):
    first = run(store, counted, tasks())
    assert len(counted.calls) == 2
    assert {name: values.shape for name, values in first[0].items()} == dict.fromkeys(shadow.KEPT, (12,))
    again = run(store, counted, tasks())
    assert len(counted.calls) == 2
    for a, b in zip(first, again, strict=True):
        assert all((a[name] == b[name]).all() for name in shadow.KEPT)


def test_a_damaged_file_is_trained_again(store, counted):
    expected = run(store, counted, tasks(1))
    file = store.unfinished("10a_test") / "shadow-0.json"
    values = artifacts.parse_json(file.read_bytes(), file.name)
    values["result"]["loss"][0] += 0.001
    file.write_bytes(artifacts.to_json(values))
    del counted.calls[:]
    assert (run(store, counted, tasks(1))[0]["loss"] == expected[0]["loss"]).all()
    assert len(counted.calls) == 1


def test_what_is_done_stays_when_a_later_model_fails(store, counted):
    store.forget("10a_test")
    bad = [*tasks(1), Task("broken", (), TEXTS, SETTINGS, seed=0)]
    with pytest.raises(InvalidParameter, match="texts"):
        run(store, counted, bad)
    assert (store.unfinished("10a_test") / "shadow-0.json").exists()
