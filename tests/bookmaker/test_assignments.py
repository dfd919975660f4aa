"""The assignments: the teacher's answers pass every test, and typical wrong ones fail their own."""

import pytest
import submissions

from bookmaker.runner import notebooks
from bookmaker.teaching import _work

WRONG = [(name, path) for name, paths in submissions.WRONG.items() for path in paths]
# How many answers are right; of what two of the others ask for, two are all.
TWO = ("2_accountant", "6_review")
CALLS = [(name, right) for name in submissions.WRONG for right in range(2 if name in TWO else 3)]
# After a right solution: from some call on, its functions give answers that hold nothing, of shapes that
# broadcast to the right ones.
EMPTY = """

def emptied(answer):
    import numpy as np
    if isinstance(answer, tuple):
        return tuple(emptied(part) for part in answer)
    return np.empty((0, *np.shape(answer)))

def later(function, calls):
    def answer(*arguments, **keywords):
        calls.append(function(*arguments, **keywords))
        return calls[-1] if len(calls) <= {right} else emptied(calls[-1])
    return answer

globals().update({{name: later(globals()[name], []) for name in {names}}})"""


def failures(name, notebook, student="s000"):
    """Run an assignment in this process and return the error of each test that failed.

    As the grader does, it runs the right answers before the next task where a test failed.
    """
    right = {_work.name_of(cell): cell.source for cell in submissions.read(name).cells}
    names, failed, answered, wrong = {"__name__": "__main__"}, {}, [], False
    for cell in notebooks.code_cells(notebook):
        source = f"student = {student!r}" if "parameters" in notebooks.tags(cell) else cell.source
        if _work.is_solution(cell):
            if wrong:
                exec("\n".join(right[one] for one in answered), names)
                answered, wrong = [], False
            answered.append(_work.name_of(cell))
        try:
            exec(compile(source, f"<{name}/{cell.id}>", "exec"), names)
        except Exception as error:
            if not _work.is_test(cell):
                assert wrong or failed, (cell.id, error)
                continue
            failed[_work.name_of(cell)], wrong = error, True
    return failed


@pytest.mark.parametrize("student", ["s000", "kk-41"])
@pytest.mark.parametrize("name", submissions.WRONG)
def test_the_teachers_answers_pass_every_test(name, student):
    notebook = submissions.read(name)
    assert failures(name, notebook, student) == {}
    meta = [cell.metadata.get("nbgrader", {}) for cell in notebook.cells]
    points = [one["points"] for one in meta if one.get("grade") and not one["solution"]]
    assert 3 <= len(points) <= 5 and sum(points) == 10


@pytest.mark.parametrize("name, path", WRONG, ids=[f"{name}-{path.stem}" for name, path in WRONG])
def test_a_typical_wrong_answer_fails_its_own_test_alone(name, path):
    notebook = submissions.read(name)
    replaced = submissions.wrong(notebook, path)
    failed = failures(name, notebook)
    assert list(failed) == [f"test-{_work.name_of(replaced)}"]
    (error,) = failed.values()
    assert isinstance(error, AssertionError) and str(error), "a test's own words, not an accident"


@pytest.mark.parametrize("name, right", CALLS)
def test_an_answer_that_holds_nothing_passes_no_test(name, right):
    notebook = submissions.read(name)
    for cell in notebooks.code_cells(notebook):
        if _work.is_solution(cell):
            names = submissions.functions(cell.source)
            cell.source += EMPTY.format(right=right, names=names)
    tests = [_work.name_of(cell) for cell in notebook.cells if _work.is_test(cell)]
    assert list(failures(name, notebook)) == tests


def test_setups_differ_by_student():
    (setup,) = [cell.source for cell in submissions.read("2_accountant").cells if cell.id == "setup"]
    seen = set()
    for student in ("s000", "s001", "s002"):
        names = {"student": student}
        exec(setup, names)
        seen.add(tuple(names["run"].values()))
    assert len(seen) == 3
