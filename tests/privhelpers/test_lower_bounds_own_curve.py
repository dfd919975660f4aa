"""The bound from DP-SGD's own trade-off curve: closed forms, monotony, coverage, refusals."""

import math

import numpy as np
import pytest
from nights import sampled
from scipy.optimize import brentq
from scipy.special import log_ndtr, ndtri

from privhelpers import accounting, lower_bounds, stats
from privhelpers.errors import InvalidParameter

SHORT = {"sample_rate": 0.3, "steps": 10}
BOOK = {"sample_rate": 0.1, "steps": 150}
DELTA = 1e-5


def advantage_limit(canaries, correct, confidence=0.95):
    """The exact lower limit of TPR - FPR, from another function than the bound's."""
    wrong = stats.clopper_pearson(canaries - correct, canaries, level=2 * confidence - 1)
    return 1 - 2 * wrong.high


@pytest.mark.parametrize("rate", [0.2, 0.6])
def test_one_sampled_step_has_one_too(rate):
    bound = lower_bounds.own_curve_epsilon_lower(
        canaries=10_000, correct=5400, sample_rate=rate, steps=1, delta=DELTA
    )
    mu = 2 * ndtri((1 + advantage_limit(10_000, 5400) / rate) / 2)  # q (2 Phi(mu / 2) - 1)
    expected = accounting.epsilon(noise_multiplier=1 / mu, sample_rate=rate, steps=1, delta=DELTA)
    assert bound == pytest.approx(expected, rel=2e-3)


def test_the_distance_is_what_the_best_test_of_scores_reaches():
    """Simulated scores at a threshold of 0 know nothing of the accountant."""
    for sigma in (1.0, 4.0):
        coins, scores = lower_bounds.simulate_scores(canaries=200_000, noise_multiplier=sigma, **BOOK, seed=1)
        reached = (scores[coins] > 0).mean() - (scores[~coins] > 0).mean()
        distance = accounting.delta_at(epsilon=0.0, noise_multiplier=sigma, **BOOK)
        assert reached == pytest.approx(distance, abs=0.008)


def test_chance_certifies_exactly_nothing():
    for correct in (0, 400, 500, 525):
        numbers = {"canaries": 1000, "correct": correct}
        assert lower_bounds.own_curve_epsilon_lower(**numbers, **BOOK, delta=DELTA) == 0.0


def test_no_noise_at_all_is_certified_to_exceed_any_promise():
    coins = np.arange(12_000) < 6000
    result = lower_bounds.own_curve_audit(coins, np.where(coins, 1.0, -1.0), **BOOK, delta=DELTA)
    assert math.isfinite(result.epsilon_lower) and result.epsilon_lower > 50
    # More right guesses than any noise explains: a canary that never took part cannot be seen.
    rare = lower_bounds.own_curve_audit(
        coins, np.where(coins, 1.0, -1.0), sample_rate=0.01, steps=2, delta=DELTA
    )
    assert math.isfinite(rare.epsilon_lower) and rare.epsilon_lower > 50


def test_an_upper_bound_of_another_accountant_certifies_nothing():
    """At this delta only RDP is left, which is no limit from below: it certified 17.4 of 16.8."""
    long = {"sample_rate": 0.01, "steps": 10_000}
    with pytest.raises(InvalidParameter, match="delta = 1e-12"):
        lower_bounds.own_curve_epsilon_lower(canaries=1000, correct=900, **long, delta=1e-12)
    assert lower_bounds.own_curve_epsilon_lower(canaries=1000, correct=500, **long, delta=1e-12) == 0
    run = {"noise_multiplier": 0.8, **long, "delta": 1e-12}
    assert accounting.epsilon(**run) == accounting.epsilon(**run, accountant="rdp")


def exact_epsilon(mu, delta, rate=1.0):
    """Of one step: the hockey stick of its mixture is q (N(mu, 1) - (1 + (e^epsilon - 1) / q) N(0, 1))."""

    def excess(epsilon):
        level = math.log1p(math.expm1(epsilon) / rate)
        first, second = log_ndtr(mu / 2 - level / mu), level + log_ndtr(-mu / 2 - level / mu)
        return math.log(rate) + first + math.log(-math.expm1(second - first)) - math.log(delta)

    return brentq(excess, 0.0, 100.0, xtol=1e-12)


@pytest.mark.parametrize(
    ("delta", "steps", "rate", "canaries", "correct"),
    [
        (1e-13, 100, 1.0, 1000, 700),
        (1e-12, 1000, 1.0, 12_000, 7462),
        (1e-13, 1, 0.3, 1000, 600),
        (1e-12, 1, 0.9, 12_000, 9000),
    ],
)
def test_no_delta_near_what_is_rounded_certifies_more_than_the_exact_curve(
    delta, steps, rate, canaries, correct
):
    """An upper bound on the epsilon of the refuted noise, in place of a lower one, was up to 1% above."""
    bound = lower_bounds.own_curve_epsilon_lower(
        canaries=canaries, correct=correct, sample_rate=rate, steps=steps, delta=delta
    )
    mu = 2 * ndtri((1 + advantage_limit(canaries, correct) / rate) / 2)
    exact = exact_epsilon(mu, delta, rate)
    assert 0.9 * exact < bound <= exact


