"""The door of teaching: submissions, names and marks that are none; no solution comes out."""

import json
import math
import os

import nbformat
from faults.harness import base, values
from faults.harness.registry import Case, Trial, fault
from faults.harness.report import ROOT

from bookmaker.site import exercises
from bookmaker.teaching import _assignments, _grading
from privhelpers.errors import ConfinedFailed

SECRET = "Quodlibet"  # a word of a solution alone
KINDS = (
    None,
    True,
    0,
    -1.5,
    "",
    "x",
    "\ud800",
    "\0",
    [],
    ["x"],
    [1],
    {},
    {"x": 1},
    [[]],
    [None],
    10**400,
    "x" * 10**5,
)


class _Box:
    """Stands in for a confined process: each answer of a student fails, as it might."""

    ended = ""

    def run(self, code: str, *, name: str) -> None:
        code.encode("utf-8", "surrogatepass")
        raise ConfinedFailed(f"SyntaxError: {code[:50]!r}")

    def call(self, *_: object, **__: object) -> object:
        raise ConfinedFailed("NameError: it is not defined")

    def close(self) -> None:
        self.ended = "the program was ended"


class _Sandbox:
    def __enter__(self) -> "_Sandbox":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def open(self) -> _Box:
        return _Box()


def _handed_in(t: Trial, home: str = "s000"):
    one = t.choose(sorted(base.assignments()))
    path = t.place / "submitted" / home / one / f"{one}.ipynb"
    path.parent.mkdir(parents=True)
    return base.assignments()[one], path, (ROOT / "assignments" / one / f"{one}.ipynb").read_bytes()


def _root(t: Trial, name: str):
    """Return a repository with one assignment."""
    (t.place / "root" / "assignments").mkdir(parents=True)
    (t.place / "root" / "assignments" / name).symlink_to(ROOT / "assignments" / name)
    return t.place / "root"


def _graded(assignment, path) -> Case:
    """Whatever was handed in, there is a grade of the right shape, and a page of one line a task."""
    tasks = [
        _assignments.nbgrader(cell)["grade_id"]
        for cell in assignment.notebook.cells
        if _assignments.is_test(cell)
    ]

    def call() -> bool:
        got = _grading.grade(assignment, path, "s000", _Sandbox())
        page = _grading.feedback("s000", [got])
        lines = [got.note, *(task.says for task in got.tasks)]
        named = [task.name for task in got.tasks] == tasks and math.isclose(got.points, assignment.points)
        whole = 0 <= got.score <= got.points and not any("\n" in line for line in lines)
        return named and whole and str(path.parents[3]) not in page

    return Case(call, right=True, refusal=False, watch=(path.parent,) if path.is_file() else ())


@fault("bytes of a submission changed at random")
def _(t: Trial) -> Case:
    assignment, path, data = _handed_in(t)
    path.write_bytes(t.spoil(data))
    return _graded(assignment, path)


@fault("a value of a submission of another kind, doubled, gone or huge")
def _(t: Trial) -> Case:
    assignment, path, data = _handed_in(t)
    whole = json.loads(data)
    cell = whole["cells"][t.below(len(whole["cells"]))]
    how = t.choose(("top", "cell", "field", "name", "doubled", "gone", "huge", "kernel", "deep", "numbers"))
    value = KINDS[t.below(len(KINDS))]
    t.note(value)
    if how == "top":
        whole[t.choose(("cells", "metadata", "nbformat", "nbformat_minor"))] = value
    elif how == "cell":
        whole["cells"][t.below(len(whole["cells"]))] = value
    elif how == "field":
        cell[t.choose(("source", "metadata", "id", "cell_type", "outputs"))] = value
    elif how == "name":
        cell["metadata"]["nbgrader"] = t.choose((value, {"grade_id": value}, {"grade_id": "student"}))
    elif how == "doubled":
        whole["cells"].insert(t.below(len(whole["cells"])), cell)
    elif how == "gone":
        whole["cells"].remove(cell)
    elif how == "huge":
        cell["outputs"] = [{"text": "x" * (_grading.LARGEST - t.below(200_000))}]
    elif how == "kernel":
        whole["metadata"]["kernelspec"] = t.choose(({"name": "bash"}, {"name": "../x"}, value))
    text = json.dumps(whole)
    if how == "deep":
        text = t.choose(
            ("[" * 10**5, '{"cells": ' + "[" * 10**5, '{"cells":' * 5000, "9" * 5000, '{"cells": [NaN]}')
        )
    elif how == "numbers":
        text = text.replace('"cells"', f'"n": {t.choose(("1e999", "NaN", "9" * 4000, "-0"))}, "cells"', 1)
    path.write_text(text)
    return _graded(assignment, path)


