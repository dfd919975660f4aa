import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtri
from sklearn.metrics import roc_auc_score, roc_curve

from privhelpers import rng, stats
from privhelpers.errors import InvalidParameter
from privhelpers.stats import clustered, roc

SCORES = st.lists(st.integers(-5, 5), min_size=1, max_size=30)


def patients(shift, count, seed, largest=3):
    """Notes of one patient share most of their score."""
    generator = np.random.default_rng(seed)
    labels = np.repeat(np.arange(count), generator.integers(1, largest + 1, count))
    return shift + generator.normal(size=count)[labels] * 0.8 + generator.normal(
        size=labels.size
    ) * 0.6, labels


# Proportions. Published vectors have 4 to 6 significant digits, hence the tolerances.


@pytest.mark.parametrize(
    ("interval", "successes", "trials", "low", "high"),
    [
        (stats.clopper_pearson, 0, 50, 0, 0.071122),
        (stats.clopper_pearson, 5, 1400, 0.001161, 0.008315),
        (stats.clopper_pearson, 256, 1400, 0.162934, 0.204121),
        (stats.clopper_pearson, 15, 15, 0.781981, 1),
        (stats.wilson, 5, 1400, 0.00153, 0.00833),
        (stats.wilson, 256, 1400, 0.16349, 0.20396),
        (stats.wald, 249, 1400, 0.15782, 0.19789),
        (stats.wald, 5, 1400, 0.00045, 0.00669),
        (stats.wald, 0, 50, 0, 0),
    ],
)
def test_intervals_of_a_rate_are_the_published_ones(interval, successes, trials, low, high):
    found = interval(successes, trials)
    assert (found.low, found.high) == pytest.approx((low, high), abs=2e-5)
    assert found.estimate == successes / trials and found.low <= found.estimate <= found.high


def test_two_proportion_vectors():
    result = stats.two_proportion(256, 1400, 5, 1400)
    assert result.chi_squared == pytest.approx(266.19645, rel=1e-7)
    assert result.chi_squared_p == pytest.approx(7.65e-60, rel=1e-3)
    assert result.yates == pytest.approx(264.07958, rel=1e-7)
    assert result.fisher_p == pytest.approx(2.2535e-74, rel=1e-4)
    assert result.odds_ratio == pytest.approx(62.4336, rel=1e-6)
    assert result.cohens_h == pytest.approx(0.764118, rel=1e-6)
    assert result.difference == pytest.approx(251 / 1400)
    assert result.label == "medium"
    pooled = 261 / 2800
    assert result.z == pytest.approx((251 / 1400) / math.sqrt(pooled * (1 - pooled) * 2 / 1400), rel=1e-12)
    printed = stats.two_proportion(36, 10000, 1779, 10000)
    assert printed.cohens_h == pytest.approx(-0.750747, rel=1e-6) and printed.z < 0
    empty = stats.two_proportion(0, 20, 0, 30)
    assert (empty.chi_squared, empty.chi_squared_p, empty.fisher_p, empty.cohens_h) == (0, 1, 1, 0)
    assert math.isnan(empty.odds_ratio)


def test_effect_labels():
    words = {0: "negligible", 0.199: "negligible", 0.2: "small", -0.3: "small", -0.5: "medium", 0.8: "large"}
    assert {h: stats.effect_label(h) for h in words} == words


# Membership scores.


def advantage(member, nonmember):
    """The largest TPR - FPR, every note counted once."""
    return float(roc.advantages(*roc.PooledScores(member, nonmember).equal())[0])


def tpr_at(member, nonmember, fpr, draws=1000):
    """The height of the ROC curve at one rate, with its interval."""
    curve = stats.roc_curve(*member, *nonmember, fpr=[fpr], draws=draws)
    return stats.Interval(curve.tpr[0], curve.low[0], curve.high[0], curve.level, curve.method)


