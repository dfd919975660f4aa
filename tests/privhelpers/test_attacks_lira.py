"""The likelihood-ratio attack against the published vectors."""

import numpy as np
import pytest
from scipy.stats import norm

from privhelpers import stats
from privhelpers.attacks import lira

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


def test_ratio_beats_the_value_itself_when_texts_differ_in_difficulty():
    generator = np.random.default_rng(0)
    texts, models = 600, 16
    difficulty, inside = generator.normal(0, 3, texts), generator.random((models, texts)) < 0.5
    member = generator.random(texts) < 0.5

    def draw(mask):
        return difficulty + mask + generator.normal(0, 0.5, np.shape(mask))

    values, target = draw(inside), draw(member)
    plain = stats.auc(target[member], target[~member])
    for name, scores in lira.all_forms(target, values, inside).items():
        assert stats.auc(scores[member], scores[~member]) > plain + 0.2, name
    nothing = lira.online(draw(0 * member), values, inside, fixed_variance=True)
    assert abs(stats.auc(nothing[member], nothing[~member]) - 0.5) < 0.1
