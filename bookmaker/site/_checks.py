"""Checks that Sphinx does not make: what pages load, where raw links lead, and names of this machine.

Every page has a content security policy: nothing comes from another host, so the site works offline.
"""

import os
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from bookmaker.runner import notebooks
from privhelpers.artifacts import write_atomic

# Where a folder is opened without a server, some browsers do not count its files as 'self'.
POLICY = "default-src 'self' file: data: 'unsafe-inline'; object-src 'none'; base-uri 'none'"
NAME = "Content-Security-Policy"
HEAD = re.compile(r'<head>\s*(?:<meta charset="utf-8"\s*/?>)?')
LOADS = ("src", "srcset", "poster", "data")  # attributes; and the links of a head
FOR_READERS = ("http", "https", "mailto")  # links that may lead elsewhere


def _html_pages(html: Path) -> list[Path]:
    return sorted(path for path in html.rglob("*.html") if "_static" not in path.relative_to(html).parts)


def protect(html: Path) -> None:
    """Write the policy into every page of a folder that has none, in front of all that the page loads."""
    for path in _html_pages(html):
        page = path.read_text(encoding="utf-8")
        if NAME not in page.partition("</head>")[0]:
            tag = f'<meta http-equiv="{NAME}" content="{POLICY}">'
            write_atomic(path, HEAD.sub(rf"\g<0>{tag}", page, count=1).encode())


class _Page(HTMLParser):
    """What one page loads, links to and defines, and its pictures without a description."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: set[str] = set()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.undescribed: set[str] = set()
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        self.loads |= {values[name].split()[0] for name in LOADS if values.get(name, "").strip()}
        if tag == "link" and values.get("rel") != "canonical":
            self.loads.add(values.get("href", ""))
        elif tag == "a" and values.get("href"):
            self.links.add(values["href"])
        elif tag == "meta" and values.get("http-equiv") == "refresh":
            self.links.add(values.get("content", "").partition("url=")[2])
        elif tag == "img":
            # A generated name of a file is what Sphinx writes where the author wrote nothing.
            alt, name = values.get("alt", "").strip(), PurePosixPath(unquote(values.get("src", ""))).stem
            if not alt or PurePosixPath(alt).stem == name:
                self.undescribed.add(name)


def _link_problems(path: Path, pages: dict[Path, _Page]) -> Iterator[str]:
    """Yield what a page loads from other hosts, and the links that lead nowhere."""
    page = pages[path]
    for url in sorted(page.loads | page.links):
        parts = urlsplit(url)
        if parts.scheme == "data" or (url in page.links - page.loads and parts.scheme in FOR_READERS):
            continue
        if parts.scheme or parts.netloc:
            yield f"{url[:60]} is not a file of the site"
            continue
        # Not `resolve`, which asks the disk for every folder on the way, of some hundred links a page.
        place = Path(os.path.normpath(path.parent / unquote(parts.path))) if parts.path else path
        place = place / "index.html" if place.is_dir() else place
        if not place.is_file():
            yield f"{url} leads nowhere"
        elif parts.fragment and place in pages and unquote(parts.fragment) not in pages[place].anchors:
            yield f"{url} leads to a place that its page does not have"


def machine_strings(root: Path) -> list[re.Pattern[str]]:
    """Return patterns of text that would name this machine: a home folder and the folder of the repository.

    A copy at the top of the disk, such as the `/work` of a container, has a name that a page may say.
    """
    own = [f"{Path.home()}/", *([str(root)] if len(root.parts) > 2 else [])]
    patterns = [notebooks.naming(name) for name in own if len(name) > 2]
    patterns += [notebooks.naming(f"/{users}/") + r"\w+/" for users in ("home", "Users")]
    return [re.compile(pattern) for pattern in [*patterns, r"[A-Z]:\\Users\\"]]


def findings(html: Path, machine: list[re.Pattern[str]]) -> list[str]:
    """Return the problems of a built site that prevent publication, as `page: problem`.

    Args:
        html: the folder with `index.html`.
        machine: patterns that no page, source or index of it may hold, see `machine_strings`.
    """
    if not (html / "index.html").is_file():
        return ["index.html: is missing"]
    texts = {path: path.read_text(encoding="utf-8") for path in _html_pages(html)}
    pages = {path: _Page(text) for path, text in texts.items()}
    problems = {path: list(_link_problems(path, pages)) for path in pages}
    for path, page in pages.items():
        problems[path] += [f"{name} is a picture without a description" for name in sorted(page.undescribed)]
    for path in [*(html / "_sources").rglob("*.*"), *html.glob("*.js")]:
        texts[path] = path.read_text(encoding="utf-8")
    for path, text in texts.items():
        names = [match[0] for pattern in machine if (match := pattern.search(text))]
        problems.setdefault(path, []).extend(f"names this machine ({name})" for name in names)
    return [
        f"{path.relative_to(html).as_posix()}: {one}" for path, found in problems.items() for one in found
    ]
