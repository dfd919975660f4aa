"""Unlearning: ascent raises what it should, shards forget exactly, an ensemble is a model like any other."""

import copy

import numpy as np
import pytest
import torch

from privhelpers import models, training
from privhelpers.attacks import canaries, controls, memorization
from privhelpers.defenses import forgetting, shards, unlearning
from privhelpers.defenses.unlearning import Ascent
from privhelpers.errors import ControlFailed, InvalidParameter
from privhelpers.stats import Interval

NOTES = {f"p{n:05d}": [f"Seen in room {n}, BP 1{n}0/80, Asthma.", f"Room {n} again."] for n in range(16)}
TEXTS = [text for own in NOTES.values() for text in own]
SETTINGS = training.Settings(epochs=2, learning_rate=4e-3, batch_size=4)


@pytest.fixture(scope="module")
def public():
    tokenizer = models.train_tokenizer(TEXTS, vocab_size=300)
    return models.build("micro-gpt2", tokenizer, seed=0), tokenizer


@pytest.fixture
def start(public):
    return lambda: copy.deepcopy(public[0])


@pytest.fixture(scope="module")
def trained(public):
    model = copy.deepcopy(public[0])
    settings = training.Settings(epochs=8, learning_rate=4e-3, batch_size=8)
    training.train(model, public[1], TEXTS, settings, seed=0, progress=False)
    return model


def mean_loss(model, tokenizer, texts):
    return float(models.score(model, tokenizer, texts).losses.mean())


def same(a, b):
    return all(
        torch.equal(p, q) for p, q in zip(a.state_dict().values(), b.state_dict().values(), strict=True)
    )


# Ascent.


def test_ascent_raises_the_forgotten_and_kept_texts_hold_on_to_the_rest(trained, public):
    forget, kept = TEXTS[:4], TEXTS[4:]
    results = {}
    for weight in (0.0, 2.0):
        model = copy.deepcopy(trained)
        settings = Ascent(steps=12, learning_rate=1e-3, batch_size=4, retain_weight=weight)
        log = unlearning.ascend(model, public[1], forget, settings, seed=0, retain=kept)
        assert log.steps == 12 and not log.stopped
        assert log.rows == 12 * 4 * (2 if weight else 1)
        results[weight] = [mean_loss(model, public[1], own) for own in (forget, kept)]
    before = mean_loss(trained, public[1], forget)
    assert results[0.0][0] > before and results[2.0][0] > before
    assert results[2.0][1] < results[0.0][1]


def test_one_step_is_adam_on_minus_the_loss(trained, public):
    model, by_hand = copy.deepcopy(trained), copy.deepcopy(trained).eval()
    settings = Ascent(steps=1, learning_rate=1e-3, batch_size=2, max_grad_norm=1e9)
    unlearning.ascend(model, public[1], TEXTS[:2], settings, seed=0)
    optimizer = torch.optim.Adam(by_hand.parameters(), lr=1e-3)
    rows = models.encode(public[1], TEXTS[:2], max_length=128).ids
    ids, labels = models.to_batch(rows, public[1].eos_token_id)
    (-models.row_losses(by_hand(input_ids=ids).logits, labels).mean()).backward()
    optimizer.step()
    # Adam's first step is the sign of the gradient, and that of a gradient of zero is rounding.
    pairs = zip(model.parameters(), by_hand.parameters(), strict=True)
    agree = torch.cat([torch.isclose(p, q, atol=1e-6).flatten() for p, q in pairs])
    assert agree.float().mean() > 0.99


def test_watch_sees_every_step_and_may_stop(trained, public):
    seen = []
    settings = Ascent(steps=9, learning_rate=1e-4)
    watch = lambda step: seen.append(step) or step == 3  # noqa: E731
    log = unlearning.ascend(copy.deepcopy(trained), public[1], TEXTS[:2], settings, seed=0, watch=watch)
    assert seen == [0, 1, 2, 3] and log.steps == 3 and log.stopped
    seen.clear()
    log = unlearning.ascend(
        copy.deepcopy(trained), public[1], TEXTS[:2], settings, seed=0, watch=lambda s: bool(seen.append(s))
    )
    assert seen == list(range(10)) and not log.stopped


