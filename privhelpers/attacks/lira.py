"""The likelihood-ratio attack: is this loss more likely of a model trained with the text, or without it?

Shadow models give, for every text, some losses with it among the training data and some without. A normal
distribution is fitted to each, and the target's own value is compared with both (online) or with the
second alone (offline). Scores are HIGHER for texts that look more like members.

>>> inside = np.array([[True], [True], [False], [False]])
>>> values = np.array([[2.0], [4.0], [-1.0], [1.0]])
>>> online([3.0], values, inside, fixed_variance=True).round(3).tolist()
[4.5]

Sources: Carlini et al. 2022, sections IV and V.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from privhelpers import validate
from privhelpers.errors import InvalidParameter

_LEAST_SPREAD = 1e-30  # identical shadow values have a likelihood, not a division by zero


def logit_statistic(losses: ArrayLike) -> np.ndarray:
    """Return log(p / (1 - p)) of the mean probability p = exp(-loss), which is nearer to normal than p.

    Args:
        losses: mean loss of each text, nats per token, 0 or more.

    Source: Carlini et al. 2022, section V-A, for one label; here p is the geometric mean over the tokens.

    >>> logit_statistic(-np.log([0.85, 0.4])).round(6).tolist()
    [1.734601, -0.405465]
    """
    losses = validate.array("losses", losses, float)
    if (losses < 0).any() or not np.isfinite(losses).all():
        raise InvalidParameter("losses: must be finite and 0 or more")
    return -losses - np.log(-np.expm1(-np.maximum(losses, 1e-12)))


def _fit(values: ArrayLike, present: ArrayLike, *, fixed_variance: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation of a normal distribution for each text, shape [texts] each.

    Args:
        values: statistic of each text under each shadow model, shape [models, texts].
        present: which of them count, same shape.
        fixed_variance: one variance for all texts, pooled around the mean of each; better below about 32
            shadow models. A text without any value gets the average mean of the others, and one with fewer
            than two, which show no spread, the average deviation.

    Raises:
        InvalidParameter: shapes differ, or no value counts.
    """
    values, present = validate.array("values", values, float), validate.array("present", present, bool)
    if values.ndim != 2 or values.shape != present.shape:
        raise InvalidParameter(
            f"values {values.shape} and present {present.shape}: must be [models, texts] both"
        )
    counts = present.sum(0)
    if not counts.any():
        raise InvalidParameter("present: no value counts")
    known = counts > 0
    mean = np.where(present, values, 0).sum(0) / np.maximum(counts, 1)
    mean = np.where(known, mean, mean[known].mean())
    squares = np.where(present, (values - mean) ** 2, 0).sum(0)
    if fixed_variance:
        return mean, np.full(len(mean), np.sqrt(squares.sum() / counts.sum())) + _LEAST_SPREAD
    deviation = np.sqrt(squares / np.maximum(counts, 1))
    spread = counts > 1
    usual = deviation[spread].mean() if spread.any() else 0.0
    return mean, np.where(spread, deviation, usual) + _LEAST_SPREAD


def online(target: ArrayLike, values: ArrayLike, inside: ArrayLike, *, fixed_variance: bool) -> np.ndarray:
    """Return the log-likelihood ratio of each text: trained with it against trained without it.

    Args:
        target: statistic of each text under the attacked model, shape [texts].
        values: the same under each shadow model, shape [models, texts].
        inside: whether the text was in that model's training data, same shape.
        fixed_variance: one variance for all texts on each side; see `fit`.

    Source: Carlini et al. 2022, algorithm 1.
    """
    inside, target = validate.array("inside", inside, bool), validate.array("target", target, float)
    member = _fit(values, inside, fixed_variance=fixed_variance)
    other = _fit(values, ~inside, fixed_variance=fixed_variance)
    return norm.logpdf(target, *member) - norm.logpdf(target, *other)


def offline(target: ArrayLike, values: ArrayLike, inside: ArrayLike, *, fixed_variance: bool) -> np.ndarray:
    """Return how many deviations each text lies above what models without it give.

    One-sided: a text that the target knows unusually badly is not called a member. The published probability
    Pr[Z < value] is the normal distribution function of this number and ranks the same.

    Args:
        target, values, inside, fixed_variance: as of `online`; the values of models that trained with the
            text are left out, so that shadow models which never saw it suffice.

    Source: Carlini et al. 2022, section V-B.
    """
    inside, target = validate.array("inside", inside, bool), validate.array("target", target, float)
    mean, deviation = _fit(values, ~inside, fixed_variance=fixed_variance)
    return (target - mean) / deviation


def all_forms(target: ArrayLike, values: ArrayLike, inside: ArrayLike) -> dict[str, np.ndarray]:
    """Return the scores of the four forms: online and offline, each with both kinds of variance."""
    forms = {"online": online, "offline": offline}
    return {
        f"lira_{name}_{kind}": form(target, values, inside, fixed_variance=kind == "fixed")
        for name, form in forms.items()
        for kind in ("fixed", "each")
    }
