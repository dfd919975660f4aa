"""BaVarIA: the likelihood ratio of `lira`, with a prior for what is unknown of a text's mean and variance.

From two or three shadow models, a text's own variance is often far too small, and one variance for all texts
ignores that some vary more. A normal-inverse-gamma prior leads from one to the other as models are added, and
the value that one more model would give follows a Student distribution (BaVarIA-t). The prior is a usual text
of the same group: its mean and variance and the spread of the means come from all texts, and its variance
counts like four models. How the prior is centered and weighed is our choice.

>>> inside = np.array([[True], [True], [False], [False]])
>>> values = np.array([[2.0], [4.0], [-1.0], [1.0]])
>>> online([3.0], values, inside).round(3).tolist(), online([1.5], values, inside).round(3).tolist()
([2.246], [0.0])

Sources: Brännvall 2026, abstract and section 1; Gelman et al. 2013, section 3.3, for the posterior.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import t

from privhelpers import validate
from privhelpers.errors import InvalidParameter

_PRIOR_MODELS = 4.0  # how many models the prior of the variance counts like
_LEAST_VARIANCE = 1e-30  # identical values have a likelihood, not a division by zero


def _predictive(values: np.ndarray, present: np.ndarray) -> dict[str, np.ndarray]:
    """Return the Student distribution of a new value of each text, shape [texts] each."""
    if not present.any():
        raise InvalidParameter("inside: no value counts on one side")
    counts = present.sum(0)
    usual = values[present].mean()
    mean = np.where(counts > 0, np.where(present, values, 0).sum(0) / np.maximum(counts, 1), usual)
    squares = np.where(present, (values - mean) ** 2, 0).sum(0)
    total, spare = values[present].var(), np.maximum(counts - 1, 0).sum()
    # Without a text that has two values, nothing tells its variance from the spread of the texts.
    within = (squares.sum() / spare if spare else total) + _LEAST_VARIANCE
    between = max(total - within, _LEAST_VARIANCE)
    prior = within / between  # how many models the prior of the mean counts like
    known, degrees = prior + counts, _PRIOR_MODELS + counts
    pull = prior * counts / known * (mean - usual) ** 2
    variance = (_PRIOR_MODELS * within + squares + pull) / degrees
    location = (prior * usual + counts * mean) / known
    return {"df": degrees, "loc": location, "scale": np.sqrt(variance * (1 + 1 / known))}


def _checked(target: ArrayLike, values: ArrayLike, inside: ArrayLike) -> tuple[np.ndarray, ...]:
    target, values = validate.array("target", target, float), validate.array("values", values, float)
    inside = validate.array("inside", inside, bool)
    if values.ndim != 2 or values.shape != inside.shape or target.shape != values.shape[1:]:
        raise InvalidParameter(
            f"target {target.shape}, values {values.shape} and inside {inside.shape}: must be [texts] and "
            "[models, texts] twice"
        )
    return target, values, inside


def online(target: ArrayLike, values: ArrayLike, inside: ArrayLike) -> np.ndarray:
    """Return the log-likelihood ratio of each text: trained with it against trained without it.

    Args:
        target: `lira.logit_statistic` of each text under the attacked model, shape [texts].
        values: the same under each shadow model, shape [models, texts].
        inside: whether the text was in that model's training data, same shape.

    Raises:
        InvalidParameter: shapes differ, or no value counts on one side.
    """
    target, values, inside = _checked(target, values, inside)
    member, other = _predictive(values, inside), _predictive(values, ~inside)
    return t.logpdf(target, **member) - t.logpdf(target, **other)


def offline(target: ArrayLike, values: ArrayLike, inside: ArrayLike) -> np.ndarray:
    """Return how surprisingly high each text is for models without it: minus the log of the upper tail.

    Args:
        target, values, inside: as of `online`; values of models trained with the text are left out.

    Raises:
        InvalidParameter: shapes differ, or no value counts.
    """
    target, values, inside = _checked(target, values, inside)
    return -t.logsf(target, **_predictive(values, ~inside))
