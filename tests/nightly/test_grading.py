"""Real runs of nbgrader, in the environment that grades: what students write, and what it gets.

One run grades every submission, each as a student of its own.
"""

import csv
import os
import subprocess
import tempfile
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest
import submissions
import toy_assignment
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from hypothesis.strategies import integers, sampled_from
from submissions import ROOT
from toy_assignment import CHANGES, RIGHT, SECRET

# What a student's cell may hold with a right answer, and costs no point.
HARMLESS = {
    "display": f"{RIGHT}\ndisplay(twice(2), display_id=True).update(3)",
    "magics": f"%load_ext autoreload\n%matplotlib inline\n%xmode Minimal\n{RIGHT}\ny = %time twice(3)",
    "time a cell": f"%%time\n{RIGHT}",
    "shell and help": f"!ls -l | head\nfiles = !ls\nimport math\nmath.sin?\n{RIGHT}\ntwice??",
    "figures": f"import matplotlib.pyplot as plt\nfig, ax = plt.subplots()\nplt.show()\n{RIGHT}",
    "progress in a function": "from tqdm import tqdm\ndef twice(x):\n    for i in tqdm(range(3)): pass\n"
    "    return 2 * x",
    "warnings in a function": "import warnings\ndef twice(x):\n    warnings.warn('x')\n    return 2 * x",
    "prints in a function": "def twice(x):\n    print(x, {1: x})\n    display(x)\n    return 2 * x",
    "floods": f"print('x' * 10**6)\nimport sys\nsys.stderr.write('x' * 10**6)\n{RIGHT}",
    "input after it": f"{RIGHT}\nname = input('Your name? ')",
    "an error after it": f"{RIGHT}\n1 / 0",
    "await": f"import asyncio\nasync def one(): return 1\nx = await one()\n{RIGHT}",
    "the future": f"from __future__ import annotations\ndef other(x: Nosuch): return x\n{RIGHT}",
    "main": f"{RIGHT}\nif __name__ == '__main__':\n    print(twice(1))",
    "other line ends": RIGHT.replace(": ", ":\r\n    "),
}
# How a function may try to show what it was given, the input of a hidden test, or to pass without an answer.
LEAKS = {
    "raise": "raise ValueError(x)",
    "a type": "raise type(f'E{x}', (Exception,), {})('no such cell')",
    "an assertion": "assert False, x",
    "warn": "import warnings\n    warnings.warn(str(x))",
    "exit": "raise SystemExit(x)",
    "a file": "raise ValueError(f'Cell In[4], line 1 {x}')",
    "points": "import sys\n    sys.displayhook(3.0)\n    return 0",
}
LATER = "try:\n    said = kept\nexcept NameError:\n    said = 0\nprint(said)\nraise ValueError(str(said))"


def student(name):
    return "".join(letter if letter.isalnum() else "-" for letter in name)


