"""Randomized response: each person adds the noise before anyone else sees the answer.

>>> import math
>>> round(truth_probability(epsilon=math.log(3)), 12)  # the two coins: tell the truth, or toss again
0.75
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privhelpers import validate
from privhelpers.errors import InvalidParameter


@dataclass(frozen=True)
class ShareEstimate:
    """What the reports say about the share of true "yes".

    Attributes:
        share: unbiased estimate; on few reports it can fall outside [0, 1], and cutting it would bias it.
        standard_error: of the estimate, from the reports' own spread.
        n: number of reports.
    """

    share: float
    standard_error: float
    n: int


def _bits(name: str, values: ArrayLike) -> NDArray[np.bool_]:
    array = np.asarray(values)
    if array.ndim != 1 or array.size == 0 or not np.isin(array, (0, 1)).all():
        raise InvalidParameter(f"{name}: must be a row of at least one 0 or 1")
    return array.astype(bool)


def truth_probability(*, epsilon: float) -> float:
    """Return the probability of a true report, e^epsilon / (1 + e^epsilon).

    Args:
        epsilon: 0 or more; 0 is a fair coin.

    Raises:
        InvalidParameter: epsilon is out of its range.

    Source: Warner 1965; Dwork and Roth 2014, section 3.2.
    """
    validate.non_negative(epsilon=epsilon)
    return 1 / (1 + math.exp(-epsilon))


def randomized_response(
    answers: ArrayLike, *, epsilon: float, generator: np.random.Generator
) -> NDArray[np.bool_]:
    """Return one report for each answer, true with probability e^epsilon / (1 + e^epsilon).

    Args:
        answers: row of 0 and 1 (or False and True), one a person.
        epsilon: 0 or more, for each person's own answer.
        generator: source of chance.

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Warner 1965.
    """
    truth = _bits("answers", answers)
    lies = generator.random(truth.size) >= truth_probability(epsilon=epsilon)
    return truth ^ lies


def estimate_share(reports: ArrayLike, *, epsilon: float) -> ShareEstimate:
    """Return the unbiased estimate of the share of "yes" behind randomized reports.

    A report is "yes" with probability share * (2p - 1) + (1 - p): the estimate inverts that line.

    Args:
        reports: row of 0 and 1 that `randomized_response` returned.
        epsilon: the one that the reports were drawn with, greater than 0.

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Warner 1965.
    """
    validate.positive(epsilon=epsilon)
    said_yes = _bits("reports", reports)
    p = truth_probability(epsilon=epsilon)
    slope = math.tanh(epsilon / 2)  # 2p - 1 without its cancellation
    rate = float(said_yes.mean())
    error = math.sqrt(rate * (1 - rate) / said_yes.size) / slope
    return ShareEstimate(share=(rate - (1 - p)) / slope, standard_error=error, n=said_yes.size)
