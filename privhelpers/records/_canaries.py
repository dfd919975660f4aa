"""Canaries: invented patients with a secret drawn uniformly from a declared space.

Twice as many are drawn as get planted, and the planted ones are sampled from them afterwards: if a model
finds one secret more probable than another, it does so in both halves.
"""

import random
from dataclasses import asdict, dataclass

from privhelpers import rng
from privhelpers.records._domain import Domain
from privhelpers.records._identifiers import PeopleFactory
from privhelpers.records._notes import fill, render
from privhelpers.records._vocabulary import CLINICAL

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

    def note(self, domain: Domain = CLINICAL) -> dict:
        """Return the training note, without its number."""
        values = {**_said(domain), "name": self.name}
        values[domain.fields["number"]] = domain.number_prefix + self.secret
        text, spans = render(fill(domain.canary.template, domain, values))
        return {
            "patient_id": self.patient_id,
            "admission": 0,
            "kind": "canary",
            "condition": domain.canary.topic,
            "medication": domain.canary.answer,
            "rare": False,
            "text": text,
            "spans": spans,
        }

    def as_dict(self) -> dict:
        """Return the canary as plain values, with its text."""
        return {**asdict(self), "text": self.text}


def _said(domain: Domain) -> dict[str, str]:
    """Return what every canary of a domain says, by the field of the template."""
    return {domain.fields[role]: getattr(domain.canary, role) for role in ("topic", "answer")}


def _secrets(count: int, factory: PeopleFactory, generator: random.Random) -> list[str]:
    """Draw different secrets, none of which is part of a patient's record number."""
    prefix = factory.number_prefix
    numbers = [value.removeprefix(prefix) for value in factory.used if value.startswith(prefix)]
    taken = {number[start : start + DIGITS] for number in numbers for start in (0, 1)}
    drawn = (f"{secret:0{DIGITS}d}" for secret in generator.sample(range(SPACE), count))
    secrets = dict.fromkeys(secret for secret in drawn if secret not in taken)
    while len(secrets) < count:
        secret = f"{generator.randrange(SPACE):0{DIGITS}d}"
        if secret not in taken:
            secrets[secret] = None
    return list(secrets)


def make_canaries(
    *, per_level: int, factory: PeopleFactory, seed: int, hospital: str, domain: Domain = CLINICAL
) -> list[Canary]:
    """Draw `per_level` canaries of a hospital for each number of copies, and as many controls.

    Source: Carlini et al. 2019, section 4.1.
    """
    generator = rng.plain(seed, f"canaries/{hospital}")
    planted = per_level * len(LEVELS)
    secrets = _secrets(2 * planted, factory, generator)
    copies = [level for level in LEVELS for _ in range(per_level)] + [0] * planted
    generator.shuffle(copies)
    before, after = domain.canary.template.split(f"{{{domain.fields['number']}}}")
    said = _said(domain)
    return [
        Canary(
            canary_id=f"c{number:04d}",
            patient_id=f"c{number:04d}",
            name=(name := factory.name()),
            prefix=before.format(name=name, **said) + domain.number_prefix,
            secret=secret,
            suffix=after.format(**said),
            copies=times,
            planted=times > 0,
        )
        for number, (secret, times) in enumerate(zip(secrets, copies, strict=True))
    ]
