"""Gradient inversion: exact where the theorems say so, at chance where there is nothing, and refusals."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from privhelpers import mechanisms, models
from privhelpers.attacks import inversion
from privhelpers.errors import InvalidParameter

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


def test_an_untied_copy_computes_the_same_and_shares_nothing(net, rows):
    twin = inversion.untied(net)
    assert twin.lm_head.weight is not twin.transformer.wte.weight
    assert net.lm_head.weight is net.transformer.wte.weight
    assert torch.equal(twin(input_ids=rows).logits, net(input_ids=rows).logits)


def test_the_token_table_shows_which_tokens_occur(net, rows):
    sent = inversion.gradient_of(inversion.untied(net), rows[:1])[inversion.TOKENS]
    assert set(sent.norm(dim=1).nonzero().flatten().tolist()) == set(rows[0, :-1].tolist())


def test_division_reads_every_note_of_an_untied_model(net, rows):
    twin = inversion.untied(net)
    for row in rows:
        guess = inversion.divide(inversion.gradient_of(twin, row[None]), length=LENGTH)
        assert guess == row[1:-1].tolist()


def test_division_of_noise_alone_reads_nothing(net, rows):
    empty = {name: torch.zeros_like(p) for name, p in net.named_parameters()}
    guess = inversion.divide(noisy(empty, 1.0), length=LENGTH, noise=1.0)
    assert inversion.hits(rows[0, 1:-1].tolist(), guess).mean() < 0.3


def test_the_span_check_reads_every_note_of_a_tied_model(net, rows):
    for row in rows:
        guess, distances = inversion.check_span(net, inversion.gradient_of(net, row[None]), length=LENGTH)
        assert guess == row[1:-1].tolist()
        assert distances.shape == (LENGTH, 300)
        passing = (distances < inversion.PASSES).nonzero()[:, 1].tolist()
        assert passing == guess  # one token passes at each position


@pytest.mark.parametrize("factor", [1e-6, 1.0, 1e6])
def test_scaling_hides_nothing(net, rows, factor):
    sent = inversion.gradient_of(net, rows[:1])
    scaled = {name: factor * part for name, part in sent.items()}
    assert inversion.check_span(net, scaled, length=LENGTH)[0] == rows[0, 1:-1].tolist()
    twin = inversion.gradient_of(inversion.untied(net), rows[:1])
    assert inversion.divide({k: factor * v for k, v in twin.items()}, length=LENGTH) == rows[0, 1:-1].tolist()


def test_a_batch_below_the_width_is_read_and_one_above_is_not(net, rows):
    few = inversion.gradient_of(net, rows[:3])
    found = inversion.check_batch(net, few, rows=3, length=LENGTH, end=END)
    truths = rows[:3, 1:-1].tolist()
    assert sorted(found.tolist()) == sorted(truths)
    assert inversion.batch_hits(truths, found.tolist()).all()
    many = inversion.gradient_of(net, rows)  # 73 inputs, 64 wide
    lost = inversion.check_batch(net, many, rows=6, length=LENGTH, end=END)
    assert lost.shape == (6, LENGTH)
    assert inversion.batch_hits(rows[:, 1:-1].tolist(), lost.tolist()).mean() < 0.5


def test_tokens_of_a_batch_pass_where_they_do_not_stand(net, rows):
    """(v, s) - (u, s) + (u, t) is (v, t): a shared token lets a wrong pair through the first layer."""
    two = rows[:2].clone()
    two[0, 3], two[1, 3], two[1, 7] = 50, 51, 50  # u at 3 and 7, v at 3: v passes at 7
    _, distances = inversion.check_span(net, inversion.gradient_of(net, two), length=LENGTH)
    assert distances[7 - 1, 51] < inversion.PASSES
    assert 51 not in two[:, 7].tolist()


def test_span_distances_of_members_and_strangers():
    basis = torch.linalg.qr(torch.randn(10, 4, generator=torch.Generator().manual_seed(0)).double())[0]
    inside = (basis @ torch.tensor([1.0, -2.0, 0.5, 3.0]).double())[None]
    outside = torch.eye(10).double() - basis @ basis.T
    assert inversion.span_distances(inside, basis) == pytest.approx([0.0], abs=1e-12)
    assert inversion.span_distances(outside[:1], basis) == pytest.approx([1.0])


def test_the_quick_way_to_the_distances_is_the_plain_way(net, rows):
    """Also where the layer norm has a gain and a shift of its own, as after training."""
    trained = copy.deepcopy(net)
    chance = torch.Generator().manual_seed(8)
    with torch.no_grad():
        for parameter in trained.transformer.h[0].ln_1.parameters():
            parameter.add_(0.3 * torch.randn(64, generator=chance))
    for model in (net, trained):
        sent = inversion.gradient_of(model, rows[:1])
        guess, quick = inversion.check_span(model, sent, length=LENGTH)
        basis = inversion.input_span(sent[inversion.attention_weight(0)])
        plain = inversion.span_distances(inversion.first_inputs(model, length=LENGTH), basis)
        assert torch.allclose(quick, plain, atol=1e-5)
        assert guess == rows[0, 1:-1].tolist()


def test_noise_costs_directions_and_then_all(net, rows):
    sent = inversion.gradient_of(net, rows[:1])
    weight = inversion.attention_weight(0)
    rank = inversion.input_span(sent[weight]).shape[1]
    assert rank == LENGTH + 1  # every input but the last, which predicts nothing
    blurred = noisy(sent, 1e-3)
    assert inversion.input_span(blurred[weight], noise=1e-3).shape[1] < rank
    assert inversion.input_span(noisy(sent, 1e3)[weight], noise=1e3).shape[1] == 1


def test_descent_finds_the_note_and_nothing_in_noise(net, rows):
    short = torch.cat([rows[:2, :7], rows[:2, -1:]], 1)
    sent = [inversion.gradient_of(net, row[None]) for row in short]
    found = inversion.match(net, sent, length=6, end=END, seed=0, steps=60)
    assert found.shape == (2, 1, 6)
    right = np.stack(
        [inversion.hits(row[1:-1].tolist(), f[0].tolist()) for row, f in zip(short, found, strict=True)]
    )
    assert right.mean() > 0.8
    empty = {name: torch.zeros_like(p) for name, p in net.named_parameters()}
    blind = inversion.match(net, [noisy(empty, 1.0)], length=6, end=END, seed=0, steps=20)[0, 0]
    assert inversion.hits(short[0, 1:-1].tolist(), blind.tolist()).mean() < 0.5


def test_the_list_attack_is_blind_in_much_noise_and_certain_in_little():
    gram = np.eye(20)
    truth = np.arange(20)[:, None]
    assert (inversion.pick_from_list(gram, noise=0.01, draws=50, seed=0) == truth).all()
    blind = (inversion.pick_from_list(gram, noise=1e3, draws=400, seed=0) == truth).mean()
    assert blind == pytest.approx(1 / 20, abs=0.01)


@pytest.mark.parametrize("noise", [0.3, 0.5, 1.0, 2.0])
def test_the_list_attack_is_the_known_rate_of_orthogonal_signals_and_below_the_ceiling(noise):
    """The chance that one of 16 unit signals is told in white noise is one integral."""
    mu, points = 1 / noise, np.linspace(-9, 9, 4001)
    exact = np.trapezoid(norm.pdf(points) * norm.cdf(points + mu) ** 15, points)
    found = (
        inversion.pick_from_list(np.eye(16), noise=noise, draws=2000, seed=1) == np.arange(16)[:, None]
    ).mean()
    assert found == pytest.approx(exact, abs=0.012)
    assert exact < norm.cdf(norm.ppf(1 / 16) + mu)


@given(st.lists(st.integers(0, 9), min_size=1, max_size=8), st.lists(st.integers(0, 9), max_size=9))
def test_hits_count_positions(truth, guess):
    found = inversion.hits(truth, guess)
    assert found.tolist() == [i < len(guess) and truth[i] == guess[i] for i in range(len(truth))]
    assert 0 <= inversion.bag_recall(truth, guess) <= 1
    assert inversion.bag_recall(truth, truth) == 1


def test_a_batch_is_paired_for_the_attacker():
    truths, guesses = [[1, 2, 3], [4, 5, 6]], [[4, 5, 9], [1, 9, 3]]
    found = inversion.batch_hits(truths, guesses)
    assert found.tolist() == [[True, False, True], [True, True, False]]
    assert not inversion.batch_hits(truths, guesses[:1])[0].any()  # fewer guesses: one note is missed


def test_the_ceiling_is_the_gaussian_trade_off_and_has_the_right_limits():
    for blind in (1e-6, 0.02, 0.5):
        for sigma in (0.3, 1.0, 4.0):
            by_curve = 1 - mechanisms.gdp_tradeoff(blind, mu=1 / sigma)
            assert inversion.ceiling(blind, noise_multiplier=sigma) == pytest.approx(by_curve, rel=1e-9)
    few, many = inversion.ceiling(0.02, noise_multiplier=[1e-3, 1e9])
    assert few == pytest.approx(1.0) and many == pytest.approx(0.02)
    assert inversion.ceiling(0.0, noise_multiplier=1.0) == 0.0
    assert inversion.ceiling(1.0, noise_multiplier=1.0) == 1.0


def test_scores_and_their_control():
    truths, guesses = [[1, 2], [3, 4], [5, 6]], [[1, 2], [3, 9], [9, 9]]
    assert inversion.score(truths, guesses).tolist() == [[True, True], [True, False], [False, False]]
    assert not inversion.score(truths, guesses, shift=1).any()
    assert inversion.score(truths, [[3, 4], [5, 6], [1, 2]], shift=1).all()
    batches = [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]
    swapped = [[[3, 4], [1, 2]], [[5, 6], [0, 8]]]
    assert inversion.score_batches(batches, swapped).tolist() == [[True] * 4, [True, True, False, True]]
    assert not inversion.score_batches(batches, swapped, shift=1).any()


@pytest.mark.parametrize(
    "call",
    [
        lambda g, n: inversion.divide(g, length=0),
        lambda g, n: inversion.divide(g, length=3, noise=-1.0),
        lambda g, n: inversion.check_span(n, g, length=True),
        lambda g, n: inversion.check_batch(n, g, rows=0, length=3, end=END),
        lambda g, n: inversion.match(n, [], length=3, end=END, seed=0),
        lambda g, n: inversion.match(n, [g], length=3, end=END, seed=0, steps=0),
        lambda g, n: inversion.pick_from_list(np.eye(3), noise=0.0, draws=1, seed=0),
        lambda g, n: inversion.pick_from_list(np.ones((2, 3)), noise=1.0, draws=1, seed=0),
        lambda g, n: inversion.pick_from_list(np.full((2, 2), np.nan), noise=1.0, draws=1, seed=0),
        lambda g, n: inversion.bag_recall([], [1]),
        lambda g, n: inversion.score([[1]], []),
        lambda g, n: inversion.score([], []),
        lambda g, n: inversion.ceiling(-0.1, noise_multiplier=1.0),
        lambda g, n: inversion.ceiling(0.1, noise_multiplier=0.0),
        lambda g, n: inversion.ceiling(0.1, noise_multiplier=[1.0, float("nan")]),
        lambda g, n: inversion.score_batches([[[1]]], []),
    ],
)
def test_bad_input_is_refused(net, call):
    empty = {name: torch.zeros_like(p) for name, p in net.named_parameters()}
    with pytest.raises(InvalidParameter):
        call(empty, net)
