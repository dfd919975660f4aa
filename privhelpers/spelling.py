r"""How a text is spelled: what reads the same in one spelling, and the words in which texts are compared.

A text comes back in many spellings: accents composed or apart, full-width digits, a soft hyphen, markup
around a word, a hyphen at the end of a line, blanks around each comma from one tokenizer and no accents from
another. To ask whether two texts say the same, compare their `words`; to look for a value in a text, ask
`text.stands_in`. Both read the letters that `bare` gives.

Scripts without blanks between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese and others) are cut into
characters instead, and so is what runs on for more than 40 letters in any script.

What adds or removes letters or blanks stays a difference: a translation, numbers or words put in between,
words written without blanks, letters spread apart, a digit for a letter.

>>> words("**Kept** one _night_ for O\u2019Brien, who was dis-\ncharged at noon")
['kept', 'one', 'night', 'for', 'o', 'brien', 'who', 'was', 'discharged', 'at', 'noon']
>>> words("M\u00fcller, 3 \u5929")
['muller', '3', '\u5929']

Sources: Unicode Standard Annex 15 (normalization forms); Unicode Technical Standard 39 (confusable letters);
Radford et al. 2019 (bytes as characters), Sennrich, Haddow and Birch 2016, Kudo and Richardson 2018 and
Devlin et al. 2019 (marks at the pieces of a word).
"""

import html
import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from itertools import groupby

# Letters and marks that have no shape (Unicode's default ignorable characters) or are blank, although their
# categories say otherwise.
UNSEEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u2800\u3164\uffa0") | frozenset(
    map(chr, (*range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)))  # variation selectors
)
_SAME = (
    dict.fromkeys("\u02d7\u2043\u2212", "-")
    | dict.fromkeys("\u00b4\u02b9\u02bb\u02bc\u02bd\u02bf\u05f3\u2018\u2019\u201a\u201b\u2032\ua78c", "'")
    | dict.fromkeys("\u05f4\u201c\u201d\u201e\u201f\u2033", '"')
    | dict.fromkeys("\u2044\u2215", "/")
)
# Letters that look like a Latin one, after case folding; so does one whose capital does.
_ALIKE = dict(zip("авекмнорстухіјѕһԁԛԝαβεζηικορτυχı", "abekmhopctyxijshdqwabezhikoptyxi", strict=True))
_ALIKE |= dict.fromkeys("\u0640\u07fa", "")  # they make a word longer and change no letter
# Accents and points, which many writers and tokenizers leave out, by their combining classes. Marks of the
# other classes are vowels, voicing and tones without which a word is another one.
_ACCENTS = frozenset((1, *range(10, 37), *range(200, 241)))
# Scripts without blanks, as a class of a pattern lists them: a character of the first kind says as much as a
# word does.
_IDEOGRAPHS = "\u3005-\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\ua4cf\uf900-\ufaff"
_IDEOGRAPHS += "\U00017000-\U00018d7f\U00020000-\U000323af"
UNSPACED = _IDEOGRAPHS + "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf\u1b00-\u1b7f"
UNSPACED += "\u3040-\u312f\u31a0-\u31bf\u31f0-\u31ff\ua980-\ua9ff\uaa60-\uaadf\U0001aff0-\U0001b16f"
_IDEOGRAPH, _WITHOUT_BLANKS = re.compile(f"[{_IDEOGRAPHS}]"), re.compile(f"[{UNSPACED}]")
_LONGEST = 40  # characters of a word: what runs on for more is a text without blanks
_ASCII_WORD = re.compile("[A-Za-z0-9]+")

# What no writer wrote: markup, escapes, and how tokenizers mark the pieces of words.
_INLINE = "a|abbr|b|big|cite|code|del|em|font|i|ins|kbd|mark|q|s|small|span|strike|strong|sub|sup|tt|u|var"
_BLOCK = "blockquote|body|br|div|h[1-6]|hr|html|li|ol|p|pre|table|tbody|td|th|thead|tr|ul|w"
_ATTRIBUTES = r"""(?:\s+[\w-]{1,40}\s*=\s*(?:"[^"<>]*"|'[^'<>]*'|[^\s"'<>]+))*\s*/?"""
_FOREIGN = re.compile(r"[<&\x1b\u2581\u0120]|##|@@|[-\u00ad\u2010][^\S\r\n]*[\r\n]")
_WORD_PIECES = 8  # of a word at most, on average, in a text that is taken for one written in pieces
_BYTES = re.compile("<0x([0-9A-Fa-f]{2})> ?")
_WORD_MARK, _BYTE_MARK, _WORD_END = "\u2581", "\u0120", "</w>"
_CHARACTER_OF_BYTE = [*range(33, 127), *range(161, 173), *range(174, 256)]
_CHARACTER_OF_BYTE += [byte for byte in range(256) if byte not in _CHARACTER_OF_BYTE]
_BYTE_OF = {chr(byte if n < 188 else 256 + n - 188): byte for n, byte in enumerate(_CHARACTER_OF_BYTE)}


def _decoded(found: re.Match) -> str:
    return bytes(int(byte, 16) for byte in _BYTES.findall(found[0])).decode("utf-8", "replace")