@given(SCORES, SCORES)
def test_area_and_advantage_are_those_of_the_library(a, b):
    truth = [1] * len(a) + [0] * len(b)
    assert stats.auc(a, b) == pytest.approx(roc_auc_score(truth, a + b), abs=1e-12)
    fpr, tpr, _ = roc_curve(truth, a + b, drop_intermediate=False)
    assert advantage(a, b) == pytest.approx(max(0, (tpr - fpr).max()), abs=1e-12)


def slow_values(member, nonmember):
    """The same statistics written out on repeated notes."""
    gaps = member[:, None] - nonmember[None, :]
    fpr, tpr, _ = roc_curve(
        [1] * member.size + [0] * nonmember.size, [*member, *nonmember], drop_intermediate=False
    )
    return np.mean((gaps > 0) + (gaps == 0) / 2), max(0, (tpr - fpr).max()), np.interp(0.3, fpr, tpr)


def test_fast_bootstrap_equals_repeating_the_notes():
    generator = np.random.default_rng(1)
    member, nonmember = (
        generator.integers(0, 9, 40).astype(float),
        generator.integers(-2, 7, 30).astype(float),
    )
    labels = generator.integers(12, size=40), generator.integers(9, size=30)
    codes = [np.unique(label, return_inverse=True)[1] for label in labels]
    arms = [(code, int(code.max()) + 1) for code in codes]
    pooled = roc.PooledScores(member, nonmember)
    fast = np.column_stack(
        [
            roc.replicates(statistic, pooled, labels, 25, 7)
            for statistic in (
                roc.areas,
                roc.advantages,
                lambda a, b: roc.curve_heights(a, b, np.array([0.3])),
            )
        ]
    )
    (weights,) = clustered.weight_blocks(arms, 25, rng.make(7, "stats.membership"))
    slow = [
        slow_values(np.repeat(member, a.astype(int)), np.repeat(nonmember, b.astype(int)))
        for a, b in zip(*weights, strict=True)
    ]
    np.testing.assert_allclose(fast, slow, rtol=1e-12, atol=1e-12)


def test_intervals_keep_their_coverage_where_nothing_leaks():
    held = np.zeros(2)
    for run in range(60):
        a, b = patients(0, 200, 100 + run), patients(0, 100, 900 + run)
        held += [
            0.5 in stats.auc_interval(*a, *b, draws=200),
            0.05 in tpr_at(a, b, 0.05, draws=200),
        ]
    # Binomial(60, .95) falls under 51 with probability 0.002.
    assert held.min() >= 51


