"""Canaries before a training: notes of the records' own kind, of which a fair coin plants some.

A canary has the layout of a note: its white space, and its words that five patients or more have.
All other words become such words, every number an impossible one, and every listed name an invented one. Its
secret, a number of twelve random digits, is near the beginning, where no length limit cuts it off. It has a
patient_id of its own, and all its copies have the same.

Why single coins and not pairs. If a coin of its own decides about each canary, an outcome is one step of
add/remove. If it decides which of two twins goes in, it is a replacement, which is two steps, so the same
canaries certify less than half: 1,000 canaries with perfect guesses certify 7.07 for Gaussian noise at delta
1e-5 and 99.5% confidence, and as 500 pairs 2.76. The canaries that stayed out are the controls. A pair would
cancel the difficulty of a layout, and so does a reference model. The score is the loss of the whole canary:
its words were drawn for it, too, and the number of tokens of a secret may depend on whether the tokenizer was
trained on it.

Which bound. For any mechanism, each guess is right with probability e^epsilon / (1 + e^epsilon) at most
(Steinke, Nasr and Jagielski 2023), so an epsilon of 8 needs about 9,000 right guesses and no wrong one at 95%
confidence; at delta 1e-5 and 99.5% no number is enough, because so many canaries let delta explain a few. If
the trade-off curve is a Gaussian one or above it, some 2,000 are enough (Mahloujifar, Melis and Chaudhuri
2025). The curve of DP-SGD is above the Gaussian one with the same epsilon and delta up to that epsilon, and
beyond it the two differ by less than delta. The audit gives both bounds, and names the condition.

Which canaries. A claim for one record is tested by canaries with one copy alone: to add a canary with 16
copies is to add 16 records. A claim for one patient with all notes covers the copies, which share a
patient_id, so every canary tests it. The manifest has the unit.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from scipy.optimize import brentq

from privaudit import kit
from privaudit.kit import Manifest, Refutes, Unit
from privaudit.records import FEWEST_CANARIES, Canary, Note, RecordFile
from privaudit.rows import RecordRow
from privaudit.settings import Settings
from privhelpers import rng, validate
from privhelpers.artifacts import to_json
from privhelpers.errors import BadRecords, InvalidParameter
from privhelpers.lower_bounds import (
    BINOMIAL,
    FDP,
    SHARES,
    fdp_mass,
    most_certifiable,
    searched_guesses,
)
from privhelpers.mechanisms import gdp_epsilon
from privhelpers.records._identifiers import PeopleFactory
from privhelpers.text import normalize, places

SHARED = 5  # patients who have a word, at least, if a canary may have it
FEWEST_WORDS = 20  # that so many patients share
LONGEST = 40  # words of a canary
BEFORE = 8  # words before the secret
REPLACED = 0.2  # of the shared words, so that no canary is a whole note
DIGITS = 12  # of a secret: 40 bits
SPARE = 2  # times as many canaries as perfect guesses need, by default: one wrong guess does no harm
COPIES = (4, 16)  # and 1
CONFIDENCE = 1 - Settings(epsilon=1.0, delta=0.5).share  # of the bound in an audit
MOST = 100_000  # canaries with one copy
_LARGEST_MU = 64.0
_NAME, _CODE = "\ue000", "\ue001"  # characters of no text, in place of a name and of a number
_FRESH = re.compile(f"[{_NAME}{_CODE}]")
_ADDRESS = re.compile(r"@|://|www\.")
_WORD = re.compile(r"(\s*)(\S+)")
# Words with a digit or an address, and their neighbors of the same kind: one number.
_NUMBER = re.compile(r"\S*(?:\d|@|://|www\.)\S*(?:\s+\S*(?:\d|@|://|www\.)\S*)*")
_CORE = re.compile(r"\w(?:.*\w)?", re.DOTALL)


def refutes(canaries: int, delta: float) -> Refutes:
    """Return what perfect guesses about so many canaries certify in an audit.

    Args:
        canaries: that the claim is about, 2 or more.
        delta: of the claim, in (0, 1).

    Raises:
        InvalidParameter: a value is out of its range.
    """
    bound = {"delta": validate.delta(delta), "confidence": CONFIDENCE}
    gaussian, any_mechanism = (
        most_certifiable(canaries=canaries, shares=SHARES, method=method, **bound)
        for method in (FDP, BINOMIAL)
    )
    return Refutes(gaussian=gaussian, any_mechanism=any_mechanism, **bound)


def fewest_canaries(epsilon: float, delta: float) -> int:
    """Return how many canaries refute an epsilon for Gaussian noise if all guesses are right.

    Args:
        epsilon: in nats, greater than 0.
        delta: in (0, 1).

    Raises:
        InvalidParameter: a value is out of its range, or more than 100,000 are needed.
    """
    epsilon, delta = validate.positive(epsilon=epsilon), validate.delta(delta)
    mu = brentq(lambda mu: gdp_epsilon(mu=mu, delta=delta) - epsilon, 0.0, _LARGEST_MU)

    def enough(canaries: int) -> bool:
        numbers = searched_guesses(canaries, SHARES)
        test = {"mu": mu, "significance": (1 - CONFIDENCE) / len(numbers)}
        return any(fdp_mass(canaries=canaries, guesses=n, correct=n, **test) > 1 for n in numbers)

    low, high = FEWEST_CANARIES, 2 * FEWEST_CANARIES
    while high <= MOST and not enough(high):
        low, high = high, 2 * high
    if high > MOST:
        raise InvalidParameter(f"epsilon = {epsilon:g}: needs more than {MOST:,} canaries; claim less")
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


class NoteWriter:
    """Writes notes of the records' own kind, of words that several patients share."""

    def __init__(self, notes: Sequence[Note], *, seed: int) -> None:
        """Count the words of the records.

        Args:
            notes: the records.
            seed: of the notes that are written.

        Raises:
            BadRecords: too few words are shared.
        """
        self._random = rng.plain(seed, "canaries/notes")
        self._people = PeopleFactory(self._random)
        self._notes = notes
        owned: dict[str, set[str]] = {}
        for note in notes:
            owned.setdefault(note.patient, set()).update(map(_form, note.text.split()))
        self._names = {normalize(value) for note in notes for value in note.identifiers}
        parts = {part for name in self._names for part in name.split()}
        patients = Counter(word for words in owned.values() for word in words)
        self._known = {
            word
            for word, count in patients.items()
            if count >= SHARED and normalize(word).strip(".,;:()") not in parts
        }
        self._shared = sorted(word for word in self._known if not _NUMBER.search(word))
        if len(self._shared) < FEWEST_WORDS:
            raise BadRecords(
                f"{len(self._shared)} words are in the notes of {SHARED} patients or more; a canary is "
                f"written of such words, and needs {FEWEST_WORDS} of them"
            )

    def _name(self) -> str:
        while normalize(name := self._people.name()) in self._names:
            pass
        return name

    def _digits(self, word: str) -> str:
        return re.sub(r"\d", lambda _: str(self._random.randrange(10)), word)

    def _word(self, found: re.Match) -> str:
        """Return a word that several patients have; a name or a number keeps the marks around it."""
        space, word = found.groups()
        if _FRESH.search(word):
            return space + "".join(mark for mark in word if not mark.isalnum())
        kept = _form(word) in self._known and self._random.random() >= REPLACED
        return space + self._digits(word if kept else self._random.choice(self._shared))

    def _fresh(self, found: re.Match) -> str:
        return self._name() if found[0] == _NAME else self._digits("SYN-00000000")

    def write(self, secret: str) -> str:
        """Return a note that contains a secret after its first words."""
        note = self._random.choice(self._notes)
        text = _FRESH.sub(" ", note.text)
        for value in sorted(note.identifiers, key=len, reverse=True):
            for start, end in reversed(places(value, text)):
                text = text[:start] + _NAME + text[end:]
        text = "".join(found[0] for found in list(_WORD.finditer(text))[:LONGEST])
        text = _FRESH.sub(self._fresh, _WORD.sub(self._word, _NUMBER.sub(_impossible, text)))
        words = [found[0] for found in _WORD.finditer(text)]
        return f"{''.join(words[:BEFORE]).strip()} {secret}{''.join(words[BEFORE:])}"


