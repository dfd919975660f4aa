"""Published figures, exact distributions and refusals of the mechanisms room."""

import math
import random
from decimal import Decimal, localcontext
from fractions import Fraction

import dp_accounting
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from privhelpers import mechanisms as m
from privhelpers import rng
from privhelpers.errors import InvalidParameter
from privhelpers.mechanisms import _grid
from privhelpers.mechanisms._composition import Guarantee

DELTAS = st.floats(1e-12, 0.5)

# Gaussian noise: the exact curve and its two calibrations.


@pytest.mark.parametrize(
    ("sigma", "delta", "epsilon"),
    [(1, 1e-5, 4.377178), (1, 1e-6, 4.886554), (2, 1e-5, 1.993091), (0.5, 1e-5, 9.997256)],
)
def test_exact_gaussian_epsilon(sigma, delta, epsilon):
    assert m.gdp_epsilon(mu=1 / sigma, delta=delta) == pytest.approx(epsilon, abs=1e-6)


@pytest.mark.parametrize(("epsilon", "sigma"), [(1, 3.730632), (8, 0.600229), (0.5, 7.031827)])
def test_analytic_calibration(epsilon, sigma):
    assert m.gaussian_sigma(sensitivity=1, epsilon=epsilon, delta=1e-5) == pytest.approx(sigma, abs=1e-6)


@given(st.floats(0.01, 20), DELTAS)
def test_gdp_epsilon_inverts_gdp_delta(mu, delta):
    epsilon = m.gdp_epsilon(mu=mu, delta=delta)
    assert m.gdp_delta(mu=mu, epsilon=epsilon) <= delta * (1 + 1e-12)
    if epsilon > 0:
        assert m.gdp_delta(mu=mu, epsilon=epsilon) == pytest.approx(delta, rel=1e-6)
        assert epsilon == pytest.approx(dp_accounting.get_epsilon_gaussian(1 / mu, delta), abs=1e-6)


@pytest.mark.parametrize("short", [1e-9, 1e-12, 1e-14])
@pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
def test_a_delta_near_1_is_inverted_to_the_safe_side(short, size):
    """Where rounding exceeds what is left of delta, a search in steps of 1e-12 took hours."""
    delta = 1 - short
    sigma = m.gaussian_sigma(sensitivity=1, epsilon=size, delta=delta)
    searched = [(1 / sigma, size), (size, m.gdp_epsilon(mu=size, delta=delta))]
    for mu, epsilon in filter(all, searched):  # at 0, any delta as large would do
        near, far = epsilon / mu - mu / 2, epsilon / mu + mu / 2
        rest = special.ndtr(near) + math.exp(epsilon + special.log_ndtr(-far))  # 1 - delta: a sum
        assert 1 - delta < rest < 1 - delta + 2e-10


# Noise on a grid.


def chi_square(draws, pmf, edge):
    """Return the p value of whole-number draws against a pmf, with both tails pooled."""
    inside = np.arange(-edge, edge + 1)
    expected = pmf(inside) * len(draws)
    clipped = np.clip(draws, -edge - 1, edge + 1)
    counts = np.array([(clipped == k).sum() for k in range(-edge - 1, edge + 2)])
    tail = (len(draws) - expected.sum()) / 2
    return stats.chisquare(counts, np.concatenate([[tail], expected, [tail]])).pvalue


@pytest.mark.parametrize("scale", [Fraction(2), Fraction(7, 3), Fraction(1, 2)])
def test_discrete_laplace_sampler_has_its_pmf(scale):
    source = rng.plain(0, "discrete laplace")
    draws = [_grid._sample_discrete_laplace(scale=scale, source=source) for _ in range(8000)]
    edge = max(1, math.floor(4 * scale))
    assert chi_square(draws, lambda k: stats.dlaplace.pmf(k, 1 / float(scale)), edge) > 0.01


def test_grid_mechanisms_stay_on_the_grid_and_near_the_answer():
    source = rng.plain(0, "grid")
    for step in (1, 0.25, 0.1):
        noisy = m.laplace_on_grid(7.3, sensitivity=1, epsilon=5, source=source, step=step)
        assert noisy == float(round(noisy / step) * Fraction(step))
        assert abs(noisy - 7.3) < 10
    assert m.laplace_on_grid(2.5, sensitivity=1, epsilon=200, source=source) == 3  # half up, not half to even
    assert m.laplace_on_grid(np.int64(2**62), sensitivity=1, epsilon=200, source=source, step=0.5) == 2**62
    assert m.laplace_on_grid(3.5, sensitivity=1, epsilon=200, source=source) == 4


