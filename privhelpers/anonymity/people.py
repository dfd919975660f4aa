"""A town of synthetic people, a register of some of them, and how far birth date, sex and area identify.

People are opaque numbers, areas are `Z-01`, `Z-02`, ...: nothing here resembles a real identifier.

>>> people = town(inhabitants=9000, listed=5000, areas=6, seed=0)
>>> funnel(people[people["listed"]], "P-000000", ["birth_date", "sex", "area"]).tolist()
[5000, 6, 3, 1]
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, xlogy
from scipy.stats import binom, norm

from privhelpers import rng, validate
from privhelpers.errors import InvalidParameter

FIRST_DAY, DAYS = np.datetime64("1920-01-01"), 21_915  # 60 years, the last day is 1979-12-31
GRAINS = ("birth_date", "birth_month", "birth_year", "birth_decade")


@dataclass(frozen=True)
class ExpectedShare:
    """Mean and standard deviation, over towns, of the share of people in small classes."""

    mean: float
    sd: float


@dataclass(frozen=True)
class Linkage:
    """What a join of patients with a register finds.

    Attributes:
        patients: hospital rows that were tried.
        once: rows that match exactly one registered person.
        correct: those of them where it is the right person.
    """

    patients: int
    once: int
    correct: int


def _calendar() -> pd.DataFrame:
    days = pd.Series(FIRST_DAY + np.arange(DAYS))
    year = days.dt.year
    return pd.DataFrame(
        {
            "birth_date": days.dt.strftime("%Y-%m-%d"),
            "birth_month": days.dt.strftime("%Y-%m"),
            "birth_year": year,
            "birth_decade": year // 10 * 10,
        }
    )


def _stage_the_funnel(
    generator: np.random.Generator, day: NDArray, sex: NDArray, area: NDArray, areas: int, listed: NDArray
) -> None:
    """Give person 0 exactly five listed people of the same day: two men elsewhere, three women."""
    sex[0] = "M"
    others = np.flatnonzero(listed)[1:]
    same = others[day[others] == day[0]]
    day[same] = (day[0] + generator.integers(1, DAYS, same.size)) % DAYS  # any other day
    five = generator.choice(others, 5, replace=False)
    day[five] = day[0]
    sex[five] = ["M", "M", "F", "F", "F"]
    area[five[:2]] = (area[0] + generator.integers(1, areas, 2)) % areas


def town(*, inhabitants: int, listed: int, areas: int, seed: int) -> pd.DataFrame:
    """Draw a town whose people are independent and uniform in birth date, sex and area.

    Person `P-000000` is the target: a man on the register, placed so that the register narrows him down to
    6 people by birth date, 3 by sex and 1 by area. To that end at most a few dozen rows are redrawn.

    Args:
        inhabitants: people in the town, at least `listed`.
        listed: people on the register, 6 or more, drawn at random.
        areas: postal areas, 2 or more.
        seed: of the town, 0 or more.

    Returns:
        One row a person: person_id, birth_date and its coarser forms, sex, area, listed.

    Raises:
        InvalidParameter: a count is out of its range.
    """
    validate.positive_int(inhabitants=inhabitants, listed=listed, areas=areas)
    if not 6 <= listed <= inhabitants:
        raise InvalidParameter(f"listed = {listed}: must be in [6, {inhabitants}], the number of inhabitants")
    if areas < 2:
        raise InvalidParameter(f"areas = {areas}: must be 2 or more")
    generator = rng.make(seed, "town")
    day, area = generator.integers(DAYS, size=inhabitants), generator.integers(areas, size=inhabitants)
    sex = generator.choice(np.array(["F", "M"], dtype=object), inhabitants)
    register = np.zeros(inhabitants, bool)
    register[0] = True
    register[1 + generator.choice(inhabitants - 1, listed - 1, replace=False)] = True
    _stage_the_funnel(generator, day, sex, area, areas, register)
    people = _calendar().iloc[day].reset_index(drop=True)
    people.insert(0, "person_id", [f"P-{number:06d}" for number in range(inhabitants)])
    names = np.array([f"Z-{number + 1:02d}" for number in range(areas)], dtype=object)
    return people.assign(sex=sex, area=names[area], listed=register)


def funnel(people: pd.DataFrame, target: str, steps: Sequence[str]) -> pd.Series:
    """Return how many people are left after each known value of the target, all of them first.

    Args:
        people: table with `person_id` and the columns of `steps`.
        target: `person_id` of one of them.
        steps: columns in the order in which the attacker uses them.

    Raises:
        InvalidParameter: the target is not in the table.
    """
    found = people[people["person_id"] == target]
    if len(found) != 1:
        raise InvalidParameter(f"target = {target!r}: is {len(found)} times in the table, must be once")
    counts = {"everybody": len(people)}
    for step in steps:
        people = people[people[step] == found[step].iloc[0]]
        counts[step] = len(people)
    return pd.Series(counts, name="people left")


def share_in_small_classes(people: pd.DataFrame, quasi: Sequence[str], *, below: int = 2) -> float:
    """Return the share of rows whose class has fewer than `below` rows; 2 counts the unique ones.

    Args:
        people: one row a person.
        quasi: columns that the attacker knows.
        below: class size, 2 or more, from which on a class is not small.
    """
    sizes = people.groupby(list(quasi), observed=True, sort=False).size()
    return float(sizes[sizes < below].sum() / len(people))


def cell_probabilities(grain: str, *, areas: int, by_sex: bool = True) -> NDArray[np.float64]:
    """Return the probability of every combination of birth time, sex and area in `town`.

    Args:
        grain: one of `GRAINS`.
        areas: areas that are told apart, 1 or more; 1 when the area is not released.
        by_sex: whether the sex is released.

    Raises:
        InvalidParameter: the grain is unknown.
    """
    if grain not in GRAINS:
        raise InvalidParameter(f"grain = {grain!r}: must be one of {', '.join(GRAINS)}")
    validate.positive_int(areas=areas)
    copies = areas * (2 if by_sex else 1)
    return np.repeat(_calendar()[grain].value_counts().to_numpy() / (DAYS * copies), copies)


def expected_share(people: int, probabilities: ArrayLike, *, below: int = 2) -> ExpectedShare:
    """Return mean and standard deviation of `share_in_small_classes` over random towns, exactly.

    Args:
        people: number of independent people, 2 or more.
        probabilities: of each combination of quasi-identifiers; they add up to 1.
        below: as in `share_in_small_classes`.

    Raises:
        InvalidParameter: fewer than 2 people, or the probabilities do not add up to 1.
    """
    cells = np.asarray(probabilities, dtype=float)
    if people < 2 or below < 2 or abs(cells.sum() - 1) > 1e-9 or (cells <= 0).any():
        raise InvalidParameter("people and below: 2 or more; probabilities: positive, adding up to 1")
    p, copies = np.unique(cells, return_counts=True)
    mean = float(np.sum(copies * p * binom.cdf(below - 2, people - 1, p)))
    # Two people, both in small classes: in one class together, or in two different classes.
    together = np.sum(copies * p**2 * binom.cdf(below - 3, people - 2, p))
    a, b = p[:, None], p[None, :]
    rest, pairs = np.maximum(1 - a - b, 0), np.outer(copies, copies) - np.diag(copies)
    apart = 0.0
    for i in range(below - 1):
        for j in range(max(0, min(below - 1, people - 1 - i))):
            left = people - 2 - i - j
            ways = gammaln(people - 1) - gammaln(i + 1) - gammaln(j + 1) - gammaln(left + 1)
            apart += np.sum(pairs * a * b * np.exp(ways + xlogy(i, a) + xlogy(j, b) + xlogy(left, rest)))
    second = mean / people + (1 - 1 / people) * (together + apart)
    return ExpectedShare(mean, float(np.sqrt(max(0.0, second - mean**2))))


def release_shares(
    people: pd.DataFrame, releases: Mapping[str, Sequence[str]], *, below: int, level: float = 0.95
) -> pd.DataFrame:
    """Return, for each set of released columns, who is alone and who is in a small class, with the theory.

    Args:
        people: result of `town`.
        releases: columns by name of the release: one of `GRAINS` first, then "sex", "area", both or none.
        below: as in `share_in_small_classes`, for the columns `small`.
        level: probability of the range from `_low` to `_high` over towns (normal approximation), in (0, 1).

    Returns:
        One row a release: people_per_class, and for `unique` (2) and `small` (`below`) the measured share,
        its expectation `_mean` and the range, all in [0, 1].
    """
    validate.delta(1 - level)
    width, rows = norm.ppf((1 + level) / 2), {}
    for name, (grain, *others) in releases.items():
        areas = people["area"].nunique() if "area" in others else 1
        cells = cell_probabilities(grain, areas=areas, by_sex="sex" in others)
        row = {"people_per_class": len(people) / cells.size}
        for kind, size in (("unique", 2), ("small", below)):
            theory = expected_share(len(people), cells, below=size)
            row[kind] = share_in_small_classes(people, [grain, *others], below=size)
            row[f"{kind}_mean"] = theory.mean
            row[f"{kind}_low"] = max(0.0, theory.mean - width * theory.sd)
            row[f"{kind}_high"] = min(1.0, theory.mean + width * theory.sd)
        rows[name] = row
    return pd.DataFrame.from_dict(rows, orient="index")


def link(patients: pd.DataFrame, register: pd.DataFrame, quasi: Sequence[str]) -> Linkage:
    """Join patients with a register on their quasi-identifiers and score the unique matches.

    Args:
        patients: rows with `quasi` and `person_id`, which only scores the attack and is not joined on.
        register: rows with `quasi` and `person_id`.
        quasi: columns of the join.
    """
    columns = ["person_id", *quasi]
    single = register[columns].drop_duplicates(list(quasi), keep=False)
    found = patients[columns].merge(single, on=list(quasi), suffixes=("", "_claimed"))
    correct = int((found["person_id"] == found["person_id_claimed"]).sum())
    return Linkage(len(patients), len(found), correct)
