"""Several runs on the same units: what all their models together spend."""

import dataclasses
import math

import dp_accounting
import pytest
from dp_accounting.pld import pld_privacy_accountant
from hypothesis import given, settings
from hypothesis import strategies as st

from privhelpers.accounting import Claimed, PrivacySpent, compose_runs, epsilon
from privhelpers.errors import InvalidParameter, SamplerMismatch

DELTA = 1e-5
SWEEP = [(4.0, 0.04, 2000), (1.5, 0.04, 2000), (0.8, 0.02, 900)]


def spent(sigma, rate, steps):
    return PrivacySpent(epsilon=1.0, delta=DELTA, noise_multiplier=sigma, sample_rate=rate, steps=steps)


def alone(sigma, rate, steps, *, delta=DELTA, accountant="pld"):
    return epsilon(noise_multiplier=sigma, sample_rate=rate, steps=steps, delta=delta, accountant=accountant)


@pytest.mark.parametrize("accountant", ["pld", "rdp"])
@pytest.mark.parametrize("second_sigma", [1.5, 1.5 * (1 + 1e-9)], ids=["equal", "nearly equal"])
def test_two_runs_spend_what_one_of_twice_the_length_does(accountant, second_sigma):
    runs = [spent(1.5, 0.04, 800), spent(second_sigma, 0.04, 800)]
    together = compose_runs(runs, delta=DELTA, accountant=accountant)
    assert together == pytest.approx(alone(1.5, 0.04, 1600, accountant=accountant), rel=1e-4)


def test_without_sampling_the_gaussians_add_up_as_in_closed_form():
    runs = [(10.0, 1.0, 5), (20.0, 1.0, 7), (3.0, 1.0, 1)]
    sigma = 1 / math.sqrt(sum(steps / noise**2 for noise, _, steps in runs))
    exact = dp_accounting.get_epsilon_gaussian(sigma, DELTA)
    together = compose_runs([spent(*run) for run in runs], delta=DELTA)
    assert exact <= together <= exact * (1 + 1e-4)
    assert exact < compose_runs([spent(*run) for run in runs], delta=DELTA, accountant="rdp")


def test_a_sweep_agrees_with_the_accountant_of_dp_accounting():
    other = pld_privacy_accountant.PLDAccountant(value_discretization_interval=1e-4)
    for sigma, rate, steps in SWEEP:
        other.compose(dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(sigma)), steps)
    together = compose_runs([spent(*run) for run in SWEEP], delta=DELTA)
    assert together == pytest.approx(other.get_epsilon(DELTA), rel=1e-3)


@settings(max_examples=2, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0.7, 8.0), st.floats(0.005, 0.2), st.integers(20, 1500)), min_size=2, max_size=3
    )
)
def test_together_they_spend_at_least_the_largest_and_at_most_the_sum(runs):
    together = compose_runs([spent(*run) for run in runs], delta=DELTA)
    share = DELTA / len(runs)
    # Each side is a bound on a grid of its own: what the grids cost is far below the tolerance.
    assert together >= max(alone(*run) for run in runs) * (1 - 1e-3)
    assert together <= sum(alone(*run, delta=share) for run in runs) * (1 + 1e-3)
    assert together <= compose_runs([spent(*run) for run in runs], delta=DELTA, accountant="rdp")


RUN = spent(1.5, 0.04, 10)


@pytest.mark.parametrize(
    ("field", "error", "runs"),
    [
        *(
            (field, InvalidParameter, [RUN, dataclasses.replace(RUN, **{field: value})])
            for field, value in [
                *(("unit", "note"), ("adjacency", "zero-out"), ("sampler", "chance"), ("sample_rate", 1.5)),
                *(("noise_multiplier", 0.0), ("noise_multiplier", math.nan), ("steps", 0), ("steps", True)),
            ]
        ),
        ("sampler", SamplerMismatch, [RUN, dataclasses.replace(RUN, sampler="shuffled epochs")]),
        ("PrivacySpent", InvalidParameter, [RUN, Claimed(RUN, ("draws: mine",))]),
        ("PrivacySpent", InvalidParameter, [RUN, None]),
        ("runs", InvalidParameter, []),
        ("runs", InvalidParameter, 3),
    ],
)
def test_runs_whose_losses_do_not_add_up_are_refused(field, error, runs):
    with pytest.raises(error, match=field):
        compose_runs(runs, delta=DELTA)


@pytest.mark.parametrize("wrong", [{"delta": 0.0}, {"delta": math.nan}, {"accountant": "prv"}])
def test_other_invalid_values_are_refused(wrong):
    with pytest.raises(InvalidParameter, match=next(iter(wrong))):
        compose_runs([RUN], **{"delta": DELTA} | wrong)
