"""Reading notebooks, and cleaning executed ones of everything that names this machine."""

import copy
import functools
import itertools
import json
import re
from pathlib import Path

import nbformat
from nbformat import NotebookNode, v4

from privaudit import console
from privhelpers.artifacts import write_atomic
from privhelpers.errors import DamagedArtifact, RunFailed
from privhelpers.text import CROSS, quoted

KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}
INJECTED = "injected-parameters"  # papermill's tag
KERNEL_FILE = re.compile(r"[^\s\"']*ipykernel_\d+/\d+\.py")
UNREADABLE = (ValueError, KeyError, AttributeError, TypeError, RecursionError, nbformat.ValidationError)
# Of nbformat, if a cell of format 3 has no type, and if the format is not a number.
UNREADABLE += (NameError, AssertionError)
COLOR = re.compile(r"(\x1b\[[0-9;]*m)")  # what follows it is not part of a word
# Of what was printed: states of a progress bar, each drawn over by the next.
OVERWRITTEN = re.compile(r"[^\n\r]*\r(?=[^\n\r])")


@functools.lru_cache(maxsize=64)
def _parsed(content: bytes) -> NotebookNode:
    notebook = nbformat.reads(content.decode("utf-8"), as_version=4)
    nbformat.validate(notebook)
    json.dumps(notebook, ensure_ascii=False).encode()  # half of a character, which no file can hold, raises
    return notebook


def _shared(path: Path) -> NotebookNode:
    """Return the notebook at `path`, cached, because a plan reads each one eight times: do not change it."""
    try:
        return _parsed(path.read_bytes())
    except UNREADABLE as error:
        line = str(error).strip().partition("\n")[0] or type(error).__name__
        what = f"{console.named(path)}: not a notebook of format 4 ({quoted(line)})"
        raise DamagedArtifact(f"{what}; save it from Jupyter, or restore it") from error


def read(path: Path) -> NotebookNode:
    """Return the notebook at `path`, refusing a file that is not one."""
    return copy.deepcopy(_shared(path))


def code_of(path: Path, tag: str | None = None) -> list[str]:
    """Return the source of every code cell of a notebook, or of those with a tag."""
    return [cell.source for cell in code_cells(_shared(path)) if tag is None or tag in tags(cell)]


def tags(cell: NotebookNode) -> list[str]:
    """Return the tags of a cell."""
    return list(cell.metadata.get("tags", []))


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    """Return the code cells, in order."""
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def naming(folder: str) -> str:
    """Return a pattern of a folder's name where a text means it: `/p` is not part of `and/pages` or `</p>`.

    It looks back, since a literal is found fast. After the name of a folder that ends in "/" is anything.
    """
    name = re.escape(folder)
    end = "" if folder.endswith("/") else r"(?![\w-]|\.\w)"
    return rf"{name}(?:(?<=file://{name})|(?<![\w<.\\/)}}\]-]{name})(?<!&lt;{name})){end}"


def without_paths(text: str, root: Path) -> str:
    """Return a text without this copy's place and the kernel's file names."""
    place = re.compile(f"{naming(str(root))}(/?)")
    parts = [place.sub(lambda found: "" if found[1] else ".", part) for part in COLOR.split(text)]
    return KERNEL_FILE.sub("<cell>", "".join(parts))


def _whole_streams(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Return outputs whose printed text is one piece of stdout and one of stderr, between two others.

    A kernel sends what is printed in pieces, and where one ends depends on the clock.
    """
    whole = []
    for printed, group in itertools.groupby(outputs, lambda output: output.output_type == "stream"):
        if not printed:
            whole += group
            continue
        texts = {"stdout": "", "stderr": ""}
        for output in group:
            texts[output.name] = texts.get(output.name, "") + output.text
        whole += [v4.new_output("stream", name=name, text=text) for name, text in texts.items() if text]
    return whole


def clean(notebook: NotebookNode, root: Path) -> None:
    """Drop what says on which machine and when a notebook ran: metadata, and paths in printed text.

    The cell of the injected parameters, whose id papermill draws, gets a fixed one, so that the same run
    leaves the same bytes.

    Args:
        notebook: an executed notebook, changed in place.
        root: the repository; paths below it become relative.
    """
    language = notebook.metadata.get("language_info", {})
    notebook.metadata = NotebookNode(
        kernelspec=NotebookNode(KERNELSPEC), language_info=NotebookNode(name=language.get("name", "python"))
    )
    for cell in notebook.cells:
        if INJECTED in tags(cell):
            cell.id = INJECTED
        for key in ("papermill", "execution", "ExecuteTime"):
            cell.metadata.pop(key, None)
        if "outputs" in cell:
            cell.outputs = _whole_streams(cell.outputs)
        for output in cell.get("outputs", []):
            holder = output if "text" in output else output.get("data", {})
            for kind in holder.keys() & {"text", "text/plain", "text/html", "text/markdown"}:
                holder[kind] = without_paths(holder[kind], root)
            if "text" in output:
                output.text = OVERWRITTEN.sub("", output.text)


def check_complete(notebook: NotebookNode, name: str) -> None:
    """Refuse an executed notebook in which a code cell failed or never ran.

    A `sys.exit(0)` ends a papermill run with success and a killed kernel leaves every cell marked as
    completed, so the cells themselves are asked.

    Raises:
        RunFailed: naming the first such cell.
    """
    for number, cell in enumerate(code_cells(notebook), 1):
        if not cell.source.strip():
            continue
        errors = [output for output in cell.outputs if output.output_type == "error"]
        if errors:
            raise RunFailed(f"{name}: code cell {number} raised {errors[0].ename}: {errors[0].evalue}")
        if cell.execution_count is None:
            raise RunFailed(f"{name}: code cell {number} never ran (did an earlier cell call sys.exit?)")


def crosses(notebook: NotebookNode) -> list[str]:
    """Return the claims of an executed notebook that its run does not show (`privhelpers.pages.claims`)."""
    cells = [cell for cell in code_cells(notebook) if "claims" in tags(cell)]
    texts = [output.get("data", {}).get("text/plain", "") for cell in cells for output in cell.outputs]
    lines = [line for text in texts for line in text.split("\n")]
    return [line.removeprefix(CROSS).strip() for line in lines if line.startswith(CROSS)]


def refresh_prose(executed: NotebookNode, current: NotebookNode) -> NotebookNode:
    """Return `current` with the outputs of `executed`, a run of the same code under possibly older prose.

    A change of prose does not rerun a notebook, so a page takes its words (and cell metadata: captions,
    tags) from the source and its outputs and injected parameters from the run.

    Raises:
        RunFailed: the code cells differ, so the outputs do not belong to this source.
    """
    ran = code_cells(executed)
    injected = [cell for cell in ran if INJECTED in tags(cell)]
    ran = [cell for cell in ran if INJECTED not in tags(cell)]
    page = nbformat.from_dict(current)
    fresh = code_cells(page)
    if [cell.source for cell in ran] != [cell.source for cell in fresh]:
        raise RunFailed("the code of the notebook changed after it ran: build the book again")
    for cell, old in zip(fresh, ran, strict=True):
        cell.outputs, cell.execution_count = old.outputs, old.execution_count
    for cell in injected:
        place = next(i for i, other in enumerate(page.cells) if "parameters" in tags(other))
        page.cells.insert(place + 1, cell)
    return page


def write(notebook: NotebookNode, path: Path) -> None:
    """Write a notebook so that a crash leaves the old file or the new one."""
    write_atomic(path, (nbformat.writes(notebook, version=4) + "\n").encode())
