"""Note templates that know the place of each identifier.

A template is a list of plain strings and of `Field`s; rendering it gives the text and the character
spans, so that `text[start:end] == value` holds by construction.
"""

import random
from dataclasses import dataclass
from string import Formatter

from privhelpers.records._identifiers import SPACE_BITS, Person
from privhelpers.records._vocabulary import NARRATIVE_TEMPLATES, REPORT_TEMPLATES, Hospital


@dataclass(frozen=True)
class Field:
    """A piece of a note that is an identifier."""

    identifier: str
    value: str


@dataclass(frozen=True)
class Visit:
    """What a note is about.

    Attributes:
        person: the patient.
        condition, medication, procedure: of this admission.
        height, weight: in inches and pounds.
    """

    person: Person
    condition: str
    medication: str
    procedure: str
    height: int
    weight: int


def render(parts: list[str | Field]) -> tuple[str, list[dict]]:
    """Return the text and its spans: identifier, start, end (exclusive), value."""
    text, spans = "", []
    for part in parts:
        value = part.value if isinstance(part, Field) else part
        if isinstance(part, Field):
            spans.append(
                {
                    "identifier": part.identifier,
                    "start": len(text),
                    "end": len(text) + len(value),
                    "value": value,
                }
            )
        text += value
    return text, spans


def fill(template: str, person: Person, words: dict[str, object]) -> list[str | Field]:
    """Return the pieces of a template such as `"Patient {name}: {condition}."`, its fields filled in."""
    parts: list[str | Field] = []
    for before, name, _, _ in Formatter().parse(template):
        parts.append(before)
        if name in SPACE_BITS:
            parts.append(Field(name, getattr(person, name)))
        elif name:
            parts.append(str(words[name]))
    return parts


def _clinical(visit: Visit, generator: random.Random) -> dict[str, object]:
    pressure = f"{generator.randint(105, 165)}/{generator.randint(60, 100)}"
    return {**vars(visit), "pressure": pressure, "age": visit.person.age, "sex": visit.person.sex}


def report_note(visit: Visit, generator: random.Random) -> list[str | Field]:
    """Return one of the report's six templates, filled in: these carry identifiers."""
    words = _clinical(visit, generator)
    return fill(generator.choice(REPORT_TEMPLATES), visit.person, words)


def narrative_note(visit: Visit, hospital: Hospital, generator: random.Random) -> list[str | Field]:
    """Return one of the hospital's own templates: no direct identifier, but local habits."""
    kinds = {"ward": "wards", "staff": "staff", "closer": "closers", "arrival": "arrivals"}
    words = {kind: generator.choice(getattr(hospital, attribute)) for kind, attribute in kinds.items()}
    words |= _clinical(visit, generator)
    words |= {"pulse": generator.randint(55, 110), "dose": generator.choice((5, 10, 20, 25, 40, 50, 100))}
    words["phrase"] = hospital.practice[visit.condition].protocol
    return fill(generator.choice(NARRATIVE_TEMPLATES), visit.person, words)
