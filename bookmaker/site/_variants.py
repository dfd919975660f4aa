"""A further run of a chapter as a page of its own: same text, own title, own labels, no exercises."""

import re

import nbformat
from nbformat import NotebookNode

from bookmaker.site import exercises
from privhelpers.text import in_words

LABELS = (
    re.compile(r"^\(([^()\s]+)\)=\s*$", re.MULTILINE),  # (label)= above a heading
    re.compile(r"^\$\$\s*\(([^()\s]+)\)\s*$", re.MULTILINE),  # closing line of an equation
    re.compile(r"^\s*:(?:label|name):\s*(\S+)\s*$", re.MULTILINE),  # option of a directive
)
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
NOTE = """The tables, figures, and inserted numbers of this page belong to this model.
**The sentences were written for the chapter's own page**; the list at the end marks those that are true here.
"""
MESSAGE = re.compile(r"^\*\*[^*]+\*\* ")  # of a caption: what is to be seen in the chapter's own run


def _named_parts(cell: NotebookNode) -> list[dict]:
    """Return the metadata of the figure, image and table of a code cell that have a label."""
    parts = cell.metadata.get("mystnb", {}).values()
    return [part for part in parts if isinstance(part, dict) and part.get("name")]


def add_switch(page: NotebookNode, here: str, documents: dict[str, str]) -> None:
    """Put links to the chapter's other runs below its title, which is in the first cell.

    Args:
        page: one run of the chapter; changed.
        here: its model.
        documents: model -> document name of its page, every run of the chapter.
    """
    links = [
        f"**{in_words(model)}**" if model == here else f"{{doc}}`{in_words(model)} </{document}>`"
        for model, document in documents.items()
    ]
    switch = f":::{{container}} models\nThis chapter on the model: {' '.join(links)}\n:::"
    page.cells[0].source = TITLE.sub(rf"\g<0>\n\n{switch}\n", page.cells[0].source, count=1)


def variant(page: NotebookNode, *, model: str) -> NotebookNode:
    """Return a chapter's page, run on another model, so that both can be in one book.

    Args:
        page: the page of that run, ready for staging; not changed.
        model: name of the model, as in `dp-eps-4`.
    """
    made = nbformat.from_dict(page)
    kinds = (exercises.EXERCISE, exercises.SOLUTION)  # they are in the chapter alone
    cells = exercises.without_solutions(made.cells, kinds=kinds)
    made.cells = [cell for cell in cells if cell.source.strip() != "## Exercises"]
    prose = [cell for cell in made.cells if cell.cell_type == "markdown"]
    parts = [part for cell in made.cells for part in _named_parts(cell)]
    labels = {label for cell in prose for pattern in LABELS for label in pattern.findall(cell.source)}
    labels |= {part["name"] for part in parts}
    suffix = f"--{model.replace('.', '-').replace('_', '-')}"
    names = "|".join(map(re.escape, sorted(labels)))
    # In brackets, backticks or a link, or after an option: a word of the text may be the same.
    used = re.compile(rf"(?:(?<=[(`<#])|(?<=:label: )|(?<=:name: ))(?:{names})(?=[)`>]|\s*$)", re.MULTILINE)
    for part in parts:
        part["name"] += suffix
        if "caption" in part:
            part["caption"] = MESSAGE.sub("", part["caption"])
    for cell in prose if labels else []:
        cell.source = used.sub(lambda label: label[0] + suffix, cell.source)
    title = f"# \\1 ({in_words(model)})\n\n{NOTE}"
    prose[0].source = TITLE.sub(title, prose[0].source, count=1)
    return made
