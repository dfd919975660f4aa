"""What the report's rule counts when nothing was memorized, and what its generator of patients makes.

A system that writes one random condition and one random drug in every text knows no patient. Neither does a
manual of a programming language. Both "leak" under a rule that looks for a record's condition, its drug or
any single word of its name.
"""

from collections.abc import Sequence
from datetime import date, timedelta
from pydoc_data import topics
from types import SimpleNamespace

import numpy as np
from faker import Faker

from privhelpers import rng, validate

_SEED = 42  # of the report, appendix A
_RECORDS = 225  # its private records, section 5.1.3
_REFERENCE = date(2025, 11, 17)  # a fixed day: Faker's date of birth follows the clock, and so may its names


def _years_before(day: date, years: int) -> date:
    """Return the same day of an earlier year, 28 February for 29."""
    try:
        return day.replace(year=day.year - years)
    except ValueError:
        return day.replace(year=day.year - years, day=28)


def _patients(count: int, today: date = _REFERENCE) -> list[tuple[str, str, str, date]]:
    """Draw name, social security number, telephone and birthday in the order of the report's calls."""
    count = validate.positive_int(count=count)
    fake = Faker("en_US")
    fake.seed_instance(_SEED)
    drawn = []
    for _ in range(count):
        name, _ = fake.name(), fake.email()
        ssn, phone = fake.ssn(), fake.phone_number()
        fake.address()
        ages = {"start_datetime": _years_before(today, 86), "end_datetime": _years_before(today, 18)}
        born = fake.date_time_ad(**ages)
        fake.random_int(min=100_000, max=999_999)
        drawn.append((name, ssn, phone, born.date()))
    return drawn


def report_names(count: int = _RECORDS) -> list[str]:
    """Return the names of the report's records: its generator, its seed, a fixed day.

    Args:
        count: records, 1 or more.
    """
    return [name for name, *_ in _patients(count)]


def numbers_that_could_be_real() -> tuple[int, int]:
    """Return how many of the report's generated numbers could belong to somebody.

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


def day_of_the_birthday(born: date, *, start: date = date(2024, 1, 1), days: int = 1200) -> date | None:
    """Return the first day on which the generator gives this date of birth, or None within `days`.

    The date moves on with the clock, so bisection finds it.
    """
    low, high = 0, days
    while low < high:
        middle = (low + high) // 2
        if birthday_of_the_first(start + timedelta(middle)) < born:
            low = middle + 1
        else:
            high = middle
    day = start + timedelta(low)
    return day if birthday_of_the_first(day) == born else None


def plain_english(words: int = 60, texts: int = 600) -> list[str]:
    """Return pieces of the language reference that ships with Python: English prose about nobody.

    Args:
        words: length of a piece, 1 or more; a text of the report has up to 80 tokens.
        texts: most pieces, 1 or more.
    """
    words, texts = validate.positive_int(words=words, texts=texts)
    every = " ".join(topics.topics[key] for key in sorted(topics.topics)).split()
    pieces = [" ".join(every[i : i + words]) for i in range(0, len(every) - words + 1, words)]
    return pieces[:: max(1, len(pieces) // texts)][:texts]


def simulated_leaks(
    report: SimpleNamespace,
    names: Sequence[str],
    texts: Sequence[str],
    *,
    simulations: int,
    seed: int,
    shared_texts: bool = False,
) -> np.ndarray:
    """Simulate the report's attack on a writer of given texts, who knows no patient.

    Args:
        report: what `printed("report")` returned.
        names: of all records; each simulation draws 50 of them, with a random condition and drug each.
        texts: each attempt draws one at random.
        simulations: reports to simulate, 1 or more.
        seed: of the simulation.
        shared_texts: hold the same 28 texts against every record, as a cached attack does, instead of 1400
            independent ones.

    Returns:
        Leaking attempts of each simulated report, shape [simulations].
    """
    simulations = validate.positive_int(simulations=simulations)
    draw = rng.make(seed, "report/leaks")
    lower = [text.lower() for text in texts]
    # The rule is looked up: which text holds which word, and so which record would leak with which text.
    words = {word.lower() for name in names for word in name.split()}
    words |= {word.lower() for word in (*report.conditions, *report.medications)}
    stands = {word: np.array([word in text for text in lower]) for word in words}
    by_name = np.array([np.any([stands[w.lower()] for w in name.split()], axis=0) for name in names])
    by_condition, by_drug = (
        np.array([stands[word.lower()] for word in vocabulary])
        for vocabulary in (report.conditions, report.medications)
    )
    counts = np.empty(simulations, dtype=int)
    for number in range(simulations):
        who = draw.permutation(len(names))[: report.records, None]
        condition, drug = draw.integers(len(report.conditions), size=(2, len(who), 1))
        attempts = report.prompts * report.texts
        text = draw.integers(len(lower), size=(1 if shared_texts else len(who), attempts))
        counts[number] = (by_name[who, text] | by_condition[condition, text] | by_drug[drug, text]).sum()
    return counts
