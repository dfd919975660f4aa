"""Grades for submissions, which lie as nbgrader has them: `<student>/<assignment>/<assignment>.ipynb`.

Of a submission only the cells count that were left to the student; setup and tests are the teacher's. The
tests run here, and the student's functions in a `Sandbox`, so that nothing there can see a test, change one,
or write a grade. Where the tests of a task failed, its right solution runs there for the later ones, and what
ran before can read it: from then on, a student is told no words of that process. What a test says must not
quote an answer.
"""

import ast
import builtins
import contextlib
import csv
import io
import json
import os
import re
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, StrictUndefined

from bookmaker.runner import folders
from bookmaker.teaching import _assignments
from bookmaker.teaching._assignments import Assignment
from bookmaker.teaching._sandbox import Box, Sandbox
from privhelpers.artifacts import write_atomic
from privhelpers.errors import ConfinedFailed, DamagedArtifact, InvalidParameter, MissingArtifact
from privhelpers.processes import open_regular
from privhelpers.text import inert, inserted

LARGEST = 5 * 2**20  # bytes of a submitted notebook
TEST_SECONDS = 30  # of processor time that a test may take beside the student's functions
PLACES = (
    "holds nothing to grade; each notebook stands in <student>/<assignment>/<assignment>.ipynb, "
    "and a student is letters, digits, - and _"
)
STUDENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
TWICE, MISSING = "this cell stands in the notebook twice", "no such cell"
# The types that a student may be told of: a class may have any name.
ERRORS = {
    name for name, one in vars(builtins).items() if isinstance(one, type) and issubclass(one, BaseException)
}
NUMBER = re.compile(r"^(student(?:: str)? = )[\"'][^\"']*[\"']", re.M)


@dataclass(frozen=True)
class Task:
    """What the tests of one cell gave: all of its points, or none with a reason in `says`."""

    name: str
    score: float
    points: float
    says: str


@dataclass(frozen=True)
class Graded:
    """One student's submission of one assignment; `note` says in our words what was wrong with all of it."""

    student: str
    assignment: str
    tasks: tuple[Task, ...]
    by_hand: float
    note: str = ""

    @property
    def score(self) -> float:
        """What the tests gave."""
        return sum(task.score for task in self.tasks)

    @property
    def points(self) -> float:
        """What they could give."""
        return sum(task.points for task in self.tasks)


class _Failed(Exception):
    """A student's function did not answer a test."""


@contextlib.contextmanager
def _in_time() -> Iterator[None]:
    """End a test that an answer keeps from ending, such as a count of steps without end."""

    def end(*_: object) -> None:
        raise _Failed(f"the test did not end within {TEST_SECONDS} s with what came back")

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, TEST_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _answers(path: Path) -> dict[str, str]:
    """Return what stands in each cell of a submission, by its grade_id (its id where that was lost).

    Raises:
        InvalidParameter: it cannot be read; the message says why.
    """
    answers: dict[str, str] = {}
    try:
        if path.resolve() != path.parents[2].resolve().joinpath(*path.parts[-3:]):
            raise InvalidParameter("lies behind a link, as somebody else's would")
        with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
            if len(content := file.read(LARGEST + 1)) > LARGEST:
                raise InvalidParameter(
                    f"is larger than {LARGEST >> 20} MiB; clear its outputs and hand it in again"
                )
        for cell in json.loads(content)["cells"]:
            name = cell["metadata"].get("nbgrader", {}).get("grade_id", cell.get("id"))
            source = "".join(cell["source"])
            # Which of two is meant, nobody can know.
            answers[name] = f"raise SyntaxError({TWICE!r})" if name in answers else source
    except InvalidParameter:
        raise
    except FileNotFoundError:
        raise InvalidParameter("was not handed in") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError):
        raise InvalidParameter("is no notebook that can be read; save it again in Jupyter") from None
    return answers


def _functions(source: str) -> list[str]:
    """Return the names of the functions that a solution defines."""
    return [node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]


