"""The best of a random number of runs: by formula, against a library, and against exact divergences."""

import dataclasses
import math
import re

import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from privhelpers.accounting import (
    RDP_ORDERS,
    PrivacySpent,
    compose_runs,
    rdp,
    rdp_to_epsilon,
    search_epsilon,
    search_rdp,
    stop_probability,
)
from privhelpers.errors import InvalidParameter, SamplerMismatch, SearchNotRandom

DELTA = 1e-5
RUN = PrivacySpent(epsilon=6.77, delta=DELTA, noise_multiplier=1.5, sample_rate=0.04, steps=2249)
CURVE = rdp(noise_multiplier=1.5, sample_rate=0.04, steps=2249)
LAWS = [0, 0.5, 1, 3, math.inf]


def searched(expected_runs, shape, run=RUN):
    return search_epsilon(run, expected_runs=expected_runs, shape=shape, delta=DELTA).epsilon


def test_theorem_2_by_hand():
    """Gaussian curve R(a) = a / 8, orders 2 and 5, geometric with mean 4: every number on paper.

    The second order gives 0.5 * 0.25 + ln(4) / 2 = 0.818 at 2, 0.8 * 0.625 + ln(4) / 5 = 0.777 at 5, and
    ln(4) = 1.386 at 1; so each order gains 2 * 0.777259 + ln(4) / (order - 1).
    """
    found = search_rdp(orders=[2, 5], rdp=[0.25, 0.625], expected_runs=4, shape=1)
    assert found == pytest.approx([0.25 + 1.554518 + 1.386294, 0.625 + 1.554518 + 0.346574], abs=2e-6)


def test_theorem_6_by_hand():
    """One order alone, 2: e^epsilon is 2 there, and the curve's delta at ln 2 is e^(R - ln 2 - ln 2) / 2."""
    delta = math.exp(0.1 - 2 * math.log(2)) / 2
    found = search_rdp(orders=[2], rdp=[0.1], expected_runs=3, shape=math.inf)
    assert found == pytest.approx([0.1 + 3 * delta + math.log(3)])
    tiny = search_rdp(orders=[2], rdp=[1e-6], expected_runs=3, shape=math.inf)
    assert tiny == pytest.approx([1e-6 + 3 * math.sqrt(1e-6) + math.log(3)], rel=1e-6), "by total variation"


@pytest.mark.parametrize("shape", [0, 0.5, 1, 3, math.inf])
@pytest.mark.parametrize("expected_runs", [8, 100.0])
def test_a_second_library_finds_the_same(expected_runs, shape):
    peer = rdp_privacy_accountant._compute_rdp_repeat_and_select(RDP_ORDERS, CURVE, expected_runs, shape)
    ours = search_rdp(orders=RDP_ORDERS, rdp=CURVE, expected_runs=expected_runs, shape=shape)
    if shape < math.inf:  # the peer also lowers an order to the least bound of the orders above it
        ours = np.minimum.accumulate(ours[::-1])[::-1]
    assert ours == pytest.approx(peer, rel=1e-9)
    bounds = [rdp_to_epsilon(orders=RDP_ORDERS, rdp=one, delta=DELTA).epsilon for one in (ours, peer)]
    assert searched(expected_runs, shape) == pytest.approx(bounds[0]) == bounds[1]


@pytest.mark.parametrize("shape", [0, 1, 2.5])
def test_pure_privacy_costs_two_and_the_shape_times_as_much(shape):
    """Corollary 3: a run of (epsilon, 0) becomes a search of ((2 + shape) epsilon, 0), however long."""
    orders = [2.0**k for k in range(1, 40)]
    found = search_rdp(orders=orders, rdp=[0.7] * len(orders), expected_runs=50, shape=shape)
    assert found[-1] == pytest.approx((2 + shape) * 0.7, abs=1e-6)


# A run that answers "bad", "fair" or "good", so that the best of K is known exactly.


def divergence(p, q, order):
    """The larger of both directions."""
    both = (order * np.log([p, q]) + (1 - order) * np.log([q, p])).T
    return max(logsumexp(both, axis=0)) / (order - 1)


def best(answers, generating):
    """Distribution of the best of K answers: P[best <= x] is E[P[answer <= x]^K]."""
    below = np.concatenate([[0.0], np.cumsum(answers)[:-1], [1.0]])
    return np.diff(generating(below))


def generating(expected_runs, shape):
    """E[x^K] of each law."""
    if shape == math.inf:
        return lambda x: np.exp(expected_runs * (x - 1))
    gamma = stop_probability(expected_runs=expected_runs, shape=shape)
    if shape == 0:
        return lambda x: np.log1p(-(1 - gamma) * x) / math.log(gamma)
    return lambda x: ((1 - (1 - gamma) * x) ** -shape - 1) / (gamma**-shape - 1)


