"""What a released label leaves possible: a value, a range, a pattern with stars, a list of these, a word.

The two ends of a range are read as they are written, open or closed, in the forms of pandas (`(20, 30]`), R
(`[20,30)`), ARX (`[20, 30[`, `{a, b}`, `*`) and of tables for people (`20-29`, `20 to 29`, `<30`, `90+`,
`30 and over`, `1980s`). A label that cannot be read next to a number is refused: to take it for another value
would leave out a row that may be the person's.

>>> covers("[20, 30[", 30), covers("(20, 30]", 30), covers("20-29", 29), covers("≥90", 92)
(False, True, True, True)
>>> covers("130**", "13053"), covers("*", 25), covers("{M, F}", "F")
(True, True, True)
"""

import datetime
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from numbers import Real

import numpy as np
import pandas as pd

from privhelpers.errors import InvalidParameter
from privhelpers.text import normalize
from privhelpers.validate import shown

# For a value that was withheld, besides stars: it may have been any value.
_SIGNS = frozenset(["", "-", "?", ".", "na", "n/a", "nan", "nat", "null", "<na>"])
_WITHHELD = _SIGNS | {
    "missing",
    "unknown",
    "unspecified",
    "undisclosed",
    "suppressed",
    "redacted",
    "withheld",
}
_WITHHELD |= {f"not {word}" for word in ("stated", "available", "known", "reported", "recorded", "disclosed")}
_WITHHELD |= {"#n/a", "prefer not to say"}
_TOP = frozenset(["any", "all"])  # of every hierarchy
_END = (
    r"(?:\d{4}[-/]\d\d(?:[-/]\d\d)?(?:[t ]00:00(?::00)?)?(?![\d/])"  # a day or a month
    r"|[-+]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|inf(?:inity)?|∞))"
)
_UNIT = (
    r"(?:-?year-old|years?|yrs?\.?|y/?o\b|y\.o\.|y\b|kg\b|cm\b|mm\b|lbs?\b|usd\b|eur\b|euros?\b|dollars?\b)"
)
_FEWER, _MORE = (
    "younger|less|fewer|lower|under|below|earlier",
    "older|more|greater|higher|over|above|later|up",
)
# One after the other: words and signs as `<`, `<=`, `>`, `>=`, numbers without their units.
_REWRITTEN = [
    (re.compile(pattern), by)
    for pattern, by in (
        (r"[$€£¥]\s*(?=\d)", ""),
        # Thousands, but for ends and lists in brackets.
        (r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?![\d,])(?!.*[\])}\[])", lambda found: found[0].replace(",", "")),
        (r"(?<![\d/])(0?[1-9]|1[0-2])/([12]\d{3})(?![\d/])", lambda found: f"{found[2]}-{found[1]:0>2}"),
        (rf"\b({_FEWER}|{_MORE})-(?=\d)", r"\1 "),
        (r"(?<![a-z\d.,])(\d+(?:\.\d+)?)\s?k\b", lambda found: f"{float(found[1]) * 1000:g}"),
        (rf"(?<=[\d+])\s*{_UNIT}(?:\s+old|\s+of age)?(?![a-z\d])", ""),
        (r"^(?:ages?|aged)\b\s*[:=]?\s*", ""),
        (r"\b(?:greater|more) than or equal(?: to)?\b|≥|⩾|=>|≧", ">="),
        (r"\b(?:less|fewer) than or equal(?: to)?\b|≤|⩽|=<|≦", "<="),
        (rf"({_END})\s*(?:\+|\bplus\b|(?:and|or|&)\s*(?:{_MORE})\b)", r">=\1"),
        (rf"({_END})\s*(?:and|or|&)\s*(?:{_FEWER})\b", r"<=\1"),
        (r"\b(?:at least|(?:no|not) (?:less|fewer) than|since)\s*(?=[\d+-])", ">="),
        (r"\b(?:at most|(?:no|not) more than|up to)\s*(?=[\d+-])", "<="),
        (rf"\b(?:(?:{_FEWER})(?: than)?|before)\s*(?=[\d+-])", "<"),
        (rf"\b(?:(?:{_MORE})(?: than)?|after)\s*(?=[\d+-])", ">"),
        (rf"^({_END})\s*(<=?)\s*[a-z_ ]+\s*(<=?)\s*({_END})$", r">\2\1,\3\4"),
        (rf"^({_END})\s*(>=?)\s*[a-z_ ]+\s*(>=?)\s*({_END})$", r"<\2\1,\3\4"),
        (r"^([<>])[<>]", r"\1"),  # the two lines above turn the first sign around
    )
]
_JOINED = r"(?:-|\bto\b|\bthrough\b|\bthru\b|\bbis\b|\.{2,3}|~|:)"
_DASHED = re.compile(
    rf"(?:from\s+)?(?P<left>>=?)?\s*(?P<low>{_END})\s*{_JOINED}\s*(?P<right><=?)?\s*(?P<high>{_END})"
    rf"|between\s+(?P<between>{_END})\s+and\s+(?P<and>{_END})"
)
_BRACKETS = re.compile(
    rf"(?P<left>[\[\](])\s*(?P<low>{_END})?\s*(?:[,;]|{_JOINED})\s*(?P<high>{_END})?\s*(?P<right>[\[\])])"
)
_COMPARED = re.compile(rf"([<>]=?)\s*({_END})")
_AND = re.compile(r"\s*(?:,|;|&&?|\band\b)\s*")
_DECADE = re.compile(r"(\d{1,2}|\d{2}[1-9])0'?s")
_LISTED = re.compile(r"\s*(?:[,;|/~]|\bor\b)\s*")
_LISTED_BARE = re.compile(r"\s*(?:(?<!\d),|,(?!\d{3}(?!\d))|[;|/~]|\bor\b)\s*")  # not at thousands
_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
_DATE = re.compile(r"\d{1,2}([/.-])\d{1,2}\1(?:\d{4}|\d\d)|\d{4}/\d\d")  # of unknown order, or a season
_DECIMALS = re.compile(r"\d+,\d{1,2}\s*(?:-|\bto\b)\s*\d+,\d{1,2}")  # or a list
_PREFIX, _ZIP = re.compile(r"\d{3}"), re.compile(r"\d{5}(?:-?\d{4})?")
_MASKED = re.compile(r"[*\W_]*\*[*\W_]*|[#█■▓?._-]+|x{4,}")
_YEARS = range(1000, 3000)
_LONGEST = 200  # characters of a label that is more than a word


