"""Numbers for the prose of a page: measured here, quoted there, never typed.

    tell(auc=interval.estimate, patients=len(patients))

A sentence then quotes {glue:text}`auc:.3f`. Pages of other chapters can quote it too.
"""

import html
import math
import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from privhelpers.errors import InvalidParameter
from privhelpers.text import CHECK, CROSS, power_of_ten
from privhelpers.validate import shown

NOT_SHOWN = f"{CROSS}: this run does not show it. The text of the page describes the default run."


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


@dataclass(frozen=True)
class Claims:
    """Sentences and whether this run shows them; Jupyter displays a list with check marks and crosses.

    Attributes:
        holds: sentence -> whether it is true of this run, in the order of the page.
    """

    holds: Mapping[str, bool]

    def __repr__(self) -> str:
        """Return one line a sentence."""
        return "\n".join(f"{CHECK if true else CROSS} {sentence}" for sentence, true in self.holds.items())

    def _repr_html_(self) -> str:
        items = (f"<li>{html.escape(line)}</li>" for line in repr(self).split("\n"))
        shown = f'<ul class="claims">{"".join(items)}</ul>'
        return shown if all(self.holds.values()) else f"{shown}<p>{NOT_SHOWN}</p>"


def claims(sentences: Sequence[tuple[str, bool]]) -> Claims:
    """Return what a chapter concludes, each sentence with its condition, as a list with check marks.

        claims([(f"The baseline recites {told} of {planted} planted secrets.", told > planted / 2)])

    The prose of a chapter describes its default run. A false sentence gets a cross; in that run it also
    makes the build fail at its end.

    Args:
        sentences: pairs of a sentence, on one line, and whether this run shows it.

    Raises:
        InvalidParameter: there is no sentence, one is empty, has two lines or is repeated, or a condition is
            neither true nor false.
    """
    holds = {}
    for sentence, true in sentences:
        if not isinstance(sentence, str) or not sentence.strip() or len(sentence.splitlines()) > 1:
            raise InvalidParameter(f"claim = {shown(sentence)}: must be a sentence on one line")
        if sentence in holds:
            raise InvalidParameter(f"claim = {shown(sentence)}: is twice in the list")
        if np.ndim(true) or true not in (True, False):
            raise InvalidParameter(f"condition of {shown(sentence)} = {shown(true)}: must be true or false")
        holds[sentence] = bool(true)
    if not holds:
        raise InvalidParameter("claims: a chapter has at least one")
    return Claims(holds)


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


class _Facts(pd.DataFrame):
    """A table that is shown whole: pandas would cut a text after 50 letters."""

    def __repr__(self) -> str:
        with pd.option_context("display.max_colwidth", None):
            return super().__repr__()

    def _repr_html_(self) -> str:
        with pd.option_context("display.max_colwidth", None):
            return super()._repr_html_()


def facts(values: Mapping[str, object]) -> pd.DataFrame:
    """Return a few values as a table: what each is, in words, and the value.

        facts({"notes in the pool": len(pool), "patients": len(patients)})

    Args:
        values: counts, fractions, texts, truth values, or short sequences of them, by their words.
    """
    return _Facts({"": [worded(value) for value in values.values()]}, index=list(values))
