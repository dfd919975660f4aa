"""Published figures, exact distributions and refusals of the mechanisms room."""

import itertools
import math
import random
from fractions import Fraction

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.optimize import linprog

from privhelpers import mechanisms as m
from privhelpers import rng
from privhelpers.errors import InvalidParameter
from privhelpers.mechanisms import floating

EPSILONS = st.floats(0.01, 10)
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


def test_three_gaussians_of_sqrt_3_are_one_of_mu_1():
    mu = math.sqrt(3 * (1 / math.sqrt(3)) ** 2)
    assert m.gdp_delta(mu=mu, epsilon=1) == pytest.approx(0.126936, abs=1e-6)
    assert 1 - m.gdp_tradeoff(0.1, mu=mu) == pytest.approx(0.38914, abs=1e-5)


def test_classic_calibration_and_its_limit():
    assert m.classic_gaussian_sigma(sensitivity=1, epsilon=1, delta=1e-5) == pytest.approx(4.844805, abs=1e-6)
    with pytest.raises(InvalidParameter, match="gaussian_sigma"):
        m.classic_gaussian_sigma(sensitivity=1, epsilon=1.01, delta=1e-5)
    too_little = math.sqrt(2 * math.log(1.25 / 1e-5)) / 10  # the reason for the refusal, at epsilon 10
    assert m.gdp_delta(mu=1 / too_little, epsilon=10) > 1e-5


@given(st.floats(0.001, 1), st.floats(1e-12, 0.99), st.floats(0.1, 100))
def test_classic_calibration_holds_where_it_is_allowed(epsilon, delta, sensitivity):
    sigma = m.classic_gaussian_sigma(sensitivity=sensitivity, epsilon=epsilon, delta=delta)
    assert m.gdp_delta(mu=sensitivity / sigma, epsilon=epsilon) <= delta


@given(EPSILONS, st.floats(1e-12, 0.99), st.floats(0.1, 100))
def test_analytic_calibration_is_tight_and_never_overshoots(epsilon, delta, sensitivity):
    sigma = m.gaussian_sigma(sensitivity=sensitivity, epsilon=epsilon, delta=delta)
    spent = m.gdp_delta(mu=sensitivity / sigma, epsilon=epsilon)
    assert spent <= delta * (1 + 1e-12)
    assert spent == pytest.approx(delta, rel=1e-6)


@given(st.floats(0.01, 20), DELTAS)
def test_gdp_epsilon_inverts_gdp_delta(mu, delta):
    epsilon = m.gdp_epsilon(mu=mu, delta=delta)
    assert m.gdp_delta(mu=mu, epsilon=epsilon) <= delta * (1 + 1e-12)
    if epsilon > 0:
        assert m.gdp_delta(mu=mu, epsilon=epsilon) == pytest.approx(delta, rel=1e-6)
        assert epsilon == pytest.approx(dp_accounting.get_epsilon_gaussian(1 / mu, delta), abs=1e-6)


def test_gdp_delta_at_the_ends():
    assert m.gdp_delta(mu=0, epsilon=1) == 0
    assert m.gdp_epsilon(mu=0, delta=1e-5) == 0
    assert m.gdp_delta(mu=1, epsilon=0) == pytest.approx(2 * stats.norm.cdf(0.5) - 1, rel=1e-14)
    assert m.gdp_delta(mu=1e-3, epsilon=1) == 0  # underflow, not an error
    assert m.gdp_epsilon(mu=1e-6, delta=1e-300) > 0
    # As epsilon falls to 0 the noise stays finite: delta alone then pays for it.
    limit = 1 / (2 * stats.norm.ppf((1 + 1e-3) / 2))
    assert m.gaussian_sigma(sensitivity=1, epsilon=1e-9, delta=1e-3) == pytest.approx(limit, rel=1e-4)


# Continuous mechanisms and randomized response.


