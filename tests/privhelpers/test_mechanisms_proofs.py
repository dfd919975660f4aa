"""The theorems on composition held against numbers: what the proofs claim, on random and on worst cases."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

from privhelpers import mechanisms as m


def needed_delta(p, q, epsilon):
    """Return the delta of a pair of discrete distributions: the worst set is where p > e^epsilon q."""
    return float(np.maximum(0, np.asarray(p) - math.exp(epsilon) * np.asarray(q)).sum())


def randomized_response_pair(epsilon, runs):
    lies = np.array([sum(bits) for bits in itertools.product((0, 1), repeat=runs)])
    total = (1 + math.exp(epsilon)) ** runs
    return np.exp((runs - lies) * epsilon) / total, np.exp(lies * epsilon) / total


@st.composite
def pure_pairs(draw):
    """Draw two distributions on a few outputs and the smallest epsilon that they satisfy."""
    size = draw(st.integers(2, 6))
    masses = st.lists(st.floats(0.05, 1), min_size=size, max_size=size)
    p, q = (np.array(draw(masses)) for _ in range(2))
    p, q = p / p.sum(), q / q.sum()
    return p, q, float(np.abs(np.log(p / q)).max()) + 1e-9


# What an adversary believes.


@given(st.floats(0.001, 0.999), pure_pairs())
def test_posterior_is_bayes_and_stays_in_the_range(prior, pair):
    p, q, epsilon = pair
    beliefs = m.posterior(np.log(p / q), prior=prior)
    assert np.allclose(beliefs, p * prior / (p * prior + q * (1 - prior)))
    low, high = m.posterior_range(prior=prior, epsilon=epsilon)
    assert low <= beliefs.min() + 1e-12 and beliefs.max() <= high + 1e-12


def test_posterior_of_the_exam():
    scale = 25.0
    log_ratio = [(abs(y - 85) - abs(y - 70)) / scale for y in (71, 84)]
    assert m.posterior(log_ratio, prior=0.5) == pytest.approx([0.62715, 0.37285], abs=1e-5)
    assert m.posterior_range(prior=0.5, epsilon=1) == pytest.approx((0.26894, 0.73106), abs=1e-5)
    assert m.posterior_range(prior=0.2, epsilon=0) == pytest.approx((0.2, 0.2))
    assert m.participation_log_ratio(1.0, noise_multiplier=0.5, sample_rate=1) == pytest.approx(2)
    assert m.participation_log_ratio(0.5, noise_multiplier=1, sample_rate=0.3) == pytest.approx(0)
    assert m.posterior(math.inf, prior=0.1) == 1 and isinstance(m.posterior(0.0, prior=0.1), float)


# Composition.


@given(pure_pairs(), pure_pairs(), st.floats(0, 1), st.floats(0, 1))
def test_basic_composition_with_deltas(first, second, share, other_share):
    epsilons = [share * first[2], other_share * second[2]]
    deltas = [
        max(needed_delta(p, q, e), needed_delta(q, p, e))
        for (p, q, _), e in zip((first, second), epsilons, strict=True)
    ]
    p, q = (np.outer(first[i], second[i]).ravel() for i in (0, 1))
    bound = m.basic_composition(epsilons=epsilons, deltas=[min(d, 0.999) for d in deltas])
    assert needed_delta(p, q, bound.epsilon) <= bound.delta + 1e-12


def test_a_square_root_without_its_conditions_promises_nothing():
    assert needed_delta(*randomized_response_pair(2.0, 9), 6.0) == pytest.approx(0.91409, abs=1e-5)
    wins = [
        k
        for k in range(1, 60)
        if m.advanced_composition(epsilon=0.1, runs=k, delta_slack=1e-5).epsilon < 0.1 * k
    ]
    assert wins[0] == 29
    # Above ln 2 the drift alone exceeds the sum.
    assert m.advanced_composition(epsilon=0.7, runs=10**6, delta_slack=0.5).epsilon > 0.7 * 10**6


# Ceilings on an attack that `hypothesis_testing` states, against brute force and closed forms.


EPSILONS, DELTAS = st.floats(0, 12), st.floats(0, 0.5)


@given(EPSILONS, DELTAS)
def test_largest_auc_is_the_area_under_the_ceiling(epsilon, delta):
    corner = (1 - delta) / (1 + math.exp(epsilon))
    area = quad(
        lambda fpr: m.largest_tpr(fpr=min(max(fpr, 0), 1), epsilon=epsilon, delta=delta),
        0,
        1,
        points=[corner, 1 - delta] if 0 < corner < 1 - delta else None,
    )[0]
    assert m.largest_auc(epsilon=epsilon, delta=delta) == pytest.approx(area, abs=1e-8)


@pytest.mark.parametrize("mu", [1e-13, 1e-10, 1e-7])
@pytest.mark.parametrize("ratio", [0.01, 1.0, 4.0, 6.0])
def test_a_tiny_signal_has_the_delta_of_its_limit(mu, ratio):
    """As mu falls, delta / mu at epsilon = ratio mu goes to E max(z - ratio, 0): the parts nearly cancel."""

    def limit(ratio):
        return quad(lambda z: (z - ratio) * math.exp(-z * z / 2) / math.sqrt(2 * math.pi), ratio, 40)[0]

    near = 10 * mu + 1e-8
    delta = m.gdp_delta(mu=mu, epsilon=ratio * mu)
    assert delta == pytest.approx(mu * limit(ratio), rel=near)
    epsilon = m.gdp_epsilon(mu=mu, delta=delta)
    assert epsilon >= ratio * mu and epsilon == pytest.approx(ratio * mu, rel=near)
    noise = m.gaussian_sigma(sensitivity=1.0, epsilon=ratio * mu, delta=delta)
    assert noise >= 1 / mu and noise == pytest.approx(1 / mu, rel=near)


@pytest.mark.parametrize("mu", [1e155, 1e300, 1.7e308])
@pytest.mark.parametrize("delta", [1e-5, 0.999])
def test_an_epsilon_beyond_float64_is_infinite(mu, delta):
    assert m.gdp_epsilon(mu=mu, delta=delta) == math.inf
