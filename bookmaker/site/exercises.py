"""The exercises and solutions of a notebook, found in its Markdown and by the tags of its code cells.

An exercise and the words of its solution are directives of sphinx-exercise; the code of the solution is
the cell, or the cells, right after those words, tagged `solution`.

>>> text = "````{solution} ex-coin\\n:class: dropdown\\nHeads.\\n````\\nAfter."
>>> _without(text, SOLUTION)
'After.'
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from nbformat import NotebookNode

from bookmaker.runner import notebooks
from privhelpers.errors import DamagedArtifact
from privhelpers.validate import shown

FENCE = re.compile(r"^(`{3,}|:{3,})\{(exercise|solution)\}\s*(.*?)\s*$")
# However a solution is written: what is not found as one would stay in students' copies.
ANY_SOLUTION = re.compile(r"(?i)\{\s*solution(-\w+)?\s*\}|\.\.\s+(\|[^|]*\|\s+)?solution(-\w+)?\s*::")
SOLUTION_TAG = re.compile(r"(?<![^\W\d_])(?i:solution)|Solution")  # a word of a tag: no high-resolution
NEW_LINE = re.compile(r"\r\n?|\n")  # what MyST takes for one, and nothing else
LABEL = re.compile(r"^:label:\s*(\S+)\s*$", re.MULTILINE)
EXERCISE, SOLUTION = "exercise", "solution"


@dataclass(frozen=True)
class _Block:
    """One directive.

    Attributes:
        kind: "exercise" or "solution".
        label: of the exercise; of the exercise that a solution answers.
        title: of an exercise, "" without one.
        lines: first line and the line after its last, in the cell's source.
    """

    kind: str
    label: str
    title: str
    lines: tuple[int, int]


@dataclass(frozen=True)
class Exercise:
    """One exercise of a chapter.

    Attributes:
        chapter: slug of the notebook.
        label: of the exercise.
        title: "" without one.
        cells: numbers of the solution's code cells among all cells of the notebook, from 0.
    """

    chapter: str
    label: str
    title: str
    cells: tuple[int, ...]


def _blocks(source: str, where: str = "a cell") -> list[_Block]:
    """Return the exercise and solution directives of a Markdown cell, in order.

    Raises:
        DamagedArtifact: a directive does not end, an exercise has no label, or a solution is written in
            another way than with a fence at the start of a line.
    """
    lines, blocks, at = NEW_LINE.split(source), [], 0
    while at < len(lines):
        if (opening := FENCE.match(lines[at])) is None:
            at += 1
            continue
        fence, kind, argument = opening.groups()
        closing = re.compile(rf" {{0,3}}{fence}{fence[0]}*[ \t]*")  # as MyST ends it
        end = next((i for i in range(at + 1, len(lines)) if closing.fullmatch(lines[i])), None)
        if end is None:
            raise DamagedArtifact(f"{where}, line {at + 1}: the directive {shown(lines[at])} does not end")
        label = argument if kind == SOLUTION else "".join(LABEL.findall("\n".join(lines[at:end]))[:1])
        if not label:
            raise DamagedArtifact(f"{where}, line {at + 1}: the directive {shown(lines[at])} has no label")
        blocks.append(_Block(kind, label, "" if kind == SOLUTION else argument, (at, end + 1)))
        at = end + 1
    taken_out = {at for block in blocks if block.kind == SOLUTION for at in range(*block.lines)}
    for at, line in enumerate(lines):
        if at not in taken_out and ANY_SOLUTION.search(line):
            raise DamagedArtifact(
                f"{where}, line {at + 1}: {shown(line)} is no solution that can be taken out; begin the "
                "line with ````{solution} and end it with ````"
            )
    return blocks


def _without(source: str, *kinds: str, where: str = "a cell") -> str:
    """Return a Markdown cell's source without its directives of the given kinds."""
    lines = NEW_LINE.split(source)
    for block in reversed(_blocks(source, where)):
        if block.kind in kinds:
            del lines[slice(*block.lines)]
    return "\n".join(lines).strip("\n")


def is_solution(cell: NotebookNode) -> bool:
    """Return whether a cell is the code of a solution."""
    return cell.cell_type == "code" and SOLUTION in notebooks.tags(cell)


def without_solutions(
    cells: list[NotebookNode],
    instead: Callable = lambda _: [],
    kinds: tuple[str, ...] = (SOLUTION,),
    chapter: str = "a chapter",
) -> list[NotebookNode]:
    """Return the cells of a chapter without its solutions, for students, a public site and further runs.

    Args:
        cells: of the chapter; the words of a solution are taken out of them in place.
        instead: returns the cells that stand in place of a solution's code.
        kinds: of directives that are taken out.
        chapter: whose cells they are, for the message.

    Raises:
        DamagedArtifact: a solution cannot be found; the message names the line.
    """
    kept = []
    for number, cell in enumerate(cells):
        if is_solution(cell):
            kept += instead(cell)
            continue
        where = f"{chapter}, cell {number}"
        if left := [tag for tag in notebooks.tags(cell) if SOLUTION_TAG.search(tag)]:
            raise DamagedArtifact(
                f"{where}: a {cell.cell_type} cell with the tag {shown(left[0])} is not taken out; code of a "
                "solution has the tag 'solution', and its words stand in ````{solution}"
            )
        if cell.cell_type == "markdown":
            cell.source = _without(cell.source, *kinds, where=where)
        kept += [cell] if cell.source.strip() else []
    return kept


def exercises(notebook: NotebookNode, chapter: str) -> list[Exercise]:
    """Return the exercises of a chapter with the places of their solutions' code.

    Raises:
        DamagedArtifact: a solution answers no exercise above it, or its code comes before any solution.
    """
    titles: dict[str, str] = {}
    cells: dict[str, list[int]] = {}
    current = None
    for number, cell in enumerate(notebook.cells):
        if is_solution(cell):
            if current is None:
                raise DamagedArtifact(f"{chapter}, cell {number}: code of a solution before any solution")
            cells[current].append(number)
            continue
        where = f"{chapter}, cell {number}"
        for block in _blocks(cell.source, where) if cell.cell_type == "markdown" else []:
            if block.kind != SOLUTION:
                titles[block.label], cells[block.label] = block.title, []
            elif block.label not in titles:
                raise DamagedArtifact(
                    f"{chapter}: the solution of {shown(block.label)} has no exercise above it"
                )
            current = block.label
    return [Exercise(chapter, label, title, tuple(cells[label])) for label, title in titles.items()]
