"""Blind baselines: how well the texts alone tell members from held-out patients, without the model.

If they do, the two groups differ in more than membership (other years, another ward, another template), and
an attack that separates them may have found that difference instead. Then the figures show nothing about the
model, whichever way they come out.

Source: Das, Zhang and Tramer 2024.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import linalg, sparse
from scipy.stats import rankdata
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import StandardScaler
from tqdm import tqdm

from privhelpers import rng, spelling, stats
from privhelpers.stats import Interval

NAMES = ("words", "shape", "rarity")
PARTS = 5  # folds of patients; each is scored by what was learned from the other four
RIDGE = 1.0  # of the regression; a text's similarity to itself is 1
_CELLS = 16  # numbers a patient that one permutation keeps in memory
_LONGEST = 40_000  # characters of one patient that are read
_STRETCH = 400  # characters of the pieces that are sampled from more
_ROWS = 256  # of the product table that are computed at once
PERMUTATIONS = 999  # most of an audit: a baseline is refitted for each
_MOST = 2000  # patients of a group, sampled at random: the kernel is a table of all pairs


@dataclass(frozen=True)
class BlindBaseline:
    """What one baseline achieves without the model.

    Attributes:
        name: one of `NAMES`.
        auc: of cross-validated scores of patients.
        p: its p-value if the files do not differ.
        parts: the fold of each patient, members first.
    """

    name: str
    auc: Interval
    p: float
    parts: np.ndarray = field(repr=False, compare=False)


def _units(text: str) -> list[str]:
    """Return words of two letters or more, as written, and characters of scripts without blanks.

    They keep their spelling, because a model sees differences of spelling, too.
    """
    units = (unit[0] for unit in spelling.units(text))
    return [unit for unit in units if len(unit) > 1 or spelling.without_blanks(unit)]


def _words(texts: Sequence[str]) -> sparse.csr_matrix:
    """Return weighted counts of words, pairs of words and short runs of letters, one row a text."""
    size = {"n_features": 2**16, "alternate_sign": False}
    letters = HashingVectorizer(analyzer="char_wb", ngram_range=(3, 4), **size)
    words = HashingVectorizer(ngram_range=(1, 2), tokenizer=_units, token_pattern=None, **size)
    # The weights see every text and no label, so they contain nothing about membership.
    return make_pipeline(make_union(letters, words), TfidfTransformer(sublinear_tf=True)).fit_transform(texts)


def _looked_at(text: str, generator: np.random.Generator) -> str:
    """Return a text, or random stretches of a long one, so late differences count, too."""
    if len(text) <= _LONGEST:
        return text
    stretches = [text[start : start + _STRETCH] for start in range(0, len(text), _STRETCH)]
    return "".join(
        stretches[n] for n in sorted(generator.permutation(len(stretches))[: _LONGEST // _STRETCH])
    )


def _shape(texts: Sequence[str], generator: np.random.Generator) -> list[float]:
    """Return number, lengths, and kinds of characters of a patient's notes."""
    lengths = [len(text) for text in texts]
    joined = _looked_at("".join(texts), generator)
    kinds = (str.isdigit, str.isupper, str.isspace)
    shares = [sum(map(kind, joined)) / max(1, len(joined)) for kind in kinds]
    words = [len(text.split()) + sum(map(spelling.without_blanks, text)) for text in texts]
    return [len(texts), min(lengths), max(lengths), float(np.mean(lengths)), float(np.mean(words)), *shares]


def _rarity(texts: Sequence[str]) -> np.ndarray:
    """Return the rarity of words, pairs of words, and runs of letters of each patient, shape [patients, 6].

    Each of the three has its mean rarity, and the share that no other patient has, because one typo in a long
    note hardly changes a mean. A typo teaches a word count nothing about another patient's typo, but a
    language model finds both surprising. All digits count as equal, because numbers differ between patients.
    """
    columns = []
    for analyzer, run in (("word", (1, 1)), ("word", (2, 2)), ("char_wb", (4, 4))):
        size = {"n_features": 2**18, "alternate_sign": False, "binary": True, "norm": None}
        cut = {"tokenizer": _units, "token_pattern": None} if analyzer == "word" else {}
        table = HashingVectorizer(analyzer=analyzer, ngram_range=run, lowercase=False, **cut, **size)
        digits_alike = (re.sub(r"\d", "0", text) for text in texts)
        has = table.fit_transform(digits_alike)
        patients, runs = (np.maximum(1, np.asarray(has.sum(axis)).ravel()) for axis in (0, 1))
        columns += [has @ np.log(len(texts) / patients) / runs, has @ (patients == 1) / runs]
    return np.array(columns).T


