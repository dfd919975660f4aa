"""Note templates that know the place of each identifier.

A template is a list of plain strings and of `Field`s; rendering it gives the text and the character
spans, so that `text[start:end] == value` holds by construction.
"""

import random
from dataclasses import dataclass
from string import Formatter

from privhelpers.records._domain import Domain, Institution, drawn
from privhelpers.records._identifiers import Person


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
        topic, answer, action: of this admission.
        numbers: of the patient, such as the height, by the field of the templates.
    """

    person: Person
    topic: str
    answer: str
    action: str
    numbers: dict[str, str]


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


def fill(template: str, domain: Domain, values: dict[str, object]) -> list[str | Field]:
    """Return the pieces of a template such as `"Patient {name}: {condition}."`, its fields filled in."""
    parts: list[str | Field] = []
    for before, name, _, _ in Formatter().parse(template):
        parts.append(before)
        if identifier := domain.identifier(name):
            parts.append(Field(identifier, values[name]))
        elif name:
            parts.append(str(values[name]))
    return parts


def _values(visit: Visit, domain: Domain, generator: random.Random) -> dict[str, object]:
    fields, numbers = domain.fields, drawn(domain.numbers["text"], generator)
    of_roles = {fields[role]: getattr(visit, role) for role in ("topic", "answer", "action")}
    return {**vars(visit.person), fields["number"]: visit.person.mrn, **of_roles, **visit.numbers, **numbers}


def report_note(visit: Visit, domain: Domain, generator: random.Random) -> list[str | Field]:
    """Return one of the domain's report templates, filled in: these carry identifiers."""
    values = _values(visit, domain, generator)
    return fill(generator.choice(domain.report), domain, values)


def narrative_note(
    visit: Visit, domain: Domain, institution: Institution, generator: random.Random
) -> list[str | Field]:
    """Return one of the domain's other templates: no direct identifier, but local habits."""
    values = {kind: generator.choice(words) for kind, words in institution.words.items()}
    values |= _values(visit, domain, generator)
    values |= drawn(domain.numbers["narrative"], generator)
    values["phrase"] = institution.practice[visit.topic].phrase
    return fill(generator.choice(domain.narrative), domain, values)
