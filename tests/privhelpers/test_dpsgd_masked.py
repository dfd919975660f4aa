"""Private runs of masked models, and runs whose noise is given."""

import copy

import pytest
import torch
from test_dpsgd_resume import Stop, stopping_before
from test_dpsgd_training import run, tiny_plan
from transformers import BertConfig, BertForMaskedLM

from privhelpers import dpsgd, models
from privhelpers.errors import InvalidParameter, ResumeRefused


@pytest.fixture(scope="module")
def start():
    texts = [[f"note {i} of ward {i % 3}"] * (1 + i % 3) for i in range(40)]
    tokenizer = models.with_mask(
        models.train_tokenizer([t for notes in texts for t in notes], vocab_size=300)
    )
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer),
        max_position_embeddings=48,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return texts, tokenizer, BertForMaskedLM(config)


def trained(start, **settings):
    texts, tokenizer, model = start
    model = copy.deepcopy(model)
    settings = {"objective": models.Masking.of(tokenizer), **settings}
    return model, run(model, tokenizer, texts, tiny_plan(accountant="rdp"), **settings)


def same(a, b):
    return all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))


def test_a_masked_model_trains_and_the_rows_of_a_micro_batch_change_nothing(start):
    few, log = trained(start, seed=3, max_rows=3)
    many, _ = trained(start, seed=3, max_rows=500)
    assert log.weight_change > 0
    for a, b in zip(few.parameters(), many.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def test_an_interrupted_run_draws_the_same_masks(start, tmp_path):
    whole, _ = trained(start, seed=5)
    kept = {"seed": 5, "keep": tmp_path, "checkpoint_every": 2}
    with pytest.raises(Stop), stopping_before(3):
        trained(start, **kept)
    again, _ = trained(start, **kept)
    assert same(whole, again)
    other = models.Masking.of(start[1], share=0.4)
    with pytest.raises(ResumeRefused):
        trained(start, **kept, objective=other)


def test_a_plan_may_start_from_the_noise():
    settings = {"target_delta": 1e-3, "sample_rate": 0.2, "steps": 6, "max_grad_norm": 0.5, "units": 40}
    asked = dpsgd.plan_privacy(target_epsilon=8.0, **settings)
    given = dpsgd.plan_with_noise(noise_multiplier=asked.noise_multiplier, **settings)
    assert given.spent == asked.spent and given.target_epsilon == asked.epsilon
    given.require_budget()
    none = dpsgd.plan_with_noise(noise_multiplier=1e-20, **settings)
    none.require_budget()
    assert none.spent.epsilon > 1e30
    with pytest.raises(InvalidParameter, match="noise_multiplier"):
        dpsgd.plan_with_noise(noise_multiplier=0.0, **settings)
    with pytest.raises(InvalidParameter, match="delta"):
        dpsgd.plan_with_noise(noise_multiplier=1.0, **{**settings, "target_delta": 0.5})
