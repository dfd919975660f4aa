"""The gallery of broken DP-SGD: each has its fault and no other, and the audit refutes the loud ones."""

import copy
import math

import numpy as np
import pytest
import torch
from test_dpsgd_training import hospital, run, tiny_plan

from privhelpers import accounting, audit, dpsgd
from privhelpers.audit import broken

VARIANTS = {variant.name: variant for variant in broken.VARIANTS}
LOUD = ("noise off", "noise / B twice", "clipping off")
PLAN = {"sample_rate": 0.3, "steps": 9}


@pytest.fixture(scope="module")
def start():
    return hospital()


@pytest.fixture(scope="module")
def claim():
    return tiny_plan(**PLAN, target_epsilon=1.0)


@pytest.fixture(scope="module")
def shown(start, claim):
    """What the canaries of every variant showed."""
    texts, tokenizer, model = start
    canaries = dpsgd.GradientCanaries(count=400, seed=0)
    return {
        name: run(copy.deepcopy(model), tokenizer, texts, claim, canaries=canaries, **variant.makers).canaries
        for name, variant in VARIANTS.items()
    }


def test_the_noise_of_each_variant_is_what_its_fault_says(start, claim):
    model, batch = start[2], claim.expected_batch_size
    right = claim.spent.noise_multiplier * claim.max_grad_norm / batch
    found = {name: v.measured_noise(model, claim, seed=0) for name, v in VARIANTS.items()}
    for name in ("honest", "clipping off", "shuffled"):
        assert found[name] == pytest.approx(right, rel=0.02)
    assert found["noise off"] == 0
    assert found["noise / B twice"] == pytest.approx(right / batch, rel=0.02)


def test_the_clamp_cuts_to_the_reports_cap_and_never_adds():
    assert [broken.clamped_sigma(sigma) for sigma in (9.0, 5.0, 2.0, 0.3)] == [5.0, 5.0, 2.0, 0.3]


def test_the_clamped_run_has_the_noise_of_the_cap(start):
    plan = tiny_plan(**PLAN, target_epsilon=0.2)
    sigma = plan.spent.noise_multiplier
    assert sigma > 5
    found = VARIANTS["clamped noise"].measured_noise(start[2], plan, seed=0)
    assert found == pytest.approx(5.0 * plan.max_grad_norm / plan.expected_batch_size, rel=0.02)
    spent = VARIANTS["clamped noise"].spends(plan)
    assert spent == pytest.approx(accounting.epsilon(noise_multiplier=5.0, **PLAN, delta=plan.spent.delta))
    assert spent > plan.spent.epsilon


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


def test_what_is_spent_is_never_below_the_claim(claim):
    for variant in VARIANTS.values():
        assert variant.spends(claim) >= claim.spent.epsilon
    assert VARIANTS["honest"].spends(claim) == claim.spent.epsilon
    assert math.isinf(VARIANTS["noise off"].spends(claim))
    epochs = math.ceil(PLAN["steps"] / 3)
    alone = accounting.epsilon_without_amplification(
        noise_multiplier=claim.spent.noise_multiplier, participations=epochs, delta=claim.spent.delta
    )
    assert VARIANTS["shuffled"].spends(claim) == pytest.approx(alone)


def test_only_the_clamp_claims_less():
    settings = {"target_delta": 1e-3, "max_grad_norm": 0.5, "units": 40, **PLAN, "accountant": "rdp"}
    plans = {name: variant.plan(1.0, **settings) for name, variant in VARIANTS.items()}
    shares = {name: round(plan.target_epsilon, 6) for name, plan in plans.items()}
    assert shares.pop("clamped noise") == 0.25 and set(shares.values()) == {1.0}


@pytest.mark.parametrize("name", LOUD)
@pytest.mark.parametrize("method", [audit.BINOMIAL, audit.FDP])
def test_loud_faults_are_refuted(shown, claim, name, method):
    found = shown[name]
    result = audit.audit_in_one_run(found.included, found.scores, delta=claim.spent.delta, method=method)
    assert result.epsilon_lower > claim.spent.epsilon


@pytest.mark.parametrize("name", sorted(set(VARIANTS) - set(LOUD)))
def test_nothing_is_certified_that_was_not_spent(shown, claim, name):
    found = shown[name]
    result = audit.audit_in_one_run(found.included, found.scores, delta=claim.spent.delta, confidence=0.9999)
    audit.require_below(result, VARIANTS[name].spends(claim), what=name)


def test_the_honest_run_fits_its_claim_and_the_loud_ones_do_not(shown, claim):
    mechanism = {**PLAN, "noise_multiplier": claim.spent.noise_multiplier, "seed": 0}
    fits = {name: audit.claim_p_value(own.included, own.scores, **mechanism) for name, own in shown.items()}
    assert fits["honest"] > 1e-3
    assert all(fits[name] < 1e-6 for name in LOUD)
