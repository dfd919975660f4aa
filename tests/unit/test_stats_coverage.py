"""Do intervals hold the truth? Exactly for single trials, over simulated data sets for clusters."""

import numpy as np
import pytest
from scipy.stats import binom

from privhelpers import stats
from privhelpers.errors import InvalidParameter
from privhelpers.stats import coverage, rehearsal

PATIENTS, ATTEMPTS, RATE, ICC = 200, 28, 0.2, 0.3
ENDS = {
    "clustered": coverage.bootstrap_ends,
    "plain": coverage.plain_bootstrap_ends,
    "t": coverage.cluster_t_ends,
    "exact": coverage.exact_ends,
}


def shares(data_sets, seed, patients=PATIENTS, rate=RATE, icc=ICC):
    hits = coverage.simulated_hits(data_sets, patients, ATTEMPTS, rate=rate, icc=icc, seed=seed)
    return {name: coverage.share_holding(ends(hits, ATTEMPTS), rate) for name, ends in ENDS.items()}


def test_the_clustered_bootstrap_covers_and_the_plain_one_does_not():
    """500 data sets of 200 patients with 28 attempts each that correlate by 0.3: a design effect of 9.1."""
    found = shares(500, seed=0)
    assert 0.93 <= found["clustered"] <= 0.97
    assert 0.93 <= found["t"] <= 0.97 and 0.93 <= found["exact"] <= 0.98
    assert found["plain"] < 0.6


def test_coverage_over_so_many_data_sets_that_chance_hardly_matters():
    found = shares(6000, seed=1)
    # One standard error of a share of 0.95 is 0.0028 here.
    assert found["clustered"] == pytest.approx(0.947, abs=0.012)
    assert found["plain"] == pytest.approx(0.48, abs=0.04)


@pytest.mark.parametrize("icc", [0.05, 0.3, 0.6])
def test_coverage_over_strengths_of_clustering(icc):
    found = shares(1500, seed=2, icc=icc)
    assert found["clustered"] == pytest.approx(0.945, abs=0.025)
    assert found["plain"] < 0.85


def test_few_patients_and_rare_events_break_the_bootstrap_not_the_exact_interval():
    found = shares(1500, seed=3, patients=10, rate=0.02)
    assert found["clustered"] < 0.7 and found["exact"] > 0.95


@pytest.mark.parametrize("seed", range(3))
def test_the_study_analyzes_each_data_set_as_the_helpers_do(seed):
    hits = coverage.simulated_hits(2, 25, 12, rate=0.3, icc=0.4, seed=seed)
    owners = np.repeat(np.arange(25), 12)
    many = {name: ends(hits, 12) for name, ends in ENDS.items()}
    for row, counts in enumerate(hits):
        single = (np.arange(12) < counts[:, None]).ravel()
        one = {
            "clustered": stats.clustered_bootstrap(np.mean, owners, single),
            "t": stats.clustered_mean(single, owners).interval(),
            "exact": stats.clustered_proportion(single, owners),
        }
        for name, interval in one.items():
            ends = [many[name][0][row], many[name][1][row]]
            assert [interval.low, interval.high] == pytest.approx(ends, abs=1e-12)


def test_no_hit_and_only_hits_are_studied_as_the_helper_does_it():
    hits = np.array([[0, 0, 0, 0], [5, 5, 5, 5]])
    low, high = coverage.exact_ends(hits, 5)
    owners = np.repeat(np.arange(4), 5)
    for row, value in enumerate((0.0, 1.0)):
        one = stats.clustered_proportion(np.full(20, value), owners)
        assert (one.low, one.high) == pytest.approx((low[row], high[row]), abs=1e-12)


def test_the_plain_bootstrap_is_one_of_single_attempts():
    hits = coverage.simulated_hits(1, 40, 10, rate=0.3, icc=0.2, seed=5)
    single = (np.arange(10) < hits[0][:, None]).ravel()
    drawn = stats.clustered_bootstrap(np.mean, np.arange(400), single, draws=4000)
    low, high = coverage.plain_bootstrap_ends(hits, 10)
    assert (drawn.low, drawn.high) == pytest.approx((low[0], high[0]), abs=0.006)


def test_simulated_hits_have_the_rate_and_the_correlation_that_were_asked_for():
    hits = coverage.simulated_hits(1, 4000, 8, rate=0.3, icc=0.25, seed=0)[0]
    single = (np.arange(8) < hits[:, None]).ravel()
    owners = np.repeat(np.arange(4000), 8)
    assert single.mean() == pytest.approx(0.3, abs=0.02)
    assert stats.intraclass_correlation(single, owners) == pytest.approx(0.25, abs=0.03)
    alone = coverage.simulated_hits(1, 4000, 8, rate=0.3, icc=0.0, seed=0)[0]
    assert alone.var() == pytest.approx(8 * 0.3 * 0.7, rel=0.1)


# Exact coverage.


