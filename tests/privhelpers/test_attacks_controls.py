"""The nulls that every attack is held against."""

import numpy as np
import pytest

from privhelpers import rng, stats
from privhelpers.attacks import controls
from privhelpers.attacks.scores import half_against_half, half_of_patients
from privhelpers.errors import ControlFailed
from privhelpers.stats import Interval


def scores_of(seed, patients=120, shift=0.0):
    """Scores of three notes a patient, correlated within the patient."""
    generator = rng.make(seed, "test controls")
    level = np.repeat(generator.normal(size=patients), 3)
    return level + generator.normal(size=3 * patients) + shift, np.repeat(np.arange(patients), 3)


def test_a_patient_lies_on_one_side_and_the_sides_are_equal():
    patients = np.repeat(np.arange(41), 3)
    side = half_of_patients(patients, seed=1)
    assert all(len(set(side[patients == p])) == 1 for p in range(41))
    assert len(set(patients[side])) == 20
    assert not np.array_equal(side, half_of_patients(patients, seed=2))


def test_halves_of_several_scores_a_note_keep_their_columns():
    scores, patients = scores_of(0)
    halves = half_against_half(np.column_stack([scores, -scores]), patients, 0)
    one = half_against_half(scores, patients, 0)
    assert np.array_equal(halves.member_scores[:, 0], one.member_scores)
    assert np.array_equal(halves.control_scores[:, 1], -one.control_scores)


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_the_level_of_the_interval_enters(level):
    from scipy.stats import norm

    width = norm.isf((1 - level) / 2)  # a standard error of 1
    controls.require_null("inside", Interval(4.4, 4.4 - width, 4.4 + width, level, "x"), null=0)
    with pytest.raises(ControlFailed):
        controls.require_null("outside", Interval(4.6, 4.6 - width, 4.6 + width, level, "x"), null=0)
    with pytest.raises(ControlFailed, match="no number"):
        controls.require_null("no number", Interval(np.nan, 0.4, 0.6, level, "x"))


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("hits", [0, 40])
def test_a_rule_that_hits_only_members_is_refused_and_silence_claims_little(hits):
    member = np.arange(700) < hits
    interval = stats.paired_rate_difference(member, np.zeros(700), np.arange(700) % 14)
    if hits:
        with pytest.raises(ControlFailed, match="strict rule"):
            controls.require_null("strict rule", interval, null=0)
    else:
        controls.require_null("strict rule", interval, null=0)
        assert interval.high == pytest.approx(stats.clopper_pearson(0, 14).high)
