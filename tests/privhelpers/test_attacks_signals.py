"""Signals of one scoring pass against the published vectors, and against scoring text by text."""

import zlib

import numpy as np
import pytest
import torch
from scipy.stats import norm

from privhelpers import models, stats
from privhelpers.attacks import controls, lira, scores, signals
from privhelpers.models import scoring

LOG_P = np.log([0.9, 0.5, 0.01, 0.2, 0.7, 0.05, 0.3, 0.8, 0.6, 0.001])
TEXTS = ["The ward is quiet.", "BP 120/80, Asthma, Albuterol 20 mg. Back in two weeks.", "x"]


@pytest.mark.parametrize(
    ("share", "expected"), [(0.1, 6.90775528), (0.2, 5.75646273), (0.3, 4.83621925), (0.5, 3.46441369)]
)
def test_min_k_vectors(share, expected):
    """Published with the opposite sign: there small means member, here large does."""
    assert -signals._min_k(LOG_P, share=share) == pytest.approx(expected, abs=1e-8)


def test_min_k_plus_plus_vectors():
    logits = torch.tensor([[2.0, 1, 0, -1], [0, 0, 0, 0.5], [3, 0, 0, 0]])
    log_p = logits.log_softmax(-1)
    mean, deviation = scoring._vocabulary_moments(log_p[None])
    token_log_p = log_p.gather(1, torch.tensor([[1], [3], [2]]))[:, 0]
    z = signals._standardized(token_log_p, mean[0], deviation[0])
    assert z == pytest.approx([-0.627399, 1.348923, -2.587504], abs=1e-5)


@pytest.fixture(scope="module")
def net():
    tokenizer = models.train_tokenizer(TEXTS * 5, vocab_size=300)
    return models.build("micro-gpt2", tokenizer, seed=0), tokenizer


@pytest.fixture(scope="module")
def measured(net):
    return signals.measure(*net, TEXTS)


def test_one_pass_gives_what_scoring_gives(net, measured):
    plain = models.score(*net, TEXTS)
    assert measured.loss == pytest.approx(plain.losses, abs=1e-6)
    assert measured.tokens.tolist() == plain.tokens.tolist()
    lower = models.score(*net, [text.lower() for text in TEXTS]).losses
    assert measured.lower_loss == pytest.approx(lower)
    scores = signals.scores(measured, {"other": measured.loss + 1})
    assert scores["loss"] == pytest.approx(-measured.loss)
    size = [len(zlib.compress(text.encode())) for text in TEXTS]
    assert scores["zlib"] == pytest.approx(-measured.loss / size)
    assert scores["reference_other"] == pytest.approx(1)
    assert scores["lower_case"] == pytest.approx(measured.lower_loss - measured.loss)


def test_moments_are_those_of_the_predicted_distribution(net):
    model, tokenizer = net
    before = model.training
    token_scores = models.score_tokens(model, tokenizer, TEXTS)
    assert model.training is before
    rows = models.encode(tokenizer, TEXTS, max_length=128).ids
    with torch.inference_mode():
        row = torch.tensor([rows[1]], device=model.device)
        log_p = model(input_ids=row).logits[0, :-1].log_softmax(-1).double().cpu()
    mean = (log_p.exp() * log_p).sum(-1)
    deviation = ((log_p.exp() * log_p**2).sum(-1) - mean**2).sqrt()
    assert token_scores.mean[1] == pytest.approx(mean.numpy(), abs=1e-4)
    assert token_scores.deviation[1] == pytest.approx(deviation.numpy(), abs=1e-3)
    alone = models.score_tokens(model, tokenizer, TEXTS[1:2], batch_size=1)
    assert alone.mean[0] == pytest.approx(token_scores.mean[1], abs=1e-5)


# The likelihood-ratio attack against the published vectors.


