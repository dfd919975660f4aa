"""What a set of texts reveals: near copies of notes, and the three risks that regulators name.

A note is compared with the texts in four ways that ignore membership. All counts use the texts and all notes
together, so permuting membership changes no score, as the tests require.

Singling out, linking, and inferring use only a set of texts, synthetic or written by a model, and what
someone might know of a person. Each attack is tried on members and, in the same way, on held-out patients,
whom no text can reveal: success there needs no leak. The risk is the difference. It measures this attack, not
every one.

Sources: Article 29 Working Party, Opinion 05/2014 (WP 216), section 2.2.2, and EDPB, Opinion 28/2024, section
3.2, for the words; Giomi et al. 2023 for a control arm of each.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

from privaudit.encode import Sample
from privaudit.memorization import Check, PatientShares, compare_patients
from privaudit.records import Note, Settings
from privhelpers import rng, spelling, stats
from privhelpers.defenses.dedup import shingles
from privhelpers.stats import Interval

NEAR = 0.8  # least Jaccard similarity of runs of three words of a near copy
ORDER = 3  # words of the longest run of the word-count model
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


TOGETHER = 3  # words of a guess, and words of a note that are inferred
SHARED = 5  # least patients who share a word that is inferred
NEAREST = 3  # texts that an attacker uses
CLOSE = 0.5  # least cosine of a text that is used to infer
_GUESSES = 2000  # most texts that guesses are made from
_HALVES = 256  # halves that are compared with all others at once


def _even_arms(sample: Sample, seed: int) -> tuple[list[str], np.ndarray]:
    """Return equally many member and held-out patients, and which are members.

    Uniqueness depends on the size of a group.
    """
    generator = rng.make(seed, "checkup/risks/arms")
    sides = [list(dict.fromkeys(note.patient for note in sample.of(member=side))) for side in (True, False)]
    size = min(map(len, sides))
    drawn = [[side[n] for n in sorted(generator.permutation(len(side))[:size])] for side in sides]
    return [*drawn[0], *drawn[1]], np.arange(2 * size) < size


def _guesses(texts: Sequence[str], likeness: Likeness, seed: int) -> list[tuple[str, ...]]:
    """Return the three rarest words of each text, or of a random 2,000 of them, without repeats."""
    distinct = sorted(set(texts))
    drawn = rng.make(seed, "checkup/risks/guesses").permutation(len(distinct))[:_GUESSES]
    rarest = (
        sorted({*spelling.words(distinct[n])}, key=lambda word: (-likeness.rarity(word), word)) for n in drawn
    )
    return list(dict.fromkeys(tuple(words[:TOGETHER]) for words in rarest if len(words) >= TOGETHER))


def _holders(guesses: Sequence[tuple[str, ...]], people: Sequence[str], sample: Sample) -> sparse.csr_matrix:
    """Return whether a patient has a note with all words of a guess, shape [patients, guesses]."""
    place = {patient: n for n, patient in enumerate(people)}
    by_rarest: dict[str, list[int]] = {}
    for number, guess in enumerate(guesses):
        by_rarest.setdefault(guess[0], []).append(number)
    fits = set()
    for note in sample.notes:
        if note.patient in place:
            words = {*spelling.words(note.text)}
            near = (number for word in words for number in by_rarest.get(word, ()))
            fits |= {(place[note.patient], number) for number in near if words.issuperset(guesses[number])}
    rows, columns = zip(*sorted(fits), strict=True) if fits else ((), ())
    return sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(people), max(1, len(guesses))))


def singled_out(
    texts: Sequence[str], sample: Sample, likeness: Likeness, settings: Settings
) -> PatientShares:
    """Count patients who alone in their group fit a guess from the texts.

    A guess is "someone has a note with these three words", the rarest of one text. Uniqueness depends on the
    other patients, so p comes from permuting membership of whole patients.
    """
    people, member = _even_arms(sample, settings.seed)
    holders = _holders(_guesses(texts, likeness, settings.seed), people, sample)
    fits = holders.getnnz(axis=1) > 0  # the others count in no permutation
    holders = holders[fits][:, holders.getnnz(axis=0) > 0]

    def alone(labels: np.ndarray) -> np.ndarray:
        """Return which patients of the labeled group alone fit some guess."""
        once = ((labels.astype(float) @ holders) == 1).astype(float)
        return ((once @ holders.T) > 0) & labels

    inside, outside = alone(member[None, fits])[0], alone(~member[None, fits])[0]
    shares = compare_patients(np.array(people)[fits][inside | outside], people, people[: member.sum()])
    p = stats.permutation_test(
        lambda labels: alone(labels[:, fits]).sum(axis=1, keepdims=True),
        member,
        draws=settings.permutations,
        seed=settings.seed,
        cells=holders.shape[1] + 2 * member.size,
    )
    return replace(shares, p=float(p[0]))


def linked(sample: Sample, likeness: Likeness) -> PatientShares:
    """Count patients for whom the texts link the first half of a note to its second half.

    An attacker has first and second halves and joins those that are close to the same texts. A patient is
    linked if this joins one of their notes better than any half of another patient.
    """
    halves = [spelling.words(note.text) for note in sample.notes]
    first, second = (
        likeness.nearby([" ".join(words[part(len(words))]) for words in halves])
        for part in (lambda size: slice(size // 2), lambda size: slice(size // 2, None))
    )
    people, right = np.unique(sample.patients, return_inverse=True)[1], []
    for start in range(0, len(halves), _HALVES):
        joined = (first[start : start + _HALVES] @ second.T).tocoo()
        note, own = start + joined.row, np.zeros(joined.shape[0])
        own[joined.row[note == joined.col]] = joined.data[note == joined.col]
        joined.data[people[note] == people[joined.col]] = 0
        right.append(own > joined.max(axis=1).toarray().ravel())
    return _compared(sample.notes, np.concatenate(right), sample)


def inferred(texts: Sequence[str], sample: Sample, likeness: Likeness) -> PatientShares | None:
    """Count patients for whom the rest of a note reveals a word that was removed from it.

    Each of the three rarest words that at least five patients share, such as a diagnosis, is removed in turn.
    An attacker knows the rest and guesses a word that it lacks from the closest texts, weighted by their
    similarity and the rarity of the word. A patient counts if one guess is right.

    Returns:
        The counts, or None if no note has such a word in one of the groups.
    """
    owners: dict[str, set[str]] = {}
    for note in sample.notes:
        for word in spelling.words(note.text):
            owners.setdefault(word, set()).add(note.patient)
    shared = sorted(word for word, people in owners.items() if len(people) >= SHARED)
    shared.sort(key=likeness.rarity, reverse=True)
    place = {word: n for n, word in enumerate(shared)}
    asked, rests, secrets = [], [], []
    for note in sample.notes:
        words = spelling.words(note.text)
        for secret in sorted(place[word] for word in {*words} & place.keys())[:TOGETHER]:
            asked.append(note)
            rests.append(" ".join(word for word in words if word != shared[secret]))
            secrets.append(secret)
    members = {note.patient for note in sample.of(member=True)}
    if len({note.patient in members for note in asked}) < 2:
        return None
    counter = CountVectorizer(analyzer=spelling.words, vocabulary=place, binary=True)
    contains, known = counter.transform(texts), counter.transform(rests)
    votes = likeness.nearby(rests, least=CLOSE) @ contains
    votes = (votes - votes.multiply(known)) @ sparse.diags_array([likeness.rarity(word) for word in shared])
    answers, sure = np.asarray(votes.argmax(axis=1)).ravel(), votes.max(axis=1).toarray().ravel() > 0
    return _compared(asked, sure & (answers == secrets), sample)


def _compared(notes: Sequence[Note], success: Sequence[bool], sample: Sample) -> PatientShares:
    """Compare members and held-out patients: a hit for one note is a hit for its patient."""
    hit = [note.patient for note, one in zip(notes, success, strict=True) if one]
    return compare_patients(
        hit, [note.patient for note in notes], {note.patient for note in sample.of(member=True)}
    )


def risks(
    texts: Sequence[str], sample: Sample, likeness: Likeness, settings: Settings
) -> dict[str, PatientShares]:
    """Return each risk that could be measured, by its key under `tests` in `wording.yml`.

    Args:
        texts: synthetic ones, or what a model wrote.
        sample: the notes of members and held-out patients.
        likeness: of these texts and the notes.
        settings: of the audit.
    """
    shares = {
        Check.SINGLING_OUT: singled_out(texts, sample, likeness, settings),
        Check.LINKABILITY: linked(sample, likeness),
        Check.INFERENCE: inferred(texts, sample, likeness),
    }
    return {name: one for name, one in shares.items() if one is not None}
