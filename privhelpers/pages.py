"""Numbers for the prose of a page: measured here, quoted there, never typed.

    tell(auc=interval.estimate, patients=len(patients))

A sentence then quotes {glue:text}`auc:.3f`. Pages of other chapters can quote it too.
"""

import math
import numbers
from collections.abc import Mapping

import numpy as np
import pandas as pd

from privhelpers.errors import InvalidParameter
from privhelpers.text import power_of_ten
from privhelpers.validate import shown


def _plain(name: str, value: object) -> int | float | str:
    """Return a number as Python's own type: the page formats it, and numpy's repr is not a number.

    Raises:
        InvalidParameter: the value is neither a number nor a string.
    """
    if isinstance(value, str):
        return str(value)
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        return float(value)
    raise InvalidParameter(f"{name} = {shown(value)}: only a number or a string can be quoted in a sentence")


def tell(**values: object) -> None:
    """Keep each value under its name, for sentences to quote with the `glue:text` role."""
    from myst_nb import glue  # of the book's tools; the rest of the package does without them

    for name, value in values.items():
        glue(name, _plain(name, value), display=False)


def choose(condition: bool, effect: str, absence: str) -> str:
    """Return the wording for an effect if the run shows it, and else the one for its absence.

    tell(reading=choose(interval.low > 0, "members leak more than controls", "no difference shows"))
    """
    if np.ndim(condition) or condition not in (True, False):
        raise InvalidParameter(f"condition = {shown(condition)}: must be true or false")
    return effect if condition else absence


def worded(value: object) -> str:
    """Return a value as a table shows it: three digits of a fraction, every digit of a count.

        worded(0.12345)

    >>> worded([8.0, 7.996, 0.5, 0.4999, 123.4])
    '8, 8.00, 0.5, 0.500, 123'

    Args:
        value: a number, a word, a truth value, None, or a list of them; fractions below a thousandth are
            written with a power of ten, infinity as "unbounded".
    """
    if isinstance(value, list | tuple):
        return ", ".join(map(worded, value))
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if value is None or isinstance(value, str):
        return value or "none"
    if isinstance(value, numbers.Integral):
        return f"{value:,}"
    number = float(value)
    if not math.isfinite(number):
        return "unbounded" if math.isinf(number) else "undefined"
    if number and abs(number) < 1e-3:
        return power_of_ten(number)
    if abs(number) >= 1000:
        return f"{number:,.0f}"
    short = f"{number:.3g}"
    # A rounded number keeps its last zeros: 7.996 is 8.00, and only 8 itself is 8.
    return short if float(short) == number else f"{number:#.3g}".rstrip(".")


def facts(values: Mapping[str, object]) -> pd.DataFrame:
    """Return a few values as a table: what each is, in words, and the value.

        facts({"notes in the pool": len(pool), "patients": len(patients)})

    Args:
        values: counts, fractions, texts, truth values, or short sequences of them, by their words.
    """
    return pd.DataFrame({"": [worded(value) for value in values.values()]}, index=list(values))
