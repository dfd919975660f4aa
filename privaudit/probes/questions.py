"""The questions to a model that one can only ask, about equally many members and held-out patients.

Someone who can only ask knows more or less: nothing, a name, the first words of a note, its first half. For
each of these, the same questions are written about both sides, in random order, under ids that do not say
which side a question is about. Some are asked 10, 100, ... times, because each sample of an answer is another
chance.

The key is not written: the questions depend only on the two files, the budget and the seed, so the audit
computes them again when the answers come back. A second file could be sent by mistake, or lost.

Source: Carlini et al. 2021 and 2023 for extraction with more or less of the context.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple

from privaudit.encode import Sample, content_key, draw_sample, naming_strings
from privaudit.probes.memorization import openings
from privaudit.records import FEWEST_PATIENTS, Files, Note
from privaudit.settings import Settings
from privhelpers import spelling
from privhelpers.defenses.dedup import shingles
from privhelpers.errors import BadRecords, InvalidParameter
from privhelpers.text import found_in, places

RUN = 10  # words of a run that gives a note away
CONTEXT = 8  # words of a note that someone knows who knows its context
_OPENINGS = 11  # common openings of notes, which are asked about nobody


class Knowledge(StrEnum):
    """What someone who asks knows; keys of `knowledge`, from the least to the most."""

    NOTHING = "nothing"
    NAME = "name"
    CONTEXT = "context"
    HALF = "half"


class QueryTest(NamedTuple):
    """The test of one cell of the table of leakage.

    Attributes:
        knowledge: of the attacker.
        queries: answers about each patient; with no knowledge, answers in total.
    """

    knowledge: Knowledge
    queries: int


@dataclass(frozen=True)
class Question:
    """One prompt.

    Attributes:
        id: does not say which side it is about.
        knowledge: what it gives the model.
        prompt: the text.
        answers: how many are wanted.
        note: the note that it is about; None without knowledge.
        hidden: the text of the note that the prompt does not show.
    """

    id: str
    knowledge: Knowledge
    prompt: str
    answers: int
    note: Note | None = None
    hidden: str = ""


@dataclass(frozen=True)
class Plan:
    """The questions of one budget.

    Attributes:
        questions: in the order in which they are written, which is random.
        sample: every note of the two files.
        strings: the strings that name each patient.
    """

    questions: list[Question]
    sample: Sample
    strings: Mapping[str, list[str]]

    def of(self, knowledge: Knowledge) -> list[Question]:
        """Return the questions of one level of knowledge."""
        return [question for question in self.questions if question.knowledge == knowledge]

    @cached_property
    def asked(self) -> Sample:
        """The notes that some question is about, one a patient."""
        lines = {(q.note.patient, q.note.line) for q in self.questions if q.note}
        kept = [n for n, note in enumerate(self.sample.notes) if (note.patient, note.line) in lines]
        return Sample([self.sample.notes[n] for n in kept], self.sample.member[kept], 0)

    @cached_property
    def tests(self) -> list[QueryTest]:
        """The cells of the table: 1, 10, 100, ... queries, as far as there are so many."""
        cells = []
        for knowledge in Knowledge:
            wanted = [question.answers for question in self.of(knowledge)]
            most = sum(wanted) if knowledge == Knowledge.NOTHING else max(wanted, default=0)
            powers = [10**n for n in range(len(str(most))) if most]
            cells += [QueryTest(knowledge, queries) for queries in sorted({*powers, most} - {0})]
        return cells


def ladder(share: int, patients: int) -> list[tuple[int, int]]:
    """Return pairs of a number of queries, 1, 10, ..., and how many patients of each side are asked so often.

    The budget is divided evenly among the steps, and a step is made if it leaves 50 patients a side.

    Args:
        share: answers in all.
        patients: most of a side.

    >>> ladder(250, 1000), ladder(2000, 1000)
    ([(1, 125)], [(1, 500), (10, 55)])
    """
    extra = [1]
    while (share // (len(extra) + 1)) // (2 * 9 * 10 ** (len(extra) - 1)) >= FEWEST_PATIENTS:
        extra.append(9 * 10 ** (len(extra) - 1))
    steps, left = [], share
    for number, more in enumerate(extra):
        patients = min(patients, left // (len(extra) - number) // (2 * more))
        left -= 2 * more * patients
        steps.append((10**number, patients))
    return steps


def _prompts(note: Note, strings: Sequence[str]) -> dict[Knowledge, tuple[str, str]]:
    """Return the prompt and the hidden text of a note, for each knowledge that leaves something to find."""
    text, ends = note.text, [unit.end() for unit in spelling.units(note.text)]
    named = min((place for value in strings for place in places(value, text)), default=None)
    made = {}
    if named:
        made[Knowledge.NAME] = text[slice(*named)], f"{text[: named[0]]}\n{text[named[1] :]}"
    first = [end for end in ends[: len(ends) // 2][:CONTEXT] if not named or end <= named[0]]
    if len(first) > 1:
        made[Knowledge.CONTEXT] = text[: first[-1]], text[first[-1] :]
    if len(ends) >= 2 * RUN:
        end = ends[len(ends) // 2 - 1]
        made[Knowledge.HALF] = text[:end], text[end:]
    return {
        knowledge: (prompt, hidden)
        for knowledge, (prompt, hidden) in made.items()
        if runs(hidden) or len(found_in(strings, prompt)) < len(strings)
    }


def _one_a_patient(sample: Sample, *, member: bool) -> list[Note]:
    """Return a note of each patient of a side: the first one with two long halves, else the first."""
    by_patient: dict[str, list[Note]] = {}
    for note in sample.of(member=member):
        by_patient.setdefault(note.patient, []).append(note)
    return [
        next((note for note in notes if len(list(spelling.units(note.text))) >= 2 * RUN), notes[0])
        for notes in by_patient.values()
    ]


def _askable(
    files: Files, sample: Sample, strings: Mapping[str, Sequence[str]]
) -> dict[Knowledge, list[list[tuple[Note, str, str]]]]:
    """Return note, prompt and hidden text of each patient, members first, where enough have one.

    Raises:
        BadRecords: there is none.
    """
    sides = []
    for member in (True, False):
        chosen = _one_a_patient(sample, member=member)
        sides.append([(note, _prompts(note, strings.get(note.patient, ()))) for note in chosen])
    about = {}
    for knowledge in list(Knowledge)[1:]:
        both = [[(note, *made[knowledge]) for note, made in side if knowledge in made] for side in sides]
        if min(map(len, both)) >= FEWEST_PATIENTS:
            about[knowledge] = both
    if not about:
        raise BadRecords(
            f"{files.members.name} and {files.heldout.name}: in one of them, fewer than {FEWEST_PATIENTS} "
            f"patients have a note of {2 * RUN} words, or a string that names them, to ask about"
        )
    return about


def plan_questions(files: Files, settings: Settings) -> Plan:
    """Return the questions of a budget, about equally many patients of both sides.

    Args:
        files: members and held-out records.
        settings: with the budget, in answers, and the seed; nothing else of it counts.

    Raises:
        InvalidParameter: the budget asks about fewer than 50 patients of a side.
        BadRecords: too few patients have a note that can be asked about.
    """
    sample = draw_sample(files, [], replace(settings, patients=None, notes=None))
    strings: dict[str, list[str]] = {}
    for value, patient in naming_strings(sample.notes).items():
        strings.setdefault(patient, []).append(value)
    about = _askable(files, sample, strings)
    share = settings.budget // (1 + len(about))
    if share < 2 * FEWEST_PATIENTS:
        least = 2 * FEWEST_PATIENTS * (1 + len(about))
        raise InvalidParameter(
            f"budget = {settings.budget:,}: these records need {least:,} answers or more, for "
            f"{FEWEST_PATIENTS} patients of each file and each of {1 + len(about)} levels of knowledge"
        )

    def id_of(*content: str) -> str:
        return content_key(settings.seed, ["questions", str(settings.budget), *content]).hex()

    begin = ["", *openings(sample.of(member=False), most=min(_OPENINGS, share - 1))]
    questions = [
        Question(id_of(Knowledge.NOTHING, text), Knowledge.NOTHING, text, len(range(n, share, len(begin))))
        for n, text in enumerate(begin)
    ]
    for knowledge, both in about.items():
        steps = ladder(share, min(map(len, both)))
        for side in both:
            for n, (note, prompt, hidden) in enumerate(side[: steps[0][1]]):
                most = max(queries for queries, patients in steps if n < patients)
                own = id_of(knowledge, str(n), note.text)
                questions.append(Question(own, knowledge, prompt, most, note, hidden))
    return Plan(sorted(questions, key=lambda question: question.id), sample, strings)


def runs(text: str) -> frozenset[str]:
    """Return the runs of ten words of a text; a shorter text has none."""
    return shingles(text, RUN) if len(spelling.words(text)) >= RUN else frozenset()
