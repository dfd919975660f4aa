"""Right submissions get full points and wrong ones do not, whatever they do to the grader."""

import csv
import json
import os
import signal
import socket
import sys
import time

import nbformat
import psutil
import pytest
import submissions
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from patience import LIMIT_SECONDS
from submissions import ROOT

from bookmaker.runner import notebooks, processes
from bookmaker.teaching import __main__, _assignments, _grading
from bookmaker.teaching._sandbox import Sandbox, pack, unpack
from privhelpers.errors import ConfinedFailed, DamagedArtifact, InvalidParameter, MissingArtifact

FORGED = """import os, struct
answer = b'{"answer": {"__reduce__": ["os.system", "id"]}}'
os.write(3, struct.pack("!I", len(answer)) + answer)"""
SEARCH = """import gc
def twice(x):
    held = [one for some in gc.get_objects() for one in gc.get_referents(some) if type(one) is str]
    return 2 * x if any(f"twice {x}" in one for one in held) else 0"""
EVERY = {one.name: one for one in _assignments.read(ROOT)}
WRONG = [(name, path) for name, paths in submissions.WRONG.items() for path in paths]
TWICE = "def twice(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION"
HIDDEN = """assert twice(3) == 6, 'twice 3'
### BEGIN HIDDEN TESTS
assert twice(secret) == 2 * secret, 'hidden'
### END HIDDEN TESTS"""
THRICE = TWICE.replace("twice", "thrice").replace("2 *", "x + twice(x) #")
# How many answers are right; of what two of the others ask for, two are all.
TWO = ("2_accountant", "6_review")
CALLS = [(name, right) for name in EVERY for right in range(2 if name in TWO else 3)]
# After a right solution: from some call on, its functions give answers that hold nothing, of shapes that
# broadcast to the right ones.
EMPTY = """

def emptied(answer):
    import numpy as np
    if isinstance(answer, tuple):
        return tuple(emptied(part) for part in answer)
    return np.empty({shape})

def later(function, calls):
    def answer(*arguments, **keywords):
        calls.append(function(*arguments, **keywords))
        return calls[-1] if len(calls) <= {right} else emptied(calls[-1])
    return answer

globals().update({{name: later(globals()[name], []) for name in {names}}})"""


@pytest.fixture(scope="module")
def sandbox():
    with Sandbox() as ready:
        yield ready


@pytest.fixture(scope="module")
def quick():
    with Sandbox(seconds=1, memory=2**27) as ready:
        yield ready


def cell(grade_id, source, **meta):
    flags = {"schema_version": 3, "grade": False, "solution": False, "locked": True, "grade_id": grade_id}
    return new_code_cell(source, id=grade_id, metadata={"nbgrader": flags | meta})


def toy():
    """Return an assignment of two tasks, of which the second uses the first."""
    tests = HIDDEN.replace("twice", "thrice")
    cells = [
        new_code_cell('student = "s000"', id="student", metadata={"tags": ["parameters"]}),
        cell("setup", "secret = len(student) * 1_000_003"),
        cell("twice", TWICE, solution=True, locked=False),
        cell("test-twice", HIDDEN, grade=True, points=3),
        cell("thrice", THRICE, solution=True, locked=False),
        cell("test-thrice", tests.replace("6", "9").replace("2", "3"), grade=True, points=2),
    ]
    return _assignments.Assignment("toy", new_notebook(cells=cells), "")


def submitted(tmp_path, change, name="ann", assignment=None):
    """Write what a student makes of the released toy and return its path."""
    assignment = assignment or toy()
    notebook = _assignments.student_version(assignment.notebook)
    change({one.id: one for one in notebook.cells}, notebook)
    path = tmp_path / "in" / name / "toy" / "toy.ipynb"
    path.parent.mkdir(parents=True)
    path.write_text(nbformat.writes(notebook))
    return path


def graded(tmp_path, sandbox, change):
    return _grading.grade(toy(), submitted(tmp_path, change), "ann", sandbox)


def answer(source):
    return lambda cells, notebook: cells["twice"].update(source=source)


def test_solutions_get_every_point_for_several_students(sandbox):
    assert len(EVERY) == 6
    for name, assignment in EVERY.items():
        assert 3 <= sum(map(_assignments.is_test, assignment.notebook.cells)) <= 5
        assert (assignment.points, assignment.by_hand) == (10, 10 * (name == "6_review"))
        path = ROOT / "assignments" / name / f"{name}.ipynb"
        for student in ("s000", "kk-41"):
            result = _grading.grade(assignment, path, student, sandbox)
            assert result.score == 10 and not result.note, result.tasks


