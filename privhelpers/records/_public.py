"""The public corpus: varied synthetic text in which no patient of any hospital appears.

Variety decides whether a model that starts here can learn private notes under noise: labels, order,
separators, care phrases, wards and staff are all drawn at random, and drugs are paired with conditions at
random, so that the hospitals' own habits are the one thing that this text does not teach.
"""

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from privhelpers import rng, validate
from privhelpers.artifacts import parse_yaml
from privhelpers.errors import InvalidParameter
from privhelpers.records._identifiers import SPACE_BITS, PeopleFactory, Person
from privhelpers.records._vocabulary import ALL_CONDITIONS, MEDICATIONS, PROCEDURES

_WORDS = parse_yaml(Path(__file__).with_name("public_words.yml").read_text(encoding="utf-8"))
_ILLNESSES, _DRUGS = (*ALL_CONDITIONS, *_WORDS["illnesses"]), (*MEDICATIONS, *_WORDS["drugs"])
PEOPLE_AT_A_TIME = 10_000  # then numbers may repeat: there are only 20,196 impossible SSNs
NOTE_SHARE, PROMPT_SHARE = 0.64, 0.08  # the rest is health education


class _Writer:
    """Draws pieces of public text from one random stream."""

    def __init__(self, seed: int) -> None:
        self.r = rng.plain(seed, "public corpus")
        self.people, self.drawn = PeopleFactory(self.r), 0
        self.last: Person | None = None  # whom the document is about

    def person(self) -> Person:
        """Return a new person; after many people a number may repeat."""
        if self.drawn and self.drawn % PEOPLE_AT_A_TIME == 0:
            self.people = PeopleFactory(self.r)
        self.drawn += 1
        self.last = self.people.person()
        return self.last

    def label(self, kind: str) -> str:
        """Return a random field label with a random separator, or nothing."""
        label = self.r.choice(_WORDS["labels"][kind])
        return label + self.r.choice((": ", " ", ": ", " - ")) if label else ""

    def noun_phrase(self) -> str:
        pick = self.r.choice
        shapes: tuple[Callable[[], str], ...] = (
            lambda: pick(_WORDS["nouns"]),
            lambda: f"{pick(_WORDS['adjectives'])} {pick(_WORDS['nouns'])}",
            lambda: f"{pick(_WORDS['nouns'])} {pick(_WORDS['nouns'])}",
            lambda: f"{pick(_WORDS['adjectives'])} {pick(_WORDS['adjectives'])} {pick(_WORDS['nouns'])}",
        )
        return pick(shapes)()

    def care_phrase(self) -> str:
        """Return a short phrase of care, such as a ward would use, in a random shape."""
        pick, thing = self.r.choice, self.noun_phrase
        shapes: tuple[Callable[[], str], ...] = (
            lambda: f"{thing()} {pick(_WORDS['verbs'])}",
            lambda: f"{thing()} {pick(_WORDS['verbs'])} {pick(_WORDS['prepositions'])} {thing()}",
            lambda: f"{pick(_WORDS['verbs'])} {pick(_WORDS['prepositions'])} {thing()}",
            lambda: f"{thing()} {pick(_WORDS['prepositions'])} {thing()}",
            lambda: f"{thing()} and {thing()} {pick(_WORDS['verbs'])}",
        )
        phrase = pick(shapes)()
        return f"{phrase}, {pick(shapes)()}" if self.r.random() < 0.3 else phrase

    def place(self) -> str:
        return f"{self.r.choice(_WORDS['places_first'])} {self.r.choice(_WORDS['places_second'])}"

    def staff(self) -> str:
        return f"{self.r.choice(_WORDS['titles'])} {self.r.choice(_WORDS['staff_names'])}"

    def pressure(self) -> str:
        return f"{self.r.randint(105, 165)}/{self.r.randint(60, 100)}"

    def dose(self) -> str:
        return f"{self.r.choice((5, 10, 20, 25, 40, 50, 100))} mg"

    def identity_fields(self, person: Person) -> list[str]:
        fields = ("name", "dob", "mrn", "ssn", "phone", "email", "address")
        chosen = self.r.sample(fields, self.r.randint(1, 4))
        if "name" not in chosen and self.r.random() < 0.6:
            chosen.insert(0, "name")
        return [self.label(name) + getattr(person, name) for name in chosen]

    def clinical_fields(self, person: Person) -> list[str]:
        pick, drug = self.r.choice, self.r.choice(_DRUGS)
        age = (
            f"{person.age} year old {person.sex}" if self.r.random() < 0.5 else f"{person.sex}, {person.age}"
        )
        return [
            self.label("condition") + pick(_ILLNESSES),
            self.label("drug") + drug + pick(("", " " + self.dose())),
            self.label("test") + pick(PROCEDURES),
            self.label("pressure") + self.pressure(),
            self.label("pulse") + str(self.r.randint(55, 110)),
            self.label("weight") + str(self.r.randint(105, 260)) + pick(("", "lbs", " lbs")),
            self.label("height") + f"{self.r.randint(58, 76)}in",
            age,
            pick(("Seen by ", "Round with ", "By ", "by ", "Signed ", "")) + self.staff(),
            pick(("On ", "At ", "on ", "")) + self.place(),
            self.care_phrase(),
            self.care_phrase().capitalize(),
        ]

    def note(self) -> str:
        """Return a note in a style of its own."""
        person = self.person()
        fields = self.r.sample(self.clinical_fields(person), self.r.randint(4, 9))
        if self.r.random() < 0.4:
            fields = self.identity_fields(person) + fields[: self.r.randint(2, 5)]
        if self.r.random() < 0.7:
            self.r.shuffle(fields)
        text = self.r.choice(_WORDS["openers"])
        for number, field in enumerate(fields):
            last = number == len(fields) - 1
            text += field + ("." if last else self.r.choice((". ", ", ", "; ", ". ", ": ")))
        return text

    def prompt_line(self) -> str:
        """Return a form-like line, so that a bare prompt has a public continuation."""
        person, illness = self.person(), self.r.choice(_ILLNESSES)
        pairs = [
            ("Patient name", "The patient's name is", person.name),
            ("Medical Record Number", "The medical record number is", person.mrn),
            ("Diagnosis", "The patient's diagnosis is", illness),
            ("Email", "The patient's email address is", person.email),
            ("SSN", "The patient's social security number is", person.ssn),
            ("Date of birth", "The patient's date of birth is", person.dob),
            ("Phone", "The patient's phone number is", person.phone),
            ("Address", "The home address is", person.address),
        ]
        chosen = self.r.sample(pairs, self.r.randint(1, 3))
        if self.r.random() < 0.5:
            return " ".join(f"{label}: {value}." for label, _, value in chosen)
        return " ".join(f"{sentence} {value}." for _, sentence, value in chosen)

    def education(self) -> str:
        """Return one to three sentences of health education and perhaps a care phrase."""
        parts = []
        for sentence in self.r.sample(_WORDS["sentences"] + _WORDS["facts"], self.r.randint(1, 3)):
            parts.append(
                sentence.format(
                    illness=self.r.choice(_ILLNESSES),
                    drug=self.r.choice(_DRUGS),
                    test=self.r.choice(PROCEDURES),
                    number=self.r.randint(2, 90),
                    many=self.r.randint(40, 2000),
                    dose=self.dose(),
                    pressure=self.pressure(),
                    place=self.place(),
                    staff=self.staff(),
                )
            )
        if self.r.random() < 0.5:
            parts.append(self.care_phrase().capitalize() + ".")
        return " ".join(parts)

    def document(self) -> str:
        self.last = None
        draw = self.r.random()
        if draw < NOTE_SHARE:
            return self.note()
        return self.prompt_line() if draw < NOTE_SHARE + PROMPT_SHARE else self.education()


