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
HEADING = re.compile(r"^(#{2,6}) ")


def _labels(notebook: NotebookNode) -> set[str]:
    """Return every label that the notebook defines."""
    labels = {
        label
        for cell in notebook.cells
        if cell.cell_type == "markdown"
        for pattern in LABELS
        for label in pattern.findall(cell.source)
    }
    for cell in notebook.cells:
        for part in ("figure", "image", "table"):
            name = cell.metadata.get("mystnb", {}).get(part, {}).get("name")
            labels |= {name} if name else set()
    return labels


def _rename(text: str, labels: set[str], suffix: str) -> str:
    """Give every label, where it is set and where it is referred to, the suffix of this page."""
    for label in labels:
        name = re.escape(label)

        def renamed(found: re.Match, new: str = f"{label}{suffix}") -> str:
            return f"{found[1]}{new}{found[2]}"

        for place in (
            rf"^(\(){name}(\)=)",
            rf"^(\$\$\s*\(){name}(\))",
            rf"^(\s*:(?:label|name):\s*){name}([ \t]*)$",
            rf"(\{{[\w:]+\}}`(?:[^`]*<)?){name}(>?`)",
            rf"(\]\(#?){name}(\))",
        ):
            text = re.sub(place, renamed, text, flags=re.MULTILINE)
    return text


def _without_empty_headings(cells: list[NotebookNode]) -> list[NotebookNode]:
    """Return the cells without a heading that nothing follows (its exercises have gone)."""
    kept = list(cells)
    for i in reversed(range(len(kept))):
        if kept[i].cell_type != "markdown":
            continue
        lines = kept[i].source.rstrip().splitlines()
        last = HEADING.match(lines[-1]) if lines else None
        after = kept[i + 1] if i + 1 < len(kept) else None
        follows = HEADING.match(after.source) if after is not None and after.cell_type == "markdown" else None
        if last and (after is None or (follows and len(follows[1]) <= len(last[1]))):
            kept[i].source = "\n".join(lines[:-1]).rstrip()
            if not kept[i].source:
                del kept[i]
    return kept


def add_switch(page: NotebookNode, here: str, documents: dict[str, str]) -> None:
    """Put links to the chapter's other runs below its title.

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
    for cell in page.cells:
        if cell.cell_type == "markdown":
            cell.source, count = TITLE.subn(rf"\g<0>\n\n{switch}\n", cell.source, count=1)
            if count:
                return


def variant(page: NotebookNode, *, model: str) -> NotebookNode:
    """Return a chapter's page, run on another model, so that both can stand in one book.

    Args:
        page: the page of that run, ready for staging; not changed.
        model: name of the model, as in `dp-eps-4`.
    """
    made = nbformat.from_dict(page)
    # Exercises and solutions stand once, in the chapter.
    kinds = (exercises.EXERCISE, exercises.SOLUTION)
    made.cells = _without_empty_headings(exercises.without_solutions(made.cells, kinds=kinds))
    labels, suffix = _labels(made), f"--{model.replace('.', '-').replace('_', '-')}"
    titled = False
    for cell in made.cells:
        for part in cell.metadata.get("mystnb", {}).values():
            if isinstance(part, dict) and part.get("name") in labels:
                part["name"] += suffix
        if cell.cell_type != "markdown":
            continue
        cell.source = _rename(cell.source, labels, suffix)
        if not titled:
            cell.source, count = TITLE.subn(rf"# \1 ({in_words(model)})", cell.source, count=1)
            titled = bool(count)
    return made
