"""Released labels, and the exact values that each may be true of.

Ranges are intervals of pandas, and so are their ends, open or closed. A label that cannot be read next to a
value is refused: taking it for another value would leave out a row that may be the person's.

>>> covers("[20, 30[", 30), covers("(20, 30]", 30), covers("20-29", 29), covers("≥90", 92)
(False, True, True, True)
>>> covers("130**", "13053"), covers("*", 25), covers("{M, F}", "F")
(True, True, True)
"""

import datetime
import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from numbers import Real

import numpy as np
import pandas as pd

from privhelpers.errors import InvalidParameter
from privhelpers.text import normalize
from privhelpers.validate import shown

# Labels of a withheld value, besides stars: it may have been any value.
_WITHHELD = frozenset(
    ["", "-", "?", ".", "na", "n/a", "#n/a", "nan", "nat", "null", "na", "prefer not to say"]
)
_WITHHELD |= {"missing", "unknown", "unspecified", "undisclosed", "suppressed", "redacted", "withheld"}
_WITHHELD |= {f"not {word}" for word in ("stated", "available", "known", "reported", "recorded", "disclosed")}
_MASKED = re.compile(r"[*\W_]*\*[*\W_]*|[#█■▓?._-]+|x{4,}")
_TOP = frozenset(["any", "all"])  # of every hierarchy
_NUMBER = r"\d+(?:\.\d+)?"
_END = rf"[-+]?(?:{_NUMBER}|inf)"
_DASHED = re.compile(rf"({_NUMBER}) ?(?:-|to) ?({_NUMBER})")
_BRACKETS = re.compile(rf"([\[\](]) ?({_END}) ?[,;] ?({_END}) ?([\[\])])")
_COMPARED = re.compile(rf"([<>]=?|[≤≥]) ?({_NUMBER})|({_NUMBER}) ?\+")
_LIST = re.compile(r"\s*(?:[,;|/]|\bor\b)\s*")
_WHOLE = re.compile(r"\d+ ?(?:-|to) ?\d+")
_PREFIX, _ZIP = re.compile(r"\d{3}"), re.compile(r"\d{5}(?:-?\d{4})?")


def _interval(
    low: float, high: float, *, low_open: bool = False, high_open: bool = False
) -> pd.Interval | None:
    """Return an interval of pandas, or None if nothing lies in it."""
    closed = {(0, 0): "both", (0, 1): "left", (1, 0): "right", (1, 1): "neither"}[low_open, high_open]
    interval = pd.Interval(low, high, closed) if low <= high else None
    return None if interval is None or interval.is_empty else interval


def _read(text: str) -> pd.Interval | None:
    """Return the range or the single number that a normalized text names; None if it names none."""
    if re.fullmatch(_NUMBER, text):
        return _interval(float(text), float(text))
    if match := _DASHED.fullmatch(text):
        return _interval(float(match[1]), float(match[2]))
    if match := _BRACKETS.fullmatch(text):
        left, low, high, right = match.groups()
        return _interval(float(low), float(high), low_open=left in "(]", high_open=right in ")[")
    if match := _COMPARED.fullmatch(text):
        sign, number = match[1] or "≥", float(match[2] or match[3])
        if sign[0] in ">≥":
            return _interval(number, np.inf, low_open=sign == ">")
        return _interval(-np.inf, number, high_open=sign == "<")
    return None


def as_range(value: object) -> pd.Interval | None:
    """Return the range, number or day that a value or a label names, or None."""
    if isinstance(value, str):
        return _read(normalize(value))
    if isinstance(value, pd.Interval):
        return value
    if isinstance(value, datetime.date | np.datetime64):  # a Timestamp is a date too
        value = pd.Timestamp(value)
    elif isinstance(value, Fraction | Decimal):
        value = float(value)
    elif isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        return None
    return pd.Interval(value, value, "both")


def meets(one: pd.Interval, other: pd.Interval) -> bool:
    """Return whether two ranges overlap; a range of numbers and one of days are refused."""
    try:
        return one.overlaps(other)
    except TypeError:
        _refuse(one, other)


def _text(value: object) -> str:
    """Return the normalized text of a value; a whole number has no decimal point."""
    if isinstance(value, float | np.floating) and float(value).is_integer():
        return str(int(value))
    return normalize(str(value))


