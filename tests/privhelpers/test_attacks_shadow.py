"""Shadow models: independent halves, results that survive a kill, and the classifier."""

import dataclasses

import pytest

from privhelpers import artifacts, models, training
from privhelpers.artifacts import Store
from privhelpers.attacks import shadow, signals
from privhelpers.attacks.shadow import Task
from privhelpers.errors import InvalidParameter

TEXTS = tuple(f"Seen in room {n}, BP 1{n}0/80, Asthma." for n in range(12))
SETTINGS = training.Settings(epochs=1, learning_rate=1e-3, batch_size=4)


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    store = Store(tmp_path_factory.mktemp("runs") / "artifacts", "test")
    tokenizer = models.train_tokenizer(list(TEXTS), vocab_size=300)
    models.put(store, "public", models.build("micro-gpt2", tokenizer, seed=0), tokenizer)
    return store


@pytest.fixture(autouse=True)
def in_a_build(monkeypatch):
    monkeypatch.setenv(artifacts.RUNNER, "of this code")


@pytest.fixture
def counted():
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


def test_ezmia_and_wbc_are_kept_where_the_start_has_scored_the_tokens(store):
    model, tokenizer = models.take(store, shadow.START)
    log_p = models.score_tokens(model, tokenizer, TEXTS).log_p
    task = dataclasses.replace(tasks(1)[0], start_log_p=log_p)
    (plain,), (kept,) = (run(store, training.train, [one]) for one in (tasks(1)[0], task))
    assert tuple(kept) == shadow.KEPT + shadow.AGAINST_START and tuple(plain) == shadow.KEPT
    assert all((kept[name] == plain[name]).all() for name in shadow.KEPT)
    training.train(model, tokenizer, list(task.texts), SETTINGS, seed=0, progress=False)
    found = signals.scores(signals.measure(model, tokenizer, TEXTS), reference_log_p=log_p)
    for name in shadow.AGAINST_START:
        assert kept[name] == pytest.approx(found[name], abs=1e-2), name


def test_another_setting_is_another_model(store, counted):
    run(store, counted, tasks(1))
    del counted.calls[:]
    for _ in range(2):
        run(store, counted, tasks(1, epochs=2))
    assert len(counted.calls) == 1


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