@fault("a submission that is a link, a pipe, a folder or not there")
def _(t: Trial) -> Case:
    assignment, path, data = _handed_in(t)
    (other := t.place / "other.ipynb").write_bytes(data)
    how = t.choose(("link", "loop", "nowhere", "pipe", "folder", "gone", "device", "folder link", "hard"))
    if how == "folder link":
        path.parent.rename(t.place / "away")
        path.parent.symlink_to(t.place / "away")
        path.write_bytes(data)
    elif how == "pipe":
        os.mkfifo(path)
    elif how == "folder":
        path.mkdir()
    elif how == "hard":
        os.link(other, path)
    elif how != "gone":
        path.symlink_to({"link": other, "loop": path, "nowhere": "nowhere", "device": "/dev/zero"}[how])
    return _graded(assignment, path)


@fault("folders of students whose names are none")
def _(t: Trial) -> Case:
    _, path, data = _handed_in(t)
    path.write_bytes(data)
    names = (
        *(name for name in values.HOSTILE_NAMES if "/" not in name and "\0" not in name and len(name) < 100),
    )
    bad = t.choose([name for name in names if name not in ("", ".", "..", "A", "x" * 64, "_x", "\ud800")])
    root = _root(t, path.parent.name)
    (other := t.place / "submitted" / bad / path.parent.name).mkdir(parents=True)
    (other / path.name).write_bytes(data)
    (t.place / "grades").mkdir()
    _grading.Sandbox = _Sandbox

    def call() -> list[str]:
        graded, odd = _grading.write(root, str(t.place / "submitted"), t.place / "grades")
        if any("\n" in one for one in odd) or {one.student for one in graded} != {"s000"}:
            raise RuntimeError(f"{odd!r}, {graded!r}")
        return sorted(
            one.relative_to(t.place).as_posix() for one in (t.place / "grades").rglob("*") if one.is_file()
        )

    return Case(call, right=["grades/feedback/s000.html", "grades/grades.csv"], refusal=False)


@fault("a place of submissions that is none")
def _(t: Trial) -> Case:
    (t.place / "file").touch()
    (t.place / "empty").mkdir()
    root = _root(t, "1_mechanism")
    (t.place / "odd" / "a b" / "1_mechanism").mkdir(parents=True)
    (t.place / "loop").symlink_to("loop")
    (t.place / "none" / "s000" / "another").mkdir(parents=True)
    given = t.choose(
        ("", "file", "empty", "odd", "loop", "none", "gone", "a\0b", "a\nb", "x" * 5000, "**", "\ud800")
    )
    where = f"{t.place}/{given}" if given else ""
    (t.place / "grades").mkdir()
    _grading.Sandbox = _Sandbox
    call = lambda: _grading.write(root, where, t.place / "grades")  # noqa: E731
    return Case(call, watch=(t.place / "grades",), given=True)


