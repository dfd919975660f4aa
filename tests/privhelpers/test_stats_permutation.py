"""Permutation tests: exact where every permutation can be counted, uniform where nothing leaks."""

import itertools

import numpy as np
import pytest
from scipy.stats import mannwhitneyu, norm

from privhelpers import rng, stats


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


def test_equal_scores_are_no_evidence():
    auc_p, tpr_p = stats.permutation_scores(np.zeros((100, 1)), np.arange(100) < 50, draws=499, seed=0)
    assert auc_p[0] == 1.0 and tpr_p[0] > 0.01


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
