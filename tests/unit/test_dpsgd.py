"""The private loop against slow, obvious versions of itself."""

import copy

import numpy as np
import pytest
import torch
from torch import nn
from transformers import GPT2Config, GPT2LMHeadModel

from privhelpers import dpsgd, models
from privhelpers.accounting import PrivacySpent
from privhelpers.dpsgd.loop import noisy_mean
from privhelpers.errors import InvalidParameter, TrainingFailed, UnsupportedModel
from privhelpers.models.scoring import row_losses

IGNORED = -100


def small_model(tied=True, dtype=torch.float64):
    config = GPT2Config(
        vocab_size=97,
        n_positions=32,
        n_embd=16,
        n_layer=2,
        n_head=2,
        resid_pdrop=0.0,
        embd_pdrop=0.0,
        attn_pdrop=0.0,
        bos_token_id=0,
        eos_token_id=0,
        tie_word_embeddings=tied,
    )
    torch.manual_seed(0)
    return GPT2LMHeadModel(config).to(dtype)


def ragged_batch(rows=7, length=12):
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(0, 97, (rows, length), generator=generator)
    labels = ids.clone()
    for row, kept in ((2, 8), (5, 4)):
        ids[row : row + 1, kept:], labels[row : row + 1, kept:] = 0, IGNORED
    return dpsgd.Batch(ids, labels)


def slow_clipped_sum(model, batch, max_grad_norm, unit):
    sums = {n: torch.zeros_like(p) for n, p in model.named_parameters()}
    norms = []
    for u in range(int(unit.max()) + 1):
        model.zero_grad()
        rows = (unit == u).nonzero()[:, 0].tolist()
        losses = [
            row_losses(model(input_ids=batch.ids[r : r + 1]).logits, batch.labels[r : r + 1])[0] for r in rows
        ]
        torch.stack(losses).mean().backward()
        norm = torch.sqrt(sum(p.grad.square().sum() for p in model.parameters()))
        norms.append(norm.item())
        for name, parameter in model.named_parameters():
            sums[name] += parameter.grad * min(1.0, max_grad_norm / norm.item())
    model.zero_grad()
    return sums, norms


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("unit", [[0, 1, 2, 3, 4, 5, 6], [0, 1, 1, 2, 0, 3, 0]])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 2e-6)])
def test_clipped_sum_equals_one_backward_per_unit(tied, unit, dtype, tolerance):
    model, batch, unit = small_model(tied, dtype), ragged_batch(), torch.tensor(unit)
    _, plain_norms = slow_clipped_sum(model, batch, 1e9, unit)
    bound = float(np.median(plain_norms))  # half of the units are clipped
    expected, expected_norms = slow_clipped_sum(model, batch, bound, unit)
    sums, norms = dpsgd.clipped_gradient_sum(model, batch, max_grad_norm=bound, unit=unit)
    assert norms.tolist() == pytest.approx(expected_norms, rel=tolerance)
    assert set(sums) == set(expected)
    scale = max(float(value.abs().max()) for value in expected.values())
    for name, value in expected.items():
        torch.testing.assert_close(sums[name], value, rtol=0, atol=tolerance * scale)


def test_a_row_loss_is_the_library_loss_of_that_row_alone():
    model, batch = small_model(dtype=torch.float32), ragged_batch()
    ours = row_losses(model(input_ids=batch.ids).logits, batch.labels)
    for row in range(len(batch.ids)):
        one = slice(row, row + 1)
        theirs = model(input_ids=batch.ids[one], labels=batch.labels[one]).loss
        assert ours[row].item() == pytest.approx(theirs.item(), rel=1e-5)


def test_one_unit_never_exceeds_the_bound():
    sums, norms = dpsgd.clipped_gradient_sum(
        small_model(), ragged_batch(), max_grad_norm=0.25, unit=torch.zeros(7, dtype=torch.long)
    )
    assert norms[0] > 0.25
    released = torch.sqrt(sum(value.square().sum() for value in sums.values()))
    assert float(released) == pytest.approx(0.25, rel=1e-9)


def test_a_unit_that_is_not_finite_contributes_nothing():
    model, batch = small_model(), ragged_batch(rows=3)
    with torch.no_grad():
        model.transformer.wte.weight[96] = float("nan")
    batch.ids[batch.ids == 96] = 1
    batch.labels[batch.labels == 96] = 1
    batch.ids[1, 3] = 96
    model.lm_head.weight = nn.Parameter(
        small_model().lm_head.weight.detach().clone()
    )  # keep the logits finite
    sums, norms = dpsgd.clipped_gradient_sum(model, batch, max_grad_norm=1.0)
    assert torch.isfinite(norms).tolist() == [True, False, True]
    assert all(torch.isfinite(value).all() for value in sums.values())


def test_unknown_modules_are_refused_by_name():
    model = small_model()
    model.transformer.h[0].odd = nn.Conv2d(1, 1, 1)
    with pytest.raises(UnsupportedModel, match=r"transformer.h.0.odd \(Conv2d\)"):
        dpsgd.clipped_gradient_sum(model, ragged_batch(), max_grad_norm=1.0)


def test_gaps_in_units_and_bad_bounds_are_refused():
    with pytest.raises(InvalidParameter, match="unit"):
        dpsgd.clipped_gradient_sum(
            small_model(), ragged_batch(rows=2), max_grad_norm=1.0, unit=torch.tensor([0, 2])
        )
    with pytest.raises(InvalidParameter, match="max_grad_norm"):
        dpsgd.clipped_gradient_sum(small_model(), ragged_batch(), max_grad_norm=float("inf"))