def test_noise_has_the_distribution_of_its_name():
    draws = np.zeros(20_000)
    laplace = m.laplace_mechanism(draws, sensitivity=2, epsilon=0.5, generator=rng.make(0, "laplace"))
    assert stats.kstest(laplace, stats.laplace(scale=4).cdf).pvalue > 0.01
    normal = m.gaussian_mechanism(
        draws, sensitivity=1, epsilon=1, delta=1e-5, generator=rng.make(0, "normal")
    )
    assert stats.kstest(normal, stats.norm(scale=3.730632).cdf).pvalue > 0.01
    assert m.laplace_scale(sensitivity=2, epsilon=0.5) == 4


def test_mechanisms_answer_a_number_with_a_number():
    for seed in range(2):
        one = m.laplace_mechanism(10.0, sensitivity=1, epsilon=1e9, generator=rng.make(seed, "one"))
        assert isinstance(one, float)
        assert one == pytest.approx(10, abs=1e-6)


@given(EPSILONS)
def test_randomized_response_spends_exactly_epsilon(epsilon):
    p = m.truth_probability(epsilon=epsilon)
    ratios = (p / (1 - p), (1 - p) / p)
    assert max(ratios) == pytest.approx(math.exp(epsilon), rel=1e-9)
    assert m.truth_probability(epsilon=0) == 0.5


def test_randomized_response_is_unbiased_and_its_error_is_honest():
    truth = np.arange(1000) < 300
    estimates = [
        m.estimate_share(
            m.randomized_response(truth, epsilon=1.0, generator=rng.make(seed, "rr")), epsilon=1.0
        )
        for seed in range(400)
    ]
    shares = np.array([estimate.share for estimate in estimates])
    error = estimates[0].standard_error
    assert abs(shares.mean() - 0.3) < 4 * shares.std() / math.sqrt(shares.size)
    assert 0.8 < shares.std() / error < 1.1  # the error also counts the draw of the people: a little above
    truthful = m.randomized_response(truth, epsilon=50.0, generator=rng.make(0, "rr"))
    assert np.array_equal(truthful, truth)


def test_estimate_may_leave_the_unit_interval():
    assert m.estimate_share([0, 0, 0], epsilon=1).share < 0
    assert m.estimate_share([1, 0], epsilon=1).share == pytest.approx(0.5)


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
    draws = [m.sample_discrete_laplace(scale=scale, source=source) for _ in range(8000)]
    edge = max(1, math.floor(4 * scale))
    assert chi_square(draws, lambda k: m.discrete_laplace_pmf(k, scale=scale), edge) > 0.01


@pytest.mark.parametrize("variance", [Fraction(9), Fraction(1, 2), Fraction(29, 4)])
def test_discrete_gaussian_sampler_has_its_pmf(variance):
    source = rng.plain(0, "discrete gaussian")
    draws = [m.sample_discrete_gaussian(variance=variance, source=source) for _ in range(5000)]
    sigma = math.sqrt(variance)
    assert chi_square(draws, lambda k: m.discrete_gaussian_pmf(k, sigma=sigma), math.ceil(2 * sigma)) > 0.01


@pytest.mark.parametrize("scale", [0.5, 2, 40])
def test_discrete_laplace_is_private_for_a_unit_shift(scale):
    edge = math.ceil(10 * scale)
    k = np.arange(-edge, edge + 1)
    ours, neighbours = (m.discrete_laplace_pmf(k - centre, scale=scale) for centre in (0, 1))
    known = (ours > 0) & (neighbours > 0)
    ratio = ours[known] / neighbours[known]
    assert ratio.max() <= math.exp(1 / scale) * (1 + 1e-9)
    assert ratio.max() == pytest.approx(math.exp(1 / scale))
    assert ours.sum() == pytest.approx(1, abs=3e-3)


@pytest.mark.parametrize("sigma", [0.3, 1, 9.99, 10.01, 50])
def test_discrete_gaussian_pmf_sums_to_one(sigma):
    k = np.arange(-math.ceil(41 * sigma), math.ceil(41 * sigma) + 1)
    assert m.discrete_gaussian_pmf(k, sigma=sigma).sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize(("sigma", "reach", "epsilon"), [(1, 1, 1), (3.7, 1, 0.5), (8, 3, 1), (0.6, 1, 8)])
