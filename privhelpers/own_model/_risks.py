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

from privhelpers import rng, stats
from privhelpers.own_model._files import Note
from privhelpers.own_model._likeness import Likeness, words_of
from privhelpers.own_model._memorization import PatientShares, compare_patients
from privhelpers.own_model._sample import Sample
from privhelpers.own_model._settings import Settings

TOGETHER = 3  # words that a guess names a patient by
SHARED = 5  # patients at least who have the word that is inferred
_GUESSES = 2000  # texts that a guess is drawn from
_DEALINGS = 1999


def _one_note_each(sample: Sample, seed: int) -> list[Note]:
    """Return one note of each patient, drawn by lot."""
    lot = rng.make(seed, "checkup/risks/notes")
    first: dict[str, Note] = {}
    for place in lot.permutation(len(sample.notes)):
        first.setdefault(sample.notes[place].patient, sample.notes[place])
    return list(first.values())


def _even_arms(sample: Sample, seed: int) -> tuple[list[str], np.ndarray]:
    """Return as many member as held-out patients, and which are members: who is unique hangs on how many."""
    lot = rng.make(seed, "checkup/risks/arms")
    sides = [list(dict.fromkeys(note.patient for note in sample.of(member=side))) for side in (True, False)]
    size = min(map(len, sides))
    drawn = [[side[n] for n in sorted(lot.permutation(len(side))[:size])] for side in sides]
    return [*drawn[0], *drawn[1]], np.arange(2 * size) < size


def _guesses(texts: Sequence[str], likeness: Likeness, seed: int) -> list[tuple[str, ...]]:
    """Return the three rarest words of each text, of 2,000 at most drawn by lot, each guess once."""
    distinct = list(dict.fromkeys(texts))
    drawn = rng.make(seed, "checkup/risks/guesses").permutation(len(distinct))[:_GUESSES]
    rarest = (
        sorted({*words_of(distinct[n])}, key=lambda word: (-likeness.rarity(word), word)) for n in drawn
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
            words = {*words_of(note.text)}
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

    def alone(labels: np.ndarray) -> np.ndarray:
        """Return which patients of the labeled group are the only one for some guess."""
        group = labels.astype(float)
        once = ((group @ holders) == 1).astype(float)
        return ((once @ holders.T) > 0) & labels

    inside, outside = alone(member[None])[0], alone(~member[None])[0]
    hit = [patient for patient, one in zip(people, inside | outside, strict=True) if one]
    shares = compare_patients(hit, people, people[: member.sum()])
    p = stats.permutation_test(
        lambda labels: alone(labels).sum(axis=1, keepdims=True),
        member,
        draws=min(settings.permutations, _DEALINGS),
        seed=settings.seed,
        cells=holders.shape[1] + 2 * member.size,
    )
    return replace(shares, p=float(p[0]))


def linked(sample: Sample, likeness: Likeness, settings: Settings) -> PatientShares:
    """Say of how many patients the two halves of a note lead to the same text.

    Somebody holds two pieces about people, and joins two that are closest to one and the same text.
    """
    notes = _one_note_each(sample, settings.seed)
    halves = [note.text.split() for note in notes]
    first, second = (
        likeness.nearest([" ".join(words[part(len(words))]) for words in halves])
        for part in (lambda size: slice(size // 2), lambda size: slice(size // 2, None))
    )
    same = (first[1] == second[1]) & (first[0] > 0) & (second[0] > 0)
    return _compared(notes, same, sample)


def inferred(
    texts: Sequence[str], sample: Sample, likeness: Likeness, settings: Settings
) -> PatientShares | None:
    """Say of how many patients the rest of a note leads to the word that was taken out of it.

    The word is the rarest of the note that at least five patients share, such as a diagnosis. Somebody knows
    the rest, takes the closest text, and says its rarest word that the rest does not have.

    Returns:
        The counts, or None if no note has such a word in one of the groups.
    """
    owners: dict[str, set[str]] = {}
    for note in sample.notes:
        for word in words_of(note.text):
            owners.setdefault(word, set()).add(note.patient)
    asked, rests, secrets = [], [], []
    for note in _one_note_each(sample, settings.seed):
        words = words_of(note.text)
        common = {word for word in words if len(owners[word]) >= SHARED}
        if common and len({*words}) > 1:
            secret = max(sorted(common), key=likeness.rarity)
            asked.append(note)
            secrets.append(secret)
            rests.append([word for word in words if word != secret])
    members = {note.patient for note in sample.of(member=True)}
    if len({note.patient in members for note in asked}) < 2:
        return None
    _, places = likeness.nearest([" ".join(rest) for rest in rests])
    said = (
        max(sorted({*words_of(texts[place])} - {*rest}), key=likeness.rarity, default="")
        for place, rest in zip(places, rests, strict=True)
    )
    right = [word == secret for word, secret in zip(said, secrets, strict=True)]
    return _compared(asked, right, sample)


def _compared(notes: Sequence[Note], success: Sequence[bool], sample: Sample) -> PatientShares:
    """Compare members and held-out patients, one note each."""
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
        "singling_out": singled_out(texts, sample, likeness, settings),
        "linkability": linked(sample, likeness, settings),
        "inference": inferred(texts, sample, likeness, settings),
    }
    return {name: one for name, one in shares.items() if one is not None}