@dataclass(frozen=True)
class _Range:
    """Numbers, or days since the year 1, between two ends.

    Attributes:
        low, high: ends, infinite if there is none.
        low_open, high_open: whether an end is left out.
        days: whether the ends are days.
        whole: written with whole numbers and a dash, so that what is above `high` by less than 1 is unclear.
    """

    low: float
    high: float
    low_open: bool = False
    high_open: bool = False
    days: bool = False
    whole: bool = False

    def meets(self, other: "_Range") -> bool:
        """Say whether one number is in both."""
        if self.days != other.days:
            one, two = self._in_days(), other._in_days()
            return bool(one and two) and one.meets(two)
        both = self.cut(other)
        return both.low < both.high or (both.low == both.high and not (both.low_open or both.high_open))

    def cut(self, other: "_Range") -> "_Range":
        """Return what is in both."""
        low, low_open = max((self.low, self.low_open), (other.low, other.low_open))
        high, closed = min((self.high, not self.high_open), (other.high, not other.high_open))
        return replace(self, low=low, low_open=low_open, high=high, high_open=not closed)

    def _in_days(self) -> "_Range | None":
        """Return the days of a range of years; None if these are no years."""
        if self.days:
            return self
        low, high = self.low, self.high
        if math.isfinite(low):
            first = math.floor(low) + 1 if self.low_open else math.ceil(low)
            low = datetime.date(first, 1, 1).toordinal() if first in _YEARS else None
        if math.isfinite(high):
            last = math.ceil(high) - 1 if self.high_open else math.floor(high)
            high = datetime.date(last, 12, 31).toordinal() if last in _YEARS else None
        return None if None in (low, high) else _Range(low, high, days=True)

    def single(self) -> bool:
        """Say whether this is one number or day."""
        return self.low == self.high


def _end(text: str) -> _Range | None:
    """Return the number, the day or the month of an end of a range."""
    if match := re.fullmatch(r"(\d{4})[-/](\d\d)(?:[-/](\d\d))?(?:[t ].*)?", text):
        if "/" in text and not match[3] and (int(match[1]) + 1) % 100 == int(match[2]):
            return None  # 2010/11 may be a season
        try:
            first = datetime.date(int(match[1]), int(match[2]), int(match[3] or 1))
        except ValueError:
            return None
        following = first.replace(day=28) + datetime.timedelta(days=4)
        last = first if match[3] else following - datetime.timedelta(days=following.day)
        return _Range(first.toordinal(), last.toordinal(), days=True)
    number = float(text.replace(",", "").replace("∞", "inf"))
    return _Range(number, number)


