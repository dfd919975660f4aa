"""Singling out, linking and inferring, the three risks that regulators name, as attacks with a control arm.

Each attack uses nothing but a set of texts, synthetic ones or what a model wrote, and what somebody might
know of a person. It is tried on member patients and, in the same way, on held-out ones, whom no text can give
away: what succeeds there succeeds without a leak. The risk is the difference. It is a figure of this attack,
not of every one.

Sources: Article 29 Working Party, Opinion 05/2014 (WP 216), section 2.2.2, and EDPB, Opinion 28/2024, section
3.2, for the words; Giomi et al. 2023 for a control arm of each.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from privaudit._files import Note
from privaudit._likeness import Likeness
from privaudit._memorization import PatientShares, compare_patients
from privaudit._names import Check
from privaudit._sample import Sample
from privaudit._settings import Settings
from privhelpers import rng, spelling, stats

TOGETHER = 3  # words that a guess names a patient by, and words of a note that are inferred
SHARED = 5  # patients at least who have the word that is inferred
NEAREST = 3  # texts that somebody looks at
CLOSE = 0.5  # cosine of a text from which on it says something about a note
_GUESSES = 2000  # texts that a guess is drawn from
_ROWS = 256  # halves that are compared with all others at once


def _even_arms(sample: Sample, seed: int) -> tuple[list[str], np.ndarray]:
    """Return as many member as held-out patients, and which are members: who is unique hangs on how many."""
    lot = rng.make(seed, "checkup/risks/arms")
    sides = [list(dict.fromkeys(note.patient for note in sample.of(member=side))) for side in (True, False)]
    size = min(map(len, sides))
    drawn = [[side[n] for n in sorted(lot.permutation(len(side))[:size])] for side in sides]
    return [*drawn[0], *drawn[1]], np.arange(2 * size) < size


def _guesses(texts: Sequence[str], likeness: Likeness, seed: int) -> list[tuple[str, ...]]:
    """Return the three rarest words of each text, of 2,000 at most drawn by lot, each guess once."""
    distinct = sorted(set(texts))
    drawn = rng.make(seed, "checkup/risks/guesses").permutation(len(distinct))[:_GUESSES]
    rarest = (
        sorted({*spelling.words(distinct[n])}, key=lambda word: (-likeness.rarity(word), word)) for n in drawn
    )
    return list(dict.fromkeys(tuple(words[:TOGETHER]) for words in rarest if len(words) >= TOGETHER))


def _holders(guesses: Sequence[tuple[str, ...]], people: Sequence[str], sample: Sample) -> sparse.csr_matrix:
    """Return which patients have a note with all words of which guess, shape [patients, guesses]."""
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
    """Say how many patients are the only one of their group who fits a guess made of the texts.

    A guess is "somebody has a note with these three words", the rarest of one text. Whether a patient is the
    only one hangs on the others, so p comes from dealing membership anew to whole patients.
    """
    people, member = _even_arms(sample, settings.seed)
    holders = _holders(_guesses(texts, likeness, settings.seed), people, sample)
    fits = holders.getnnz(axis=1) > 0  # whom no guess fits counts in no dealing
    holders = holders[fits][:, holders.getnnz(axis=0) > 0]

    def alone(labels: np.ndarray) -> np.ndarray:
        """Return which patients of the labeled group are the only one for some guess."""
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
    """Say of how many patients the texts lead from the first half of a note to its second half.

    Somebody holds first and second halves and joins those that are close to the same texts. A patient is
    linked if that joins a note of theirs, and no half of another patient as well or better.
    """
    halves = [spelling.words(note.text) for note in sample.notes]
    first, second = (
        _near([" ".join(words[part(len(words))]) for words in halves], likeness)
        for part in (lambda size: slice(size // 2), lambda size: slice(size // 2, None))
    )
    people, right = np.unique(sample.patients, return_inverse=True)[1], []
    for start in range(0, len(halves), _ROWS):
        joined = (first[start : start + _ROWS] @ second.T).tocoo()
        note, own = start + joined.row, np.zeros(joined.shape[0])
        own[joined.row[note == joined.col]] = joined.data[note == joined.col]
        joined.data[people[note] == people[joined.col]] = 0
        right.append(own > joined.max(axis=1).toarray().ravel())
    return _compared(sample.notes, np.concatenate(right), sample)


def inferred(texts: Sequence[str], sample: Sample, likeness: Likeness) -> PatientShares | None:
    """Say of how many patients the rest of a note leads to a word that was taken out of it.

    Each of the three rarest words that at least five patients share, such as a diagnosis, is taken out in
    turn. Somebody knows the rest, and answers where texts are close to it: with such a word that the rest
    does not have, by how close the texts that have it are and how rare it is. A patient counts if one answer
    is right.

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
    holds, known = counter.transform(texts), counter.transform(rests)
    votes = _near(rests, likeness, least=CLOSE) @ holds
    votes = (votes - votes.multiply(known)) @ sparse.diags_array([likeness.rarity(word) for word in shared])
    answers, sure = np.asarray(votes.argmax(axis=1)).ravel(), votes.max(axis=1).toarray().ravel() > 0
    return _compared(asked, sure & (answers == secrets), sample)


def _near(texts: Sequence[str], likeness: Likeness, *, least: float = 0.0) -> sparse.csr_matrix:
    """Return the squared cosines with the closest synthetic texts, those below `least` left out."""
    near = likeness.nearby(texts, NEAREST)
    near.data = np.where(near.data >= least, near.data**2, 0)
    return near


def _compared(notes: Sequence[Note], success: Sequence[bool], sample: Sample) -> PatientShares:
    """Compare members and held-out patients: a hit for one note is a hit for its patient."""
    hit = [note.patient for note, one in zip(notes, success, strict=True) if one]
    return compare_patients(
        hit, [note.patient for note in notes], {note.patient for note in sample.of(member=True)}
    )


def risks(
    texts: Sequence[str], sample: Sample, likeness: Likeness, settings: Settings
) -> dict[str, PatientShares]:
    """Return each risk that could be asked about, by its key under `tests` in `wording.yml`.

    Args:
        texts: synthetic ones, or what a model wrote.
        sample: the notes of members and held-out patients.
        likeness: of these texts and notes.
        settings: of the audit.
    """
    shares = {
        Check.SINGLING_OUT: singled_out(texts, sample, likeness, settings),
        Check.LINKABILITY: linked(sample, likeness),
        Check.INFERENCE: inferred(texts, sample, likeness),
    }
    return {name: one for name, one in shares.items() if one is not None}