def test_rounding_widens_the_noise_to_whole_steps():
    # Sensitivity 1.5 on a grid of 1 is 2 steps: the scale must be 2 / epsilon, not 1.5 / epsilon.
    source = rng.plain(0, "widen")
    draws = [int(m.laplace_on_grid(0, sensitivity=1.5, epsilon=1, source=source)) for _ in range(6000)]
    assert chi_square(draws, lambda k: stats.dlaplace.pmf(k, 1 / float(2)), 8) > 0.01
    assert chi_square(draws, lambda k: stats.dlaplace.pmf(k, 1 / 1.5), 8) < 1e-6


# Composition.


def test_nine_runs_of_epsilon_2():
    nine = {"epsilon": 2.0, "runs": 9, "delta_slack": 1e-5}
    assert m.basic_composition(epsilons=[2.0] * 9) == Guarantee(18, 0)
    assert m.advanced_composition(**nine).epsilon == pytest.approx(143.794165, abs=1e-5)
    assert m.optimal_composition(**nine).epsilon == pytest.approx(17.999969, abs=1e-6)
    assert m.optimal_composition(**nine).delta == pytest.approx(1e-5)


@pytest.mark.parametrize(
    ("epsilon", "runs", "slack"),
    [(3.15, 400, 0.9998), (3.94, 400, 0.99999), (0.01, 150, 1 - 1e-9), (0.5, 60, 0.7), (2.0, 9, 1e-12)],
)
def test_optimal_composition_is_on_the_safe_side_of_50_digits(epsilon, runs, slack):
    """Near a slack of 1 what is left of a chance is a small difference of large numbers."""
    with localcontext(prec=50):
        lie, left = (-Decimal(epsilon)).exp(), Decimal(slack)
        mine, neighbors, exact = Decimal(0), Decimal(0), Decimal(0)
        for lies in range(runs + 1):
            chance = math.comb(runs, lies) / (1 + lie) ** runs
            mine, neighbors = mine + chance * lie**lies, neighbors + chance * lie ** (runs - lies)
            if mine > left:
                exact = max(exact, ((mine - left) / neighbors).ln())
        found = Decimal(m.optimal_composition(epsilon=epsilon, runs=runs, delta_slack=slack).epsilon)
        assert exact <= found <= exact * (1 + Decimal("1e-9")) + Decimal("1e-12")


def test_group_privacy_carries_delta():
    fifty = {"epsilon": 0.223, "delta": 1e-6, "size": 50}
    simple, tight = m.group_privacy(**fifty), m.group_privacy(**fifty, tight=True)
    assert (simple.delta, tight.delta) == pytest.approx((2.782953, 0.278451), abs=1e-6)
    assert simple.epsilon == tight.epsilon == pytest.approx(11.15)
    assert m.group_privacy(epsilon=1, size=3) == Guarantee(3, 0)
    assert m.group_privacy(epsilon=0, delta=1e-3, size=3, tight=True).delta == pytest.approx(3e-3)
    assert m.group_privacy(epsilon=900, delta=1e-3, size=3).delta == math.inf
    single = m.group_privacy(epsilon=2, delta=1e-3, size=1)
    assert (single.epsilon, single.delta) == (2, 1e-3)


# Tests: what a guarantee allows.


@pytest.mark.parametrize(
    ("epsilon", "advantage", "tpr"),
    [
        (0.5, 0.244926, 0.016497),
        (1, 0.462123, 0.027193),
        (2, 0.761597, 0.073901),
        (5, 0.986614, 0.993329),
        (8, 0.999329, 0.999668),
        (10, 0.999909, 0.999955),
    ],
)
def test_worst_case_bounds(epsilon, advantage, tpr):
    assert m.largest_advantage(epsilon=epsilon, delta=1e-5) == pytest.approx(advantage, abs=1e-6)
    assert m.largest_tpr(fpr=0.01, epsilon=epsilon, delta=1e-5) == pytest.approx(tpr, abs=1e-6)


# Refusals.