def graded(python, source, folder, handed_in):
    """Grade what is handed in, a notebook or bytes by name of a student and assignment."""
    for (name, assignment), notebook in handed_in.items():
        path = folder / "in" / student(name) / assignment / f"{assignment}.ipynb"
        path.parent.mkdir(parents=True)
        path.write_bytes(
            notebook if isinstance(notebook, bytes) else nbformat.writes(notebook, version=4).encode()
        )
    call = (
        "from pathlib import Path\nfrom bookmaker.teaching import _grading as grading\n"
        f"grading.grade({str(folder / 'in')!r}, Path({str(source)!r}), Path({str(folder / 'out')!r}))"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    done = subprocess.run([python, "-c", call], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with (folder / "out" / "grades.csv").open() as file:
        rows = {(row["student"], row["assignment"]): row for row in csv.DictReader(file)}
    pages = {path.stem: path.read_text() for path in (folder / "out" / "feedback").iterdir()}
    return SimpleNamespace(rows=rows, pages=pages)


@pytest.fixture(scope="module")
def python():
    """Return the Python of the environment that grades, which is made if it is missing."""
    subprocess.run(["make", ".venv-grading/.stamp"], cwd=ROOT, check=True)
    return ROOT / ".venv-grading" / "bin" / "python"


@pytest.fixture(scope="module")
def toy(python, tmp_path_factory):
    """Return the grades of every submission of the toy."""
    folder = tmp_path_factory.mktemp("toy")
    (folder / "assignments" / "toy").mkdir(parents=True)
    nbformat.write(toy_assignment.notebook(), folder / "assignments" / "toy" / "toy.ipynb")
    made = {name: toy_assignment.submission(source) for name, source in HARMLESS.items()}
    made |= {name: toy_assignment.submission(source, change) for name, (change, source, _) in CHANGES.items()}
    for name, leak in LEAKS.items():
        answer = f"def twice(x):\n    global kept\n    kept = x\n    if x == 3: return 6\n    {leak}"
        made[f"leak {name}"] = toy_assignment.submission(answer, thrice=LATER)
    made["nothing done"] = toy_assignment.released()
    made["one mistake"] = toy_assignment.submission(
        "def twice(x): return 7", thrice="def thrice(x): return x + twice(x)"
    )
    made["no end"] = toy_assignment.submission("def twice(x):\n    while True: pass")
    made["ends itself"] = toy_assignment.submission("import os\nos._exit(0)")
    made["no notebook"] = b'{"cells": [7]}'
    return graded(python, folder / "assignments", folder, {(name, "toy"): one for name, one in made.items()})


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("name", HARMLESS)
def test_what_a_notebook_may_hold_costs_no_point(toy, name):
    assert toy.rows[student(name), "toy"]["score"] == "3", toy.pages[student(name)]


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("name", CHANGES)
def test_what_a_student_does_to_other_cells_changes_no_grade(toy, name):
    assert toy.rows[student(name), "toy"]["score"] == str(CHANGES[name][2]), toy.pages[student(name)]


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("name", LEAKS)
def test_no_page_shows_the_input_of_a_hidden_test(toy, name):
    page = toy.pages[student(f"leak {name}")]
    assert toy.rows[student(f"leak {name}"), "toy"]["score"] == "0"
    assert SECRET not in page and "hidden" in page


def test_a_mistake_costs_its_points_once(toy):
    assert toy.rows[student("one mistake"), "toy"]["score"] == "2"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nothing done", "NotImplementedError in assert twice(3) == 6"),
        ("no end", "did not end within"),
        ("ends itself", "ended the program"),
        ("no notebook", "cannot be read"),
    ],
)
def test_what_gets_no_point_is_told_why(toy, name, words):
    assert toy.rows[student(name), "toy"]["score"] == "0" and words in toy.pages[student(name)]


def test_the_assignments_of_the_book_are_graded_as_they_are_meant(python, tmp_path):
    handed_in, lost = {}, {}
    for name, paths in submissions.WRONG.items():
        handed_in["right", name] = submissions.read(name)
        handed_in["wrong", name] = submissions.read(name)
        cell = submissions.wrong(handed_in["wrong", name], paths[0])
        lost[name] = f"test-{cell.metadata.nbgrader.grade_id}"
    result = graded(python, ROOT / "assignments", tmp_path, handed_in)
    for name, test in lost.items():
        assert result.rows["right", name]["score"] == result.rows["right", name]["points"] == "10"
        points = {
            cell.id: cell.metadata.get("nbgrader", {}).get("points") for cell in submissions.read(name).cells
        }
        assert float(result.rows["wrong", name]["score"]) == 10 - points[test]
    assert result.rows["right", "6_review"]["by_hand"] == "10"


