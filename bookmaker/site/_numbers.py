"""Numbers of the book: a chapter's stands in its file's name, and all else is counted within its page.

Sphinx counts along the table of contents. That would give a chapter another number than its file has
while a number is free, and none to the figures of a chapter's further runs, which are not in the contents.
"""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.environment.collectors.toctree import TocTreeCollector
from sphinx_external_toc.collectors import TocTreeCollectorWithStyles

# In the metadata of a page: its number, what it answers, and by kind the labels that are counted, in order.
CHAPTER, QUESTION, COUNTED = "chapter", "question", "counted"
RUNS = "runs/"  # where the further runs of chapters lie
# They name everything, and explain none.
LISTS = ("book/run_card", "book/course_card", "book/syllabus")


def _section_numbers(self: TocTreeCollector, env: BuildEnvironment) -> list[str]:
    """Number the titles of the chapters and nothing below them; return the pages whose number changed."""
    old, env.toc_secnumbers = env.toc_secnumbers, {}
    for page, metadata in env.metadata.items():
        if number := metadata.get(CHAPTER):
            entries = list(env.tocs[page].findall(nodes.reference))
            env.toc_secnumbers[page] = {entry["anchorname"]: () for entry in entries[1:]}
            env.toc_secnumbers[page][""] = (int(number),)
            entries[0]["secnumber"] = env.titles[page]["secnumber"] = [int(number)]
    pages = old.keys() | env.toc_secnumbers.keys()
    return [page for page in pages if old.get(page) != env.toc_secnumbers.get(page)]


def _kind(env: BuildEnvironment, node: nodes.Element) -> str | None:
    """Return what a node is counted as: a figure with a caption, a formula, a theorem, an exercise."""
    for domain in env.domains.values():
        kind = domain.get_enumerable_node_type(node)
        if kind and (domain.name != "std" or domain.get_numfig_title(node)):
            return kind
    return None


def _note_counted(app: Sphinx, doctree: nodes.document) -> None:
    """Note what a page counts while it is in hand: reading all pages back is a third of a small rebuild."""
    counted: dict[str, list[str]] = {}
    for node in doctree.findall(nodes.Element):
        kind = _kind(app.env, node)
        if kind and node["ids"]:
            counted.setdefault(kind, []).append(node["ids"][0])
    app.env.metadata[app.env.docname][COUNTED] = counted


def _figure_numbers(self: TocTreeCollector, env: BuildEnvironment) -> list[str]:
    """Count the figures, formulas and theorems of each page; return the pages where a number changed."""
    old, env.toc_fignumbers = env.toc_fignumbers, {}
    for page in env.found_docs:
        chapter = env.toc_secnumbers.get(page, {}).get("", ())
        kinds = {
            kind: {label: (*chapter, number) for number, label in enumerate(dict.fromkeys(labels), 1)}
            for kind, labels in env.metadata[page][COUNTED].items()
        }
        if kinds:
            env.toc_fignumbers[page] = kinds
    pages = old.keys() | env.toc_fignumbers.keys()
    return [page for page in pages if old.get(page) != env.toc_fignumbers.get(page)]


def _set_apart(app: Sphinx, doctree: nodes.document) -> None:
    """Keep further runs of chapters out of the contents and the search, and lists out of the search."""
    metadata = app.env.metadata[app.env.docname]
    if app.env.docname.startswith(RUNS):
        metadata["orphan"] = True
    if app.env.docname.startswith((RUNS, *LISTS)):
        metadata["nosearch"] = True


def setup(app: Sphinx) -> None:
    """Count in this way."""
    # jupyter-book's own collector, which counts parts in styles of their own.
    TocTreeCollectorWithStyles.assign_section_numbers = _section_numbers
    TocTreeCollectorWithStyles.assign_figure_numbers = _figure_numbers
    app.connect("doctree-read", _set_apart)
    app.connect("doctree-read", _note_counted, priority=900)  # when all others have left the page as it stays
