"""Assignments in nbgrader's format: read with their rules checked, and released for students.

An assignment is `assignments/<name>/<name>.ipynb` with `rubric.md` beside it. The metadata of a cell say what
it is: locked (read-only), solution (the student's), or grade (a test, or with solution: graded by a person).
What stands between `### BEGIN SOLUTION` and `### END SOLUTION`, or between `### BEGIN HIDDEN TESTS` and
`### END HIDDEN TESTS`, is not released.

Source: nbgrader's schema of cell metadata, version 3, and its manual on solutions and hidden tests.
"""

import json
import math
import re
from dataclasses import dataclass
from pathlib import Path

import jsonschema
import nbformat
from nbformat import NotebookNode

from bookmaker.runner import folders, notebooks
from privhelpers.artifacts import write_atomic
from privhelpers.errors import DamagedArtifact, MissingArtifact

SCHEMA = json.loads(Path(__file__).with_name("nbgrader.schema.json").read_text(encoding="utf-8"))
# What a student finds where a solution stood: the words that nbgrader puts there itself.
PLACEHOLDERS = {"code": "# YOUR CODE HERE\nraise NotImplementedError()", "markdown": "YOUR ANSWER HERE"}
REGION = r"^([ \t]*)### BEGIN {0}[ \t]*\n.*?^[ \t]*### END {0}[ \t]*$\n?"
SOLUTION, HIDDEN = (re.compile(REGION.format(what), re.M | re.S) for what in ("SOLUTION", "HIDDEN TESTS"))
# However it is written: what is left of these where the regions were cut would be released.
MARK = re.compile(r"(?i:\b(BEGIN|END)[\s_-]+(SOLUTION|HIDDEN|MARK[\s_-]+SCHEME).*)|###[ \t]*(BEGIN|END)\b.*")


@dataclass(frozen=True)
class Assignment:
    """An assignment as a teacher has it.

    Attributes:
        name: of its folder and notebook.
        notebook: with solutions and hidden tests.
        rubric: Markdown, what each task is worth.
    """

    name: str
    notebook: NotebookNode
    rubric: str

    @property
    def points(self) -> float:
        """What the tests can give."""
        return sum(points(cell) for cell in self.notebook.cells if is_test(cell))

    @property
    def by_hand(self) -> float:
        """What a person can give."""
        return sum(points(cell) for cell in self.notebook.cells) - self.points


def nbgrader(cell: NotebookNode) -> dict:
    """Return what the metadata of a cell say to nbgrader; {} if nothing."""
    return cell.metadata.get("nbgrader", {})


def points(cell: NotebookNode) -> float:
    """Return what a cell is worth."""
    return nbgrader(cell).get("points", 0) if nbgrader(cell).get("grade") else 0


def is_test(cell: NotebookNode) -> bool:
    """Return whether a cell holds tests of a solution above it."""
    return bool(nbgrader(cell).get("grade")) and not nbgrader(cell)["solution"]


def _faults(notebook: NotebookNode) -> list[str]:
    """Return what nbgrader would refuse, or grade otherwise than meant."""
    faults, seen = [], set()
    for number, cell in enumerate(notebook.cells):
        meta, where = nbgrader(cell), f"cell {number}"
        if isinstance(meta, dict) and "grade_id" in meta:
            where = f"cell {meta['grade_id']}"
        left = MARK.search(SOLUTION.sub("", HIDDEN.sub("", cell.source)))
        if left:
            faults.append(f"{where} has '{left[0].strip()}' written otherwise, or without its other half")
        if cell.cell_type == "code" and (meta or "parameters" in notebooks.tags(cell)):  # what is run
            try:
                compile(cell.source, where, "exec")
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                faults.append(f"{where} is no program: {error}")
        if not meta:
            if MARK.search(cell.source):
                faults.append(f"{where} has a solution or hidden tests, but no nbgrader metadata")
            continue
        try:
            jsonschema.validate(meta, SCHEMA)
        except jsonschema.ValidationError as error:
            faults.append(f"{where}, metadata nbgrader: {error.message}")
            continue
        if meta["grade_id"] in seen:
            faults.append(f"{where} has the grade_id of another")
        seen.add(meta["grade_id"])
        if meta["grade"] != ("points" in meta):
            faults.append(f"{where}: 'points' belong to cells with 'grade', and to each of them")
        if not 0 < meta.get("points", 1) < math.inf:
            faults.append(f"{where}: 'points' must be a number above 0")
        if cell.cell_type == "markdown" and meta["grade"] != meta["solution"]:
            faults.append(f"{where}: a text is graded and a solution, or neither")
        if not meta["solution"] and SOLUTION.search(cell.source):
            faults.append(f"{where} has a solution, but is no solution cell")
        if not is_test(cell) and HIDDEN.search(cell.source):
            faults.append(f"{where} has hidden tests, but is no test cell")
        if meta["solution"] == meta["locked"]:
            faults.append(
                f"{where}: a student may write in solutions, and in nothing else that nbgrader knows"
            )
    return faults


def read(root: Path) -> list[Assignment]:
    """Return the assignments of `assignments/`, in the order of their names.

    Raises:
        MissingArtifact: there is none, or one lacks its notebook or its rubric.
        DamagedArtifact: one is not in nbgrader's format.
    """
    read_ones = []
    for folder in sorted(path for path in (root / "assignments").glob("*") if path.is_dir()):
        path, rubric = folder / f"{folder.name}.ipynb", folder / "rubric.md"
        for needed in (path, rubric):
            if not needed.is_file():
                raise MissingArtifact(f"{needed.relative_to(root)}: is missing; each assignment has one")
        notebook = notebooks.read(path)
        if faults := _faults(notebook):
            raise DamagedArtifact(
                f"{path.relative_to(root)}: {'; '.join(faults)}; mend the cell and try again"
            )
        read_ones.append(Assignment(folder.name, notebook, rubric.read_text(encoding="utf-8")))
    if not read_ones:
        raise MissingArtifact("assignments/: holds no assignment, a folder with a notebook of its name")
    return read_ones


def student_version(notebook: NotebookNode) -> NotebookNode:
    """Return a copy of an assignment without solutions, hidden tests and outputs."""
    copy = nbformat.from_dict(notebook)
    for cell in copy.cells:
        meta = nbgrader(cell)
        if meta.get("solution"):
            placeholder = PLACEHOLDERS[cell.cell_type]
            kept = SOLUTION.sub(
                lambda found, placeholder=placeholder: re.sub("^", found[1], placeholder, flags=re.M) + "\n",
                cell.source,
            )
            cell.source = kept.rstrip("\n") if kept != cell.source else placeholder
            cell.pop("attachments", None)  # pictures of the solution
        cell.source = HIDDEN.sub("", cell.source).rstrip("\n")
        if meta.get("locked"):
            cell.metadata |= {"editable": False, "deletable": False}
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return copy


def release(root: Path, folder: Path) -> list[Path]:
    """Write the students' version of each assignment, its rubric beside it, and return the notebooks.

    Args:
        root: the repository.
        folder: all that it holds is replaced.

    Raises:
        PrivHelpersError: `read` refuses an assignment.
    """
    every = read(root)
    with folders.replacing(folder, "*") as new:
        for assignment in every:
            path = new / assignment.name / f"{assignment.name}.ipynb"
            notebooks.write(student_version(assignment.notebook), path)
            write_atomic(path.with_name("rubric.md"), assignment.rubric.encode())
    return [folder / assignment.name / f"{assignment.name}.ipynb" for assignment in every]
