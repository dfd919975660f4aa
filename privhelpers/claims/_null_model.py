"""The count of the report's rule if nothing was memorized, and the output of its generator of patients.

A system that writes one random condition and one random drug in every text knows no patient. Neither does a
manual of a programming language. Both "leak" under a rule that looks for a record's condition, its drug or
any single word of its name.
"""

from bisect import bisect_left
from collections.abc import Sequence
from datetime import date, timedelta
from pydoc_data import topics
from types import SimpleNamespace

import numpy as np
import pandas as pd
from faker import Faker

from privhelpers import rng

_SEED = 42  # of the report, appendix A
_RECORDS = 225  # its private records, section 5.1.3
_REFERENCE = date(2025, 11, 17)  # a fixed day: Faker's date of birth follows the clock, and so may its names


def _patients(count: int, today: date = _REFERENCE) -> list[tuple[str, str, str, date]]:
    """Draw name, social security number, telephone and birthday in the order of the report's calls."""
    ages = {
        f"{end}_datetime": (pd.Timestamp(today) - pd.DateOffset(years=years)).date()
        for end, years in (("start", 86), ("end", 18))
    }
    fake = Faker("en_US")
    fake.seed_instance(_SEED)
    drawn = []
    for _ in range(count):
        name, _ = fake.name(), fake.email()
        ssn, phone = fake.ssn(), fake.phone_number()
        fake.address()
        born = fake.date_time_ad(**ages)
        fake.random_int(min=100_000, max=999_999)
        drawn.append((name, ssn, phone, born.date()))
    return drawn


def report_names() -> list[str]:
    """Return the names of the report's records: its generator, its seed, a fixed day."""
    return [name for name, *_ in _patients(_RECORDS)]


def numbers_that_could_be_real() -> tuple[int, int]:
    """Return how many of the report's generated numbers could belong to a person.

    Returns:
        Social security numbers in the range that is issued; telephone numbers that are not in the block
        reserved for fiction. The numbers themselves are not kept.
    """
    ssns = phones = 0
    for _, ssn, phone, _ in _patients(_RECORDS):
        area, group, serial = ssn.split("-")
        ssns += area not in ("000", "666") and area < "900" and group != "00" and serial != "0000"
        digits = "".join(filter(str.isdigit, phone.split("x")[0]))[-10:]
        phones += digits[3:8] != "55501"
    return ssns, phones


def birthday_of_the_first(today: date) -> date:
    """Return the date of birth that the report's generator gives its first patient on a given day."""
    return _patients(1, today)[0][3]


def day_of_the_birthday(born: date) -> date | None:
    """Return the first day since 2024 on which the generator gives this date of birth, or None.

    The date moves on with the clock, so bisection finds it.
    """
    days = [date(2024, 1, 1) + timedelta(n) for n in range(1200)]
    day = days[min(bisect_left(days, born, key=birthday_of_the_first), len(days) - 1)]
    return day if birthday_of_the_first(day) == born else None


def plain_english() -> list[str]:
    """Return 600 pieces of the language reference that ships with Python: prose about no patient.

    A piece has 60 words; a text of the report has up to 80 tokens.
    """
    every = " ".join(topics.topics[key] for key in sorted(topics.topics)).split()
    pieces = [" ".join(every[i : i + 60]) for i in range(0, len(every) - 59, 60)]
    return pieces[:: max(1, len(pieces) // 600)][:600]


def simulated_leaks(
    report: SimpleNamespace,
    names: Sequence[str],
    texts: Sequence[str],
    *,
    simulations: int,
    seed: int,
) -> np.ndarray:
    """Simulate the report's attack on a writer of given texts, who knows no patient.

    Args:
        report: what `printed("report")` returned.
        names: of all records; each simulation draws 50 of them, with a random condition and drug each.
        texts: each attempt draws one at random.
        simulations: reports to simulate, 1 or more.
        seed: of the simulation.

    Returns:
        Leaking attempts of each simulated report, shape [simulations].
    """
    draw = rng.make(seed, "report/leaks")
    lower = [text.lower() for text in texts]
    # The rule is looked up: which text contains which word, and so which record would leak with which text.
    words = {word.lower() for name in names for word in name.split()}
    words |= {word.lower() for word in (*report.conditions, *report.medications)}
    present = {word: np.array([word in text for text in lower]) for word in words}
    by_name = np.array([np.any([present[w.lower()] for w in name.split()], axis=0) for name in names])
    by_condition, by_drug = (
        np.array([present[word.lower()] for word in vocabulary])
        for vocabulary in (report.conditions, report.medications)
    )
    counts = np.empty(simulations, dtype=int)
    for number in range(simulations):
        who = draw.permutation(len(names))[: report.records, None]
        condition, drug = draw.integers(len(report.conditions), size=(2, len(who), 1))
        attempts = report.prompts * report.texts
        text = draw.integers(len(lower), size=(len(who), attempts))
        counts[number] = (by_name[who, text] | by_condition[condition, text] | by_drug[drug, text]).sum()
    return counts