TARGET = [1.0, 0.0, 0.0, 0.0]
INSIDE = [[-1, 1], [0, 2], [0, 20], []]
ASYMMETRIC_TARGET = [2.0, 0.1, -1.0]
ASYMMETRIC_IN = [[1.8, 2.2, 2, 1.5], [0.5, 0.9, 0.7, 0.6], [-0.5, 0, -0.2, 0.1]]
ASYMMETRIC_OUT = [[0.5, 0.7, 0.3, 0.6], [0, 0.2, 0.1, -0.1], [-1.1, -0.9, -1.3, -0.8]]


def table(inside, outside):
    """Return values and mask, [models, texts], of lists of values by text."""
    models = max(len(a) + len(b) for a, b in zip(inside, outside, strict=True))
    values, mask = np.zeros((models, len(inside))), np.zeros((models, len(inside)), dtype=bool)
    for text, (a, b) in enumerate(zip(inside, outside, strict=True)):
        values[: len(a) + len(b), text] = [*a, *b]
        mask[: len(a), text] = True
    return values, mask


@pytest.mark.parametrize(
    ("fixed", "expected"),
    [
        (False, [1.41893853, 1.41893853, 3.72152363, 2.72537178]),
        (True, [2.69682468, 2.69682468, 4.15270703, 2.87983121]),
    ],
)
def test_density_inside_vectors(fixed, expected):
    """The published score is minus the log-density; a text without values gets the average of the others."""
    fitted = lira._fit(*table(INSIDE, [[]] * 4), fixed_variance=fixed)
    assert -norm.logpdf(TARGET, *fitted) == pytest.approx(expected, abs=1e-8)


def test_one_value_shows_no_spread():
    """Its deviation is the usual one; with zero its score would be the largest of all, right or wrong."""
    values, inside = table([[5.0], [5.0], [5.0, 5.0]], [[0.0, 2.0], [0.0, 4.0], [1.0]])
    scores = lira.offline([1.5, 3.0, 1.3], values, inside, fixed_variance=False)
    assert scores == pytest.approx([0.5 / 1, 1 / 2, 0.3 / 1.5])


@pytest.mark.parametrize(
    ("fixed", "expected"),
    [
        (False, [-49.05300861, 7.73695075, 7.04911748]),
        (True, [-45.29453410, 3.80059864, 8.00157675]),
    ],
)
def test_asymmetric_vectors(fixed, expected):
    """The published score is minus the log-likelihood ratio: small means member there, large does here."""
    values, inside = table(ASYMMETRIC_IN, ASYMMETRIC_OUT)
    scores = lira.online(ASYMMETRIC_TARGET, values, inside, fixed_variance=fixed)
    assert -scores == pytest.approx(expected, abs=1e-7)


def test_statistic_vectors():
    losses = -np.log([0.85, 0.4])
    assert losses == pytest.approx([0.16251893, 0.91629073], abs=1e-8)
    assert lira.logit_statistic(losses) == pytest.approx([1.73460106, -0.40546511], abs=1e-8)


def test_offline_is_one_sided_and_blind_to_the_inside():
    values, inside = table([[5.0, 6.0]] * 2, [[-1.0, 1.0]] * 2)
    scores = lira.offline([3.0, -3.0], values, inside, fixed_variance=False)
    assert scores == pytest.approx([3.0, -3.0])
    values[inside] = 1e6
    assert lira.offline([3.0, -3.0], values, inside, fixed_variance=False) == pytest.approx([3.0, -3.0])


# EZ-MIA and WBC: by hand, against their definitions, where nothing was learned, and what is refused.


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


def test_ezmia_and_wbc_come_from_the_same_pass_as_the_loss(net):
    measured = signals.measure(*net, TEXTS, lower=False)
    scored = models.score_tokens(*net, TEXTS)
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
    assert scores.select_attack(attacks, draws=50).name == "broad"
    won = scores.select_attack(attacks, fpr=0.01, draws=50)
    assert won.name == "sure" and won.flattered == pytest.approx(0.2, abs=0.07)
    assert won.measured.tpr_at_1pct_fpr.low > 0.1
