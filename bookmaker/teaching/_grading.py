"""Grades for submissions, which lie as nbgrader has them: `<student>/<assignment>/<assignment>.ipynb`.

Setup and tests are the teacher's; the student's are the cells that were left to them and those that they
added. These run as in nbgrader, with errors allowed: a cell that fails after it defined a function costs
nothing. The tests run here, and the student's functions in a `Sandbox`, so that nothing there can see a test,
change one, or write a grade. Where the tests of a task failed, its right solution runs there for the later
ones, and what ran before can read it: from then on, a student is told no words of that process. Nor are they
told words of a process that was given the input of a hidden test, which ends with that test; of a hidden
test's own words they see what is typed there, without the values in it.
"""

import ast
import builtins
import contextlib
import csv
import io
import json
import math
import os
import re
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from nbformat import NotebookNode

from bookmaker.runner import folders
from bookmaker.teaching import _assignments
from bookmaker.teaching._assignments import Assignment
from bookmaker.teaching._sandbox import UNDEFINED, Box, Sandbox
from privhelpers.artifacts import write_atomic
from privhelpers.errors import ConfinedFailed, DamagedArtifact, InvalidParameter, MissingArtifact
from privhelpers.processes import open_regular
from privhelpers.text import inert, inserted

LARGEST = 32 * 2**20  # bytes of a submitted notebook, with its outputs
COPIES = 5  # of one cell that run, the last ones
ENDS = 4  # cells that end their box; after so many, none that a student added runs
TEST_SECONDS = 30  # of processor time that a test may take beside the student's functions
PLACES = (
    "holds nothing to grade; each notebook stands in <student>/<assignment>/<assignment>.ipynb, "
    "and a student is letters, digits, - and _"
)
STUDENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
MISSING = "no such cell"
UNTOLD = "a hidden test did not hold"
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


def _answers(path: Path) -> list[tuple[str, str]]:
    """Return grade_id (or id, if an editor lost that) and source of each cell of code, in their order.

    Raises:
        InvalidParameter: it cannot be read; the message says why.
    """
    try:
        if path.resolve() != path.parents[2].resolve().joinpath(*path.parts[-3:]):
            raise InvalidParameter("lies behind a link, as somebody else's would")
        with os.fdopen(open_regular(path, os.O_RDONLY), "rb") as file:
            if len(content := file.read(LARGEST + 1)) > LARGEST:
                raise InvalidParameter(
                    f"is larger than {LARGEST >> 20} MiB; clear its outputs and hand it in again"
                )
        notebook, answers = json.loads(content.decode("utf-8-sig")), []
        # Version 3 of the format had sheets, and called a source of code its input.
        sheets = [notebook] if "cells" in notebook else notebook["worksheets"]
        for cell in [cell for sheet in sheets for cell in sheet["cells"]]:
            meta = (cell.get("metadata") or {}).get("nbgrader") or {}
            source = cell.get("source", cell.get("input", ""))
            if cell["cell_type"] == "code":
                answers.append((str(meta.get("grade_id") or cell.get("id") or ""), "".join(source)))
    except InvalidParameter:
        raise
    except FileNotFoundError:
        raise InvalidParameter("was not handed in") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RuntimeError):
        raise InvalidParameter("is no notebook that can be read; save it again in Jupyter") from None
    return answers


def _by_place(answers: list[tuple[str, str]], known: set[str]) -> dict[str, list[str]]:
    """Return the sources of a student by the cell of the assignment that they belong to or follow.

    Args:
        answers: name and source of each cell of theirs, in their order.
        known: names of the cells of the assignment.

    Returns:
        Under "=name" the cells of that name: if it was copied, there are several, and the last one counts
        because all run. Under "+name" the cells that the student added between that one and the next; "+" for
        those before the first.
    """
    places: dict[str, list[str]] = {}
    place = "+"
    for name, source in answers:
        if name in known:
            place = f"+{name}"
            places.setdefault(f"={name}", []).append(source)
        else:
            places.setdefault(place, []).append(source)
    return places


def _functions(source: str) -> list[str]:
    """Return the names of the functions that a solution defines."""
    return [node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]


