"""Attention and gradients of the white-box attacks, and the masked models that they look into."""

import math

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from privhelpers import models, rng
from privhelpers.attacks import white_box
from privhelpers.dpsgd import ClippedGradients
from privhelpers.models.encoding import IGNORED, encode

TEXTS = [
    f"Patient {name} was seen on ward {number} for {reason}."
    for number, name in enumerate(("Ada Ball", "Cy Dorn", "Eve Frey", "Gil Hahn", "Ida Joss"))
    for reason in ("chronic cough", "a short review of several unrelated findings")
]


@pytest.fixture(scope="module")
def tokenizer():
    return models.with_mask(models.train_tokenizer(TEXTS, vocab_size=300))


@pytest.fixture(scope="module")
def nets(tokenizer):
    masked = {"micro-bert": models.build_masked("micro-bert", tokenizer, seed=0)}
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2}
    sizes |= {"max_position_embeddings": 128}
    grouped = {"num_attention_heads": 4, "num_key_value_heads": 2}  # two heads share each key
    torch.manual_seed(0)
    llama = LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), **sizes, **grouped)).eval()
    return {"micro-gpt2": models.build("micro-gpt2", tokenizer, seed=0), "llama": llama, **masked}


ALL = ("micro-gpt2", "micro-bert", "llama")


# Attention ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_attention_features_are_those_of_a_text_alone(nets, tokenizer, name):
    model, find = nets[name], white_box.attention_features
    before = model.config._attn_implementation
    together = find(model, tokenizer, TEXTS, seed=3)
    assert model.config._attn_implementation == before
    assert together.values.shape == (len(TEXTS), 2 * 4 * 4) == (len(TEXTS), len(together.names))
    one_by_one = find(model, tokenizer, TEXTS, seed=3, batch_size=1)
    np.testing.assert_allclose(together.values, one_by_one.values, atol=1e-5)


def test_the_mean_is_the_formula_on_the_library_s_own_attention(nets, tokenizer):
    model = nets["micro-gpt2"]
    row = torch.tensor(encode(tokenizer, TEXTS[:1], max_length=128).ids, device=model.device)
    model.set_attn_implementation("eager")
    with torch.no_grad():
        attention = model(row, output_attentions=True).attentions[1][0, 2]  # layer 1, head 2
    model.set_attn_implementation("sdpa")
    by_hand = np.mean([sum(a * math.log(a) for a in line.tolist() if a > 0) for line in attention])
    features = white_box.attention_features(model, tokenizer, TEXTS[:1])
    assert features.values[0, features.names.index("layer 1, head 2, mean")] == pytest.approx(
        by_hand, abs=1e-6
    )


# Gradients ------------------------------------------------------------------------------------------------


def test_gradient_features_are_those_of_a_text_alone(nets, tokenizer):
    model = nets["micro-gpt2"]
    options = {"layer_norms": ClippedGradients(model, max_grad_norm=1.0).layer_norms}
    together = white_box.gradient_features(model, tokenizer, TEXTS, **options)
    alone = white_box.gradient_features(model, tokenizer, TEXTS[3:4], **options)
    assert together.names == tuple(name for name, _ in model.named_parameters())
    np.testing.assert_allclose(together.values[3], alone.values[0], atol=2e-4)


# Masked models --------------------------------------------------------------------------------------------


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


@pytest.mark.parametrize("name", ["micro-bert"])
def test_masked_scores_do_not_depend_on_the_batch_and_match_the_library(nets, tokenizer, name):
    model = nets[name]
    losses, hidden = models.losses_by_mask(model, tokenizer, TEXTS, masks=3, seed=5)
    alone, _ = models.losses_by_mask(model, tokenizer, TEXTS, masks=3, seed=5, batch_size=1)
    np.testing.assert_allclose(losses, alone, atol=1e-5)
    assert losses.shape == (len(TEXTS), 3) and (hidden >= 1).all() and len(np.unique(losses)) > len(TEXTS)
    row, generator = encode(tokenizer, TEXTS[:1], max_length=128).ids[0], rng.make(5, "attack masks")
    batch = models.padded([models.Masking.of(tokenizer)(row, generator)], tokenizer.eos_token_id)
    batch = {name: value.to(model.device) for name, value in batch.items()}
    with torch.no_grad():
        assert losses[0, 0] == pytest.approx(float(model(**batch).loss), abs=1e-5)
    scores = models.score_masked(model, tokenizer, TEXTS, masks=3, seed=5)
    np.testing.assert_allclose(scores.losses, losses.mean(1))