def right_calls(coins, scores):
    return int(((scores > np.median(scores)) == coins).sum())


def test_the_audit_calls_the_upper_half_in_and_says_what_it_did():
    coins, scores = lower_bounds.simulate_scores(canaries=3000, noise_multiplier=2.0, **SHORT, seed=3)
    result = lower_bounds.own_curve_audit(coins, scores, **SHORT, delta=DELTA)
    assert result.correct == right_calls(coins, scores) and result.guesses == result.canaries == 3000
    expected = lower_bounds.own_curve_epsilon_lower(
        canaries=3000, correct=result.correct, **SHORT, delta=DELTA
    )
    assert result.epsilon_lower == expected > 0
    for part in ("own curve", "1e-05", "95%", "add/remove"):
        assert part in str(result)
    moved = lower_bounds.own_curve_audit(coins, 3 * scores - 7, **SHORT, delta=DELTA)
    assert moved == result, "only the order of the scores counts"


def test_ties_and_infinite_scores_are_called_without_a_look_at_the_coins():
    coins = np.arange(1000) < 500  # in an order that a call by place would profit from
    assert lower_bounds.own_curve_audit(coins, np.zeros(1000), **BOOK, delta=DELTA).correct == 500
    endless = np.where(coins, np.inf, -np.inf)
    assert lower_bounds.own_curve_audit(coins, endless, **BOOK, delta=DELTA).correct == 1000


@pytest.mark.parametrize(("noise", "rate"), [(0.0, 0.1), (0.5, 0.1), (1.0, 0.2)])
def test_a_claim_that_is_false_is_refuted(noise, rate):
    """Scores that believe the claim lie all below 0 without noise: a threshold of 0 would see nothing."""
    sigma = accounting.calibrate_noise_multiplier(target_epsilon=1.0, **BOOK, delta=DELTA)

    def shows(generator, included, step):
        drawn = included & (generator.random(included.size) < rate)
        return drawn + noise * sigma * generator.standard_normal(included.size)

    seen = lower_bounds.simulate_scores(canaries=3000, noise_multiplier=sigma, **BOOK, seed=0, shows=shows)
    assert lower_bounds.own_curve_audit(*seen, **BOOK, delta=DELTA).epsilon_lower > 1.0


def too_many(truth, canaries):
    """The fewest right guesses that certify more than the truth."""
    low, high = canaries // 2, canaries
    while low < high:
        middle = (low + high) // 2
        bound = lower_bounds.own_curve_epsilon_lower(canaries=canaries, correct=middle, **SHORT, delta=DELTA)
        low, high = (low, middle) if bound > truth else (middle + 1, high)
    return low


@pytest.mark.parametrize("target", sampled([0.5, 4.0], [4.0]))
def test_the_bound_is_above_the_truth_as_rarely_as_it_says_and_not_by_being_empty(target):
    canaries, audits = 1000, 400
    sigma = accounting.calibrate_noise_multiplier(target_epsilon=target, **SHORT, delta=DELTA)
    truth = accounting.epsilon(noise_multiplier=sigma, **SHORT, delta=DELTA)
    limit = too_many(truth, canaries)
    coins, scores = lower_bounds.simulate_scores(
        canaries=canaries * audits, noise_multiplier=sigma, **SHORT, seed=5
    )
    parts = [slice(i, i + canaries) for i in range(0, canaries * audits, canaries)]
    right = np.array([right_calls(coins[part], scores[part]) for part in parts])
    above = stats.clopper_pearson(int((right >= limit).sum()), audits)
    assert above.low <= 0.05, "more than one bound in twenty is above the truth"
    assert above.high >= 0.01, "far fewer are above than may be: the bound gives something away"

    def best_of_many(part):
        own, values = coins[part], scores[part]
        return max(((values > t) == own).sum() for t in np.quantile(values, np.linspace(0.02, 0.98, 97)))

    chosen = [best_of_many(part) for part in parts]
    peeked = stats.clopper_pearson(int((np.array(chosen) >= limit).sum()), audits)
    assert peeked.low > above.estimate, "a threshold chosen by the same coins must be seen to cheat"


def test_new_coins_certify_nothing():
    toss = np.random.default_rng(0)
    _, scores = lower_bounds.simulate_scores(canaries=1000, noise_multiplier=1.0, **BOOK, seed=0)
    found = [
        lower_bounds.own_curve_audit(toss.random(1000) < 0.5, scores, **BOOK, delta=DELTA).epsilon_lower > 0
        for _ in range(100)
    ]
    assert stats.clopper_pearson(sum(found), 100).low <= 0.05
