"""What the report's code did to its noise, tried on ours: the rule that must fail, fails."""

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from privhelpers import accounting, claims, dpsgd

SIGMA, BOUND, BATCH = 2.2829, 1.0, 4.0
PRINTED = claims.printed("report")
RUN = {"sample_rate": 4 / 1500, "steps": PRINTED.steps, "delta": PRINTED.delta}


class OnTheMean(dpsgd.PrivateOptimizer):
    """The report's rule: standard deviation sigma C on the mean."""

    def noise_deviation(self):
        return self.noise_multiplier * self.max_grad_norm


@pytest.fixture(scope="module")
def model():
    torch.set_num_threads(1)
    config = GPT2Config(
        vocab_size=6000, n_positions=16, n_embd=128, n_layer=2, n_head=2, bos_token_id=0, eos_token_id=0
    )
    return GPT2LMHeadModel(config)


def deviation(make, model):
    """Standard deviation of a step in which every gradient is zero: no one was sampled."""
    optimizer = make(
        torch.optim.SGD(model.parameters(), lr=1.0),
        model,
        noise_multiplier=SIGMA,
        max_grad_norm=BOUND,
        expected_batch_size=BATCH,
        chance=dpsgd.research(0),
    )
    optimizer.noisy_mean([])
    values = torch.cat([g.reshape(-1) for g in optimizer.gradients.values()]).double()
    assert values.numel() >= 1_000_000
    return float(values.std())


def is_right(value):
    return value == pytest.approx(SIGMA * BOUND / BATCH, rel=0.01)


def test_noise_on_the_mean_is_sigma_c_over_the_batch(model):
    """Behavioural vector (a): 0.5707 within 1%; the report's rule gives four times that and fails."""
    assert is_right(deviation(dpsgd.PrivateOptimizer, model))
    wrong = deviation(OnTheMean, model)
    assert not is_right(wrong) and wrong == pytest.approx(SIGMA, rel=0.01)


@pytest.mark.parametrize("target", [0.5, 1.0, 5.0, 10.0])
def test_a_calibrated_noise_multiplier_keeps_its_target(target):
    """Behavioural vector (b), first half; the report's search returns one that does not, from 1 on."""
    ours = accounting.calibrate_noise_multiplier(target_epsilon=target, **RUN)
    assert accounting.epsilon(noise_multiplier=ours, **RUN) <= target
    searched = accounting.printed_calibration(target_epsilon=target, **RUN)
    assert (accounting.epsilon(noise_multiplier=searched, **RUN) > target) == (target >= 1)


def test_a_clamp_takes_the_guarantee_away():
    """Behavioural vector (b), second half: a calibrated noise multiplier may not be lowered."""
    run = {"sample_rate": 0.5, "steps": 1875, "delta": 1e-5}
    ours = accounting.calibrate_noise_multiplier(target_epsilon=5.0, accountant="rdp", **run)
    lowered = accounting.clamped(ours, target_epsilon=5.0)
    assert lowered < ours
    assert accounting.epsilon(noise_multiplier=lowered, accountant="rdp", **run) > 5.0


@pytest.mark.parametrize("accountant", ["pld", "rdp"])
def test_epsilon_is_concave_in_the_steps_and_the_printed_log_is_not(accountant):
    """Behavioural vector (c)."""
    epochs = [PRINTED.steps * epoch // 5 for epoch in range(1, 6)]
    run = {**RUN, "noise_multiplier": 0.8, "accountant": accountant}
    spent = [accounting.epsilon(**{**run, "steps": steps}) for steps in epochs]
    gains = np.diff([0.0, *spent])
    assert (gains > 0).all() and (np.diff(gains) < 1e-3).all()
    printed = np.diff([0.0, *PRINTED.epsilon_log])
    assert np.ptp(printed[:-1]) < 2e-4, "a straight line"