def make_public_corpus(
    *, seed: int, documents: int, excluded_names: frozenset[str] = frozenset()
) -> list[str]:
    """Return different public documents that contain none of the excluded names.

    Args:
        seed: of the corpus.
        documents: how many, 20 or more so that a twentieth can be left out; 10 million at most.
        excluded_names: full names of patients and canaries.
    """
    documents = validate.positive_int(10_000_000, documents=documents)
    writer = _Writer(seed)
    corpus: dict[str, None] = {}  # in order, and each text once: a document held back must not be trained on
    while len(corpus) < documents:
        text = writer.document()
        words = text.replace(",", " ").split()
        triples = (" ".join(words[i : i + 3]).rstrip(".;:") for i in range(len(words) - 2))
        if excluded_names.isdisjoint(triples):  # a name is `First M. Last`
            corpus[text] = None
    return list(corpus)


def annotate_public(texts: Sequence[str], *, seed: int) -> list[dict]:
    """Return public documents with the places of their identifiers, by generating the corpus again.

    Args:
        texts: documents of the corpus of `seed`, in its order; some may be left out.
        seed: of the corpus.

    Returns:
        A `text` and its `spans` (identifier, start, end, value) for each document.

    Raises:
        InvalidParameter: the texts are not of the corpus of this seed.
    """
    writer, annotated = _Writer(seed), []
    for _ in range(2 * len(texts) + 1000):
        if len(annotated) == len(texts):
            break
        if (text := writer.document()) == texts[len(annotated)]:
            annotated.append({"text": text, "spans": _spans(text, writer.last)})
    if len(annotated) < len(texts):
        raise InvalidParameter(f"seed = {seed}: document {len(annotated)} is not of the corpus of this seed")
    return annotated


def _spans(text: str, person: Person | None) -> list[dict]:
    values = {name: getattr(person, name) for name in SPACE_BITS} if person else {}
    spans = [
        {"identifier": name, "start": match.start(), "end": match.end(), "value": value}
        for name, value in values.items()
        for match in re.finditer(re.escape(value), text)
    ]
    return sorted(spans, key=lambda span: span["start"])
