"""Rankings with equal scores in random order, and the longest runs that texts share with notes.

>>> expected_rank([0.1, 0.7, 0.2], [True, False, False])
3.0
>>> expected_rank([0.5, 0.5, 0.5, 0.5], [True, False, False, False])
2.5
>>> longest_runs(["seen by Dr Frost on Monday"], ["on Monday", "Mild. Seen by Dr Frost again"])
Runs(words=array([4]), note=array([1]))
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from privhelpers import rng, validate
from privhelpers.errors import InvalidParameter
from privhelpers.spelling import words as words_of


def _runs(words: list[str], length: int) -> list[str]:
    return [" ".join(words[i : i + length]) for i in range(len(words) - length + 1)]


@dataclass(frozen=True)
class Runs:
    """What texts share word for word with a set of notes.

    Attributes:
        words: length of the longest shared run, 0 or more, shape [texts].
        note: number of a note that contains it, -1 if nothing is shared, shape [texts].
    """

    words: np.ndarray
    note: np.ndarray


def longest_runs(texts: Sequence[str], notes: Sequence[str]) -> Runs:
    """Return how many words in a row each text shares with some note, words as `spelling.words` gives them.

    Args:
        texts: what the model wrote.
        notes: what it is compared with.
    """
    words, note = np.zeros(len(texts), dtype=int), np.full(len(texts), -1)
    asking = dict(enumerate(map(words_of, texts)))
    known = dict(enumerate(map(words_of, notes)))
    length = 1
    while asking and known:
        # What shares no run of this length shares no longer one: both sides shrink fast.
        asked = {run for row in asking.values() for run in _runs(row, length)}
        known = {n: row for n, row in known.items() if not asked.isdisjoint(_runs(row, length))}
        held = {run: n for n, row in known.items() for run in _runs(row, length)}
        matches = {t: [held[run] for run in _runs(row, length) if run in held] for t, row in asking.items()}
        asking = {t: row for t, row in asking.items() if matches[t]}
        words[list(asking)] = length
        note[list(asking)] = [matches[t][0] for t in asking]
        length += 1
    return Runs(words, note)


def first(scores: ArrayLike, count: int, *, seed: int) -> np.ndarray:
    """Return the indices of the `count` highest scores, best first; ties are in random order.

    Args:
        scores: one a text.
        count: how many, 1 or more; all of them if there are fewer.
        seed: of the order of ties.
    """
    count = validate.positive_int(count=count)
    values = validate.array("scores", validate.row("scores", scores), float)
    random_order = rng.make(seed, "ranking/ties").permutation(len(values))
    return np.lexsort((random_order, -values))[:count]


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
