r"""Rules about text that every chapter shares: one spelling, one match, no harm, and one name.

`normalize` gives two texts that read the same one spelling. `stands_in` is the one rule for "this value of a
patient is in this text". `inert` shows text from a model, a file or a user without letting it act.
`in_words` says a model or an attack as a reader does: files and parameters have names of their own.

>>> stands_in("Ann B. Hill", "seen: ANN  b. hill, 44")
True
>>> stands_in("(617) 555-0123", "call 617-555-0123"), stands_in("Ann B. Hill", "Joann B. Hill")
(True, False)
>>> print(inert("<b>line\x1b[0m</b>", html=True))
&lt;b&gt;line\x1b[0m&lt;/b&gt;
"""

import html as markup
import re
import unicodedata
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from decimal import ROUND_CEILING, Context
from functools import cache, lru_cache

from privhelpers import validate
from privhelpers.spelling import (
    LINE_END,
    UNSEEN,
    UNSPACED,
    bare,
    folded,
    is_mark,
    letters,
    marks,
    units,
    without_blanks,
)

# What a page puts before a claim that its run shows, and before one that it does not show.
CHECK, CROSS = "\N{CHECK MARK}", "\N{BALLOT X}"

_EXPONENT = re.compile(r"(?<=\d)e[+-]\d+")
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")

# A grave accent between letters is an apostrophe, a backslash before punctuation keeps Markdown from reading
# it, and decoration counts as a blank. A blank next to punctuation, or to a character of a script without
# blanks, does not count: some tokenizers put one there.
_QUOTING = re.compile(r"(?<=[^\W_])`(?=[^\W_])")
_ESCAPE = re.compile(r"\\(?=[!-/:-@\[-`{-~])")
_DECORATION = re.compile(r"[\s*_~|`]+")
_SEPARATORS = r"[-./() ]{0,2}"
_NUMBER = re.compile(rf"[0-9](?:{_SEPARATORS}[0-9]){{5,}}")
_LAST = 6  # letters of a value that decide whether a text is searched for it
_WORDS = (
    (r"^public$", "public checkpoint"),
    (r"best_nonprivate", "best non-private"),
    (r"equal_use", "equally useful, no privacy"),
    (r"dp-eps-(?=\d)", "ε = "),
    (r"min_k_plus_plus", "Min-K%++"),
    (r"min_k", "Min-K%"),
    (r"lira", "LiRA"),
    (r"ez_mia", "EZ-MIA"),
    (r"wbc", "WBC"),
    (r"(?<=line)_fixed", ", fixed variance"),
    (r"(?<=line)_each", ", own variance"),
    (r"/sample$", ", by note"),
    (r"/admission$", ", by admission"),
    (r"/patient$", ", by patient"),
    (r"_", " "),
)
_MARKS = 4  # on one letter: hardly a language needs more, and a pile of them covers the lines around it


def normalize(text: str) -> str:
    """Return the one spelling of texts that read the same.

    Compatible characters become one (NFKC: full-width letters, ligatures, composed accents), and so do
    dashes, apostrophes, quotation marks, digits of every script and runs of white space; case is folded and
    characters without a shape (zero-width, soft hyphen, direction) are dropped. A model that writes
    `ANN HILL` or breaks the line inside the name has given Ann Hill away even so.

    Accents, punctuation and markup count here: `stands_in` and `spelling.words` see through these, too.

    >>> normalize("  Ｏ’Brien–Hill\\n ")
    "o'brien-hill"
    """
    return " ".join(folded(text).split())


def owners_of_texts(texts: Iterable[tuple[Hashable, str]]) -> Counter[str]:
    """Return how many owners each text has, by its one spelling.

    Args:
        texts: pairs of an owner and a text of theirs.

    >>> owners_of_texts([("p1", "Seen."), ("p2", "SEEN. "), ("p2", "seen.")])
    Counter({'seen.': 2})
    """
    return Counter(text for _, text in {(owner, normalize(text)) for owner, text in texts})


@cache
def _spacing(*, is_ascii: bool) -> tuple[tuple[re.Pattern, str], ...]:
    """Return the patterns that unify what is between words, each with its replacement."""
    mark = " ?([^A-Za-z0-9 ]) ?" if is_ascii else rf" ?([^\w {marks()}]|[{UNSPACED}][{marks()}]*) ?"
    return (_ESCAPE, ""), (_QUOTING, "'"), (_DECORATION, " "), (re.compile(mark), r"\1")


def _spaced(text: str) -> str:
    for pattern, said in _spacing(is_ascii=text.isascii()):
        text = pattern.sub(said, text)
    return text


def _readings(text: str) -> list[str]:
    """Return the spellings of a text that are searched: two if a line ends with a hyphen."""
    ways = (False, True) if LINE_END.search(text) else (True,)
    return [_spaced(letters(text, join_lines=way)) for way in ways]


