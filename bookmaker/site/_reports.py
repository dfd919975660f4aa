"""The whole report of a chapter that audits something: the file of its run, beside the pages of the site.

It is the page that `make audit` makes, byte for byte as the run left it, and its own policy lets it load and
run nothing. The chapter links to it. In a frame it would need a hole in the site's policy, which knows no
frames; as a part of the chapter it would fill the search and the contents with the headings of every attack.
"""

import shutil
from pathlib import Path

from nbformat import NotebookNode

from bookmaker.runner import notebooks
from bookmaker.runner.plan import Job
from privhelpers.artifacts import check_seal, write_atomic

FOLDER = "reports"  # in the site
FILE = "report.html"  # among the artifacts of a run
TAG = "report"  # of the cell that says where the report is
# A PDF has no such link, so the place stands in words too.
LINK = """

:::{{seealso}}
<a href="../{0}">The whole report of this run</a> (`{0}` in the site): a page to decide by, then the evidence.
:::"""


def _address(slug: str) -> str:
    return f"{FOLDER}/{slug}.html"


def add(page: NotebookNode, slug: str) -> None:
    """Link a chapter to its report, at the end of the cell with the tag `report`; others stay as they are."""
    for cell in page.cells:
        if TAG in notebooks.tags(cell):
            cell.source += LINK.format(_address(slug))


def copy(root: Path, plan: list[Job], html: Path) -> None:
    """Put the reports of complete runs into a built site, and drop those of earlier builds.

    Args:
        root: the repository.
        plan: every run of one profile.
        html: the folder of the site.

    Raises:
        DamagedArtifact: a report is not as it was written.
    """
    shutil.rmtree(html / FOLDER, ignore_errors=True)
    for job in plan:
        report = (root / job.sentinel).with_name(FILE)
        if (root / job.sentinel).is_file() and report.is_file():
            check_seal(report, f"{job.title}: {FILE}")
            write_atomic(html / _address(job.slug), report.read_bytes())
