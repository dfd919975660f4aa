"""Rényi accounting by hand against quadrature, published orders, and a second library."""

import math

import dp_accounting
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from privhelpers import accounting
from privhelpers.accounting import _moments, _printed


def by_quadrature(order, sigma, q):
    """Trapezoid rule on log E over N(0, sigma^2) of (1 - q + q e^((2z - 1) / (2 sigma^2)))^order."""
    z, step = np.linspace(-14 * sigma, order + 14 * sigma, 40_001, retstep=True)
    ratio = np.logaddexp(math.log1p(-q), math.log(q) + (2 * z - 1) / (2 * sigma**2))
    density = -(z**2) / (2 * sigma**2) - math.log(sigma * math.sqrt(2 * math.pi))
    return (logsumexp(order * ratio + density) + math.log(step)) / (order - 1)


@settings(max_examples=25, deadline=None)
@given(order=st.floats(1.05, 60), sigma=st.floats(0.3, 8), q=st.floats(1e-3, 0.99))
@example(order=1.9999999999999991, sigma=1.0, q=0.5)
@example(order=2.0000000000000004, sigma=1.0, q=0.5)
@example(order=49.99999999999999, sigma=2.0, q=0.1)
def test_every_order_agrees_with_quadrature(order, sigma, q):
    ours = accounting.rdp(noise_multiplier=sigma, sample_rate=q, steps=1, orders=[order, math.ceil(order)])
    expected = [by_quadrature(order, sigma, q), by_quadrature(math.ceil(order), sigma, q)]
    assert ours == pytest.approx(expected, rel=1e-6, abs=1e-11)
    assert np.all(ours >= np.array(expected) * (1 - 1e-6) - 1e-11)


def test_published_divergences_by_order():
    """q = .01, sigma = 2.5, T = 50, in TensorFlow Privacy's and dp-accounting's tests."""
    orders = [1.5, 2.5, 5, 50, 100]
    ours = accounting.rdp(noise_multiplier=2.5, sample_rate=0.01, steps=50, orders=orders)
    assert ours == pytest.approx(
        [6.5007e-4, 1.08548710e-3, 2.18075656e-3, 2.38460375e-2, 167.416308], rel=1e-4
    )


@pytest.mark.parametrize("sigma", [1e5, 1e7, 5e7, 1e8, 1e20, 1e100])
@pytest.mark.parametrize("q", [0.1, 0.5, 0.9])
def test_noise_beyond_rounding_leaves_every_order_above_its_leading_term(q, sigma):
    """The terms of a fractional order cancel to less than they are rounded by."""
    orders = np.array(accounting.RDP_ORDERS)
    ours = accounting.rdp(noise_multiplier=sigma, sample_rate=q, steps=1, orders=orders)
    leading = q**2 * orders / (2 * sigma**2)
    assert np.all(ours >= leading * (1 - 1e-9))
    whole = (orders == np.floor(orders)) & (orders < 20)
    assert ours[whole] == pytest.approx(leading[whole], rel=1e-7, abs=0)


def test_conversion():
    orders = list(range(2, 33))
    pure = accounting.rdp_to_epsilon(orders=orders, rdp=[1.1] * 31, delta=1e-5)
    assert (pure.epsilon, pure.order) == (pytest.approx(1.32783806176, abs=1e-11), 32)
    classic = accounting.rdp_to_epsilon(orders=orders, rdp=[1.1] * 31, delta=1e-5, conversion="classic")
    assert classic.epsilon == pytest.approx(1.1 + math.log(1e5) / 31)
    nothing = accounting.rdp_to_epsilon(orders=[2.0], rdp=[1e-12], delta=1e-5)
    assert nothing.epsilon == 0.0


@settings(max_examples=20)
@given(sigma=st.floats(0.4, 10), delta=st.floats(1e-9, 1e-2))
def test_the_conversion_is_a_bound_for_the_gaussian(sigma, delta):
    exact = dp_accounting.get_epsilon_gaussian(sigma, delta)
    curve = accounting.rdp(noise_multiplier=sigma, sample_rate=1.0, steps=1)
    bound = accounting.rdp_to_epsilon(orders=accounting.RDP_ORDERS, rdp=curve, delta=delta)
    assert exact <= bound.epsilon * (1 + 1e-9)


@pytest.mark.parametrize("order", [1.01, 1.5, 3.7, 12.25, 100.5])
def test_fractional_orders_lie_between_whole_ones(order):
    below, above = max(1.0001, math.floor(order)), math.ceil(order)
    curve = accounting.rdp(noise_multiplier=0.9, sample_rate=0.3, steps=1, orders=[below, order, above])
    assert curve[0] <= curve[1] <= curve[2]


def test_rounding_is_counted_for_every_part_of_a_term():
    """The logarithm of a term is a sum, and each of its parts is rounded by as much as it is large."""
    series = _moments._Fractional(np.array([1.5, 10.5, 40.5]), 1e-40)
    logs = series.log_q, series.log_rest
    for place, (of_i, of_j) in ((slice(series.terms), logs), (slice(series.terms, None), logs[::-1])):
        parts = np.abs(series.i * of_i) + np.abs(series.j * of_j)
        assert np.all(parts <= series.made_of[:, place])


def test_limits():
    orders = np.array([1.5, 2, 8, 64.0])
    gaussian = accounting.rdp(noise_multiplier=2.0, sample_rate=1.0, steps=3, orders=orders)
    assert gaussian == pytest.approx(3 * orders / 8)
    nearly = accounting.rdp(noise_multiplier=2.0, sample_rate=1 - 1e-9, steps=3, orders=orders)
    assert nearly == pytest.approx(gaussian, rel=1e-6)
    rare = accounting.rdp(noise_multiplier=2.0, sample_rate=1e-9, steps=1, orders=[2])
    assert rare == pytest.approx(1e-18 * math.expm1(0.25), rel=1e-6)  # exact where 1 + x would lose x
    least = accounting.rdp(noise_multiplier=1e-100, sample_rate=1.0, steps=1, orders=[2])
    assert least == pytest.approx([1e200])


def test_the_reports_formula_explodes_past_a_threshold():
    ratios = {
        (0.5, 2): 13.4, (0.7, 2): 3.3, (1.0, 2): 1.72, (2.0, 2): 1.14, (4.21, 2): 1.03,
        (1.0, 22): 61246, (2.2829, 64): 2778,
    }  # fmt: skip
    q = 4 / 1500
    for (sigma, order), expected in ratios.items():
        exact = accounting.rdp(noise_multiplier=sigma, sample_rate=q, steps=1, orders=[order])[0]
        assert exact / (q**2 * order / (2 * sigma**2)) == pytest.approx(expected, rel=1e-2)
    shortcut = _printed._printed_rdp(noise_multiplier=1.0, sample_rate=q, steps=1)
    place = accounting.PRINTED_ORDERS.index(22)
    assert shortcut[place] == pytest.approx(q**2 * 11)
