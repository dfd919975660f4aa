"""Checks at the boundary of a public function, one line each.

>>> positive(noise_multiplier=1.1)
>>> probability(sample_rate=0.0)
Traceback (most recent call last):
...
privhelpers.errors.InvalidParameter: sample_rate = 0.0: must be in (0, 1]
"""

import functools
import inspect
import math
import reprlib
import sys
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING

from privhelpers.errors import InvalidParameter

if TYPE_CHECKING:
    import numpy as np


# Lists that hold one another some times over, as YAML's do, print as more than any memory holds.
class _Short(reprlib.Repr):
    def repr1(self, value: object, level: int) -> str:
        """Return a value by its type: the library goes by the type's name, which any class can have."""
        known = type(value) in _PRINTED
        return super().repr1(value, level) if known else self.repr_instance(value, level)


_PRINTED = (list, tuple, dict, set, frozenset, str, int)
_short = _Short()
_short.maxlevel = 3
_short.maxtuple = _short.maxlist = _short.maxdict = _short.maxset = _short.maxfrozenset = 40
_short.maxstring = _short.maxlong = _short.maxother = 300


def shown(value: object) -> str:
    """Return a value as one short line, for the message of a refusal."""
    try:
        text = _short.repr(value).encode("ascii", "backslashreplace").decode()
    except ValueError:  # a whole number too long to print
        return f"{type(value).__name__} of very many digits"
    text = " ".join(text.split())
    return text if len(text) <= 100 else f"{text[:97]}..."


def _number(name: str, value: float) -> None:
    try:
        finite = not isinstance(value, bool) and isinstance(value, (int, float)) and math.isfinite(value)
    except OverflowError:  # a whole number; it may even be too long to print
        raise InvalidParameter(f"{name}: is too large for a float64") from None
    if not finite:
        raise InvalidParameter(f"{name} = {shown(value)}: must be a finite number")


def positive(**values: float) -> None:
    """Refuse a value that is not a finite number above zero."""
    for name, value in values.items():
        _number(name, value)
        if value <= 0:
            raise InvalidParameter(f"{name} = {shown(value)}: must be greater than 0")


def non_negative(**values: float) -> None:
    """Refuse a value that is not a finite number of zero or more."""
    for name, value in values.items():
        _number(name, value)
        if value < 0:
            raise InvalidParameter(f"{name} = {shown(value)}: must be 0 or more")


def positive_int(most: float = math.inf, /, **values: int) -> None:
    """Refuse a value that is not a whole number above zero, or that is above `most`."""
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InvalidParameter(f"{name} = {shown(value)}: must be a whole number of 1 or more")
        _number(name, value)
        if value > most:
            raise InvalidParameter(f"{name} = {shown(value)}: must be at most {most:,}")


def probability(**values: float) -> None:
    """Refuse a value outside (0, 1]."""
    for name, value in values.items():
        _number(name, value)
        if not 0 < value <= 1:
            raise InvalidParameter(f"{name} = {shown(value)}: must be in (0, 1]")


def delta(value: float) -> None:
    """Refuse a failure probability outside (0, 1), or so small that a float64 loses digits of it."""
    _number("delta", value)
    if not sys.float_info.min <= value < 1:
        raise InvalidParameter(f"delta = {shown(value)}: must be in (0, 1), from 2.3e-308 on")


def one_of(known: Collection[str], **values: str) -> None:
    """Refuse a value that is none of the known texts."""
    for name, value in values.items():
        if not isinstance(value, str) or value not in known:
            raise InvalidParameter(f"{name} = {shown(value)}: must be one of {', '.join(known)}")


def function(**values: Callable) -> None:
    """Refuse a value that nobody can call."""
    for name, value in values.items():
        if not callable(value):
            raise InvalidParameter(f"{name} = {shown(value)}: must be a function")


def array(name: str, values: object, dtype: type | None = None) -> "np.ndarray":
    """Return values as an array, or refuse what makes none, such as rows of several lengths."""
    import numpy as np  # late: whoever only starts a command waits for it

    try:
        return np.asarray(values, dtype=dtype)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:  # the last is a tensor's
        raise InvalidParameter(f"{name} = {shown(values)}: must be numbers ({error})") from None


def row(name: str, values: Iterable[float]) -> list[float]:
    """Return a row of values as a list, or refuse what is none; the values are checked by the caller."""
    try:
        return list(values)
    except TypeError:
        raise InvalidParameter(f"{name} = {shown(values)}: must be a row of numbers") from None


def within_float64(function: Callable) -> Callable:
    """Make a function refuse arguments, each in its range, that together lead beyond a float64."""

    @functools.wraps(function)
    def checked(*args: object, **kwargs: object) -> object:
        try:
            return function(*args, **kwargs)
        except ArithmeticError:
            given = inspect.signature(function).bind(*args, **kwargs).arguments.items()
            told = ", ".join(f"{name} = {shown(value)}" for name, value in given)
            raise InvalidParameter(f"{told}: must not lead to numbers beyond a float64") from None

    return checked
