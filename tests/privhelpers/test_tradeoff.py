"""Ceilings on an attack that `hypothesis_testing` states, against brute force and closed forms."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from privhelpers import mechanisms as m

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


@pytest.mark.parametrize("mu", [1e155, 1e300, 1.7e308])
@pytest.mark.parametrize("delta", [1e-5, 0.999])
def test_an_epsilon_beyond_float64_is_infinite(mu, delta):
    assert m.gdp_epsilon(mu=mu, delta=delta) == math.inf


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


@given(mu=st.floats(5e-324, 1.0), ratio=st.floats(0, 100))
def test_a_delta_near_the_end_of_float64_is_a_number(mu, ratio):
    assert m.gdp_epsilon(mu=5e-324, delta=2.3e-308) == 0
    mu *= 1e-320
    assert 0 <= m.gdp_delta(mu=mu, epsilon=ratio * mu) <= 5e-324 + mu


def test_largest_auc_at_the_ends():
    assert m.largest_auc(epsilon=0) == 0.5
    assert m.largest_auc(epsilon=800, delta=1e-5) == 1.0


@settings(max_examples=30)
@given(st.floats(0.05, 4), st.floats(0.01, 0.99))
def test_the_gaussian_curve_is_the_supremum_of_its_bounds(mu, fpr):
    def bound(epsilon):
        return m.dp_tradeoff(fpr, epsilon=epsilon, delta=m.gdp_delta(mu=mu, epsilon=epsilon))

    step = (12 * mu + 6) / 200
    best = max(step * np.arange(200), key=bound)
    near = np.linspace(max(0, best - step), best + step, 100)
    assert max(map(bound, near)) == pytest.approx(m.gdp_tradeoff(fpr, mu=mu), abs=1e-5)
