"""The three risks that regulators name, in a set of texts: singling out, linkability, and inference.

Each uses only the texts, synthetic or written by a model, and what someone might know of a person. Each
attack is tried on members and, in the same way, on held-out patients, whom no text can reveal: success there
needs no leak. The risk is the difference. It measures this attack, not every one.

Sources: Article 29 Working Party, Opinion 05/2014 (WP 216), section 2.2.2, and EDPB, Opinion 28/2024, section
3.2, for the words; Giomi et al. 2023 for a control arm of each.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from privaudit.encode import Sample
from privaudit.probes.counts import Check, PatientShares, compare_patients
from privaudit.probes.likeness import Likeness
from privaudit.records import Note
from privaudit.settings import Settings
from privhelpers import rng, spelling, stats

TOGETHER = 3  # words of a guess, and words of a note that are inferred
SHARED = 5  # least patients who share a word that is inferred
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
