"""What an attacker concludes from a released table: each attack returns beliefs, none needs a name in it.

>>> from privhelpers.anonymity import tables
>>> homogeneity(tables.four_anonymous(), "condition", {"age": 31, "zip_code": "13222"}).posterior
{'Cancer': 1.0}
>>> sorted(composition(tables.hospitals(), "condition", {"gender": "M", "age": 25, "zip_code": "30602"}))
['Cancer']

The target is taken to be one of the released rows. All rows that fit what is known are equally likely to be
the target's, unless the attack brings a likelihood.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from privhelpers import validate
from privhelpers.anonymity.generalization import covers
from privhelpers.anonymity.measures import normalized
from privhelpers.errors import InvalidParameter


@dataclass(frozen=True)
class Conclusion:
    """What an attacker believes about one person.

    Attributes:
        rows: released rows that may be the person's.
        posterior: probability of each sensitive value that is still possible, largest first.
    """

    rows: int
    posterior: dict[object, float]

    @property
    def certain(self) -> bool:
        """Whether one value is left."""
        return len(self.posterior) == 1


def _weights(
    column: pd.Series, likelihood: Mapping[object, float] | None = None
) -> tuple[dict[object, float], dict[object, object]]:
    """Return the weight of each value and the first spelling that the table has for it."""
    folded = normalized(column)
    spelling = dict(zip(folded[::-1], column[::-1], strict=True))
    # Through a Series: the keys are folded as the column is.
    given = {} if likelihood is None else dict(zip(*_folded(likelihood), strict=True))
    counts = folded.value_counts(sort=False)
    return {value: float(n * given.get(value, 1.0)) for value, n in counts.items()}, spelling


def _folded(mapping: Mapping[object, object]) -> tuple[list[object], list[object]]:
    return list(normalized(pd.Series(list(mapping), dtype=object))), list(mapping.values())


def _posterior(weights: Mapping[object, float]) -> dict[object, float]:
    total = sum(weights.values())
    if total <= 0:
        raise InvalidParameter("likelihood: rules out every value of the fitting rows; leave one possible")
    ranked = sorted(weights.items(), key=lambda item: (-item[1], str(item[0])))
    return {value: weight / total for value, weight in ranked if weight > 0}


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
    if missing := [column for column in known if column not in table.columns]:
        raise InvalidParameter(f"known: no column {missing}; the table has {list(table.columns)}")
    fits = pd.Series(True, index=table.index)
    for column, exact in known.items():
        fits &= table[column].map(lambda general, exact=exact: covers(general, exact, hierarchy)).astype(bool)
    if not fits.any():
        raise InvalidParameter(f"known = {dict(known)!r}: no row fits, so the person is not in this table")
    return table[fits]


def homogeneity(
    table: pd.DataFrame,
    sensitive: str,
    known: Mapping[str, object],
    hierarchy: Mapping[str, str] | None = None,
) -> Conclusion:
    """Conclude from the fitting rows alone: certain where they all have one value.

    Args:
        table, known, hierarchy: as in `candidates`.
        sensitive: name of the attribute to guess.

    Source: Machanavajjhala et al. 2007.
    """
    return background(table, sensitive, known, likelihood={}, hierarchy=hierarchy)


def background(
    table: pd.DataFrame,
    sensitive: str,
    known: Mapping[str, object],
    *,
    likelihood: Mapping[object, float],
    hierarchy: Mapping[str, str] | None = None,
) -> Conclusion:
    """Conclude by Bayes' rule: rows with a value weigh as much as the value is likely for this person.

    Args:
        table, known, hierarchy: as in `candidates`.
        sensitive: name of the attribute to guess.
        likelihood: relative likelihood of a value for this person, 0 or more; values not named have 1.

    Raises:
        InvalidParameter: a likelihood is negative or all fitting values are ruled out.

    Source: Machanavajjhala et al. 2007.
    """
    for value, weight in likelihood.items():
        validate.non_negative(**{f"likelihood of {value}": weight})
    fitting = candidates(table, known, hierarchy)
    weights, spelling = _weights(fitting[sensitive], likelihood)
    posterior = _posterior(weights)
    return Conclusion(len(fitting), {spelling[value]: share for value, share in posterior.items()})


def similarity(
    table: pd.DataFrame,
    sensitive: str,
    known: Mapping[str, object],
    *,
    kinds: Mapping[str, str],
    hierarchy: Mapping[str, str] | None = None,
) -> Conclusion:
    """Conclude about the kind of value instead of the value: different diseases may be of one organ.

    Args:
        table, known, hierarchy: as in `candidates`.
        sensitive: name of the attribute to guess.
        kinds: kind of each value; a value that is not named is a kind of its own.

    Source: Li, Li and Venkatasubramanian 2007.
    """
    fitting = candidates(table, known, hierarchy)
    of = dict(zip(*_folded(kinds), strict=True))
    grouped = [of.get(value, value) for value in normalized(fitting[sensitive])]
    weights, spelling = _weights(pd.Series(grouped, dtype=object))
    posterior = _posterior(weights)
    return Conclusion(len(fitting), {spelling[value]: share for value, share in posterior.items()})


def composition(
    tables: Sequence[pd.DataFrame],
    sensitive: str,
    known: Mapping[str, object],
    hierarchy: Mapping[str, str] | None = None,
) -> set[object]:
    """Return the values that every release leaves possible for a person who is in all of them.

    Columns of `known` that a release does not have are of no use against it and are skipped there.

    Args:
        tables: releases, one or more; the person has the same sensitive value in each.
        sensitive: name of the attribute to guess, in each release.
        known, hierarchy: as in `candidates`.

    Raises:
        InvalidParameter: there is no release, or no row of one fits.

    Source: Ganta, Kasiviswanathan and Smith 2008.
    """
    if not tables:
        raise InvalidParameter("tables: give one release or more")
    left: dict[object, object] | None = None
    for table in tables:
        usable = {column: value for column, value in known.items() if column in table.columns}
        weights, spelling = _weights(candidates(table, usable, hierarchy)[sensitive])
        here = {value: spelling[value] for value in weights}
        left = here if left is None else {v: word for v, word in left.items() if v in here}
    return set(left.values())
