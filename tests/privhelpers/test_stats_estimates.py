"""Estimates with clustered standard errors, permutations, corrections, equivalence, power."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats as scipy_stats
from scipy.stats import binom, mannwhitneyu, norm
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.proportion import proportion_confint, proportion_effectsize
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW, ttost_ind, ttost_paired

from privhelpers import rng, stats


def groups(count, seed, largest=4, shift=0.0):
    generator = np.random.default_rng(seed)
    owners = np.repeat(np.arange(count), generator.integers(1, largest + 1, count))
    return shift + generator.normal(size=count)[owners] + generator.normal(size=owners.size), owners


def test_what_statsmodels_computes_is_the_same():
    generator = np.random.default_rng(7)
    methods = {"wilson": stats.wilson, "normal": stats.wald, "beta": stats.clopper_pearson}
    for trials in (1, 3, 40, 5000):
        for successes in {0, 1, trials // 3, trials}:
            for level in (0.8, 0.95, 0.999):
                for name, ours in methods.items():
                    ends = proportion_confint(successes, trials, 1 - level, method=name)
                    found = ours(successes, trials, level)
                    assert [found.low, found.high] == pytest.approx(ends, abs=1e-12)
            h = stats.two_proportion(successes, trials, 1, 3).cohens_h
            assert h == pytest.approx(proportion_effectsize(successes / trials, 1 / 3))
    one, two = generator.normal(size=9), generator.normal(1, 3, size=30)
    ends = CompareMeans(DescrStatsW(one), DescrStatsW(two)).tconfint_diff(alpha=0.1, usevar="unequal")
    found = stats.mean_difference(one, two, level=0.9)
    assert [found.low, found.high] == pytest.approx(ends)
    values = [*generator.uniform(0, 0.2, size=6), 0.01, 0.01, 0.0, 1.0]
    adjusted = stats.adjust(dict(enumerate(values)))
    assert list(adjusted.values()) == pytest.approx(multipletests(values, method="holm")[1])


# Means and differences.


def test_alone_in_its_cluster_every_value_counts_as_in_a_t_test():
    a, b = groups(30, 0)[0], groups(20, 1, shift=0.7)[0]
    estimate = stats.clustered_mean(a, np.arange(a.size))
    low, high = scipy_stats.t.interval(0.95, a.size - 1, a.mean(), a.std(ddof=1) / math.sqrt(a.size))
    assert (estimate.interval().low, estimate.interval().high) == pytest.approx((low, high), rel=1e-12)
    labels = [f"a{k}" for k in range(a.size)], [f"b{k}" for k in range(b.size)]
    gap = stats.clustered_difference(a, labels[0], b, labels[1])
    welch = scipy_stats.ttest_ind(a, b, equal_var=False)
    assert gap.p_value() == pytest.approx(welch.pvalue, rel=1e-9)
    assert gap.interval().low == pytest.approx(stats.mean_difference(a, b).low, rel=1e-9)


def test_weights_count_as_repeats():
    values, owners = groups(9, 3)
    weights = np.random.default_rng(3).integers(1, 4, values.size)
    repeated = stats.clustered_mean(np.repeat(values, weights), np.repeat(owners, weights))
    assert stats.clustered_mean(values, owners, weights=weights) == repeated
    others = [f"other {owner}" for owner in owners]
    gap = stats.clustered_difference(values, owners, values + 1, others, weights_a=weights)
    assert gap.value == pytest.approx(repeated.value - values.mean() - 1, rel=1e-12)
    plain = stats.clustered_mean(values, owners)
    assert gap.standard_error == pytest.approx(math.hypot(repeated.standard_error, plain.standard_error))


def test_nothing_varies():
    still = stats.clustered_mean([1, 1, 1, 1], [0, 0, 1, 1])
    assert (still.standard_error, still.p_value(1.0), still.p_value(0.0)) == (0, 1, 1)
    assert "nothing varied" in still.interval().method
    assert {stats.tost(still, margin=0.1, null=null).verdict for null in (0.0, 1.0)} == {"undecided"}


@pytest.mark.parametrize(
    ("values", "size"), [([0.1] * 60, 3), ([0, 0, 1] * 20, 3), ([0.3 - 0.1, 0.8 - 0.6] * 30, 1)]
)
def test_rounding_is_no_spread(values, size):
    still = stats.clustered_mean(values, np.arange(60) // size)
    assert (still.standard_error, still.p_value()) == (0, 1)


def test_few_pairs_that_all_differ_alike_are_no_finding():
    """Two coins each of K patients: with 2, one outcome in eight has both differences alike and not 0."""
    for patients in (2, 3):
        coins = np.array(list(itertools.product((0, 1), repeat=2 * patients)))
        found = [
            stats.paired_difference(coin[:patients], coin[patients:], range(patients)).p_value()
            for coin in coins
        ]
        assert np.mean(np.array(found) <= 0.05) <= 0.05


# Areas.


def test_the_clustered_area_is_delong_for_single_notes():
    a, b = groups(25, 6)[0], groups(35, 7, shift=-0.5)[0]
    area = stats.clustered_auc(a, np.arange(a.size), b, np.arange(b.size))
    wins = (a[:, None] > b).astype(float) + (a[:, None] == b) / 2
    spread = wins.mean(axis=1).var(ddof=1) / a.size + wins.mean(axis=0).var(ddof=1) / b.size
    assert area.value == stats.auc(a, b) == pytest.approx(wins.mean(), rel=1e-12)
    assert area.standard_error == pytest.approx(math.sqrt(spread), rel=1e-12)


def test_the_paired_difference_of_areas_is_zero_for_one_score_and_antisymmetric():
    (a, p), (b, q) = groups(40, 10, shift=0.5), groups(40, 11)
    same = stats.paired_auc_difference((a, a), (b, b), p, q)
    assert (same.value, same.standard_error) == (0, 0)
    rng = np.random.default_rng(12)
    worse = a + rng.normal(size=a.size), b + rng.normal(size=b.size)
    difference = stats.paired_auc_difference((a, worse[0]), (b, worse[1]), p, q)
    swapped = stats.paired_auc_difference((worse[0], a), (worse[1], b), p, q)
    assert difference.value == pytest.approx(stats.auc(a, b) - stats.auc(*worse), abs=1e-12)
    assert (difference.value, difference.standard_error) == pytest.approx(
        (-swapped.value, swapped.standard_error), abs=1e-12
    )


# Clusters.


def test_intraclass_correlation_at_its_ends_and_by_hand():
    owners = np.repeat(np.arange(4), 3)
    assert stats.intraclass_correlation(owners % 2, owners) == pytest.approx(1)
    assert stats.intraclass_correlation([0, 1, 0, 1], [0, 0, 1, 1]) == pytest.approx(-1)
    # Means 1 and 4; between mean square 18, within (2 + 2) / 2 = 2, m = 2: 16 / 20.
    assert stats.intraclass_correlation([0, 2, 3, 5], [0, 0, 1, 1]) == pytest.approx((9 - 2) / (9 + 2))
    assert math.isnan(stats.intraclass_correlation([1, 1, 1, 1], [0, 0, 1, 1]))
    assert math.isnan(stats.intraclass_correlation([1, 2], [0, 1]))


# Equivalence.


@pytest.mark.parametrize("margin", [0.1, 0.5, 1.0])
def test_tost_is_the_library(margin):
    a, b = groups(30, 17)[0], groups(25, 18, shift=0.1)[0]
    labels = [f"a{k}" for k in range(a.size)], [f"b{k}" for k in range(b.size)]
    equivalence = stats.tost(stats.clustered_difference(a, labels[0], b, labels[1]), margin=margin)
    assert equivalence.p_value == pytest.approx(
        ttost_ind(a, b, -margin, margin, usevar="unequal")[0], rel=1e-9
    )
    pair = np.random.default_rng(0).normal(size=(2, 20))
    paired = stats.tost(stats.paired_difference(*pair, np.arange(20)), margin=margin)
    assert paired.p_value == pytest.approx(ttost_paired(*pair, -margin, margin)[0], rel=1e-9)


def test_the_four_verdicts():
    def verdict(value, error):
        return stats.tost(stats.Estimate(value, error, 1000, 1001), margin=0.05).verdict

    assert verdict(0.0, 0.01) == "equivalent" and verdict(0.0, 0.1) == "undecided"
    assert verdict(0.2, 0.01) == "different" and verdict(0.02, 0.005) == "different, below the margin"


def test_a_published_newcombe_interval():
    """56/70 against 48/80, 95%: method 10 gives 0.0524 to 0.3339 (Newcombe 1998, table II, case a)."""
    interval = stats.newcombe_difference(stats.wilson(56, 70), stats.wilson(48, 80))
    assert (interval.low, interval.high) == pytest.approx((0.0524, 0.3339), abs=5e-5)


@pytest.mark.parametrize(
    ("units", "control", "margin", "alpha"),
    [(20, 0.0, 0.0765, 0.1), (20, 0.0, 0.12, 0.05), (14, 0.05, 0.35, 0.05)],
)
def test_rates_that_differ_by_the_margin_are_called_equivalent_with_at_most_alpha(
    units, control, margin, alpha
):
    """All outcomes; by Newcombe's interval a control that is never hit made it 0.20 where alpha is 0.10."""
    hits = np.arange(units + 1)
    declared = [
        [stats.tost_rates(int(a), units, int(b), units, margin=margin, alpha=alpha).equivalent for b in hits]
        for a in hits
    ]
    chances = (binom.pmf(hits, units, rate) for rate in (control + margin, control))
    error = next(chances) @ np.array(declared, dtype=float) @ next(chances)
    assert error <= alpha


