"""How far one person can move the answer of a query, with the neighbouring relation named.

>>> global_sensitivity("sum", relation="replacement", low=1, high=100).value
99.0
>>> global_sensitivity("sum", relation="add/remove", low=1, high=100).value
100.0
"""

from collections.abc import Callable
from dataclasses import dataclass

from privhelpers import validate
from privhelpers.errors import InvalidParameter
from privhelpers.mechanisms import checks

QUERIES = ("size", "count", "sum", "mean", "max", "median")


@dataclass(frozen=True)
class Sensitivity:
    """Global sensitivity of one query under one relation.

    Attributes:
        query: one of `QUERIES`.
        relation: "add/remove" or "replacement".
        value: in the unit of the answer; None where it is undefined.
        reason: why it is that number, or why there is none.
    """

    query: str
    relation: str
    value: float | None
    reason: str


def _replacement(low: float, high: float, n: int | None) -> dict[str, tuple[float | None, str]]:
    width = high - low
    return {
        "size": (0.0, "the number of records is the same on both sides"),
        "count": (1.0, "the new record may match where the old one did not"),
        "sum": (width, "one value moves from low to high"),
        "mean": (
            (None, "depends on n: state the public number of records")
            if n is None
            else (width / n, "the sum moves by high - low and n is public")
        ),
        "max": (width, "all others are low and the one record moves from low to high"),
        "median": (width, "half of the others are low, half are high: the one record decides"),
    }


def _add_remove(low: float, high: float, n: int | None) -> dict[str, tuple[float | None, str]]:
    empty = "undefined on the empty table, a neighbour of every table of one record"
    return {
        "size": (1.0, "one record more or less"),
        "count": (1.0, "the record matches or does not"),
        "sum": (max(abs(low), abs(high)), "the whole value of one record comes or goes"),
        "mean": (None, empty),
        "max": (None, empty),
        "median": (None, empty),
    }


_TABLES: dict[str, Callable[[float, float, int | None], dict[str, tuple[float | None, str]]]] = {
    "replacement": _replacement,
    "add/remove": _add_remove,
}


def global_sensitivity(
    query: str, *, relation: str, low: float, high: float, n: int | None = None
) -> Sensitivity:
    """Return the largest change of the answer between neighbours whose values lie in [low, high].

    "size" counts all records, "count" those that satisfy a condition; "median" is the lower median, a
    value of the table (an average of the two middle values moves half as far when n is even).

    Args:
        query: one of `QUERIES`.
        relation: "add/remove" or "replacement".
        low, high: public bounds of a value, low below high; both are attained.
        n: public number of records, 1 or more; only the mean under replacement needs it.

    Raises:
        InvalidParameter: a value is unknown or out of its range.

    Source: Dwork and Roth 2014, definition 3.1.
    """
    checks.relation(relation)
    if query not in QUERIES:
        raise InvalidParameter(f"query = {query!r}: must be one of {', '.join(QUERIES)}")
    checks.finite(low=low, high=high)
    if low >= high:
        raise InvalidParameter(f"low = {low!r}: must be below high = {high!r}")
    if n is not None:
        validate.positive_int(n=n)
    value, reason = _TABLES[relation](low, high, n)[query]
    return Sensitivity(query, relation, None if value is None else float(value), reason)


def sensitivity_table(*, low: float, high: float, n: int | None = None) -> list[Sensitivity]:
    """Return the sensitivity of every query under both relations, ready for `pandas.DataFrame`.

    Args:
        low, high, n: as in `global_sensitivity`.

    Raises:
        InvalidParameter: a value is out of its range.
    """
    return [
        global_sensitivity(query, relation=relation, low=low, high=high, n=n)
        for query in QUERIES
        for relation in checks.RELATIONS
    ]