@pytest.mark.parametrize("name, path", WRONG, ids=[f"{name}-{path.stem}" for name, path in WRONG])
def test_a_typical_wrong_solution_loses_the_points_of_its_task_alone(name, path, sandbox, tmp_path):
    notebook = nbformat.from_dict(EVERY[name].notebook)
    replaced = submissions.wrong(notebook, path)
    handed_in = tmp_path / "in" / "s000" / name / f"{name}.ipynb"
    notebooks.write(notebook, handed_in)
    tasks = _grading.grade(EVERY[name], handed_in, "s000", sandbox).tasks
    lost = [task for task in tasks if task.score < task.points]
    assert [task.name for task in lost] == [f"test-{replaced.metadata.nbgrader.grade_id}"]
    assert lost[0].says and "Error" not in lost[0].says, "a test's own words, not an accident"


@pytest.mark.parametrize("shape", ["(0, *np.shape(answer))", "(*np.shape(answer), 0)"])
@pytest.mark.parametrize("name, right", CALLS)
def test_an_answer_that_holds_nothing_gets_no_point(name, right, shape, sandbox, tmp_path):
    notebook = nbformat.from_dict(EVERY[name].notebook)
    for one in notebooks.code_cells(notebook):
        if _assignments.nbgrader(one).get("solution"):
            names = submissions.functions(one.source)
            one.source += EMPTY.format(shape=shape, right=right, names=names)
    path = tmp_path / "in" / "s000" / name / f"{name}.ipynb"
    notebooks.write(notebook, path)
    result = _grading.grade(EVERY[name], path, "s000", sandbox)
    assert result.score == 0, result.tasks
    assert not any("emptied" in task.says for task in result.tasks)


def test_there_are_three_typical_wrong_solutions_of_each():
    assert [len(paths) for paths in submissions.WRONG.values()] == [3] * 6


@pytest.mark.parametrize("name", EVERY)
def test_a_release_has_no_solution_no_hidden_test_and_gets_no_point(name, sandbox, tmp_path):
    notebook = _assignments.student_version(EVERY[name].notebook)
    path = tmp_path / "in" / "s000" / name / f"{name}.ipynb"
    notebooks.write(notebook, path)
    text = path.read_text()
    assert "SOLUTION" not in text and "HIDDEN" not in text
    for cells in zip(notebook.cells, EVERY[name].notebook.cells, strict=True):
        short, whole = (one.source.splitlines() for one in cells)
        cut = whole[: whole.index(next((line for line in whole if "### BEGIN" in line), None) or whole[-1])]
        assert short[: len(cut)] == cut, "what is left stands as it stood"
    result = _grading.grade(EVERY[name], path, "s000", sandbox)
    assert result.score == 0 and all("NotImplementedError" in task.says for task in result.tasks)


@pytest.mark.parametrize("name", EVERY)
def test_a_notebook_runs_from_top_to_bottom_as_in_jupyter(name, capsys):
    names = {"__name__": "__main__"}
    for one in notebooks.code_cells(EVERY[name].notebook):
        exec(compile(one.source, f"<{name}/{one.id}>", "exec"), names)


def test_pictures_of_a_solution_are_not_released():
    notebook = toy().notebook
    notebook.cells[2] = new_markdown_cell("![](attachment:a.png)", attachments={"a.png": {"image/png": ""}})
    notebook.cells[2].metadata.nbgrader = {"solution": True, "locked": False}
    assert "attachments" not in _assignments.student_version(notebook).cells[2]


def test_a_cell_that_no_grader_runs_may_hold_magic(tmp_path):
    notebook = toy().notebook
    notebook.cells.insert(1, new_code_cell("%matplotlib inline"))
    notebooks.write(notebook, tmp_path / "assignments/toy/toy.ipynb")
    (tmp_path / "assignments/toy/rubric.md").write_text("")
    assert len(_assignments.read(tmp_path)) == 1


def test_setups_differ_by_student():
    seen = set()
    for student in ("s000", "s001", "s002"):
        names = {"student": student}
        exec(next(c.source for c in EVERY["2_accountant"].notebook.cells if c.id == "setup"), names)
        seen.add(tuple(names["run"].values()))
    assert len(seen) == 3


