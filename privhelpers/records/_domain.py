"""A domain: everything of the records that is about a subject and not about privacy, read from one file.

The hospital's file is `clinical.yml`. Another file of the same form gives letters to a bank, or records of
students, without a line of code.
"""

import random
import re
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from string import Formatter

from privhelpers.artifacts import parse_yaml
from privhelpers.errors import InvalidParameter, MissingArtifact
from privhelpers.records._identifiers import NEVER_ISSUED, SPACE_BITS, refuse_unsafe
from privhelpers.text import blank
from privhelpers.validate import shown

ROLES = ("topic", "answer", "action", "number")
NUMBER = "mrn"  # what every helper calls a person's number, whatever the templates of a domain call it
PREFERRED_ANSWERS, PREFERRED_ACTIONS = 3, 2
_PERSON = ("age", "sex")  # of a person, and no identifier here
_RANGE = re.compile(r"(\d+)-(\d+)")


@dataclass(frozen=True)
class Practice:
    """How one institution treats one topic: answers and actions by preference, and its local phrase."""

    answers: tuple[str, ...]
    actions: tuple[str, ...]
    phrase: str


@dataclass(frozen=True)
class Institution:
    """The habits that private texts teach and public text does not contain.

    Attributes:
        name: as in the file of the domain.
        practice: one entry a topic.
        case_mix: the topics, from the most frequent to the rarest.
        words: further words of its texts, by the field of the templates.
    """

    name: str
    practice: dict[str, Practice]
    case_mix: tuple[str, ...]
    words: dict[str, tuple[str, ...]]


@dataclass(frozen=True)
class CanaryText:
    """What the text of a canary says besides its secret."""

    template: str
    topic: str
    answer: str


@dataclass(frozen=True)
class Domain:
    """The words of one domain; see `clinical.yml`.

    A note keeps the names of the hospital for its keys in every domain: `patient_id` is whose it is,
    `condition` its topic, `medication` its answer, and `mrn` the number of the person.

    Attributes:
        fields: what templates call the topic of a text, its answer, its action, and a person's number.
        number_prefix: begins each person's number; one that no authority issues.
        topics, rare_topics: what texts are about, the most frequent first.
        answers: what a text prescribes or offers; a model is useful if it predicts this.
        actions: what is done besides.
        numbers: ranges such as "58-76", or lists to choose from, by field; drawn once a "person", for each
            "text", and for each "narrative".
        institutions: those that have such texts; the private one is called "private".
        canary: the text of the canaries.
        prompts: with which an attacker asks.
        report, narrative: templates with and without identifiers.
    """

    fields: dict[str, str]
    number_prefix: str
    topics: tuple[str, ...]
    rare_topics: tuple[str, ...]
    answers: tuple[str, ...]
    actions: tuple[str, ...]
    numbers: dict[str, dict[str, str | list]]
    institutions: dict[str, Institution]
    canary: CanaryText
    prompts: tuple[str, ...]
    report: tuple[str, ...]
    narrative: tuple[str, ...]

    @property
    def all_topics(self) -> tuple[str, ...]:
        """The topics, common ones first."""
        return self.topics + self.rare_topics

    def identifier(self, name: str | None) -> str | None:
        """Return the identifier that a field of a template is, as `SPACE_BITS` names it, or None."""
        if name == self.fields["number"]:
            return NUMBER
        return name if name in SPACE_BITS and name != NUMBER else None


def drawn(numbers: dict[str, str | list], generator: random.Random) -> dict[str, str]:
    """Return a value of each field: the numbers of its ranges are drawn, or one is chosen from its list."""

    def of_range(found: re.Match) -> str:
        return str(generator.randint(int(found[1]), int(found[2])))

    return {
        field: _RANGE.sub(of_range, given) if isinstance(given, str) else str(generator.choice(given))
        for field, given in numbers.items()
    }


