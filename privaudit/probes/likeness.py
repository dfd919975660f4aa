"""Synthetic texts compared with notes: the closest text, what it covers, near copies, and word counts.

A note is compared with the texts in four ways that ignore membership. All counts use the texts and all notes
together, so permuting membership changes no score, as the tests require.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from privaudit.encode import Sample
from privaudit.probes.counts import PatientShares, compare_patients
from privhelpers import spelling
from privhelpers.defenses.dedup import shingles
from privhelpers.stats import Interval

NEAR = 0.8  # least Jaccard similarity of runs of three words of a near copy
ORDER = 3  # words of the longest run of the word-count model
NEAREST = 3  # texts that an attacker uses
_ROWS = 256  # most notes that are compared with all synthetic texts at once
_CELLS = 2**22  # most pairs of a note and a text at once, 12 bytes each


def _features(text: str) -> list[str]:
    return sorted({*spelling.words(text), *shingles(text, 2), *shingles(text, 3)})


class Likeness:
    """The similarity of notes to the synthetic texts.

    Args:
        synthetic: the texts of the data set.
        notes: every note of the sample.
    """

    def __init__(self, synthetic: Sequence[str], notes: Sequence[str]) -> None:
        """Count how rare each word, pair and run of three words is in all texts together."""
        self._vectors = TfidfVectorizer(analyzer=_features, binary=True)
        self._vectors.fit([*synthetic, *notes])
        self._synthetic = self._vectors.transform(synthetic).T.tocsr()  # a column a text
        self._seen = np.asarray(self._synthetic.sum(axis=1)).ravel() > 0

    def rarity(self, word: str) -> float:
        """Return the rarity of a word or run: higher if fewer texts have it; 0 if none has."""
        place = self._vectors.vocabulary_.get(word)
        return 0.0 if place is None else float(self._vectors.idf_[place])

    def nearest(self, texts: Sequence[str]) -> np.ndarray:
        """Return the cosine with the closest synthetic text, shape [texts]."""
        cosines = np.zeros(len(texts))
        for rows, shared in _products(self._vectors.transform(texts), self._synthetic):
            cosines[rows] = shared.toarray().max(axis=1)  # dense: most cells are filled
        return cosines

    def nearby(self, texts: Sequence[str], *, least: float = 0.0) -> sparse.csr_matrix:
        """Return the squared cosines with the closest synthetic texts, shape [texts, synthetic].

        Only the `NEAREST` texts of each row are kept, and those below `least` count as 0.
        """
        blocks = _products(self._vectors.transform(texts), self._synthetic)
        near = sparse.vstack([_largest(shared.tocsr(), NEAREST) for _, shared in blocks], format="csr")
        near.data = np.where(near.data >= least, near.data**2, 0)
        return near

    def covered(self, texts: Sequence[str]) -> np.ndarray:
        """Return the share of each text, rare runs counting most, that is in some synthetic text."""
        return self._vectors.transform(texts).power(2) @ self._seen.astype(float)


def _products(left: sparse.csr_matrix, right: sparse.csr_matrix) -> Iterator[tuple[slice, sparse.csr_matrix]]:
    """Yield slices of rows of the left matrix, and their products with the right matrix.

    One block at a time: with a common word, the whole product has a number for each pair of texts.
    """
    size = max(1, min(_ROWS, _CELLS // right.shape[1]))
    for start in range(0, left.shape[0], size):
        rows = slice(start, min(start + size, left.shape[0]))
        yield rows, left[rows] @ right


def _largest(rows: sparse.csr_matrix, count: int) -> sparse.csr_matrix:
    """Return the matrix with the `count` largest values of each row; the others are left out."""
    kept = np.ones(rows.nnz, dtype=bool)
    for start, end in pairwise(rows.indptr):
        if end - start > count:
            kept[
                start + np.argpartition(rows.data[start:end], end - start - count)[: end - start - count]
            ] = False
    rows.data[~kept] = 0
    rows.eliminate_zeros()
    return rows


def near_copies(texts: Sequence[str], synthetic: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return which texts some synthetic text nearly repeats, and which synthetic texts repeat some of them.

    Args:
        texts: notes.
        synthetic: texts of the data set.

    Returns:
        Masks of shape [texts] and [synthetic]; near is a Jaccard similarity of 0.8 or more of the runs of
        three words.
    """
    counter = CountVectorizer(analyzer=shingles, binary=True)
    counter.fit([*texts, *synthetic])
    left, right = (counter.transform(side).astype(np.int32) for side in (texts, synthetic))
    right = right.T.tocsr()
    sizes = np.asarray(right.sum(axis=0)).ravel()
    repeated, repeats = np.zeros(len(texts), dtype=bool), np.zeros(len(synthetic), dtype=bool)
    for rows, shared in _products(left, right):
        shared = shared.tocoo()
        mine = np.asarray(left[rows].sum(axis=1)).ravel()
        near = shared.data >= NEAR * (mine[shared.row] + sizes[shared.col] - shared.data)
        repeated[rows.start + shared.row[near]] = True
        repeats[shared.col[near]] = True
    return repeated, repeats


