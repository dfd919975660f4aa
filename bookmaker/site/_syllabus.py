"""The pages for a course: the chapters in even weeks and what each takes, and what each teaches and needs.

Minutes follow from the source of a chapter at the rates below, so that a chapter that grows takes longer
without anyone's guess; the time of a run is measured.
"""

import functools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from nbformat import NotebookNode

from bookmaker.runner import chain, notebooks
from bookmaker.site import exercises
from bookmaker.site._markdown import table
from privhelpers.errors import DamagedArtifact

WORDS, LINES = 150, 10  # a minute; prose without formulas is read at 240 words a minute
ON_PAPER, IN_CODE = 15, 10  # minutes of an exercise; in code, one more for each line of its solution
QUIZ = 5  # minutes of five questions
FORMULA = re.compile(r"^\$\$.+?^\$\$|^`{3}\{math\}", re.MULTILINE | re.DOTALL)
FOLDED = {"bookkeeping", "parameters", "setup", "figure", "agreement", "claims"}
LABEL = re.compile(r"^\(([\w-]+)\)=$", re.MULTILINE)
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
BOX = re.compile(r"^:::\{admonition\} (You will|Before you start)\n(?::class: \w+\n)?(.*?)^:::$", re.M | re.S)
# A claim, a promise, a model, a private one, who was in it, whether epsilon is true, what one may say.
TWO_DAYS = (
    "the_claim",
    chain.PRIVACY,
    chain.BASELINE,
    chain.DPSGD,
    chain.MEMBERSHIP,
    chain.AUDITING,
    "hipaa",
)
WEEKS, OF_CHOICE = 14, 2  # in the last weeks of the fourteen, two chapters of the library each
INTRO = f"""(syllabus)=
# Syllabus

Three plans, each with the chapters in the order of the book and in parts as even as whole chapters allow.
The six weeks are the core, twelve chapters that build on each other.
The fourteen weeks go through the core more slowly, with all exercises, and add four chapters of the library.
The two days are seven chapters of the core.

Only **running** is measured: it is what all runs of the chapter took when this copy of the book was made,
and 0 where its results are kept.
**Reading**, **exercises** and **quizzes** are estimates by these rates; no reader was timed:

- Reading takes a minute for every {WORDS} words, every {LINES} lines of code, every displayed formula
  and every figure, to the nearest five; folded cells do not count.
- An exercise on paper takes {ON_PAPER} minutes; one in code {IN_CODE} and a minute for each line of its
  solution.
- A quiz takes {QUIZ} minutes.
"""
COURSE_INTRO = """(course-card)=
# Course card

What each chapter teaches and what it needs.
{doc}`syllabus` cuts the chapters into weeks and lists their exercises; {doc}`instructors` has advice.

"""


@dataclass(frozen=True)
class Exercise:
    """One exercise: its label and title on the page, and the minutes that it takes."""

    label: str
    title: str
    minutes: int


@dataclass(frozen=True)
class Chapter:
    """What one chapter takes.

    Attributes:
        label: of the page.
        reading, running: minutes; running is 0 where no run is known.
        exercises: in the order of the page.
    """

    label: str
    reading: int
    running: float
    exercises: tuple[Exercise, ...]

    def minutes(self, most: int | None = None) -> float:
        """Return the minutes of the chapter, with the `most` shortest of its exercises, or with all."""
        work = sorted(exercise.minutes for exercise in self.exercises)[:most]
        return self.reading + self.running + sum(work) + QUIZ


def _lines(cell: NotebookNode) -> int:
    """Return the lines of a cell that are not empty."""
    return sum(bool(line.strip()) for line in cell.source.splitlines())


def reading_minutes(source: NotebookNode, name: str = "a chapter") -> int:
    """Return the minutes of reading a chapter, to the nearest five, without exercises and folded cells."""
    copies = [NotebookNode(cell) for cell in source.cells]
    minutes = 0.0
    kinds = (exercises.EXERCISE, exercises.SOLUTION)
    for cell in exercises.without_solutions(copies, kinds=kinds, chapter=name):
        if cell.cell_type == "markdown":
            minutes += len(cell.source.split()) / WORDS + len(FORMULA.findall(cell.source))
        elif not FOLDED & set(notebooks.tags(cell)):
            minutes += _lines(cell) / LINES + ("figure" in cell.metadata.get("mystnb", {}))
    return 5 * max(1, round(minutes / 5))


def chapter(slug: str, source: NotebookNode, seconds: float = 0.0) -> Chapter:
    """Return what a chapter takes.

    Args:
        slug: of the chapter.
        source: its notebook, with solutions.
        seconds: that its runs took.

    Raises:
        DamagedArtifact: its first cell has no label.
    """
    label = LABEL.search(source.cells[0].source)
    if label is None:
        raise DamagedArtifact(f"{slug}: its first cell lacks a label, such as (nb-word)=")
    work = tuple(
        Exercise(
            one.label,
            one.title,
            IN_CODE + sum(_lines(source.cells[n]) for n in one.cells) if one.cells else ON_PAPER,
        )
        for one in exercises.exercises(source, slug)
    )
    return Chapter(label[1], reading_minutes(source), seconds / 60, work)


