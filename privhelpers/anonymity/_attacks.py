"""Which rows of a release may be a person's, and what several releases leave possible.

>>> from privhelpers.anonymity import tables
>>> sorted(composition(tables.hospitals(), "condition", {"gender": "M", "age": 25, "zip": "30602"}))
['Cancer']
>>> _covers("130**", "13053"), _covers("40+", 38)
(True, False)
"""

import re
from collections.abc import Mapping, Sequence

import pandas as pd

from privhelpers.anonymity._measures import folded, has_columns
from privhelpers.errors import InvalidParameter
from privhelpers.validate import shown

_ANY = "Any"
_NUMBER = re.compile(r"\d+(\.\d+)?")


def _covers(general: object, exact: object, hierarchy: Mapping[str, str] | None = None) -> bool:
    """Say whether a released value is true of an exact one.

    Understood are equality, "Any", ranges "20-29" (ends included), "40+", stars "130**" (same length),
    and the ancestors of a category in `hierarchy`.

    Args:
        general: value as released.
        exact: value of one person.
        hierarchy: parent of each category that has one.
    """
    general, exact = str(general).strip(), str(exact).strip()
    if general in (exact, _ANY):
        return True
    if _NUMBER.fullmatch(exact):
        if match := re.fullmatch(r"(\d+)-(\d+)", general):
            return float(match[1]) <= float(exact) <= float(match[2])
        if match := re.fullmatch(r"(\d+)\+", general):
            return float(match[1]) <= float(exact)
    if general.endswith("*"):
        return len(general) == len(exact) and exact.startswith(general.rstrip("*"))
    seen = {exact}
    while (exact := (hierarchy or {}).get(exact, _ANY)) not in (_ANY, *seen):
        if exact == general:
            return True
        seen.add(exact)
    return False


def _by_name(known: Mapping[str, object], hierarchy: Mapping[str, str] | None) -> None:
    if not isinstance(known, Mapping) or not (hierarchy is None or isinstance(hierarchy, Mapping)):
        raise InvalidParameter(f"known = {shown(known)}, hierarchy: must each be a value by name")


def candidates(
    table: pd.DataFrame, known: Mapping[str, object], hierarchy: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Return the rows whose released values are true of what the attacker knows.

    Args:
        table: a release.
        known: exact value by column; columns that are not named are unknown to the attacker.
        hierarchy: parent of each category that has one.

    Raises:
        InvalidParameter: a column does not exist, or no row fits.
    """
    _by_name(known, hierarchy)
    has_columns("known", table, known)
    fits = pd.Series(True, index=table.index)
    for column, exact in known.items():
        fits &= (
            table[column].map(lambda general, exact=exact: _covers(general, exact, hierarchy)).astype(bool)
        )
    if not fits.any():
        raise InvalidParameter(
            f"known = {shown(dict(known))}: no row fits, so the person is not in this table"
        )
    return table[fits]


def composition(
    releases: Sequence[pd.DataFrame],
    sensitive: str,
    known: Mapping[str, object],
    hierarchy: Mapping[str, str] | None = None,
) -> set[object]:
    """Return the values that every release leaves possible for a person who is in all of them.

    Columns of `known` that a release does not have are of no use against it and are skipped there.

    Args:
        releases: one or more; the person has the same sensitive value in each.
        sensitive: name of the attribute to guess, in each release.
        known, hierarchy: as in `candidates`.

    Returns:
        The values as the first release spells them.

    Raises:
        InvalidParameter: there is no release, or no row of one fits.

    Source: Ganta, Kasiviswanathan and Smith 2008.
    """
    if not isinstance(releases, Sequence) or not releases:
        raise InvalidParameter(f"releases = {shown(releases)}: must be a list of one table or more")
    _by_name(known, hierarchy)
    possible = []
    for release in releases:
        has_columns("sensitive", release, [sensitive])
        usable = {column: value for column, value in known.items() if column in release.columns}
        column = candidates(release, usable, hierarchy)[sensitive]
        possible.append(dict(zip(folded(column)[::-1], column[::-1], strict=True)))
    left = set.intersection(*(set(spellings) for spellings in possible))
    return {possible[0][value] for value in left}