def is_withheld(label: object) -> bool:
    """Return whether a value is missing, empty, all stars, or a word for missing."""
    if not pd.api.types.is_scalar(label):
        return False
    text = "" if pd.isna(label) else _text(label)
    return text.strip("[]<>() ") in _WITHHELD or bool(_MASKED.fullmatch(text))


def says_nothing(label: object) -> bool:
    """Return whether a quasi-identifier is withheld or the top of a hierarchy, so that it fits everyone."""
    return is_withheld(label) or (isinstance(label, str) and _text(label) in _TOP)


def covers(general: object, exact: object, hierarchy: Mapping[str, str] | None = None) -> bool:
    """Return whether a released value may be true of an exact one.

    Args:
        general: value as released. One that is missing, empty or all stars may be true of anyone.
        exact: value of one person; if it is a range itself, it is enough that the two have a value in common.
        hierarchy: parent of each category that has one.

    Raises:
        InvalidParameter: the label cannot be read next to this value.
    """
    if not (pd.api.types.is_scalar(general) and pd.api.types.is_scalar(exact)):
        _refuse(general, exact)
    if says_nothing(general):
        return True
    label, value = _text(general), _text(exact)
    if label == value or label in _ancestors(value, hierarchy):
        return True
    if "*" in label or "*" in value:
        return _matches(label, value)
    named, known = as_range(general), as_range(exact)
    if named and known:
        if _is_unclear(label, value, named, known):
            _refuse(general, exact)
        return meets(named, known)
    if label.startswith("{") and label.endswith("}"):
        return any(covers(part, exact, hierarchy) for part in _LIST.split(label[1:-1].strip()))
    words = {_text(word) for pair in (hierarchy or {}).items() for word in pair}
    if re.search(r"\d", value):
        # Two texts with digits in the same places are two values, such as dates or numbers of rooms.
        alike = not (named or known) and re.sub(r"\d", "0", label) == re.sub(r"\d", "0", value)
        if not alike and (named or label not in words):
            _refuse(general, exact)
        return False
    parts = _LIST.split(label)
    return len(parts) > 1 and any(covers(part, exact, hierarchy) for part in parts if part)


def _is_unclear(label: str, value: str, named: pd.Interval, known: pd.Interval) -> bool:
    """Return whether a label that names a range, next to a value that names one, has two readings."""
    shorter, longer = sorted((label, value), key=len)
    if _PREFIX.fullmatch(shorter) and _ZIP.fullmatch(longer) and longer.startswith(shorter):
        return True  # the first digits of a ZIP code next to the whole one
    # An age of 29.5 is 29 in completed years, and 30 when it is rounded.
    whole = _WHOLE.fullmatch(label) and known.left == known.right and isinstance(known.left, Real)
    return bool(whole) and named.right < known.left < named.right + 1


def _refuse(general: object, exact: object) -> None:
    raise InvalidParameter(
        f"label {shown(general)}: cannot be read next to the value {shown(exact)}; write it as 20-29, "
        "[20, 30), <30, 90+, 130** or {a, b}, or name it in `hierarchy`"
    )


def _ancestors(value: str, hierarchy: Mapping[str, str] | None) -> set[str]:
    parents = {_text(child): _text(parent) for child, parent in (hierarchy or {}).items()}
    seen: set[str] = set()
    while (value := parents.get(value)) is not None and value not in seen:
        seen.add(value)
    return seen


def _matches(label: str, value: str) -> bool:
    """Return whether two texts agree wherever neither has a star, which means any one character.

    Raises:
        InvalidParameter: the star may mean several, or there is more than digits around it.
    """
    if value.isdigit() and label.startswith("0"):  # a ZIP code that was read as a number
        value = value.zfill(len(label))
    if value.isdigit() and not re.fullmatch(r"[\d*]+", label):
        _refuse(label, value)
    if len(label) == len(value):
        return all("*" in pair or pair[0] == pair[1] for pair in zip(label, value, strict=True))
    if label.count("*") == 1 and len(label) <= len(value) and value.startswith(label.removesuffix("*")):
        _refuse(label, value)
    return False
