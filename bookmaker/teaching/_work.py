"""What nbgrader is given of a submission, and what a student is told of its grade.

Before nbgrader grades, the cells of a student are put into the released notebook, so cells that a
student deleted, moved, or changed elsewhere neither cost nor give a point. The page of feedback shows the
words of the tests and no output, because the output of a cell may show the input of a hidden test.
"""

import ast
import builtins
import re
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from privhelpers.text import inserted

SECONDS = 30  # for each cell
HELPERS = re.compile(r"\bbookmaker\b|\bprivhelpers\b(?!\.rng\b| import rng\b)")
COLOR = re.compile(r"\x1b\[[0-9;]*m")
FRAME = re.compile(r"Cell In\[\d+\], line (\d+)")  # of a traceback by IPython, the test's own frame first
# The types that a student may be told of: a class may have any name.
ERRORS = {name for name in dir(builtins) if name.endswith(("Error", "Exit", "Interrupt"))}


def is_test(cell: NotebookNode) -> bool:
    """Return whether a cell holds tests of a solution above it."""
    return _is(cell, "grade") and not is_solution(cell)


def is_solution(cell: NotebookNode) -> bool:
    """Return whether a cell is left to the student."""
    return _is(cell, "solution")


def _is(cell: NotebookNode, what: str) -> bool:
    """Return whether the metadata of a cell say to nbgrader that it is a solution, say."""
    return bool(cell.metadata.get("nbgrader", {}).get(what))


def name_of(cell: NotebookNode) -> str:
    """Return the grade_id of a cell, or its id, which some editors keep where they lose metadata."""
    return (cell.metadata or {}).get("nbgrader", {}).get("grade_id") or cell.get("id", "")


def merged(released: NotebookNode, submitted: NotebookNode, student: str) -> NotebookNode:
    """Return the released notebook with the cells of a student.

    Answers are put where the released notebook has them; of several copies of one, all run and the last one
    counts. Cells that the student added follow the cell that they followed. Setup, tests, and the student's
    number are the course's.
    """
    known = [cell for cell in released.cells if _graded(cell)]
    places: dict[str, list[NotebookNode]] = {}
    place = "+"
    for cell in submitted.cells:
        name = name_of(cell)
        if name in map(name_of, known):
            place = f"+{name}"
            places.setdefault(f"={name}", []).append(cell)
        elif cell.cell_type == "code":
            places.setdefault(place, []).append(cell)
    cells = _plain(places.get("+", []))
    for cell in known:
        answers = places.get(f"={name_of(cell)}", [])
        if is_solution(cell) and answers:
            cells += _plain(answers[:-1])
            cell.source = answers[-1].source
        elif not is_solution(cell) and "parameters" in cell.metadata.get("tags", []):
            cell.source = f"student = {student!r}"
        cells += [cell, *_plain(places.get(f"+{name_of(cell)}", []))]
    released.cells = cells
    return released


def imports_helpers(notebook: NotebookNode) -> bool:
    """Return whether a student's cell of a merged notebook names helpers of the book that may do the task."""
    return any(HELPERS.search(cell.source) for cell in notebook.cells if not _is(cell, "locked"))


def _graded(cell: NotebookNode) -> bool:
    """Return whether a released cell takes part in grading."""
    return "nbgrader" in cell.metadata or "parameters" in cell.metadata.get("tags", [])


def _plain(cells: list[NotebookNode]) -> list[NotebookNode]:
    return [new_code_cell(cell.source) for cell in cells]


def says(cell: NotebookNode) -> str:
    """Return what a test says, as it is typed in the test, without a value or a word of the student's."""
    error = next(iter(cell.outputs), None)
    if error is None:
        return "passed"
    if "CellTimeoutError" in [output.ename for output in cell.outputs]:  # after that of the interrupt
        return f"the test did not end within {SECONDS} s"
    frame = FRAME.search(COLOR.sub("", "\n".join(error.traceback)))
    line, lines = int(frame[1]) if frame else 0, cell.source.split("\n")
    if error.ename == "AssertionError" and (typed := _typed(cell.source, line)):
        return typed
    hidden = next((at for at, text in enumerate(lines, 1) if "BEGIN HIDDEN TESTS" in text), len(lines) + 1)
    kind = error.ename if error.ename in ERRORS else "an error"
    return f"{kind} in {lines[line - 1].strip() if 0 < line < hidden else 'a hidden test'}"


def _typed(source: str, line: int) -> str:
    """Return the message of the assertion at a line as it is typed, with ... for each value."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Assert) and node.lineno <= line <= node.end_lineno:
            parts = node.msg.values if isinstance(node.msg, ast.JoinedStr) else [node.msg]
            return "".join(str(part.value) if isinstance(part, ast.Constant) else "..." for part in parts)
    return ""


def feedback(student: str, grades: list[dict]) -> str:
    """Return the page for a student: points and what the tests say."""
    template = Path(__file__).with_name("feedback.html").read_text(encoding="utf-8")
    page = Environment(autoescape=True, finalize=inserted, undefined=StrictUndefined).from_string(template)
    return page.render(student=student, assignments=grades)


def failed(cell: NotebookNode) -> bool:
    """Return whether a cell that ran raised an error."""
    return any(output.output_type == "error" for output in cell.get("outputs", []))