def test_a_path_keeps_the_model_of_the_first_look_at_which_the_rule_holds(trained, public):
    forget, calm = TEXTS[:4], ["Seen in no room, BP 1/2.", "Nobody again."]
    watched, gone = forget + calm, np.arange(6) < 4
    settings = Ascent(steps=30, learning_rate=1e-3, batch_size=4)
    model = copy.deepcopy(trained)
    how = {"seed": 0, "watched": watched, "gone": gone, "calm": ~gone, "every": 7}
    path = unlearning.follow(model, public[1], forget, settings, **how)
    assert path.steps == (0, 7, 14, 21, 28, 30) and path.losses.shape == (6, 6)
    holds = [losses[:4].mean() >= losses[4:].mean() for losses in path.losses]
    assert not holds[0] and any(holds) and path.stop == path.steps[holds.index(True)]
    at_stop = path.losses[holds.index(True)]
    assert np.allclose(models.score(path.stopped, public[1], watched).losses, at_stop, atol=1e-5)
    assert np.allclose(models.score(model, public[1], watched).losses, path.losses[-1], atol=1e-5)
    never = unlearning.follow(
        copy.deepcopy(trained), public[1], forget, Ascent(1, 1e-9), **{**how, "every": 1}
    )
    assert never.stop == 1
    with pytest.raises(InvalidParameter, match="mark"):
        unlearning.follow(model, public[1], forget, settings, **{**how, "calm": np.zeros(6, bool)})


@pytest.mark.parametrize(
    "make",
    [
        lambda: Ascent(steps=0, learning_rate=1e-3),
        lambda: Ascent(steps=1, learning_rate=0),
        lambda: Ascent(steps=1, learning_rate=1e-3, retain_weight=-1),
        lambda: unlearning.ascend(None, None, [], Ascent(1, 1e-3), seed=0),
        lambda: unlearning.ascend(None, None, ["a"], Ascent(1, 1e-3, retain_weight=1.0), seed=0),
    ],
)
def test_impossible_ascents_are_refused(make):
    with pytest.raises(InvalidParameter):
        make()


def test_a_verdict_has_three_values_and_an_interval_that_touches_the_null_finds_nothing():
    words = [unlearning.verdict(Interval(0, low, high, 0.95, "")) for low, high in ((0.6, 0.7), (0.1, 0.4))]
    assert words == ["member-like", "over-forgotten"]
    assert unlearning.verdict(Interval(0.5, 0.5, 0.6, 0.95, "")) == "no difference found"
    assert unlearning.verdict(Interval(0.1, 0.05, 0.2, 0.95, ""), null=0) == "member-like"


def test_reversed_exposure_mirrors_exposure():
    assert unlearning.reversed_exposure(1, references=1023) == pytest.approx(0, abs=1e-12)
    for rank in (1, 7.5, 512, 1024):
        mirrored = canaries.exposure(rank=1025 - rank, references=1023)
        assert unlearning.reversed_exposure(rank, references=1023) == mirrored


# Shards.


def test_the_shard_of_a_patient_does_not_depend_on_the_others():
    place = {patient: shards.shard_of(patient, shards=4, seed=0) for patient in NOTES}
    assert set(place.values()) <= set(range(4)) and len(set(place.values())) > 1
    counts = np.bincount([shards.shard_of(f"p{n}", shards=4, seed=1) for n in range(4000)])
    assert ((counts - 1000) ** 2 / 1000).sum() < 16.3  # chi-squared, 3 degrees of freedom, p = 0.001


def test_expected_retrained_is_what_draws_give():
    generator = np.random.default_rng(0)
    drawn = [len(set(generator.integers(8, size=5))) for _ in range(20_000)]
    assert shards.expected_retrained(shards=8, requests=5) == pytest.approx(np.mean(drawn), abs=0.03)
    assert shards.expected_retrained(shards=8, requests=0) == 0
    assert shards.expected_retrained(shards=1, requests=3) == 1