def test_discrete_gaussian_delta_is_the_hockey_stick_and_grows_with_the_shift(sigma, reach, epsilon):
    k = np.arange(-600, 601)
    sums = []
    for shift in range(1, reach + 1):
        gap = m.discrete_gaussian_pmf(k - shift, sigma=sigma) - math.exp(epsilon) * m.discrete_gaussian_pmf(
            k, sigma=sigma
        )
        sums.append(np.maximum(gap, 0).sum())
    exact = m.discrete_gaussian_delta(sigma=sigma, sensitivity=reach, epsilon=epsilon)
    assert sums[-1] == pytest.approx(exact, rel=1e-9)
    assert sums == sorted(sums)


@settings(max_examples=30, deadline=None)
@given(EPSILONS, st.floats(1e-9, 0.1), st.integers(1, 20))
def test_discrete_calibration_holds_and_wastes_little(epsilon, delta, reach):
    sigma = m.discrete_gaussian_sigma(sensitivity=reach, epsilon=epsilon, delta=delta)
    assert m.discrete_gaussian_delta(sigma=sigma, sensitivity=reach, epsilon=epsilon) <= delta
    continuous = m.gaussian_sigma(sensitivity=reach, epsilon=epsilon, delta=delta)
    assert continuous <= sigma <= 1.2 * continuous + 0.1


def test_grid_mechanisms_stay_on_the_grid_and_near_the_answer():
    source = rng.plain(0, "grid")
    for step in (1, 0.25, 0.1):
        noisy = m.laplace_on_grid(7.3, sensitivity=1, epsilon=5, source=source, step=step)
        assert noisy == float(round(noisy / step) * Fraction(step))
        assert abs(noisy - 7.3) < 10
        noisy = m.gaussian_on_grid(7.3, sensitivity=1, epsilon=5, delta=1e-5, source=source, step=step)
        assert abs(noisy - 7.3) < 10
    assert m.laplace_on_grid(2.5, sensitivity=1, epsilon=200, source=source) == 3  # half up, not half to even
    assert m.laplace_on_grid(np.int64(2**62), sensitivity=1, epsilon=200, source=source, step=0.5) == 2**62
    assert m.laplace_on_grid(3.5, sensitivity=1, epsilon=200, source=source) == 4


def test_rounding_widens_the_noise_to_whole_steps():
    # Sensitivity 1.5 on a grid of 1 is 2 steps: the scale must be 2 / epsilon, not 1.5 / epsilon.
    source = rng.plain(0, "widen")
    draws = [int(m.laplace_on_grid(0, sensitivity=1.5, epsilon=1, source=source)) for _ in range(6000)]
    assert chi_square(draws, lambda k: m.discrete_laplace_pmf(k, scale=2), 8) > 0.01
    assert chi_square(draws, lambda k: m.discrete_laplace_pmf(k, scale=1.5), 8) < 1e-6


# Floating point.


@pytest.mark.parametrize(("scale", "share"), [(1, 0.668), (2, 0.636), (10, 0.626)])
def test_naive_laplace_gives_outputs_that_the_neighbour_cannot(scale, share):
    measured = m.impossible_share(
        count=0, neighbour=1, epsilon=1 / scale, draws=50_000, generator=rng.make(0, "naive")
    )
    assert measured == pytest.approx(share, abs=0.01)


def test_possible_outputs_are_recognised(monkeypatch):
    outputs = m.naive_laplace(3, epsilon=0.5, draws=20_000, generator=rng.make(0, "own"))
    assert m.is_possible(outputs, 3, epsilon=0.5).all()
    assert stats.kstest(outputs, stats.laplace(loc=3, scale=2).cdf).pvalue > 0.01
    near = m.is_possible(outputs, 4, epsilon=0.5)
    monkeypatch.setattr(floating, "NEIGHBOURHOOD", 40)
    assert np.array_equal(near, m.is_possible(outputs, 4, epsilon=0.5))  # the search is wide enough


