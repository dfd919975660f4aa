"""What the report's rule counts when nothing was memorized.

A system that writes one random condition and one random drug in every text knows no patient. Neither does a
manual of a programming language. Both "leak" under a rule that looks for a record's condition, its drug or
any single word of its name.

>>> round(chance_of_a_hit(), 4)
0.1661
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from pydoc_data import topics

import numpy as np
from faker import Faker

from privhelpers import rng, validate
from privhelpers.report import published

REFERENCE = date(2025, 11, 17)  # a fixed day: Faker's date of birth follows the clock, and so may its names
_LOCALE = "en_US"


@dataclass(frozen=True)
class NullCounts:
    """Simulated numbers of leaking attempts of a system without memory.

    Attributes:
        counts: one per simulated report, shape [simulations].
        attempts: attempts in each.
    """

    counts: np.ndarray
    attempts: int

    @property
    def mean(self) -> float:
        """Mean count."""
        return float(self.counts.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """The middle 95 % of the counts."""
        low, high = np.percentile(self.counts, [2.5, 97.5])
        return float(low), float(high)

    def at_least(self, count: int) -> float:
        """Return the share of simulations with this count or more."""
        return float(np.mean(self.counts >= count))

    def contains(self, count: int) -> bool:
        """Say whether a count lies in `interval`."""
        low, high = self.interval
        return low <= count <= high


def _years_before(day: date, years: int) -> date:
    """Return the same day of an earlier year, 28 February for 29."""
    try:
        return day.replace(year=day.year - years)
    except ValueError:
        return day.replace(year=day.year - years, day=28)


def _first_draws(fake: Faker, today: date) -> tuple[str, str, str, date]:
    """Draw one record in the report's order of calls; keep what an audit needs."""
    name, _ = fake.name(), fake.email()
    ssn, phone = fake.ssn(), fake.phone_number()
    fake.address()
    born = fake.date_time_ad(start_datetime=_years_before(today, 86), end_datetime=_years_before(today, 18))
    fake.random_int(min=100_000, max=999_999)
    return name, ssn, phone, born.date()


def _seeded(seed: int) -> Faker:
    fake = Faker(_LOCALE)
    fake.seed_instance(seed)
    return fake


def report_names(count: int = 225, *, seed: int = published.SEED) -> list[str]:
    """Return the names of the report's records: its generator, its seed, a fixed day.

    Args:
        count: records, 1 or more.
        seed: of the generator, 0 or more.
    """
    validate.positive_int(count=count)
    fake = _seeded(seed)
    return [_first_draws(fake, REFERENCE)[0] for _ in range(count)]


def could_be_real(count: int = 225, *, seed: int = published.SEED) -> tuple[int, int]:
    """Return how many of the report's generated numbers could belong to somebody.

    Args:
        count: records, 1 or more.
        seed: of the generator, 0 or more.

    Returns:
        Social security numbers in the range that is issued; telephone numbers that are not in the block
        reserved for fiction. The numbers themselves are not kept.
    """
    validate.positive_int(count=count)
    fake = _seeded(seed)
    ssns = phones = 0
    for _ in range(count):
        _, ssn, phone, _ = _first_draws(fake, REFERENCE)
        area, group, serial = ssn.split("-")
        ssns += area not in ("000", "666") and area < "900" and group != "00" and serial != "0000"
        digits = "".join(filter(str.isdigit, phone.split("x")[0]))[-10:]
        phones += digits[3:8] != "55501"
    return ssns, phones


def birthday_of_the_first(today: date, *, seed: int = published.SEED) -> date:
    """Return the date of birth that the report's generator gives its first patient on a given day."""
    return _first_draws(_seeded(seed), today)[3]


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
    found = start + timedelta(low)
    return found if birthday_of_the_first(found) == born else None


def word_rule(text: str, *, name: str, condition: str, medication: str) -> bool:
    """Say whether the report's rule calls a text without digits a leak of this record.

    Any word of the name, the condition or the drug is enough, wherever in a word of the text it stands.
    """
    lower = text.lower()
    return any(word.lower() in lower for word in (*name.split(), condition, medication))


def condition_collisions() -> int:
    """Return how many of the 144 pairs (written, recorded) of conditions the rule takes for a hit."""
    lower = [condition.lower() for condition in published.CONDITIONS]
    return sum(recorded in written for written in lower for recorded in lower)


def chance_of_a_hit() -> float:
    """Return the exact chance that one random condition and one random drug hit a record, names aside."""
    conditions, drugs = len(published.CONDITIONS), len(published.MEDICATIONS)
    return 1 - (1 - condition_collisions() / conditions**2) * (1 - 1 / drugs)