def test_forgetting_is_exact_and_touches_one_shard(start, public):
    how = {"shards": 3, "settings": SETTINGS, "seed": 0}
    whole = shards.train_shards(start, public[1], NOTES, **how)
    assert whole.trained == (0, 1, 2) and whole.rows == len(TEXTS) * 2
    gone = "p00003"
    less = whole.without({gone})
    never = shards.train_shards(start, public[1], {p: own for p, own in NOTES.items() if p != gone}, **how)
    assert less.trained == (whole.shard(gone),) and gone not in less.notes and gone in whole.notes
    assert all(same(a, b) for a, b in zip(less.models, never.models, strict=True))
    unchanged = [a is b for a, b in zip(less.models, whole.models, strict=True)]
    assert unchanged.count(False) == 1
    assert not same(less.models[whole.shard(gone)], whole.models[whole.shard(gone)])
    with pytest.raises(InvalidParameter, match="not in any shard"):
        less.without({gone})


def test_an_empty_shard_is_refused(start, public):
    with pytest.raises(InvalidParameter, match="no patient"):
        shards.train_shards(start, public[1], {"p1": ["Room."]}, shards=2, settings=SETTINGS, seed=0)
    with pytest.raises(InvalidParameter):
        shards.train_shards(start, public[1], NOTES, shards=0, settings=SETTINGS, seed=0)


# The ensemble.


@pytest.fixture(scope="module")
def pair(public, trained):
    return shards.Ensemble([trained, public[0]]).eval()


def test_an_ensemble_averages_log_probabilities_and_normalizes(pair, trained, public):
    ids = torch.tensor([[public[1].eos_token_id, 5, 9, 40]])
    with torch.no_grad():
        own = [one(input_ids=ids).logits.log_softmax(-1) for one in (trained, public[0])]
        joined = pair(input_ids=ids).logits
    mean = (own[0] + own[1]) / 2
    assert torch.allclose(joined, mean - mean.logsumexp(-1, keepdim=True), atol=1e-5)
    assert torch.allclose(joined.exp().sum(-1), torch.ones(1, 4), atol=1e-5)


def test_an_ensemble_of_one_is_that_model_to_every_attack(trained, public):
    one = shards.Ensemble([trained]).eval()
    tokenizer = public[1]
    a, b = (models.score(net, tokenizer, TEXTS).losses for net in (one, trained))
    assert np.allclose(a, b, atol=1e-5)
    rows = [
        {"canary_id": "c1", "prefix": "Seen in room", "secret": "1234567", "planted": True, "copies": 1},
        {"canary_id": "c2", "prefix": "Room", "secret": "7654321", "planted": False, "copies": 0},
    ]
    found = [
        canaries.measure(net, tokenizer, rows, digits=7, references=31, seed=0, progress=False)
        for net in (one, trained)
    ]
    assert [r.rank for r in found[0]] == [r.rank for r in found[1]]
    texts = [models.generate(net, tokenizer, "Seen", samples=6, seed=0) for net in (one, trained)]
    assert texts[0] == texts[1]
    halves = memorization.halve(
        tokenizer, [{"text": t, "note_id": t, "patient_id": t} for t in TEXTS[:6]], longest=128
    )
    assert (memorization.recall(one, halves).recalled == memorization.recall(trained, halves).recalled).all()


def test_an_ensemble_of_two_generates_with_its_caches(pair, public):
    ids = torch.tensor([[public[1].eos_token_id, 5, 9, 40, 41]])
    with torch.no_grad():
        whole = pair(input_ids=ids).logits[:, -1]
        first = pair(input_ids=ids[:, :3], use_cache=True)
        cache = copy.deepcopy(first.past_key_values)
        cache.batch_repeat_interleave(2)
        again = pair(input_ids=ids[:, 3:].repeat(2, 1), past_key_values=cache).logits[:, -1]
    assert torch.allclose(whole.repeat(2, 1), again, atol=1e-4)
    assert len(models.generate(pair, public[1], "Room", samples=5, seed=1)) == 5


