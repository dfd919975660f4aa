"""The pages for a course: the chapters in even weeks and what each takes, and what each teaches and needs.

Minutes follow from the source of a chapter at the rates below, so that a chapter that grows takes longer
without anybody's guess; the time of a run is measured.
"""

import ast
import itertools
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from nbformat import NotebookNode

from bookmaker.runner import chain, notebooks
from bookmaker.site import exercises
from bookmaker.site._markdown import table
from bookmaker.site._run_card import duration
from privhelpers.errors import DamagedArtifact

WORDS, LINES = 150, 10  # a minute; prose without formulas is read at 240 words a minute
ON_PAPER, IN_CODE = 15, 10  # minutes of an exercise; in code, one more for each line of its solution
QUIZ = 5  # minutes of five questions
FORMULA = re.compile(r"^\$\$.+?^\$\$|^`{3}\{math\}", re.MULTILINE | re.DOTALL)
FOLDED = {"bookkeeping", "parameters"}
LABEL = re.compile(r"^\(([\w-]+)\)=$", re.MULTILINE)
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
BOX = re.compile(r"^:::\{admonition\} (You will|Before you start)\n(?::class: \w+\n)?(.*?)^:::$", re.M | re.S)
READING = re.compile(r"Reading (\d+) minutes")
TWO_DAYS = (  # a promise, a model and who was in it, a budget from above and from below, what to do
    chain.PRIVACY,
    chain.TESTING,
    chain.BASELINE,
    chain.MEMBERSHIP,
    chain.DPSGD,
    chain.AUDITING,
    chain.DEFENSES,
    chain.YOUR_MODEL,
)
INTRO = f"""(syllabus)=
# Syllabus

Three plans, each with the chapters in the order of the book and in parts as even as whole chapters allow:
of all ways to cut the list, the one whose longest part is shortest.

Only **running** is measured: it is what all runs of the chapter took when this copy of the book was made.
**Reading**, **exercises** and **quizzes** are estimates by these rates; no reader was timed:

- Reading takes a minute for every {WORDS} words, every {LINES} lines of code, every displayed formula
  and every figure, to the nearest five; folded cells do not count.
- An exercise on paper takes {ON_PAPER} minutes; one in code {IN_CODE} and a minute for each line of its
  solution.
- A quiz takes {QUIZ} minutes.
"""
COURSE_INTRO = """(course-card)=
# Course card

What each chapter teaches, what it needs, and how long its run took when this copy of the book was made.
The minutes of reading are an estimate, by the rates of the syllabus.
{doc}`syllabus` cuts them into weeks, and {doc}`instructors` has advice for a course.

"""
KINDS = """Some ask to *implement* something, others to *compute* with what the chapter has built.
The minutes say how long one is: those of the solution's code, as above.

"""


@dataclass(frozen=True)
class Exercise:
    """One exercise.

    Attributes:
        label, title: as the page has them.
        minutes: that it takes.
        kind: "think" without code in its solution, "implement" where the solution defines a function or a
            class, else "compute".
    """

    label: str
    title: str
    minutes: int
    kind: str


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


def _kind(cells: Sequence[NotebookNode]) -> str:
    """Return what an exercise asks for, by the code of its solution."""
    nodes = [node for cell in cells for node in ast.walk(ast.parse(cell.source))]
    if any(isinstance(node, ast.FunctionDef | ast.ClassDef) for node in nodes):
        return "implement"
    return "compute" if cells else "think"


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
            _kind([source.cells[n] for n in one.cells]),
        )
        for one in exercises.exercises(source, slug)
    )
    return Chapter(label[1], reading_minutes(source), seconds / 60, work)


def partition(minutes: Sequence[float], parts: int) -> list[slice]:
    """Return the cut of a list into parts that follow each other, none of them empty, as even as can be.

    The largest sum is as small as in any cut, and among such cuts the sum of squares is smallest.

    Args:
        minutes: at least as many as `parts`.
        parts: 1 or more.

    >>> partition([1, 2, 3, 4], 2)
    [slice(0, 3, None), slice(3, 4, None)]
    """

    def best(join: Callable[[float, float], float], limit: float) -> tuple[float, tuple[int, ...]]:
        """Return the smallest cost of a cut without a part above `limit`, and where its parts begin."""
        ways = {(0, 0): (0.0, ())}  # (parts, items) of the beginning of the list
        for part, end in itertools.product(range(1, parts + 1), range(1, len(minutes) + 1)):
            sums = {begin: sum(minutes[begin:end]) for begin in range(end) if (part - 1, begin) in ways}
            costs = [
                (join(ways[part - 1, begin][0], own), (*ways[part - 1, begin][1], begin))
                for begin, own in sums.items()
                if own <= limit
            ]
            if costs:
                ways[part, end] = min(costs)
        return ways[parts, len(minutes)]

    largest, _ = best(max, math.inf)
    _, begins = best(lambda cost, own: cost + own**2, largest)
    return [slice(*pair) for pair in zip(begins, (*begins[1:], len(minutes)), strict=True)]