def test_what_no_draw_changes_is_no_point():
    """A bootstrap of arms that are told perfectly is [1, 1]: it covered an area of 0.98 in 57%."""
    high, low, owners = np.arange(10, 20), np.arange(10), np.arange(10)
    least = 0.025 ** (1 / 10)
    for scores, ends in (((high, low), (least, 1)), ((low, high), (0, 1 - least))):
        interval = stats.auc_interval(scores[0], owners, scores[1], owners, draws=50)
        assert (interval.low, interval.high) == pytest.approx(ends)
        exact = stats.clopper_pearson(10 * int(interval.estimate), 10)
        assert (interval.low, interval.high) == pytest.approx((exact.low, exact.high))
    same = stats.auc_interval(np.ones(10), owners, np.ones(10), owners, draws=50)
    assert (same.low, same.high) == pytest.approx((least / 2, 1 - least / 2)) and same.estimate == 0.5
    # Notes of one patient are no units of their own, and the smaller arm makes the pairs.
    few = stats.auc_interval(high, owners // 2, np.arange(9), np.arange(9), draws=50)
    assert few.low == pytest.approx(0.025 ** (1 / 5)) and "5 pairs" in few.method
    band = stats.roc_curve(low, owners, high, owners, fpr=[0.05, 0.5, 1.0], draws=50)
    assert band.low.tolist() == [0, 0, 1] and band.high == pytest.approx([1 - least, 1 - least, 1])


def test_a_band_rises_with_the_rate_also_where_some_rates_do_not_vary():
    """Five non-members lie above the one member who stands out, or one member hides among the others."""
    owners, others = np.arange(200), np.arange(200.0)
    for member in (np.r_[np.full(199, -1.0), 194.5], np.r_[np.full(199, 500.0), 150.5]):
        arms = member, owners, others, owners + 200
        curve = stats.roc_curve(*arms, draws=200)
        for end in (curve.low, curve.tpr, curve.high):
            assert (np.diff(end) >= 0).all()
        assert (curve.low <= curve.tpr).all() and (curve.tpr <= curve.high).all()
        assert curve.low[-1] == curve.high[-1] == 1
        mixed = stats.roc_curve(*arms, fpr=[0.01, 1.0, 0.001], draws=200)
        assert mixed.low[2] <= mixed.low[0] <= mixed.low[1] == 1 >= mixed.high[0] >= mixed.high[2] > 0


def test_an_area_near_one_is_covered_with_few_patients():
    owners, draw = np.arange(10), np.random.default_rng(0)
    shift = ndtri(0.98) * 2**0.5
    covered = [
        0.98 in stats.auc_interval(draw.normal(shift, 1, 10), owners, draw.normal(size=10), owners, draws=100)
        for _ in range(100)
    ]
    assert sum(covered) >= 90


# Clustered rates and differences.


def test_design_effect_limits():
    clusters = np.repeat(np.arange(20), 10)
    together = np.repeat(np.arange(20) % 2, 10)
    spread = np.tile([0, 1], 100)
    assert stats.design_effect(together, clusters) == pytest.approx(10 * 20 / 19, rel=1e-9)
    assert stats.design_effect(spread, clusters) == pytest.approx(0, abs=1e-12)
    assert stats.design_effect(np.zeros(200), clusters) == 10
    assert stats.design_effect(spread, np.arange(200)) == pytest.approx(200 / 199, rel=1e-9)


def test_zero_hits_count_the_clusters_unless_the_effect_is_known():
    hits, prompts = np.zeros(1400), np.arange(1400) % 14
    assert stats.clustered_proportion(hits, prompts).high == pytest.approx(stats.clopper_pearson(0, 14).high)
    known = stats.clustered_proportion(hits, prompts, effect=2.0)
    assert known.high == pytest.approx(stats.clopper_pearson(0, 700).high)
    never_better = stats.clustered_proportion(hits, prompts, effect=0.01)
    assert never_better.high == pytest.approx(stats.clopper_pearson(0, 1400).high)


@pytest.mark.filterwarnings("error")
def test_clusters_of_one_rate_count_every_trial_and_divide_by_nothing():
    hits, clusters = np.arange(60) % 2, np.repeat(np.arange(3), 20)
    assert stats.design_effect(hits, clusters) == 0
    exact, clustered = stats.clopper_pearson(30, 60), stats.clustered_proportion(hits, clusters)
    assert (clustered.low, clustered.high) == pytest.approx((exact.low, exact.high))


def test_unequal_clusters_count_as_fewer_equal_ones():
    clusters = np.repeat(np.arange(10), [55, *[5] * 9])  # 100 trials; sum m^2 = 55^2 + 9 x 5^2 = 3250
    none = stats.clustered_proportion(np.zeros(100), clusters)
    assert stats.design_effect(np.zeros(100), clusters) == pytest.approx(32.5)
    assert none.high == pytest.approx(1 - 0.025 ** (32.5 / 100))
    outweighed = stats.clustered_proportion(np.arange(10**5) % 2, np.arange(10**5) == 7)
    assert (outweighed.low, outweighed.high) == pytest.approx((0, 1), abs=1e-9)


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("hits", [(0, 0), (1, 1)])
def test_two_rules_that_never_differ_leave_room_by_clusters_and_not_by_trials(hits):
    def of(clusters):
        a, b = (np.full(60, hit) for hit in hits)
        return stats.paired_rate_difference(a, b, np.arange(60) % clusters)

    few, many = of(6), of(60)
    assert few.estimate == many.estimate == 0
    assert -few.high == few.low < many.low < 0 < many.high < few.high
    assert many.high == pytest.approx(stats.clopper_pearson(0, 60).high)
    same = np.full(60, hits[0])
    known = stats.paired_rate_difference(same, same, np.arange(60) % 6, effect=2)
    assert known.high == pytest.approx(stats.clopper_pearson(0, 30).high)


@pytest.mark.wrong_numbers
def test_only_trials_on_which_two_rules_differ_count():
    a, b = np.zeros(400), np.zeros(400)
    a[:20], b[20:32] = 1, 1
    alone = stats.paired_rate_difference(a, b, range(400))
    shared = stats.paired_rate_difference(np.r_[a, np.ones(400)], np.r_[b, np.ones(400)], range(800))
    assert alone.estimate == pytest.approx(8 / 400) and shared.estimate == pytest.approx(8 / 800)
    swapped = stats.paired_rate_difference(b, a, range(400))
    assert (swapped.low, swapped.high) == pytest.approx((-alone.high, -alone.low))
    # Close to McNemar's standard error, which is exact for many single trials.
    assert (alone.high - alone.low) / 3.92 == pytest.approx(math.sqrt(32 - 64 / 400) / 400, rel=0.15)


@pytest.mark.wrong_numbers
def test_hits_of_one_cluster_say_less_than_hits_of_many():
    a, none = np.zeros(700), np.zeros(700)
    a[:40] = 1
    one_prompt, every_prompt = np.repeat(np.arange(14), 50), np.arange(700) % 14
    assert stats.paired_rate_difference(a, none, every_prompt).low > 0
    assert stats.paired_rate_difference(a, none, one_prompt).low < 0


@pytest.mark.wrong_numbers
@pytest.mark.parametrize(
    ("rates", "correlation"), [((0.02, 0.02), 0.1), ((0.3, 0.3), 0.0), ((0.05, 0.0), 0.1)]
)
def test_the_difference_of_paired_rates_is_covered(rates, correlation):
    generator, clusters, size, held, draws = rng.make(0, "paired rates"), 20, 20, 0, 200
    for _ in range(draws):
        hits = []
        for rate in rates:
            each = np.full(clusters, rate)
            if correlation and rate:
                weight = 1 / correlation - 1
                each = generator.beta(rate * weight, (1 - rate) * weight, clusters)
            hits.append((generator.random((size, clusters)) < each).ravel())
        interval = stats.paired_rate_difference(*hits, np.arange(size * clusters) % clusters)
        held += rates[0] - rates[1] in interval
    assert held / draws > 0.9


@pytest.mark.parametrize(
    ("sizes", "a", "b"),
    [([20] * 40, 1, 4), ([200, *[1] * 9], 0.4 / 9, 0.6 / 9), ([50, 50, *[2] * 28], 0.4 / 9, 0.6 / 9)],
)
def test_clustered_proportion_covers_a_clustered_rate(sizes, a, b):
    """Rates of clusters are Beta(a, b): two trials of one correlate by 1 / (a + b + 1)."""
    generator, held, naive = np.random.default_rng(0), 0, 0
    clusters, rate = np.repeat(np.arange(len(sizes)), sizes), a / (a + b)
    for _ in range(150):
        hits = generator.random(clusters.size) < generator.beta(a, b, len(sizes))[clusters]
        held += rate in stats.clustered_proportion(hits, clusters)
        naive += rate in stats.clopper_pearson(int(hits.sum()), clusters.size)
    assert held >= 134 and naive <= 120


def test_mean_difference_is_welch():
    planted, control = [1.0, 2.0, 3.0, 4.0], [0.0, 0.0, 1.0, 1.0, 1.0]
    interval = stats.mean_difference(planted, control)
    # By hand: variances 5/3 and 0.3, standard error sqrt(5/12 + .06), Welch df 3.8661, t(.975) 2.81479.
    assert interval.estimate == pytest.approx(1.9)
    assert interval.high - 1.9 == pytest.approx(1.9 - interval.low)
    assert interval.high - 1.9 == pytest.approx(2.81479 * math.sqrt(5 / 12 + 0.06), rel=1e-5)
    assert stats.mean_difference([2.0, 2.0], [1.0, 1.0]).low == 1.0


# Refusals of the whole room: what is wrong, and the field that the error names.

TWO, ONE_OWNER = ([1, 2], [0, 1]), ([1, 2], [0, 0])
STILL = stats.Estimate(0.0, 1.0, 5, 6)
LABELS = [True, True, False, False]


def scores(values, labels=LABELS):
    return stats.permutation_scores(values, labels, draws=9)


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("successes", lambda: stats.wilson(3, 2)),
        ("trials", lambda: stats.clopper_pearson(1, 2**63)),
        ("member_patients", lambda: stats.auc_interval([1, 2], [0], *TWO)),
        ("level", lambda: stats.clopper_pearson(1, 2, level=1.0)),
        ("successes_b", lambda: stats.two_proportion(1, 2, 3, 2)),
        ("nonmember_scores", lambda: stats.auc([1.0], [math.inf])),
        ("fpr", lambda: stats.roc_curve(*TWO, *TWO, fpr=[0.0, 0.1])),
        ("member_patients", lambda: stats.auc_interval(*ONE_OWNER, *TWO)),
        ("member_patients", lambda: stats.auc_interval([1, 2], [0, math.nan], *TWO)),
        ("member_patients", lambda: stats.auc_interval([1, 2], ["a", None], *TWO)),
        ("members", lambda: stats.paired_auc_difference([[1, 2]] * 3, [[0, 1]] * 3, [0, 1], [0, 1])),
        ("seed", lambda: stats.auc_interval(*TWO, *TWO, seed=-1)),
        ("statistic", lambda: stats.permutation_test("mean", LABELS)),
        ("arrays", lambda: stats.clustered_bootstrap(np.mean, [1, 2], [[1, 2], [3]])),
        ("hits", lambda: stats.clustered_proportion([0, 2], [0, 1])),
        ("effect", lambda: stats.clustered_proportion([0, 1], [0, 1], effect=0)),
        ("two", lambda: stats.newcombe_difference(stats.wilson(1, 9), 0.1)),
        ("cohens_h", lambda: stats.effect_label(math.nan)),
        ("planted", lambda: stats.mean_difference([1.0], [1.0, 2.0])),
        ("arrays", lambda: stats.clustered_bootstrap(np.mean, [0, 1])),
        ("statistic", lambda: stats.clustered_bootstrap(lambda x: math.nan, [0, 1], [1.0, 2.0])),
        ("values", lambda: stats.clustered_mean([10**400, 1.0], ["a", "b"])),
        ("clusters", lambda: stats.clustered_mean([1.0, 2.0], [[1], [2, 3]])),
        ("weights", lambda: stats.clustered_mean([1.0, 2.0], [0, 1], weights=[1.0, 0.0])),
        ("clusters_a", lambda: stats.clustered_difference(*TWO, [1.0, 2.0], [1, 2])),
        ("values_b", lambda: stats.paired_difference([1.0, 2.0], [1.0], [0, 1])),
        ("members", lambda: stats.paired_auc_difference(([1, 2], [1]), ([0, 1], [0, 1]), [0, 1], [0, 1])),
        ("member", lambda: stats.permutation_test(lambda labels: labels, [[1, 0], [1]])),
        *(("scores", lambda x=x: scores(x)) for x in ([[math.nan]] * 4, [1.0] * 4)),
        *(("member", lambda x=x: scores([[1.0]] * 4, x)) for x in ([True] * 4, [True, False])),
        ("p_values", lambda: stats.adjust({})),
        ("p_values", lambda: stats.adjust({"a": 1.2})),
        ("margin", lambda: stats.tost(STILL, margin=0)),
        ("estimate", lambda: stats.tost(0.1, margin=1.0)),
        ("null", lambda: stats.tost(STILL, margin=1.0, null=[1])),
    ],
)
def test_invalid_input_is_refused(field, call):
    with pytest.raises(InvalidParameter, match=field):
        call()