class _Run:
    """The cells of an assignment, in order: the student's in a box, the others here."""

    def __init__(
        self, assignment: Assignment, answers: list[tuple[str, str]], student: str, sandbox: Sandbox
    ) -> None:
        self._assignment, self._sandbox = assignment, sandbox
        known = {self._name(cell) for cell in assignment.notebook.cells if self._runs(cell)}
        self._answers = _by_place(answers, known)
        self._student, self._box, self._done = student, None, 0
        self._steps: list[tuple[str, str]] = []  # for the box: name and code of each cell so far
        self._broken: dict[str, str] = {}  # cells that failed, and how
        self._fatal: set[tuple[str, str]] = set()  # name and code of the cells that ended their box
        self._right: dict[str, str] = {}  # the teacher's solutions of the cells since the last test
        self._functions: dict[str, str] = {}  # of the solutions so far: in which cell
        self._here: dict[str, object] = {"__name__": "__tests__"}
        self._solved = False  # whether a right solution has stood in the box
        self._hidden = False  # whether the box was given the input of a hidden test
        self._sources: dict[str, str] = {}  # of the teacher's cells that ran here

    @staticmethod
    def _runs(cell: NotebookNode) -> bool:
        return cell.cell_type == "code" and bool(
            _assignments.nbgrader(cell) or "parameters" in cell.metadata.get("tags", ())
        )

    @staticmethod
    def _name(cell: NotebookNode) -> str:
        return _assignments.nbgrader(cell).get("grade_id", "parameters")

    def tasks(self) -> Iterator[Task]:
        """Grade, one test cell after the other."""
        outcomes: list[str] = []  # of the tests since the last solution
        try:
            self._added("+")
            for cell in filter(self._runs, self._assignment.notebook.cells):
                meta, name = _assignments.nbgrader(cell), self._name(cell)
                if _assignments.is_test(cell):
                    outcomes.append(says := self._test(name, cell.source))
                    yield Task(name, 0 if says else meta["points"], meta["points"], says or "passed")
                elif meta.get("solution"):
                    if outcomes:  # not before all tests of a solution: the later ones would pass by ours
                        self._go_on(failed=any(outcomes))
                        outcomes = []
                    theirs = self._answers.get(f"={name}", [f"raise NotImplementedError({MISSING!r})"])
                    self._steps += [(name, source) for source in theirs[-COPIES:]]
                    self._right[name] = cell.source
                    self._functions |= dict.fromkeys(_functions(cell.source), name)
                else:
                    code = NUMBER.sub(lambda found: f"{found[1]}{self._student!r}", cell.source)
                    self._steps.append((name, code))
                    self._sources[f"<{name}>"] = code
                    try:
                        exec(compile(code, f"<{name}>", "exec"), self._here)
                    except (Exception, SystemExit) as error:
                        raise self._refusal(name, error) from error
                self._added(f"+{name}")
        finally:
            if self._box:
                self._box.close()

    def _added(self, place: str) -> None:
        """Let the cells run that the student added at a place; what they are called is not known."""
        self._steps += [(place, source) for source in self._answers.get(place, ())]

    def _go_on(self, *, failed: bool) -> None:
        """Let a solution after tests that failed use right ones: no mistake costs points twice."""
        if failed:
            self._solved = True
            self._steps = [(name, self._right.get(name, code)) for name, code in self._steps]
            self._steps += self._right.items()  # whatever a cell that was added defines
            self._broken = {name: said for name, said in self._broken.items() if name not in self._right}
            self._box.close()
        self._right = {}

    def _current_box(self) -> Box:
        """Return a box in which every cell so far has run, but those that end a box."""
        if self._box is None or self._box.ended:
            self._box, self._done, self._hidden = self._sandbox.open(), 0, False
        for name, code in self._steps[self._done :]:
            self._done += 1
            ends, added = len(self._fatal), name.startswith("+")
            if (name, code) not in self._fatal and not (added and ends >= ENDS):
                try:
                    self._box.run(code, name=name)
                    self._broken.pop(name, None)
                except ConfinedFailed as error:
                    self._broken[name] = self._said(error)
                    if self._box.ended:
                        self._fatal.add((name, code))
                        return self._current_box()
        return self._box

    def _function(self, name: str, cell: str, box: Box) -> Callable:
        def function(*arguments: object, **keywords: object) -> object:
            try:
                return box.call(name, *arguments, **keywords)
            except ConfinedFailed as error:
                # What is not there, because its cell failed, is told by how that failed.
                if cell in self._broken and str(error) == f"NameError: {UNDEFINED.format(name)}":
                    raise _Failed(f"the cell {cell} failed: {self._broken[cell]}") from None
                raise _Failed(f"{name}: {self._said(error)}") from None

        return function

    def _said(self, error: ConfinedFailed) -> str:
        """Return of what a box said the words that a student may read."""
        kind, _, words = str(error).partition(": ")
        if not (self._solved or self._hidden) or (kind in ERRORS and words == MISSING):
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
        shown, hidden = _parts(source)
        names = self._here | theirs
        try:
            with _in_time():
                exec(compile(shown, "<tests>", "exec"), names)
                self._hidden = bool(hidden.body)
                exec(compile(hidden, "<tests>", "exec"), names)
        except SystemExit as error:
            raise self._refusal(name, error) from error
        except Exception as error:  # what a student's answer does to a test is no fault of ours
            return inert(self._words(error, source)[:400]) or "a test did not hold"
        finally:
            if self._hidden:
                box.close()
        return ""

    def _words(self, error: Exception, source: str) -> str:
        """Return what a test may say: nothing of a value if it is hidden."""
        kind, text = type(error).__name__, str(error)
        if isinstance(error, _Failed):
            return text
        if self._hidden:
            if isinstance(error, AssertionError):
                return _typed(error, self._sources | {"<tests>": source}) or UNTOLD
            return f"{UNTOLD}: {kind}" if kind in ERRORS else UNTOLD
        if isinstance(error, AssertionError):
            return text
        return kind if self._solved else f"{kind}: {text}"


def _parts(source: str) -> tuple[ast.Module, ast.Module]:
    """Return a test cell in two: what a student can read, and the rest from its first hidden test on."""
    tree = ast.parse(source)
    mark = _assignments.HIDDEN.search(source)
    first = source[: mark.start()].count("\n") + 1 if mark else math.inf
    shown = [node for node in tree.body if node.end_lineno < first]
    return ast.Module(shown, []), ast.Module(tree.body[len(shown) :], [])


def _typed(error: AssertionError, sources: dict[str, str]) -> str:
    """Return the words of an assertion as they are typed in one of some sources, with ... for each value."""
    lines = [
        (frame.f_code.co_filename, line)
        for frame, line in traceback.walk_tb(error.__traceback__)
        if frame.f_code.co_filename in sources
    ]
    if not lines:
        return ""
    file, line = lines[-1]
    for node in ast.walk(ast.parse(sources[file])):
        if isinstance(node, ast.Assert) and node.lineno <= line <= node.end_lineno:
            parts = node.msg.values if isinstance(node.msg, ast.JoinedStr) else [node.msg]
            texts = [str(part.value) if isinstance(part, ast.Constant) else "..." for part in parts]
            return "".join(texts) if any(isinstance(part, ast.Constant) for part in parts) else ""
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
            "SUBMITTED: name the folder; for example: python -m bookmaker grade --submitted build/submitted"
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