def test_a_release_has_no_solution_and_no_hidden_test(python, tmp_path):
    call = (
        "from pathlib import Path\nfrom bookmaker.teaching import _grading as grading\n"
        f"grading.Course(Path({str(tmp_path / 'course')!r}), Path('assignments'))"
        f".release(Path({str(tmp_path / 'out')!r}))"
    )
    subprocess.run([python, "-c", call], cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=True)
    for name in submissions.WRONG:
        assert (tmp_path / "out" / name / "rubric.md").is_file()
        released = nbformat.read(tmp_path / "out" / name / f"{name}.ipynb", as_version=4)
        for short, whole in zip(released.cells, submissions.read(name).cells, strict=True):
            lines = whole.source.splitlines()
            marks = [at for at, line in enumerate(lines) if "### BEGIN" in line]
            kept = lines[: marks[0]] if marks else lines
            assert short.source.splitlines()[: len(kept)] == kept, "what is left stands as it stood"
            assert "### " not in short.source and not short.get("attachments")
            if marks:
                secret = [line for line in lines[marks[0] + 1 :] if "### END" not in line]
                assert secret[0] not in short.source


ANSWERS = {  # source -> whether it is right; {0} is the function, {1} what the right one returns
    "def {0}(x): return {1}": True,
    "def {0}(x): return x": False,
    "def {0}(x): raise KeyError(x)": False,
    "1 / 0\ndef {0}(x): return {1}": False,
    "def {0}(x:": False,
}
RETURNS = {"twice": ("2 * x",), "thrice": ("3 * x", "x + twice(x)")}
POINTS = {"twice": 3, "thrice": 2}
SCRATCH = ["1 / 0", "print(1)", "%matplotlib inline", "def x(:", "secret = 7", "student = 'bob'"]


class Submission(RuleBasedStateMachine):
    """Any order of edits to a notebook: a task has its points if its last answer is right, and else none."""

    python = folder = None  # set by the test

    def __init__(self):
        super().__init__()
        self.notebook, self.right = toy_assignment.released(), dict.fromkeys(POINTS, False)

    def cell(self, name):
        return next((cell for cell in self.notebook.cells if cell.id == name), None)

    @rule(task=sampled_from([*POINTS]), answer=sampled_from([*ANSWERS]), which=integers(0, 1))
    def answer(self, task, answer, which):
        if self.cell(task):
            returned = RETURNS[task][which % len(RETURNS[task])]
            self.cell(task).source, self.right[task] = answer.format(task, returned), ANSWERS[answer]

    @rule(place=integers(0, 9), source=sampled_from(SCRATCH))
    def add_a_cell(self, place, source):
        self.notebook.cells.insert(place, nbformat.v4.new_code_cell(source))

    @rule(place=integers(0, 9))
    def remove_a_cell(self, place):
        gone = self.notebook.cells[place : place + 1]
        self.right |= {cell.id: False for cell in gone if cell.id in POINTS}
        del self.notebook.cells[place : place + 1]

    @rule(task=sampled_from([*POINTS]))
    def change_a_test(self, task):
        if cell := self.cell(f"test-{task}"):
            cell.source = "pass"
            cell.metadata.nbgrader["points"] = 1000

    @rule()
    def turn_the_order_around(self):
        self.notebook.cells.reverse()

    def teardown(self):
        place = Path(tempfile.mkdtemp(dir=self.folder))
        result = graded(self.python, self.folder / "assignments", place, {("ann", "toy"): self.notebook})
        points = sum(POINTS[task] for task, right in self.right.items() if right)
        assert result.rows["ann", "toy"]["score"] == str(points), result.pages["ann"]
        assert result.rows["ann", "toy"]["points"] == "5"


@pytest.mark.wrong_numbers
def test_a_task_has_its_points_if_and_only_if_its_last_answer_is_right(python, tmp_path):
    (tmp_path / "assignments" / "toy").mkdir(parents=True)
    nbformat.write(toy_assignment.notebook(), tmp_path / "assignments" / "toy" / "toy.ipynb")
    Submission.python, Submission.folder = python, tmp_path
    limits = settings(
        max_examples=15, stateful_step_count=8, deadline=None, suppress_health_check=[*HealthCheck]
    )
    run_state_machine_as_test(Submission, settings=limits)
