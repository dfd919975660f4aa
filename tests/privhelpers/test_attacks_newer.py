"""RMIA, BaVarIA and quantile regression, against values by hand and against what they approach."""

import numpy as np
import pytest
from scipy.stats import norm

from privhelpers import stats
from privhelpers.attacks import bavaria, lira, quantile, rmia
from privhelpers.errors import InvalidParameter

INSIDE = np.array([[True, True, False], [False, True, False]])
LOSSES = -np.log([[0.8, 0.6, 0.3], [0.4, 0.8, 0.5]])  # p of three texts under two models


def made(models=5, texts=1500, effect=0.3, seed=0):
    """Losses of easy and hard texts under models and a target that trained on half of them each."""
    generator = np.random.default_rng(seed)
    inside = generator.random((models + 1, texts)) < 0.5
    losses = generator.uniform(1, 3, texts) - effect * inside + generator.normal(0, 0.15, inside.shape)
    return losses[0], losses[1:], inside[1:], inside[0]


def area(scores, member):
    return stats.auc(scores[member], scores[~member])


# RMIA


def test_the_ratio_of_rmia_is_the_probability_over_the_mean_of_both_sides():
    target = -np.log([0.9, 0.7, 0.5])
    # Both sides; trained on by both, so p_out = (0.7 - 0.2) / 0.8; by neither, so p_in = 0.8 * 0.4 + 0.2.
    usual = [(0.8 + 0.4) / 2, (0.7 + 0.625) / 2, (0.52 + 0.4) / 2]
    found = rmia.online(target, LOSSES, INSIDE, correction=0.8)
    assert np.exp(found) == pytest.approx(np.divide([0.9, 0.7, 0.5], usual))
    # Without it only: 0.4, none and so the mean of the others, 0.4.
    found = rmia.offline(target, LOSSES, INSIDE, correction=0.8)
    assert np.exp(found) == pytest.approx(np.array([0.9, 0.7, 0.5]) / ((1.8 * 0.4 + 0.2) / 2))


def test_a_probability_that_the_line_would_put_below_zero_is_zero():
    found = rmia.online([0.0], -np.log([[0.1]]), [[True]], correction=0.5)
    assert np.exp(found) == pytest.approx([1 / 0.05])


def test_the_fitted_correction_finds_the_line_and_is_one_without_training():
    p_out = np.linspace(0.1, 0.9, 50)
    losses, inside = -np.log([p_out, 0.7 * p_out + 0.3]), np.repeat([[False], [True]], 50, axis=1)
    assert rmia.fitted_correction(losses, inside) == pytest.approx(0.7)
    assert rmia.fitted_correction(losses[[0, 0]], inside) == 1
    assert rmia.fitted_correction(losses, ~inside) == 1, "training never lowers a probability"


def test_the_population_changes_the_scores_of_rmia_and_not_their_order():
    ratios, population = np.random.default_rng(0).normal(size=(2, 200))
    for gamma in (1.0, 2.0):
        by_pairs = (np.exp(ratios[:, None] - population) >= gamma).mean(1)
        scores = rmia.against(ratios, population, gamma=gamma)
        assert scores == pytest.approx(by_pairs)
        assert (np.diff(scores[np.argsort(ratios)]) >= 0).all()
    assert rmia.against([0.0, 0.1, -0.1], [0.0, 0.0]).tolist() == [1, 1, 0], "equal counts as beaten"


def test_with_one_reference_and_correction_one_rmia_ranks_as_the_difference_of_losses():
    target, losses, _, _ = made(models=1)
    outside = np.zeros_like(losses, dtype=bool)
    for form in (rmia.online, rmia.offline):
        ratios = form(target, losses, outside, correction=1)
        assert ratios == pytest.approx(losses[0] - target)


def test_rmia_beats_the_loss_and_finds_nothing_without_training():
    for models in (1, 2, 5):
        target, losses, inside, member = made(models)
        correction = rmia.fitted_correction(losses, inside)
        ratios = rmia.online(target, losses, inside, correction=correction)
        assert area(ratios, member) > area(-target, member) + 0.1
        target, losses, inside, member = made(models, effect=0.0)
        assert abs(area(rmia.online(target, losses, inside, correction=1), member) - 0.5) < 0.05


