"""Which of the texts that a model wrote does it know by heart? The rankings of the extraction literature.

An attacker writes many texts with the model and cannot look at the training notes. They sort the texts by
how surprisingly well the model predicts them; we, who have the notes, say how many of the first are copied.

>>> longest_runs(["seen by Dr Frost on Monday"], ["on Monday", "Mild. Seen by Dr Frost again"])
Runs(words=array([4]), note=array([1]))
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from privhelpers import rng, stats, validate
from privhelpers.errors import InvalidParameter

RANKINGS = ("perplexity", "zlib", "reference", "lower case")


def rankings(
    texts: Sequence[str], losses: ArrayLike, reference_losses: ArrayLike, lower_losses: ArrayLike
) -> dict[str, np.ndarray]:
    """Return the four scores of each text; a higher one is more likely copied.

    Perplexity: minus the loss. Zlib: bytes after compression per nat of loss, so that repetitive text does
    not win. Reference: loss under a model that never saw the notes per loss under this one. Lower case: loss
    of the text in lower case per loss of the text.

    Args:
        texts: what the model wrote.
        losses: mean loss of each text under the attacked model, nats per token.
        reference_losses: the same under the public checkpoint.
        lower_losses: under the attacked model again, of each text in lower case.

    Source: Carlini et al. 2021, section 5.2.
    """
    own, reference, lower = (
        np.asarray(values, dtype=float) for values in (losses, reference_losses, lower_losses)
    )
    for name, values in (("losses", own), ("reference_losses", reference), ("lower_losses", lower)):
        if values.shape != (len(texts),) or not (np.isfinite(values) & (values > 0)).all():
            raise InvalidParameter(f"{name}: must hold one number above 0 a text")
    packed = np.array([len(zlib.compress(text.encode())) for text in texts])
    return dict(zip(RANKINGS, (-own, packed / own, reference / own, lower / own), strict=True))


def _words(text: str) -> list[str]:
    return [word.strip(".,;:()") for word in text.casefold().split()]


def _runs(words: list[str], length: int) -> list[str]:
    return [" ".join(words[i : i + length]) for i in range(len(words) - length + 1)]


@dataclass(frozen=True)
class Runs:
    """What texts share word for word with a set of notes.

    Attributes:
        words: length of the longest shared run, 0 or more, shape [texts].
        note: number of a note that holds it, -1 where nothing is shared, shape [texts].
    """

    words: np.ndarray
    note: np.ndarray


def longest_runs(texts: Sequence[str], notes: Sequence[str]) -> Runs:
    """Return how many words in a row each text shares with some note; case and punctuation do not count.

    Args:
        texts: what the model wrote.
        notes: what it is compared with.
    """
    words, note = np.zeros(len(texts), dtype=int), np.full(len(texts), -1)
    asking = dict(enumerate(map(_words, texts)))
    known = dict(enumerate(map(_words, notes)))
    length = 1
    while asking and known:
        # What shares no run of this length shares no longer one: both sides shrink fast.
        asked = {run for row in asking.values() for run in _runs(row, length)}
        known = {n: row for n, row in known.items() if not asked.isdisjoint(_runs(row, length))}
        held = {run: n for n, row in known.items() for run in _runs(row, length)}
        found = {t: [held[run] for run in _runs(row, length) if run in held] for t, row in asking.items()}
        asking = {t: row for t, row in asking.items() if found[t]}
        words[list(asking)] = length
        note[list(asking)] = [found[t][0] for t in asking]
        length += 1
    return Runs(words, note)


def copied(own_runs: ArrayLike, other_runs: ArrayLike, *, margin: int) -> np.ndarray:
    """Return which texts share clearly more with one set of notes than with another one of equal size.

    Common phrases occur in both sets, so a text counts as copied from one only if its longest shared run is
    `margin` words longer there. Where nothing was memorized the two sets can be swapped: as many texts are
    then copied from the other set, which makes that count the control.

    Args:
        own_runs: words of `longest_runs` for the set in question.
        other_runs: the same for the other set.
        margin: words, 1 or more.
    """
    validate.positive_int(margin=margin)
    own, other = np.asarray(own_runs), np.asarray(other_runs)
    if own.shape != other.shape:
        raise InvalidParameter("own_runs and other_runs: need one number a text each")
    return own >= other + margin


def first(scores: ArrayLike, count: int, *, seed: int) -> np.ndarray:
    """Return the places of the `count` highest scores, best first; ties are broken by lot.

    Args:
        scores: one a text.
        count: how many, 1 or more; all of them if there are fewer.
        seed: of the lot.
    """
    validate.positive_int(count=count)
    values = np.asarray(scores, dtype=float)
    lot = rng.make(seed, "ranking/ties").permutation(len(values))
    return np.lexsort((lot, -values))[:count]


def precision_rows(
    scores: Mapping[str, ArrayLike],
    arms: Mapping[str, tuple[ArrayLike, ArrayLike]],
    counts: Sequence[int],
    *,
    seed: int,
) -> list[dict]:
    """Return how many of the first texts of each ranking are copied, with 95 % intervals.

    Texts that copy the same patient count as one cluster.

    Args:
        scores: the rankings, higher first.
        arms: for each set of notes, which texts copy from it, and the patient whose note holds their longest
            run (any label; not read for texts that copy nothing).
        counts: how many of the first texts to look at, each 2 or more.
        seed: of the lot that breaks ties.

    Returns:
        One row per ranking, count and arm: ranking, k, arm, rate, low, high.
    """
    rows = []
    owners = {arm: np.unique(patients, return_inverse=True)[1] for arm, (_, patients) in arms.items()}
    for name, values in scores.items():
        for count in counts:
            chosen = first(values, count, seed=seed)
            for arm, (labels, _) in arms.items():
                hits = np.asarray(labels)[chosen]
                clusters = np.where(hits, owners[arm][chosen], -1 - chosen)
                one = len(set(clusters.tolist())) == 1  # all copy one patient: that is one trial
                i = stats.clopper_pearson(1, 1) if one else stats.clustered_proportion(hits, clusters)
                row = {"ranking": name, "k": len(chosen), "arm": arm}
                rows.append(row | {"rate": i.estimate, "low": i.low, "high": i.high})
    return rows
