"""The sample of notes that an audit asks about, each encoded once by each tokenizer.

Large files are sampled by patient at random, so the findings apply to all. Only the seed and the texts
decide: the same records give the same sample, and the same random numbers afterwards, whatever the name,
format, columns, patient ids, and order of the file.

A letter with an accent is one character (NFC) or a letter and a mark (NFD). Programs silently convert between
them, a byte-level tokenizer gives them different tokens, and a model that was trained on one form knows
little of the other. So the notes are read in the form that the model predicts best.

What a tokenizer loses of a text, a model can neither know nor write. An audit would not find it, whatever the
model was trained on, so it reports the loss first.
"""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from privaudit.model import EncodedTexts, Target
from privaudit.records import FEWEST_PATIENTS, Files, Note, RecordFile
from privaudit.settings import Settings
from privhelpers import rng
from privhelpers.errors import BadRecords, UnsupportedModel
from privhelpers.models._folder import called
from privhelpers.spelling import words
from privhelpers.text import found_in, normalize, same_as

Form = Literal["NFC", "NFD"]
FORMS: tuple[Form, ...] = ("NFC", "NFD")
_TRIED = 100  # notes that are read in several ways, to choose one
_GAIN = 0.01  # nats a token: an untrained model gains less, as from any change of position


@dataclass(frozen=True)
class Sample:
    """The notes that are tested.

    Attributes:
        notes: members first; patients and their notes in an order that texts and seed decide.
        member: whether each was trained on, shape [notes].
        unreadable: notes without a token.
        encoded: the notes as encoded for each model, in the order of the models.
    """

    notes: list[Note]
    member: np.ndarray
    unreadable: int
    encoded: tuple[EncodedTexts, ...] = field(default=(), repr=False, compare=False)

    @property
    def texts(self) -> list[str]:
        """The text of each note."""
        return [note.text for note in self.notes]

    @property
    def patients(self) -> np.ndarray:
        """The patient of each note, as a number: the place among the patients of the sample."""
        numbers: dict[str, int] = {}
        return np.array([numbers.setdefault(note.patient, len(numbers)) for note in self.notes])

    def of(self, *, member: bool) -> list[Note]:
        """Return the notes of one side."""
        return [note for note, is_member in zip(self.notes, self.member, strict=True) if is_member == member]

    @property
    def sizes(self) -> tuple[int, int]:
        """The numbers of member and of held-out patients."""
        members, heldout = (len({note.patient for note in self.of(member=side)}) for side in (True, False))
        return members, heldout

    def texts_by_patient(self, *, member: bool) -> list[list[str]]:
        """Return the texts of each patient of one side."""
        people: dict[str, list[str]] = {}
        for note in self.of(member=member):
            people.setdefault(note.patient, []).append(note.text)
        return list(people.values())


def content_key(seed: int, contents: Iterable[str]) -> bytes:
    """Return a pseudorandom sort key that depends on a seed and some strings."""
    stream = rng.derive(seed, "checkup/drawn").to_bytes(8, "big")
    hashed = hashlib.blake2b(key=stream, digest_size=16)
    for content in contents:
        data = content.encode("utf-8", "surrogatepass")
        hashed.update(len(data).to_bytes(8, "big") + data)
    return hashed.digest()


def _drawn_notes(file: RecordFile, settings: Settings) -> list[Note]:
    """Return the sampled notes of a file in random order, patient by patient."""
    by_patient: dict[str, list[Note]] = {}
    for note in file.notes:
        by_patient.setdefault(note.patient, []).append(note)
    people = []
    for notes in by_patient.values():
        contents = sorted([note.text, *sorted(note.identifiers)] for note in notes)
        people.append((content_key(settings.seed, [part for row in contents for part in row]), notes))
    people.sort(key=lambda one: one[0])
    drawn = []
    for key, notes in people[: settings.patients]:
        # With the patient, so that a shared text is not sampled for all or for none.
        ordered = sorted(notes, key=lambda note: content_key(settings.seed, [key.hex(), note.text]))
        drawn += ordered[: settings.notes]
    return drawn