@pytest.mark.parametrize(
    "source, says",
    [
        ("import os\nos._exit(0)", "left with exit code 0"),
        ("def twice(x):\n    import os\n    os._exit(0)", "left with exit code 0"),
        ("def twice(x):\n    raise SystemExit(0)", "SystemExit"),
        ("def twice(x):\n    while True: pass", "seconds of processor time"),
        ("while True: print('x' * 10**6, flush=True)", "seconds of processor time"),
        ("def twice(x):\n    import time\n    time.sleep(9e9)", "did not answer within 6 seconds"),
        ("def twice(x): return [0] * 10**10", "MemoryError"),
        ("def twice(x): return [0] * 10**5", "KiB"),
        ("def twice(x): return open('/etc/hostname').read()", "PermissionError"),
        ("def twice(x): open('grades.csv', 'w')", "PermissionError"),
        ("def twice(x):\n    import os\n    return os.fork()", "PermissionError"),
        ("def twice(x):\n    import socket\n    socket.socket()", "PermissionError"),
        ("def twice(x):\n    import os\n    os.kill(os.getppid(), 9)", "PermissionError"),
        ("def twice(x):\n    import ctypes\n    ctypes.string_at(0)", "SIGSEGV"),
        ("class Same:\n    def __eq__(self, other): return True\ndef twice(x): return Same()", "TypeError"),
        ("import os\nos.write(3, b'\\xff' * 99)\ndef twice(x): return 2 * x", "KiB"),
        ("import numpy as np\ndef twice(x): return np.zeros((10**9, 0))", "plain data"),
        (FORGED, "plain data"),
        (FORGED.replace("{", "[").replace("}", "]").replace(":", ","), "plain data"),
        (FORGED.replace("answer = b'", "answer = b'7' or b'"), "plain data"),
        (FORGED.replace("answer = b'", "answer = b'\"error\"' or b'"), "plain data"),
        ("import builtins\nbuiltins.AssertionError = KeyError\ndef twice(x): return 7", "twice 3"),
        ("import numpy as np\nnp.isclose = np.allclose = lambda *a: True\ndef twice(x): return 6", "hidden"),
        (SEARCH, "twice 3"),
        ("from privhelpers import accounting\ndef twice(x): return 2 * x", "ImportError"),
        ("def twice(x): return 2 *", "SyntaxError"),
    ],
)
def test_a_hostile_answer_gets_no_point_and_spoils_no_other(tmp_path, quick, source, says):
    def change(cells, notebook):
        cells["twice"].source = source
        cells["thrice"].source = "def thrice(x): return 3 * x"

    first, second = graded(tmp_path, quick, change).tasks
    assert (first.score, second.score) == (0, 2), (first.says, second.says)
    assert says in first.says


@pytest.mark.parametrize(
    "give, says",
    [
        ("raise ValueError(read())", "thrice: ValueError"),
        ("raise type(read(), (Exception,), {})('no such cell')", "thrice: an error"),
        ("return read()", "thrice 3"),
        ("return {read(): read()}", "thrice 3"),
        ("import os\n    os._exit(77)", "the program was ended: it left"),
        (
            "import json, os\n    said = json.dumps({'error': read()}).encode()\n"
            "    os.write(3, len(said).to_bytes(4, 'big') + said)",
            "thrice: an error",
        ),
    ],
)
@pytest.mark.parametrize("test", ["", "float(thrice(3))\n", "[3][thrice(3)]\n", "{}[thrice(3)]\n"])
def test_a_student_reads_no_solution_on_the_page(tmp_path, quick, give, says, test):
    assignment = toy()
    assignment.notebook.cells[-1].source = test + assignment.notebook.cells[-1].source

    def change(cells, notebook):
        cells["twice"].source = "raise KeyError('mine')"
        cells[
            "thrice"
        ].source = f"def read(): return 'secret' + str(twice.__code__.co_consts)\ndef thrice(x):\n    {give}"

    result = _grading.grade(assignment, submitted(tmp_path, change), "ann", quick)
    first, second = result.tasks
    assert "mine" in first.says and result.score == 0
    page = _grading.feedback("ann", [result])
    assert "secret" not in page and "77" not in page and (test or says in second.says)


def test_a_second_test_of_a_wrong_solution_is_not_passed_by_the_right_one(tmp_path, quick):
    assignment = toy()
    again = cell("test-again", "assert twice(5) == 10, 'again'", grade=True, points=4)
    assignment.notebook.cells[4:4] = [cell("setup-again", "more = 1"), again]

    def change(cells, notebook):
        cells["twice"].source = "def twice(x): return 7"
        cells["thrice"].source = "def thrice(x): return x + twice(x)"

    handed_in = submitted(tmp_path, change, assignment=assignment)
    tasks = _grading.grade(assignment, handed_in, "ann", quick).tasks
    assert [(task.score, task.says) for task in tasks] == [(0, "twice 3"), (0, "again"), (2, "passed")]


def test_an_answer_that_keeps_a_test_from_ending_loses_its_points_alone(tmp_path, quick, monkeypatch):
    monkeypatch.setattr(_grading, "TEST_SECONDS", 0.2)
    assignment = toy()
    count = "end, step = twice(3), 0\nwhile step != end:\n    step += 1"
    assignment.notebook.cells[4:4] = [cell("test-count", count, grade=True, points=4)]
    handed_in = submitted(tmp_path, answer("def twice(x): return -1"), assignment=assignment)
    _, count, _ = _grading.grade(assignment, handed_in, "ann", quick).tasks
    assert count.score == 0 and "did not end within 0.2 s" in count.says
    assert signal.getitimer(signal.ITIMER_PROF)[0] == 0


