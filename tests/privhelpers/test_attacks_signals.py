"""Signals of one scoring pass against the published vectors, and against scoring text by text."""

import zlib

import numpy as np
import pytest
import torch

from privhelpers import models
from privhelpers.attacks import signals
from privhelpers.models import scoring

LOG_P = np.log([0.9, 0.5, 0.01, 0.2, 0.7, 0.05, 0.3, 0.8, 0.6, 0.001])
TEXTS = ["The ward is quiet.", "BP 120/80, Asthma, Albuterol 20 mg. Back in two weeks.", "x"]


@pytest.mark.parametrize(
    ("share", "expected"), [(0.1, 6.90775528), (0.2, 5.75646273), (0.3, 4.83621925), (0.5, 3.46441369)]
)
def test_min_k_vectors(share, expected):
    """Published with the opposite sign: there small means member, here large does."""
    assert -signals._min_k(LOG_P, share=share) == pytest.approx(expected, abs=1e-8)


def test_min_k_plus_plus_vectors():
    logits = torch.tensor([[2.0, 1, 0, -1], [0, 0, 0, 0.5], [3, 0, 0, 0]])
    log_p = logits.log_softmax(-1)
    mean, deviation = scoring._vocabulary_moments(log_p[None])
    token_log_p = log_p.gather(1, torch.tensor([[1], [3], [2]]))[:, 0]
    z = signals._standardized(token_log_p, mean[0], deviation[0])
    assert z == pytest.approx([-0.627399, 1.348923, -2.587504], abs=1e-5)


def test_a_certain_distribution_has_no_spread():
    log_p = torch.tensor([[[0.0, -float("inf")]]]).log_softmax(-1)
    mean, deviation = scoring._vocabulary_moments(log_p.clamp_min(-1e30))
    assert torch.isfinite(mean).all() and torch.isfinite(deviation).all()
    assert signals._standardized([0.0], mean[0], deviation[0]) == pytest.approx([0.0])
    mean, deviation = scoring._vocabulary_moments(torch.tensor([0.0, -float("inf")]))
    assert (mean.item(), deviation.item()) == (0, 0)
    assert torch.isnan(scoring._vocabulary_moments(torch.full((3,), float("nan")))[0]), "a broken model shows"


@pytest.fixture(scope="module")
def net():
    tokenizer = models.train_tokenizer(TEXTS * 5, vocab_size=300)
    return models.build("micro-gpt2", tokenizer, seed=0), tokenizer


@pytest.fixture(scope="module")
def measured(net):
    return signals.measure(*net, TEXTS)


def test_one_pass_gives_what_scoring_gives(net, measured):
    plain = models.score(*net, TEXTS)
    assert measured.loss == pytest.approx(plain.losses, abs=1e-6)
    assert measured.tokens.tolist() == plain.tokens.tolist()
    lower = models.score(*net, [text.lower() for text in TEXTS]).losses
    assert measured.lower_loss == pytest.approx(lower)
    scores = signals.scores(measured, {"other": measured.loss + 1})
    assert scores["loss"] == pytest.approx(-measured.loss)
    size = [len(zlib.compress(text.encode())) for text in TEXTS]
    assert scores["zlib"] == pytest.approx(-measured.loss / size)
    assert scores["reference_other"] == pytest.approx(1)
    assert scores["lower_case"] == pytest.approx(measured.lower_loss - measured.loss)


def test_moments_are_those_of_the_predicted_distribution(net):
    model, tokenizer = net
    before = model.training
    token_scores = models.score_tokens(model, tokenizer, TEXTS)
    assert model.training is before
    rows = models.encode(tokenizer, TEXTS, max_length=128).ids
    with torch.inference_mode():
        row = torch.tensor([rows[1]], device=model.device)
        log_p = model(input_ids=row).logits[0, :-1].log_softmax(-1).double().cpu()
    mean = (log_p.exp() * log_p).sum(-1)
    deviation = ((log_p.exp() * log_p**2).sum(-1) - mean**2).sqrt()
    assert token_scores.mean[1] == pytest.approx(mean.numpy(), abs=1e-4)
    assert token_scores.deviation[1] == pytest.approx(deviation.numpy(), abs=1e-3)
    alone = models.score_tokens(model, tokenizer, TEXTS[1:2], batch_size=1)
    assert alone.mean[0] == pytest.approx(token_scores.mean[1], abs=1e-5)
