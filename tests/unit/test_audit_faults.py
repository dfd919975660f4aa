"""Simulated canaries of a run that is not what it claims."""

import math

import numpy as np
import pytest

from privhelpers import audit
from privhelpers.errors import InvalidParameter

RUN = {"noise_multiplier": 2.0, "sample_rate": 0.25, "steps": 8}


def scores_of(fault, canaries=4000, **changes):
    return audit.simulate_scores(canaries=canaries, **{**RUN, **changes}, seed=4, fault=fault)


def times_drawn(scores):
    """How often each canary entered a run without noise, from its score alone."""
    entered, stayed = (
        math.log1p(RUN["sample_rate"] * math.expm1(sign / (2 * RUN["noise_multiplier"] ** 2)))
        for sign in (1, -1)
    )
    return (scores - RUN["steps"] * stayed) / (entered - stayed)


def test_without_a_fault_the_claim_runs():
    coins, scores = scores_of(audit.Fault())
    again, same = audit.simulate_scores(canaries=4000, **RUN, seed=4)
    assert np.array_equal(coins, again) and np.array_equal(scores, same)
    assert audit.claim_p_value(coins, scores, **RUN, seed=5) > 1e-3


def test_poisson_draws_without_noise_are_binomial():
    coins, scores = scores_of(audit.Fault(noise=0.0))
    assert times_drawn(scores[~coins]) == pytest.approx(0, abs=1e-9)
    drawn = times_drawn(scores[coins])
    assert drawn == pytest.approx(np.rint(drawn), abs=1e-9)
    assert drawn.mean() == pytest.approx(2, abs=0.12) and drawn.var() == pytest.approx(1.5, abs=0.2)


def test_a_shuffle_draws_everybody_once_in_every_epoch():
    coins, scores = scores_of(audit.Fault(noise=0.0, shuffled=True))
    assert times_drawn(scores[coins]) == pytest.approx(2, abs=1e-9)


def test_a_larger_rate_draws_more_often_than_it_says():
    coins, scores = scores_of(audit.Fault(noise=0.0, rate=2.0))
    assert times_drawn(scores[coins]).mean() == pytest.approx(4, abs=0.15)


def test_canaries_that_are_clipped_together_share_the_bound():
    """The fewer there are, the more each of them shows."""
    shared = audit.Fault(noise=0.0, clipped_mean_of=10.0)
    most = [scores_of(shared, canaries=count)[1].max() for count in (40, 4000)]
    alone = scores_of(audit.Fault(noise=0.0))[1].max()
    assert most[0] > alone > most[1]


@pytest.mark.parametrize("fault", [audit.Fault(noise=0.5), audit.Fault(noise=0.0), audit.Fault(rate=2.0)])
def test_the_scores_of_a_fault_do_not_fit_the_claim(fault):
    claim = {**RUN, "noise_multiplier": 1.0}
    assert audit.claim_p_value(*scores_of(fault, **claim), **claim, seed=5) < 1e-6


@pytest.mark.parametrize(
    ("name", "value"),
    [("noise", -0.1), ("noise", math.nan), ("rate", 0.0), ("rate", math.inf), ("clipped_mean_of", 0.0)],
)
def test_a_fault_out_of_range_is_refused(name, value):
    with pytest.raises(InvalidParameter, match=name):
        audit.Fault(**{name: value})


def test_a_rate_above_one_is_refused():
    with pytest.raises(InvalidParameter, match="sample_rate"):
        scores_of(audit.Fault(rate=5.0))
