"""Attention, gradients and the classifier of the white-box attacks, and the masked models they look into."""

import math

import numpy as np
import pytest
import torch

from privhelpers import models, rng, training
from privhelpers.attacks import controls, white_box
from privhelpers.attacks.scores import Arms, as_plain, measure
from privhelpers.dpsgd import ClippedGradients
from privhelpers.dpsgd.losses import losses_by_row
from privhelpers.errors import ControlFailed, InvalidParameter, MissingArtifact, UnsupportedModel
from privhelpers.models.encoding import IGNORED, encode
from privhelpers.stats import Interval

TEXTS = [
    f"Patient {name} was seen on ward {number} for {what}."
    for number, name in enumerate(("Ada Ball", "Cy Dorn", "Eve Frey", "Gil Hahn", "Ida Joss"))
    for what in ("chronic cough", "a short review of several unrelated findings")
]


@pytest.fixture(scope="module")
def tokenizer():
    return models.with_mask(models.train_tokenizer(TEXTS, vocab_size=300))


@pytest.fixture(scope="module")
def nets(tokenizer):
    names = ("micro-bert", "micro-distilbert", "micro-distilbert-half")
    masked = {name: models.build_masked(name, tokenizer, seed=0) for name in names}
    return {"micro-gpt2": models.build("micro-gpt2", tokenizer, seed=0), **masked}


ALL = ("micro-gpt2", "micro-bert", "micro-distilbert")


# Attention ------------------------------------------------------------------------------------------------


def test_concentration_has_the_published_values():
    assert float(white_box.concentration(torch.full((512,), 1 / 512))) == pytest.approx(-6.238325, abs=1e-5)
    assert float(white_box.concentration(torch.eye(7)[3])) == 0.0


@pytest.mark.parametrize("seed", range(5))
def test_concentration_lies_between_even_and_single_and_grows_as_it_narrows(seed):
    logits = torch.from_numpy(rng.make(seed, "attention").normal(size=40))
    sharper = [float(white_box.concentration(torch.softmax(scale * logits, -1))) for scale in (0, 0.5, 1, 4)]
    assert sharper == sorted(sharper)
    assert sharper[0] == pytest.approx(-math.log(40)) and sharper[-1] <= 0


@pytest.mark.parametrize("name", ALL)
def test_attention_features_are_those_of_a_text_alone(nets, tokenizer, name):
    model = nets[name]
    before = model.config._attn_implementation
    together = white_box.attention_features(model, tokenizer, TEXTS, seed=3)
    assert model.config._attn_implementation == before
    assert together.values.shape == (len(TEXTS), 2 * 4 * 4) == (len(TEXTS), len(together.names))
    one_by_one = white_box.attention_features(model, tokenizer, TEXTS, seed=3, batch_size=1)
    np.testing.assert_allclose(together.values, one_by_one.values, atol=1e-5)
    if not white_box.is_masked(model):
        alone = white_box.attention_features(model, tokenizer, TEXTS[4:5])
        np.testing.assert_allclose(together.values[4:5], alone.values, atol=1e-5)


def test_the_mean_is_the_formula_on_the_library_s_own_attention(nets, tokenizer):
    model = nets["micro-gpt2"]
    row = torch.tensor(encode(tokenizer, TEXTS[:1], max_length=128).ids)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        attention = model(row, output_attentions=True).attentions[1][0, 2]  # layer 1, head 2
    model.set_attn_implementation("sdpa")
    by_hand = np.mean([sum(a * math.log(a) for a in line.tolist() if a > 0) for line in attention])
    found = white_box.attention_features(model, tokenizer, TEXTS[:1])
    assert found.values[0, found.names.index("layer 1, head 2, mean")] == pytest.approx(by_hand, abs=1e-6)


# Gradients ------------------------------------------------------------------------------------------------


def slow_norms(model, batch):
    """One backward for every row."""
    found = {name: [] for name, p in model.named_parameters() if p.requires_grad}
    for row in range(len(batch["labels"])):
        model.zero_grad(set_to_none=True)
        losses_by_row(model, {k: v[row : row + 1] for k, v in batch.items()}).sum().backward()
        for name, parameter in model.named_parameters():
            if name in found:
                found[name].append(parameter.grad.norm() if parameter.grad is not None else torch.tensor(0.0))
    model.zero_grad(set_to_none=True)
    return {name: torch.stack(values) for name, values in found.items()}