class _Run:
    """The cells of an assignment, in order: the student's in a box, the others here."""

    def __init__(
        self, assignment: Assignment, answers: dict[str, str], student: str, sandbox: Sandbox
    ) -> None:
        self._assignment, self._answers, self._sandbox = assignment, answers, sandbox
        self._student, self._box, self._done = student, None, 0
        self._steps: list[tuple[str, str]] = []  # for the box: name and code of each cell so far
        self._broken: dict[str, str] = {}  # cells that failed, and how
        self._right: dict[str, str] = {}  # the teacher's solutions of the cells since the last test
        self._functions: dict[str, str] = {}  # of the solutions so far: in which cell
        self._here: dict[str, object] = {"__name__": "__tests__"}
        self._solved = False  # whether a right solution has stood in the box

    def tasks(self) -> Iterator[Task]:
        """Grade, one test cell after the other."""
        outcomes: list[str] = []  # of the tests since the last solution
        try:
            for cell in self._assignment.notebook.cells:
                meta = _assignments.nbgrader(cell)
                if cell.cell_type != "code" or not (meta or "parameters" in cell.metadata.get("tags", ())):
                    continue
                name = meta.get("grade_id", "parameters")
                if _assignments.is_test(cell):
                    outcomes.append(says := self._test(name, cell.source))
                    yield Task(name, 0 if says else meta["points"], meta["points"], says or "passed")
                elif meta.get("solution"):
                    if outcomes:  # not before all tests of a solution: the later ones would pass by ours
                        self._go_on(failed=any(outcomes))
                        outcomes = []
                    self._steps.append(
                        (name, self._answers.get(name, f"raise NotImplementedError({MISSING!r})"))
                    )
                    self._right[name] = cell.source
                    self._functions |= dict.fromkeys(_functions(cell.source), name)
                else:
                    code = NUMBER.sub(lambda found: f"{found[1]}{self._student!r}", cell.source)
                    self._steps.append((name, code))
                    try:
                        exec(compile(code, f"<{name}>", "exec"), self._here)
                    except (Exception, SystemExit) as error:
                        raise self._refusal(name, error) from error
        finally:
            if self._box:
                self._box.close()

    def _go_on(self, *, failed: bool) -> None:
        """Let a solution after tests that failed use right ones: no mistake costs points twice."""
        if failed:
            self._solved = True
            self._steps = [(name, self._right.get(name, code)) for name, code in self._steps]
            self._broken = {name: said for name, said in self._broken.items() if name not in self._right}
            self._box.close()
        self._right = {}

    def _current_box(self) -> Box:
        """Return a box in which every cell so far has run, but those that end a box."""
        if self._box is None or self._box.ended:
            self._box, self._done = self._sandbox.open(), 0
        for name, code in self._steps[self._done :]:
            self._done += 1
            if not self._broken.get(name, "").startswith("the program was ended"):
                try:
                    self._box.run(code, name=name)
                except ConfinedFailed as error:
                    self._broken[name] = self._said(error)
                    if self._box.ended:
                        return self._current_box()
        return self._box

    def _function(self, name: str, cell: str, box: Box) -> Callable:
        def function(*arguments: object, **keywords: object) -> object:
            if cell in self._broken:
                raise _Failed(f"the cell {cell} failed: {self._broken[cell]}")
            try:
                return box.call(name, *arguments, **keywords)
            except ConfinedFailed as error:
                raise _Failed(f"{name}: {self._said(error)}") from None

        return function

    def _said(self, error: ConfinedFailed) -> str:
        """Return of what a box said the words that a student may read."""
        kind, _, words = str(error).partition(": ")
        if not self._solved or (kind in ERRORS and words in (TWICE, MISSING)):
            return str(error)
        if self._box.ended:
            return self._box.ended.partition(" with exit code")[0]
        return kind if kind in ERRORS else "an error"

    def _refusal(self, name: str, error: BaseException) -> DamagedArtifact:
        """Return what to raise where the teacher's own cell failed."""
        where = f"assignments/{self._assignment.name}, cell {name}"
        return DamagedArtifact(f"{where}: {type(error).__name__}: {error}; mend the cell and try again")

    def _test(self, name: str, source: str) -> str:
        """Return "" if the tests of a cell pass, and else what they say."""
        box = self._current_box()
        theirs = {name: self._function(name, cell, box) for name, cell in self._functions.items()}
        try:
            with _in_time():
                exec(compile(source, "<tests>", "exec"), self._here | theirs)
        except SystemExit as error:
            raise self._refusal(name, error) from error
        except Exception as error:  # what a student's answer does to a test is no fault of ours
            text, kind = str(error), type(error).__name__
            if not isinstance(error, AssertionError | _Failed):
                text = kind if self._solved else f"{kind}: {text}"
            return inert(text[:400]) or "a test did not hold"
        return ""


