"""k, l and t of a table, each for every equivalence class and for the table.

>>> from privhelpers.anonymity import tables
>>> quasi = ["age", "gender", "zip", "nationality"]
>>> k_anonymity(tables.four_anonymous(), quasi), k_anonymity(tables.patients(), quasi)
(4, 1)
>>> distinct_l_diversity(tables.four_anonymous(), quasi, "condition")
1
>>> round(t_closeness(tables.four_anonymous(), quasi, "condition"), 4)
0.5833

Sources: Sweeney 2002 (k); Machanavajjhala et al. 2007 (l); Li, Li and Venkatasubramanian 2007 (t).
"""

from collections.abc import Iterable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privhelpers.errors import InvalidParameter
from privhelpers.text import normalize
from privhelpers.validate import shown

_MEASURES = ("size", "distinct_l", "t")  # the columns of `class_report`


def folded(column: pd.Series) -> pd.Series:
    """Return a column whose text is folded to lower case with single spaces; numbers stay.

    Without this, two spellings of one disease count as two, and a table looks more diverse than it is.

    Args:
        column: values of one attribute.
    """
    return column.map(lambda value: normalize(value) if isinstance(value, str) else value)


def has_columns(name: str, table: pd.DataFrame, wanted: Iterable[str]) -> None:
    """Refuse a table that lacks one of the columns named by an argument."""
    if missing := [one for one in wanted if one not in table.columns]:
        raise InvalidParameter(f"{name}: no column {shown(missing)}; the table has {list(table.columns)}")


def _checked(table: pd.DataFrame, quasi: Sequence[str], *others: str) -> None:
    if isinstance(quasi, str) or not isinstance(quasi, Sequence) or not quasi:
        raise InvalidParameter(f"quasi = {shown(quasi)}: must be a list of one column name or more")
    wanted = [*quasi, *others]
    has_columns("table", table, wanted)
    if table.empty:
        raise InvalidParameter("table: has no rows; give one person or more")
    if empty := [column for column in wanted if table[column].isna().any()]:
        raise InvalidParameter(f"table: missing values in {empty}; write a word such as 'unknown' for them")


def _classes(table: pd.DataFrame, quasi: Sequence[str]) -> pd.Series:
    """Return the number of each row's class, from 1 in order of appearance.

    Args:
        table: one row a person.
        quasi: names of the quasi-identifiers; rows that agree on all of them share a class.

    Raises:
        InvalidParameter: a column does not exist or has a missing value, or there is no row.
    """
    _checked(table, quasi)
    keys = [folded(table[column]) for column in quasi]
    return (table.groupby(keys, sort=False).ngroup() + 1).rename("class")


def k_anonymity(table: pd.DataFrame, quasi: Sequence[str]) -> int:
    """Return k: the number of rows of the smallest class.

    Args:
        table, quasi: as in `_classes`.

    Source: Sweeney 2002.
    """
    return int(_classes(table, quasi).value_counts().min())


def _shares(column: pd.Series, values: Sequence[object]) -> NDArray[np.float64]:
    return column.value_counts(normalize=True).reindex(values, fill_value=0.0).to_numpy(float)


def _distance(inside: NDArray[np.float64], whole: NDArray[np.float64], *, ordered: bool) -> float:
    """Return the earth mover's distance: moves cost 1, or r / (m - 1) over r of m ordered values."""
    if not ordered:
        return float(np.abs(inside - whole).sum() / 2)
    # On a line, what lies below each gap must cross it: the gaps of the distribution functions add up.
    gaps = np.abs(np.cumsum(inside - whole))[:-1]
    return float(gaps.sum() / max(gaps.size, 1))


def class_report(
    table: pd.DataFrame, quasi: Sequence[str], sensitive: str, *, order: Sequence[object] | None = None
) -> pd.DataFrame:
    """Return one row for each class: its quasi-identifiers, size, distinct l and t.

    Args:
        table, quasi: as in `_classes`.
        sensitive: name of the sensitive attribute.
        order: all its values, lowest first, for the ordered distance; None for the categorical one.

    Raises:
        InvalidParameter: a column does not exist or has a missing value, `order` lacks a value, or a
            quasi-identifier has the name of a measure.
    """
    _checked(table, quasi, sensitive)
    if taken := [column for column in quasi if column in _MEASURES]:
        raise InvalidParameter(f"quasi: {taken} are columns of the report itself; rename the table's")
    table = table.reset_index(drop=True)  # labels of rows may repeat, as after `concat`
    column = folded(table[sensitive])
    values = list(column.unique() if order is None else folded(pd.Series(order, dtype=object)))
    if len(set(values)) < len(values) or not set(column) <= set(values):
        raise InvalidParameter(f"order = {shown(order)}: must name each value of {shown(sensitive)} once")
    whole, rows = _shares(column, values), {}
    for number, index in table.groupby(_classes(table, quasi)).groups.items():
        inside = _shares(column.loc[index], values)
        distance = _distance(inside, whole, ordered=order is not None)
        measures = len(index), int(np.count_nonzero(inside)), distance
        rows[number] = {
            **table.loc[index[0], list(quasi)],
            **dict(zip(_MEASURES, measures, strict=True)),
        }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis("class")


def distinct_l_diversity(table: pd.DataFrame, quasi: Sequence[str], sensitive: str) -> int:
    """Return the smallest number of different sensitive values in a class.

    Args:
        table, quasi, sensitive: as in `class_report`.

    Source: Machanavajjhala et al. 2007.
    """
    return int(class_report(table, quasi, sensitive)["distinct_l"].min())


def t_closeness(
    table: pd.DataFrame, quasi: Sequence[str], sensitive: str, *, order: Sequence[object] | None = None
) -> float:
    """Return t: the largest distance between a class and the whole table, in [0, 1].

    Args:
        table, quasi, sensitive, order: as in `class_report`.

    Source: Li, Li and Venkatasubramanian 2007.
    """
    return float(class_report(table, quasi, sensitive, order=order)["t"].max())
