"""From scores to bounds: guesses without peeking, false alarms, and the claimed mechanism."""

import itertools

import numpy as np
import pytest
from scipy.special import ndtri

from privhelpers import accounting, lower_bounds, mechanisms
from privhelpers.errors import InvalidParameter

RUN = {"sample_rate": 0.1, "steps": 150}


def gaussian_scores(shift, canaries=1000):
    base = ndtri((np.arange(canaries) + 0.5) / canaries)
    return np.repeat([True, False], canaries), np.concatenate([base + shift, base])


def test_scores_of_pure_noise_raise_few_alarms():
    generator = np.random.default_rng(0)
    alarms = [
        lower_bounds.audit_in_one_run(
            generator.random(300) < 0.5, generator.normal(size=300), delta=1e-5, method=lower_bounds.BINOMIAL
        ).epsilon_lower
        > 0
        for _ in range(100)
    ]
    assert np.mean(alarms) <= 0.08


@pytest.mark.parametrize("shift", [0, 1, 2])
def test_every_bound_on_gaussian_scores_is_below_the_truth(shift):
    included, scores = gaussian_scores(shift)
    truth = mechanisms.gdp_epsilon(mu=float(shift), delta=1e-6) if shift else 0.0
    bounds = [
        lower_bounds.audit_in_one_run(included, scores, delta=1e-6, method=m)
        for m in (lower_bounds.BINOMIAL, lower_bounds.FDP)
    ]
    assert all(0 <= bound.epsilon_lower <= truth for bound in bounds)
    assert not shift or min(bound.epsilon_lower for bound in bounds) > 0.3
    if shift:
        assert bounds[0].epsilon_lower < bounds[1].epsilon_lower


@pytest.mark.parametrize(("target", "least"), [(1.0, 0.2), (4.0, 0.35)])
def test_the_f_dp_audit_reaches_a_good_part_of_the_accountants_bound(target, least):
    sigma = accounting.calibrate_noise_multiplier(target_epsilon=target, **RUN, delta=1e-5)
    bounds = []
    for seed in range(6):
        coins, scores = lower_bounds.simulate_scores(canaries=2000, noise_multiplier=sigma, **RUN, seed=seed)
        bounds.append(lower_bounds.audit_in_one_run(coins, scores, delta=1e-5).epsilon_lower)
    assert max(bounds) <= target
    assert np.mean(bounds) >= least * target


def test_a_run_without_noise_is_found_out():
    coins, scores = lower_bounds.simulate_scores(canaries=300, noise_multiplier=1e-3, **RUN, seed=0)
    claimed = 1.0
    for method in (lower_bounds.BINOMIAL, lower_bounds.FDP):
        assert lower_bounds.audit_in_one_run(coins, scores, delta=1e-5, method=method).epsilon_lower > claimed


def test_guesses_by_rank_come_from_both_ends():
    coins, scores = [1, 1, 0, 1, 0, 0], [5.0, 4.0, 3.0, 2.0, 1.0, 0.0]
    assert [lower_bounds.count_correct(coins, scores, n) for n in (2, 4, 5, 6)] == [
        (2, 2),
        (4, 4),
        (4, 4),
        (6, 4),
    ]
    assert lower_bounds.count_correct(coins, np.negative(scores), 6) == (6, 2)


def test_guesses_by_sign_start_with_the_surest():
    coins, scores = [1, 0, 1, 0], [0.1, -3.0, -2.0, 0.5]
    counts = [lower_bounds.count_correct(coins, scores, n, by=lower_bounds.BY_SIGN) for n in (1, 2, 3, 4)]
    assert counts == [(1, 1), (2, 1), (3, 1), (4, 2)]