def test_cells_before_a_solution_read_it_but_cannot_show_it(tmp_path, quick):
    spy = """import ast
kept = []
def parse(source, *others, parse=ast.parse, **more):
    kept.append(source)
    return parse(source, *others, **more)
ast.parse = parse
def twice(x): return 2 * x"""
    assignment = toy()
    more = [cell("more", THRICE.replace("thrice", "more"), solution=True, locked=False)]
    more += [cell("test-more", "assert more(3) == 9", grade=True, points=1)]
    assignment.notebook.cells += more

    def change(cells, notebook):
        cells["twice"].source = spy
        cells["thrice"].source = "def thrice(x): raise ValueError(str(kept))"
        cells[
            "more"
        ].source = (
            "def more(x):\n    assert any('BEGIN' in one for one in kept)\n    raise ValueError(str(kept))"
        )

    first, second, third = _grading.grade(
        assignment, submitted(tmp_path, change, assignment=assignment), "ann", quick
    ).tasks
    assert first.score == 3 and "def thrice" in second.says, "its own words"
    assert third.says == "more: ValueError", "it read the solution, and said its type alone"


def test_nothing_but_the_students_cells_is_taken_from_a_submission(tmp_path, quick):
    def change(cells, notebook):
        cells["twice"].source = "def twice(x): return 5"
        cells["test-twice"].source = "pass"
        cells["test-twice"].metadata.nbgrader.points = 1000
        cells["setup"].source = "secret = 2.5"
        notebook.cells = [one for one in notebook.cells if one.id not in ("test-thrice", "thrice")]

    result = graded(tmp_path, quick, change)
    assert (result.score, result.points) == (0, 5)
    assert "no such cell" in result.tasks[1].says


def test_an_answer_is_found_by_its_cell_where_an_editor_lost_the_metadata(tmp_path, quick):
    def change(cells, notebook):
        cells["twice"].update(source="def twice(x): return x + x", metadata={})

    assert [task.score for task in graded(tmp_path, quick, change).tasks] == [3, 0]


def copied(answer):
    return new_code_cell(answer, id="of-the-copy", metadata=cell("twice", "", solution=True).metadata)


RIGHT = "def twice(x): return 2 * x"
# What a student's cell may hold with a right answer, and costs no point.
HARMLESS = {
    "display": f"{RIGHT}\ndisplay(twice(2), display_id=True).update(3)",
    "import display": f"from IPython.display import display, Markdown\n{RIGHT}\ndisplay(Markdown('x'))",
    "inline": f"%matplotlib inline\n{RIGHT}",
    "time a line": f"{RIGHT}\n%time x = twice(3)\ny = %time twice(x)\nassert y == 12",
    "time a cell": f"%%time\n{RIGHT}",
    "capture": f"%%capture said\n{RIGHT}",
    "pip": f"%pip install numpy\n!pip install numpy\n{RIGHT}",
    "extensions": f"%load_ext autoreload\n%autoreload 2\n%config Completer.use_jedi = False\n{RIGHT}",
    "shell": f"!ls -l | head\nfiles = !ls\n{RIGHT}\nfor one in files.copy(): print(one)",
    "help": f"import math\nmath.sin?\n?math.sin\n{RIGHT}\ntwice??",
    "no such magic": f"%nosuchmagic 1\n{RIGHT}",
    "a magic in a block": f"{RIGHT}\nif True:\n    %time twice(3)\n    !ls",
    "get_ipython": f"get_ipython().run_line_magic('matplotlib', 'inline')\n{RIGHT}",
    "import get_ipython": f"from IPython import get_ipython\nget_ipython().magic('time 1')\n{RIGHT}",
    "figures": "import matplotlib.pyplot as plt\nimport seaborn as sns\nsns.set_theme()\n"
    "fig, ax = plt.subplots()\n"
    f"ax.set_title('$x$ and x')\nfig.tight_layout()\nfig.savefig('x.png')\nplt.show()\n{RIGHT}",
    "pandas": f"import pandas as pd\ntable = pd.DataFrame({{'x': [1]}})\ntable.describe()\n{RIGHT}",
    "progress": "from tqdm.auto import tqdm\nfrom tqdm.notebook import trange\nfor i in trange(2): pass\n"
    f"for i in tqdm(range(3)): print(i)\n{RIGHT}",
    "floods": f"print('x' * 10**6)\nimport sys\nsys.stderr.write('x' * 10**6)\n{RIGHT}",
    "input after it": f"{RIGHT}\nname = input('Your name? ')",
    "an error after it": f"{RIGHT}\n1 / 0",
    "await": f"import asyncio\nasync def one(): return 1\nx = await one()\nawait asyncio.sleep(0)\n{RIGHT}",
    "the future": f"from __future__ import annotations\ndef other(x: Nosuch): return x\n{RIGHT}",
    "warnings": f"import warnings\nwarnings.warn('x')\nimport logging\nlogging.error('x')\n{RIGHT}",
    "a last value": f"{RIGHT}\ntwice(3)",
    "a class": "class Twice:\n    def __call__(self, x): return 2 * x\ntwice = Twice()",
    "main": f"{RIGHT}\nif __name__ == '__main__':\n    print(twice(1))",
    "other line ends": RIGHT.replace(": ", ":\r\n    "),
    "comments": f"# only a comment\n\n{RIGHT}\n\n# and one",
}


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("source", HARMLESS.values(), ids=HARMLESS)
def test_what_a_notebook_may_hold_costs_no_point(tmp_path, sandbox, source):
    first, _ = graded(tmp_path, sandbox, answer(source)).tasks
    assert first.score == 3, first.says


