"""RMIA: how much better does the target know this text than other models do, compared with a population?

The ratio of a text is its probability under the target, divided by its usual probability: the mean over
models trained with the text and models trained without it. The score is the share of a population, texts on
which no model was trained, whose own ratio it beats. All texts meet the same population, so this changes no
order except for ties; it tells which share of other texts a threshold would accuse.

>>> losses, inside = np.log([[2.0], [4.0]]), np.array([[True], [False]])  # p is 1/2 with it, 1/4 without
>>> ratio = online(-np.log([0.75]), losses, inside, correction=1.0)       # 0.75 / 0.375
>>> np.exp(ratio).round(6).tolist(), against(ratio, np.log([1.0, 1.5, 2.5, 3.0])).tolist()
([2.0], [0.5])

Source: Zarifzadeh, Liu and Shokri 2024, section 3; the ratio of an offline attack as in its appendix.
"""

import numpy as np
from numpy.typing import ArrayLike

from privhelpers import validate
from privhelpers.errors import InvalidParameter


def _checked(losses: ArrayLike, inside: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    losses, inside = validate.array("losses", losses, float), validate.array("inside", inside, bool)
    if losses.ndim != 2 or losses.shape != inside.shape or not len(losses):
        raise InvalidParameter(
            f"losses {losses.shape} and inside {inside.shape}: must be [models, texts] both"
        )
    return losses, inside


def _mean(values: np.ndarray, present: np.ndarray) -> np.ndarray:
    """Return the mean of each text over some models, NaN where none counts, shape [texts]."""
    counts = present.sum(0)
    return np.where(counts > 0, np.where(present, values, 0).sum(0) / np.maximum(counts, 1), np.nan)


def fitted_correction(losses: ArrayLike, inside: ArrayLike) -> float:
    """Return the `a` for which p_in = a * p_out + (1 - a) holds on average over the reference models.

    The paper selects `a` from a grid by attacks on one reference model with others. This needs one alone.

    Args:
        losses: mean loss of each text under each reference model, nats per token, shape [models, texts].
        inside: whether the text was in that model's training data, same shape.

    Returns:
        `a` above 0 and at most 1, which means that training changes nothing.

    Raises:
        InvalidParameter: shapes differ, or no text was trained on, or all were by every model.
    """
    losses, inside = _checked(losses, inside)
    if inside.all() or not inside.any():
        raise InvalidParameter("inside: must have a text that was trained on and one that was not")
    unsure = -np.expm1(-losses)
    least = max(unsure[~inside].mean(), np.finfo(float).tiny)
    return float(np.clip(unsure[inside].mean() / least, np.finfo(float).eps, 1))  # with 0, no way back


def online(target: ArrayLike, losses: ArrayLike, inside: ArrayLike, *, correction: float) -> np.ndarray:
    """Return the log of the ratio of each text, with reference models on both sides, shape [texts].

    Args:
        target: mean loss of each text under the attacked model, nats per token, shape [texts].
        losses, inside: as of `fitted_correction`.
        correction: the `a` that gives a text without models on one side its probability there; in (0, 1].

    Raises:
        InvalidParameter: shapes differ, or the correction is out of range.
    """
    (losses, inside), target = _checked(losses, inside), validate.array("target", target, float)
    correction = validate.probability(correction=correction)
    p = np.exp(-losses)
    p_in, p_out = _mean(p, inside), _mean(p, ~inside)
    p_in = np.where(np.isnan(p_in), correction * p_out + 1 - correction, p_in)
    p_out = np.where(np.isnan(p_out), np.maximum(0, p_in - 1 + correction) / correction, p_out)
    return -target - np.log((p_in + p_out) / 2)


def offline(target: ArrayLike, losses: ArrayLike, inside: ArrayLike, *, correction: float) -> np.ndarray:
    """Return the log of the ratio of each text, from reference models trained without it, shape [texts].

    A text on which every reference model was trained gets the mean of the others, as in `lira`.

    Args:
        target, losses, inside: as of `online`.
        correction: the `a` of p_in = a * p_out + (1 - a); 1 compares the target with p_out alone.

    Raises:
        InvalidParameter: as of `online`, or every model was trained on every text.
    """
    (losses, inside), target = _checked(losses, inside), validate.array("target", target, float)
    correction = validate.probability(correction=correction)
    p_out = _mean(np.exp(-losses), ~inside)
    if np.isnan(p_out).all():
        raise InvalidParameter("inside: every model was trained on every text; use `online`")
    p_out = np.where(np.isnan(p_out), np.nanmean(p_out), p_out)
    return -target - np.log(((1 + correction) * p_out + 1 - correction) / 2)


def against(ratios: ArrayLike, population: ArrayLike, *, gamma: float = 1.0) -> np.ndarray:
    """Return the share of a population that each text beats by a factor, in [0, 1], shape [texts].

    Args:
        ratios: log ratios of texts, as of `online` or `offline`.
        population: log ratios of other texts, which neither the target nor a reference model was trained on.
        gamma: the factor, above 0. It moves all scores down, in the same order.

    Raises:
        InvalidParameter: the population is empty, or gamma is out of range.
    """
    ratios, population = (
        validate.array(name, values, float)
        for name, values in (("ratios", ratios), ("population", population))
    )
    if population.ndim != 1 or not population.size:
        raise InvalidParameter("population: must be one log ratio a text, and at least one")
    gamma = validate.positive(gamma=gamma)
    return np.searchsorted(np.sort(population), ratios - np.log(gamma), side="right") / population.size
