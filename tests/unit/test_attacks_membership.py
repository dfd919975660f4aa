"""Threshold attacks, levels, the choice among attacks, and who is rare."""

import math

import numpy as np
import pytest

from privhelpers import stats
from privhelpers.attacks import controls, groups, membership, scores
from privhelpers.attacks.scores import Arms
from privhelpers.errors import ControlFailed, InvalidParameter


def arms(shift=0.0, patients=150, notes=2, seed=0, letter=""):
    generator = np.random.default_rng(seed)
    level = generator.normal(size=(2, patients)).repeat(notes, axis=1) + generator.normal(
        size=(2, patients * notes)
    )
    names = np.arange(patients).repeat(notes)
    members = np.array([f"p{letter}{n:04d}" for n in names])
    others = np.array([f"h{letter}{n:04d}" for n in names])
    return Arms(level[0] + shift, members, level[1], others)


def test_the_threshold_is_the_mean_training_loss_and_equality_is_no_member():
    attack = membership.yeom_attack([1.0, 2.0, 3.0], [2.0, 1.9, 4.0, 5.0])
    assert attack.threshold == 2.0
    assert attack.true_positive_rate == pytest.approx(1 / 3)
    assert attack.false_positive_rate == 0.25
    assert attack.membership_advantage == pytest.approx(1 / 3 - 1 / 4)


def test_groups_keep_the_threshold_of_the_notes():
    losses, owners = [1.0, 1.0, 1.0, 5.0], ["a", "a", "a", "b"]
    means, _ = groups.group_means(losses, owners)
    by_note = membership.yeom_attack(losses, [3.0])
    by_patient = membership.yeom_attack(means, [1.5], threshold=by_note.threshold)
    assert by_note.threshold == by_patient.threshold == 2.0  # the patients' own mean would be 3
    assert by_patient.true_positive_rate == 0.5 and by_patient.false_positive_rate == 1.0


@pytest.mark.parametrize("bad", [[], [float("nan")]])
def test_losses_that_are_none_are_refused(bad):
    with pytest.raises(InvalidParameter, match="nonmember_losses"):
        membership.yeom_attack([1.0], bad)


def test_one_bootstrap_gives_what_the_single_intervals_give():
    one = arms(1.0)
    found = scores.measure(one, draws=200, seed=3)
    assert found.auc == stats.auc_interval(*one, draws=200, seed=3)
    assert found.tpr_at_1pct_fpr == stats.tpr_at_fpr_interval(*one, 0.01, draws=200, seed=3)
    assert found.tpr_at_01pct_fpr == stats.tpr_at_fpr_interval(*one, 0.001, draws=200, seed=3)
    assert found.advantage == stats.membership_advantage(one.member_scores, one.control_scores)
    assert found.n == (300, 300)
    assert found.as_json()["auc"] == [found.auc.estimate, found.auc.low, found.auc.high]


def test_the_area_is_that_of_mann_whitney_not_of_the_hull():
    one = Arms(np.array([0.0, 4, 6, 7]), np.arange(4), np.array([1.0, 2, 3, 5]), np.arange(4, 8))
    assert scores.measure(one, draws=10).auc.estimate == 11 / 16  # the hull has 13/16


def test_a_patient_has_one_score_the_mean_of_its_notes():
    one = Arms(np.array([1.0, 3.0, 9.0]), np.array(["a", "a", "b"]), np.array([0.0]), np.array(["c"]))
    own = one.by_patient()
    assert own.member_scores.tolist() == [2.0, 9.0] and own.member_patients.tolist() == ["a", "b"]
    assert own.control_scores.tolist() == [0.0]


def test_averaging_the_notes_of_a_patient_helps_when_notes_err_apart():
    one = arms(1.0, notes=6)
    assert (
        scores.measure(one.by_patient(), draws=10).auc.estimate > scores.measure(one, draws=10).auc.estimate
    )