def insert(place, source):
    return lambda cells, notebook: notebook.cells.insert(place, new_code_cell(source))


# What a student does to the notebook, their answer, and the points of the first task.
CHANGES = {
    "a helper in a cell of its own": (insert(2, "def two(): return 2"), "def twice(x): return two() * x", 3),
    "a helper in the first cell": (
        insert(0, "%matplotlib inline\ntwo = 2"),
        "def twice(x): return two * x",
        3,
    ),
    "an error elsewhere": (insert(2, "1 / 0"), RIGHT, 3),
    "a syntax error elsewhere": (insert(2, "def x(:"), RIGHT, 3),
    "a program that ends itself elsewhere": (insert(2, "import os\nos._exit(1)"), RIGHT, 3),
    "programs that end themselves, and a helper": (
        lambda cells, notebook: [
            insert(2, source)(cells, notebook)
            for source in ("two = 2", "import os\nos._exit(2)", "import os\nos._exit(1)")
        ],
        "def twice(x): return two * x",
        3,
    ),
    "another kernel": (
        lambda cells, notebook: notebook.metadata.update(
            kernelspec={"name": "ir", "display_name": "R", "language": "R"}, colab={"provenance": []}
        ),
        RIGHT,
        3,
    ),
    "a copy before it": (
        lambda cells, notebook: notebook.cells.insert(2, copied("def twice(x): return 0")),
        RIGHT,
        3,
    ),
    "a copy after it": (lambda cells, notebook: notebook.cells.append(copied(RIGHT)), "x = 1", 3),
    "a scratch cell that spoils it": (insert(3, "def twice(x): return 7"), RIGHT, 0),
    "no other cells": (lambda cells, notebook: notebook.update(cells=[cells["twice"]]), RIGHT, 3),
    "another order": (lambda cells, notebook: notebook.cells.reverse(), RIGHT, 3),
    "text in its place": (lambda cells, notebook: cells["twice"].update(cell_type="markdown"), RIGHT, 0),
}


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("change, source, score", CHANGES.values(), ids=CHANGES)
def test_what_a_student_may_do_to_the_notebook(tmp_path, quick, change, source, score):
    def changed(cells, notebook):
        cells["twice"].source = source
        change(cells, notebook)

    first, _ = graded(tmp_path, quick, changed).tasks
    assert first.score == score, first.says


def saved_as(notebook, version):
    """Return a notebook as older and other programs save it."""
    for one in notebook["cells"]:
        if version == "vscode":
            one["metadata"]["vscode"] = {"languageId": "python"}
        else:
            del one["id"]
        if version == "colab":
            one["metadata"] |= {"id": "Xy1", "colab": {"base_uri": "https://example.com"}}
        if version == "null":
            one["metadata"] = {"nbgrader": one["metadata"].get("nbgrader")}
        if version == 3:
            one["input"] = one.pop("source")
    if version == 3:
        return {"nbformat": 3, "nbformat_minor": 0, "worksheets": [{"cells": notebook["cells"]}]}
    return notebook | {"nbformat_minor": 5 if version == "vscode" else 2}


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("version", [3, 4, "vscode", "colab", "null"])
@pytest.mark.parametrize("mark", ["", "\ufeff"], ids=["plain", "byte order mark"])
def test_a_notebook_of_any_program_is_read(tmp_path, quick, version, mark):
    path = submitted(tmp_path, answer(RIGHT))
    path.write_text(mark + json.dumps(saved_as(json.loads(path.read_text()), version)), encoding="utf-8")
    first, _ = _grading.grade(toy(), path, "ann", quick).tasks
    assert first.score == 3, first.says