def _smoother(kernel: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """Return the matrix that maps labels to cross-validated scores of patients.

    Ridge regression is linear in the labels, so one matrix serves the true labels and every permutation.
    """
    matrix = np.zeros_like(kernel)
    for part in range(PARTS):
        judge, learn = np.flatnonzero(parts == part), np.flatnonzero(parts != part)
        inner = kernel[np.ix_(learn, learn)]
        inner[np.diag_indices_from(inner)] += RIDGE
        rows = linalg.solve(inner, kernel[np.ix_(learn, judge)], overwrite_a=True, assume_a="pos").T
        # Without the mean of the labels: a fold with more members leaves fewer for training.
        matrix[np.ix_(judge, learn)] = rows - rows.mean(1, keepdims=True)
    return matrix


def _areas(scores: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the area under the ROC curve of each row of scores for its own row of labels."""
    members = labels.sum(1)
    ranks = (labels * rankdata(scores, axis=1)).sum(1)
    return (ranks - members * (members + 1) / 2) / (members * (labels.shape[1] - members))


def _products(rows: sparse.csr_matrix) -> np.ndarray:
    """Return the inner products of all pairs of rows, block by block to save memory."""
    table = np.empty((rows.shape[0], rows.shape[0]))
    for start in range(0, len(table), _ROWS):
        table[start : start + _ROWS] = (rows[start : start + _ROWS] @ rows.T).toarray()
    return table


def _kernels(people: Sequence[Sequence[str]]) -> Iterator[tuple[str, np.ndarray]]:
    """Yield what `text_kernels` returns, one table at a time: each takes 128 MB for 4,000 patients."""
    generator = rng.make(0, "checkup/blind/stretches")
    joined = [_looked_at("\n".join(texts), generator) for texts in people]
    rarity, tables = _rarity(joined), [_products(_words(joined))]
    del joined  # frees memory
    yield "words", tables.pop()
    shape = np.array([_shape(texts, generator) for texts in people])
    yield "shape", rbf_kernel(StandardScaler().fit_transform(shape))
    yield "rarity", rbf_kernel(StandardScaler().fit_transform(rarity))


def text_kernels(people: Sequence[Sequence[str]]) -> dict[str, np.ndarray]:
    """Return three kernels of the similarity of patients' notes, shape [patients, patients] each.

    Args:
        people: the texts of each patient.

    Returns:
        `words`: shared words and short runs of letters; `shape`: number, length, and kinds of characters;
        `rarity`: how few other patients share their words and runs of letters.
    """
    return dict(_kernels(people))


def blind_baselines(
    members: Sequence[Sequence[str]],
    heldout: Sequence[Sequence[str]],
    *,
    permutations: int = 999,
    draws: int = 500,
    seed: int = 0,
    progress: bool = False,
) -> list[BlindBaseline]:
    """Try to tell two groups of patients apart by words, shape, and rarity of their notes.

    Args:
        members, heldout: the texts of each patient; a sample of 2,000 of more.
        permutations: of the test, which refits the baseline for each.
        draws: bootstrap draws of the intervals.
        seed: of the folds, the permutations, and the draws.
        progress: whether to show a bar.

    Source: Das, Zhang and Tramer 2024.
    """
    generator = rng.make(seed, "checkup/blind/drawn")
    members, heldout = (
        [side[n] for n in sorted(generator.permutation(len(side))[:_MOST])] for side in (members, heldout)
    )
    member = np.repeat([True, False], [len(members), len(heldout)])
    units = np.arange(len(members)), np.arange(len(heldout))
    parts = rng.make(seed, "checkup/blind").permutation(member.size) % PARTS
    baselines = []
    kernels = _kernels([*members, *heldout])
    bar = {"total": len(NAMES), "desc": "comparing files", "unit": "baseline", "disable": not progress}
    for name, kernel in tqdm(kernels, **bar):
        learner = _smoother(kernel, parts)
        del kernel  # frees memory

        def areas(labels: np.ndarray, learner: np.ndarray = learner) -> np.ndarray:
            return _areas((labels.astype(float) @ learner.T).round(12), labels)[:, None]

        p = stats.permutation_test(areas, member, draws=permutations, seed=seed, cells=_CELLS * member.size)
        scores = (learner @ member.astype(float)).round(12)  # rounded, so equal scores tie
        area = stats.auc_interval(scores[member], units[0], scores[~member], units[1], draws=draws, seed=seed)
        baselines.append(BlindBaseline(name, area, float(p[0]), parts))
        del areas, learner
    return baselines
