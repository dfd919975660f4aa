"""Numbers of the book: a chapter has the number of its file, and everything else is counted within its page.

Sphinx counts along the table of contents. That would give a chapter another number than its file has
while a number is free, and none to the figures of a chapter's further runs, which are not in the contents.
"""

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.environment.collectors.toctree import TocTreeCollector
from sphinx_external_toc.collectors import TocTreeCollectorWithStyles

CHAPTER = "chapter"  # in the metadata of a page: its number
RUNS = "runs/"  # where the further runs of chapters lie
# They name everything, and explain none.
LISTS = ("book/run_card", "book/course_card", "book/syllabus")


def _section_numbers(self: TocTreeCollector, env: BuildEnvironment) -> list[str]:
    """Number the titles of the chapters and nothing below them; every build is whole, so no page is named."""
    env.toc_secnumbers = {}
    for page, metadata in env.metadata.items():
        if number := metadata.get(CHAPTER):
            entries = list(env.tocs[page].findall(nodes.reference))
            env.toc_secnumbers[page] = {entry["anchorname"]: () for entry in entries[1:]}
            env.toc_secnumbers[page][""] = (int(number),)
            entries[0]["secnumber"] = env.titles[page]["secnumber"] = [int(number)]
    return []


def _kind(env: BuildEnvironment, node: nodes.Element) -> str | None:
    """Return what a node is counted as: a figure with a caption, a formula, a theorem, an exercise."""
    for domain in env.domains.values():
        kind = domain.get_enumerable_node_type(node)
        if kind and (domain.name != "std" or domain.get_numfig_title(node)):
            return kind
    return None


def _figure_numbers(self: TocTreeCollector, env: BuildEnvironment) -> list[str]:
    """Count the figures, formulas and theorems of each page."""
    env.toc_fignumbers = {}
    for page in env.found_docs:
        chapter = env.toc_secnumbers.get(page, {}).get("", ())
        counted: dict[str, dict[str, tuple[int, ...]]] = {}
        for node in env.get_doctree(page).findall(nodes.Element):
            kind = _kind(env, node)
            if kind and node["ids"]:
                numbers = counted.setdefault(kind, {})
                numbers.setdefault(node["ids"][0], (*chapter, len(numbers) + 1))
        env.toc_fignumbers[page] = counted
    return []


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