# BaVarIA


def test_bavaria_is_the_students_distribution_of_two_values_by_hand():
    # Mean 3, variance 2, six degrees of freedom; of the others mean 0, and the same variance and degrees.
    values, inside = np.array([[2.0], [4.0], [-1.0], [1.0]]), np.array([[True], [True], [False], [False]])
    assert bavaria.online([3.0], values, inside) == pytest.approx([3.5 * np.log1p(9 / (5 / 3) / 6)])
    assert bavaria.offline([0.0], values, inside) == pytest.approx([np.log(2)])


def test_bavaria_becomes_the_ratio_with_own_variances_as_models_are_added():
    generator = np.random.default_rng(0)
    inside = generator.random((4000, 3)) < 0.5
    values = generator.normal(inside * [1.0, 2.0, 0.5], [0.5, 1.0, 2.0])
    target = np.array([0.8, -0.5, 1.0])
    own = lira.online(target, values, inside, fixed_variance=False)
    assert bavaria.online(target, values, inside) == pytest.approx(own, abs=0.02)
    upper_tail = -norm.logsf(lira.offline(target, values, inside, fixed_variance=False))
    assert bavaria.offline(target, values, inside) == pytest.approx(upper_tail, abs=0.02)


def test_bavaria_survives_a_handful_of_models_where_own_variances_do_not():
    target, losses, inside, member = made(models=4)
    scores = bavaria.online(-target, -losses, inside)
    own = lira.online(-target, -losses, inside, fixed_variance=False)
    assert np.isfinite(scores).all() and area(scores, member) > area(own, member) + 0.03
    one = bavaria.online(-target, -losses[:1], inside[:1])
    assert np.isfinite(one).all(), "no text has two values, so the spread of all texts is its variance"


# Quantile regression


def test_the_margin_is_the_distance_to_the_quantile_of_texts_alike():
    generator = np.random.default_rng(0)
    kind = np.arange(4000) % 2
    known = generator.normal(10.0 * kind, 1 + kind)
    rows = kind[:, None].astype(float)
    for level in (0.5, 0.9):
        margin = quantile.margins([0.0, 10.0], [[0.0], [1.0]], known, rows, level=level)
        assert margin == pytest.approx(-norm.ppf(level) * np.array([1, 2]), abs=0.15)


def test_texts_are_measured_without_a_model():
    found = quantile.features(["a1", "", "1" * 1000])
    assert found[:, 0].tolist() == [2, 0, 1000] and found[:, 2].tolist() == [0.5, 0, 1]
    assert found[2, 1] < 0.05 and found.shape == (3, 3)


@pytest.mark.parametrize(
    ("field", "call"),
    [
        ("losses", lambda: rmia.online([0.0], [[0.0]], [[True, False]], correction=1)),
        ("losses", lambda: rmia.fitted_correction(np.zeros((0, 1)), np.zeros((0, 1), bool))),
        ("inside", lambda: rmia.fitted_correction([[0.0]], [[True]])),
        ("inside", lambda: rmia.offline([0.0], [[0.0]], [[True]], correction=1)),
        ("correction", lambda: rmia.online([0.0], [[0.0]], [[True]], correction=0)),
        ("correction", lambda: rmia.offline([0.0], [[0.0]], [[False]], correction=1.1)),
        ("population", lambda: rmia.against([0.0], [])),
        ("gamma", lambda: rmia.against([0.0], [0.0], gamma=0)),
        ("target", lambda: bavaria.online([0.0, 1.0], [[0.0]], [[True]])),
        ("inside", lambda: bavaria.offline([0.0], [[0.0]], [[True]])),
        ("target", lambda: quantile.margins([0.0], np.zeros((2, 1)), [0.0], [[0.0]], level=0.5)),
        ("population_target", lambda: quantile.margins([0.0], [[0.0]], [], np.zeros((0, 1)), level=0.5)),
        ("level", lambda: quantile.margins([0.0], [[0.0]], [0.0], [[0.0]], level=1)),
    ],
)
def test_invalid_input_is_refused(field, call):
    with pytest.raises(InvalidParameter, match=field):
        call()