SOURCE = random.Random(0)
SURE = {"sensitivity": 1, "epsilon": 1, "delta": 0.1}


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("delta", lambda: m.gaussian_sigma(sensitivity=1, epsilon=1, delta=0)),
        ("delta", lambda: m.gdp_epsilon(mu=1, delta=1)),
        ("mu", lambda: m.gdp_tradeoff(0.1, mu=-1)),
        ("epsilon", lambda: m.gdp_delta(mu=1, epsilon=math.inf)),
        ("step", lambda: m.laplace_on_grid(1, sensitivity=1, epsilon=1, source=SOURCE, step=0)),
        ("deltas", lambda: m.basic_composition(epsilons=[1, 2], deltas=[0])),
        ("deltas", lambda: m.basic_composition(epsilons=[])),
        ("delta", lambda: m.basic_composition(epsilons=[1], deltas=[1])),
        ("runs", lambda: m.advanced_composition(epsilon=1, runs=0, delta_slack=1e-5)),
        ("delta_slack", lambda: m.optimal_composition(epsilon=1, runs=2, delta_slack=1)),
        ("runs", lambda: m.optimal_composition(epsilon=1, runs=10**12, delta_slack=1e-5)),
        ("size", lambda: m.group_privacy(epsilon=1, size=0)),
        ("fpr", lambda: m.dp_tradeoff(1.5, epsilon=1)),
        ("tpr", lambda: m.smallest_fpr(tpr=-0.1, epsilon=1)),
        ("prior", lambda: m.posterior(0.0, prior=1)),
        ("log_ratio", lambda: m.posterior([0.0, math.nan], prior=0.5)),
        ("sample_rate", lambda: m.participation_log_ratio(0.5, noise_multiplier=1, sample_rate=-1.0)),
        ("noise_multiplier", lambda: m.participation_log_ratio(0, noise_multiplier=1e-300, sample_rate=1)),
        # Beyond what a float64 holds.
        ("epsilon", lambda: m.gaussian_sigma(sensitivity=1, epsilon=5e-324, delta=1e-5)),
        ("sensitivity", lambda: m.gaussian_sigma(sensitivity=1.7e308, epsilon=1e-9, delta=1e-9)),
        ("epsilon", lambda: m.laplace_on_grid(1, sensitivity=1, epsilon=5e-324, source=SOURCE)),
        ("epsilons", lambda: m.basic_composition(epsilons=[1e308] * 2)),
        ("runs", lambda: m.advanced_composition(epsilon=1, runs=10**308, delta_slack=1e-5)),
    ],
)
def test_invalid_values_are_refused_by_name(name, call):
    with pytest.raises(InvalidParameter, match=rf"\b{name}\b"):
        call()


def test_gdp_delta_at_the_ends():
    assert m.gdp_delta(mu=0, epsilon=1) == 0
    assert m.gdp_epsilon(mu=0, delta=1e-5) == 0
    assert m.gdp_delta(mu=1, epsilon=0) == pytest.approx(2 * stats.norm.cdf(0.5) - 1, rel=1e-14)
    assert m.gdp_delta(mu=1e-3, epsilon=1) == 0  # underflow, not an error
    assert m.gdp_epsilon(mu=1e-6, delta=1e-300) > 0
    # As epsilon falls to 0 the noise stays finite: delta alone then pays for it.
    limit = 1 / (2 * stats.norm.ppf((1 + 1e-3) / 2))
    assert m.gaussian_sigma(sensitivity=1, epsilon=1e-9, delta=1e-3) == pytest.approx(limit, rel=1e-4)


def test_tradeoffs_without_privacy_loss_and_with_all_of_it():
    fpr = np.linspace(0, 1, 11)
    assert m.dp_tradeoff(fpr, epsilon=0) == pytest.approx(1 - fpr)
    assert m.dp_tradeoff(fpr, epsilon=1e-12, delta=0.1) == pytest.approx(np.maximum(0, 0.9 - fpr))
    assert m.gdp_tradeoff(fpr, mu=0) == pytest.approx(1 - fpr)
    assert m.dp_tradeoff(np.array([0, 0.5, 1]), epsilon=1e4, delta=0.1) == pytest.approx([0.9, 0, 0])
    assert m.largest_advantage(epsilon=0, delta=1e-3) == pytest.approx(1e-3)
    assert m.largest_advantage(epsilon=1e4) == 1
