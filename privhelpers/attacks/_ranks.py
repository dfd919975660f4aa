"""The place of the right answer among others, where equal scores are in random order.

>>> expected_rank([0.1, 0.7, 0.2], [True, False, False])
3.0
>>> expected_rank([0.5, 0.5, 0.5, 0.5], [True, False, False, False])
2.5
"""

import numpy as np
from numpy.typing import ArrayLike

from privhelpers import validate
from privhelpers.errors import InvalidParameter


def expected_rank(scores: ArrayLike, right: ArrayLike) -> float:
    """Return the mean place of the best right answer over all orders of equal scores; 1 is the first.

    Args:
        scores: of all answers, higher is better; infinities are allowed, shape [answers].
        right: whether each answer is right, one of them at least, shape [answers].

    Raises:
        InvalidParameter: a score is not a number, no answer is right, or shapes differ.
    """
    values, right = validate.array("scores", scores, float), validate.array("right", right, bool)
    if values.ndim != 1 or values.shape != right.shape or not right.any():
        raise InvalidParameter(
            f"scores {values.shape}, right {right.shape}: need one of each per answer, some of them right"
        )
    if np.isnan(values).any():
        raise InvalidParameter(
            f"scores: {int(np.isnan(values).sum())} of {values.size} are not numbers, so they have no order"
        )
    best = values[right].max()
    tied = values == best
    # Of n equal scores in random order, the first of k right ones is expected at place (n + 1) / (k + 1).
    return float(np.sum(values > best) + (tied.sum() + 1) / ((tied & right).sum() + 1))