def _alone(spaced: str) -> str:
    """Return the letters and digits of a spelling, for a first test that misses no value."""
    return re.sub(r"[\W_]", "", spaced)


@lru_cache(maxsize=1 << 16)
def _wanted(value: str) -> tuple[str, str]:
    """Return the spelling of a value from its first letter or digit to its last, and its letters alone."""
    spaced = _spaced(letters(value))
    spans = [unit.span() for unit in units(spaced)]
    core = spaced[spans[0][0] : spans[-1][1]] if spans else ""
    return core, _alone(core)


@lru_cache(maxsize=4096)
def _pattern(value: str) -> re.Pattern:
    """Return the pattern of a value in a spelling, without regard to word boundaries."""
    core = _wanted(value)[0]
    pieces, end = [], 0
    for number in _NUMBER.finditer(core):  # long numbers: each separator may be another, or missing
        digits = re.findall("[0-9]", number[0])
        pieces += [re.escape(core[end : number.start()]), _SEPARATORS.join(digits)]
        end = number.end()
    pieces.append(re.escape(core[end:]))
    return re.compile("".join(pieces))


def _in_a_word(spaced: str, place: int) -> bool:
    """Return whether the characters before and after a place belong to one word."""
    if not 0 < place < len(spaced):
        return False
    before, after = spaced[place - 1], spaced[place]
    if is_mark(after):
        return True
    joined = (before.isalnum() or is_mark(before)) and after.isalnum()
    return joined and not (without_blanks(before) or without_blanks(after))


def _spans(value: str, spaced: str) -> Iterator[tuple[int, int]]:
    """Yield start and end of each place in a spelling where a value forms words of its own."""
    pattern, start = _pattern(value), 0
    while match := pattern.search(spaced, start):
        if _in_a_word(spaced, match.start()) or _in_a_word(spaced, match.end()):
            start = match.start() + 1
        else:
            yield match.span()
            start = match.end()


def _stands(value: str, spaced: str) -> bool:
    return next(_spans(value, spaced), None) is not None


def same_as(value: str) -> str:
    """Return a key that is equal for values that are the same by the rule of `stands_in`.

    >>> same_as("(617) 555-0123") == same_as("617.555.0123") != same_as("617.555.0124")
    True
    """
    return _NUMBER.sub(lambda number: _alone(number[0]), _wanted(value)[0])


def found_in(values: Iterable[str], text: str) -> list[str]:
    """Return the values that the text contains, by the rule of `stands_in`."""
    readings = [(spaced, _alone(spaced)) for spaced in _readings(text)]
    return [
        value
        for value in values
        if (sought := _wanted(value)[1])
        and any(sought in written and _stands(value, spaced) for spaced, written in readings)
    ]


def found_among(values: Iterable[str], texts: Iterable[str]) -> list[str]:
    """Return the values that any of the texts contains, by the rule of `stands_in`.

    For many of both: a text is searched only for values whose last letters are in it.
    """
    sought = {value: alone for value in values if (alone := _wanted(value)[1])}
    size = min([_LAST, *map(len, sought.values())])
    missing: dict[str, list[str]] = {}
    for value, alone in sought.items():
        missing.setdefault(alone[-size:], []).append(value)
    for spaced in (spaced for text in texts for spaced in _readings(text)):
        written = _alone(spaced)
        for last in {written[n : n + size] for n in range(len(written) - size + 1)} & missing.keys():
            near = [value for value in missing[last] if sought[value] in written]
            for value in near:
                if _stands(value, spaced):
                    missing[last].remove(value)
    left = set().union(*missing.values())
    return [value for value in sought if value not in left]


def stands_in(value: str, text: str) -> bool:
    """Return whether a text contains a value, such as a patient's name or number.

    It does if its letters and digits as `spelling.bare` gives them, from the first to the last, are in
    the words of the text, with the same punctuation between them. Blanks around
    punctuation and decoration between words do not count, so that the text may come from any tokenizer:
    `a . hill @ mail . example` gives away a.hill@mail.example. `Ann Hill` is not in `Joann Hill` nor
    555-0123 in 555-01234, since a part of another name or number points at no one. In a script without
    blanks between words, a word may begin and end anywhere, and blanks do not count.

    In a number of six digits or more, separators (hyphen, dot, slash, space, parentheses) may differ or be
    missing: `000006789` gives away 000-00-6789. Shorter numbers must be written as they are, or an age of 44
    would be found in `4 4`.

    A value without a letter or digit is in no text.
    """
    return bool(found_in([value], text))


def places(value: str, text: str) -> list[tuple[int, int]]:
    """Return start and end of each occurrence of the value in the text, by the rule of `stands_in`.

    >>> places("ann hill", "Call Ann  Hill.")
    [(5, 14)]
    """
    if not stands_in(value, text):
        return []
    spans = set()
    for join_lines in (False, True):
        read = bare(text, join_lines=join_lines)
        for pattern, said in _spacing(is_ascii=read.text.isascii()):
            read = read.replaced(pattern, lambda match, said=said: match.expand(said))
        spans |= {read.place(*span) for span in _spans(value, read.text)}
    return sorted(spans)


