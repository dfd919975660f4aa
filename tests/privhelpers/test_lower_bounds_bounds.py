"""Lower bounds on epsilon against published figures, closed forms, and the truth."""

import math

import pytest

from privhelpers import lower_bounds, mechanisms
from privhelpers.errors import AuditContradiction, InvalidParameter

P_VALUES = [  # canaries, guesses, correct, epsilon, delta
    ((100, 10, 9, 0.0, 0.0), 0.0107421875),
    ((1000, 100, 99, 1.0, 1e-6), 5.809124e-5),
    ((1000, 100, 90, 1.0, 1e-5), 8.41288561e-4),
    ((100, 100, 80, 0.5, 1e-3), 0.007767348521),
    ((10, 10, 10, 1.0, 0.1), 0.501246862221),
]
BINOMIAL = [  # canaries, guesses, correct, delta
    ((10, 10, 10, 0.0), 1.051873),
    ((100, 100, 100, 0.0), 3.492965),
    ((1000, 1000, 1000, 0.0), 5.809068),
    ((100, 100, 90, 0.0), 1.630823),
    ((1000, 100, 100, 1e-5), 3.465376),
    ((1000, 100, 90, 1e-5), 1.626144),
    ((1000, 1000, 600, 1e-5), 0.297227),
    ((1000, 500, 490, 1e-5), 3.352306),
]
FDP = [  # canaries, guesses, correct, at delta = 1e-5
    ((100, 10, 10), 1.625892),
    ((1000, 100, 100), 5.549028),
    ((1000, 100, 90), 2.456405),
    ((1000, 500, 490), 6.003874),
    ((1000, 1000, 600), 0.583540),
]
# 10,000 Gaussian scores in and out, `shift` apart, delta = 1e-6: the threshold at which each bound is largest
# among those on the convex hull of the ROC curve, whose number is paid for. (guesses, correct).
GAUSSIAN = {
    1: {
        "truth": 4.886554,
        "hull": 386,
        "one run": ((3376, 2807), 1.13346),
        "f-DP": ((406, 379), 2.164749),
    },
    2: {
        "truth": 10.997151,
        "hull": 374,
        "one run": ((4666, 4499), 2.311945),
        "f-DP": ((938, 934), 4.7218075),
    },
    4: {
        "truth": 26.356964,
        "hull": 140,
        "one run": ((8233, 8223), 4.395568),
        "f-DP": ((5436, 5436), 9.133752),
    },
}


def counts(canaries, guesses, correct):
    return {"canaries": canaries, "guesses": guesses, "correct": correct}


@pytest.mark.parametrize(("given_values", "expected"), P_VALUES)
def test_published_p_values(given_values, expected):
    *numbers, epsilon, delta = given_values
    p_value = lower_bounds.one_run_p_value(**counts(*numbers), epsilon=epsilon, delta=delta)
    assert p_value == pytest.approx(expected, rel=1e-6)


def test_a_p_value_is_a_probability():
    """With so many canaries the failures of probability delta add up to more than 1."""
    assert lower_bounds.one_run_p_value(**counts(1000, 1000, 900), epsilon=1.0, delta=0.9) == 1.0


@pytest.mark.parametrize(("given_values", "expected"), BINOMIAL)
def test_published_binomial_bounds(given_values, expected):
    *numbers, delta = given_values
    assert lower_bounds.one_run_epsilon_lower(**counts(*numbers), delta=delta) == pytest.approx(
        expected, abs=2e-6
    )


@pytest.mark.parametrize(("numbers", "expected"), FDP)
def test_published_f_dp_bounds(numbers, expected):
    assert lower_bounds.fdp_epsilon_lower(**counts(*numbers), delta=1e-5) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize(("canaries", "guesses"), [(100, 100), (1000, 1000), (1000, 100), (7, 2)])
def test_chance_certifies_exactly_nothing(canaries, guesses):
    for correct in (guesses // 2, 0):
        numbers = counts(canaries, guesses, correct)
        assert lower_bounds.one_run_epsilon_lower(**numbers, delta=1e-5) == 0.0
        assert lower_bounds.fdp_epsilon_lower(**numbers, delta=1e-5) == 0.0


@pytest.mark.parametrize("shift", GAUSSIAN)
def test_gaussian_scores_reproduce_the_published_table_and_stay_below_the_truth(shift):
    case = GAUSSIAN[shift]
    searched = {"delta": 1e-6, "searched": case["hull"]}
    truth = mechanisms.gdp_epsilon(mu=float(shift), delta=1e-6)
    assert truth == pytest.approx(case["truth"], abs=1e-6)
    for name, bound in (
        ("one run", lower_bounds.one_run_epsilon_lower),
        ("f-DP", lower_bounds.fdp_epsilon_lower),
    ):
        numbers, expected = case[name]
        lower = bound(**counts(20000, *numbers), **searched)
        assert lower == pytest.approx(expected, abs=2e-5) and lower < truth


def test_replacement_is_two_steps_of_add_or_remove():
    numbers = counts(40, 40, 38)
    pure = lower_bounds.one_run_epsilon_lower(**numbers, delta=0.0)
    swapped = lower_bounds.one_run_epsilon_lower(**numbers, delta=0.0, adjacency=lower_bounds.REPLACEMENT)
    assert swapped == pytest.approx(pure / 2, abs=1e-6)
    # (epsilon, delta) for one step is (2 epsilon, (1 + e^epsilon) delta) for both.
    bound = lower_bounds.one_run_epsilon_lower(**numbers, delta=1e-4, adjacency=lower_bounds.REPLACEMENT)
    twice = 1e-4 * (1 + math.exp(bound))
    assert lower_bounds.one_run_p_value(**numbers, epsilon=2 * bound, delta=twice) == pytest.approx(
        0.05, abs=1e-6
    )


def test_a_contradiction_stops_the_build_and_names_the_run():
    result = lower_bounds.AuditResult(4.5, 1e-5, 0.95, lower_bounds.FDP, 1000, 100, 100)
    with pytest.raises(AuditContradiction, match=r"dp-eps-4: .* 4\.5, .* 4;"):
        lower_bounds.require_below(result, 4.0, what="dp-eps-4")
    lower_bounds.require_below(result, 4.5)
    lower_bounds.require_below(result, math.inf)
    lower_bounds.require_below(0.0, 0.0)
    for lower, upper in ((math.nan, 1.0), (1.0, math.nan)):
        with pytest.raises(AuditContradiction):
            lower_bounds.require_below(lower, upper)
    for lower, upper in (("1", 2.0), (1.0, [2.0]), (None, 2.0)):
        with pytest.raises(InvalidParameter, match="lower, upper"):
            lower_bounds.require_below(lower, upper)