# Sensitivity.


@pytest.mark.parametrize(
    ("query", "replacement", "add_remove"),
    [
        ("sum", 99, 100),
        ("mean", 99 / 12, None),
        ("max", 99, None),
        ("median", 99, None),
        ("count", 1, 1),
        ("size", 0, 1),
    ],
)
def test_sensitivity_of_values_1_to_100(query, replacement, add_remove):
    table = {(row.query, row.relation): row.value for row in m.sensitivity_table(low=1, high=100, n=12)}
    assert table[query, "replacement"] == replacement
    assert table[query, "add/remove"] == add_remove
    assert len(table) == 2 * len(m.QUERIES)


def test_sensitivity_of_a_clipped_sum_depends_on_the_relation():
    sums = [m.global_sensitivity("sum", relation=r, low=-3, high=3).value for r in m.RELATIONS]
    assert sums == [3, 6]
    assert m.global_sensitivity("mean", relation="replacement", low=0, high=1).value is None


def test_sensitivity_agrees_with_every_pair_of_small_tables():
    universe, n = range(2, 6), 3
    answers = {
        "size": len,
        "count": lambda table: sum(value > 3 for value in table),
        "sum": sum,
        "mean": np.mean,
        "max": max,
        "median": lambda table: sorted(table)[(len(table) - 1) // 2],
    }
    tables = list(itertools.product(universe, repeat=n))
    for query, answer in answers.items():
        moved = max(abs(answer(t) - answer((v, *t[1:]))) for t in tables for v in universe)
        expected = m.global_sensitivity(query, relation="replacement", low=2, high=5, n=n).value
        assert moved == pytest.approx(expected)
    for query in ("size", "count", "sum"):
        moved = max(abs(answers[query](t) - answers[query](t[1:])) for t in tables)
        assert moved == m.global_sensitivity(query, relation="add/remove", low=2, high=5).value


# Composition.


def test_nine_runs_of_epsilon_2():
    nine = {"epsilon": 2.0, "runs": 9, "delta_slack": 1e-5}
    assert m.basic_composition(epsilons=[2.0] * 9) == m.Guarantee(18, 0)
    assert m.advanced_composition(**nine).epsilon == pytest.approx(143.794165, abs=1e-5)
    assert m.optimal_composition(**nine).epsilon == pytest.approx(17.999969, abs=1e-6)
    assert m.optimal_composition(**nine).delta == pytest.approx(1e-5)


@given(st.floats(0.001, 3), st.integers(1, 200), st.floats(1e-9, 0.1), st.floats(0, 1e-4))
def test_optimal_composition_is_never_beaten(epsilon, runs, slack, delta):
    one = {"epsilon": epsilon, "runs": runs, "delta_slack": slack, "delta": delta}
    best, advanced = m.optimal_composition(**one), m.advanced_composition(**one)
    basic = m.basic_composition(epsilons=[epsilon] * runs, deltas=[delta] * runs)
    assert best.epsilon <= min(advanced.epsilon, basic.epsilon) * (1 + 1e-9)
    assert best.delta <= advanced.delta * (1 + 1e-9)


@pytest.mark.parametrize(("epsilon", "delta", "runs"), [(0.1, 0.0, 50), (0.5, 1e-6, 20), (1.0, 0.0, 1)])
def test_optimal_composition_is_the_privacy_loss_distribution(epsilon, delta, runs):
    answer = m.optimal_composition(epsilon=epsilon, delta=delta, runs=runs, delta_slack=1e-5)
    one = pld.privacy_loss_distribution.from_privacy_parameters(
        pld.common.DifferentialPrivacyParameters(epsilon, delta), value_discretization_interval=1e-3
    )
    composed = one.self_compose(runs).get_delta_for_epsilon(answer.epsilon)
    assert composed == pytest.approx(answer.delta, rel=1e-4)


def test_optimal_composition_of_many_runs():
    answer = m.optimal_composition(epsilon=1e-3, runs=10**6, delta_slack=1e-5)
    # A million small releases are one Gaussian of mu = epsilon sqrt(runs), by the central limit theorem.
    assert answer.epsilon == pytest.approx(m.gdp_epsilon(mu=1.0, delta=1e-5), rel=1e-2)
    assert m.optimal_composition(epsilon=0, runs=5, delta_slack=1e-5).epsilon == 0


def test_group_privacy_carries_delta():
    fifty = {"epsilon": 0.223, "delta": 1e-6, "size": 50}
    simple, tight = m.group_privacy(**fifty), m.group_privacy(**fifty, tight=True)
    assert (simple.delta, tight.delta) == pytest.approx((2.782953, 0.278451), abs=1e-6)
    assert simple.epsilon == tight.epsilon == pytest.approx(11.15)
    assert simple.vacuous and not tight.vacuous
    assert m.group_privacy(epsilon=1, size=3) == m.Guarantee(3, 0)
    assert m.group_privacy(epsilon=0, delta=1e-3, size=3, tight=True).delta == pytest.approx(3e-3)
    assert m.group_privacy(epsilon=900, delta=1e-3, size=3).delta == math.inf
    one = m.group_privacy(epsilon=2, delta=1e-3, size=1)
    assert (one.epsilon, one.delta) == (2, 1e-3)


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
    (row,) = m.what_epsilon_buys(epsilons=[epsilon], delta=1e-5, fpr=0.01, prior=0.1)
    assert (row.largest_advantage, row.largest_tpr) == pytest.approx((advantage, tpr), abs=1e-6)
    assert row.largest_ppv == pytest.approx(0.1 * tpr / (0.1 * tpr + 0.9 * 0.01), rel=1e-4)


@given(EPSILONS, st.floats(0, 0.5))
def test_largest_advantage_is_the_widest_gap_of_the_region(epsilon, delta):
    corner = (1 - delta) / (1 + math.exp(epsilon))
    fpr = np.append(np.linspace(0, 1, 101), corner)
    gaps = m.largest_tpr(fpr=fpr, epsilon=epsilon, delta=delta) - fpr
    closed = (math.exp(epsilon) - 1 + 2 * delta) / (math.exp(epsilon) + 1)
    assert m.largest_advantage(epsilon=epsilon, delta=delta) == pytest.approx(closed, rel=1e-9)
    assert gaps.max() == pytest.approx(closed, rel=1e-9)


@given(st.floats(0.1, 3), st.floats(1e-6, 0.3), st.floats(0, 1))
def test_gaussian_curve_lies_above_each_of_its_epsilon_delta_bounds(mu, delta, fpr):
    epsilon = m.gdp_epsilon(mu=mu, delta=delta)
    assert m.gdp_tradeoff(fpr, mu=mu) >= m.dp_tradeoff(fpr, epsilon=epsilon, delta=delta) - 1e-9


def test_price_of_catching_every_member():
    floors = [(1, 1.0, 0.99999), (0.818964, 0.5, 0.701512), (0.818964, 1.0, 0.507882)]
    for tpr, epsilon, floor in floors:
        assert m.smallest_fpr(tpr=tpr, epsilon=epsilon, delta=1e-5) == pytest.approx(floor, abs=1e-5)


def test_tradeoffs_without_privacy_loss_and_with_all_of_it():
    fpr = np.linspace(0, 1, 11)
    assert m.dp_tradeoff(fpr, epsilon=0) == pytest.approx(1 - fpr)
    assert m.dp_tradeoff(fpr, epsilon=1e-12, delta=0.1) == pytest.approx(np.maximum(0, 0.9 - fpr))
    assert m.gdp_tradeoff(fpr, mu=0) == pytest.approx(1 - fpr)
    assert m.dp_tradeoff(np.array([0, 0.5, 1]), epsilon=1e4, delta=0.1) == pytest.approx([0.9, 0, 0])
    assert m.largest_advantage(epsilon=0, delta=1e-3) == pytest.approx(1e-3)
    assert m.largest_advantage(epsilon=1e4) == 1


def test_positive_predictive_value():
    assert m.positive_predictive_value(tpr=0.9, fpr=0.1, prior=0.5) == pytest.approx(0.9)
    assert m.positive_predictive_value(tpr=0.3, fpr=0.3, prior=0.2) == pytest.approx(0.2)  # no signal
    with pytest.raises(InvalidParameter, match="calls"):
        m.positive_predictive_value(tpr=0, fpr=0, prior=0.2)


# Neyman-Pearson.


def test_neyman_pearson_between_two_gaussians():
    test = m.gaussian_test(mean_null=0, mean_alternative=1, sd=1, fpr=0.05)
    assert (test.threshold, test.cut, test.fnr) == pytest.approx((-1.144854, 1.644854, 0.740489), abs=1e-6)
    mirrored = m.gaussian_test(mean_null=5, mean_alternative=1, sd=4, fpr=0.05)
    assert (mirrored.threshold, mirrored.fnr) == pytest.approx((test.threshold, test.fnr))
    assert mirrored.cut == pytest.approx(5 - 4 * 1.644854, abs=1e-5)
    assert test.fnr == pytest.approx(m.gdp_tradeoff(0.05, mu=1))


def masses(size):
    return st.lists(st.integers(0, 6), min_size=size, max_size=size).filter(any)


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 6).flatmap(lambda size: st.tuples(masses(size), masses(size))), st.floats(0, 1))
def test_randomized_test_is_the_best_one(pair, fpr):
    null, alternative = (np.array(row) / sum(row) for row in pair)
    test = m.randomized_test(null, alternative, fpr=fpr)
    best = linprog(-alternative, A_ub=[null], b_ub=[fpr], bounds=[(0, 1)] * null.size)
    assert test.fpr <= fpr + 1e-12
    assert 1 - test.fnr == pytest.approx(-best.fun, abs=1e-7)


