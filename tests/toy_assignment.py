"""An assignment of two tasks, of which the second uses the first, and what students hand in for it."""

import nbformat
from nbformat.v4 import new_code_cell, new_notebook

TWICE = "def twice(x):\n    ### BEGIN SOLUTION\n    return 2 * x\n    ### END SOLUTION"
THRICE = TWICE.replace("twice", "thrice").replace("2 *", "x + twice(x) #")
HIDDEN = """assert twice(3) == 6, 'twice 3'
### BEGIN HIDDEN TESTS
assert twice(secret) == 2 * secret, f'hidden {secret}'
### END HIDDEN TESTS"""
SECRET = "3000009"  # the input of the hidden tests: three letters of a student's number
RIGHT = "def twice(x): return 2 * x"


def cell(grade_id, source, **meta):
    flags = {"schema_version": 3, "grade": False, "solution": False, "locked": True, "grade_id": grade_id}
    return new_code_cell(source, id=grade_id, metadata={"nbgrader": flags | {"task": False} | meta})


def notebook():
    """Return the assignment as a teacher has it."""
    thrice = HIDDEN.replace("twice", "thrice").replace("6", "9").replace("2 *", "3 *")
    cells = [
        new_code_cell('student = "s000"', id="student", metadata={"tags": ["parameters"]}),
        cell("setup", "secret = len(student) * 1_000_003"),
        cell("twice", TWICE, solution=True, locked=False),
        cell("test-twice", HIDDEN, grade=True, points=3),
        cell("thrice", THRICE, solution=True, locked=False),
        cell("test-thrice", thrice, grade=True, points=2),
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return new_notebook(cells=cells, metadata={"kernelspec": kernel, "language_info": {"name": "python"}})


def released():
    """Return the assignment as a student gets it."""
    copy = nbformat.from_dict(notebook())
    for one in copy.cells:
        if one.metadata.get("nbgrader", {}).get("solution"):
            first = one.source.splitlines()[0]
            one.source = f"{first}\n    # YOUR CODE HERE\n    raise NotImplementedError()"
        one.source = one.source.partition("\n### BEGIN HIDDEN TESTS")[0]
    return copy


def insert(place, source):
    return lambda cells, notebook: notebook.cells.insert(place, new_code_cell(source))


def copied(answer):
    return new_code_cell(answer, id="of-the-copy", metadata=cell("twice", "", solution=True).metadata)


# What a student does to the notebook, their answer, and the points of the first task.
CHANGES = {
    "a helper in a cell of its own": (insert(2, "def two(): return 2"), "def twice(x): return two() * x", 3),
    "a helper in the first cell": (
        insert(0, "%matplotlib inline\ntwo = 2"),
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
    "a copy after it": (lambda cells, notebook: notebook.cells.append(copied(RIGHT)), "x = 1", 3),
    "a scratch cell that spoils it": (insert(3, "def twice(x): return 7"), RIGHT, 0),
    "no other cells": (lambda cells, notebook: notebook.update(cells=[cells["twice"]]), RIGHT, 3),
    "metadata lost by an editor": (lambda cells, notebook: cells["twice"].update(metadata={}), RIGHT, 3),
}


def submission(source, change=lambda cells, notebook: None, thrice=None):
    """Return what a student makes of the released assignment."""
    made = released()
    cells = {one.id: one for one in made.cells}
    cells["twice"].source = source
    cells["thrice"].source = thrice or cells["thrice"].source
    change(cells, made)
    return made
