"""How much a note resembles a set of synthetic texts, in four ways, none of which knows who is a member.

Everything is counted over the synthetic texts and all notes together, so that dealing membership anew changes
no score: what the tests of an audit rest on.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from tqdm.auto import tqdm

from privhelpers import spelling
from privhelpers.defenses.dedup import shingles

NEAR = 0.8  # Jaccard similarity of runs of three words from which on a text is a near copy
ORDER = 3  # words of the longest run that the model of word counts looks at
_ROWS = 256  # notes that are compared with all synthetic texts at once, where these are not too many
_CELLS = 2**22  # pairs of a note and a text that are looked at together, of 12 bytes each


def _features(text: str) -> list[str]:
    return sorted({*spelling.words(text), *shingles(text, 2), *shingles(text, 3)})


class Likeness:
    """The synthetic texts and what they share with notes.

    Args:
        synthetic: the texts of the data set.
        notes: every note that is asked about, of members and of held-out patients.
        progress: whether to show bars.
    """

    def __init__(self, synthetic: Sequence[str], notes: Sequence[str], *, progress: bool = False) -> None:
        """Count how rare each word, pair and run of three words is in all texts together."""
        self._progress = progress
        self._vectors = TfidfVectorizer(analyzer=_features, binary=True)
        self._vectors.fit(_shown([*synthetic, *notes], "counting words", progress))
        self._synthetic = self._vectors.transform(synthetic).T.tocsr()  # a column a text
        self._seen = np.asarray(self._synthetic.sum(axis=1)).ravel() > 0

    def rarity(self, word: str) -> float:
        """Return how rare a word or run is: the higher, the fewer texts have it; 0 where none has."""
        place = self._vectors.vocabulary_.get(word)
        return 0.0 if place is None else float(self._vectors.idf_[place])

    def nearest(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Return the cosine with the closest synthetic text and its place, shape [texts] each."""
        cosines, places = np.zeros(len(texts)), np.zeros(len(texts), dtype=int)
        for rows, shared in _products(self._vectors.transform(texts), self._synthetic, self._progress):
            table = shared.toarray()  # most cells are filled, and a sparse table would be sorted first
            places[rows] = table.argmax(axis=1)
            cosines[rows] = table.max(axis=1)
        return cosines, places

    def nearby(self, texts: Sequence[str], count: int) -> sparse.csr_matrix:
        """Return the cosines with the `count` closest synthetic texts, shape [texts, synthetic].

        The others are 0, and so only what is kept takes memory.
        """
        return sparse.vstack(
            [
                _largest(shared.tocsr(), count)
                for _, shared in _products(self._vectors.transform(texts), self._synthetic, self._progress)
            ],
            format="csr",
        )

    def covered(self, texts: Sequence[str]) -> np.ndarray:
        """Return the share of each text, rare runs counting most, that stands in some synthetic text."""
        return self._vectors.transform(texts).power(2) @ self._seen.astype(float)


def _shown(texts: Sequence[str], what: str, progress: bool) -> Iterable[str]:
    """Return the texts, counted on a bar."""
    return tqdm(texts, desc=what, unit="text", unit_scale=True, leave=False, disable=not progress)


def _products(
    left: sparse.csr_matrix, right: sparse.csr_matrix, progress: bool
) -> Iterator[tuple[slice, sparse.csr_matrix]]:
    """Yield which rows of the left matrix, and their products with the columns of the right one.

    One block at a time: where a word stands in most texts, all of them are a number for each pair of texts.
    """
    size = max(1, min(_ROWS, _CELLS // right.shape[1]))
    with tqdm(total=left.shape[0], desc="comparing", unit="note", leave=False, disable=not progress) as bar:
        for start in range(0, left.shape[0], size):
            rows = slice(start, min(start + size, left.shape[0]))
            yield rows, left[rows] @ right
            bar.update(rows.stop - start)


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


def near_copies(
    texts: Sequence[str], synthetic: Sequence[str], *, progress: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return which texts some synthetic text nearly repeats, and which synthetic texts repeat some of them.

    Args:
        texts: notes.
        synthetic: texts of the data set.
        progress: whether to show bars.

    Returns:
        Masks of shape [texts] and [synthetic]; near is a Jaccard similarity of 0.8 or more of the runs of
        three words.
    """
    counter = CountVectorizer(analyzer=shingles, binary=True)
    counter.fit(_shown([*texts, *synthetic], "counting runs", progress))
    left, right = (counter.transform(side).astype(np.int32) for side in (texts, synthetic))
    right = right.T.tocsr()
    sizes = np.asarray(right.sum(axis=0)).ravel()
    repeated, repeats = np.zeros(len(texts), dtype=bool), np.zeros(len(synthetic), dtype=bool)
    for rows, shared in _products(left, right, progress):
        shared = shared.tocoo()
        mine = np.asarray(left[rows].sum(axis=1)).ravel()
        near = shared.data >= NEAR * (mine[shared.row] + sizes[shared.col] - shared.data)
        repeated[rows.start + shared.row[near]] = True
        repeats[shared.col[near]] = True
    return repeated, repeats


def word_losses(learn: Sequence[str], texts: Sequence[str], *, progress: bool = False) -> np.ndarray:
    """Return the mean loss of each text, in nats a word, under a model that learned from other texts.

    The model counts runs of up to three words and gives the rarer ones the share that Witten and Bell give.

    Args:
        learn: what it learns from.
        texts: what it predicts.
        progress: whether to show a bar.

    Source: Witten and Bell, IEEE Trans. Inf. Theory 37 (1991), method C; Meeus et al. 2025, section 4, for
    such a model as an attack on synthetic text.

    >>> known, unknown = word_losses(["sent home with two pills"] * 3, ["sent home", "gone away"])
    >>> bool(known < unknown)
    True
    """
    counts: Counter[tuple[str, ...]] = Counter()
    for text in _shown(learn, "learning words", progress):
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
