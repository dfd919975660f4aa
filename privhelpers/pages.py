"""Numbers for the prose of a page: measured here, quoted there, never typed.

    tell(auc=interval.estimate, patients=len(patients))

A sentence then quotes {glue:text}`auc:.3f`. Pages of other chapters can quote it too.
"""

import numbers

from privhelpers.errors import InvalidParameter


def plain(name: str, value: object) -> int | float | str:
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
    raise InvalidParameter(f"{name} = {value!r}: only a number or a string can be quoted in a sentence")


def tell(**values: object) -> None:
    """Keep each value under its name, for sentences to quote with the `glue:text` role."""
    from myst_nb import glue  # of the book's tools; the rest of the package does without them

    for name, value in values.items():
        glue(name, plain(name, value), display=False)


def choose(condition: bool, effect: str, absence: str) -> str:
    """Return the wording for an effect where the run shows it, and the one for its absence where not.

    tell(reading=choose(interval.low > 0, "members leak more than controls", "no difference shows"))
    """
    if condition not in (True, False):
        raise InvalidParameter(f"condition = {condition!r}: must be true or false")
    return effect if condition else absence