def draw_sample(files: Files, models: Sequence[Target], settings: Settings) -> Sample:
    """Return the sampled notes that every model can read.

    Raises:
        BadRecords: fewer than 50 patients are left.
    """
    sides = [_drawn_notes(file, settings) for file in (files.members, files.heldout)]
    notes, member = [*sides[0], *sides[1]], np.repeat([True, False], [len(side) for side in sides])
    encoded = [model.encode([note.text for note in notes]) for model in models]
    readable = np.ones(len(notes), dtype=bool)
    for one in encoded:
        readable &= one.readable
    kept = np.flatnonzero(readable)
    sample = Sample(
        [notes[n] for n in kept],
        member[readable],
        int((~readable).sum()),
        tuple(one.take(kept) for one in encoded),
    )
    for side, file in ((True, files.members), (False, files.heldout)):
        if len(sample.texts_by_patient(member=side)) < FEWEST_PATIENTS:
            raise BadRecords(
                f"{file.name}: the tokenizer turns the notes of too many patients into no tokens"
            )
    return sample


def read_as_trained(
    models: Sequence[Target], sample: Sample, *, seed: int
) -> tuple[tuple[Target, ...], Sample]:
    """Return causal models and a sample without start tokens if the first model predicts it better so.

    Some trainings put the tokenizer's start token before each text. Others use what the tokenizer gives,
    which for GPT-2 has none: after a token that it never saw there, a model knows less of a text. Both sides
    are read together, so the choice does not depend on membership. The first token, which nothing predicts
    without a start, does not count.

    Args:
        models: the audited one first.
        sample: drawn for these models.
        seed: of the groups in which tokens are masked.
    """
    begins = [model.is_causal and model.start is not None for model in models]
    pairs = zip(sample.encoded, begins, strict=True)
    alone = tuple(one.without_start() if start else one for one, start in pairs)
    if not begins[0] or not all(one.readable.all() for one in alone):
        return tuple(models), sample
    few = range(0, len(sample.notes), max(1, len(sample.notes) // _TRIED))
    after, without = (models[0].score(one[0].take(few), seed=seed).log_p for one in (sample.encoded, alone))
    gain = np.mean(np.concatenate(without)) - np.mean(np.concatenate([one[1:] for one in after]))
    if gain < _GAIN:
        return tuple(models), sample
    changed = tuple(replace(model, starts=not start) for model, start in zip(models, begins, strict=True))
    return changed, replace(sample, encoded=alone)


def rewrite(texts: Sequence[str], form: Form | None) -> list[str]:
    """Return texts in a normal form; unchanged if it is None."""
    return [unicodedata.normalize(form, text) for text in texts] if form else list(texts)


def form_the_model_knows(target: Target, sample: Sample, *, seed: int) -> Form | None:
    """Return the form that a model predicts best, or None if that is how the notes are written.

    Both sides are scored together, so the choice does not depend on membership.

    Args:
        target: the audited model.
        sample: the notes, drawn for this model first.
        seed: of the groups in which tokens are masked.
    """
    numbers = [
        n
        for n, text in enumerate(sample.texts)
        if len({text, *(rewrite([text], form)[0] for form in FORMS)}) > 1
    ]
    numbers = numbers[:: max(1, len(numbers) // _TRIED)]
    if not numbers:
        return None
    texts = [sample.notes[n].text for n in numbers]
    surprise: dict[Form | None, float] = {}
    for form in (None, *FORMS):
        written = rewrite(texts, form)
        if form and written == texts:
            continue
        encoded = target.encode(written) if form else sample.encoded[0].take(numbers)
        if not encoded.readable.all():
            continue
        scored = target.score(encoded, seed=seed)
        read = [scored.part_read(number, text) for number, text in enumerate(written)]
        characters = sum(len(unicodedata.normalize("NFC", part)) for part in read)
        surprise[form] = -sum(float(log_p.sum()) for log_p in scored.log_p) / max(1, characters)
    return min(surprise, key=surprise.__getitem__)  # a tie keeps the notes as they are


def in_form(sample: Sample, form: Form | None, models: Sequence[Target]) -> Sample:
    """Return a sample with its notes, and the strings that name a patient, in a normal form.

    Args:
        sample: drawn for these models.
        form: None leaves everything as it is.
        models: each encodes the rewritten notes.
    """
    if form is None:
        return sample
    notes = [
        replace(note, text=text, identifiers=tuple(rewrite(note.identifiers, form)))
        for note, text in zip(sample.notes, rewrite(sample.texts, form), strict=True)
    ]
    texts = [note.text for note in notes]
    return replace(sample, notes=notes, encoded=tuple(model.encode(texts) for model in models))


_SHORTEST_STRING = 6  # letters of a string that names a patient: shorter ones occur by chance
# Six digits or more, as in record numbers, telephone numbers and dates; and addresses of mail. A dot before a
# blank ends a sentence, and the number with it.
_NUMBER = re.compile(r"(?<!\d)\d(?:(?:\.(?! )| \. |[-/() ]){0,3}\d){5,}(?!\d)")
_MAIL = re.compile(r"[\w.%+'-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,5}")


def naming_strings(notes: Sequence[Note]) -> dict[str, str]:
    """Return strings that name exactly one patient, normalized, with that patient.

    These are declared identifiers, and numbers of six digits or more and mail addresses in the text. A string
    that two patients share names neither.
    """
    owners: dict[str, set[str]] = {}
    written: dict[str, str] = {}
    for note in notes:
        text = normalize(note.text)
        for value in [*map(normalize, note.identifiers), *_NUMBER.findall(text), *_MAIL.findall(text)]:
            if _length(value) >= _SHORTEST_STRING:
                owners.setdefault(same_as(value), set()).add(note.patient)
                written.setdefault(same_as(value), value)
    return {written[value]: next(iter(people)) for value, people in owners.items() if len(people) == 1}


def _length(value: str) -> int:
    """Return the length of a string; a wide character, such as a Chinese one, counts as three."""
    return sum(3 if unicodedata.east_asian_width(character) == "W" else 1 for character in value)


LEAST = 0.5  # share of words that must return: with fewer, finding nothing would mean nothing
MOST_LOST = 0.05  # a smaller share is not reported
_RETURNED = 200  # notes


def require_text_back(target: Target, notes: Sequence[Note], encoded: EncodedTexts) -> str:
    """Refuse a model whose tokenizer loses most of the notes; return a sentence about what it loses.

    Args:
        target: the model.
        notes: of the sample.
        encoded: the notes as the model reads them.

    Returns:
        The sentence, if more than one word in twenty is lost or, with a causal model, more than one string in
        twenty that names a patient; otherwise "".

    Raises:
        UnsupportedModel: more than half of the words are lost.
    """
    ends = [int(bounds[-1]) for bounds in encoded.bounds]  # -1: cut at an unknown place
    numbers = [n for n in range(0, len(notes), max(1, -(-len(notes) // _RETURNED))) if ends[n] >= 0]
    asked, back = [notes[n] for n in numbers], target.give_back(encoded.take(numbers))
    read = [notes[n].text[: ends[n]] for n in numbers]
    counts = {"words of the records": _words_kept(read, back)}
    if target.is_causal:
        counts["strings that name a patient"] = _strings_kept(asked, read, back)
    (kept, total), *_ = counts.values()
    if kept < LEAST * total:
        raise UnsupportedModel(
            f"{called(target.name)}: its tokenizer loses most words (of {total:,} words of the records "
            f"{kept:,} return); save to its folder the tokenizer, with its decoder, with which the model was "
            "trained"
        )
    lost = [
        f"{total - kept:,} of {total:,} {what}"
        for what, (kept, total) in counts.items()
        if kept < (1 - MOST_LOST) * total
    ]
    if not lost:
        return ""
    return (
        f"The tokenizer of {called(target.name)} loses {' and '.join(lost)}: the model cannot write "
        "these, and no attack can find them."
    )


def _words_kept(read: Sequence[str], back: Sequence[str]) -> tuple[int, int]:
    """Return how many words are kept, and how many there are."""
    kept = total = 0
    for text, returned in zip(read, back, strict=True):
        given = Counter(words(text))
        total += given.total()
        kept += (given & Counter(words(returned))).total()
    return kept, total


def _strings_kept(asked: Sequence[Note], read: Sequence[str], back: Sequence[str]) -> tuple[int, int]:
    """Return how many strings that name a patient are kept, and how many there are."""
    strings: dict[str, list[str]] = {}
    for value, patient in naming_strings(asked).items():
        strings.setdefault(patient, []).append(value)
    kept = total = 0
    for note, text, returned in zip(asked, read, back, strict=True):
        values = found_in(strings.get(note.patient, ()), text)
        total += len(values)
        kept += len(found_in(values, returned))
    return kept, total
