"""Threshold attacks, levels, the choice among attacks, and who is rare."""

import numpy as np
import pytest

from privhelpers import stats
from privhelpers.attacks import controls, scores
from privhelpers.attacks.scores import Arms, half_of_patients
from privhelpers.errors import ControlFailed


def arms(shift=0.0, patients=150, notes=2, seed=0, letter=""):
    generator = np.random.default_rng(seed)
    level = generator.normal(size=(2, patients)).repeat(notes, axis=1) + generator.normal(
        size=(2, patients * notes)
    )
    names = np.arange(patients).repeat(notes)
    members = np.array([f"p{letter}{n:04d}" for n in names])
    others = np.array([f"h{letter}{n:04d}" for n in names])
    return Arms(level[0] + shift, members, level[1], others)


def test_no_hit_among_few_patients_is_no_proof_of_none():
    owners = np.arange(120)
    for notes in (1, 3):  # the notes of a patient are no more patients
        names = owners.repeat(notes)
        below = Arms(names - 500.0, names, 1.0 * names, names + 500, threshold=1e9)
        measured = scores.measure(below, draws=50)
        most = stats.clopper_pearson(0, 120).high
        for rate in (measured.tpr_at_01pct_fpr, measured.tpr_at_1pct_fpr, measured.auc):
            assert (rate.estimate, rate.low, rate.high) == (0, 0, pytest.approx(most))
        # "Member" was said of no one, which leaves room for a difference either way.
        leakage = measured.leakage
        assert (leakage.low, leakage.estimate, leakage.high) == (pytest.approx(-most), 0, pytest.approx(most))


@pytest.mark.parametrize(("rest", "place"), [(-1.0, 991.5), (5000.0, 998.5)])
def test_a_lower_rate_of_wrong_accusations_has_no_higher_end(rest, place):
    """One member stands out among the others, or hides, and eight controls or one lie above that one."""
    members = np.r_[np.full(199, rest), place], np.arange(200)
    measured = scores.measure(Arms(*members, np.arange(1000.0), np.arange(200, 1200)), draws=200)
    for end in ("low", "estimate", "high"):
        assert getattr(measured.tpr_at_01pct_fpr, end) <= getattr(measured.tpr_at_1pct_fpr, end), end


def test_the_winner_of_many_worthless_attacks_is_flattered_only_where_it_was_chosen():
    gaps, measured = [], []
    for seed in range(12):
        attacks = {f"a{i}": arms(seed=100 * seed + i) for i in range(15)}
        choice = scores.select_attack(attacks, draws=100, seed=seed)
        gaps.append(choice.flattered - 0.5)
        measured.append(choice.measured.auc.estimate - 0.5)
    assert min(gaps) > 0  # the best of 15 always looks better than chance where it was chosen
    assert abs(np.mean(measured)) < 0.02 < np.mean(gaps)


def test_nulls_pass_on_noise_and_stop_a_target_that_was_not_trained():
    nulls = controls.check_nulls("noise", arms(0.0), trained=False, draws=100)
    assert set(nulls) == {"held_out", "permuted", "untrained"}
    assert set(controls.check_nulls("real", arms(2.0), trained=True, draws=100)) == {"held_out", "permuted"}
    with pytest.raises(ControlFailed, match="loss, patient, untrained control"):
        controls.check_nulls("loss, patient", arms(2.0), trained=False, draws=100)


def test_levels_average_admissions_and_patients():
    notes = [{"patient_id": p, "admission": a} for p, a in [("a", 0), ("a", 0), ("a", 1), ("b", 0)]]
    levels = scores.levels([1.0, 3.0, 8.0, 5.0], notes, [True, True, True, False])
    assert levels["sample"].member_scores.tolist() == [1.0, 3.0, 8.0]
    assert levels["admission"].member_scores.tolist() == [2.0, 8.0]
    assert levels["admission"].member_patients.tolist() == ["a", "a"]
    assert levels["patient"].member_scores.tolist() == [4.0]
    assert levels["patient"].control_scores.tolist() == [5.0]


# The nulls that every attack is compared with.


def test_a_patient_lies_on_one_side_and_the_sides_are_equal():
    patients = np.repeat(np.arange(41), 3)
    side = half_of_patients(patients, seed=1)
    assert all(len(set(side[patients == p])) == 1 for p in range(41))
    assert len(set(patients[side])) == 20
    assert not np.array_equal(side, half_of_patients(patients, seed=2))


@pytest.mark.parametrize("level", [0.9, 0.95, 0.99])
def test_the_level_of_the_interval_enters(level):
    from scipy.stats import norm

    width = norm.isf((1 - level) / 2)  # a standard error of 1
    controls.require_null("inside", stats.Interval(4.4, 4.4 - width, 4.4 + width, level, "x"), null=0)
    with pytest.raises(ControlFailed):
        controls.require_null("outside", stats.Interval(4.6, 4.6 - width, 4.6 + width, level, "x"), null=0)
    with pytest.raises(ControlFailed, match="no number"):
        controls.require_null("no number", stats.Interval(np.nan, 0.4, 0.6, level, "x"))


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


def test_one_bootstrap_gives_what_the_single_intervals_give():
    both_arms = arms(1.0)
    measured = scores.measure(both_arms, draws=200, seed=3)
    assert measured.auc == stats.auc_interval(*both_arms, draws=200, seed=3)
    curve = stats.roc_curve(*both_arms, fpr=[0.001, 0.01], draws=200, seed=3)
    for place, rate in enumerate((measured.tpr_at_01pct_fpr, measured.tpr_at_1pct_fpr)):
        assert (rate.estimate, rate.low, rate.high) == (curve.tpr[place], curve.low[place], curve.high[place])
    assert measured.as_json()["auc"] == [measured.auc.estimate, measured.auc.low, measured.auc.high]