@pytest.mark.parametrize("name", ALL)
def test_gradient_features_from_the_engine_are_those_of_one_backward_pass_per_row(nets, tokenizer, name):
    model = nets[name]
    engine = ClippedGradients(model, max_grad_norm=1.0)
    options = {"masks": 2, "seed": 1, "batch_size": 4}
    fast = white_box.gradient_features(model, tokenizer, TEXTS, layer_norms=engine.layer_norms, **options)
    slow = white_box.gradient_features(
        model, tokenizer, TEXTS, layer_norms=lambda batch: slow_norms(model, batch), **options
    )
    assert set(fast.names) == set(slow.names)
    order = [fast.names.index(name) for name in slow.names]
    kept = [i for i, name in enumerate(slow.names) if not name.endswith(("key.bias", "k_lin.bias"))]
    np.testing.assert_allclose(fast.values[:, order][:, kept], slow.values[:, kept], atol=2e-4)
    assert len(kept) >= len(slow.names) - 2 and all(p.grad is None for p in model.parameters())


def test_a_gradient_of_zero_stays_a_number(nets, tokenizer):
    features = white_box.gradient_features(
        nets["micro-gpt2"],
        tokenizer,
        TEXTS,
        layer_norms=lambda batch: {
            "a": torch.zeros(len(batch["labels"])),
            "b": torch.ones(len(batch["labels"])),
        },
    )
    assert features.names == ("a", "b")
    np.testing.assert_allclose(features.values, [[math.log(1e-6), 0.0]] * len(TEXTS))


# Classifier -----------------------------------------------------------------------------------------------


def drawn(seed, patients, notes=2, shift=0.0, numbers=6):
    generator = rng.make(seed, "white box test")
    level = np.repeat(generator.normal(size=(patients, numbers)), notes, axis=0)
    values = level + generator.normal(size=(patients * notes, numbers)) + shift
    return values, np.repeat([f"{seed}-{i}" for i in range(patients)], notes)


def test_the_attack_is_measured_on_patients_it_did_not_learn_from():
    owners = np.repeat(np.arange(50), 3)
    known = white_box.known_to_attacker(owners, share=0.2, seed=0)
    assert len(set(owners[known])) == 10 and not set(owners[known]) & set(owners[~known])
    scored = white_box.learned_attack(*drawn(0, 50), *drawn(1, 60))
    assert len(set(scored.member_patients)) == 40 and len(set(scored.control_patients)) == 48
    losses = [values[:, 0] for values, _ in (drawn(0, 50), drawn(1, 60))]
    by_loss = white_box.loss_attack(losses[0], drawn(0, 50)[1], losses[1], drawn(1, 60)[1])
    assert list(by_loss.member_patients) == list(scored.member_patients)


def test_a_difference_is_found_and_the_nulls_are_null():
    members, others = drawn(0, 120, shift=0.8), drawn(1, 120)
    arms = Arms(*members, *others)
    found = measure(white_box.learned_attack(*members, *others), draws=200)
    assert found.auc.low > 0.7 and found.leakage.low > 0.2 and found.n == (192, 192)
    for scored in (
        white_box.learned_attack(*arms.dealt(0)),
        white_box.learned_attack(*arms.controls_halved(0)),
        white_box.learned_attack(*drawn(2, 120), *others),
    ):
        null = measure(scored, draws=200)
        controls.require_null("null", null.auc)
        controls.require_null("null", null.leakage, null=0.0)
    with pytest.raises(ControlFailed):
        controls.require_null("not null", found.auc)


def test_nulls_are_null_over_many_seeds():
    members, others = drawn(0, 60, shift=1.0), drawn(1, 60)
    aucs = []
    for seed in range(30):
        scored = white_box.learned_attack(*Arms(*members, *others).dealt(seed), seed=seed)
        aucs.append(measure(scored, draws=2).auc.estimate)
    assert abs(np.mean(aucs) - 0.5) < 4 * np.std(aucs) / math.sqrt(30)


