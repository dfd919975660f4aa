"""The best of a random number of runs: by formula, against a library, and against exact divergences."""

import dataclasses
import math
import re

import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, logsumexp
from scipy.stats import geom, logser

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
from privhelpers.text import rounded_up

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


def weights(gamma, shape, most=200_000):
    """P[K = k] of the truncated negative binomial law, from its definition as a product."""
    k = np.arange(1, most)
    return np.exp(k * math.log1p(-gamma) + gammaln(k + shape) - gammaln(shape) - gammaln(k + 1)) / math.expm1(
        -shape * math.log(gamma)
    )


@pytest.mark.parametrize("expected_runs", [1.2, 8, 200])
def test_the_laws_have_the_expected_value_that_was_asked_for(expected_runs):
    gamma = {shape: stop_probability(expected_runs=expected_runs, shape=shape) for shape in (0, 0.5, 1, 4)}
    assert geom(gamma[1]).mean() == pytest.approx(expected_runs)
    assert logser(1 - gamma[0]).mean() == pytest.approx(expected_runs)
    for shape in (0.5, 4):
        law = weights(gamma[shape], shape)
        assert law.sum() == pytest.approx(1)
        assert law @ np.arange(1, law.size + 1) == pytest.approx(expected_runs, rel=1e-6)


def test_the_law_varies_smoothly_in_its_shape():
    for shape in (0, 1):
        near = [search_rdp(orders=[4], rdp=[0.5], expected_runs=7, shape=s)[0] for s in (shape, shape + 1e-7)]
        assert near[0] == pytest.approx(near[1], abs=1e-5)


@pytest.mark.parametrize("shape", LAWS[:-1])
def test_a_search_that_always_makes_one_run_spends_what_one_run_does(shape):
    found = search_rdp(orders=RDP_ORDERS, rdp=CURVE, expected_runs=1, shape=shape)
    assert found == pytest.approx(CURVE)
    nearly = search_rdp(orders=RDP_ORDERS, rdp=CURVE, expected_runs=1 + 1e-9, shape=shape)
    assert nearly == pytest.approx(CURVE, abs=1e-5)


@settings(max_examples=40, deadline=None)
@given(st.floats(1, 500), st.floats(1, 3), st.sampled_from(LAWS) | st.floats(0, 50))
@example(1 + 1e-13, 1.5, 1e6)
@example(1e8, 10.0, 1e9)
def test_more_expected_runs_never_cost_less(expected_runs, factor, shape):
    fewer, more = searched(expected_runs, shape), searched(expected_runs * factor, shape)
    assert fewer <= more * (1 + 1e-9)


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


@settings(max_examples=100, deadline=None)
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


def test_the_best_of_a_fixed_number_costs_what_the_theorem_does_not_allow():
    """Eight answers, all "bad": e^(8 epsilon) times as likely under one data set as under the other."""
    epsilon, fixed = 0.5, 8
    p = 1 / (1 + math.exp(epsilon))
    exact = divergence(*(np.array([one**fixed, 1 - one**fixed]) for one in (p, 1 - p)), ORDERS[-1])
    assert exact == pytest.approx(fixed * epsilon, rel=1e-2)
    curve = [divergence(np.array([p, 1 - p]), np.array([1 - p, p]), order) for order in ORDERS]
    for shape in (0, 1):
        assert search_rdp(orders=ORDERS, rdp=curve, expected_runs=fixed, shape=shape)[-1] < exact / 2


def test_a_fixed_number_is_refused_with_the_price_of_composition():
    with pytest.raises(SearchNotRandom, match=r"best of 3 fixed runs") as refusal:
        search_epsilon(RUN, expected_runs=3, shape=None, delta=DELTA)
    together = compose_runs([RUN] * 3, delta=DELTA)
    assert f"ε = {rounded_up(together):g} at δ = 1e-05" in str(refusal.value)
    for runs in (2, 4, 5):  # no printed bound is below the bound
        with pytest.raises(SearchNotRandom) as refusal:
            search_epsilon(RUN, expected_runs=runs, shape=None, delta=DELTA)
        printed = float(re.search(r"ε = (\S+) at", str(refusal.value))[1])
        assert printed >= compose_runs([RUN] * runs, delta=DELTA)


def test_a_result_says_all_that_gives_it_meaning():
    found = search_epsilon(RUN, expected_runs=8, shape=1, delta=DELTA)
    for words in ("best of a random number of runs (geometric with mean 8", "add/remove of one patient"):
        assert words in str(found)
    assert "Poisson sampling" in str(found) and "RDP accountant" in str(found)
    assert "shape 0.5" in str(search_epsilon(RUN, expected_runs=8, shape=0.5, delta=DELTA))
    assert (found.run, found.expected_runs, found.shape, found.delta) == (RUN, 8, 1, DELTA)
    assert found.order in RDP_ORDERS


@pytest.mark.parametrize("shape", [5e-324, 1e-12, 1e6, 1e9])
def test_a_law_at_its_edge_costs_at_least_one_run(shape):
    run = PrivacySpent(epsilon=1.0, delta=1e-5, noise_multiplier=1.5, sample_rate=0.04, steps=100)
    found = search_epsilon(run, expected_runs=1 + 1e-15, shape=shape, delta=1e-5)
    alone = compose_runs([run], delta=1e-5)
    assert found.epsilon >= alone


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
