"""Models that answer as one: an ensemble is a model like any other, to scoring and to every attack."""

import copy

import numpy as np
import pytest
import torch

from privhelpers import models, training
from privhelpers.attacks import canaries
from privhelpers.defenses import Ensemble
from privhelpers.errors import InvalidParameter

TEXTS = [t for n in range(16) for t in (f"Seen in room {n}, BP 1{n}0/80, Asthma.", f"Room {n} again.")]


@pytest.fixture(scope="module")
def public():
    tokenizer = models.train_tokenizer(TEXTS, vocab_size=300)
    return models.build("micro-gpt2", tokenizer, seed=0), tokenizer


@pytest.fixture(scope="module")
def trained(public):
    model = copy.deepcopy(public[0])
    settings = training.Settings(epochs=8, learning_rate=4e-3, batch_size=8)
    training.train(model, public[1], TEXTS, settings, seed=0, progress=False)
    return model


@pytest.fixture(scope="module")
def pair(public, trained):
    return Ensemble([trained, public[0]]).eval()


def test_an_ensemble_averages_log_probabilities_and_normalizes(pair, trained, public):
    ids = torch.tensor([[public[1].eos_token_id, 5, 9, 40]])
    with torch.no_grad():
        log_p = [net(input_ids=ids).logits.log_softmax(-1) for net in (trained, public[0])]
        joined = pair(input_ids=ids).logits
    mean = (log_p[0] + log_p[1]) / 2
    assert torch.allclose(joined, mean - mean.logsumexp(-1, keepdim=True), atol=1e-5)
    assert torch.allclose(joined.exp().sum(-1), torch.ones(1, 4), atol=1e-5)


def test_an_ensemble_of_one_is_that_model_to_every_attack(trained, public):
    ensemble = Ensemble([trained]).eval()
    tokenizer = public[1]
    a, b = (models.score(net, tokenizer, TEXTS).losses for net in (ensemble, trained))
    assert np.allclose(a, b, atol=1e-5)
    rows = [
        {"canary_id": "c1", "prefix": "Seen in room", "secret": "1234567", "planted": True, "copies": 1},
        {"canary_id": "c2", "prefix": "Room", "secret": "7654321", "planted": False, "copies": 0},
    ]
    results = [
        canaries.measure(net, tokenizer, rows, digits=7, references=31, seed=0, progress=False)
        for net in (ensemble, trained)
    ]
    assert [r.rank for r in results[0]] == [r.rank for r in results[1]]


def test_models_without_a_common_vocabulary_are_refused(trained):
    other = models.build("micro-gpt2", models.train_tokenizer(TEXTS, vocab_size=260), seed=0)
    with pytest.raises(InvalidParameter, match="vocabulary"):
        Ensemble([trained, other])