def test_the_order_of_the_notes_of_other_patients_does_not_matter_and_units_do_not():
    members, others = drawn(0, 40, shift=0.5), drawn(1, 40)
    one = white_box.learned_attack(*members, *others)
    scaled = white_box.learned_attack(1e3 * members[0] - 7, members[1], 1e3 * others[0] - 7, others[1])
    np.testing.assert_allclose(one.member_scores, scaled.member_scores, atol=1e-3)


def test_the_loss_attack_has_the_owner_s_threshold():
    losses, others = np.array([1.0, 2.0, 3.0, 2.0]), np.array([3.0, 4.0, 2.5, 5.0])
    scored = white_box.loss_attack(losses, list("abcd"), others, list("efgh"), share=0.5)
    assert scored.threshold == -2.0
    member = {p: loss for p, loss in zip("abcd", losses, strict=True)}
    known = zip(scored.member_scores, scored.member_patients, strict=True)
    assert all(-score == member[patient] for score, patient in known)


@pytest.mark.parametrize("share", [0.0, 1.5, float("nan")])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(InvalidParameter, match="share"):
        white_box.known_to_attacker(list("abcdef"), share=share)


def test_too_few_patients_and_numbers_that_are_none_are_refused():
    with pytest.raises(InvalidParameter, match="too few"):
        white_box.known_to_attacker(["a", "a", "b", "c"])
    bad = drawn(0, 10)[0]
    bad[3, 2] = np.nan
    with pytest.raises(InvalidParameter, match="other_features"):
        white_box.learned_attack(*drawn(0, 10), bad, drawn(1, 10)[1])
    with pytest.raises(InvalidParameter, match="texts"):
        next(white_box.batches(None, None, []))


# Masked models --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("like", ["micro", "tiny"])
def test_sizes_are_matched(tokenizer, like):
    size = models.count_parameters(models.build(f"{like}-gpt2", tokenizer, seed=0))
    for family in ("bert", "distilbert"):
        model = models.build_masked(f"{like}-{family}", tokenizer, seed=0)
        assert 1 < models.count_parameters(model) / size < 1.05
        half = model.get_input_embeddings().weight is model.get_output_embeddings().weight
        assert half, "tied, as in GPT-2"


def test_the_published_distilbert_is_bert_with_half_of_its_layers(nets):
    sizes = {name: models.count_parameters(net) for name, net in nets.items()}
    assert sizes["micro-bert"] - sizes["micro-distilbert"] == 2 * 64  # token types
    assert sizes["micro-distilbert"] - sizes["micro-distilbert-half"] == 12 * 64**2 + 13 * 64  # one layer


def test_the_mask_is_one_more_token(tokenizer):
    plain = models.train_tokenizer(TEXTS, vocab_size=300)
    assert len(tokenizer) == len(plain) + 1 and plain.mask_token_id is None
    assert tokenizer(TEXTS)["input_ids"] == plain(TEXTS)["input_ids"]
    assert models.with_mask(tokenizer).mask_token_id == tokenizer.mask_token_id
    with pytest.raises(InvalidParameter, match="with_mask"):
        models.build_masked("micro-bert", plain, seed=0)
    with pytest.raises(InvalidParameter, match="with_mask"):
        models.Masking.of(plain)
    with pytest.raises(UnsupportedModel, match="micro-bert"):
        models.build_masked("micro-gpt2", tokenizer, seed=0)


def test_masks_hide_the_stated_share_and_never_the_ends(tokenizer):
    masking, generator = models.Masking.of(tokenizer), rng.make(0, "masks")
    rows = encode(tokenizer, TEXTS, max_length=128).ids
    shown = {"mask": 0, "same": 0, "other": 0}
    for row in rows * 100:
        ids, labels = masking(row, generator)
        asked = [i for i, label in enumerate(labels) if label != IGNORED]
        assert len(asked) == max(1, round(0.15 * (len(row) - 2))) and not {0, len(row) - 1} & set(asked)
        assert all(labels[i] == row[i] for i in asked)
        assert all(ids[i] == row[i] for i in range(len(row)) if i not in asked)
        for i in asked:
            kind = "mask" if ids[i] == tokenizer.mask_token_id else "same" if ids[i] == row[i] else "other"
            shown[kind] += 1
    total = sum(shown.values())
    assert shown["mask"] / total == pytest.approx(0.8, abs=0.02)
    assert shown["same"] / total == pytest.approx(0.1, abs=0.02)


