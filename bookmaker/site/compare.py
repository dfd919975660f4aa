"""What differs between two built sites, page by page: words, pictures, pages that came or went.

    python -m bookmaker.site compare old/_build/html new/_build/html

Markup and places of files are left out: what is compared is what a reader reads and sees.
"""

import difflib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from privhelpers.artifacts import sha256_of
from privhelpers.errors import MissingArtifact

HIDDEN = {"script", "style", "nav", "header", "footer"}
BLOCKS = {"p", "li", "h1", "h2", "h3", "h4", "tr", "pre", "figcaption", "dt", "dd", "summary", "div"}
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


class _Reader(HTMLParser):
    def __init__(self, page: Path) -> None:
        super().__init__()
        self.page, self.depth, self.inside = page, 0, False
        self.lines: list[str] = [""]
        self.pictures: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.inside = self.inside or tag in ("article", "main")
        self.depth += tag in HIDDEN
        if tag in BLOCKS:
            self.lines.append("")
        source = dict(attrs).get("src") or ""
        if tag == "img" and source and self.inside:
            picture = (self.page.parent / source).resolve()
            self.pictures.append(sha256_of(picture) if picture.is_file() else source[:80])

    def handle_endtag(self, tag: str) -> None:
        self.depth -= tag in HIDDEN

    def handle_data(self, data: str) -> None:
        if self.inside and not self.depth:
            self.lines[-1] += data


def read(page: Path) -> Page:
    """Return what a reader meets on a page."""
    reader = _Reader(page)
    reader.feed(page.read_text(encoding="utf-8"))
    lines = (SPACE.sub(" ", line).strip() for line in reader.lines)
    return Page(tuple(line for line in lines if line), tuple(reader.pictures))


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
            one, other = read(before[name]), read(after[name])
            if one != other:
                changed = sum(a != b for a, b in zip(one.pictures, other.pictures, strict=False))
                changed += abs(len(one.pictures) - len(other.pictures))
                yield f"~ {name}: {changed} of {len(other.pictures)} pictures differ"
                lines = difflib.unified_diff(one.lines, other.lines, lineterm="", n=context)
                yield from (f"    {line}" for line in list(lines)[2:] if not line.startswith("@@"))