def _between(
    low: str | None, high: str | None, left: str = "[", right: str = "]", *, whole: bool = False
) -> _Range | None:
    """Return a range by its ends; None if an end is not a day or they are not in order."""
    first = _end(low) if low else _Range(-math.inf, -math.inf)
    last = _end(high) if high else _Range(math.inf, math.inf)
    if first is None or last is None or (low and high and first.days != last.days):
        return None
    whole = whole and all(one and one.lstrip("+-").isdigit() for one in (low, high))
    made = _Range(
        first.high if left in ("(", "]", ">") else first.low,
        last.low if right in (")", "[", "<") else last.high,
        left in ("(", "]", ">"),
        right in (")", "[", "<"),
        first.days or last.days,
        whole,
    )
    empty = made.low > made.high or (made.low == made.high and (made.low_open or made.high_open))
    return None if empty else made


@lru_cache(4096)
def _range(text: str) -> _Range | None:
    """Return the range or the single number or day that a text names; None if it names none.

    Args:
        text: as `normalize` returns it.
    """
    if len(text) > _LONGEST:
        return None
    for pattern, by in _REWRITTEN:
        text = pattern.sub(by, text).strip()
    if re.fullmatch(_END, text) and (point := _end(text)):
        return point
    if match := _DECADE.fullmatch(text):
        return _Range(int(match[1]) * 10, int(match[1]) * 10 + 10, high_open=True)
    if match := _DASHED.fullmatch(text):
        low, high = match["low"] or match["between"], match["high"] or match["and"]
        plain = not (match["left"] or match["right"])
        return _between(low, high, match["left"] or "[", match["right"] or "]", whole=plain)
    if match := _BRACKETS.fullmatch(text):
        return _between(match["low"], match["high"], match["left"], match["right"])
    compared = [_COMPARED.fullmatch(part) for part in _AND.split(text)]
    if all(compared):
        made = [
            _between(one[2], None, left=one[1]) if one[1][0] == ">" else _between(None, one[2], right=one[1])
            for one in compared
        ]
        if None not in made and len({one.days for one in made}) == 1:
            whole = reduce(_Range.cut, made)
            return whole if whole.meets(whole) else None
    return None


def _of_library(value: object) -> _Range | None:
    """Return the range of a number, a date, or an interval or a period of pandas; None for anything else."""
    if isinstance(value, bool | np.bool_):
        return None
    if isinstance(value, pd.Interval):
        ends = [_of_library(end) for end in (value.left, value.right)]
        if None in ends:
            return None
        return _Range(ends[0].low, ends[1].low, value.open_left, value.open_right, ends[0].days)
    if isinstance(value, pd.Period):
        return _Range(value.start_time.toordinal(), value.end_time.toordinal(), days=True)
    if isinstance(value, datetime.date | np.datetime64):  # a Timestamp is a date too
        time = pd.Timestamp(value)
        point = time.toordinal() + (time - time.normalize()) / pd.Timedelta(days=1)
        return _Range(point, point, days=True)
    try:
        number = float(value) if isinstance(value, Real) or hasattr(value, "as_tuple") else None
    except OverflowError:
        return None
    return None if number is None else _Range(number, number)


def _is_missing(value: object) -> bool:
    return value is None or (pd.api.types.is_scalar(value) and bool(pd.isna(value)))


def _is_list(value: object) -> bool:
    return isinstance(value, Collection) and not isinstance(value, str | bytes)


def _text(value: object) -> str:
    """Return a value as one spelling: a whole number without a point, a day without its midnight."""
    if isinstance(value, datetime.date | np.datetime64):
        return str(pd.Timestamp(value)).lower().removesuffix(" 00:00:00")
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return normalize(str(value))


def is_withheld(label: object) -> bool:
    """Say whether a value is missing, empty, all stars, or a word that says so."""
    if _is_list(label):
        return False
    if _is_missing(label):
        return True
    text = _text(label)
    return text.strip("[]<>() ") in _WITHHELD or bool(_MASKED.fullmatch(text))


def says_nothing(label: object) -> bool:
    """Say whether a quasi-identifier is withheld or the top of a hierarchy, so that it fits everyone."""
    return is_withheld(label) or (isinstance(label, str) and _text(label) in _TOP)


def as_range(value: object) -> _Range | None:
    """Return the numbers or days that a value or a label names, or None."""
    return _of_library(value) if not isinstance(value, str) else _range(normalize(value))


