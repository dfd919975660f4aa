"""A part of `make teach`: nbgrader releases the assignments and grades what students handed in.

    python -m bookmaker.teaching._grading assignments
    python -m bookmaker.teaching._grading grade --submitted FOLDER

An assignment is `assignments/<name>/<name>.ipynb` in nbgrader's format, with `rubric.md` beside it. This
module runs in the environment of `requirements-grading.lock`, whose kernel runs the students' code. That code
can do what the user who grades can do; `assignments/Containerfile` is the place for code of strangers.

Source: nbgrader 0.9.6, `nbgrader.converters.autograde` and the manual's chapter on hidden tests.
"""

import argparse
import os
import re
import shutil
import sys
import tempfile
import warnings
from pathlib import Path

import nbformat
import pandas as pd
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell
from nbgrader import preprocessors, utils
from nbgrader.api import Gradebook
from nbgrader.apps import NbGraderAPI
from traitlets import Dict
from traitlets.config import Config

from bookmaker.teaching import _work
from privaudit.console import guarded, one_line
from privhelpers.errors import DamagedArtifact, InvalidParameter, MissingArtifact
from privhelpers.text import inert

ROOT = Path(__file__).parents[2]
STUDENT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
PLACES = (
    "contains nothing to grade; each notebook is <student>/<assignment>/<assignment>.ipynb, "
    "and a student is letters, digits, - and _"
)


class Execute(preprocessors.Execute):
    """Runs a notebook as nbgrader does, but a mistake costs its points once, and only errors fail a test.

    If a test failed, the teacher's solution is run before the student's next one, which may use it.
    nbgrader itself gives no point for a test that wrote to stderr, as a warning or a progress bar does.
    """

    solutions = Dict(help="assignment -> grade_id -> the teacher's code").tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: dict, km: object = None) -> tuple[NotebookNode, dict]:
        """Run all cells of a notebook."""
        self._answered, self._failed = [], False
        return super().preprocess(nb, resources, km)

    def preprocess_cell(
        self, cell: NotebookNode, resources: dict, cell_index: int
    ) -> tuple[NotebookNode, dict]:
        """Run one cell."""
        if utils.is_solution(cell) and self._failed:
            right = self.solutions[resources["nbgrader"]["assignment"]]
            for name in self._answered:
                self.execute_cell(new_code_cell(right[name]), cell_index, store_history=False)
            self._answered, self._failed = [], False
        cell, resources = super().preprocess_cell(cell, resources, cell_index)
        if _work.is_test(cell):
            cell.outputs = [output for output in cell.outputs if output.output_type == "error"]
            self._failed |= bool(cell.outputs)
        elif utils.is_solution(cell) and cell.cell_type == "code":
            self._answered.append(cell.metadata.nbgrader.grade_id)
        return cell, resources


class Course:
    """A course of nbgrader in a folder, with the assignments of the book released in it."""

    def __init__(self, folder: Path, source: Path) -> None:
        """Copy the assignments of `source` and let nbgrader release them; `names` are those of all.

        Raises:
            MissingArtifact: there is no assignment.
            DamagedArtifact: nbgrader refuses one.
        """
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # alembic's
        self._folder = folder
        self.names = sorted(path.parent.name for path in source.glob("*/*.ipynb"))
        if not self.names:
            raise MissingArtifact(
                "assignments/: contains no assignment, a folder with a notebook of its name"
            )
        shutil.copytree(source, folder / "source")
        self._source = {name: self._read("source", name) for name in self.names}
        config = Config()
        config.CourseDirectory.root = str(folder)
        config.Execute.timeout = _work.SECONDS
        config.Execute.extra_arguments = ["--HistoryManager.hist_file=:memory:", "--IPKernelApp.log_level=40"]
        config.Execute.solutions = {
            name: {_work.name_of(cell): cell.source for cell in notebook.cells if utils.is_solution(cell)}
            for name, notebook in self._source.items()
        }
        config.Autograde.autograde_preprocessors = [
            Execute,
            preprocessors.SaveAutoGrades,
            preprocessors.CheckCellMetadata,
        ]
        self._api = NbGraderAPI(config=config)
        for name in self.names:
            result = self._api.generate_assignment(name)
            if not result["success"]:
                raise DamagedArtifact(f"assignments/{name}: {one_line(result['log'])[-600:]}")

    def _read(self, step: str, *place: str) -> NotebookNode:
        return nbformat.read(str(self._folder.joinpath(step, *place, f"{place[-1]}.ipynb")), as_version=4)

    def grade(self, name: str, student: str, path: Path) -> dict:
        """Return what `feedback.html` and `grades.csv` need of one submission, whatever it contains.

        Args:
            name: of the assignment.
            student: whose data the tests use, whatever the notebook says.
            path: of the notebook, which need not exist.
        """
        cells = [cell for cell in self._source[name].cells if utils.is_grade(cell)]
        points = {_work.name_of(cell): cell.metadata.nbgrader.points for cell in cells if _work.is_test(cell)}
        by_hand = sum(cell.metadata.nbgrader.points for cell in cells if not _work.is_test(cell))
        scores, words = {}, {}
        try:
            notebook = _work.merged(
                self._read("release", name), nbformat.read(str(path), as_version=4), student
            )
        except FileNotFoundError:
            note = "The notebook was not handed in."
        except Exception:  # whatever nbformat finds in a file of a student
            note = "The notebook cannot be read; save it again in Jupyter."
        else:
            scores, words, note = self._autograded(name, student, notebook)
        tasks = [
            {"name": task, "score": scores.get(task, 0), "points": points[task], "says": words.get(task, "")}
            for task in points
        ]
        total = {"score": sum(task["score"] for task in tasks), "points": sum(points.values())}
        return {
            "student": student,
            "assignment": name,
            "note": note,
            "tasks": tasks,
            "by_hand": by_hand,
        } | total

    def _autograded(self, name: str, student: str, notebook: NotebookNode) -> tuple[dict, dict, str]:
        """Return the score of each test, what it says, and what a person should know."""
        place = self._folder / "submitted" / student / name / f"{name}.ipynb"
        place.parent.mkdir(parents=True)
        nbformat.write(notebook, str(place))
        result = self._api.autograde(name, student)
        if "DeadKernelError" in result.get("log", ""):
            return {}, {}, "A cell ended the program, so that nothing was graded."
        if not result["success"]:
            print(f"not graded: {student}/{name}: {inert(result['log'], keep=chr(10))}", file=sys.stderr)
            return {}, {}, "nbgrader could not grade the notebook; a person has to."
        cells = self._read("autograded", student, name).cells
        with Gradebook(self._api.coursedir.db_url) as book:
            grades = book.find_submission_notebook(name, name, student).grades
            scores = {grade.name: grade.auto_score for grade in grades}
        broken = [
            cell for cell in cells if utils.is_locked(cell) and not _work.is_test(cell) and _work.failed(cell)
        ]
        notes = [f"Cell {_work.name_of(cell)} of the course failed." for cell in broken]
        if _work.imports_helpers(notebook):
            notes.append("An answer imports the book's packages, which may do the task; a person decides.")
        return (
            scores,
            {_work.name_of(cell): _work.says(cell) for cell in cells if _work.is_test(cell)},
            " ".join(notes),
        )

    def release(self, folder: Path) -> None:
        """Put the students' versions and the rubrics in the place of a folder."""
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self._folder / "release", folder)


