"""The exercises and solutions of a notebook, found in its Markdown and by the tags of its code cells.

An exercise and the words of its solution are directives of sphinx-exercise; the code of the solution is
the cell, or the cells, right after those words, tagged `solution`.
"""

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass

from nbformat import NotebookNode

from bookmaker.runner import notebooks
from privhelpers.errors import DamagedArtifact
from privhelpers.validate import shown

# A directive, whose end has at least as many signs as its beginning; code inside of it has fewer.
BLOCK = re.compile(
    r"^(`{3,}|:{3,})\{(?P<kind>exercise|solution)\}[ \t]*(?P<argument>.*?)[ \t]*\n"
    r"(?P<body>(?:.*\n)*?) {0,3}\1[`:]*[ \t]*$\n?",
    re.MULTILINE,
)
OPENING = re.compile(r"^(?:`{3,}|:{3,})\{exercise\}", re.MULTILINE)
# However a solution is written: what is not found as one would stay in students' copies.
ANY_SOLUTION = re.compile(r"(?i)\{\s*solution(-\w+)?\s*\}|\.\.\s+(\|[^|]*\|\s+)?solution(-\w+)?\s*::")
SOLUTION_TAG = re.compile(r"(?<![^\W\d_])(?i:solution)|Solution")  # a word of a tag: no high-resolution
NEW_LINE = re.compile(r"\r\n?|\n")  # what MyST takes for one, and nothing else
LABEL = re.compile(r"^:label:\s*(\S+)\s*$", re.MULTILINE)
EXERCISE, SOLUTION = "exercise", "solution"
HEADING = "## Solutions"  # a cell of its own, above the solutions at a chapter's end


@dataclass(frozen=True)
class Exercise:
    """One exercise of a chapter.

    Attributes:
        label: of the exercise.
        title: "" without one.
        cells: numbers of the solution's code cells among all cells of the notebook, from 0.
    """

    label: str
    title: str
    cells: tuple[int, ...]


def _label(block: re.Match[str]) -> str:
    """Return the label of an exercise, or of the exercise that a solution answers; "" if there is none."""
    return block["argument"] if block["kind"] == SOLUTION else "".join(LABEL.findall(block["body"])[:1])


def _blocks(source: str, where: str) -> list[re.Match[str]]:
    """Return the exercise and solution directives of a Markdown cell, in order.

    Raises:
        DamagedArtifact: a directive does not end, or has no label, or a solution is written in another way
            than with a fence at the start of a line.
    """
    blocks = list(BLOCK.finditer(source))
    solutions = [block for block in blocks if block["kind"] == SOLUTION]
    wrong = [block.start() for block in blocks if not _label(block)]
    for pattern, places in ((ANY_SOLUTION, solutions), (OPENING, blocks)):
        starts = [found.start() for found in pattern.finditer(source)]
        wrong += [at for at in starts if not any(place.start() <= at < place.end() for place in places)]
    if wrong:
        number = source.count("\n", 0, min(wrong))
        line = shown(source.split("\n")[number])
        raise DamagedArtifact(
            f"{where}, line {number + 1}: {line} cannot be taken out; an exercise has a :label:, a solution "
            "begins a line with ````{solution} and the label, and both end with as many signs"
        )
    return blocks


def _without(source: str, *kinds: str, where: str) -> str:
    """Return a Markdown cell's source without its directives of the given kinds."""
    source = NEW_LINE.sub("\n", source)
    for block in reversed(_blocks(source, where)):
        if block["kind"] in kinds:
            source = source[: block.start()] + source[block.end() :]
    return source.strip("\n")


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
        instead: returns the cells that replace a solution's code.
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
        kept += [cell] if cell.source.strip() not in ("", HEADING) else []
    return kept


def fenced(text: str, kind: str = "text") -> str:
    """Return text as a block of Markdown that its own backticks cannot end, of a `kind` such as "python"."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{kind}\n{text.rstrip()}\n{fence}"


def _shown(cell: NotebookNode, picture: str) -> tuple[str, dict[str, bytes]]:
    """Return the code of a solution and what it showed, as Markdown, and the file of its picture."""
    parts, files = [fenced(cell.source, "python")], {}
    for output in cell.outputs:
        data = output.get("data", {})
        if "scrapbook" in output.get("metadata", {}):
            continue
        if "image/png" in data:
            files[picture] = base64.b64decode(data["image/png"])
            alt = " ".join(cell.metadata["mystnb"]["image"]["alt"].split())
            parts.append(f"```{{image}} /{picture}\n:alt: {alt}\n```")
        elif "text/html" in data:
            parts.append(fenced(data["text/html"], "{raw} html"))
        elif text := (output.get("text") or data.get("text/plain")):
            parts.append(fenced(text))
    return "\n\n".join(parts), files


def fold_solutions(page: NotebookNode, slug: str) -> dict[str, bytes]:
    """Move the code and the results of each solution into its words, so that one fold has all of it.

    Args:
        page: the chapter with outputs that are fit for a page; changed.
        slug: of the chapter, which begins the names of the pictures.

    Returns:
        The pictures of the solutions, by their place in the site.
    """
    files, kept, words = {}, [], None
    for number, cell in enumerate(page.cells):
        if not is_solution(cell):
            kept.append(cell)
            blocks = _blocks(cell.source, slug) if cell.cell_type == "markdown" else []
            words = cell if blocks and blocks[-1]["kind"] == SOLUTION else None
            continue
        if words is None:  # below other words
            kept.append(cell)
            continue
        shown, pictures = _shown(cell, f"pictures/{slug}-{number}.png")
        block = _blocks(words.source, slug)[-1]
        fence = "`" * (2 + max(map(len, re.findall(r"`{3,}", f"{block[0]}{shown}"))))
        told = f"{fence}{{solution}} {block['argument']}\n{block['body'].rstrip()}\n\n{shown}\n{fence}\n"
        words.source = words.source[: block.start()] + told + words.source[block.end() :]
        files |= pictures
        # What a solution tells the prose is kept, without its code.
        told_here = [output for output in cell.outputs if "scrapbook" in output.get("metadata", {})]
        if told_here:
            cell.outputs, cell.metadata["tags"] = told_here, ["remove-input"]
            kept.append(cell)
    page.cells = kept
    return files


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
        source = NEW_LINE.sub("\n", cell.source) if cell.cell_type == "markdown" else ""
        for block in _blocks(source, where):
            label = _label(block)
            if block["kind"] != SOLUTION:
                titles[label], cells[label] = block["argument"], []
            elif label not in titles:
                raise DamagedArtifact(f"{chapter}: the solution of {shown(label)} has no exercise above it")
            current = label
    return [Exercise(label, title, tuple(cells[label])) for label, title in titles.items()]