# Power.


def test_what_is_detectable_is_found_with_the_stated_power():
    rate = stats.detectable_rate(250, control=0.01)
    h = 2 * math.asin(math.sqrt(rate)) - 2 * math.asin(math.sqrt(0.01))
    assert norm.sf(norm.isf(0.025) - h * math.sqrt(250 / 2)) == pytest.approx(0.8, abs=1e-6)
    assert stats.detectable_rate(1, control=0.9) == 1
    effect = stats.detectable(0.01, power=0.9)
    assert norm.sf(norm.isf(0.025) - effect / 0.01) == pytest.approx(0.9, abs=1e-6)


# Permutation tests: exact where every permutation can be counted, uniform where nothing leaks.


def test_the_shuffle_agrees_with_every_permutation_of_the_labels():
    scores = np.array([5.0, 3.0, 4.0, 1.0, 2.0, 0.5, 2.5])
    member = np.array([True, True, True, False, False, False, False])
    arms = itertools.combinations(range(7), 3)
    exact = np.mean([mannwhitneyu(scores[list(c)], np.delete(scores, c)).statistic >= 12 for c in arms])
    auc_p, _ = stats.permutation_scores(scores[:, None], member, draws=20_000, seed=0)
    assert auc_p[0] == pytest.approx(exact, abs=0.004) and exact == pytest.approx(1 / 35)


