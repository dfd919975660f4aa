"""How much a note resembles a set of synthetic texts, in four ways, none of which knows who is a member.

Everything is counted over the synthetic texts and all notes together, so that dealing membership anew changes
no score: what the tests of an audit rest on.
"""

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from privhelpers.defenses.dedup import shingles

NEAR = 0.8  # Jaccard similarity of runs of three words from which on a text is a near copy
ORDER = 3  # words of the longest run that the model of word counts looks at
_WORD = re.compile(r"\w+")
_ROWS = 256  # notes that are compared with all synthetic texts at once


def words_of(text: str) -> list[str]:
    """Return the words of a text, in lower case and without punctuation."""
    return _WORD.findall(text.casefold())


def _features(text: str) -> list[str]:
    return sorted({*words_of(text), *shingles(text, 2), *shingles(text, 3)})


class Likeness:
    """The synthetic texts and what they share with notes.

    Args:
        synthetic: the texts of the data set.
        notes: every note that is asked about, of members and of held-out patients.
    """

    def __init__(self, synthetic: Sequence[str], notes: Sequence[str]) -> None:
        """Count how rare each word, pair and run of three words is in all texts together."""
        self._vectors = TfidfVectorizer(analyzer=_features, binary=True)
        self._vectors.fit([*synthetic, *notes])
        self._synthetic = self._vectors.transform(synthetic)
        self._seen = np.asarray(self._synthetic.sum(axis=0)).ravel() > 0

    def rarity(self, word: str) -> float:
        """Return how rare a word or run is: the higher, the fewer texts have it; 0 where none has."""
        place = self._vectors.vocabulary_.get(word)
        return 0.0 if place is None else float(self._vectors.idf_[place])

    def nearest(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the cosine with the closest synthetic text and its place, shape [texts] each."""
        best = [
            (rows.max(axis=1).toarray().ravel(), np.asarray(rows.argmax(axis=1)).ravel())
            for rows in _products(self._vectors.transform(texts), self._synthetic)
        ]
        cosines, places = (np.concatenate(part) for part in zip(*best, strict=True))
        return cosines, places

    def covered(self, texts: Sequence[str]) -> np.ndarray:
        """Return the share of each text, rare runs counting most, that stands in some synthetic text."""
        return self._vectors.transform(texts).power(2) @ self._seen.astype(float)


def _products(left: sparse.csr_matrix, right: sparse.csr_matrix) -> list[sparse.csr_matrix]:
    """Return the products of the rows of two matrices, some rows of the left one at a time."""
    turned = right.T.tocsr()
    return [left[start : start + _ROWS] @ turned for start in range(0, left.shape[0], _ROWS)]


def near_copies(texts: Sequence[str], synthetic: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return which texts some synthetic text nearly repeats, and which synthetic texts repeat some of them.

    Args:
        texts: notes.
        synthetic: texts of the data set.

    Returns:
        Masks of shape [texts] and [synthetic]; near is a Jaccard similarity of 0.8 or more of the runs of
        three words.
    """
    counter = CountVectorizer(analyzer=shingles, binary=True).fit([*texts, *synthetic])
    left, right = counter.transform(texts).astype(np.int32), counter.transform(synthetic).astype(np.int32)
    sizes = np.asarray(right.sum(axis=1)).ravel()
    repeated, repeats = np.zeros(len(texts), dtype=bool), np.zeros(len(synthetic), dtype=bool)
    for block, shared in enumerate(_products(left, right)):
        shared = shared.tocoo()
        mine = np.asarray(left[block * _ROWS : (block + 1) * _ROWS].sum(axis=1)).ravel()
        near = shared.data >= NEAR * (mine[shared.row] + sizes[shared.col] - shared.data)
        repeated[block * _ROWS + shared.row[near]] = True
        repeats[shared.col[near]] = True
    return repeated, repeats


def word_losses(learn: Sequence[str], texts: Sequence[str]) -> np.ndarray:
    """Return the mean loss of each text, in nats a word, under a model that learned from other texts.

    The model counts runs of up to three words and gives the rarer ones the share that Witten and Bell give.

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
        words = ["", *words_of(text)]
        for end in range(1, len(words)):
            counts.update(tuple(words[end - n : end + 1]) for n in range(min(ORDER, end + 1)))
    totals: Counter[tuple[str, ...]] = Counter()
    kinds: Counter[tuple[str, ...]] = Counter()
    for run, count in counts.items():
        totals[run[:-1]] += count
        kinds[run[:-1]] += 1
    anything = 1 / (kinds[()] + 1)

    def loss(text: str) -> float:
        words, lost = ["", *words_of(text)], 0.0
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
