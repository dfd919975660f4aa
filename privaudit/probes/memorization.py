"""What of the records a model gives back: second halves of notes, and strings that name a patient.

Both are counted by patient and compared with the same count for held-out patients, whom the model never saw:
a standard phrase, or a number that many could have, comes back for them as often.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from tqdm.auto import tqdm

from privaudit.encode import Sample, naming_strings
from privaudit.model import Target
from privaudit.probes.counts import PatientShares, Share, compare_patients
from privaudit.records import Note
from privaudit.settings import Settings
from privhelpers import spelling, stats
from privhelpers.attacks import groups
from privhelpers.models import TokenScores
from privhelpers.stats import Interval
from privhelpers.stats.clustered import widen_point_interval
from privhelpers.text import found_among

SHORTEST = 20  # tokens of a note whose second half is tested
_OPENING = 2  # words that a text is begun with


@dataclass(frozen=True)
class Completions:
    """Second halves of notes that greedy decoding returns word for word.

    Attributes:
        by_patient: patients with at least one such note.
        notes, heldout_notes: such notes.
        lines: the numbers of the members' such notes in their file.
        too_short: notes that were too short to test.
    """

    by_patient: PatientShares
    notes: Share
    heldout_notes: Share
    lines: tuple[int, ...]
    too_short: int


def completions(scored: TokenScores, sample: Sample) -> Completions | None:
    """Count notes of which a causal model returns the second half, given the first.

    Greedy decoding returns a half exactly if each of its tokens is the most probable one after those before
    it, so the pass that scored the notes already has the answer.

    Args:
        scored: the tokens of the notes by a causal model.
        sample: the notes.

    Returns:
        The counts, or None if a group has no note of 20 tokens.

    Source: Carlini et al. 2023, definition 3.1.
    """
    member, patients = sample.member, sample.patients
    asked = scored.tokens >= SHORTEST
    recalled = asked & np.array([bool(greedy[len(greedy) // 2 :].all()) for greedy in scored.greedy])
    if not (asked & member).any() or not (asked & ~member).any():
        return None
    return Completions(
        compare_patients(patients[recalled], patients[asked], patients[member]),
        Share(int((recalled & member).sum()), int((asked & member).sum())),
        Share(int((recalled & ~member).sum()), int((asked & ~member).sum())),
        tuple(sorted(sample.notes[n].line for n in np.flatnonzero(recalled & member))),
        int((~asked).sum()),
    )


def _first_words(text: str, count: int) -> str:
    """Return the beginning of a text; a letter of a script without blanks counts as half a word."""
    left, end = 2 * count, 0
    for word in re.finditer(r"\S+", text):
        if any(map(spelling.without_blanks, word[0])):
            ends = [(word.start() + unit.end(), unit[0]) for unit in spelling.units(word[0])]
        else:
            ends = [(word.end(), word[0])]
        for unit_end, unit in ends:
            if left > 0:
                left, end = left - 1 - spelling.says_a_word(unit), unit_end
    return " ".join(text[:end].split())


def openings(notes: Sequence[Note], *, most: int) -> list[str]:
    """Return common openings of notes: first words that several held-out patients share, most common first.

    Openings with digits are left out, because a number may belong to a person.

    Args:
        notes: held-out notes: an attacker knows the style of the hospital, but no patient.
        most: how many at most, 1 or more.
    """
    shared: dict[str, set[str]] = {}
    for note in notes:
        first = _first_words(note.text, _OPENING)
        if first and not any(map(str.isdigit, first)):
            shared.setdefault(first, set()).add(note.patient)
    counts = Counter({opening: len(people) for opening, people in shared.items() if len(people) > 1})
    return [opening for opening, _ in counts.most_common(most)]


def write_texts(target: Target, sample: Sample, settings: Settings, *, progress: bool) -> list[str]:
    """Let a causal model write `settings.texts` texts, without and with common openings."""
    begin = list(filter(target.continues, ["", *openings(sample.of(member=False), most=11)]))
    begin = begin[: settings.texts]
    texts: list[str] = []
    for number, opening in enumerate(tqdm(begin, desc="writing", unit="opening", disable=not progress)):
        samples = len(range(number, settings.texts, len(begin)))  # the first ones get the remainder
        texts += target.write(opening, samples=samples, tokens=settings.tokens, seed=settings.seed)
    return texts


@dataclass(frozen=True)
class Disclosures:
    """Patients who are named in what the model wrote.

    Attributes:
        by_patient: patients with one of their strings in some text, of those who have a string.
        texts, distinct: numbers of texts, and of distinct texts.
        strings: numbers of strings of members and of held-out patients.
        disclosed: the members' strings that were written.
    """

    by_patient: PatientShares
    texts: int
    distinct: int
    strings: tuple[int, int]
    disclosed: tuple[str, ...]


def disclosures(texts: Sequence[str], sample: Sample) -> Disclosures | None:
    """Search what the model wrote for strings of members and of held-out patients.

    Args:
        texts: what it wrote.
        sample: the notes of both groups.

    Returns:
        The counts, or None if a group has no such string.

    Source: Lukas et al. 2023, for extraction with a control.
    """
    owners = naming_strings(sample.notes)
    members = {note.patient for note in sample.of(member=True)}
    inside = sum(patient in members for patient in owners.values())
    if inside in (0, len(owners)):
        return None
    written = found_among(owners, texts)
    return Disclosures(
        compare_patients((owners[value] for value in written), owners.values(), members),
        len(texts),
        len(set(texts)),
        (inside, len(owners) - inside),
        tuple(sorted(value for value in written if owners[value] in members)),
    )


def guessed(scored: TokenScores, sample: Sample, settings: Settings) -> tuple[Interval, Interval]:
    """Return the share of words guessed right at the first attempt, of members and of held-out patients."""
    rates = np.array([greedy.mean() for greedy in scored.greedy])
    intervals = []
    for side in (sample.member, ~sample.member):
        means, patients = groups.group_means(rates[side], sample.patients[side])
        count = len(patients)
        share = stats.clustered_bootstrap(
            np.mean, np.arange(count), means, draws=settings.draws, seed=settings.seed
        )
        intervals.append(widen_point_interval(share, np.arange(count)))
    return intervals[0], intervals[1]