def test_p_values_are_uniform_where_nothing_leaks_and_small_where_something_does():
    generator, p = rng.make(0, "test"), []
    for seed in range(200):
        scores = generator.normal(size=(60, 1))
        p.append(stats.permutation_scores(scores, np.arange(60) < 30, draws=199, seed=seed)[0][0])
    assert np.mean(np.array(p) <= 0.05) == pytest.approx(0.05, abs=0.05) and 0.4 < np.mean(p) < 0.6
    loud = generator.normal(size=(400, 2)) + np.where(np.arange(400) < 200, 1.0, 0.0)[:, None] * [1, 0]
    auc_p, _ = stats.permutation_scores(loud, np.arange(400) < 200, draws=999, seed=0)
    assert auc_p[0] == 0.001 and auc_p[1] > 0.01


def test_a_few_members_far_out_are_seen_by_the_second_test_only():
    scores = rng.make(0, "test").normal(size=(2000, 1))
    member = np.arange(2000) < 1000
    scores[:40] = 9.0
    auc_p, tpr_p = stats.permutation_scores(scores, member, draws=1999, seed=0)
    assert tpr_p[0] == 0.0005 < auc_p[0]


def test_the_stated_power_is_the_power():
    least = stats.detectable_auc(300, 300, power=0.9, alpha=0.002)
    shift = np.sqrt(2) * norm.ppf(least)
    generator = rng.make(0, "power")
    a, b = generator.normal(shift, size=(400, 300)), generator.normal(size=(400, 300))
    wins = mannwhitneyu(a, b, axis=1, alternative="greater", method="asymptotic").pvalue <= 0.001
    assert wins.mean() == pytest.approx(0.9, abs=0.06)
    assert 0.5 < stats.detectable_auc(3000, 3000, power=0.9, alpha=0.002) < least < 1
    few = stats.detectable_rate(100, control=0.01, control_units=400)
    assert stats.detectable_rate(400, control=0.01) < few < stats.detectable_rate(100, control=0.01)


@pytest.mark.parametrize(("members", "others"), [(40, 30), (400, 20), (20, 400)])
def test_hits_are_those_of_a_plain_count(members, others):
    """Where members are many, the first wrong accusation too many lies far down the list."""
    member = np.arange(members + others) < members
    scores = rng.make(0, "plain").normal(size=(member.size, 1)) + 0.5 * member[:, None]
    order, allowed = np.argsort(-scores[:, 0]), others // 10

    def plain(labels):
        places = [np.flatnonzero(~row[order])[allowed] - allowed for row in labels]
        return np.array(places)[:, None]

    _, p = stats.permutation_scores(scores, member, fpr=0.1, draws=199, seed=3)
    assert p == stats.permutation_test(plain, member, draws=199, seed=3)


def test_the_standard_error_agrees_with_the_clustered_bootstrap():
    values, owners = groups(200, 4)
    drawn = stats.clustered_bootstrap(np.mean, owners, values, draws=2000)
    formula = stats.clustered_mean(values, owners).interval()
    assert formula.high - formula.low == pytest.approx(drawn.high - drawn.low, rel=0.08)
    assert drawn.estimate == formula.estimate
