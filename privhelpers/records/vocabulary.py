"""What the synthetic hospitals treat, give and do, and how two hospitals differ.

The 12 conditions, 12 medications and 10 procedures are those of the report. Behind the common conditions
stands a tail of rare diseases with Zipf frequencies, because leakage grows with rarity.
"""

from dataclasses import dataclass

import numpy as np

from privhelpers import validate

CONDITIONS = (
    "Hypertension",
    "Type 2 Diabetes",
    "High Cholesterol",
    "Depression",
    "Asthma",
    "GERD",
    "Anxiety Disorder",
    "Osteoarthritis",
    "Migraine",
    "Sleep Apnea",
    "COPD",
    "Arthritis",
)
RARE_CONDITIONS = (
    "Sarcoidosis",
    "Myasthenia Gravis",
    "Wilson Disease",
    "Addison Disease",
    "Gaucher Disease",
    "Narcolepsy",
    "Scleroderma",
    "Fabry Disease",
    "Hemophilia A",
    "Huntington Disease",
    "Behcet Disease",
    "Acromegaly",
    "Pompe Disease",
    "Marfan Syndrome",
    "Cystinosis",
    "Porphyria",
    "Amyloidosis",
    "Alkaptonuria",
    "Castleman Disease",
    "Erdheim-Chester Disease",
)
MEDICATIONS = (
    "Metformin",
    "Lisinopril",
    "Albuterol",
    "Sertraline",
    "Atorvastatin",
    "Omeprazole",
    "Levothyroxine",
    "Amlodipine",
    "Metoprolol",
    "Gabapentin",
    "Tramadol",
    "Ibuprofen",
)
PROCEDURES = (
    "Blood Test",
    "X-Ray",
    "MRI Scan",
    "CT Scan",
    "EKG",
    "Colonoscopy",
    "Endoscopy",
    "Ultrasound",
    "Biopsy",
    "Physical Exam",
)
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
        name: "private" or "auxiliary".
        practice: one entry a condition.
        wards, staff, arrivals, closers: the words of its notes.
    """

    name: str
    practice: dict[str, Practice]
    wards: tuple[str, ...]
    staff: tuple[str, ...]
    arrivals: tuple[str, ...]
    closers: tuple[str, ...]


def zipf_probabilities(count: int, exponent: float = 1.1) -> np.ndarray:
    """Return probabilities proportional to rank ** -exponent, most frequent first, shape [count].

    >>> [round(float(p), 3) for p in zipf_probabilities(3, 1.0)]
    [0.545, 0.273, 0.182]
    """
    validate.positive_int(count=count)
    validate.positive(exponent=exponent)
    weights = np.arange(1, count + 1, dtype=float) ** -exponent
    return weights / weights.sum()


def _practices(phrases: tuple[str, ...], shift: int) -> dict[str, Practice]:
    """Deal drugs and tests by fixed strides, others for another hospital; rare diseases share one clinic."""

    def practice(number: int) -> Practice:
        drugs = tuple(MEDICATIONS[(shift + 5 * number + step * (3 + shift % 4)) % 12] for step in range(3))
        tests = tuple(PROCEDURES[(shift + 3 * number + step * 4) % 10] for step in range(2))
        return Practice(drugs, tests, phrases[number])

    common = {condition: practice(number) for number, condition in enumerate(CONDITIONS)}
    return common | dict.fromkeys(RARE_CONDITIONS, practice(len(CONDITIONS)))


PRIVATE = Hospital(
    name="private",
    practice=_practices(
        (
            "cuff diary shown to the team on Monday",
            "foot check done and meter book copied",
            "fasting sample taken before the early bell",
            "calm line number put on the fridge card",
            "spacer lesson given beside the window",
            "supper moved early and pillow raised",
            "quiet room offered, tea instead of coffee",
            "stick fitted and stair rail ordered",
            "blinds down, water jug and ice pack given",
            "night mask washed and strap changed",
            "red bag packed with spare inhaler",
            "hand bath warm and ring finger measured",
            "folder sent to the monthly rare clinic",
        ),
        shift=1,
    ),
    wards=("Cedar Ward", "Harbor Ward", "Lantern Unit", "Orchard Bay", "Mill Room", "Short Stay"),
    staff=("Dr Vale", "Dr Thorn", "Dr Brook", "Dr Frost", "Dr Heath", "Dr Lane", "NP Ash", "NP Dale"),
    arrivals=(
        "came by the mill bus",
        "walked in at noon",
        "sent over from the harbor desk",
        "moved down from floor three",
    ),
    closers=(
        "Home with a green slip.",
        "Note mailed to own doctor.",
        "Kept one night to watch.",
        "Back in two weeks.",
        "Gone after the noon round.",
    ),
)
AUXILIARY = Hospital(
    name="auxiliary",
    practice=_practices(
        (
            "wrist log brought in each Friday",
            "sugar sheet signed at the front desk",
            "oat breakfast plan pinned to the chart",
            "walking group joined by the lake",
            "peak flow drawn on the blue grid",
            "bed block placed and mints stopped",
            "slow breath tape lent for a month",
            "heat pad loaned and chair made higher",
            "dark glasses kept near, screen time cut",
            "chin strap tried for seven nights",
            "fan by the bed and short walks timed",
            "soft ball squeezed ten times at noon",
            "letter asked from the far center",
        ),
        shift=6,
    ),
    wards=("North Wing", "Lake Unit", "Maple Ward", "Tower Bay", "Gate Room"),
    staff=("Dr Pike", "Dr Moor", "Dr Holt", "Dr Crane", "NP Wells", "NP Glen"),
    arrivals=("brought by the lake van", "came up the ramp alone", "passed on from the tower clinic"),
    closers=(
        "Home with a yellow form.",
        "Own doctor was called.",
        "Stays until the morning.",
        "Seen again in ten days.",
    ),
)
HOSPITALS = {"private": PRIVATE, "auxiliary": AUXILIARY}