# How a function may try to show what it was given: 3000009, the input of a hidden test.
LEAKS = {
    "raise": "raise ValueError(x)",
    "raise text": "raise ValueError(f'seen {x}')",
    "a type": "raise type(f'E{x}', (Exception,), {})('no such cell')",
    "a cause": "try: 1 / 0\n    except ArithmeticError as error:\n        raise KeyError(x) from error",
    "an assertion": "assert False, x",
    "a note": "error = ValueError()\n    error.add_note(str(x))\n    raise error",
    "print": "print(x)",
    "return": "return str(x)",
    "return a list": "return [x, str(x)]",
    "return an array": "import numpy as np\n    return np.array([x] * 9)",
    "return a dict": "return {str(x): x}",
    "repr": "class Shown:\n        def __repr__(self): return str(x)\n    return Shown()",
    "warn": "import warnings\n    warnings.simplefilter('error')\n    warnings.warn(str(x))",
    "exit": "raise SystemExit(x)",
    "exit code": "import os\n    os._exit(x % 251)",
    "syntax error": "raise SyntaxError(str(x), ('f', 1, 1, str(x)))",
    "name error": "raise NameError(f'twice{x} is not defined')",
    "display": "display(x)",
    "a global": "global kept\n    kept = x",
    "forged": "import json, os\n    said = json.dumps({'error': f'{x}'}).encode()\n"
    "    os.write(3, len(said).to_bytes(4, 'big') + said)",
}


def with_hidden(test, setup=""):
    assignment = toy()
    assignment.notebook.cells[1].source += setup
    shown = HIDDEN.partition("###")[0]
    assignment.notebook.cells[3].source = f"{shown}### BEGIN HIDDEN TESTS\n{test}\n### END HIDDEN TESTS"
    return assignment


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("quoted", ["'hidden'", "f'for {secret} {twice(secret)}'", "str(secret)"])
@pytest.mark.parametrize("leak", LEAKS.values(), ids=LEAKS)
def test_no_page_shows_the_input_of_a_hidden_test(tmp_path, quick, leak, quoted):
    assignment = with_hidden(f"assert twice(secret) == 2 * secret, {quoted}")
    later = "try:\n    said = kept\nexcept NameError:\n    said = 0\nraise ValueError(str(said))"

    def change(cells, notebook):
        cells["twice"].source = f"def twice(x):\n    if x == 3: return 6\n    {leak}"
        cells["thrice"].source = later

    result = _grading.grade(assignment, submitted(tmp_path, change, assignment=assignment), "ann", quick)
    page = _grading.feedback("ann", [result])
    assert result.tasks[0].score == 0 and result.tasks[0].says
    assert "3000009" not in page and f"code {3000009 % 251}" not in page
    assert "ValueError" in result.tasks[1].says


@pytest.mark.wrong_numbers
@pytest.mark.parametrize(
    "test",
    [
        "assert [0][twice(secret)] == 1",
        "{}[str(twice(secret))]",
        "import numpy as np\nnp.testing.assert_allclose(twice(secret)[0], secret + 1)",
        "check(twice(secret), secret)",
        "for value in [secret]:\n    assert twice(value) == 0",
        "raise ValueError(twice(secret))",
    ],
)
def test_a_hidden_test_says_nothing_of_its_values_however_it_fails(tmp_path, quick, test):
    assignment = with_hidden(test, "\ndef check(a, b):\n    assert a == -b, f'{a} for {b}'")
    source = "def twice(x): return 6 if x == 3 else [x, str(x)]"
    path = submitted(tmp_path, answer(source), assignment=assignment)
    result = _grading.grade(assignment, path, "ann", quick)
    assert result.tasks[0].score == 0 and result.tasks[0].says
    assert "3000009" not in _grading.feedback("ann", [result])


def test_a_visible_test_after_a_hidden_one_still_tells_a_student_their_own_words(tmp_path, quick):
    def change(cells, notebook):
        cells["twice"].source = RIGHT
        cells["thrice"].source = "def thrice(x): raise ValueError('my own words')"

    first, second = graded(tmp_path, quick, change).tasks
    assert first.score == 3 and "my own words" in second.says


@pytest.mark.parametrize(
    "content, note",
    [
        (None, "was not handed in"),
        (b"", "is no notebook"),
        (b"[" * 10**5, "is no notebook"),
        (b'{"cells": [7]}', "is no notebook"),
        (b"\xff\xfe", "is no notebook"),
        (b" " * (_grading.LARGEST + 1), "larger than 32 MiB"),
    ],
)
def test_what_cannot_be_read_is_a_note(tmp_path, content, note):
    path = tmp_path / "ann" / "toy" / "toy.ipynb"
    path.parent.mkdir(parents=True)
    if content is not None:
        path.write_bytes(content)
    result = _grading.grade(toy(), path, "ann", None)
    assert (result.score, result.points) == (0, 5) and note in result.note