def test_models_without_a_common_vocabulary_are_refused(trained):
    with pytest.raises(InvalidParameter):
        shards.Ensemble([])
    other = models.build("micro-gpt2", models.train_tokenizer(TEXTS, vocab_size=260), seed=0)
    with pytest.raises(InvalidParameter, match="vocabulary"):
        shards.Ensemble([trained, other])


# The judge.


@pytest.fixture(scope="module")
def judge():
    patients = np.repeat([f"p{n}" for n in range(60)], 2)
    gone = np.arange(120) < 40
    never = np.arange(120) >= 60
    public = np.random.default_rng(1).normal(3, 0.2, 120)
    return forgetting.Judge(patients, gone, never, public, draws=100)


def test_a_judge_sees_both_directions_and_the_null(judge):
    known = judge.public - 2 * judge.gone
    words = [unlearning.verdict(judge.area(x)) for x in (known, judge.public, judge.public + 2 * judge.gone)]
    assert words == ["member-like", "no difference found", "over-forgotten"]
    assert judge.area(known, "reference").estimate == 1
    assert judge.area(judge.public, "reference").estimate == 0.5
    assert 0.3 < judge.null(known, "loss", "x").estimate < 0.7
    looks = judge.along([known, judge.public])
    assert looks.shape == (3, 2) and (looks[1] <= looks[0]).all() and (looks[0] <= looks[2]).all()


def test_who_holds_both_versions_sees_the_rise(judge):
    assert judge.change(judge.public - judge.gone, judge.public).estimate == 1
    assert judge.change(judge.public, judge.public).estimate == 0.5


def test_a_null_that_is_not_null_stops(judge):
    # patients are split by lot: give every patient of one side another loss
    side = controls.split_by_patient(judge.patients[judge.never], 0)
    losses = judge.public.copy()
    losses[judge.never] += 5 * side
    with pytest.raises(ControlFailed, match="never trained"):
        judge.null(losses, "loss", "x")


def test_perplexity_counts_tokens_and_is_cut_off(judge):
    tokens = np.where(np.arange(120) % 2, 1, 3)
    losses = np.where(np.arange(120) % 2, 2.0, 1.0)
    assert judge.perplexity(losses, tokens, judge.gone) == pytest.approx(np.exp(1.25))
    assert judge.perplexity(losses + 1e6, tokens, judge.gone) == pytest.approx(np.exp(20))


def test_secrets_are_looked_for_from_both_ends():
    def results(ranks):
        return [
            canaries.CanaryResult(
                f"c{n}", n < 3, 1, rank, canaries.exposure(rank=rank, references=7), rank == 1, 0.0
            )
            for n, rank in enumerate(ranks)
        ]

    low = forgetting.secret_gaps(results([8, 8, 8, 1, 4, 8]), forgotten=3, references=7)
    high = forgetting.secret_gaps(results([1, 1, 1, 8, 4, 1]), forgotten=3, references=7)
    assert low["extracted"] == 0 and high["extracted"] == 3
    assert low["below"] > 0 > low["above"] and high["above"] > 0 > high["below"]


def test_recall_is_counted_by_group_and_the_table_has_verdicts(trained, public, judge):
    notes = [{"text": t, "note_id": t, "patient_id": f"p{n}"} for n, t in enumerate(TEXTS[:8])]
    row = forgetting.recall_rates(trained, {"all": memorization.halve(public[1], notes, longest=128)})
    assert row["all n"] == 8 and 0 <= row["all"] <= 8 and row["all high"] > row["all"] / 8
    table = forgetting.table({"loss": judge.areas({"public": judge.public})})
    assert table.loc["public", "verdict"] == "no difference found" and "[" in table.loc["public", "loss"]