def grade(assignment: Assignment, path: Path, student: str, sandbox: Sandbox) -> Graded:
    """Grade one submission; whatever it holds, there is a result.

    Args:
        assignment: as the teacher has it.
        path: of the submitted notebook, which need not exist.
        student: whose data the tests use, whatever the notebook says.
        sandbox: for the student's code.

    Raises:
        DamagedArtifact: a cell of the teacher's fails.
    """
    try:
        tasks = tuple(_Run(assignment, _answers(path), student, sandbox).tasks())
        return Graded(student, assignment.name, tasks, assignment.by_hand)
    except InvalidParameter as error:
        tests = [cell for cell in assignment.notebook.cells if _assignments.is_test(cell)]
        lost = [
            Task(_assignments.nbgrader(cell)["grade_id"], 0, _assignments.points(cell), "") for cell in tests
        ]
        return Graded(student, assignment.name, tuple(lost), assignment.by_hand, f"The notebook {error}.")


def students(submitted: str) -> tuple[list[Path], list[str]]:
    """Return the folders of students, and the names of those whose name is none of a student.

    Raises:
        InvalidParameter: nothing was given.
        MissingArtifact: it is no folder, or holds no student's.
    """
    if not submitted:
        raise InvalidParameter(
            "SUBMITTED: name the folder; for example: make grade SUBMITTED=build/submitted"
        )
    try:
        folders = [one for one in sorted(Path(submitted).glob("*")) if one.is_dir() and one.name[0] != "."]
    except (OSError, ValueError):  # no folder can have such a name
        folders = []
    named = [path for path in folders if STUDENT.fullmatch(path.name)]
    if not named:
        raise MissingArtifact(f"SUBMITTED={inert(submitted[:200])}: {PLACES}")
    return named, [inert(path.name[:100]) for path in folders if path not in named]


def feedback(student: str, grades: Sequence[Graded]) -> str:
    """Return the page for a student: points and what the tests say; the student's words are made inert."""
    template = Path(__file__).with_name("feedback.html").read_text(encoding="utf-8")
    page = Environment(autoescape=True, finalize=inserted, undefined=StrictUndefined).from_string(template)
    return page.render(student=student, assignments=grades)


def write(root: Path, submitted: str, folder: Path) -> tuple[list[Graded], list[str]]:
    """Grade whatever assignments somebody handed in; write `grades.csv` and a page for each student.

    Args:
        root: the repository.
        submitted: a folder with a folder for each student.
        folder: where the results go, made if it is missing; no page of another student stays there, and
            other files do.

    Returns:
        The grades, and what was left out because its folder's name is no student's.

    Raises:
        PrivHelpersError: there is nothing to grade, an assignment is damaged, or code cannot be confined.
    """
    named, odd = students(submitted)
    every = [one for one in _assignments.read(root) if any(any(home.glob(one.name)) for home in named)]
    if not every:
        raise MissingArtifact(f"SUBMITTED={inert(submitted[:200])}: {PLACES}")
    # What cannot be written is refused before the long work.
    with folders.replacing(folder, "feedback/*.html") as new, Sandbox() as sandbox:
        graded = {
            home.name: [
                grade(one, home / one.name / f"{one.name}.ipynb", home.name, sandbox) for one in every
            ]
            for home in named
        }
        for student, results in graded.items():
            write_atomic(new / "feedback" / f"{student}.html", feedback(student, results).encode())
        grades, table = [one for results in graded.values() for one in results], io.StringIO()
        rows = csv.writer(table, lineterminator="\n")
        rows.writerow(("student", "assignment", "score", "points", "by_hand", "note"))
        for one in grades:
            points = (f"{value:g}" for value in (one.score, one.points, one.by_hand))
            rows.writerow((one.student, one.assignment, *points, one.note))
        write_atomic(new / "grades.csv", table.getvalue().encode())
    return grades, odd
