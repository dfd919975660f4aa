"""The whole book as one PDF: the pages of the built site in order, printed by Chromium.

It prints the site that passed every check, so paper and screen show the same. Chromium gets the files of the
site under an address that does not exist, and nothing else.
"""

import mimetypes
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from bookmaker.runner import published
from bookmaker.site._build import FIRST_PAGE, TITLE
from privaudit import console
from privhelpers import __version__
from privhelpers.artifacts import parse_yaml, write_sealed
from privhelpers.errors import MissingProgram, RunFailed

SUMMARY = "Teaching, measuring and auditing the privacy of language models fine-tuned on clinical notes."
ADDRESS = "http://book.invalid/"  # no server can have this name (RFC 2606)
STYLE = "_static/print.css"
SCRIPT = Path(__file__).with_name("print.js")
PAPER = {"width": 642, "height": 960}  # what A4 leaves inside the margins of STYLE, in CSS pixels
UNSET = """() => [...document.querySelectorAll('.math')]
    .filter(one => !one.querySelector('mjx-container') || one.querySelector('mjx-merror'))
    .map(one => `${one.closest('article').id}: ${one.textContent.slice(0, 60)}`)"""


def parts(site: Path) -> list[dict[str, Any]]:
    """Return the table of contents of a staged site as `print.js` reads it.

    Args:
        site: the folder `runs/<profile>/site`.
    """
    toc = parse_yaml((site / "_toc.yml").read_text(encoding="utf-8"))
    print_parts: list[dict[str, Any]] = [{"caption": "", "pages": [{"name": toc["root"], "level": 1}]}]
    for part in toc["parts"]:
        pages = [{"name": chapter["file"], "level": 1} for chapter in part["chapters"]]
        print_parts.append({"caption": part["caption"], "pages": pages})
    return print_parts


class _Server:
    """Answers Chromium from the folder of the site, and remembers what it could not answer."""

    def __init__(self, html: Path) -> None:
        self.html = html.resolve()
        self.refused: list[str] = []

    def answer(self, route: Any) -> None:
        """Send a file of the site; stop every other request."""
        url = route.request.url
        if url == ADDRESS + SCRIPT.name:  # under an address of its own: no policy lets it into a page
            route.fulfill(body=SCRIPT.read_bytes(), content_type="text/javascript")
            return
        path = (self.html / unquote(urlsplit(url).path).lstrip("/")).resolve()
        if url.startswith(ADDRESS) and path.is_relative_to(self.html) and path.is_file():
            kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
            route.fulfill(body=path.read_bytes(), content_type=kind)
            return
        self.refused.append(url.removeprefix(ADDRESS))
        route.abort()

    def check(self) -> None:
        """Raise RunFailed if anything was asked for that is not a file of the site."""
        if self.refused:
            asked = ", ".join(dict.fromkeys(self.refused[:3]))
            raise RunFailed(f"the book asks for {asked}, which is not a file of its site; build it again")


def _assemble(tab: Any, book: dict[str, Any], server: _Server) -> None:
    """Make one page of all pages in the tab, ready to be printed."""
    tab.emulate_media(media="print", color_scheme="light")
    tab.goto(ADDRESS + FIRST_PAGE, wait_until="load")
    tab.evaluate("() => window.MathJax?.startup?.promise")
    server.check()
    tab.add_style_tag(url=f"/{STYLE}")
    tab.add_script_tag(url=f"/{SCRIPT.name}")
    tab.evaluate("book => assemble(book)", book)
    server.check()
    if unset := tab.evaluate(UNSET):
        raise RunFailed(f"formulas that were not typeset: {len(unset)}, the first in {unset[0]}")


def render(html: Path, book: dict[str, Any]) -> bytes:
    """Return a built site as a tagged PDF with bookmarks.

    Args:
        html: the folder with `index.html`.
        book: `parts`, see the function; `title`, and `front`, the lines of the title page.

    Raises:
        MissingProgram: there is no Chromium, or no playwright.
        RunFailed: a page asks for what the site does not have, a formula was not typeset, or Chromium
            made no PDF.
    """
    server = _Server(html)

    path = console.require_chromium("prints the book")
    try:
        from playwright.sync_api import Error, sync_playwright
    except ImportError:
        raise MissingProgram(
            "no playwright, which tells Chromium what to print: make -f dev.mk env installs it"
        ) from None
    try:
        with sync_playwright() as tools:
            opened = tools.chromium.launch(executable_path=path, args=console.chromium_arguments())
            tab = opened.new_context(viewport=PAPER).new_page()
            tab.context.route("**/*", server.answer)
            _assemble(tab, book, server)
            made = tab.pdf(prefer_css_page_size=True, print_background=True, tagged=True, outline=True)
            opened.close()
    except Error as error:
        server.check()  # the likelier cause
        raise RunFailed(f"Chromium did not print the book ({error.message.splitlines()[0]})") from error
    return made


def write(root: Path, profile: str, *, solutions: bool = True) -> Path:
    """Print a site of a profile to a file in `runs/<profile>/`, see `published.PDFS`, and return that file.

    Args:
        root: the repository.
        profile: whose site, built and checked.
        solutions: whether it is the site that shows them.

    Raises:
        MissingArtifact: there is no such site, or its last build failed.
        DamagedArtifact: a file of the site changed after it was built.
        MissingProgram: there is no Chromium, or no playwright.
        RunFailed: the book was not printed; an older PDF stays as it is.
    """
    site = published.finished(root, profile, solutions=solutions)
    front = [TITLE, SUMMARY, f"Version {__version__}, made from the runs of profile {profile}"]
    made = render(site / "_build" / "html", {"parts": parts(site), "title": TITLE, "front": front})
    place = root / "runs" / profile / published.PDFS[solutions]
    write_sealed(place, made)
    return place