def read_domain(file: Path) -> Domain:
    """Read the domain in a YAML file and check that it can be used.

    Raises:
        MissingArtifact: there is no such file.
        InvalidParameter: it is not YAML, or a key of it is missing, unknown, or of no use; the message names
            the key.
        UnsafeIdentifier: it contains a number or an address that could be someone's.
    """
    if not file.is_file():
        raise MissingArtifact(f"{file.name}: there is no such file")
    try:
        given = parse_yaml(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InvalidParameter(f"{file.name}: {error}") from None
    return as_domain(given, file.name)


def as_domain(given: object, where: str) -> Domain:
    """Return the domain that parsed YAML describes; see `read_domain`.

    Args:
        given: what the YAML gives.
        where: name of the file, for the message.
    """
    needed = ("fields", "number_prefix", "topics", "rare_topics", "answers", "actions", "numbers")
    needed += ("institutions", "canary", "prompts", "templates")
    given = _mapping(where, given, needed)
    for place, text in _texts(where, given):
        refuse_unsafe(text, place)
    lists = {key: _words(f"{where}: {key}", given[key]) for key in ("topics", "rare_topics")}
    for key, least in (("answers", PREFERRED_ANSWERS), ("actions", PREFERRED_ACTIONS)):
        lists[key] = _words(f"{where}: {key}", given[key], least)
    fields = _mapping(f"{where}: fields", given["fields"], ROLES)
    _words(f"{where}: fields", list(fields.values()))
    prefix = given["number_prefix"]
    if not isinstance(prefix, str) or prefix not in NEVER_ISSUED:
        known = ", ".join(NEVER_ISSUED)
        raise InvalidParameter(
            f"{where}: number_prefix = {shown(prefix)}: must be one of {known}, which no authority issues"
        )
    numbers = _numbers(f"{where}: numbers", given["numbers"])
    institutions = _institutions(f"{where}: institutions", given["institutions"], lists)
    canary = _mapping(f"{where}: canary", given["canary"], ("template", "topic", "answer"))
    _words(f"{where}: canary", list(canary.values()))
    templates = _mapping(f"{where}: templates", given["templates"], ("report", "narrative"))
    domain = Domain(
        fields,
        prefix,
        **lists,
        numbers=numbers,
        institutions=institutions,
        canary=CanaryText(**canary),
        prompts=_words(f"{where}: prompts", given["prompts"]),
        report=_words(f"{where}: templates.report", templates["report"]),
        narrative=_words(f"{where}: templates.narrative", templates["narrative"]),
    )
    if twice := set(domain.topics) & set(domain.rare_topics):
        raise InvalidParameter(f"{where}: rare_topics: {shown(min(twice))} is a common topic, too")
    _check_templates(where, domain)
    _check_answers(where, domain)
    return domain


def _texts(where: str, value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield where, value
    elif isinstance(value, dict | list):
        for key, part in value.items() if isinstance(value, dict) else enumerate(value, 1):
            yield from _texts(f"{where}: {key}", part)


def _mapping(where: str, value: object, needed: Collection[str], optional: Collection[str] = ()) -> dict:
    if not isinstance(value, dict):
        raise InvalidParameter(f"{where} = {shown(value)}: must have the keys {', '.join(needed)}")
    for key in value:
        if key not in (*needed, *optional):
            raise InvalidParameter(f"{where}: {shown(key)}: must be one of {', '.join((*needed, *optional))}")
    for key in needed:
        if key not in value:
            raise InvalidParameter(f"{where}: {key}: is missing")
    return value


def _words(where: str, value: object, least: int = 1) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) < least:
        raise InvalidParameter(f"{where} = {shown(value)}: must be a list of {least} or more texts")
    for number, word in enumerate(value, 1):
        if not isinstance(word, str) or blank(word):
            raise InvalidParameter(f"{where}, entry {number} = {shown(word)}: must be a text")
        if word in value[: number - 1]:
            raise InvalidParameter(f"{where}, entry {number} = {shown(word)}: is given twice")
    return tuple(value)


def _numbers(where: str, value: object) -> dict:
    groups = _mapping(where, value, ("person", "text", "narrative"))
    for group, fields in groups.items():
        if not isinstance(fields, dict):
            raise InvalidParameter(f"{where}: {group} = {shown(fields)}: must name fields of the templates")
        for field, drawn in fields.items():
            ranges = _RANGE.findall(drawn) if isinstance(drawn, str) else []
            if not (isinstance(drawn, list) and drawn) and not ranges:
                raise InvalidParameter(
                    f"{where}: {group}: {field} = {shown(drawn)}: must be a range such as 58-76, or a list"
                )
            if any(int(low) > int(high) for low, high in ranges):
                raise InvalidParameter(f"{where}: {group}: {field} = {shown(drawn)}: its range is empty")
    return groups


def _institutions(where: str, value: object, lists: dict[str, tuple[str, ...]]) -> dict[str, Institution]:
    if not isinstance(value, dict) or "private" not in value:
        raise InvalidParameter(f"{where} = {shown(value)}: must name institutions, and one is called private")
    made = {name: _institution(f"{where}: {name}", name, habits, lists) for name, habits in value.items()}
    for name, one in made.items():
        if list(one.words) != list(made["private"].words):
            known = ", ".join(made["private"].words)
            raise InvalidParameter(
                f"{where}: {name}: words: must have the keys {known} in this order, as the private one"
            )
    return made


def _institution(where: str, name: str, habits: object, lists: dict[str, tuple[str, ...]]) -> Institution:
    habits = _mapping(where, habits, ("shift", "phrases", "words"), ("first",))
    shift, phrases = habits["shift"], _words(f"{where}: phrases", habits["phrases"])
    if type(shift) is not int or shift < 0:
        raise InvalidParameter(f"{where}: shift = {shown(shift)}: must be a whole number of 0 or more")
    topics, rare, answers, actions = lists.values()
    if len(phrases) != len(topics) + 1:
        raise InvalidParameter(
            f"{where}: phrases: has {len(phrases)} entries, but needs {len(topics) + 1}: one for each topic, "
            "and one for the rare topics together"
        )

    def practice(number: int) -> Practice:
        """By fixed strides, others for each institution; rare topics share one practice."""
        start, stride = shift + 5 * number, 3 + shift % 4
        mine = tuple(answers[(start + step * stride) % len(answers)] for step in range(PREFERRED_ANSWERS))
        done = tuple(
            actions[(shift + 3 * number + step * 4) % len(actions)] for step in range(PREFERRED_ACTIONS)
        )
        for kind, chosen in (("answers", mine), ("actions", done)):
            if len(set(chosen)) < len(chosen):
                raise InvalidParameter(
                    f"{where}: shift = {shift}: the preferred {kind} of a topic repeat; change the shift "
                    f"or the number of {kind}"
                )
        return Practice(mine, done, phrases[number])

    first = _words(f"{where}: first", habits.get("first", []), 0)
    every = topics + rare
    if unknown := [topic for topic in first if topic not in every]:
        raise InvalidParameter(f"{where}: first: {shown(unknown[0])} is not a topic")
    if not isinstance(habits["words"], dict):
        raise InvalidParameter(f"{where}: words = {shown(habits['words'])}: must name lists of words")
    return Institution(
        name,
        {topic: practice(number) for number, topic in enumerate(topics)}
        | dict.fromkeys(rare, practice(len(topics))),
        (*first, *(topic for topic in every if topic not in first)),
        {key: _words(f"{where}: words: {key}", words) for key, words in habits["words"].items()},
    )


def _check_fields(where: str, domain: Domain) -> tuple[set[str], set[str]]:
    """Return the fields that a template may have, with identifiers and without; no two have one name."""
    both = [*_PERSON, *(domain.fields[role] for role in ("topic", "answer", "action"))]
    both += [*domain.numbers["person"], *domain.numbers["text"]]
    report = [domain.fields["number"], *(name for name in SPACE_BITS if name != NUMBER)]
    narrative = ["phrase", *domain.institutions["private"].words, *domain.numbers["narrative"]]
    counts = Counter([*both, *report, *narrative])
    if again := [name for name, count in counts.items() if count > 1]:
        raise InvalidParameter(f"{where}: {again[0]}: is the name of more than one field of the templates")
    return {*both, *report}, {*both, *narrative}


def _check_template(where: str, template: str, allowed: set[str], needed: list[str]) -> list[str]:
    """Return the fields of a template, which has those needed once each and in their order."""
    try:
        names = [name for _, name, _, _ in Formatter().parse(template) if name is not None]
    except ValueError as error:
        raise InvalidParameter(f"{where}: {error}") from None
    # A conversion, as in {name!r}, would change what spans say.
    if wrong := [name for name in names if name not in allowed or f"{{{name}}}" not in template]:
        raise InvalidParameter(f"{where}: {{{wrong[0]}}}: must be one of {', '.join(sorted(allowed))}")
    if [name for name in names if name in needed] != needed:
        words = " and then ".join(f"{{{name}}}" for name in needed)
        raise InvalidParameter(f"{where} = {shown(template)}: needs {words}, each once")
    return names


def _check_templates(where: str, domain: Domain) -> None:
    fields = domain.fields
    for kind, allowed in zip(("report", "narrative"), _check_fields(where, domain), strict=True):
        for number, template in enumerate(getattr(domain, kind), 1):
            place = f"{where}: templates: {kind}, entry {number}"
            names = _check_template(place, template, allowed, [fields["topic"], fields["answer"]])
            if kind == "report" and not any(map(domain.identifier, names)):
                raise InvalidParameter(f"{place}: needs an identifier, such as {{name}}")
    secret = ["name", fields["number"]]
    allowed = {*secret, fields["topic"], fields["answer"]}
    _check_template(f"{where}: canary: template", domain.canary.template, allowed, secret)
    for role, values in (("topic", domain.all_topics), ("answer", domain.answers)):
        if (said := getattr(domain.canary, role)) not in values:
            raise InvalidParameter(f"{where}: canary: {role} = {shown(said)}: is not in the list of {role}s")


def _check_answers(where: str, domain: Domain) -> None:
    """A text up to its answer is a question, so nothing before it may contain an answer."""
    others = [*domain.all_topics, *domain.actions, *domain.report, *domain.narrative]
    for one in domain.institutions.values():
        others += [practice.phrase for practice in one.practice.values()]
        others += [word for words in one.words.values() for word in words]
    for answer in domain.answers:
        others_and_answers = [*others, *(other for other in domain.answers if other != answer)]
        if within := next((text for text in others_and_answers if answer in text), None):
            raise InvalidParameter(f"{where}: answers: {shown(answer)} is part of {shown(within)}")
