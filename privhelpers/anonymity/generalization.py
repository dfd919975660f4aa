"""Coarser values that stay true, and the check that they are.

>>> keep_digits(3)("13053"), ranges((20, 29), (30, 39))(28)
('130**', '20-29')
>>> covers("130**", "13053"), covers("40+", 38)
(True, False)
"""

import re
from collections.abc import Callable, Mapping

import pandas as pd

from privhelpers import validate
from privhelpers.errors import InvalidParameter

ANY = "Any"
Rule = Callable[[object], str]
_NUMBER = re.compile(r"\d+(\.\d+)?")


def keep_digits(digits: int) -> Rule:
    """Return the rule that keeps the first `digits` characters and suppresses the others with stars.

    Args:
        digits: characters to keep, 0 or more.
    """
    if digits:
        validate.positive_int(digits=digits)

    def rule(value: object) -> str:
        text = str(value)
        return text[:digits] + "*" * (len(text) - digits)

    return rule


def ranges(*bounds: tuple[int, int]) -> Rule:
    """Return the rule that replaces a number by the range that holds it, ends included.

    Args:
        bounds: (low, high) of each range, low at most high; the first that fits is taken.

    Raises:
        InvalidParameter: no range is given or one is upside down; by the rule, if a value fits none.
    """
    if not bounds or any(low > high for low, high in bounds):
        raise InvalidParameter(f"bounds = {bounds!r}: give (low, high) pairs, low at most high")

    def rule(value: object) -> str:
        for low, high in bounds:
            if low <= value <= high:
                return f"{low}-{high}"
        raise InvalidParameter(f"value {value!r}: fits none of the ranges {bounds!r}; add one for it")

    return rule


def climb(hierarchy: Mapping[str, str], levels: int = 1) -> Rule:
    """Return the rule that goes up a hierarchy of categories; above its top is "Any".

    Args:
        hierarchy: parent of each category that has one.
        levels: steps to climb, 0 or more.
    """

    def rule(value: object) -> str:
        for _ in range(levels):
            value = hierarchy.get(str(value), ANY)
        return str(value)

    return rule


def generalize(table: pd.DataFrame, rules: Mapping[str, Rule]) -> pd.DataFrame:
    """Return a copy with a rule applied to each named column, the others untouched.

    Args:
        table: one row a person.
        rules: rule by column name.

    Raises:
        InvalidParameter: a column does not exist, or a value fits no rule.

    Source: Sweeney 2002, for generalization and suppression.
    """
    if missing := [column for column in rules if column not in table.columns]:
        raise InvalidParameter(f"rules: no column {missing}; the table has {list(table.columns)}")
    return table.assign(**{column: [rule(v) for v in table[column]] for column, rule in rules.items()})


def covers(general: object, exact: object, hierarchy: Mapping[str, str] | None = None) -> bool:
    """Say whether a released value is true of an exact one.

    Understood are equality, "Any", ranges "20-29" (ends included), "40+", stars "130**" (same length),
    and the ancestors of a category in `hierarchy`.

    Args:
        general: value as released.
        exact: value of one person.
        hierarchy: parent of each category that has one.
    """
    general, exact = str(general).strip(), str(exact).strip()
    if general in (exact, ANY):
        return True
    if _NUMBER.fullmatch(exact):
        if match := re.fullmatch(r"(\d+)-(\d+)", general):
            return float(match[1]) <= float(exact) <= float(match[2])
        if match := re.fullmatch(r"(\d+)\+", general):
            return float(match[1]) <= float(exact)
    if general.endswith("*"):
        return len(general) == len(exact) and exact.startswith(general.rstrip("*"))
    seen = {exact}
    while (exact := (hierarchy or {}).get(exact, ANY)) not in (ANY, *seen):
        if exact == general:
            return True
        seen.add(exact)
    return False


def truthful(
    original: pd.DataFrame, released: pd.DataFrame, quasi: list[str], hierarchy: Mapping[str, str]
) -> pd.DataFrame:
    """Say for each row and column whether the released value is true of the original one.

    Args:
        original, released: the same people in the same order.
        quasi: columns to compare.
        hierarchy: parent of each category that has one.

    Raises:
        InvalidParameter: the tables differ in length.
    """
    if len(original) != len(released):
        raise InvalidParameter(f"released has {len(released)} rows, original {len(original)}: must agree")
    pairs = {column: zip(released[column], original[column], strict=True) for column in quasi}
    return pd.DataFrame({c: [covers(a, b, hierarchy) for a, b in pair] for c, pair in pairs.items()})