def covers(general: object, exact: object, hierarchy: Mapping[str, str] | None = None) -> bool:
    """Say whether a released value may be true of an exact one.

    Args:
        general: value as released. One that is missing, empty or all stars may be true of anyone.
        exact: value of one person; if it is a range itself, it is enough that the two have a value in common.
        hierarchy: parent of each category that has one.

    Raises:
        InvalidParameter: the label cannot be read next to this value.
    """
    if says_nothing(general):
        return True
    if _is_list(exact):
        return any(covers(general, one, hierarchy) for one in exact)
    if _is_list(general):
        exactly = isinstance(general, set | frozenset | range)
        return _in_list(list(general), general, exact, hierarchy, exactly=exactly)
    label, value = _text(general), _text(exact)
    if label == value or label in _ancestors(value, hierarchy):
        return True
    if "*" in label or "*" in value:
        return _matches(label, value)
    named, known = as_range(general), as_range(exact)
    if named and known:
        until = isinstance(general, str) and named.single() and named.low < 0 <= known.low  # -30 of 31-60
        if until or _is_unclear(label, value, named, known):
            _refuse(general, exact)
        return named.meets(known)
    if _DATE.fullmatch(label) and _DATE.fullmatch(value):
        mine, theirs = ([int(part) for part in re.findall(r"\d+", one)] for one in (label, value))
        if (mine[-1] > 99) != (theirs[-1] > 99):  # years of two digits and of four
            _refuse(general, exact)
        return mine == theirs
    if _DATE.fullmatch(label) and known and (known.low >= min(_YEARS) or label[-4:].isdigit()):
        _refuse(general, exact)
    if known and _DECIMALS.fullmatch(label):
        _refuse(general, exact)
    inside = re.fullmatch(r"([\[({])(.*)[\])}]", label)
    listed = _LISTED.split(inside[2]) if inside else _LISTED_BARE.split(label)
    parts = [part.strip("'\" ") for part in listed]
    if len(label) <= _LONGEST and (inside or (len(parts) > 1 and all(parts))):
        return _in_list(parts, general, exact, hierarchy, exactly=bool(inside) and inside[1] == "{")
    words = {normalize(str(word)) for pair in (hierarchy or {}).items() for word in pair}
    if (known and label not in words) or (named and re.search(r"\d", value)):
        _refuse(general, exact)
    return False


def _is_unclear(label: str, value: str, named: _Range, known: _Range) -> bool:
    """Say whether a label that names a range, next to a value that names one, has two readings."""
    if named.days != known.days:
        return None in (named._in_days(), known._in_days())  # an age next to a date
    shorter, longer = sorted((label, value), key=len)
    if _PREFIX.fullmatch(shorter) and _ZIP.fullmatch(longer) and longer.startswith(shorter):
        return True  # the first digits of a ZIP code next to the whole one
    if named.days:
        return False
    # An age of 29.5 is 29 in completed years, and 30 when it is rounded.
    beyond = named.whole and known.single() and named.high < known.low < named.high + 1
    decade = _DECADE.fullmatch(label) and named.high <= 100 and known.low >= min(_YEARS)
    listed = _THOUSANDS.fullmatch(label) and value in label.split(",")
    return bool(beyond or decade or listed)


def _refuse(general: object, exact: object) -> None:
    raise InvalidParameter(
        f"label {shown(general)}: cannot be read next to the value {shown(exact)}; write it as 20-29, "
        "[20, 30), <30, 90+, 130** or {a, b}, or name it in `hierarchy`"
    )


def _in_list(
    parts: list, general: object, exact: object, hierarchy: Mapping[str, str] | None, *, exactly: bool
) -> bool:
    """Say whether one of several values may be the exact one; two bare numbers can be ends of a range."""
    if any(covers(part, exact, hierarchy) for part in parts):
        return True
    named, known = [as_range(part) for part in parts], as_range(exact)
    if not exactly and known and len(parts) == 2 and all(one and one.single() for one in named):
        low, high = sorted(one.low for one in named)
        if low < known.low < high:
            _refuse(general, exact)
    return False


def _ancestors(value: str, hierarchy: Mapping[str, str] | None) -> set[str]:
    parents = {_text(child): _text(parent) for child, parent in (hierarchy or {}).items()}
    seen: set[str] = set()
    while (value := parents.get(value)) is not None and value not in seen:
        seen.add(value)
    return seen


def _matches(label: str, value: str) -> bool:
    """Say whether two texts agree wherever neither has a star, which stands for one character.

    Raises:
        InvalidParameter: the star may stand for several, or there is more than digits around it.
    """
    if value.isdigit() and label.startswith("0"):  # a ZIP code that was read as a number
        value = value.zfill(len(label))
    value = value if "*" in value or not re.fullmatch(r"\d+\.\d+", value) else value.partition(".")[0]
    if value.isdigit() and not re.fullmatch(r"[\d*]+", label):
        _refuse(label, value)
    if len(label) == len(value):
        return all("*" in pair or pair[0] == pair[1] for pair in zip(label, value, strict=True))
    if label.count("*") == 1 and len(label) <= len(value) and value.startswith(label.removesuffix("*")):
        _refuse(label, value)
    return False