def test_a_link_to_somebody_elses_notebook_is_refused(tmp_path):
    path = submitted(tmp_path, answer("def twice(x): return 2 * x"))
    for number, part in enumerate((path, path.parent, path.parent.parent)):
        linked = tmp_path / f"in{number}" / "ben" / "toy" / "toy.ipynb"
        place = (linked, linked.parent, linked.parent.parent)[number]
        place.parent.mkdir(parents=True)
        place.symlink_to(part)
        assert "link" in _grading.grade(toy(), linked, "ben", None).note
    loop = tmp_path / "in" / "eve" / "toy"
    loop.parent.mkdir()
    loop.symlink_to(loop)
    assert "no notebook" in _grading.grade(toy(), loop / "toy.ipynb", "eve", None).note
    os.mkfifo(path.with_name("pipe"))
    path.unlink()
    path.with_name("pipe").rename(path)
    assert "not a regular file" in _grading.grade(toy(), path, "ann", None).note


def test_the_command_grades_everybody_and_escapes_what_they_wrote(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(_assignments, "read", lambda root: [toy()])
    monkeypatch.setattr(__main__, "repository_root", lambda: tmp_path)
    monkeypatch.chdir(tmp_path)
    submitted(
        tmp_path, answer("def twice(x):\n    raise ValueError('<script>alert(1)</script>\\x1b[31m')"), "s1"
    )
    submitted(tmp_path, answer("def twice(x): return 2 * x"), "s2")
    (tmp_path / "in" / "=cmd()").mkdir()
    assert __main__.main(["grade", "--submitted", "in"]) == 1
    assert "not graded: =cmd()" in capsys.readouterr().err
    with (tmp_path / "build/grades/grades.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [(row["student"], row["score"], row["points"]) for row in rows] == [
        ("s1", "0", "5"),
        ("s2", "3", "5"),
    ]
    page = (tmp_path / "build/grades/feedback/s1.html").read_text()
    assert "<script" not in page and "\x1b" not in page and "&lt;script&gt;" in page
    (tmp_path / "in/s2").rename(tmp_path / "in/s3")
    assert __main__.main(["grade", "--submitted", "in"]) == 1
    left = sorted(path.name for path in (tmp_path / "build/grades/feedback").iterdir())
    assert left == ["s1.html", "s3.html"], "none of who handed in nothing"
    capsys.readouterr()
    (tmp_path / "other" / "s1" / "another").mkdir(parents=True)
    assert __main__.main(["grade", "--submitted", "other"]) == 2
    assert "<student>/<assignment>" in capsys.readouterr().err
    assert __main__.main(["assignments"]) == 0
    assert "### BEGIN" not in (tmp_path / "build/assignments/toy/toy.ipynb").read_text()


@pytest.mark.skipif(sys.platform != "linux", reason="code of strangers runs on Linux alone")
def test_a_killed_make_leaves_neither_grader_nor_sandbox(tmp_path):
    notebooks.write(toy().notebook, tmp_path / "assignments/toy/toy.ipynb")
    (tmp_path / "assignments/toy/rubric.md").touch()
    (tmp_path / "_toc.yml").touch()
    (tmp_path / "privhelpers").mkdir()
    submitted(tmp_path, answer("import time\ntime.sleep(9e9)"))
    grader = f"{processes.PARENT}=$$ {sys.executable} -m bookmaker.teaching grade --submitted in; :"
    make = psutil.Popen(["sh", "-c", grader], cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        deadline = time.monotonic() + LIMIT_SECONDS
        while len(below := make.children(recursive=True)) < 3 and time.monotonic() < deadline:
            time.sleep(0.1)
        assert len(below) == 3, "grader, the clean process and the confined one"
    finally:
        make.kill()
        make.wait()
    assert psutil.wait_procs(below, timeout=LIMIT_SECONDS)[1] == []
    assert not (tmp_path / "build/grades").exists(), "it went on and finished"


def test_refusals_name_the_cure(tmp_path, capsys):
    with pytest.raises(InvalidParameter, match="python -m bookmaker grade --submitted"):
        _grading.students("")
    with pytest.raises(MissingArtifact, match="<student>/<assignment>"):
        _grading.students(str(tmp_path))
    with pytest.raises(MissingArtifact, match="holds nothing to grade"):
        _grading.students(f"{tmp_path}/{'x' * 300}")
    with pytest.raises(MissingArtifact, match="a folder with a notebook"):
        _assignments.read(tmp_path)
    (tmp_path / "assignments" / "one").mkdir(parents=True)
    with pytest.raises(MissingArtifact, match="is missing; each assignment has one"):
        _assignments.read(tmp_path)


@pytest.mark.parametrize(
    "grade_id, meta, source, fault",
    [
        ("test-twice", {"points": -1}, None, "minimum"),
        ("test-twice", {"schema_version": 2}, None, "3 was expected"),
        ("test-twice", {"extra": 1}, None, "Additional"),
        ("test-twice", {"grade_id": "a b"}, None, "does not match"),
        ("test-twice", {"grade_id": "setup"}, None, "grade_id of another"),
        ("setup", {"points": 1}, None, "'points' belong"),
        ("twice", {"locked": True}, None, "a student may write"),
        ("setup", {}, TWICE, "is no solution cell"),
        ("setup", {}, HIDDEN, "is no test cell"),
        ("twice", {}, TWICE.replace("### END SOLUTION", ""), "without its other half"),
        ("student", {}, TWICE, "no nbgrader metadata"),
        ("test-twice", {"points": 0}, None, "a number above 0"),
        ("test-twice", {"points": float("nan")}, None, "a number above 0"),
        ("test-twice", {"points": float("inf")}, None, "a number above 0"),
        ("setup", {}, "secret = (", "cell setup is no program: '.' was never closed"),
        ("twice", {}, "return 2", "cell twice is no program: 'return' outside function"),
        ("test-twice", {}, "assert twice(3) = 6", "cell test-twice is no program"),
        ("student", {}, 'student = "s', "cell 0 is no program"),
        ("setup", {}, "# === BEGIN MARK SCHEME ===", "cell setup has 'BEGIN MARK SCHEME"),
        ("test-twice", {}, HIDDEN.replace("###", "#"), "cell test-twice has 'BEGIN HIDDEN TESTS' written"),
        ("test-twice", {}, HIDDEN.replace("HIDDEN TESTS", "hidden tests"), "has '### BEGIN hidden tests'"),
        ("test-twice", {}, f"{HIDDEN}\n{HIDDEN.replace('HIDDEN', 'HIDEN')}", "has '### BEGIN HIDEN TESTS'"),
        ("test-twice", {}, f"{HIDDEN}\n{HIDDEN.lower()}", "has 'begin hidden tests'"),
        ("twice", {}, TWICE.replace("BEGIN SOLUTION", "Begin  Solution"), "has 'Begin  Solution'"),
    ],
)
def test_what_nbgrader_would_refuse_is_refused(tmp_path, grade_id, meta, source, fault):
    notebook = toy().notebook
    (one,) = [one for one in notebook.cells if one.id == grade_id]
    if meta:
        one.metadata.nbgrader.update(meta)
    one.source = source or one.source
    notebooks.write(notebook, tmp_path / "assignments/toy/toy.ipynb")
    (tmp_path / "assignments/toy/rubric.md").write_text("")
    with pytest.raises(DamagedArtifact, match=fault):
        _assignments.read(tmp_path)


@pytest.mark.parametrize(
    "name, source, error",
    [
        ("setup", "import sys\nsys.exit(0)", "SystemExit: 0"),
        ("setup", "1 / 0", "ZeroDivisionError: division by zero"),
        ("test-twice", "raise SystemExit('over')", "SystemExit: over"),
    ],
)
def test_an_assignment_whose_own_cell_fails_is_refused(tmp_path, monkeypatch, capsys, name, source, error):
    broken = toy()
    (one,) = [one for one in broken.notebook.cells if one.id == name]
    one.source = source
    monkeypatch.setattr(_assignments, "read", lambda root: [broken])
    monkeypatch.setattr(__main__, "repository_root", lambda: tmp_path)
    monkeypatch.chdir(tmp_path)
    submitted(tmp_path, answer("def twice(x): return 2 * x"), "s1")
    assert __main__.main(["grade", "--submitted", "in"]) == 2
    assert f"refused: assignments/toy, cell {name}: {error}; mend" in capsys.readouterr().err


def test_plain_data_comes_back_as_it_went():
    import numpy as np

    value = {"a": (1, 2.5, None, True), 3: [{"x"}, "é"], "n": np.float64(0.5)}
    assert unpack(pack(value)) == value
    for array in (np.arange(6).reshape(2, 3), np.zeros((0, 4)), np.array([True, False])):
        same = unpack(pack(array))
        assert same.dtype == array.dtype and np.array_equal(same, array) and same.shape == array.shape
    for shape in ((10**6, 0), (0, 10**9), (10**4, 10**4, 0), (-1, 10**9)):
        with pytest.raises(ValueError):
            unpack({"array": ["f", shape, []]})
    first, second = np.random.default_rng(3), unpack(pack(np.random.default_rng(3)))
    assert first.random() == second.random()
    with pytest.raises(TypeError, match="is no number"):
        pack(socket.AF_INET6.__class__.__mro__)


def test_where_the_system_cannot_confine_nothing_is_graded(monkeypatch):
    from bookmaker.teaching import _sandbox

    monkeypatch.setattr(_sandbox, "READY", b"?")
    with pytest.raises(ConfinedFailed, match="grade on Linux"):
        Sandbox()
