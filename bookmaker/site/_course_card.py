"""The page of a course: what each chapter teaches, what it needs, and how long it took the last time."""

import re
from collections.abc import Iterable
from typing import Any

from nbformat import NotebookNode

from bookmaker.site import exercises
from bookmaker.site._run_card import duration
from privhelpers.errors import DamagedArtifact

INTRO = """(course-card)=
# Course card

What each chapter teaches, what it needs, and how long its run took when this copy of the book was made.
The minutes of reading are an estimate, by the rates of the syllabus.
{doc}`syllabus` cuts them into weeks, and {doc}`instructors` has advice for a course.

"""
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
LABEL = re.compile(r"^\(([\w-]+)\)=$", re.MULTILINE)
BOX = re.compile(r"^:::\{admonition\} (You will|Before you start)\n(?::class: \w+\n)?(.*?)^:::$", re.M | re.S)
READING = re.compile(r"Reading (\d+) minutes")


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
    return INTRO + "\n".join(parts)
