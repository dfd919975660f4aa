"""EZ-MIA and WBC: by hand, against their definitions, where nothing was learned, and what is refused."""

import numpy as np
import pytest

from privhelpers import models, stats
from privhelpers.attacks import controls, scores, signals


def zone(gain, greedy):
    return signals._error_zone(np.array(gain, dtype=float), np.array(greedy, dtype=bool))


def votes(gain):
    return signals._window_votes(np.array(gain, dtype=float))


@pytest.mark.parametrize(
    ("gain", "greedy", "expected"),
    [
        ([2, -1, 9, 1], [0, 0, 1, 0], 3 / 4),  # up 3, down 1; the token that was guessed does not count
        ([2, -1, -9, 1], [0, 0, 1, 0], 3 / 4),
        ([-2, -1], [0, 0], 0),
        ([2, 1], [0, 0], 1),  # nothing went down
        ([-2, -1], [1, 1], 1),  # no error: the highest score
        ([0, 0], [0, 0], 1 / 2),  # errors, and no movement
    ],
)
def test_ezmia_by_hand(gain, greedy, expected):
    assert zone(gain, greedy) == expected


def test_wbc_by_hand():
    """Seven tokens, so that six of the ten sizes are cut to the whole text."""
    gain = [1, -2, 0, 2, 1, -2, 3]
    sums = {size: [sum(gain[i : i + size]) for i in range(8 - size)] for size in (2, 3, 4, 6, 7)}
    assert sums == {2: [-1, -2, 2, 3, -1, 1], 3: [-1, 0, 3, 1, 2], 4: [1, 1, 1, 4], 6: [0, 2], 7: [3]}
    expected = (3 / 6 + 3 / 5 + 4 / 4 + 1 / 2 + 6 * 1) / 10
    assert votes(gain) == pytest.approx(expected)


# From a scored text to the two scores.


@pytest.fixture(scope="module")
def net():
    texts = ["The ward is quiet.", "BP 120/80, Asthma, Albuterol 20 mg. Back in two weeks.", "x"]
    tokenizer = models.train_tokenizer(texts * 5, vocab_size=300)
    return models.build("micro-gpt2", tokenizer, seed=0), tokenizer, texts


def test_ezmia_and_wbc_come_from_the_same_pass_as_the_loss(net):
    measured = signals.measure(*net, lower=False)
    scored = models.score_tokens(*net)
    other = [row - 1.0 for row in scored.log_p]
    found = signals.scores(measured, reference_log_p=other)
    assert found["wbc"].tolist() == [1, 1, 1]
    errors = [not greedy.all() for greedy in scored.greedy]
    assert any(errors) and found["ez_mia"].tolist() == [1, 1, 1]
    worse = signals.scores(measured, reference_log_p=[row + 1.0 for row in scored.log_p])
    assert worse["ez_mia"].tolist() == [0.0 if any_error else 1.0 for any_error in errors]
    assert not {"ez_mia", "wbc"} & set(signals.scores(measured))


# Where there is nothing to find, and where there is.

PATIENTS, NOTES, TOKENS = 150, 2, 60


def hospital(learned, *, seed=0):
    """Scores of notes with heavy-tailed gains; at wrong guesses, those of members are up by `learned`."""
    generator = np.random.default_rng(seed)
    count = 2 * PATIENTS * NOTES
    owners = np.repeat([f"p{n:03d}" for n in range(2 * PATIENTS)], NOTES)
    member = np.arange(count) < count // 2
    greedy = generator.random((count, TOKENS)) < 0.5
    gain = generator.standard_t(1.5, size=greedy.shape) + learned * member[:, None] * ~greedy
    found = {
        "mean": gain.mean(axis=1),
        "ez_mia": np.array([signals._error_zone(*pair) for pair in zip(gain, greedy, strict=True)]),
        "wbc": np.array([signals._window_votes(row) for row in gain]),
    }
    return {name: scores.split(values, owners, member) for name, values in found.items()}


def test_ezmia_and_wbc_find_nothing_where_nothing_was_learned():
    p_values = []
    for seed in range(8):
        for name, arms in hospital(0.0, seed=seed).items():
            nulls = controls.check_nulls(name, arms, trained=False, draws=100)
            assert set(nulls) == {"held_out", "permuted", "untrained"}
            patients = arms.by_patient()
            values = np.concatenate([patients.member_scores, patients.control_scores])
            member = np.arange(values.size) < PATIENTS
            both = stats.permutation_scores(values[:, None], member, draws=199, seed=seed)
            p_values.append([p.item() for p in both])
    assert np.mean(np.array(p_values) <= 0.05) < 0.15 and np.mean(p_values) > 0.35


def test_ezmia_and_wbc_see_what_the_mean_of_heavy_tails_hides():
    arms = hospital(0.6)
    areas = {name: stats.auc_interval(*both, draws=100) for name, both in arms.items()}
    for name in ("ez_mia", "wbc"):
        assert areas[name].low > areas["mean"].high, name
        permuted = controls.check_nulls(name, arms[name], trained=True, draws=100)["permuted"]
        assert permuted[1] < 0.5 < permuted[2] or abs(permuted[0] - 0.5) < 0.06


def test_a_choice_at_a_rate_of_false_alarms_takes_the_few_that_are_sure():
    """ "broad" ranks best on average; "sure" knows one member in five and nothing of the others."""
    generator = np.random.default_rng(3)
    owners = np.array([f"p{n:04d}" for n in range(800)])
    member = np.arange(800) < 400
    broad = generator.normal(size=800) + 0.8 * member
    sure = generator.normal(size=800) + 20 * (member & (np.arange(800) % 5 == 0))
    attacks = {name: scores.split(v, owners, member) for name, v in {"broad": broad, "sure": sure}.items()}
    assert scores.choose(attacks, draws=50).name == "broad"
    won = scores.choose(attacks, fpr=0.01, draws=50)
    assert won.name == "sure" and won.flattered == pytest.approx(0.2, abs=0.07)
    assert won.measured.tpr_at_1pct_fpr.low > 0.1


# In other places.