def test_a_row_without_tokens_to_hide_is_refused(tokenizer):
    end = tokenizer.eos_token_id
    with pytest.raises(InvalidParameter, match="hidden"):
        models.Masking.of(tokenizer)([end, end], rng.make(0, "masks"))


@pytest.mark.parametrize("name", ["micro-bert", "micro-distilbert"])
def test_masked_scores_do_not_depend_on_the_batch_and_match_the_library(nets, tokenizer, name):
    model = nets[name]
    losses, hidden = models.losses_by_mask(model, tokenizer, TEXTS, masks=3, seed=5)
    alone, _ = models.losses_by_mask(model, tokenizer, TEXTS, masks=3, seed=5, batch_size=1)
    np.testing.assert_allclose(losses, alone, atol=1e-5)
    assert losses.shape == (len(TEXTS), 3) and (hidden >= 1).all() and len(np.unique(losses)) > len(TEXTS)
    row, generator = encode(tokenizer, TEXTS[:1], max_length=128).ids[0], rng.make(5, "attack masks")
    batch = models.padded([models.Masking.of(tokenizer)(row, generator)], tokenizer.eos_token_id)
    with torch.no_grad():
        assert losses[0, 0] == pytest.approx(float(model(**batch).loss), abs=1e-5)
    scores = models.score_masked(model, tokenizer, TEXTS, masks=3, seed=5)
    np.testing.assert_allclose(scores.losses, losses.mean(1))


def test_a_masked_model_learns_and_its_training_repeats(tokenizer):
    settings = training.Settings(epochs=8, learning_rate=5e-3, batch_size=4)
    seen, weights = [], []
    for _ in range(2):
        model = models.build_masked("micro-bert", tokenizer, seed=0)
        log, _ = training.train(
            model,
            tokenizer,
            TEXTS,
            settings,
            seed=0,
            masking=models.Masking.of(tokenizer),
            validation_texts=TEXTS[:4],
            after_epoch=seen.append,
            progress=False,
        )
        weights.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    assert log.train_loss[-1] < 0.8 * log.train_loss[0]
    assert log.validation_loss[-1] < log.validation_loss[0]
    assert seen == [*range(1, 9)] * 2 and torch.equal(*weights)


def test_causal_training_does_not_notice_the_masks(tokenizer):
    settings = training.Settings(epochs=2, learning_rate=5e-3, batch_size=4)
    weights = []
    for watch in (None, lambda epoch: None):
        model = models.build("micro-gpt2", tokenizer, seed=0, dropout=0.1)
        training.train(model, tokenizer, TEXTS, settings, seed=0, after_epoch=watch, progress=False)
        weights.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    assert torch.equal(*weights)


def test_a_masked_model_is_saved_and_loaded(nets, tokenizer, tmp_path):
    models.save(nets["micro-distilbert"], tokenizer, tmp_path / "model")
    model, loaded = models.load_masked(tmp_path / "model")
    assert loaded.mask_token_id == tokenizer.mask_token_id
    one, two = (models.score_masked(net, loaded, TEXTS) for net in (model, nets["micro-distilbert"]))
    np.testing.assert_allclose(one.losses, two.losses, atol=1e-6)
    with pytest.raises(MissingArtifact):
        models.load_masked(tmp_path / "nothing")
    models.save(nets["micro-gpt2"], tokenizer, tmp_path / "causal")
    with pytest.raises(UnsupportedModel):
        models.load_masked(tmp_path / "causal")
    (tmp_path / "model" / "code.py").write_text("")
    with pytest.raises(UnsupportedModel, match="code"):
        models.load_masked(tmp_path / "model")


# Masks and whole targets ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def memorized(tokenizer):
    """A network that has learnt half of some notes by heart, its notes, and its fresh copy."""
    generator, words = rng.make(0, "white box notes"), "abcdefghij"
    notes = [f"Note {''.join(generator.choice(list(words), size=8))} seen." for _ in range(80)]
    model, fresh = (models.build("micro-gpt2", tokenizer, seed=0) for _ in range(2))
    settings = training.Settings(epochs=25, learning_rate=1e-2, batch_size=8)
    training.train(model, tokenizer, notes[:40], settings, seed=0, progress=False)
    return model, fresh, notes


