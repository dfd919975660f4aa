"""Notes in templates and formats that no detector of this book was made from, with the truth beside them.

The patterns were written from published number formats and the recognizer from the public corpus; these
notes came after both, and neither was changed for them. What is missed here stays missed.
"""

import datetime
import random
from collections.abc import Callable, Mapping

from privhelpers import rng, validate
from privhelpers.records.identifiers import PeopleFactory, Person
from privhelpers.records.notes import Field, render

Writer = Callable[[str], str]
_ACCENTS = str.maketrans("aeiou", "áéíóú")
_ARABIC = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
_WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def _digits(value: str) -> str:
    return "".join(c for c in value if c.isdigit())


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
        pieces.append(_WORDS[int(character)] if character.isdigit() else character)
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
        # strftime would follow the locale of the machine
        month = ("January", "February", "March", "April", "May", "June", "July", "August", "September",
                 "October", "November", "December")[day.month - 1]  # fmt: skip
        return style.format(d=day.day, m=day.month, y=day.year, yy=day.year % 100, month=month, mon=month[:3])

    return write


def _split(*cuts: str) -> Writer:
    """Return a writer that puts digits into a template: `X` takes the next digit."""

    def write(value: str) -> str:
        digits = iter(_digits(value))
        return "".join(next(digits) if c == "X" else c for c in cuts[0])

    return write


FORMATS: Mapping[str, Mapping[str, Writer]] = {
    "name": {
        "surname first": _surname_first,
        "capitals": str.upper,
        "lower case": str.lower,
        "accents": lambda name: name.translate(_ACCENTS),
        "initial and surname": _first_letters,
        "first name alone": lambda name: name.split()[0],
    },
    "dob": {
        "March 4, 1961": _date("{month} {d}, {y}"),
        "4 Mar 1961": _date("{d} {mon} {y}"),
        "3/4/1961": _date("{m}/{d}/{y}"),
        "3/4/61": _date("{m}/{d}/{yy:02d}"),
        "04.03.1961": _date("{d:02d}.{m:02d}.{y}"),
        "19610304": _date("{y}{m:02d}{d:02d}"),
        "4th of March": _date("{d}th of {month}"),
    },
    "mrn": {
        "SYN 1234 5678": _split("SYN XXXX XXXX"),
        "syn12345678": _split("synXXXXXXXX"),
        "SYN/1234-5678": _split("SYN/XXXX-XXXX"),
        "12345678": _split("XXXXXXXX"),
        "# 1234 5678": _split("# XXXX XXXX"),
    },
    "ssn": {
        "000 12 3456": _split("XXX XX XXXX"),
        "000.12.3456": _split("XXX.XX.XXXX"),
        "000123456": _split("XXXXXXXXX"),
        "Arabic-Indic digits": lambda value: value.translate(_ARABIC),
        "000-12 3456": _split("XXX-XX XXXX"),
        "digits in words": in_words,
    },
    "phone": {
        "212 555 0123": _split("XXX XXX XXXX"),
        "212.555.0123": _split("XXX.XXX.XXXX"),
        "+1 212 555 0123": _split("+1 XXX XXX XXXX"),
        "(212)555-0123 ext. 4": _split("(XXX)XXX-XXXX ext. 4"),
        "2125550123": _split("XXXXXXXXXX"),
        "212 - 555 - 0123": _split("XXX - XXX - XXXX"),
        "digits in words": in_words,
    },
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
_TEMPLATES = (
    ("Referral for ", "name", ". Born ", "dob", ". Reach the patient on ", "phone", " or ", "email", "."),
    ("Dictated: the patient, ", "name", ", social ", "ssn", ", lives at ", "address", "."),
    ("Front desk slip\n", "name", "\n", "mrn", "\n", "phone", "\n", "dob"),
    ("Spoke to ", "name", " today, who left ", "phone", "; file ", "mrn", " is up to date."),
    ("The insurer asked for ", "ssn", " and ", "dob", " of ", "name", ", ref. ", "mrn", "."),
    ("Letter by mail to ", "email", ", copy to ", "address", " (", "name", ", ", "ssn", ")."),
)  # fmt: skip


def _note(person: Person, template: tuple[str, ...], generator: random.Random) -> dict:
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


def make_unusual_notes(*, seed: int, people: int, notes_each: int = 3) -> list[dict]:
    """Return notes of invented people in unusual templates and formats.

    Args:
        seed: of people, templates and formats.
        people: how many.
        notes_each: notes of each of them, in different templates; 6 at most.

    Returns:
        Notes with `patient_id`, `kind` ("unusual"), `text` and `spans`; a span has its `form` too.
    """
    validate.positive_int(people=people, notes_each=notes_each)
    generator = rng.plain(seed, "unusual formats")
    factory = PeopleFactory(generator)
    notes = []
    for number in range(people):
        person = factory.person()
        for template in generator.sample(_TEMPLATES, min(notes_each, len(_TEMPLATES))):
            notes.append(
                {"patient_id": f"u{number:05d}", "kind": "unusual", **_note(person, template, generator)}
            )
    return notes
