"""A town of synthetic people and a register of some of them.

People are opaque numbers, areas are `Z-01`, `Z-02`, ...: nothing here resembles a real identifier.

>>> people = town(inhabitants=9000, listed=5000, areas=6, seed=0)
>>> len(people), int(people["listed"].sum())
(9000, 5000)
"""

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privhelpers import rng, validate
from privhelpers.errors import InvalidParameter

_FIRST_DAY, _DAYS = np.datetime64("1920-01-01"), 21_915  # 60 years, the last day is 1979-12-31


def _calendar() -> pd.DataFrame:
    days = pd.Series(_FIRST_DAY + np.arange(_DAYS))
    year = days.dt.year
    return pd.DataFrame(
        {
            "birth_date": days.dt.strftime("%Y-%m-%d"),
            "birth_month": days.dt.strftime("%Y-%m"),
            "birth_year": year,
        }
    )


def _stage_the_funnel(
    generator: np.random.Generator, day: NDArray, sex: NDArray, area: NDArray, areas: int, listed: NDArray
) -> None:
    """Give person 0 exactly five listed people of the same day: two men elsewhere, three women."""
    sex[0] = "M"
    others = np.flatnonzero(listed)[1:]
    same = others[day[others] == day[0]]
    day[same] = (day[0] + generator.integers(1, _DAYS, same.size)) % _DAYS  # any other day
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
    inhabitants, listed, areas = validate.positive_int(
        10_000_000, inhabitants=inhabitants, listed=listed, areas=areas
    )
    if not 6 <= listed <= inhabitants:
        raise InvalidParameter(f"listed = {listed}: must be in [6, {inhabitants}], the number of inhabitants")
    if areas < 2:
        raise InvalidParameter(f"areas = {areas}: must be 2 or more")
    generator = rng.make(seed, "town")
    day, area = generator.integers(_DAYS, size=inhabitants), generator.integers(areas, size=inhabitants)
    sex = generator.choice(np.array(["F", "M"], dtype=object), inhabitants)
    register = np.zeros(inhabitants, bool)
    register[0] = True
    register[1 + generator.choice(inhabitants - 1, listed - 1, replace=False)] = True
    _stage_the_funnel(generator, day, sex, area, areas, register)
    people = _calendar().iloc[day].reset_index(drop=True)
    people.insert(0, "person_id", [f"P-{number:06d}" for number in range(inhabitants)])
    names = np.array([f"Z-{number + 1:02d}" for number in range(areas)], dtype=object)
    return people.assign(sex=sex, area=names[area], listed=register)
