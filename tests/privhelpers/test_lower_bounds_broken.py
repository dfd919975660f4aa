"""The gallery of broken DP-SGD: each has its fault and no other, and the audit refutes the loud ones."""

import copy

import numpy as np
import pytest
import torch
from test_dpsgd_training import hospital, tiny_plan

from privhelpers import dpsgd, lower_bounds
from privhelpers.lower_bounds import broken

VARIANTS = broken.VARIANTS
LOUD = ("noise off", "noise / B twice", "clipping off")
PLAN = {"sample_rate": 0.3, "steps": 9}


@pytest.fixture(scope="module")
def start():
    return hospital()


@pytest.fixture(scope="module")
def claim():
    return tiny_plan(**PLAN, target_epsilon=0.7)


@pytest.fixture(scope="module")
def shown(start, claim):
    """What the canaries of every variant showed."""
    texts, tokenizer, model = start
    canaries = dpsgd.GradientCanaries(count=400, seed=0)
    settings = dpsgd.Settings(learning_rate=1e-3, canaries=canaries)
    return {
        name: variant.training(copy.deepcopy(model), tokenizer, texts, claim, settings, dpsgd.research(0))
        .run(progress=False)
        .canaries
        for name, variant in VARIANTS.items()
    }


def noise_of(variant, model, plan):
    """Return the deviation that a variant adds to the mean."""
    optimizer = variant.training.optimizer(
        torch.optim.SGD(model.parameters(), lr=1.0),
        model,
        noise_multiplier=plan.noise_multiplier,
        max_grad_norm=plan.max_grad_norm,
        expected_batch_size=plan.expected_batch_size,
        chance=dpsgd.research(0),
    )
    return optimizer.noise_deviation()


def test_the_noise_of_each_variant_is_what_its_fault_says(start, claim):
    model, batch = start[2], claim.expected_batch_size
    right = claim.spent.noise_multiplier * claim.max_grad_norm / batch
    noise = {name: noise_of(variant, model, claim) for name, variant in VARIANTS.items()}
    for name in ("honest", "clipping off", "shuffled"):
        assert noise[name] == pytest.approx(right)
    assert noise["noise off"] == 0
    assert noise["noise / B twice"] == pytest.approx(right / batch)


def test_clipping_off_means_that_gradients_keep_their_length(start):
    norms = torch.tensor([0.1, 0.5, 50.0])
    right, wrong = (kind(start[2], max_grad_norm=0.5) for kind in (dpsgd.ClippedGradients, broken.Unclipped))
    assert right.factors(norms).tolist() == pytest.approx([1.0, 1.0, 0.01])
    assert wrong.factors(norms).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("units", "rate", "steps"), [(100, 0.1, 20), (103, 0.1, 25), (7, 0.5, 4), (5, 1.0, 3)]
)
def test_a_shuffled_epoch_uses_every_unit_once(units, rate, steps):
    batches = list(broken.shuffled_draws(torch.Generator(), units=units, sample_rate=rate, steps=steps))
    each = round(1 / rate)
    assert len(batches) == steps
    for epoch in range(steps // each):
        used = sorted(unit for batch in batches[epoch * each : (epoch + 1) * each] for unit in batch)
        assert used == list(range(units))
    assert np.ptp([len(batch) for batch in batches]) <= 1
    if each > 1 and steps >= 2 * each and units > 10:
        assert batches[0] != batches[each]


def test_the_honest_run_fits_its_claim_and_the_loud_ones_do_not(shown, claim):
    mechanism = {**PLAN, "noise_multiplier": claim.spent.noise_multiplier, "seed": 0}
    fits = {
        name: lower_bounds.claim_p_value(canaries.included, canaries.scores, **mechanism)
        for name, canaries in shown.items()
    }
    assert fits["honest"] > 1e-3
    assert all(fits[name] < 1e-6 for name in LOUD)