def grade(submitted: str, source: Path, folder: Path) -> tuple[int, list[str]]:
    """Grade all submissions; write `grades.csv` and a page for each student.

    Args:
        submitted: a folder with a folder for each student.
        source: the assignments.
        folder: where the results go; old pages of students are removed.

    Returns:
        How many grades there are, and the folders left out because no student has their name.

    Raises:
        InvalidParameter: no folder was named.
        MissingArtifact: there is nothing to grade.
        DamagedArtifact: nbgrader refuses an assignment.
    """
    if not submitted:
        raise InvalidParameter(
            "SUBMITTED: name the folder; for example: make teach SUBMITTED=build/submitted"
        )
    homes = [one for one in sorted(Path(submitted).glob("*")) if one.is_dir() and one.name[0] != "."]
    named = [home for home in homes if STUDENT.fullmatch(home.name)]
    with tempfile.TemporaryDirectory() as place:
        course = Course(Path(place), source)
        names = [name for name in course.names if any((home / name).is_dir() for home in named)]
        if not names:
            raise MissingArtifact(f"SUBMITTED={inert(submitted[:200])}: {PLACES}")
        grades = {
            home.name: [course.grade(name, home.name, home / name / f"{name}.ipynb") for name in names]
            for home in named
        }
    shutil.rmtree(folder / "feedback", ignore_errors=True)
    (folder / "feedback").mkdir(parents=True)
    for student, results in grades.items():
        (folder / "feedback" / f"{student}.html").write_text(
            _work.feedback(student, results), encoding="utf-8"
        )
    table = pd.DataFrame([one for results in grades.values() for one in results])
    columns = ["student", "assignment", "score", "points", "by_hand", "note"]
    table.to_csv(folder / "grades.csv", columns=columns, index=False, float_format="%g")
    odd = [inert(home.name[:100]) for home in homes if home not in named]
    return len(named) * len(names), odd


def _command(arguments: list[str] | None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bookmaker.teaching._grading")
    parser.add_argument("command", choices=("assignments", "grade"))
    parser.add_argument("--submitted", default="", help="a folder with a folder for each student")
    options = parser.parse_args(arguments)
    warnings.filterwarnings("ignore", module="nbgrader")  # about the order in which it fills its database
    build = ROOT / "build"
    if options.command == "grade":
        count, odd = grade(options.submitted, ROOT / "assignments", build / "grades")
        print(f"{count} grades in build/grades/grades.csv, feedback beside it")
        for name in odd:
            print(f"not graded: {name}: rename it to letters, digits, - and _", file=sys.stderr)
        return 1 if odd else 0
    with tempfile.TemporaryDirectory() as place:
        course = Course(Path(place), ROOT / "assignments")
        course.release(build / "assignments")
    print(f"{len(course.names)} assignments for students: build/assignments")
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code: 2 for a refusal, 1 for a folder that was not graded."""
    return guarded(lambda: _command(arguments), one_line)


if __name__ == "__main__":
    sys.exit(main())
