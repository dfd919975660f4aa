"""Copies for students: no solutions, but what each of them shows, and numbers in place of their names.

A copy is the source of a chapter with four changes. The words of a solution go. Its code gives way to an
empty cell, under the output that a solution should reproduce. A sentence that quotes a number of the run
(`{glue:text}`) gets the number, because Jupyter alone cannot look it up. And the copy reads the profile
whose numbers these are.
"""

import re
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from bookmaker.runner import chain, files, notebooks
from bookmaker.runner.plan import Job
from bookmaker.site import exercises, page_of, pages, quoted, with_numbers
from privhelpers.errors import DamagedArtifact

YOURS = "# Your code here"
EXPECTED = "The solution of the book shows this:"
PROFILE = re.compile(r'^(profile: str = )"[^"]*"', re.MULTILINE)


def read_profile(notebook: NotebookNode, profile: str, name: str) -> None:
    """Make a notebook read and write the results of a profile, in place.

    Args:
        notebook: a chapter, or a copy of one.
        profile: as in `runs/<profile>/`.
        name: of the notebook, for the message.

    Raises:
        DamagedArtifact: its parameters name no profile.
    """
    for cell in notebooks.code_cells(notebook):
        if "parameters" in notebooks.tags(cell):
            cell.source, count = PROFILE.subn(rf'\g<1>"{profile}"', cell.source)
            if count:
                return
    raise DamagedArtifact(f'{name}: its parameters have no line that starts with `profile: str = "..."`')


def expected(cell: NotebookNode) -> NotebookNode | None:
    """Return a Markdown cell with what a solution's cell showed, a picture or text; None if nothing."""
    parts, pictures = [], {}
    for output in cell.outputs:
        data = output.get("data", {})
        if "image/png" in data:
            name = f"expected-{len(pictures)}.png"
            pictures[name] = {"image/png": data["image/png"]}
            alt = cell.metadata.get("mystnb", {}).get("image", {}).get("alt", "the expected picture")
            parts.append(f"![{alt}](attachment:{name})")
        elif text := (output.get("text") or data.get("text/plain")):
            parts.append(exercises.fenced(text))
    more = {"attachments": pictures} if pictures else {}
    return new_markdown_cell("\n\n".join([EXPECTED, *parts]), **more) if parts else None


def student_copy(page: NotebookNode, source: NotebookNode, name: str = "a chapter") -> NotebookNode:
    """Return the copy of a chapter that students get.

    Args:
        page: the chapter with the outputs of its run, as the site shows it.
        source: the notebook of the chapter; not changed.
        name: of the chapter, for the message.

    Raises:
        DamagedArtifact: a solution cannot be found; the message names the line.
    """
    numbers = quoted(page)
    ran = [cell for cell in notebooks.code_cells(page) if exercises.is_solution(cell)]
    solutions = iter(ran)
    copy = nbformat.from_dict(source)
    for cell in copy.cells:
        if cell.cell_type == "markdown":
            cell.source = with_numbers(cell.source, numbers, name)
        else:
            cell.outputs, cell.execution_count = [], None

    def instead(_: NotebookNode) -> list[NotebookNode]:
        shown = expected(next(solutions))
        return [*([shown] if shown else []), new_code_cell(YOURS, metadata={"tags": ["exercise"]})]

    cells = exercises.without_solutions(copy.cells, instead, chapter=name)
    for number, cell in enumerate(cells):
        cell["id"] = cell.get("id") if cell.get("id") and cell.source != YOURS else f"student-{number}"
    copy.cells = cells
    return copy


def write(root: Path, plan: list[Job]) -> list[Path]:
    """Write a copy of every chapter to `runs/<profile>/student/notebooks/` and return their paths.

    No other notebook stays there; other files do.

    Raises:
        RunFailed: a run of the profile is missing or is not today's code.
        MissingArtifact: a notebook is missing.
        DamagedArtifact: a solution cannot be found.
    """
    folder = root / "runs" / plan[0].profile / "student" / "notebooks"
    copies = {}
    for page in pages(plan):
        if not page.is_chapter:
            continue
        chapter = chain.source(root, page.job.slug)
        copy = student_copy(page_of(root, page.job), notebooks.read(chapter), page.job.slug)
        read_profile(copy, page.job.profile, page.job.slug)
        copies[chapter.name] = copy
    with files.replacing(folder, "*.ipynb") as new:
        for name, copy in copies.items():
            notebooks.write(copy, new / name)
    return [folder / name for name in copies]