def test_searched_numbers_are_even_different_and_within_reach():
    assert lower_bounds.searched_guesses(1000) == [20, 50, 100, 200, 400, 800]
    assert lower_bounds.searched_guesses(10) == [2, 4, 8]
    assert lower_bounds.searched_guesses(2, shares=[1.0]) == [2]
    assert lower_bounds.searched_guesses(10, np.array([0.8, 0.2])) == lower_bounds.searched_guesses(
        10, (0.8, 0.2)
    )
    for shares in ([], [0.0], [1.1], np.zeros(0), 0.5, "ab", [None]):
        with pytest.raises(InvalidParameter, match="shares"):
            lower_bounds.searched_guesses(10, shares)


def test_infinite_scores_are_ranked_and_missing_ones_refused():
    coins = np.arange(40) < 20
    scores = np.where(coins, np.inf, -np.inf)
    assert lower_bounds.audit_in_one_run(coins, scores, delta=1e-5).epsilon_lower > 1
    scores[3] = np.nan
    with pytest.raises(InvalidParameter, match="not a number"):
        lower_bounds.audit_in_one_run(coins, scores, delta=1e-5)


def test_pairs_hold_one_planted_and_one_control_and_fair_coins():
    planted = np.random.default_rng(0).permutation(np.arange(80) < 40)
    pairs, first = lower_bounds.swap_pairs(planted, seed=0)
    assert pairs.shape == (40, 2) and sorted(pairs.ravel()) == list(range(80))
    assert np.array_equal(planted[pairs[:, 0]], first) and np.array_equal(planted[pairs[:, 1]], ~first)
    tossed = [lower_bounds.swap_pairs(planted, seed=seed)[1].mean() for seed in range(50)]
    assert abs(np.mean(tossed) - 0.5) < 0.04


def test_given_the_pairs_every_assignment_is_equally_likely():
    """Over all choices of the planted half: the claim that makes the swap audit valid, counted out."""
    seen = {}
    for chosen in itertools.combinations(range(4), 2):
        planted = np.isin(np.arange(4), chosen)
        for seed in range(300):
            pairs, first = lower_bounds.swap_pairs(planted, seed)
            names = tuple(sorted(tuple(sorted(pair)) for pair in pairs.tolist()))
            inside = tuple(
                sorted(int(pair[0 if coin else 1]) for pair, coin in zip(pairs, first, strict=True))
            )
            seen[names, inside] = seen.get((names, inside), 0) + 1
    by_names = {}
    for (names, inside), times in seen.items():
        by_names.setdefault(names, {})[inside] = times
    assert len(by_names) == 3 and all(len(counts) == 4 for counts in by_names.values())
    assert all(max(counts.values()) < 1.35 * min(counts.values()) for counts in by_names.values())


def test_unequal_halves_cannot_be_swapped():
    for planted in ([True, True, False], [], [[True, False]]):
        with pytest.raises(InvalidParameter, match="one half"):
            lower_bounds.swap_pairs(planted, seed=0)


def test_more_canaries_certify_more_and_perfection_has_a_ceiling():
    ceilings = [lower_bounds.most_certifiable(canaries=m, delta=1e-5) for m in (100, 300, 1000, 3000)]
    assert all(np.diff(ceilings) > 0)
    for method in (lower_bounds.BINOMIAL, lower_bounds.FDP):
        settings = {"delta": 1e-5, "method": method, "shares": lower_bounds.SHARES}
        coins = np.arange(1000) < 500
        perfect = lower_bounds.audit_in_one_run(coins, np.where(coins, 1.0, 0.0), **settings)
        assert perfect.epsilon_lower == lower_bounds.most_certifiable(canaries=1000, **settings)


@pytest.mark.parametrize("by", ["rank", "sign"])
@pytest.mark.parametrize("score", [0.0, 1.0])
def test_equal_scores_certify_nothing_however_the_list_is_ordered(by, score):
    included = np.repeat([True, False], 500)
    for coins in (included, ~included):
        for method in (lower_bounds.BINOMIAL, lower_bounds.FDP):
            bound = lower_bounds.audit_in_one_run(
                coins, np.full(1000, score), delta=1e-5, by=by, method=method
            )
            assert bound.epsilon_lower == 0