def _form(word: str) -> str:
    """Return a word with every digit as 0: so ages of two digits count as one word."""
    return re.sub(r"\d", "0", word)


def _impossible(found: re.Match) -> str:
    """Return the place of an impossible number for one of three digits or more, or for an address."""
    words = found[0]
    if sum(map(str.isdigit, words)) < 3 and not _ADDRESS.search(words):
        return words
    return _CORE.sub(_CODE, words, count=1)


def _secrets(count: int, seed: int) -> list[str]:
    """Return different secrets: impossible record numbers of twelve random digits."""
    generator = rng.plain(seed, "canaries/secrets")
    found: dict[str, None] = {}
    while len(found) < count:
        found[f"SYN-{generator.randrange(10**DIGITS):0{DIGITS}d}"] = None
    return list(found)


def _copies(single: int) -> list[int]:
    """Return the number of copies of each canary: most have one, and a few have 4 or 16."""
    more = max(FEWEST_CANARIES, single // 50)
    return [1] * single + [copies for copies in COPIES for _ in range(more)]


def make_canaries(notes: Sequence[Note], *, single: int, seed: int) -> list[Canary]:
    """Return canaries with the outcome of a fair coin each, independent of the others.

    Args:
        notes: the records.
        single: how many have one copy; some more have 4 and 16.
        seed: of coins, secrets and texts.

    Raises:
        BadRecords: the records share too few words.
    """
    copies = _copies(single)
    writer, drawn = NoteWriter(notes, seed=seed), _secrets(len(copies), seed)
    coins = rng.make(seed, "canaries/coins").random(len(copies)) < 0.5
    prefix = "canary"
    while any(note.patient.startswith(prefix) for note in notes):
        prefix += "-x"
    order = rng.make(seed, "canaries/numbers").permutation(len(copies))  # an id does not say how many copies
    return [
        Canary(line, writer.write(secret), bool(coins[n]), secret, copies[n], f"{prefix}-{line:05d}")
        for line, (n, secret) in enumerate(zip(order, drawn, strict=True), 1)
    ]


@dataclass(frozen=True)
class MadeKit:
    """A kit before it is written.

    Attributes:
        files: the bytes of its three files, by name.
        manifest: what the third one says.
    """

    files: dict[str, bytes]
    manifest: Manifest


def _training_rows(rows: Sequence[RecordRow], canaries: Sequence[Canary], seed: int) -> Iterator[dict]:
    """Yield the records and the inserted canaries in random order."""
    lines = [row.model_dump(exclude_none=True) for row in rows]
    for canary in canaries:
        lines += [
            {"patient_id": canary.patient, "note_id": f"{canary.patient}/{copy}", "text": canary.text}
            for copy in range(1, 1 + canary.copies * canary.inserted)
        ]
    for place in rng.make(seed, "canaries/order").permutation(len(lines)):
        yield lines[place]


def _jsonl(rows: Iterator[dict]) -> bytes:
    return b"".join(to_json(row, indent=None) for row in rows)


def make_kit(
    records: RecordFile, rows: Sequence[RecordRow], *, single: int, seed: int, unit: Unit, delta: float
) -> MadeKit:
    """Return a kit.

    Args:
        records: as the audit reads them.
        rows: the same as their file has them, repeated notes included.
        single: canaries with one copy, 20 or more.
        seed: of all randomness.
        unit: that the claim of the training protects.
        delta: of the claim.

    Raises:
        BadRecords: the records share too few words.
        InvalidParameter: too few canaries.
    """
    if not FEWEST_CANARIES <= single <= MOST:
        raise InvalidParameter(f"canaries = {single}: must be from {FEWEST_CANARIES} to {MOST:,}")
    canaries = make_canaries(records.notes, single=single, seed=seed)
    fields = [
        {
            "patient_id": one.patient,
            "text": one.text,
            "secret": one.secret,
            "copies": one.copies,
            "inserted": one.inserted,
        }
        for one in canaries
    ]
    files = {
        kit.TRAIN: _jsonl(_training_rows(rows, canaries, seed)),
        kit.CANARIES: _jsonl(iter(fields)),
    }
    counted = len(canaries) if unit == Unit.PATIENT else single
    planted = [one for one in canaries if one.inserted]
    manifest = Manifest(
        files={name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
        records=records.sha256,
        seed=seed,
        unit=unit,
        canaries=dict(sorted(Counter(one.copies for one in canaries).items())),
        inserted=dict(sorted(Counter(one.copies for one in planted).items())),
        lines=sum(one.copies for one in planted),
        refutes=refutes(counted, delta),
    )
    return MadeKit(
        {**files, kit.MANIFEST: to_json(manifest.model_dump(mode="json", by_alias=True))}, manifest
    )
