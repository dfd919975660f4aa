"""Whether every solution ran: what `python -m bookmaker solutions` prints after the runs."""

from pathlib import Path

import pandas as pd

from bookmaker.runner import plan as planning
from bookmaker.runner.plan import Job
from bookmaker.site import exercises, pages
from privaudit.console import counted


def _state(cells: list) -> str:
    """Return how much of a solution ran."""
    if not cells:
        return "words only"
    return counted(len(cells), "cell ran", "cells ran")


def report(root: Path, plan: list[Job]) -> pd.DataFrame:
    """Return one row an exercise: chapter, label, title, and what became of its solution.

    Raises:
        PrivHelpersError: a run is missing or damaged, or a cell of it failed or never ran.
    """
    rows = []
    for page in pages(plan):
        if not page.is_chapter:
            continue
        executed = planning.executed(root, page.job)
        for exercise in exercises.exercises(executed, page.job.slug):
            state = _state([executed.cells[number] for number in exercise.cells])
            rows.append((exercise.chapter, exercise.label, exercise.title, state))
    return pd.DataFrame(rows, columns=["chapter", "exercise", "title", "solution"])
