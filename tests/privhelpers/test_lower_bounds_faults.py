"""Simulated canaries of a run that is not what it claims."""

import importlib
import math
from pathlib import Path

import numpy as np
import pytest

from privhelpers import lower_bounds

RUN = {"noise_multiplier": 2.0, "sample_rate": 0.25, "steps": 8}


@pytest.fixture(scope="module")
def scores_of():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
        power = importlib.import_module("audit_power")

    def simulated(canaries=4000, noise_multiplier=2.0, **fault):
        shows = power.Fault(**fault).shown(noise_multiplier, RUN["sample_rate"])
        run = {**RUN, "noise_multiplier": noise_multiplier}
        return lower_bounds.simulate_scores(canaries=canaries, **run, seed=4, shows=shows)

    return simulated


def times_drawn(scores):
    """How often each canary entered a run without noise, from its score alone."""
    entered, stayed = (
        math.log1p(RUN["sample_rate"] * math.expm1(sign / (2 * RUN["noise_multiplier"] ** 2)))
        for sign in (1, -1)
    )
    return (scores - RUN["steps"] * stayed) / (entered - stayed)


def test_without_a_fault_the_claim_runs(scores_of):
    coins, scores = scores_of()
    again, same = lower_bounds.simulate_scores(canaries=4000, **RUN, seed=4)
    assert np.array_equal(coins, again) and np.array_equal(scores, same)
    assert lower_bounds.claim_p_value(coins, scores, **RUN, seed=5) > 1e-3


def test_poisson_draws_without_noise_are_binomial(scores_of):
    coins, scores = scores_of(noise=0.0)
    assert times_drawn(scores[~coins]) == pytest.approx(0, abs=1e-9)
    drawn = times_drawn(scores[coins])
    assert drawn == pytest.approx(np.rint(drawn), abs=1e-9)
    assert drawn.mean() == pytest.approx(2, abs=0.12) and drawn.var() == pytest.approx(1.5, abs=0.2)


def test_a_shuffle_draws_everybody_once_in_every_epoch(scores_of):
    coins, scores = scores_of(noise=0.0, shuffled=True)
    assert times_drawn(scores[coins]) == pytest.approx(2, abs=1e-9)


def test_a_larger_rate_draws_more_often_than_it_says(scores_of):
    coins, scores = scores_of(noise=0.0, rate=2.0)
    assert times_drawn(scores[coins]).mean() == pytest.approx(4, abs=0.15)


def test_canaries_that_are_clipped_together_share_the_bound(scores_of):
    """The fewer there are, the more each of them shows."""
    shared = {"noise": 0.0, "clipped_mean_of": 10.0}
    most = [scores_of(canaries=count, **shared)[1].max() for count in (40, 4000)]
    alone = scores_of(noise=0.0)[1].max()
    assert most[0] > alone > most[1]


@pytest.mark.parametrize("fault", [{"noise": 0.5}, {"noise": 0.0}, {"rate": 2.0}])
def test_the_scores_of_a_fault_do_not_fit_the_claim(scores_of, fault):
    claim = {**RUN, "noise_multiplier": 1.0}
    assert lower_bounds.claim_p_value(*scores_of(noise_multiplier=1.0, **fault), **claim, seed=5) < 1e-6