def neighbors(fair, good, epsilon):
    """Two distributions of one run, each within e^epsilon of the other at every answer."""
    fewer, more = fair * math.exp(epsilon), good * math.exp(-epsilon)
    p, q = np.array([1 - fair - good, fair, good]), np.array([1 - fewer - more, fewer, more])
    assert np.all(q > 0) and np.abs(np.log(p / q)).max() <= epsilon + 1e-12
    return p, q


ORDERS = [1.5, 2.0, 4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0]


def both(p, q, expected_runs, shape):
    """True divergences of the search at each order, and the bound from the true ones of one run."""
    law = generating(expected_runs, shape)
    released = [best(one, law) for one in (p, q)]
    if shape == math.inf:  # without a run, a fourth answer
        released = [np.append(one, math.exp(-expected_runs)) for one in released]
    exact = [divergence(*released, order) for order in ORDERS]
    curve = [divergence(p, q, order) for order in ORDERS]
    return np.array(exact), search_rdp(orders=ORDERS, rdp=curve, expected_runs=expected_runs, shape=shape)


@settings(max_examples=40, deadline=None)
@given(
    fair=st.floats(1e-6, 0.15),
    good=st.floats(1e-6, 0.45),
    epsilon=st.floats(0.01, 1),
    expected_runs=st.floats(1.01, 500),
    shape=st.sampled_from(LAWS),
)
def test_no_exact_search_exceeds_its_bound(fair, good, epsilon, expected_runs, shape):
    if (
        abs(math.log((1 - fair - good) / (1 - fair * math.exp(epsilon) - good * math.exp(-epsilon))))
        > epsilon
    ):
        fair = good = fair / 4
    exact, bound = both(*neighbors(fair, good, epsilon), expected_runs, shape)
    assert np.all(exact <= bound + 1e-9)


@pytest.mark.parametrize("shape", [0, 1, 3])
def test_the_bound_is_close_to_an_exact_search(shape):
    """ "good" is common under one data set and "fair" rare: among many runs nearly (2 + shape) epsilon."""
    exact, bound = both(*neighbors(3.7e-5, 0.45, 0.5), 1000, shape)
    assert np.max(exact / bound) > 0.98
    assert exact[-1] > 0.98 * (2 + shape) * 0.5


def test_a_fixed_number_is_refused_with_the_price_of_composition():
    with pytest.raises(SearchNotRandom, match=r"best of 3 fixed runs") as refusal:
        search_epsilon(RUN, expected_runs=3, shape=None, delta=DELTA)
    printed = float(re.search(r"ε = (\S+) at", str(refusal.value))[1])
    together = compose_runs([RUN] * 3, delta=DELTA)
    assert "shape 0.5" in str(search_epsilon(RUN, expected_runs=8, shape=0.5, delta=DELTA))
    assert together <= printed <= 1.001 * together


def search(**changes):
    return search_epsilon(**{"run": RUN, "expected_runs": 4, "shape": 1, "delta": DELTA} | changes)


SHUFFLED = dataclasses.replace(RUN, sampler="shuffled epochs")


@pytest.mark.parametrize(
    ("field", "error", "call"),
    [
        ("expected_runs", InvalidParameter, lambda: search(expected_runs=0.5)),
        ("expected_runs", InvalidParameter, lambda: search(expected_runs=1e12)),
        ("expected_runs", InvalidParameter, lambda: search(expected_runs=math.nan)),
        ("expected_runs", InvalidParameter, lambda: search(shape=None, expected_runs=2.5)),
        ("fixed runs", SearchNotRandom, lambda: search(shape=None, expected_runs=10**18)),
        ("shape", InvalidParameter, lambda: search(shape=1e10)),
        ("shape", InvalidParameter, lambda: search(shape=-1)),
        ("shape", InvalidParameter, lambda: search(shape=math.nan)),
        ("shape", InvalidParameter, lambda: search(shape="geometric")),
        ("shape", InvalidParameter, lambda: search(shape=10**400)),
        ("shape", InvalidParameter, lambda: search(shape=np.array([1.0, 2.0]))),
        ("shape", InvalidParameter, lambda: stop_probability(expected_runs=4, shape=math.inf)),
        ("delta", InvalidParameter, lambda: search(delta=0.0)),
        ("PrivacySpent", InvalidParameter, lambda: search(run=3)),
        ("SearchSpent", InvalidParameter, lambda: compose_runs([search()], delta=DELTA)),
        ("sampler", SamplerMismatch, lambda: search(run=SHUFFLED)),
        ("rdp", InvalidParameter, lambda: search_rdp(orders=[2, 3], rdp=[1.0], expected_runs=4, shape=1)),
    ],
)
def test_what_is_not_a_search_is_refused_by_name(field, error, call):
    with pytest.raises(error, match=field):
        call()
