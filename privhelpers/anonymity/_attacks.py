"""Rows of a release that may be a person's, and values that several releases leave possible.

>>> from privhelpers.anonymity import tables
>>> sorted(composition(tables.hospitals(), "condition", {"gender": "M", "age": 25, "zip": "30602"}))
['Cancer']
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from privhelpers.anonymity._labels import as_range, covers, is_withheld, meets, says_nothing
from privhelpers.anonymity._measures import folded, has_columns
from privhelpers.errors import InvalidParameter
from privhelpers.validate import shown


def candidates(
    table: pd.DataFrame, known: Mapping[str, object], hierarchy: Mapping[str, str] | None = None
) -> pd.DataFrame:
    """Return the rows whose released values may be true of what the attacker knows.

    A released value is a number, a word, an interval of pandas, or a label: `20-29` and `20 to 29` (both ends
    included), `[20, 30)`, `[20, 30[` and `(20, 30]` (ends as written), `<30`, `≥90`, `90+`, `{a, b}`, an
    ancestor in `hierarchy`, or stars, each for one character: `2*`, `130**`. One that is missing,
    empty, `*`, or `Any` fits everyone. Case, white space and the kind of a dash do not matter.

    Args:
        table: a release.
        known: exact value by column; columns that are not named are unknown to the attacker. A range such as
            `20-24` fits each label that has a value in common with it.
        hierarchy: parent of each category that has one.

    Raises:
        InvalidParameter: a column does not exist, a known value is missing, a label cannot be read next to
            the known value, or no row fits.
    """
    has_columns("known", table, known)
    fits = pd.Series(True, index=table.index)
    for column, exact in known.items():
        if says_nothing(exact):
            raise InvalidParameter(f"known[{shown(column)}] = {shown(exact)}: excludes nothing; leave it out")
        try:
            fits &= np.array([covers(general, exact, hierarchy) for general in table[column]], bool)
        except InvalidParameter as error:
            raise InvalidParameter(f"column {shown(column)}, {error}") from None
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
        The values as the first release spells them. A range such as `[20, 30)` is left if each other release
        has a range or number that meets it.

    Raises:
        InvalidParameter: there is no release, no row of one fits, a label cannot be read, or the sensitive
            value of a row that fits is missing, so that nothing is ruled out.

    Source: Ganta, Kasiviswanathan and Smith 2008.
    """
    if not releases:
        raise InvalidParameter("releases: must be a list of one table or more")
    possible = []
    for release in releases:
        has_columns("sensitive", release, [sensitive])
        usable = {column: value for column, value in known.items() if column in release.columns}
        column = candidates(release, usable, hierarchy)[sensitive]
        if any(map(is_withheld, column)):
            raise InvalidParameter(
                f"sensitive: {shown(sensitive)} is missing in a row that fits, so any value is possible; "
                "leave that release out"
            )
        possible.append(dict(zip(folded(column)[::-1], column[::-1], strict=True)))
    first, *others = possible
    return {spelled for value, spelled in first.items() if all(_is_among(value, other) for other in others)}


def _is_among(value: object, others: Mapping[object, object]) -> bool:
    """Return whether a sensitive value equals one of `others` or, as a range, overlaps one of them."""
    if value in others:
        return True
    mine = as_range(value)
    return mine is not None and any(meets(mine, other) for other in map(as_range, others) if other)
