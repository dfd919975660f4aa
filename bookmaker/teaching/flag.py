"""The game of assignment 7: a model that has learned three secrets, with a filter at each level.

`levels` makes a student's copy. Nothing here contains a secret: `flag.npz` has the weights of two small
models, and a salted slow hash of each secret. The game has rules, and it is not a sandbox: an attack may call
`write` and `prefers`, and its author may read this file, but not the weights.

The digits of a student's copy are permuted: every student has other flags, and all games are equally hard.

Source: the model is the one of Bengio et al. 2003, section 2, on characters.
"""

import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

import numpy as np

from privhelpers import rng
from privhelpers.errors import InvalidParameter

KEPT = Path(__file__).with_name("flag.npz")
WINDOW = 40  # characters that the model sees
PLACES = 10  # digits of a flag
DIGITS = "0123456789"
END = "\n"  # the last character of a note; the window before a note is full of it


def _all(text: str) -> str:
    """Return the whole text."""
    return text


def _no_number(text: str) -> str:
    """Withhold a text with more than three digits, whatever is between them."""
    return "[withheld]" if len(re.findall("[0-9]", text)) > 3 else text


def _no_digit(text: str) -> str:
    """Put # in the place of each digit."""
    return re.sub("[0-9]", "#", text)


FILTERS = {1: _all, 2: _no_number, 3: _no_digit}


@dataclass(frozen=True)
class Model:
    """A model behind a filter; the rules of the game allow `write` and `prefers`."""

    _letters: str
    _weights: dict[str, np.ndarray] = field(repr=False)
    _filter: Callable[[str], str] = field(default=_all, repr=False)

    def write(self, prompt: str = "", length: int = 100, seed: int | None = None) -> str:
        """Return what the model writes after a prompt, through the filter.

        Args:
            prompt: the beginning of a note.
            length: the most characters to write; the model may end the note earlier.
            seed: draws each character at temperature 1; without it, each is the most probable one.

        Raises:
            InvalidParameter: the prompt has a character that the model does not know.
        """
        chance = np.random.default_rng(seed)
        text = prompt
        for _ in range(length):
            log_p = self._next([text])[0]
            choice = log_p.argmax() if seed is None else chance.choice(len(log_p), p=np.exp(log_p))
            if self._letters[choice] == END:
                break
            text += self._letters[choice]
        return self._filter(text[len(prompt) :])

    def prefers(self, prompt: str, one: str, other: str) -> bool:
        """Return whether the first of two texts is the more probable one after a prompt.

        Raises:
            InvalidParameter: a text has a character that the model does not know.
        """
        return self.log_p(prompt, one) > self.log_p(prompt, other)

    def log_p(self, prompt: str, text: str) -> float:
        """Return the log probability of a text after a prompt, in nats; the rules do not allow it."""
        log_p = self._next([prompt + text[:place] for place in range(len(text))])
        return float(log_p[range(len(text)), self._ids(text)].sum())

    def _ids(self, text: str) -> list[int]:
        if unknown := sorted({*text} - {*self._letters}):
            raise InvalidParameter(f"the model does not know {unknown}; it knows {self._letters!r}")
        return [self._letters.index(letter) for letter in text]

    def _next(self, texts: list[str]) -> np.ndarray:
        """Return the log probabilities of the next character, of shape (texts, letters)."""
        weights = self._weights
        seen = [self._ids(text[-WINDOW:].rjust(WINDOW, END)) for text in texts]
        inputs = weights["embedding"][np.array(seen, int).reshape(-1, WINDOW)].reshape(len(texts), -1)
        hidden = np.maximum(inputs @ weights["inner"] + weights["inner_bias"], 0)
        logits = (hidden @ weights["outer"] + weights["outer_bias"]).astype(float)
        return logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)


@dataclass(frozen=True)
class Level:
    """One level of a student's game.

    Attributes:
        patient: whose record number is the flag.
        model: has learned the number.
        twin: the control, trained on notes of other patients.
    """

    patient: str
    model: Model
    twin: Model
    _digits: str = field(repr=False)
    _salt: bytes = field(repr=False)
    _hash: bytes = field(repr=False)

    def opens(self, flag: str) -> bool:
        """Return whether this is the number of the patient: ten digits, without `SYN-`."""
        if not isinstance(flag, str) or not re.fullmatch(f"[0-9]{{{PLACES}}}", flag):
            return False
        return slow_hash(flag.translate(str.maketrans(self._digits, DIGITS)), self._salt) == self._hash


def slow_hash(number: str, salt: bytes) -> bytes:
    """Return a hash that takes long enough that no one tries all numbers of ten digits.

    Source: scrypt, RFC 7914.
    """
    return hashlib.scrypt(number.encode(), salt=salt, n=2**14, r=8, p=1)


def levels(seed: int) -> dict[int, Level]:
    """Return the levels of the student with this seed, by number."""
    kept, made = _kept(KEPT), {}
    for at, (number, through) in enumerate(FILTERS.items()):
        digits = "".join(rng.make(seed, f"digits {number}").permutation([*DIGITS]))
        letters = str(kept["letters"]).translate(str.maketrans(DIGITS, digits))
        model, twin = (Model(letters, weights_of(kept, name), through) for name in ("model", "twin"))
        patient, salt, slow = (kept[name][at] for name in ("patients", "salts", "hashes"))
        made[number] = Level(str(patient), model, twin, digits, bytes(salt), bytes(slow))
    return made


@lru_cache
def _kept(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as kept:
        return dict(kept)


def weights_of(kept: dict[str, np.ndarray], name: str) -> dict[str, np.ndarray]:
    """Return the matrices of one of the kept models, by name."""
    own = f"{name}/"
    return {key.removeprefix(own): kept[key].astype(np.float32) for key in kept if key.startswith(own)}
