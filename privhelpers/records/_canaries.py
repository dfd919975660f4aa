"""Canaries: invented patients with a secret drawn uniformly from a declared space.

Twice as many are drawn as get planted, and the planted ones are sampled from them afterwards: if a model
finds one secret more probable than another, it does so in both halves.
"""

import random
from dataclasses import asdict, dataclass

from privhelpers import rng
from privhelpers.records._identifiers import PeopleFactory
from privhelpers.records._notes import Field, render

DIGITS = 7
SPACE = 10**DIGITS  # more than 2**20, so that a guess extracts nothing
LEVELS = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class Canary:
    """One canary.

    Attributes:
        canary_id, patient_id: names in the records; a canary is a patient of its own.
        name: of the invented patient.
        prefix, secret, suffix: the note is these three joined; the secret is seven digits.
        copies: number of copies among the training notes, 0 for a control.
        planted: False for a control.
    """

    canary_id: str
    patient_id: str
    name: str
    prefix: str
    secret: str
    suffix: str
    copies: int
    planted: bool

    @property
    def text(self) -> str:
        """The whole note."""
        return self.prefix + self.secret + self.suffix

    def note(self) -> dict:
        """Return the training note, without its number."""
        number = Field("mrn", f"SYN-{self.secret}")
        pieces = ["Patient Profile: ", Field("name", self.name), " (MRN: ", number, self.suffix]
        text, spans = render(pieces)
        return {
            "patient_id": self.patient_id,
            "admission": 0,
            "kind": "canary",
            "condition": "Hypertension",
            "medication": "Lisinopril",
            "rare": False,
            "text": text,
            "spans": spans,
        }

    def as_dict(self) -> dict:
        """Return the canary as plain values, with its text."""
        return {**asdict(self), "text": self.text}


def _secrets(count: int, factory: PeopleFactory, generator: random.Random) -> list[str]:
    """Draw different secrets, none of which is part of a patient's record number."""
    numbers = [value[4:] for value in factory.used if value.startswith("SYN-")]
    taken = {number[start : start + DIGITS] for number in numbers for start in (0, 1)}
    drawn = (f"{secret:0{DIGITS}d}" for secret in generator.sample(range(SPACE), count))
    secrets = dict.fromkeys(secret for secret in drawn if secret not in taken)
    while len(secrets) < count:
        secret = f"{generator.randrange(SPACE):0{DIGITS}d}"
        if secret not in taken:
            secrets[secret] = None
    return list(secrets)


def make_canaries(*, per_level: int, factory: PeopleFactory, seed: int, hospital: str) -> list[Canary]:
    """Draw `per_level` canaries of a hospital for each number of copies, and as many controls.

    Source: Carlini et al. 2019, section 4.1.
    """
    generator = rng.plain(seed, f"canaries/{hospital}")
    planted = per_level * len(LEVELS)
    secrets = _secrets(2 * planted, factory, generator)
    copies = [level for level in LEVELS for _ in range(per_level)] + [0] * planted
    generator.shuffle(copies)
    return [
        Canary(
            canary_id=f"c{number:04d}",
            patient_id=f"c{number:04d}",
            name=(name := factory.name()),
            prefix=f"Patient Profile: {name} (MRN: SYN-",
            secret=secret,
            suffix="), Hypertension. Medication: Lisinopril.",
            copies=times,
            planted=times > 0,
        )
        for number, (secret, times) in enumerate(zip(secrets, copies, strict=True))
    ]
