"""Published figures that the accountant must reproduce; each says accountant and settings."""

import math

import pytest

from privhelpers import accounting
from privhelpers.errors import InvalidParameter

TENSORFLOW = {"sample_rate": 150 / 60000, "noise_multiplier": 1.3, "steps": 6000, "delta": 1e-5}


@pytest.mark.parametrize(
    ("settings", "accountant", "expected", "tolerance"),
    [
        # opacus tests/accountants_test.py
        (
            {"sample_rate": 0.04, "noise_multiplier": 1.5, "steps": 2249, "delta": 1e-5},
            "prv",
            6.777395712,
            1e-4,
        ),
        ({"sample_rate": 0.04, "noise_multiplier": 1.5, "steps": 2249, "delta": 1e-5}, "pld", 6.767051, 1e-3),
        # tensorflow_privacy compute_dp_sgd_privacy_test.py
        (TENSORFLOW, "rdp", 0.7242234, 1e-3),
        (TENSORFLOW, "pld", 0.640111, 1e-3),
        ({"sample_rate": 0.01, "noise_multiplier": 0.7, "steps": 120, "delta": 1e-5}, "pld", 2.4612381, 1e-3),
        (
            {"sample_rate": 0.01, "noise_multiplier": 4.0, "steps": 10000, "delta": 1e-5},
            "pld",
            0.946999,
            5e-3,
        ),
        ({"sample_rate": 0.01, "noise_multiplier": 4.0, "steps": 10000, "delta": 1e-5}, "rdp", 1.03549, 1e-3),
        # q = 1, one step: the exact Gaussian mechanism
        ({"sample_rate": 1.0, "noise_multiplier": 1.0, "steps": 1, "delta": 1e-5}, "pld", 4.377178, 1e-3),
    ],
)
def test_published_epsilons(settings, accountant, expected, tolerance):
    assert accounting.epsilon(**settings, accountant=accountant) == pytest.approx(expected, rel=tolerance)


def test_the_reports_sigmas_do_not_mean_what_it_says():
    """Poisson reading of the report's settings; 1e-5 grid (reference table of the audit)."""
    spent = [
        accounting.epsilon(noise_multiplier=s, sample_rate=4 / 1500, steps=1875, delta=1e-5, interval=1e-5)
        for s in (38.34, 19.22, 4.21, 2.2829)
    ]
    assert spent == pytest.approx([0.0071, 0.0154, 0.0851, 0.1743], abs=1e-4)


@pytest.mark.parametrize(("q", "steps"), [(4 / 1500, 1875), (0.1, 150)])
@pytest.mark.parametrize("target", [0.5, 1.0, 8.0])
def test_calibration_never_overshoots_and_is_tight(target, q, steps):
    settings = {"sample_rate": q, "steps": steps, "delta": 1e-5}
    sigma = accounting.calibrate_noise_multiplier(target_epsilon=target, **settings)
    grid = accounting.grid_for(target)
    spent = accounting.epsilon(noise_multiplier=sigma, interval=grid, **settings)
    assert 0.998 * target <= spent <= target
    less = accounting.epsilon(noise_multiplier=0.99 * sigma, interval=grid, **settings)
    assert less > target, "a smaller noise multiplier would do"


def test_known_calibrations():
    """The report's settings: sigma on the sum that PLD asks for."""
    settings = {"sample_rate": 4 / 1500, "steps": 1875, "delta": 1e-5}
    for target, expected in [(0.5, 1.0889), (1.0, 0.8172), (10.0, 0.4391)]:
        sigma = accounting.calibrate_noise_multiplier(target_epsilon=target, **settings)
        assert sigma == pytest.approx(expected, rel=1e-3)


def test_limits_and_order():
    settings = {"sample_rate": 0.1, "steps": 100, "delta": 1e-5}
    assert math.isinf(accounting.epsilon(noise_multiplier=0.0, **settings))
    values = [accounting.epsilon(noise_multiplier=s, **settings) for s in (0.8, 1.0, 2.0, 4.0)]
    assert values == sorted(values, reverse=True)
    assert values[1] <= accounting.epsilon(noise_multiplier=1.0, accountant="rdp", **settings)


GOOD = {"noise_multiplier": 1.0, "sample_rate": 0.1, "steps": 10, "delta": 1e-5}


@pytest.mark.parametrize(
    "bad",
    [
        {"noise_multiplier": -1.0},
        {"noise_multiplier": math.nan},
        {"sample_rate": 0.0},
        {"sample_rate": 1.1},
        {"steps": 0},
        {"steps": True},
        {"delta": 1.0},
        {"delta": 0.0},
        {"accountant": "gdp"},
    ],
)
def test_refusals_name_the_value(bad):
    name = next(iter(bad))
    with pytest.raises(InvalidParameter, match=name):
        accounting.epsilon(**{**GOOD, **bad})


def test_spent_says_everything():
    text = str(accounting.PrivacySpent(8.0, 1e-5, 1.1, 0.1, 150))
    for word in ("8", "1e-05", "add/remove", "patient", "Poisson", "150 steps", "PLD"):
        assert word in text