def _acts(character: str) -> bool:
    return unicodedata.category(character)[0] in "CZ" or character in UNSEEN


def blank(text: str) -> bool:
    r"""Return whether a text has only white space, control and zero-width characters.

    >>> blank("\u200b \x01"), blank("\u200bx")
    (True, False)
    """
    return all(map(_acts, text))


def _unpiled(text: str) -> str:
    """Return text with the marks on a letter spelled out beyond the first few."""
    pieces, marks = [], 0
    for character in text:
        marks = marks + 1 if unicodedata.category(character) in ("Mn", "Me") else 0
        pieces.append(character if marks <= _MARKS else ascii(character)[1:-1])
    return "".join(pieces)


def inert(text: str, *, keep: str = "", html: bool = False) -> str:
    r"""Return text that shows its characters and does nothing.

    Control, zero-width, direction, unassigned and private characters, lone surrogates, letters without a
    shape, and white space other than the plain space are spelled out as Python would (`\x1b`, `\u202e`):
    none of them can move a cursor, turn a line around, hide a word or end a table row. So are the marks on a
    letter after the fourth, which would cover the lines around.

    Args:
        text: from a model, a file or a user.
        keep: such characters that stay, for example line breaks if the target has lines.
        html: whether the result becomes part of a page of HTML; its special characters are then escaped.
    """
    shown = "".join(c if c in keep or c == " " or not _acts(c) else ascii(c)[1:-1] for c in text)
    if not shown.isascii():
        shown = _unpiled(shown)
    return markup.escape(shown) if html else shown


def quoted(text: object, most: int = 200) -> str:
    """Return words of a user or a file for a message: one line of at most `most` visible characters.

    >>> quoted("expected\\n    \'\\x1b\'")
    "expected \'\\\\x1b\'"
    """
    try:
        words = str(text)
    except ValueError:  # a whole number too long to print
        return validate.shown(text)
    shown = inert(" ".join(words.split())[: most + 1])  # what is cut need not be made inert
    return shown if len(shown) <= most else f"{shown[: most - 3]}..."


def inserted(value: object, *, keep: str = "") -> object:
    """Return a value for an autoescaping HTML template: text made inert, other values unchanged.

    Args:
        value: anything; markup of ours, which has `__html__`, is left as it is.
        keep: as of `inert`.
    """
    if not isinstance(value, str) or hasattr(value, "__html__"):
        return value
    return inert(value, keep=keep)


def has_check_digit(text: str) -> bool:
    """Return whether the last of the digits in a text is their check digit by Luhn's rule (ISO/IEC 7812).

    >>> has_check_digit("4111 1111 1111 1111"), has_check_digit("4111 1111 1111 1112")
    (True, False)
    """
    digits = [int(c) for c in reversed(text) if c.isdigit()]
    doubled = [sum(divmod(2 * digit, 10)) for digit in digits[1::2]]
    return (sum(digits[::2]) + sum(doubled)) % 10 == 0


def with_powers(text: str) -> str:
    """Return a text in which Python's exponents are powers of ten.

    >>> with_powers("from 1.5e-07 to 2e+09")
    'from 1.5·10⁻⁷ to 2·10⁹'
    """
    return _EXPONENT.sub(lambda match: f"·10{str(int(match[0][1:])).translate(_RAISED)}", text)


def power_of_ten(number: float) -> str:
    """Return a number in powers of ten, for pages.

    Args:
        number: finite.

    >>> power_of_ten(1.2e-7), power_of_ten(1e6)
    ('1.2·10⁻⁷', '10⁶')
    """
    return with_powers(f"{number:.1e}").replace(".0·", "·").removeprefix("1·")


def rounded_up(number: float, digits: int = 4) -> float:
    """Round up to so many significant digits, as an upper bound may be printed.

    >>> rounded_up(7.99612), rounded_up(0.12341), rounded_up(0.1)
    (7.997, 0.1235, 0.1)
    """
    return float(Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(float(number + 0.0))))


def rounded_down(number: float, digits: int = 4) -> float:
    """Round down to so many significant digits, as a lower bound may be printed.

    >>> rounded_down(7.99689), rounded_down(4.1), rounded_down(0.0)
    (7.996, 4.1, 0.0)
    """
    return -rounded_up(-number, digits) + 0.0  # no -0.0


def in_words(name: str) -> str:
    """Return the name of a model or an attack as tables and figures show it; other texts stay as they are.

    >>> [in_words(name) for name in ("public", "dp-eps-0.5", "min_k_plus_plus", "lira_online_fixed/sample")]
    ['public checkpoint', 'ε = 0.5', 'Min-K%++', 'LiRA online, fixed variance, by note']
    """
    for raw, word in _WORDS:
        name = re.sub(raw, word, name)
    return name
