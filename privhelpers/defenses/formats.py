"""Notes in templates and formats that no detector of this book was made from, with the truth.

The patterns were written from published number formats and the recognizer from the public corpus; these
notes came after both, and neither was changed for them: what is missed here stays missed. Dates are the
exception: their rules were later widened to all that HIPAA's safe harbor names, these forms among them.
"""

import datetime
import random
from collections.abc import Callable, Mapping
from pathlib import Path

from privhelpers import rng, validate
from privhelpers.artifacts import parse_yaml
from privhelpers.defenses.folding import DIGITS
from privhelpers.records import Field, PeopleFactory, Person, render

Writer = Callable[[str], str]
_TABLE = parse_yaml(Path(__file__).with_suffix(".yml").read_text(encoding="utf-8"))
_ACCENTS = str.maketrans("aeiou", "áéíóú")
_ARABIC = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")


def in_words(value: str) -> str:
    """Return a text with every digit as a word, apart from letters and from each other by a space.

    >>> in_words("area 212, b4")
    'area two one two, b four'
    """
    pieces: list[str] = []
    for place, character in enumerate(value):
        before = value[place - 1] if place else " "
        if before.isalnum() and (character.isdigit() or (before.isdigit() and character.isalpha())):
            pieces.append(" ")
        pieces.append(DIGITS[int(character)] if character.isdigit() else character)
    return "".join(pieces)


def _surname_first(name: str) -> str:
    first, initial, last = name.split()
    return f"{last}, {first} {initial}"


def _first_letters(name: str) -> str:
    first, _, last = name.split()
    return f"{first[0]}. {last}"


def _date(style: str) -> Writer:
    def write(iso: str) -> str:
        day = datetime.date.fromisoformat(iso)
        month = _TABLE["months"][day.month - 1]  # strftime would follow the locale of the machine
        return style.format(d=day.day, m=day.month, y=day.year, yy=day.year % 100, month=month, mon=month[:3])

    return write


def _digit_forms(identifier: str) -> dict[str, Writer]:
    """Return writers that put the digits of a value into a template: `X` takes the next digit."""

    def writer(template: str) -> Writer:
        def write(value: str) -> str:
            digits = (c for c in value if c.isdigit())
            return "".join(next(digits) if c == "X" else c for c in template)

        return write

    return {form: writer(template) for form, template in _TABLE["digits"][identifier].items()}


FORMATS: Mapping[str, Mapping[str, Writer]] = {
    "name": {
        "surname first": _surname_first,
        "capitals": str.upper,
        "lower case": str.lower,
        "accents": lambda name: name.translate(_ACCENTS),
        "initial and surname": _first_letters,
        "first name alone": lambda name: name.split()[0],
    },
    "dob": {form: _date(style) for form, style in _TABLE["dates"].items()},
    "mrn": _digit_forms("mrn"),
    "ssn": _digit_forms("ssn")
    | {"Arabic-Indic digits": lambda value: value.translate(_ARABIC), "digits in words": in_words},
    "phone": _digit_forms("phone") | {"digits in words": in_words},
    "email": {
        "capitals": str.upper,
        "accents": lambda mail: mail.split("@")[0].translate(_ACCENTS) + "@" + mail.split("@")[1],
        "[at]": lambda mail: mail.replace("@", " [at] "),
        "(at) and (dot)": lambda mail: mail.replace("@", "(at)").replace(".org", "(dot)org"),
        "the word at": lambda mail: mail.replace("@", " at ").replace(".", " dot "),
    },
    "address": {
        "town first": lambda value: ", ".join(reversed(value.split(", ")[:2])),
        "short street": lambda value: value.replace(" Street", " St.").replace(" Road", " Rd."),
        "capitals": str.upper,
        "no house number": lambda value: value.split(" ", 1)[1].split(", ZIP")[0],
        "lines": lambda value: value.replace(", ", "\n"),
    },
}


def _note(person: Person, template: list[str], generator: random.Random) -> dict:
    parts: list[str | Field] = []
    forms = {}
    for place, part in enumerate(template):
        if place % 2 == 0:
            parts.append(part)
            continue
        form = generator.choice(list(FORMATS[part]))
        forms[part] = form
        parts.append(Field(part, FORMATS[part][form](getattr(person, part))))
    text, spans = render(parts)
    return {"text": text, "spans": [{**span, "form": forms[span["identifier"]]} for span in spans]}


def make_unusual_notes(*, seed: int, people: int) -> list[dict]:
    """Return notes of invented people in unusual templates and formats.

    Args:
        seed: of people, templates and formats.
        people: how many, with three notes each, in different templates.

    Returns:
        Notes with `patient_id`, `kind` ("unusual"), `text` and `spans`; a span has its `form` too.
    """
    people = validate.positive_int(people=people)
    generator = rng.plain(seed, "unusual formats")
    factory = PeopleFactory(generator)
    notes = []
    for number in range(people):
        person = factory.person()
        for template in generator.sample(_TABLE["templates"], 3):
            notes.append(
                {"patient_id": f"u{number:05d}", "kind": "unusual", **_note(person, template, generator)}
            )
    return notes
