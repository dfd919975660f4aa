"""Civil money penalties of HIPAA: four tiers, each with its year and its source, because they change.

45 CFR 160.404 sets the tiers, and the table in 45 CFR 102.3 adjusts the amounts for inflation. All are US
dollars; a calendar-year cap applies to violations of one identical provision. This is data for a lesson
and no legal advice: look up the amounts of the day.

>>> SCHEDULES[1].year, SCHEDULES[1].tiers[0].minimum, SCHEDULES[1].tiers[0].cap
(2024, 141, 2134831)
"""

from dataclasses import dataclass

import pandas as pd

CULPABILITY = (
    "did not know",  # and could not have known with reasonable diligence
    "reasonable cause",  # and no willful neglect
    "willful neglect, corrected",  # within 30 days
    "willful neglect, not corrected",
)


@dataclass(frozen=True)
class PenaltyTier:
    """Amounts of one tier, in US dollars.

    Attributes:
        culpability: what was known, and what was done about it.
        minimum, maximum: for one violation.
        cap: for all violations of an identical provision in a calendar year.
    """

    culpability: str
    minimum: int
    maximum: int
    cap: int


@dataclass(frozen=True)
class PenaltySchedule:
    """The four tiers in force from some day on.

    Attributes:
        year: of the publication.
        from_day: first day on which penalties were assessed by it.
        source: section with the amounts.
        published: where they were published: volume and first page of the Federal Register.
        tiers: from the least to the most culpable.
    """

    year: int
    from_day: str
    source: str
    published: str
    tiers: tuple[PenaltyTier, ...]


def _tiers(minimum: tuple[int, int, int, int], maximum: int, cap: int) -> tuple[PenaltyTier, ...]:
    most = (maximum, maximum, maximum, cap)
    rows = zip(CULPABILITY, minimum, most, strict=True)
    return tuple(PenaltyTier(words, low, high, cap) for words, low, high in rows)


SCHEDULES = (
    PenaltySchedule(
        2013,
        "2013-03-26",
        "45 CFR 160.404(b)(2)",
        "78 FR 5566",
        _tiers((100, 1_000, 10_000, 50_000), 50_000, 1_500_000),
    ),
    PenaltySchedule(
        2024,
        "2024-08-08",
        "45 CFR 102.3",
        "89 FR 64815",
        _tiers((141, 1_424, 14_232, 71_162), 71_162, 2_134_831),
    ),
    PenaltySchedule(
        2026,
        "2026-01-28",
        "45 CFR 102.3",
        "91 FR 3665",
        _tiers((145, 1_461, 14_602, 73_011), 73_011, 2_190_294),
    ),
)
# Yearly caps by tier that the department said in 2019 it would apply, before adjustment (84 FR 18151).
ENFORCEMENT_DISCRETION_2019 = (25_000, 100_000, 250_000, 1_500_000)


def penalty_table() -> pd.DataFrame:
    """Return minimum, maximum and yearly cap of every tier and schedule, in US dollars, with sources."""
    rows = {
        (f"{one.year}, {one.published}", tier.culpability): {
            "minimum": f"{tier.minimum:,}",
            "maximum": f"{tier.maximum:,}",
            "yearly cap": f"{tier.cap:,}",
        }
        for one in SCHEDULES
        for tier in one.tiers
    }
    return pd.DataFrame.from_dict(rows, orient="index").rename_axis(["published", "culpability"])