def test_split_and_only_keep_scores_with_their_patients():
    one = scores.split([1, 2, 3, 4], ["a", "b", "c", "d"], [True, False, True, False])
    assert one.member_patients.tolist() == ["a", "c"] and one.control_scores.tolist() == [2.0, 4.0]
    few = one.only({"c", "d"})
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


def test_the_choice_finds_a_strong_attack_and_both_halves_are_apart():
    attacks = {"weak": arms(0.0), "strong": arms(2.0)}
    choice = scores.choose(attacks, draws=100)
    assert choice.name == "strong" and choice.measured.auc.low > 0.8
    assert choice.measured.n == (150, 150)
    with pytest.raises(InvalidParameter, match="attacks"):
        scores.choose({})


def test_nulls_pass_on_noise_and_stop_a_target_that_was_not_trained():
    found = controls.check_nulls("noise", arms(0.0), trained=False, draws=100)
    assert set(found) == {"held_out", "permuted", "untrained"}
    assert set(controls.check_nulls("real", arms(2.0), trained=True, draws=100)) == {"held_out", "permuted"}
    with pytest.raises(ControlFailed, match="loss, patient, untrained control"):
        controls.check_nulls("loss, patient", arms(2.0), trained=False, draws=100)


def test_rarity_follows_the_list_of_conditions():
    notes = [{"condition": c} for c in ("Hypertension", "COPD", "Porphyria")]
    assert groups.rarity(notes).tolist() == ["common", "mid", "rare"]


def test_profile_probability_counts_what_a_patient_does_not_have():
    profiles = {"a": frozenset("xy"), "b": frozenset("x"), "c": frozenset("x"), "d": frozenset("z")}
    found = groups.profile_log_probability(profiles)
    assert math.exp(found["a"]) == pytest.approx(3 / 4 * 1 / 4 * 3 / 4)
    assert math.exp(found["b"]) == pytest.approx(3 / 4 * 3 / 4 * 3 / 4)
    assert math.exp(found["d"]) == pytest.approx(1 / 4 * 3 / 4 * 1 / 4)
    with pytest.raises(InvalidParameter, match="nobody"):
        groups.profile_log_probability({})


def test_profiles_and_admissions_come_from_the_notes():
    notes = [
        {"patient_id": "p1", "admission": 0, "condition": "x"},
        {"patient_id": "p1", "admission": 1, "condition": "y"},
        {"patient_id": "p2", "admission": 0, "condition": "x"},
    ]
    assert groups.disease_profiles(notes) == {"p1": frozenset("xy"), "p2": frozenset("x")}
    assert groups.admissions(notes).tolist() == ["p1/0", "p1/1", "p2/0"]


def test_equal_buckets_hold_equally_many():
    buckets = groups.equal_buckets(np.arange(100), 4)
    assert np.bincount(buckets).tolist() == [25, 25, 25, 25]
    assert len(set(groups.equal_buckets([1.0, 1.0, 1.0, 2.0], 2)[:3])) == 1


def test_levels_average_admissions_and_patients():
    notes = [{"patient_id": p, "admission": a} for p, a in [("a", 0), ("a", 0), ("a", 1), ("b", 0)]]
    found = scores.levels([1.0, 3.0, 8.0, 5.0], notes, [True, True, True, False])
    assert found["sample"].member_scores.tolist() == [1.0, 3.0, 8.0]
    assert found["admission"].member_scores.tolist() == [2.0, 8.0]
    assert found["admission"].member_patients.tolist() == ["a", "a"]
    assert found["patient"].member_scores.tolist() == [4.0]
    assert found["patient"].control_scores.tolist() == [5.0]


def test_the_leakage_at_a_threshold_is_that_of_the_attack():
    one = arms(1.0)
    attack = membership.yeom_attack(-one.member_scores, -one.control_scores)
    found = scores.leakage_at(one, -attack.threshold, draws=200)
    assert found.estimate == pytest.approx(attack.membership_advantage)
    assert found.low < found.estimate < found.high
    own = Arms(*one, threshold=-attack.threshold)
    assert scores.measure(own, draws=200).leakage == found and own.only({"p0001"}).threshold == own.threshold
