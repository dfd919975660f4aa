"""What a chapter writes as a page of its own, an audit's report or a sheet for readers, in the site.

It lies next to the pages of the site, byte for byte as its run left it, and its own policy lets it load and
run nothing. The chapter links to it. In a frame it would need a hole in the site's policy, which knows no
frames; as a part of the chapter it would fill the search and the contents with the headings of every attack.
"""

from pathlib import Path

from nbformat import NotebookNode

from bookmaker.runner import notebooks
from bookmaker.runner.plan import Job
from privhelpers.artifacts import check_seal, write_atomic

FOLDER = "reports"  # in the site
# By the tag of the cell that says where it is, which names the file of the run too: the words of the link.
WRITTEN = {
    "report": ("The whole report of this run", "a page to decide by, then the evidence"),
    "sheet": ("The sheet of this run", "what a reader gets, without the key"),
}
# A PDF has no such link, so the path is shown too.
LINK = """

:::{{seealso}}
<a href="../{0}">{1}</a> (`{0}` in the site): {2}.
:::"""


def _address(slug: str) -> str:
    return f"{FOLDER}/{slug}.html"


def add(page: NotebookNode, slug: str) -> None:
    """Link a chapter to what it wrote, at the end of the cell with that tag; others stay as they are."""
    for cell in page.cells:
        for tag in WRITTEN.keys() & set(notebooks.tags(cell)):
            cell.source += LINK.format(_address(slug), *WRITTEN[tag])


def copy(root: Path, plan: list[Job], html: Path) -> None:
    """Put what complete runs wrote into a built site, a page a chapter.

    Args:
        root: the repository.
        plan: every run of one profile.
        html: the folder of the site.

    Raises:
        DamagedArtifact: a page is not as it was written.
    """
    for job in plan:
        for name in WRITTEN:
            page = (root / job.sentinel).with_name(f"{name}.html")
            if (root / job.sentinel).is_file() and page.is_file():
                check_seal(page, f"{job.title}: {page.name}")
                write_atomic(html / _address(job.slug), page.read_bytes())
