"""Our decoding loop against the library's own rules, and its draws against the probabilities it states."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare
from transformers.generation.logits_process import (
    LogitsProcessorList,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from privhelpers import models
from privhelpers.models import _generation

TEXTS = [f"Patient {i}: pressure 1{i % 10}0/80, note {'long ' * (i % 7)}end." for i in range(60)]


@pytest.fixture(scope="module")
def net():
    tokenizer = models.train_tokenizer(TEXTS, vocab_size=300)
    model = models.build("micro-gpt2", tokenizer, seed=0)
    with torch.no_grad():  # a fresh model is close to uniform: make some tokens likely, the end among them
        model.transformer.ln_f.bias.copy_(0.5 * model.transformer.wte.weight[:6].sum(0) * 64)
    return model, tokenizer


def of_the_library(logits, sampling):
    """The probabilities that `transformers` draws from."""
    steps = [TemperatureLogitsWarper(sampling.temperature)]
    if sampling.top_k:
        steps.append(TopKLogitsWarper(sampling.top_k))
    if sampling.top_p < 1:
        steps.append(TopPLogitsWarper(sampling.top_p))
    return LogitsProcessorList(steps)(None, logits.clone()).softmax(-1)


def ours(logits, sampling):
    tokens, p = models.kept_tokens(logits, sampling)
    return torch.zeros_like(logits).scatter_(-1, tokens, p)


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    temperature=st.floats(0.1, 3),
    top_k=st.sampled_from([0, 1, 2, 10, 50, 299, 300, 1000]),
    top_p=st.sampled_from([0.01, 0.3, 0.95, 0.999, 1.0]),
    spread=st.floats(0.1, 8),
)
def test_probabilities_are_those_of_the_library(seed, temperature, top_k, top_p, spread):
    logits = spread * torch.randn(7, 300, generator=torch.Generator().manual_seed(seed))
    sampling = models.Sampling(temperature=temperature, top_k=top_k, top_p=top_p)
    expected, actual = of_the_library(logits, sampling), ours(logits, sampling)
    # The same tokens, but for one whose cumulative probability is top_p up to rounding.
    assert ((expected > 0) != (actual > 0)).sum() <= (top_p < 1)
    if ((expected > 0) == (actual > 0)).all():
        torch.testing.assert_close(actual, expected, rtol=2e-6, atol=1e-9)


def rows_of(net, texts):
    return [net[1](text, add_special_tokens=False)["input_ids"] for text in texts]


def test_two_steps_of_generation_follow_the_model(net):
    """First tokens, and second ones after the most frequent first, against the model's own figures."""
    model, tokenizer = net
    start = tokenizer("Patient", add_special_tokens=False)["input_ids"]
    sampling = models.Sampling(top_k=8, top_p=1.0, max_length=len(start) + 3)
    drawn = []

    def keep(logits, uniforms, options, draw=_generation._draw):
        drawn.append(draw(logits, uniforms, options))
        return drawn[-1]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_generation, "_draw", keep)
        patch.setattr(_generation, "MOST_ENDED", 2)  # no one leaves the batch
        models.generate(model, tokenizer, "Patient", samples=6000, seed=3, sampling=sampling)
    first, second = (tokens.cpu() for tokens in drawn)
    ids = torch.tensor([[tokenizer.eos_token_id, *start]], device=model.device)
    for step, tokens in enumerate((first, second)):
        expected = ours(model(input_ids=ids).logits[:, -1], sampling)[0].detach().double().cpu().numpy()
        chosen = tokens if step == 0 else tokens[first == int(ids[0, -1])]
        counts = np.bincount(chosen.numpy(), minlength=len(expected))
        kept = expected > 0
        assert counts[~kept].sum() == 0
        scaled = counts.sum() * expected[kept] / expected.sum()
        assert chisquare(counts[kept], scaled).pvalue > 1e-3
        likely = torch.mode(first[first != tokenizer.eos_token_id]).values
        ids = torch.cat([ids, likely[None, None].to(ids.device)], dim=1)


@pytest.mark.parametrize("share", [0.0, 0.5, 2.0])
def test_when_rows_leave_the_batch_changes_no_text(net, share, monkeypatch):
    expected = models.generate(*net, "Patient", samples=40, seed=1)
    monkeypatch.setattr(_generation, "MOST_ENDED", share)
    assert models.generate(*net, "Patient", samples=40, seed=1) == expected
    assert len({len(row) for row in rows_of(net, expected)}) > 3  # some rows did end early


def test_one_kept_token_is_greedy_decoding_of_the_library(net):
    model, tokenizer = net
    only = models.Sampling(top_k=1, max_length=20)
    (text,) = set(models.generate(model, tokenizer, "note", samples=3, seed=0, sampling=only))
    ids = torch.tensor([[tokenizer.eos_token_id, *tokenizer("note", add_special_tokens=False)["input_ids"]]])
    out = model.generate(
        ids, attention_mask=torch.ones_like(ids), do_sample=False, max_length=20, pad_token_id=0
    )
    assert text == tokenizer.decode(out[0, 1:], skip_special_tokens=True)


def test_greedy_guesses_are_those_of_each_prefix_alone(net):
    model, tokenizer = net
    prefixes = [[tokenizer.eos_token_id, *row] for row in rows_of(net, TEXTS[:9])]
    together = models.greedy_guesses(model, tokenizer, prefixes, tokens=6, batch_size=4)
    for number, prefix in enumerate(prefixes):
        ids, sure = torch.tensor([prefix], device=model.device), []
        for _ in range(6):
            best = model(input_ids=ids).logits[:, -1].log_softmax(-1).max(-1)
            sure.append(best.values.item())
            ids = torch.cat([ids, best.indices[:, None]], 1)
        assert together[0][number] == ids[0, len(prefix) :].tolist()
        assert together[1][number] == pytest.approx(sure, abs=1e-4)
