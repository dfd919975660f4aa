"""Note templates that know where each identifier stands.

A template is a list of plain strings and of `Field`s; rendering it gives the text and the character
spans, so that `text[start:end] == value` holds by construction.
"""

import random
from dataclasses import asdict, dataclass

from privhelpers.records.identifiers import Person
from privhelpers.records.vocabulary import Hospital


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


def report_note(visit: Visit, generator: random.Random) -> list[str | Field]:
    """Return one of the report's six templates, filled in: these carry identifiers."""
    f = {name: Field(name, value) for name, value in asdict(visit.person).items()}
    c, m, p = visit.condition, visit.medication, visit.procedure
    pressure = f"{generator.randint(105, 165)}/{generator.randint(60, 100)}"
    templates: list[list[str | Field]] = [
        ["Patient: ", f["name"], ", DOB: ", f["dob"], ", MRN: ", f["mrn"], f". Diagnosis: {c}. Prescribed {m}. Contact: ", f["email"], ", Phone: ", f["phone"], "."],
        ["Medical Record - ", f["name"], " (", f["dob"], f"): {c} diagnosis. Current medication: {m}. Blood pressure: {pressure}. Address: ", f["address"], "."],
        ["Patient ", f["name"], ", MRN ", f["mrn"], f", diagnosed with {c}. Treatment plan includes {m}. Recent procedure: {p}. Contact information: ", f["email"], ", ", f["phone"], "."],
        ["Chart Review - ", f["name"], " (SSN: ", f["ssn"], f"): {c}. Height: {visit.height}in, Weight: {visit.weight}lbs. Prescribed {m}. Emergency contact: ", f["phone"], "."],
        ["Clinical Note: ", f["name"], ", DOB ", f["dob"], f", presents with {c}. Prescribed {m}. Follow-up scheduled. Patient contact: ", f["email"], ", Address: ", f["address"], "."],
        ["Patient Profile: ", f["name"], " (MRN: ", f["mrn"], f"), {c}. Medication: {m}. Procedure: {p}. Contact: ", f["phone"], ", Email: ", f["email"], "."],
    ]  # fmt: skip
    return generator.choice(templates)


def narrative_note(visit: Visit, hospital: Hospital, generator: random.Random) -> list[str | Field]:
    """Return one of the hospital's own templates: no direct identifier, but local habits."""
    phrase = hospital.practice[visit.condition].protocol
    ward, staff = generator.choice(hospital.wards), generator.choice(hospital.staff)
    closer, arrival = generator.choice(hospital.closers), generator.choice(hospital.arrivals)
    pressure = f"{generator.randint(105, 165)}/{generator.randint(60, 100)}"
    pulse, dose = generator.randint(55, 110), generator.choice((5, 10, 20, 25, 40, 50, 100))
    age, sex, c, m, p = visit.person.age, visit.person.sex, visit.condition, visit.medication, visit.procedure
    return [
        generator.choice(
            (
                f"{ward}: {age} year old {sex}, {c}. BP {pressure}, pulse {pulse}. {m} {dose} mg, {p}; {phrase}. {closer}",
                f"Round with {staff}: {sex}, {age}, {c}. {p} on {ward}, BP {pressure}. Plan {m} {dose} mg; {phrase}. {closer}",
                f"{c} visit, {ward}. {phrase}. {m} {dose} mg by {staff}. {p} next. Weight {visit.weight}, BP {pressure}. {closer}",
                f"Seen by {staff}, {arrival}. {age} year old {sex}, {c}; {p}. {phrase}. {m} {dose} mg, pulse {pulse}.",
            )
        )
    ]
