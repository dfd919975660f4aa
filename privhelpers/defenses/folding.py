"""One view of a text for every detector: ASCII digits, one kind of dash and of space, nothing invisible.

A number in Arabic-Indic digits, with a no-break space or a zero-width joiner inside, reads the same to a
person; a pattern sees something else. Detectors look at the folded text, and the places of what they
find are mapped back to the original text.

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

from privhelpers.spelling import Spelled, Table, plain

DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
DIGIT_WORDS = {word: str(digit) for digit, word in enumerate(DIGITS)} | {"oh": "0"}
_WORD = rf"\b(?:{'|'.join(DIGIT_WORDS)})\b"
# Three in a row: "two" alone is a dose, "two one two" is a part of a number.
_SPELLED = re.compile(rf"{_WORD}(?:[ -]{_WORD}){{2,}}", re.IGNORECASE)
_PART = re.compile(r"[A-Za-z]+| ")


def _fold_character(character: str) -> str:
    """Return the replacement of a character: one character in its case, or none if it is invisible."""
    if character.isascii():
        return character
    compatible = unicodedata.normalize("NFKC", character)
    return plain(compatible if len(compatible) == 1 else character)


_FOLDED = Table(_fold_character)


def fold(text: str | Spelled, *, spelled: bool = False) -> Spelled:
    """Return the text as detectors should read it.

    Args:
        text: any text, as it was written or in another spelling.
        spelled: turn three or more digit words in a row into digits too.
    """
    folded = Spelled(text) if isinstance(text, str) else text
    if not folded.text.isascii():
        folded = folded.translated(_FOLDED)
    return _digits_again(folded) if spelled else folded


def _digits_again(folded: Spelled) -> Spelled:
    """Return a text in which three or more digit words in a row are digits; hyphens between them stay."""
    runs = _SPELLED.finditer(folded.text)
    parts = [part for run in runs for part in _PART.finditer(run.string, *run.span())]
    return folded.substituted([(*part.span(), DIGIT_WORDS.get(part[0].lower(), "")) for part in parts])
