"""Threshold attacks, levels, the choice among attacks, and who is rare."""

import numpy as np
import pytest
from sklearn.metrics import roc_curve

from privhelpers import stats
from privhelpers.attacks import controls, scores
from privhelpers.attacks.scores import Arms
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


def test_one_bootstrap_gives_what_the_single_intervals_give():
    both_arms = arms(1.0)
    measured = scores.measure(both_arms, draws=200, seed=3)
    assert measured.auc == stats.auc_interval(*both_arms, draws=200, seed=3)
    curve = stats.roc_curve(*both_arms, fpr=[0.001, 0.01], draws=200, seed=3)
    for place, rate in enumerate((measured.tpr_at_01pct_fpr, measured.tpr_at_1pct_fpr)):
        assert (rate.estimate, rate.low, rate.high) == (curve.tpr[place], curve.low[place], curve.high[place])
    fpr, tpr, _ = roc_curve([1] * 300 + [0] * 300, [*both_arms.member_scores, *both_arms.control_scores])
    assert measured.advantage == pytest.approx((tpr - fpr).max(), abs=1e-12)
    assert measured.n == (300, 300)
    assert measured.as_json()["auc"] == [measured.auc.estimate, measured.auc.low, measured.auc.high]


def test_no_hit_among_few_patients_is_no_proof_of_none():
    owners = np.arange(120)
    for notes in (1, 3):  # the notes of a patient are no more patients
        names = owners.repeat(notes)
        below = Arms(names - 500.0, names, 1.0 * names, names + 500, threshold=1e9)
        measured = scores.measure(below, draws=50)
        most = stats.clopper_pearson(0, 120).high
        for rate in (measured.tpr_at_01pct_fpr, measured.tpr_at_1pct_fpr, measured.auc):
            assert (rate.estimate, rate.low, rate.high) == (0, 0, pytest.approx(most))
        # "Member" was said of nobody, which leaves room for a difference either way.
        leakage = measured.leakage
        assert (leakage.low, leakage.estimate, leakage.high) == (pytest.approx(-most), 0, pytest.approx(most))


@pytest.mark.parametrize(("rest", "place"), [(-1.0, 991.5), (5000.0, 998.5)])
def test_a_lower_rate_of_wrong_accusations_has_no_higher_end(rest, place):
    """One member stands out among the others, or hides, and eight controls or one lie above that one."""
    members = np.r_[np.full(199, rest), place], np.arange(200)
    measured = scores.measure(Arms(*members, np.arange(1000.0), np.arange(200, 1200)), draws=200)
    for end in ("low", "estimate", "high"):
        assert getattr(measured.tpr_at_01pct_fpr, end) <= getattr(measured.tpr_at_1pct_fpr, end), end


def test_split_and_only_keep_scores_with_their_patients():
    split = scores.split([1, 2, 3, 4], ["a", "b", "c", "d"], [True, False, True, False])
    assert split.member_patients.tolist() == ["a", "c"] and split.control_scores.tolist() == [2.0, 4.0]
    few = split.only({"c", "d"})
    assert few.member_scores.tolist() == [3.0] and few.control_patients.tolist() == ["d"]


def test_the_winner_of_many_worthless_attacks_is_flattered_only_where_it_was_chosen():
    gaps, measured = [], []
    for seed in range(12):
        attacks = {f"a{i}": arms(seed=100 * seed + i) for i in range(15)}
        choice = scores.choose(attacks, draws=100, seed=seed)
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


def test_the_leakage_at_a_threshold_is_the_difference_of_two_rates():
    both_arms = arms(1.0)
    leakage = scores.leakage_at(both_arms, 0.5, draws=200)
    assert leakage.estimate == pytest.approx(
        np.mean(both_arms.member_scores >= 0.5) - np.mean(both_arms.control_scores >= 0.5)
    )
    assert leakage.low < leakage.estimate < leakage.high
    with_threshold = Arms(*both_arms, threshold=0.5)
    assert (
        scores.measure(with_threshold, draws=200).leakage == leakage
        and with_threshold.only({"p0001"}).threshold == 0.5
    )