def seen(model, tokenizer, notes):
    norms = ClippedGradients(model, max_grad_norm=1.0).layer_norms
    inside = [
        white_box.look_inside(model, tokenizer, part, layer_norms=norms) for part in (notes[:40], notes[40:])
    ]
    owners = np.repeat(np.arange(20), 2)
    return white_box.Target(inside[0], owners, inside[1], 100 + owners)


def test_a_network_that_memorized_is_found_and_its_nulls_are_null(memorized, tokenizer):
    model, fresh, notes = memorized
    target, public = (seen(net, tokenizer, notes) for net in (model, fresh))
    found = white_box.attack_target(target, draws=100)
    assert list(found) == ["loss", "attention", "gradients", "all three"]
    assert found["loss"].auc.estimate > 0.9 and found["gradients"].auc.estimate > 0.7
    assert len({own.n for own in found.values()}) == 1
    nulls = white_box.require_nulls("toy", target, public=public, draws=100)
    assert set(nulls["loss"]) == {"permuted labels", "held-out halves", "public checkpoint"}
    assert set(white_box.require_nulls("toy", target, draws=50)["attention"]) == {
        "permuted labels",
        "held-out halves",
    }
    with pytest.raises(ControlFailed, match="toy, loss attack, public checkpoint"):
        white_box.require_nulls("toy", target, public=target, draws=100)
    smaller = white_box.gradient_differences(target, draws=50)
    assert list(smaller) == list(target.members.gradients.names)
    assert np.mean([i.estimate for i in smaller.values()]) < -0.1
    plain = as_plain({"a": found, "b": [1.0, nulls]})
    assert plain["a"]["loss"]["auc"] == [getattr(found["loss"].auc, k) for k in ("estimate", "low", "high")]


def test_masks_averaged_are_the_first_of_the_same_draw(nets, tokenizer):
    half = len(TEXTS) // 2
    arms = [(TEXTS[:half], range(half)), (TEXTS[half:], range(half, 2 * half))]
    found = white_box.auc_by_masks(nets["micro-bert"], tokenizer, *arms, counts=[1, 4], draws=20)
    own, other = (
        models.losses_by_mask(nets["micro-bert"], tokenizer, texts, masks=4)[0] for texts, _ in arms
    )
    for k, interval in zip((1, 4), found, strict=True):
        wins = own[:, :k].mean(1)[:, None] < other[:, :k].mean(1)[None]
        assert interval.estimate == pytest.approx(wins.mean())
    for counts in ([], [4, 1], [0, 1], [2, 2]):
        with pytest.raises(InvalidParameter, match="counts"):
            white_box.auc_by_masks(nets["micro-bert"], tokenizer, *arms, counts=counts)


def test_a_gain_is_paired_on_the_same_notes(memorized, tokenizer):
    model, _, notes = memorized
    found = white_box.attack_target(seen(model, tokenizer, notes), draws=100)
    gain = white_box.gain(found["loss"], found["attention"], draws=100)
    assert gain.estimate == pytest.approx(found["loss"].auc.estimate - found["attention"].auc.estimate)
    assert gain.low > 0 and white_box.verdict(gain) == "holds"
    same = white_box.gain(found["loss"], found["loss"], draws=20)
    assert (same.low, same.high) == (0, 0) and white_box.verdict(same) == "undecided"
    assert white_box.verdict(white_box.gain(found["attention"], found["loss"], draws=100)) == "contradicted"
    other = measure(white_box.learned_attack(*drawn(0, 20), *drawn(1, 20)), draws=2)
    with pytest.raises(InvalidParameter, match="different notes"):
        white_box.gain(found["loss"], other)


@pytest.mark.parametrize(
    ("low", "high", "word"),
    [(0.1, 0.2, "holds"), (-0.2, -0.1, "contradicted"), (-0.1, 0.1, "undecided"), (0.0, 0.1, "undecided")],
)
def test_a_verdict_is_the_place_of_zero(low, high, word):
    assert white_box.verdict(Interval((low + high) / 2, low, high, 0.95, "x")) == word