def _undone(found: re.Match) -> str:
    return bytes(_BYTE_OF[character] for character in found[0]).decode("utf-8", "replace")


def _joined_line(found: re.Match) -> str:
    """Return "" for a hyphen at the end of a line if the word goes on with a small letter."""
    return "" if found.string[found.end()].islower() else found[0]


_STEPS: tuple[tuple[re.Pattern, Callable[[re.Match], str]], ...] = (
    (re.compile(rf"(?:{_BYTES.pattern})*<0x[0-9A-Fa-f]{{2}}>"), _decoded),
    (re.compile(rf"(?i)</?(?:{_INLINE}){_ATTRIBUTES}>|<!--[^<>]*-->"), lambda found: ""),
    (re.compile(rf"(?i)</?(?:{_BLOCK}){_ATTRIBUTES}>"), lambda found: " "),
    (re.compile(r"&#?\w{1,31};"), lambda found: html.unescape(found[0])),
    (re.compile(r"\x1b\[[0-9;?]*[A-Za-z]"), lambda found: ""),
    (re.compile(r"(?<=[^\W_])\s+##(?=\w)|@@(?:\s+|$)"), lambda found: ""),
)
LINE_END = re.compile(r"(?<=[^\W\d_])[-\u00ad\u2010][^\S\r\n]*[\r\n]\s*(?=[^\W\d_])")
_RAW_BYTES = re.compile("[\u00a1-\u00ac\u00ae-\u0143]+")


