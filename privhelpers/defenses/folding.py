"""One view of a text for every detector: ASCII digits, one kind of dash and of space, nothing invisible.

A number in Arabic-Indic digits, with a no-break space or a zero-width joiner inside, reads the same to a
person; a pattern sees something else. Detectors look at the folded text, and the places of what they
find are carried back to the text as it stands.

This is not `text.normalize`, which answers whether two texts read the same. A detector needs the case of
letters and the lines of the text, and one folded character for each of the original's, so that every place
leads back; case folding and NFKC give up all three.

>>> folded = fold("tel (212)\\u00a0555\\u201301\\u200b23")
>>> folded.text
'tel (212) 555-0123'
>>> folded.place(4, 18)
(4, 19)
"""

import re
import unicodedata
from dataclasses import dataclass

_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
DIGIT_WORDS = {word: str(digit) for digit, word in enumerate(_DIGITS)} | {"oh": "0"}
_WORD = rf"\b(?:{'|'.join(DIGIT_WORDS)})\b"
# Three in a row: "two" alone is a dose, "two one two" is a part of a number.
_SPELLED = re.compile(rf"{_WORD}(?:[ -]{_WORD}){{2,}}", re.IGNORECASE)
_PART = re.compile(r"[A-Za-z]+|-")


@dataclass(frozen=True)
class Folded:
    """A folded text, and where each of its characters came from.

    Attributes:
        text: the folded text.
        starts, ends: place in the original of each folded character; None where nothing moved.
    """

    text: str
    starts: list[int] | None = None
    ends: list[int] | None = None

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Return the place in the original of the folded characters from `start` up to `end`."""
        if self.starts is None:
            return start, end
        return self.starts[start], self.ends[end - 1]


def _fold_character(character: str) -> str:
    """Return what stands for a character outside ASCII: one character, or none if it is invisible."""
    category = unicodedata.category(character)
    if category in ("Cf", "Mn") and not unicodedata.combining(character):
        return ""
    if category == "Nd":
        return str(unicodedata.decimal(character))
    if category == "Pd" or character == "\u2212":
        return "-"
    if category == "Zs":
        return " "
    compatible = unicodedata.normalize("NFKC", character)
    return compatible if len(compatible) == 1 else character


def fold(text: str, *, spelled: bool = False) -> Folded:
    """Return the text as detectors should read it.

    Args:
        text: any text.
        spelled: turn three or more digit words in a row into digits too.
    """
    starts = ends = None
    folded = text
    if not text.isascii():
        table = {ord(c): _fold_character(c) for c in set(text) if not c.isascii()}
        folded = text.translate(table)
        if len(folded) != len(text):
            starts = [i for i, c in enumerate(text) if table.get(ord(c), c)]
            ends = [i + 1 for i in starts]
    if spelled and _SPELLED.search(folded):
        return _without_words(folded, starts, ends)
    return Folded(folded, starts, ends)


def _without_words(text: str, starts: list[int] | None, ends: list[int] | None) -> Folded:
    starts = list(range(len(text))) if starts is None else starts
    ends = [i + 1 for i in range(len(text))] if ends is None else ends
    pieces: list[str] = []
    new_starts, new_ends, place = [], [], 0
    for run in _SPELLED.finditer(text):
        pieces.append(text[place : run.start()])
        new_starts += starts[place : run.start()]
        new_ends += ends[place : run.start()]
        for word in _PART.finditer(text, *run.span()):  # spaces between digits go, hyphens stay
            pieces.append(DIGIT_WORDS.get(word[0].lower(), "-"))
            new_starts.append(starts[word.start()])
            new_ends.append(ends[word.end() - 1])
        place = run.end()
    return Folded("".join([*pieces, text[place:]]), new_starts + starts[place:], new_ends + ends[place:])
