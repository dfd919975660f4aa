"""Checks at the boundary of a public function, one line each.

>>> positive(noise_multiplier=1.1)
1.1
>>> probability(sample_rate=0.0)
Traceback (most recent call last):
...
privhelpers.errors.InvalidParameter: sample_rate = 0.0: must be in (0, 1]
"""

import contextlib
import decimal
import functools
import inspect
import math
import numbers
import reprlib
import sys
from collections.abc import Callable, Collection, Iterable
from typing import TYPE_CHECKING, Any

from privhelpers.errors import InvalidParameter

if TYPE_CHECKING:
    import numpy as np


# Lists that contain each other several times, as YAML's can, print as more than fits in memory.
_short = reprlib.Repr()
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


def _plain(value: object) -> int | float | None:
    """Return a number of Python, or a single one of numpy, pandas or torch, as Python's; None for all else.

    A truth value, a time, a masked number and an array of one element are not numbers.
    """
    if getattr(value, "shape", None) == () and not hasattr(value, "mask"):
        kind = getattr(getattr(value, "dtype", None), "kind", "f")  # torch has none
        value = value.item() if kind in "iuf" else None
    if isinstance(value, bool):
        return None
    if isinstance(value, numbers.Integral):
        return int(value)
    return float(value) if isinstance(value, numbers.Real | decimal.Decimal) else None


def _number(name: str, value: float) -> int | float:
    try:
        plain = _plain(value)
        if plain is not None and math.isfinite(plain):
            return plain
    except OverflowError:  # a whole number; it may even be too long to print
        raise InvalidParameter(f"{name}: is too large for a float64") from None
    except (ValueError, RuntimeError):  # a signaling NaN, a tensor without data
        pass
    raise InvalidParameter(f"{name} = {shown(value)}: must be a finite number")


def _whole(name: str, value: int, low: int, most: float) -> int:
    number = value if type(value) is int else None
    if number is None:
        with contextlib.suppress(OverflowError, ValueError, RuntimeError):
            number = _plain(value)
    if not isinstance(number, int) or number < low:
        cure = f"; write {int(number)}" if isinstance(number, float) and number.is_integer() else ""
        raise InvalidParameter(f"{name} = {shown(value)}: must be a whole number of {low} or more{cure}")
    _number(name, number)
    if number > most:
        raise InvalidParameter(f"{name} = {shown(value)}: must be at most {most:,}")
    return number


def _in_range(values: dict, inside: Callable, words: str) -> Any:
    checked = {name: _number(name, value) for name, value in values.items()}
    for name, number in checked.items():
        if not inside(number):
            raise InvalidParameter(f"{name} = {shown(values[name])}: must be {words}")
    return _one_or_all(checked)


def _one_or_all(checked: dict) -> Any:
    return next(iter(checked.values())) if len(checked) == 1 else tuple(checked.values())


def finite(**values: float) -> Any:
    """Return numbers of either sign as Python's, and refuse what is not a finite one.

    Every check of this module takes the numbers of Python, numpy, pandas and torch, and decimals and
    fractions, and returns Python's: one value alone, or several in the order of the arguments. Go on with
    what is returned: `np.int8(100) * 2` is -56, and a float32 takes the digits of what it meets.
    """
    return _in_range(values, lambda number: True, "a finite number")


def positive(**values: float) -> Any:
    """Return numbers above zero, as `finite` does, and refuse others."""
    return _in_range(values, lambda number: number > 0, "greater than 0")


def non_negative(**values: float) -> Any:
    """Return numbers of zero or more, as `finite` does, and refuse others."""
    return _in_range(values, lambda number: number >= 0, "0 or more")


def positive_int(most: float = math.inf, /, **values: int) -> Any:
    """Return whole numbers above zero, as `finite` does, and refuse others and those above `most`.

    A float is refused, be it 300.0: a count that became one came from a sum or mean that may be no count.
    """
    return _one_or_all({name: _whole(name, value, 1, most) for name, value in values.items()})


def non_negative_int(most: float = math.inf, /, **values: int) -> Any:
    """Return whole numbers of zero or more, as `positive_int` does, and refuse others."""
    return _one_or_all({name: _whole(name, value, 0, most) for name, value in values.items()})


def probability(**values: float) -> Any:
    """Return numbers in (0, 1], as `finite` does, and refuse others."""
    return _in_range(values, lambda number: 0 < number <= 1, "in (0, 1]")


def open_unit(**values: float) -> Any:
    """Return numbers strictly between 0 and 1, such as the level of an interval, and refuse others."""
    return _in_range(values, lambda number: 0 < number < 1, "in (0, 1)")


def delta(value: float) -> float:
    """Return a failure probability; one outside (0, 1), or at which float64 loses digits, is refused."""
    number = _number("delta", value)
    if not sys.float_info.min <= number < 1:
        raise InvalidParameter(f"delta = {shown(value)}: must be in (0, 1), from 2.3e-308 on")
    return number


def guarantee(epsilon: float, delta: float) -> tuple[float, float]:
    """Return epsilon of 0 or more and delta in [0, 1) as floats, or refuse them; delta 0 is pure DP."""
    epsilon, delta = non_negative(epsilon=epsilon, delta=delta)
    if delta >= 1:
        raise InvalidParameter(f"delta = {shown(delta)}: must be in [0, 1)")
    return epsilon, delta


def fields(record: object, check: Callable, *names: str) -> None:
    """Check fields of a frozen dataclass, and keep what the check returns."""
    for name in names:
        object.__setattr__(record, name, check(**{name: getattr(record, name)}))


def one_of(known: Collection[str], **values: str) -> None:
    """Refuse a value that is not one of the known texts."""
    for name, value in values.items():
        if not isinstance(value, str) or value not in known:
            raise InvalidParameter(f"{name} = {shown(value)}: must be one of {', '.join(known)}")


def function(**values: Callable) -> None:
    """Refuse a value that is not callable."""
    for name, value in values.items():
        if not callable(value):
            raise InvalidParameter(f"{name} = {shown(value)}: must be a function")


def array(name: str, values: object, dtype: type | None = None) -> "np.ndarray":
    """Return values as an array, or refuse what makes none, such as rows of several lengths."""
    import numpy as np  # late: it takes long to load

    try:
        return np.asarray(values, dtype=dtype)
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:  # the last is a tensor's
        raise InvalidParameter(f"{name} = {shown(values)}: must be numbers ({error})") from None


def row(name: str, values: Iterable[float]) -> list[float]:
    """Return a row of values as a list, or refuse something else; the values are checked by the caller."""
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