@fault("a fence of a solution written otherwise")
def _(t: Trial) -> Case:
    """What a student gets has no word of the solution, or the chapter is refused."""
    tick = t.choose("`:~")
    fence = tick * (3 + t.below(3))
    odd = (f"a{end}{fence}{end}{SECRET}" for end in "\u2028\x0c\x85\x0b\x1c")  # to Python alone
    directive = f".. Solution-start:: ex\n\n   {SECRET}"
    pools = {
        "name": ("{Solution}", "{SOLUTION}", "{solution-start}", "{solution} ", " {solution}"),
        "label": ("ex-coin", " ex-coin ", " ex-coin {x}", " ex coin", "", " \u2028ex"),
        "indent": (" ", "   ", "\t", "> ", "- ", "1. "),
        "close": (fence + tick, fence + " ", " " + fence, fence[:-1], "", "~~~", ":::", fence + "x"),
        "inner": (*odd, f"``\nx\n``\n{SECRET}", f"{fence}x\n{SECRET}"),
        "end": ("\r\n", "\r"),
        "whole": (f"```{{eval-rst}}\n{directive}\n```", directive),
    }  # fmt: skip
    usual = {
        "name": "{solution}",
        "label": " ex-coin",
        "indent": "",
        "close": fence,
        "inner": SECRET,
        "end": "\n",
    }
    for which in {t.choose(pools) for _ in range(1 + t.below(2))}:
        usual[which] = t.choose(pools[which])
    end = usual["end"]
    inside = "{indent}{fence}{name}{label}\n:class: dropdown\n{inner}\n{close}\n\nAfter."
    text = usual.get("whole") or inside.format(fence=fence, **usual)
    # Where the fence of an author ends, as CommonMark says, no solution goes on: what follows is everybody's.
    lines = text.replace("\r\n", "\n").split("\n")
    ends = [n for n, line in enumerate(lines) if n and _closes(line, fence)]
    seen = SECRET in "\n".join(lines[ends[0] :]) if ends else False
    cell = nbformat.v4.new_markdown_cell("Before.\n\n" + text.replace("\n", end))

    def call() -> bool:
        kept = exercises.without_solutions([cell], chapter="toy")
        out = "\n".join(one.source for one in kept)
        return seen or SECRET not in out

    return Case(call, right=True)


def _closes(line: str, fence: str) -> bool:
    bare = line.strip(" \t")
    return len(line) - len(line.lstrip(" ")) < 4 and len(bare) >= len(fence) and set(bare) == {fence[0]}


MARKS = ("### BEGIN SOLUTION", "### END SOLUTION", "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS")


@fault("a mark of a solution or of hidden tests written otherwise")
def _(t: Trial) -> Case:
    """A released assignment has no word of what stood between the marks, or it is refused."""
    which = t.choose((0, 2))
    meta = {
        "schema_version": 3,
        "grade": bool(which),
        "solution": not which,
        "locked": bool(which),
        "grade_id": "a",
    }
    meta |= {"points": 1} if which else {}
    lines = ["x = 1", MARKS[which], f"{SECRET} = 2", MARKS[which + 1], "y = 3"]
    if t.below(2):
        lines += [MARKS[which], f"{SECRET} = 4", MARKS[which + 1]]
    at = t.choose([n for n, line in enumerate(lines) if line in MARKS])
    bad = lines[at]
    how = t.choose(
        ("lower", "indent", "less", "more", "gone", "words", "tail", "typo", "wide", "line", "joined")
    )
    lines[at] = {
        "lower": bad.lower(), "indent": "    " + bad, "less": bad[1:], "more": "#" + bad, "gone": "",
        "words": bad.replace(" ", t.choose(("  ", "_", "-", "\t", "\u00a0"))), "tail": bad + " of all",
        "typo": bad[:-1] + "X", "wide": bad.replace("E", "\uff25"), "line": bad.replace("N", "N\\\n", 1),
        "joined": f"z = 0 {bad}",
    }[how]  # fmt: skip
    cell = nbformat.v4.new_code_cell("\n".join(lines), metadata={"nbgrader": meta})
    folder = t.place / "root" / "assignments" / "toy"
    folder.mkdir(parents=True)
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), folder / "toy.ipynb")
    (folder / "rubric.md").write_text("# Toy")
    (t.place / "out").mkdir()

    def call() -> bool:
        (path,) = _assignments.release(t.place / "root", t.place / "out")
        if SECRET in path.read_text(encoding="utf-8"):
            raise RuntimeError("a solution or a hidden test was released")
        return True

    return Case(call, right=True, watch=(t.place / "root", t.place / "out"), parts=True)