def partition(minutes: Sequence[float], parts: int) -> list[slice]:
    """Return the cut of a list into parts that follow each other, none of them empty, as even as can be.

    The sum of the squares of the parts is as small as in any cut.

    Args:
        minutes: at least as many as `parts`.
        parts: 1 or more.

    >>> partition([1, 2, 3, 4], 2)
    [slice(0, 3, None), slice(3, 4, None)]
    """

    @functools.cache
    def best(end: int, parts: int) -> tuple[float, tuple[int, ...]]:
        """Return the smallest cost of the first `end` in so many parts, and where the parts begin."""
        if parts == 0:
            return (math.inf if end else 0.0), ()
        ways = [(best(begin, parts - 1), begin) for begin in range(parts - 1, end)]
        return min((cost + sum(minutes[at:end]) ** 2, (*begins, at)) for (cost, begins), at in ways)

    begins = best(len(minutes), parts)[1]
    return [slice(*pair) for pair in zip(begins, (*begins[1:], len(minutes)), strict=True)]


def _hours(minutes: float) -> str:
    hours, rest = divmod(round(minutes), 60)
    return f"{hours}\u00a0h\u00a0{rest:02d}\u00a0min" if hours else f"{rest}\u00a0min"


def _plan(
    names: Sequence[str], chapters: Sequence[Chapter], most: int | None, more: Sequence[list] = ()
) -> str:
    """Return a plan as a table, whose last rows are `more`, and a sentence on how even it is."""
    minutes = [one.minutes(most) for one in chapters]
    parts = partition(minutes, len(names))
    sums = [sum(minutes[part]) for part in parts]
    rows = []
    for name, part, total in zip(names, parts, sums, strict=True):
        own = chapters[part]
        work = total - sum(one.reading + one.running for one in own)
        refs = ", ".join(f"{{ref}}`{one.label}`" for one in own)
        times = (sum(one.reading for one in own), sum(one.running for one in own), work, total)
        rows.append([name, refs, *map(_hours, times)])
    mean = sum(sums) / len(sums)
    return table(
        ["", "chapters", "reading", "running", "exercises and quizzes", "in all"], [*rows, *more]
    ) + (
        f"\nOn average {_hours(mean)}; the longest takes {max(sums) / mean:.2f} times as much, "
        f"the shortest {min(sums) / mean:.2f} times.\n"
    )


def syllabus(chapters: dict[str, Chapter]) -> str:
    """Return the page `book/syllabus.md`.

    Args:
        chapters: by slug, in the order of the book; the core among them.
    """
    every = list(chapters.values())
    core = [chapters[slug] for slug in chain.CORE]
    weeks = WEEKS - OF_CHOICE
    last = range(weeks + 1, WEEKS + 1)
    free = [[f"week\u00a0{week}", "two chapters of the library", *4 * [""]] for week in last]
    library = [
        [f"{{ref}}`{one.label}`", _hours(one.minutes())]
        for slug, one in chapters.items()
        if slug not in chain.CORE
    ]
    half_days = [f"{day} day, {half}" for day in ("first", "second") for half in ("morning", "afternoon")]
    times = [
        [f"{{ref}}`{one.label}`", one.reading, f"{one.running:.1f}", _hours(one.minutes())] for one in every
    ]
    index = [
        [f"{{ref}}`{work.title} <{work.label}>`", f"{{ref}}`{one.label}`", work.minutes]
        for one in every
        for work in one.exercises
    ]
    sections = {
        "Six weeks": "The core, with the two shortest exercises of each chapter.\n\n"
        + _plan([f"week\u00a0{week}" for week in range(1, 7)], core, 2),
        "Fourteen weeks": "The core, with all its exercises, then four chapters of your choice.\n\n"
        + _plan([f"week\u00a0{week}" for week in range(1, weeks + 1)], core, None, free)
        + "\nEach chapter of the library begins with the chapters of the core that it needs.\n\n"
        + table(["chapter of the library", "with all exercises and the quiz"], library),
        "Two days": "Seven chapters of the core, with the shortest exercise of each; leave the proofs to the "
        "reader.\n\n" + _plan(half_days, [chapters[slug] for slug in TWO_DAYS], 1),
        "What each chapter takes": table(
            ["chapter", "reading (min)", "running (min)", "with all exercises and the quiz"], times
        ),
        "All exercises": table(["exercise", "chapter", "minutes"], index),
    }
    return INTRO + "".join(f"\n## {title}\n\n{text}" for title, text in sections.items())


def course_card(chapters: dict[str, NotebookNode]) -> str:
    """Return the page `book/course_card.md`.

    Args:
        chapters: the chapter's own page, by slug, in the order of the book.

    Raises:
        DamagedArtifact: a chapter does not open as chapters do.
    """
    parts = []
    for slug, notebook in chapters.items():
        text = notebook.cells[0].source
        label, title, boxes = LABEL.search(text), TITLE.search(text), dict(BOX.findall(text))
        if not (label and title and len(boxes) == 2):
            raise DamagedArtifact(
                f"{slug}: its first cell lacks a label, a title, or a box 'You will' or 'Before you start'"
            )
        parts.append(
            f"## {title[1]}\n\n{{ref}}`Read the chapter <{label[1]}>`. {boxes['Before you start']}\n"
            f"{boxes['You will']}"
        )
    return COURSE_INTRO + "\n".join(parts)