class Spelled:
    """A text in another spelling, and the place from which each of its characters came.

    Attributes:
        text: the text as it is spelled now.
    """

    def __init__(self, text: str, origin: list[tuple[int, int]] | None = None) -> None:
        """Begin with a text as it was written, or with the start and end of each character's origin."""
        self.text, self._origin = text, origin

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Return the place in the text as it was written of the characters from `start` up to `end`."""
        if self._origin is None:
            return start, end
        return self._origin[start][0], self._origin[end - 1][1]

    def _origins(self) -> list[tuple[int, int]]:
        return [(n, n + 1) for n in range(len(self.text))] if self._origin is None else self._origin

    def substituted(self, changes: list[tuple[int, int, str]]) -> "Spelled":
        """Return it with other characters from a start up to an end, for each change in their order."""
        if not changes:
            return self
        pieces, origin, own, at = [], [], self._origins(), 0
        for start, end, new in changes:
            pieces += [self.text[at:start], new]
            origin += own[at:start]
            if new == self.text[start:end]:
                origin += own[start:end]
            elif new:
                origin += [(own[start][0], own[end - 1][1])] * len(new)
            at = end
        return Spelled("".join([*pieces, self.text[at:]]), origin + own[at:])

    def replaced(self, pattern: re.Pattern, said: Callable[[re.Match], str]) -> "Spelled":
        """Return it with something else in the place of each match of a pattern."""
        return self.substituted([(*found.span(), said(found)) for found in pattern.finditer(self.text)])

    def translated(self, table: dict[int, str]) -> "Spelled":
        """Return it with each character as a table spells it, in any number of characters."""
        new = [table[ord(character)] for character in self.text]
        if all(len(one) == 1 for one in new):
            return Spelled("".join(new), self._origin)
        origin = [place for place, one in zip(self._origins(), new, strict=True) for _ in one]
        return Spelled("".join(new), origin)


class Table(dict):
    """A table for `str.translate` that spells a character when it is first met."""

    def __init__(self, spell: Callable[[str], str]) -> None:
        """Begin without a character."""
        super().__init__()
        self._spell = spell

    def __missing__(self, code: int) -> str:
        """Spell a character and keep it."""
        self[code] = said = self._spell(chr(code))
        return said


def plain(character: str) -> str:
    """Return the plain form of a character, case kept: one character, or "".

    Digits of every script are ASCII digits; dashes, apostrophes, quotation marks and blanks are of one kind;
    what has no shape (zero-width, soft hyphen, direction) is nothing.
    """
    category = unicodedata.category(character)
    if category == "Cf" or character in UNSEEN:
        return ""
    if category == "Nd":
        return str(unicodedata.decimal(character))
    if category == "Pd":
        return "-"
    return " " if category == "Zs" else _SAME.get(character, character)


def _folded(character: str) -> str:
    """Return the one spelling of a character: compatible forms and cases apart, marks of their own."""
    said, before = _SAME.get(character, character), None
    while said != before:
        said, before = unicodedata.normalize("NFKD", said.casefold()), said
    return "".join(map(plain, said))


def _bare(character: str) -> str:
    """Return the letters of a character: folded, without accents, and Latin if they look so."""
    return "".join(
        _ALIKE.get(one, one) for one in _folded(character) if unicodedata.combining(one) not in _ACCENTS
    )


_FOLDED, _BARE = Table(_folded), Table(_bare)


def _written(text: Spelled, *, join_lines: bool) -> Spelled:
    """Return a text without markup, escapes and the marks of tokenizers."""
    if not _FOREIGN.search(text.text):
        return text
    text = _without_marks(text, _WORD_END)
    for pattern, said in _STEPS:
        text = text.replaced(pattern, said)
    for mark in (_WORD_MARK, _BYTE_MARK):
        text = _without_marks(text, mark)
    return text.replaced(LINE_END, _joined_line) if join_lines else text


def _without_marks(text: Spelled, mark: str) -> Spelled:
    """Return pieces of words put together, if a text is written in pieces: a mark begins or ends each word.

    The mark of bytes is also a letter of Maltese. Its small letter, which is not a byte of a text, tells
    the two apart, and a word that begins with one mark alone is left as it is. The mark at the end of a
    word is a tag of XML, too, and a tag has a beginning.
    """
    other = {_BYTE_MARK: mark.lower(), _WORD_END: "<w"}.get(mark)
    if mark not in text.text or (other and other in text.text):
        return text
    pieces = text.text.split()
    marked = sum(piece.endswith(mark) if mark == _WORD_END else piece.startswith(mark) for piece in pieces)
    apart = len(pieces) > 1 and marked > 1 and _WORD_PIECES * marked >= len(pieces)
    if apart:
        text = text.replaced(re.compile(" "), lambda found: "")
    if mark != _BYTE_MARK:
        return text.replaced(re.compile(mark), lambda found: " ")
    if apart or (len(pieces) == 1 and mark in text.text.strip()[1:]):
        return text.replaced(_RAW_BYTES, _undone)
    return text


def bare(text: str, *, join_lines: bool = True) -> Spelled:
    """Return the letters of a text as they are compared, and their places.

    Case, compatible forms, accents and the points of Arabic and Hebrew do not count, nor do characters
    without a shape, markup, and what a tokenizer leaves between the pieces of a word. Letters of Greek and
    Cyrillic that look like Latin ones are Latin ones.

    Args:
        text: any text.
        join_lines: whether a word with a hyphen at the end of a line is put together.
    """
    written = _written(Spelled(text), join_lines=join_lines)
    if written.text.isascii():
        return Spelled(written.text.lower(), written._origin)
    spelled = written.translated(_BARE)
    # All is decomposed: what is left to do is the order of marks, which moves no letter.
    return Spelled(unicodedata.normalize("NFD", spelled.text), spelled._origin)


def letters(text: str, *, join_lines: bool = True) -> str:
    """Return the text of `bare` without its origins, several times as fast."""
    written = _written(Spelled(text), join_lines=join_lines).text
    return written.lower() if written.isascii() else unicodedata.normalize("NFD", written.translate(_BARE))


def folded(text: str) -> str:
    """Return the compatibility-normalized, case-folded text; white space is kept."""
    if text.isascii():  # the rest would change nothing here, and takes many times as long
        return text.lower()
    # The acute accent by itself is often an apostrophe, and would be decomposed into a blank and a mark.
    apart = unicodedata.normalize("NFKD", text.replace("\u00b4", "'"))
    return unicodedata.normalize("NFKC", apart.translate(_FOLDED))


@cache
def marks() -> str:
    """Return every character that is a mark on the one before it, as a character class of a pattern."""
    runs = groupby(range(0x300, 0x20000), lambda code: is_mark(chr(code)))
    spans = [(run[0], run[-1]) for found, codes in runs if found and (run := list(codes))]
    return "".join(f"{chr(first)}-{chr(last)}" for first, last in spans)


@cache
def _unit() -> re.Pattern:
    """Return the pattern of a word, or of a character of a script without blanks, with its marks."""
    spaced = rf"[^\W_{UNSPACED}]"
    return re.compile(rf"(?=[^\W_])(?:[{UNSPACED}][{marks()}]*|{spaced}+(?:[{marks()}]+{spaced}*)*)")


@cache
def _letter() -> re.Pattern:
    return re.compile(rf"[^\W_][{marks()}]*")


def units(text: str) -> Iterator[re.Match]:
    """Yield each word of a text as written, or each character with its marks in a text without blanks."""
    for unit in (_ASCII_WORD if text.isascii() else _unit()).finditer(text):
        if unit.end() - unit.start() <= _LONGEST:
            yield unit
        else:
            yield from _letter().finditer(text, *unit.span())


@lru_cache(maxsize=4)  # a text is often asked for its words, and for their runs of two and of three
def _cut(text: str) -> tuple[str, ...]:
    bared = letters(text)
    found = (_ASCII_WORD if bared.isascii() else _unit()).findall(bared)  # faster than `units`
    if max(map(len, found), default=0) > _LONGEST:
        found = [unit[0] for unit in units(bared)]
    return tuple(found)


def words(text: str) -> list[str]:
    """Return the words in which a text is compared with others."""
    return list(_cut(text))


def says_a_word(unit: str) -> bool:
    """Return whether a unit is a word or an ideograph, not a letter of a script without blanks."""
    return not without_blanks(unit[0]) or bool(_IDEOGRAPH.match(unit))


def without_blanks(character: str) -> bool:
    """Return whether a character is of a script that puts no blanks between words."""
    return bool(_WITHOUT_BLANKS.match(character))


def is_mark(character: str) -> bool:
    """Return whether a character is a mark on the one before it."""
    return unicodedata.category(character)[0] == "M"