def test_exact_coverage_by_hand():
    """Three trials: Wald's interval of 0 is [0, 0] and of 3 is [1, 1], so only 1 and 2 can hold 0.5."""
    held = [k for k in range(4) if 0.5 in stats.wald(k, 3)]
    by_hand = sum(binom.pmf(k, 3, 0.5) for k in held)
    assert held == [1, 2]
    assert coverage.binomial_coverage(stats.wald, [0.5], 3)[0] == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize("trials", [7, 50])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_clopper_pearson_never_covers_less_than_it_says(trials, level):
    rates = np.linspace(0, 1, 401)
    assert (coverage.binomial_coverage(stats.clopper_pearson, rates, trials, level) >= level - 1e-9).all()


def test_wilson_covers_on_average_and_wald_does_not():
    rates = np.linspace(0.005, 0.2, 200)
    wilson, wald = (coverage.binomial_coverage(make, rates, 50).mean() for make in (stats.wilson, stats.wald))
    assert wilson == pytest.approx(0.95, abs=0.015) and wald < 0.88


# Scores.


def test_scores_have_the_area_that_was_asked_for():
    arms = rehearsal.simulated_attack(3000, 2, icc=0.5, area=0.7, seed=0)
    assert stats.auc(arms[0], arms[2]) == pytest.approx(0.7, abs=0.02)
    assert stats.intraclass_correlation(arms[0], arms[1]) == pytest.approx(0.5, abs=0.05)


def test_the_band_of_the_advantage_covers_where_the_basic_bootstrap_does_not():
    found = rehearsal.score_coverage(120, area=0.58, patients=60, notes=3, icc=0.6, draws=150, seed=0)
    # Binomial(120, 0.95) falls under 106 with probability 0.003.
    assert found["advantage, band"] >= 106 / 120
    assert found["advantage, basic"] < found["advantage, band"]
    assert found["AUC, patients"] >= 106 / 120 and found["AUC, bootstrap"] >= 105 / 120
    assert found["AUC, notes"] < 0.9


def test_the_permutation_test_keeps_its_level_and_the_plain_one_does_not():
    world = {"patients": 25, "attempts": 8, "rate": 0.2, "icc": 0.4}
    p_values = rehearsal.null_p_values(150, **world, draws=200, seed=0)
    # Binomial(150, 0.05) exceeds 16 with probability 0.002.
    assert np.sum(p_values["patients dealt"] <= 0.05) <= 16
    assert np.mean(p_values["attempts dealt"] <= 0.05) > 0.15


def test_planned_sizes_reach_their_power():
    size = stats.patients_for_auc(0.6, per_patient=3, icc=0.5)
    found = rehearsal.share_found(400, 0.6, patients=size, notes=3, icc=0.5, seed=0)
    assert found == pytest.approx(0.8, abs=0.08)
    nothing = rehearsal.share_found(400, 0.5, patients=size, notes=3, icc=0.5, seed=0)
    assert nothing < 0.05 + 3.5 * 0.011


def test_corrections_of_many_batches_are_those_of_the_library():
    p_values = np.random.default_rng(0).random((6, 7)) ** 3
    for method in ("none", "bonferroni", "holm"):
        by_row = [list(stats.adjust(dict(enumerate(row)), method).values()) for row in p_values]
        np.testing.assert_allclose(rehearsal._adjusted(p_values, method), by_row, rtol=1e-12)


def test_holm_keeps_the_family_wise_error_and_finds_more_than_bonferroni():
    effects = np.r_[np.full(5, 3.0), np.zeros(5)]
    found = {
        how: rehearsal.many_tests(3000, effects=effects, method=how, seed=0)
        for how in ("none", "bonferroni", "holm")
    }
    assert found["none"][1] > 0.2
    assert found["bonferroni"][1] <= found["holm"][1] <= 0.05 + 4 * 0.004
    assert found["bonferroni"][0] < found["holm"][0] < found["none"][0]


@pytest.mark.parametrize(
    "call",
    [
        lambda: coverage.simulated_hits(0, 2, 1, rate=0.5, icc=0.1, seed=0),
        lambda: coverage.simulated_hits(2, 1, 1, rate=0.5, icc=0.1, seed=0),
        lambda: coverage.simulated_hits(2, 2, 1, rate=1.0, icc=0.1, seed=0),
        lambda: coverage.simulated_hits(2, 2, 1, rate=0.5, icc=1.0, seed=0),
        lambda: coverage.simulated_hits(2, 2, 1, rate=0.5, icc=0.1, seed=-1),
        lambda: coverage.bootstrap_ends(np.zeros((2, 1)), 3),
        lambda: coverage.exact_ends(np.full((2, 3), 4), 3),
        lambda: coverage.cluster_t_ends(np.zeros(3), 3),
        lambda: coverage.binomial_coverage(stats.wilson, [1.5], 10),
        lambda: coverage.binomial_coverage(stats.wilson, [0.5], 0),
        lambda: rehearsal.simulated_attack(3, 2, icc=0.5, area=1.0, seed=0),
        lambda: rehearsal.many_tests(3, effects=[0.0], method="sidak", seed=0),
        lambda: rehearsal.share_found(0, 0.6, patients=3, notes=2, icc=0.1),
    ],
)
def test_bad_studies_are_refused(call):
    with pytest.raises(InvalidParameter):
        call()
