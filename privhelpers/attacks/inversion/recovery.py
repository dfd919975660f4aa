"""How much of a note was read rightly, and the most that noise allows.

>>> hits([5, 7, 9], [5, 8]).tolist()
[True, False, False]
>>> bag_recall([5, 7, 7], [7, 1])
0.5
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.special import ndtr, ndtri

from privhelpers.errors import InvalidParameter


def hits(truth: Sequence[int], guess: Sequence[int]) -> np.ndarray:
    """Return whether each position was read rightly; missing guesses are wrong, shape [length]."""
    found = np.full(len(truth), -1)
    found[: len(guess)] = np.asarray(guess, dtype=int)[: len(truth)]
    return found == np.asarray(truth, dtype=int)


def batch_hits(truths: Sequence[Sequence[int]], guesses: Sequence[Sequence[int]]) -> np.ndarray:
    """Return the hits of a batch, notes and guesses paired so that most are right; shape [notes, length].

    Pairing favors the attacker, also by chance: compare with a control that is paired the same way.
    """
    table = np.stack([[hits(truth, guess) for guess in guesses] for truth in truths])
    notes, found = linear_sum_assignment(table.sum(-1), maximize=True)
    result = np.zeros((len(truths), table.shape[-1]), dtype=bool)
    result[notes] = table[notes, found]
    return result


def bag_recall(truth: Sequence[int], guess: Sequence[int]) -> float:
    """Return the share of the note's different tokens that occur anywhere in the guess."""
    wanted = set(truth)
    if not wanted:
        raise InvalidParameter("truth: is empty, so nothing can be recovered")
    return len(wanted & set(guess)) / len(wanted)


def score(truths: Sequence[Sequence[int]], guesses: Sequence[Sequence[int]], *, shift: int = 0) -> np.ndarray:
    """Return which positions of which notes were read rightly, shape [notes, length].

    Args:
        truths: the notes, all of one length.
        guesses: one for each note.
        shift: hold each guess against the note so many places further on; other than 0, a control.

    Raises:
        InvalidParameter: there is not one guess for each note.
    """
    if len(truths) != len(guesses) or not len(truths):
        raise InvalidParameter(f"guesses: {len(guesses)} for {len(truths)} notes; give one for each")
    return np.stack([hits(truths[(i + shift) % len(truths)], guess) for i, guess in enumerate(guesses)])


def score_batches(
    batches: Sequence[Sequence[Sequence[int]]],
    guesses: Sequence[Sequence[Sequence[int]]],
    *,
    shift: int = 0,
) -> np.ndarray:
    """Return which positions of each batch were read rightly, paired as in `batch_hits`.

    Args:
        batches: the notes of each batch.
        guesses: those for each batch.
        shift: hold the guesses against the batch so many places further on; other than 0, a control.

    Returns:
        Shape [batches, notes times length].

    Raises:
        InvalidParameter: there is not one list of guesses for each batch.
    """
    if len(batches) != len(guesses) or not len(batches):
        raise InvalidParameter(f"guesses: {len(guesses)} for {len(batches)} batches; give one for each")
    return np.stack(
        [batch_hits(batches[(i + shift) % len(batches)], guess).ravel() for i, guess in enumerate(guesses)]
    )


def ceiling(blind: float, *, noise_multiplier: ArrayLike) -> float | NDArray[np.float64]:
    """Return the most that any attacker scores on one step of DP-SGD, Phi(Phi^-1(blind) + 1 / sigma).

    Args:
        blind: mean score of the same attacker, or of the best blind guess, without the note; in [0, 1].
        noise_multiplier: noise sigma over clipping bound, one or several, greater than 0.

    Raises:
        InvalidParameter: a value is out of its range.

    Source: Hayes, Mahloujifar and Balle 2023; Kaissis et al. 2023.

    >>> round(ceiling(0.01, noise_multiplier=1.0), 4)
    0.0924
    """
    sigma = np.asarray(noise_multiplier, dtype=float)
    if not 0 <= blind <= 1:
        raise InvalidParameter(f"blind = {blind!r}: must be in [0, 1]")
    if sigma.size == 0 or not (np.isfinite(sigma) & (sigma > 0)).all():
        raise InvalidParameter(f"noise_multiplier = {noise_multiplier!r}: must be greater than 0")
    most = ndtr(ndtri(blind) + 1 / sigma)
    return float(most) if most.ndim == 0 else most