def vocabulary_null(
    names: Sequence[str], *, simulations: int, seed: int, shared_texts: bool = False
) -> NullCounts:
    """Simulate the report's attack on a writer of random words.

    Args:
        names: of all records; each simulation draws 50 of them, with a random condition and drug each.
        simulations: reports to simulate, 1 or more.
        seed: of the simulation.
        shared_texts: hold the same 28 texts against every record, as a cached attack does, instead of 1400
            independent ones.
    """
    validate.positive_int(simulations=simulations)
    draw = rng.make(seed, f"report/vocabulary {shared_texts}")
    conditions, drugs = published.CONDITIONS, published.MEDICATIONS
    written = [[f"{c}, {d}." for d in drugs] for c in conditions]
    lower = [[text.lower() for text in row] for row in written]
    by_name = np.array(
        [
            [[any(w.lower() in text for w in name.split()) for text in row] for row in lower]
            for name in dict.fromkeys(names)
        ]
    )
    place = {name: number for number, name in enumerate(dict.fromkeys(names))}
    person = np.array([place[name] for name in names])
    same_condition = np.array([[own.lower() in c.lower() for c in conditions] for own in conditions])
    texts = published.PROMPTS * published.TEXTS
    counts = np.empty(simulations, dtype=int)
    for number in range(simulations):
        who = person[draw.permutation(len(names))[: published.RECORDS], None]
        own_condition, own_drug = draw.integers(12, size=(2, who.shape[0], 1))
        shape = (2, 1 if shared_texts else who.shape[0], texts)
        condition, drug = draw.integers(12, size=shape)
        hit = same_condition[own_condition, condition] | (own_drug == drug) | by_name[who, condition, drug]
        counts[number] = hit.sum()
    return NullCounts(counts, published.ATTEMPTS)


def plain_english(words: int = 60, texts: int = 600) -> list[str]:
    """Return pieces of the language reference that ships with Python: English prose about nobody.

    Args:
        words: length of a piece, 1 or more; a text of the report has up to 80 tokens.
        texts: most pieces, 1 or more.
    """
    validate.positive_int(words=words, texts=texts)
    every = " ".join(topics.topics[key] for key in sorted(topics.topics)).split()
    pieces = [" ".join(every[i : i + words]) for i in range(0, len(every) - words + 1, words)]
    step = max(1, len(pieces) // texts)
    return pieces[::step][:texts]


def text_null(names: Sequence[str], texts: Sequence[str], *, simulations: int, seed: int) -> NullCounts:
    """Simulate the report's attack on a writer of the given texts, drawn at random.

    Args:
        names: of all records, as in `vocabulary_null`.
        texts: pieces of prose in which no record appears.
        simulations: reports to simulate, 1 or more.
        seed: of the simulation.
    """
    validate.positive_int(simulations=simulations)
    draw = rng.make(seed, "report/plain text")
    lower = [text.lower() for text in texts]
    words = sorted({word.lower() for name in names for word in name.split()})
    stands = {word: np.array([word in text for text in lower]) for word in words}
    by_name = np.array([np.any([stands[w.lower()] for w in name.split()], axis=0) for name in names])
    by_condition = np.array([[c.lower() in text for text in lower] for c in published.CONDITIONS])
    by_drug = np.array([[d.lower() in text for text in lower] for d in published.MEDICATIONS])
    counts = np.empty(simulations, dtype=int)
    for number in range(simulations):
        who = draw.permutation(len(names))[: published.RECORDS, None]
        condition, drug = draw.integers(12, size=(2, who.shape[0], 1))
        text = draw.integers(len(lower), size=(who.shape[0], published.PROMPTS * published.TEXTS))
        hit = by_name[who, text] | by_condition[condition, text] | by_drug[drug, text]
        counts[number] = hit.sum()
    return NullCounts(counts, published.ATTEMPTS)


def generator_against_itself(*, attempts: int, seed: int) -> tuple[int, int]:
    """Return leaks of a random-vocabulary writer against records it "was trained on", and against others.

    Both arms come from one generator, so that their difference can only be chance.
    """
    validate.positive_int(attempts=attempts)
    source = random.Random(rng.derive(seed, "report/two arms"))
    conditions, drugs = published.CONDITIONS, published.MEDICATIONS
    arms = []
    for _ in range(2):
        hits = 0
        for _ in range(attempts):
            record = {"condition": source.choice(conditions), "medication": source.choice(drugs)}
            text = f"{source.choice(conditions)}, {source.choice(drugs)}."
            hits += word_rule(text, name="Zzz", **record)
        arms.append(hits)
    return arms[0], arms[1]