def _hours(minutes: float) -> str:
    hours, rest = divmod(round(minutes), 60)
    return f"{hours}\u00a0h {rest:02d}\u00a0min" if hours else f"{rest}\u00a0min"


def _plan(names: Sequence[str], chapters: Sequence[Chapter], most: int | None) -> str:
    """Return a plan as a table and a sentence on how even it is."""
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
    return table(["", "chapters", "reading", "running", "exercises and quizzes", "in all"], rows) + (
        f"\nOn average {_hours(mean)}; the longest takes {max(sums) / mean:.2f} times as much, "
        f"the shortest {min(sums) / mean:.2f} times.\n"
    )


def syllabus(chapters: dict[str, Chapter]) -> str:
    """Return the page `book/syllabus.md`.

    Args:
        chapters: by slug, in the order of the book; at least 14, those of the two days among them.
    """
    every = list(chapters.values())
    half_days = [f"{day} day, {half}" for day in ("first", "second") for half in ("morning", "afternoon")]
    times = [
        [f"{{ref}}`{one.label}`", one.reading, f"{one.running:.1f}", _hours(one.minutes())] for one in every
    ]
    index = [
        [f"{{ref}}`{work.title} <{work.label}>`", f"{{ref}}`{one.label}`", work.kind, work.minutes]
        for one in every
        for work in one.exercises
    ]
    sections = {
        "Fourteen weeks": "Every chapter, with all its exercises.\n\n"
        + _plan([f"week {week}" for week in range(1, 15)], every, None),
        "Six weeks": "Every chapter, with the shortest of its exercises.\n\n"
        + _plan([f"week {week}" for week in range(1, 7)], every, 1),
        "Two days": "Eight chapters, with the shortest exercise of each; leave the proofs to the reader.\n\n"
        + _plan(half_days, [chapters[slug] for slug in TWO_DAYS], 1),
        "What each chapter takes": table(
            ["chapter", "reading (min)", "running (min)", "with all exercises and the quiz"], times
        ),
        "All exercises": KINDS + table(["exercise", "chapter", "asks to", "minutes"], index),
    }
    return INTRO + "".join(f"\n## {title}\n\n{text}" for title, text in sections.items())


def _opening(slug: str, notebook: NotebookNode) -> dict[str, str]:
    """Return label, title, objectives, prerequisites and minutes from a chapter's first cell."""
    text = notebook.cells[0].source
    boxes = {title: body.strip() for title, body in BOX.findall(text)}
    label, title = LABEL.search(text), TITLE.search(text)
    minutes = READING.search(boxes.get("Before you start", ""))
    if not (label and title and minutes and "You will" in boxes):
        raise DamagedArtifact(
            f"{slug}: its first cell lacks a label, a title, the box 'You will', or 'Reading NN minutes' "
            "in the box 'Before you start'"
        )
    needs = [line for line in boxes["Before you start"].splitlines() if not READING.search(line)]
    return {
        "label": label[1],
        "title": title[1],
        "objectives": boxes["You will"],
        "needs": " ".join(needs),
        "minutes": minutes[1],
    }


def _exercises(slug: str, notebook: NotebookNode) -> str:
    chapter_exercises = exercises.exercises(notebook, slug)
    return "; ".join(f"{{ref}}`{exercise.label}`" for exercise in chapter_exercises)


def _runs(slug: str, runs: Iterable[dict[str, Any]]) -> str:
    """Return the seconds of a chapter's runs as words."""
    seconds = [run["seconds"] for run in runs if run["notebook"] == slug]
    mean = duration(sum(seconds) / len(seconds))
    return mean if len(seconds) == 1 else f"{len(seconds)} runs of {mean} on average"


def course_card(chapters: dict[str, NotebookNode], manifest: dict[str, Any]) -> str:
    """Return the page `book/course_card.md`.

    Args:
        chapters: the chapter's own page, by slug, in the order of the book.
        manifest: of the profile whose runs the site shows.

    Raises:
        DamagedArtifact: a chapter does not open as chapters do, or the manifest lacks its run.
    """
    parts = []
    for slug, notebook in chapters.items():
        opening = _opening(slug, notebook)
        try:
            run = _runs(slug, manifest["runs"].values())
        except (KeyError, TypeError, ZeroDivisionError) as error:
            raise DamagedArtifact(f"manifest.json: has no time for {slug}; build the book again") from error
        parts.append(
            f"## {opening['title']}\n\n{{ref}}`Read the chapter <{opening['label']}>`: "
            f"{opening['minutes']} minutes; its run: {run}.\n{opening['needs']}\n\n"
            f"{opening['objectives']}\n\nExercises: {_exercises(slug, notebook)}\n"
        )
    return COURSE_INTRO + "\n".join(parts)
