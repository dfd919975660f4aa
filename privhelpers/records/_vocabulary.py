"""Conditions, drugs and tests of the synthetic hospitals, and how two hospitals differ.

The 12 conditions, 12 medications and 10 procedures come from the report. The common conditions are
followed by a tail of rare diseases with Zipf frequencies, because leakage grows with rarity.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from privhelpers import validate
from privhelpers.artifacts import parse_yaml

_CLINICAL = parse_yaml(Path(__file__).with_name("clinical.yml").read_text(encoding="utf-8"))
CONDITIONS, RARE_CONDITIONS, MEDICATIONS, PROCEDURES = (
    tuple(_CLINICAL[kind]) for kind in ("conditions", "rare_conditions", "medications", "procedures")
)
REPORT_TEMPLATES, NARRATIVE_TEMPLATES = (tuple(_CLINICAL["templates"][k]) for k in ("report", "narrative"))
ALL_CONDITIONS = CONDITIONS + RARE_CONDITIONS


@dataclass(frozen=True)
class Practice:
    """How one hospital treats one condition: drugs and procedures by preference, and its local phrase."""

    medications: tuple[str, str, str]
    procedures: tuple[str, str]
    protocol: str


@dataclass(frozen=True)
class Hospital:
    """The habits that private notes teach and public text does not contain.

    Attributes:
        name: "private", "auxiliary" or "referral".
        practice: one entry a condition.
        case_mix: the conditions, from the most frequent to the rarest.
        wards, staff, arrivals, closers: the words of its notes.
    """

    name: str
    practice: dict[str, Practice]
    case_mix: tuple[str, ...]
    wards: tuple[str, ...]
    staff: tuple[str, ...]
    arrivals: tuple[str, ...]
    closers: tuple[str, ...]


def zipf_probabilities(count: int, exponent: float = 1.1) -> np.ndarray:
    """Return probabilities proportional to rank ** -exponent, most frequent first, shape [count].

    >>> [round(float(p), 3) for p in zipf_probabilities(3, 1.0)]
    [0.545, 0.273, 0.182]
    """
    count = validate.positive_int(10_000_000, count=count)
    exponent = validate.positive(exponent=exponent)
    weights = np.arange(1, count + 1, dtype=float) ** -exponent
    return weights / weights.sum()


def _practices(phrases: list[str], shift: int) -> dict[str, Practice]:
    """Assign drugs and tests by fixed strides, others for each hospital; rare diseases share one clinic."""

    def practice(number: int) -> Practice:
        drugs = tuple(MEDICATIONS[(shift + 5 * number + step * (3 + shift % 4)) % 12] for step in range(3))
        tests = tuple(PROCEDURES[(shift + 3 * number + step * 4) % 10] for step in range(2))
        return Practice(drugs, tests, phrases[number])

    common = {condition: practice(number) for number, condition in enumerate(CONDITIONS)}
    return common | dict.fromkeys(RARE_CONDITIONS, practice(len(CONDITIONS)))


def _hospital(
    name: str, shift: int, phrases: list[str], first: tuple[str, ...] = (), **words: list[str]
) -> Hospital:
    case_mix = (*first, *(condition for condition in ALL_CONDITIONS if condition not in first))
    habits = {kind: tuple(entries) for kind, entries in words.items()}
    return Hospital(name, _practices(phrases, shift), case_mix, **habits)


HOSPITALS = {name: _hospital(name, **habits) for name, habits in _CLINICAL["hospitals"].items()}