@dataclass(frozen=True)
class Copies:
    """Patients with a note that some synthetic text nearly repeats, and the same without a leak.

    Attributes:
        by_patient: members and held-out patients with such a note.
        texts: synthetic texts that nearly repeat a member's note: the count that is often reported alone.
        heldout_texts: those that nearly repeat a held-out patient's note.
        phantoms: how many members such a set would "copy" without a leak: the number of members times the
            held-out share, with its exact interval.
    """

    by_patient: PatientShares
    texts: int
    heldout_texts: int
    phantoms: Interval


def copies(texts: Sequence[str], sample: Sample) -> Copies:
    """Count near copies of notes of members, and of held-out patients.

    Args:
        texts: synthetic ones.
        sample: the notes.
    """
    counts, copied = [], []
    for side in (True, False):
        notes = sample.of(member=side)
        repeated, repeats = near_copies([note.text for note in notes], texts)
        copied += [notes[n].patient for n in np.flatnonzero(repeated)]
        counts.append(int(repeats.sum()))
    members = {note.patient for note in sample.of(member=True)}
    shares = compare_patients(copied, (note.patient for note in sample.notes), members)
    chance, of = shares.heldout.interval, shares.members.of
    ends = (of * end for end in (chance.estimate, chance.low, chance.high))
    return Copies(shares, *counts, Interval(*ends, chance.level, chance.method))


def word_losses(learn: Sequence[str], texts: Sequence[str]) -> np.ndarray:
    """Return the mean loss of each text, in nats a word, under a word-count model of other texts.

    The model counts runs of up to three words, with Witten-Bell smoothing.

    Args:
        learn: what it learns from.
        texts: what it predicts.

    Source: Witten and Bell, IEEE Trans. Inf. Theory 37 (1991), method C; Meeus et al. 2025, section 4, for
    such a model as an attack on synthetic text.

    >>> known, unknown = word_losses(["sent home with two pills"] * 3, ["sent home", "gone away"])
    >>> bool(known < unknown)
    True
    """
    counts: Counter[tuple[str, ...]] = Counter()
    for text in learn:
        words = ["", *spelling.words(text)]
        for end in range(1, len(words)):
            counts.update(tuple(words[end - n : end + 1]) for n in range(min(ORDER, end + 1)))
    totals: Counter[tuple[str, ...]] = Counter()
    kinds: Counter[tuple[str, ...]] = Counter()
    for run, count in counts.items():
        totals[run[:-1]] += count
        kinds[run[:-1]] += 1
    anything = 1 / (kinds[()] + 1)

    def loss(text: str) -> float:
        words, lost = ["", *spelling.words(text)], 0.0
        for end in range(1, len(words)):
            chance = anything
            for n in range(min(ORDER, end + 1)):
                before = tuple(words[end - n : end])
                if before not in totals:
                    break
                share = kinds[before] * chance
                chance = (counts[(*before, words[end])] + share) / (totals[before] + kinds[before])
            lost -= float(np.log(chance))
        return lost / max(1, len(words) - 1)

    return np.array([loss(text) for text in texts])
