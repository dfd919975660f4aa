"""The page that shows how the chapters build on each other: the core as a path, the library to its right."""

import re

from nbformat import NotebookNode

from bookmaker.runner import chain
from bookmaker.site._syllabus import BOX, LABEL
from privhelpers.errors import DamagedArtifact

NEEDS = re.compile(r"\{ref\}`(nb-[\w-]+)`")
QUESTION = re.compile(r"^.+\?$", re.MULTILINE)
INTRO = """(chapter-map)=
# How the chapters build on each other

The core is a path: each of its chapters uses what the ones above it explain.
A chapter of the library is shown to the right of the last chapter of the core that it needs;
on a phone, it is below.

"""


def _opening(slug: str, notebook: NotebookNode) -> tuple[str, str, set[str]]:
    """Return the label of a chapter, its question, and the labels of the chapters that it needs."""
    text = notebook.cells[0].source
    label, question, boxes = LABEL.search(text), QUESTION.search(text), dict(BOX.findall(text))
    if not (label and question and "Before you start" in boxes):
        raise DamagedArtifact(
            f"{slug}: its first cell lacks a label, a question, or a box 'Before you start'"
        )
    return label[1], question[0], set(NEEDS.findall(boxes["Before you start"]))


def chapter_map(chapters: dict[str, NotebookNode]) -> str:
    """Return the page `book/chapter_map.md`.

    Args:
        chapters: by slug, in the order of the book; the core among them.

    Raises:
        DamagedArtifact: a chapter does not open as chapters do.
    """
    openings = {slug: _opening(slug, notebook) for slug, notebook in chapters.items()}
    core = {openings[slug][0]: [] for slug in chain.CORE}
    places = list(core)
    needs = {label: needed for label, _, needed in openings.values()}

    def last(label: str, seen: frozenset = frozenset()) -> int:
        """Return the place of the last chapter of the core that a chapter needs, in turn."""
        if label in core:
            return places.index(label)
        below = needs.get(label, set()) - seen
        return max((last(one, seen | {label}) for one in below), default=0)

    for label, _, _ in openings.values():
        if label not in core:
            core[places[last(label)]].append(label)
    rows = []
    for number, (label, library) in enumerate(core.items(), 1):
        question = next(asked for one, asked, _ in openings.values() if one == label)
        links = "\n".join(f"- {{ref}}`{one}`" for one in library)
        rows.append(f":::{{container}} core\n**{number}** {{ref}}`{label}`\n\n{question}\n:::")
        rows += [f":::{{container}} library\n{links}\n:::"] if library else []
    return f"{INTRO}::::{{container}} chapter-map\n" + "\n".join(rows) + "\n::::\n"
