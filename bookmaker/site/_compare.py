"""What differs between two built sites, page by page: words, pictures, pages that came or went.

    python -m bookmaker.site compare old/_build/html new/_build/html

Markup and places of files are left out: what is compared is what a reader reads and sees.
"""

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bs4 import BeautifulSoup

from privhelpers.artifacts import sha256_of
from privhelpers.errors import MissingArtifact

HIDDEN = ["script", "style", "nav", "header", "footer"]
BLOCKS = ["p", "li", "h1", "h2", "h3", "h4", "tr", "pre", "figcaption", "dt", "dd", "summary", "div"]
SPACE = re.compile(r"\s+")


@dataclass(frozen=True)
class Page:
    """What a reader meets on a page.

    Attributes:
        lines: its text, a block a line.
        pictures: SHA-256 of each picture, in order.
    """

    lines: tuple[str, ...]
    pictures: tuple[str, ...]


def read(page: Path) -> Page:
    """Return what a reader meets on a page."""
    soup = BeautifulSoup(page.read_text(encoding="utf-8"), "html.parser")
    article = soup.find(["article", "main"]) or BeautifulSoup("", "html.parser")
    for hidden in article.find_all(HIDDEN):
        hidden.decompose()
    pictures = []
    for source in (image["src"] for image in article.find_all("img", src=True)):
        picture = (page.parent / source).resolve()
        pictures.append(sha256_of(picture) if picture.is_file() else source[:80])
    for block in article.find_all(BLOCKS):  # each block begins a line
        block.insert_before("\n")
    lines = (SPACE.sub(" ", line).strip() for line in article.get_text().replace("\n\n", "\n").split("\n"))
    return Page(tuple(line for line in lines if line), tuple(pictures))


def _pages(site: Path) -> dict[str, Path]:
    if not (site / "index.html").is_file():
        raise MissingArtifact(f"{site}: not a built site (no index.html in it)")
    return {p.relative_to(site).as_posix(): p for p in site.rglob("*.html") if "_static" not in p.parts}


def differences(old: Path, new: Path, *, context: int = 0) -> Iterator[str]:
    """Yield the difference of two built sites as lines, nothing where they are the same to a reader.

    Args:
        old, new: folders of HTML.
        context: unchanged lines shown around a change, 0 or more.

    Raises:
        MissingArtifact: a folder holds no site.
    """
    before, after = _pages(old), _pages(new)
    for name in sorted(before.keys() | after.keys()):
        if name not in after:
            yield f"- {name}: gone"
        elif name not in before:
            yield f"+ {name}: new"
        else:
            old_page, new_page = read(before[name]), read(after[name])
            if old_page != new_page:
                changed = sum(a != b for a, b in zip(old_page.pictures, new_page.pictures, strict=False))
                changed += abs(len(old_page.pictures) - len(new_page.pictures))
                yield f"~ {name}: {changed} of {len(new_page.pictures)} pictures differ"
                lines = difflib.unified_diff(old_page.lines, new_page.lines, lineterm="", n=context)
                yield from (f"    {line}" for line in list(lines)[2:] if not line.startswith("@@"))