def test_randomized_test_tosses_a_coin_on_the_atom():
    test = m.randomized_test([0.5, 0.5], [0.25, 0.75], fpr=0.05)
    assert (test.coin, test.fpr, test.fnr) == pytest.approx((0.1, 0.05, 0.925))
    assert test.threshold == pytest.approx(math.log(2 / 3))
    tied = m.randomized_test([0.1, 0.2, 0.7], [0.2, 0.4, 0.4], fpr=0.15)
    assert tied.rejects == pytest.approx((0.5, 0.5, 0))  # one atom, one coin
    assert m.randomized_test([1.0, 0.0], [0.5, 0.5], fpr=0).rejects == (0, 1)  # impossible under the null
    assert m.randomized_test([0.5, 0.5], [0.5, 0.5], fpr=1).rejects == (1, 1)


def test_randomized_response_touches_the_pure_tradeoff():
    p = m.truth_probability(epsilon=1.3)
    for fpr in (0.0, 0.1, 1 - p, 0.6, 1.0):
        test = m.randomized_test([p, 1 - p], [1 - p, p], fpr=fpr)
        assert test.fnr == pytest.approx(m.dp_tradeoff(fpr, epsilon=1.3), abs=1e-12)


# Refusals.

SOURCE = random.Random(0)
GENERATOR = np.random.default_rng(0)


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("sensitivity", lambda: m.laplace_scale(sensitivity=None, epsilon=1)),
        ("epsilon", lambda: m.laplace_scale(sensitivity=1, epsilon=0)),
        ("epsilon", lambda: m.laplace_mechanism(1, sensitivity=1, epsilon=math.nan, generator=GENERATOR)),
        ("delta", lambda: m.gaussian_sigma(sensitivity=1, epsilon=1, delta=0)),
        ("delta", lambda: m.gdp_epsilon(mu=1, delta=1)),
        ("mu", lambda: m.gdp_tradeoff(0.1, mu=-1)),
        ("epsilon", lambda: m.gdp_delta(mu=1, epsilon=math.inf)),
        ("answers", lambda: m.randomized_response([0, 2], epsilon=1, generator=GENERATOR)),
        ("reports", lambda: m.estimate_share([], epsilon=1)),
        ("epsilon", lambda: m.estimate_share([0, 1], epsilon=0)),
        ("scale", lambda: m.sample_discrete_laplace(scale=Fraction(0), source=SOURCE)),
        ("variance", lambda: m.sample_discrete_gaussian(variance=math.inf, source=SOURCE)),
        ("step", lambda: m.laplace_on_grid(1, sensitivity=1, epsilon=1, source=SOURCE, step=0)),
        ("answer", lambda: m.laplace_on_grid(math.nan, sensitivity=1, epsilon=1, source=SOURCE)),
        ("scale", lambda: m.sample_discrete_laplace(scale="2", source=SOURCE)),
        ("low", lambda: m.global_sensitivity("sum", relation="replacement", low=None, high=1)),
        ("null", lambda: m.randomized_test(["a"], [1.0], fpr=0.05)),
        ("sigma", lambda: m.discrete_gaussian_delta(sigma=1e7, sensitivity=1, epsilon=1)),
        ("sensitivity", lambda: m.discrete_gaussian_sigma(sensitivity=1.5, epsilon=1, delta=1e-5)),
        ("neighbour", lambda: impossible(neighbour=0)),
        ("draws", lambda: impossible(draws=0)),
        ("query", lambda: m.global_sensitivity("mode", relation="replacement", low=0, high=1)),
        ("relation", lambda: m.global_sensitivity("sum", relation="bounded", low=0, high=1)),
        ("low", lambda: m.global_sensitivity("sum", relation="replacement", low=1, high=1)),
        ("n", lambda: m.sensitivity_table(low=0, high=1, n=0)),
        ("high", lambda: m.sensitivity_table(low=0, high=math.inf)),
        ("deltas", lambda: m.basic_composition(epsilons=[1, 2], deltas=[0])),
        ("epsilons", lambda: m.basic_composition(epsilons=[])),
        ("delta", lambda: m.basic_composition(epsilons=[1], deltas=[1])),
        ("runs", lambda: m.advanced_composition(epsilon=1, runs=0, delta_slack=1e-5)),
        ("delta_slack", lambda: m.optimal_composition(epsilon=1, runs=2, delta_slack=1)),
        ("size", lambda: m.group_privacy(epsilon=1, size=0)),
        ("fpr", lambda: m.dp_tradeoff(1.5, epsilon=1)),
        ("fpr", lambda: m.dp_tradeoff([0.1, math.nan], epsilon=1)),
        ("delta", lambda: m.dp_tradeoff(0.5, epsilon=1, delta=1)),
        ("tpr", lambda: m.smallest_fpr(tpr=-0.1, epsilon=1)),
        ("prior", lambda: m.positive_predictive_value(tpr=0.5, fpr=0.1, prior=0)),
        ("fpr", lambda: m.what_epsilon_buys(epsilons=[1], delta=0, fpr=0)),
        ("sd", lambda: m.gaussian_test(mean_null=0, mean_alternative=1, sd=0, fpr=0.05)),
        ("mean_alternative", lambda: m.gaussian_test(mean_null=1, mean_alternative=1, sd=1, fpr=0.05)),
        ("null", lambda: m.randomized_test([0.5, 0.6], [0.5, 0.5], fpr=0.05)),
        ("alternative", lambda: m.randomized_test([0.5, 0.5], [1.0], fpr=0.05)),
        ("fpr", lambda: m.randomized_test([0.5, 0.5], [0.5, 0.5], fpr=2)),
    ],
)
def test_bad_values_are_refused_by_name(name, call):
    with pytest.raises(InvalidParameter, match=rf"\b{name}\b"):
        call()


def impossible(**changes):
    given_values = {"count": 0, "neighbour": 1, "epsilon": 1.0, "draws": 10, "generator": GENERATOR}
    return m.impossible_share(**{**given_values, **changes})


def test_privacy_parameters_go_by_name():
    for call in (m.laplace_scale, m.gaussian_sigma, m.gdp_delta, m.largest_advantage, m.group_privacy):
        with pytest.raises(TypeError):
            call(1, 1)
