"""Gradient inversion: exact where the theorems say so, at chance where there is nothing, and refusals."""

import pytest
import torch

from privhelpers import models
from privhelpers.attacks import inversion

LENGTH, END = 12, 0


class _Vocabulary:
    """As much of a tokenizer as building a model needs."""

    eos_token_id = END

    def __len__(self) -> int:
        return 300


@pytest.fixture(scope="module")
def net():
    return models.build("micro-gpt2", _Vocabulary(), seed=3).cpu().eval()


@pytest.fixture(scope="module")
def candidates(net):
    return inversion.candidate_inputs(net, length=LENGTH)


@pytest.fixture(scope="module")
def rows():
    chance = torch.Generator().manual_seed(5)
    notes = torch.randint(1, 300, (6, LENGTH), generator=chance)
    notes[:, 4] = notes[:, 1]  # a token that occurs twice
    ends = torch.full((6, 1), END)
    return torch.cat([ends, notes, ends], 1)


def noisy(gradient, scale, seed=0):
    chance = torch.Generator().manual_seed(seed)
    return {name: part + scale * torch.randn(part.shape, generator=chance) for name, part in gradient.items()}


def test_the_gradient_is_that_of_the_mean_loss(net, rows):
    sent = inversion.gradient_of(net, rows[:2])
    net.zero_grad()
    torch.stack([net(input_ids=row[None], labels=row[None]).loss for row in rows[:2]]).mean().backward()
    for name, parameter in net.named_parameters():
        assert torch.allclose(sent[name], parameter.grad, atol=1e-6)
    net.zero_grad()
    assert set(sent) == {name for name, _ in net.named_parameters()}


def test_an_untied_copy_computes_the_same_and_its_token_table_shows_which_tokens_occur(net, rows):
    twin = inversion.untied(net)
    assert twin.lm_head.weight is not twin.transformer.wte.weight
    assert torch.equal(twin(input_ids=rows).logits, net(input_ids=rows).logits)
    sent = inversion.gradient_of(twin, rows[:1])[inversion.TOKENS]
    assert set(sent.norm(dim=1).nonzero().flatten().tolist()) == set(rows[0, :-1].tolist())


def test_the_span_check_reads_every_note_of_a_tied_model(net, candidates, rows):
    for row in rows:
        guess, distances = inversion.check_span(candidates, inversion.gradient_of(net, row[None]))
        assert guess == row[1:-1].tolist()
        assert distances.shape == (LENGTH, 300)
        passing = (distances < inversion.PASSES).nonzero()[:, 1].tolist()
        assert passing == guess  # one token passes at each position


def test_noise_costs_directions_and_then_all(net, rows):
    sent = inversion.gradient_of(net, rows[:1])
    weight = inversion.attention_weight(0)
    rank = inversion.input_span(sent[weight]).shape[1]
    assert rank == LENGTH + 1  # every input but the last, which predicts nothing
    blurred = noisy(sent, 1e-3)
    assert inversion.input_span(blurred[weight], noise=1e-3).shape[1] < rank
    assert inversion.input_span(noisy(sent, 1e3)[weight], noise=1e3).shape[1] == 1