def test_the_engine_leaves_the_model_as_it_was():
    model = small_model()
    before = copy.deepcopy(model.state_dict())
    dpsgd.clipped_gradient_sum(model, ragged_batch(), max_grad_norm=1.0)
    assert all(p.requires_grad and p.grad is None for p in model.parameters())
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert not any(m._forward_hooks for m in model.modules())


def test_noise_has_the_standard_deviation_of_the_definition():
    """sigma C / expected batch size on the mean; the report's rule, sigma C on the mean, must not pass."""
    spent = PrivacySpent(8.0, 1e-5, noise_multiplier=2.2829, sample_rate=4 / 1500, steps=10)
    plan = dpsgd.PrivacyPlan(target_epsilon=8.0, max_grad_norm=1.0, units=1500, spent=spent)
    zeros = {"w": torch.zeros(1_000_000)}
    noise = noisy_mean(zeros, {}, plan, torch.Generator().manual_seed(0))["w"]
    assert float(noise.std()) == pytest.approx(2.2829 / 4, rel=0.01)
    assert abs(float(noise.mean())) < 4 * (2.2829 / 4) / 1000


def hospital(patients=40):
    texts = [[f"note {i} of ward {i % 3}"] * (1 + i % 3) for i in range(patients)]
    tokenizer = models.train_tokenizer([t for own in texts for t in own], vocab_size=300)
    model = models.build("tiny-gpt2", tokenizer, seed=0)
    return texts, tokenizer, model


def tiny_plan(**changes):
    settings = {
        "target_epsilon": 8.0,
        "target_delta": 1e-3,
        "sample_rate": 0.2,
        "steps": 6,
        "max_grad_norm": 0.5,
        "units": 40,
    }
    return dpsgd.plan_privacy(**{**settings, **changes})


def test_micro_batches_change_nothing():
    texts, tokenizer, model = hospital()
    plan = tiny_plan()
    other = copy.deepcopy(model)
    dpsgd.train(model, tokenizer, texts, plan, learning_rate=1e-3, seed=3, max_rows=3, progress=False)
    dpsgd.train(other, tokenizer, texts, plan, learning_rate=1e-3, seed=3, max_rows=500, progress=False)
    for a, b in zip(model.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def test_an_empty_draw_is_a_step_of_noise():
    texts, tokenizer, model = hospital()
    plan = tiny_plan(sample_rate=0.01, steps=12)
    before = copy.deepcopy(model.state_dict())
    log = dpsgd.train(model, tokenizer, texts, plan, learning_rate=1e-3, seed=0, progress=False)
    assert log.empty_steps > 0
    assert len(log.batch_sizes) == 12 and log.empty_steps == int((log.batch_sizes == 0).sum())
    assert any(not torch.equal(before[n], v) for n, v in model.state_dict().items())
    assert log.spent.steps == 12


def test_batches_are_poisson_draws():
    texts, tokenizer, model = hospital()
    plan = tiny_plan(sample_rate=0.3, steps=60, target_epsilon=50.0)

    def free(model, batch, *, max_grad_norm, unit):  # no model pass: only the draw matters here
        return {}, torch.ones(int(unit.max()) + 1)

    log = dpsgd.train(
        model, tokenizer, texts, plan, learning_rate=1e-6, seed=0, clipped_sum=free, progress=False
    )
    mean, variance = 40 * 0.3, 40 * 0.3 * 0.7
    assert abs(log.batch_sizes.mean() - mean) < 4 * np.sqrt(variance / 60)
    assert 0.5 * variance < log.batch_sizes.var() < 2 * variance  # a fixed batch size has variance 0


def test_same_seed_same_weights_other_seed_other_weights():
    texts, tokenizer, model = hospital()
    twins = [copy.deepcopy(model) for _ in range(3)]
    for twin, seed in zip(twins, (1, 1, 2), strict=True):
        dpsgd.train(twin, tokenizer, texts, tiny_plan(), learning_rate=1e-3, seed=seed, progress=False)
    first, second, third = (t.transformer.wte.weight for t in twins)
    assert torch.equal(first, second) and not torch.equal(first, third)


def test_the_budget_is_kept_and_seen_by_opacus_too():
    texts, tokenizer, model = hospital()
    plan = tiny_plan()
    log = dpsgd.train(model, tokenizer, texts, plan, learning_rate=1e-3, seed=0, progress=False)
    assert log.spent.epsilon <= 8.0
    assert log.rdp_epsilon >= log.spent.epsilon  # the looser bound, stepped once a step by the loop
    assert log.rdp_epsilon < 2 * log.spent.epsilon


def test_epsilon_grows_and_is_concave():
    steps, spent = dpsgd.epsilon_curve(tiny_plan(steps=60), points=6)
    assert steps == [10, 20, 30, 40, 50, 60]
    gains = np.diff(spent)
    assert (gains > 0).all() and (np.diff(gains) < 1e-3).all()


def test_refusals():
    texts, tokenizer, model = hospital()
    with pytest.raises(InvalidParameter, match="40 patients, got 39"):
        dpsgd.train(model, tokenizer, texts[1:], tiny_plan(), learning_rate=1e-3, seed=0)
    with pytest.raises(InvalidParameter, match="target_delta"):
        tiny_plan(target_delta=1 / 40)
    with pytest.raises(InvalidParameter, match="without notes"):
        dpsgd.train(model, tokenizer, [[], *texts[1:]], tiny_plan(), learning_rate=1e-3, seed=0)
    with pytest.raises(TrainingFailed, match="finite"):
        with torch.no_grad():
            model.transformer.wpe.weight.fill_(float("nan"))
        dpsgd.train(model, tokenizer, texts, tiny_plan(), learning_rate=1e-3, seed=0, progress=False)
