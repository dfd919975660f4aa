"""What nbgrader is given of a submission holds the course's tests; what a student reads holds no value."""

import pytest
import toy_assignment
from nbformat.v4 import new_output
from toy_assignment import HIDDEN, RIGHT, SECRET

from bookmaker.teaching import _work


def test_the_number_of_a_student_is_that_of_the_folder():
    handed_in = toy_assignment.submission(
        RIGHT, lambda cells, notebook: cells["student"].update(source="student = 'bob'")
    )
    sources = [cell.source for cell in _work.merged(toy_assignment.released(), handed_in, "ann").cells]
    assert "student = 'ann'" in sources and not any("bob" in source for source in sources)


CHECKED = "check(twice(3))\n### BEGIN HIDDEN TESTS\ncheck(twice(secret))\n### END HIDDEN TESTS"


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("from privhelpers import rng\n" + RIGHT, False),
        ("from privhelpers import accounting\n" + RIGHT, True),
        ("import privhelpers.stats\n" + RIGHT, True),
        ("from bookmaker.teaching import flag\n" + RIGHT, True),
        (RIGHT, False),
    ],
)
def test_an_answer_that_imports_what_does_the_task_is_told_to_the_teacher(source, told):
    merged = _work.merged(toy_assignment.released(), toy_assignment.submission(source), "ann")
    assert _work.imports_helpers(merged) is told


def failed(line, ename="ValueError", evalue=SECRET, source=HIDDEN):
    """Return a test cell that failed at a line, as a kernel of IPython reports it."""
    cell = toy_assignment.cell("test", source, grade=True, points=1)
    trace = [f"\x1b[31m{ename}\x1b[39m", f"\x1b[36mCell In[4], line {line}\x1b[39m", f"{ename}: {evalue}"]
    cell.outputs = [new_output("error", ename=ename, evalue=evalue, traceback=trace)]
    return cell


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (failed(1, "AssertionError"), "twice 3"),
        (failed(3, "AssertionError"), "hidden ..."),
        (failed(1), "ValueError in assert twice(3) == 6, 'twice 3'"),
        (failed(3), "ValueError in a hidden test"),
        (failed(3, f"E{SECRET}"), "an error in a hidden test"),
        (
            failed(3, "AssertionError", source=CHECKED),
            "AssertionError in a hidden test",
        ),
        (failed(99), "ValueError in a hidden test"),
        (toy_assignment.cell("test", HIDDEN, grade=True), "passed"),
    ],
)
def test_a_student_reads_what_is_typed_in_a_test_and_no_value(cell, words):
    assert _work.says(cell) == words


def test_the_page_of_feedback_escapes_what_it_shows():
    task = {"name": "<img src=x onerror=alert(1)>", "score": 1, "points": 2, "says": "<script>\x1b[31m"}
    graded = {"assignment": "toy", "score": 1, "points": 2, "by_hand": 3, "note": "", "tasks": [task]}
    page = _work.feedback("ann", [graded])
    assert "<script" not in page and "<img" not in page and "\x1b" not in page and "toy: 1 of 2" in page
