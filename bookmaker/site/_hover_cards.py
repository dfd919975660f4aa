"""What a card over a link shows: a term of the glossary, or a theorem or figure of another page.

`_static/cards.js` shows it next to a link that has the pointer or the focus. It cannot fetch a page where the
site is a folder opened without a server, so what other pages link to lies in one file of data next to it,
which is loaded with the first card.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from bs4 import BeautifulSoup, Tag

from privhelpers.artifacts import to_json, write_atomic

DATA = "_static/cards-data.js"
GLOSSARY = "book/glossary.html"
# As sphinx-proof and myst-nb write them; neither holds another of its kind.
TARGET = re.compile(
    r'<div class="proof [\w-]+ admonition" id="([^"]+)">.*?</section>\s*</div>'
    r'|<figure class="align-default" id="([^"]+)">.*?</figure>',
    re.DOTALL,
)


def detach(fragment: Tag) -> None:
    """Take out of a part of a page, in place, what holds on its own page only: links, anchors and styles.

    Args:
        fragment: of a page one folder below the site; its pictures then lie in `_images`.
    """
    for tag in fragment.select("a.headerlink, style, script"):
        tag.decompose()
    for link in fragment.select("a.internal, a[href^='#'], a[href^='../']"):
        link.unwrap()
    for tag in [fragment, *fragment.find_all(True)]:
        tag.attrs.pop("id", None)
    for picture in fragment.find_all("img"):
        picture["src"] = picture.get("src", "").removeprefix("../")
        picture.attrs.pop("style", None)


def _terms(page: str) -> Iterator[tuple[str, Tag]]:
    """Yield the anchor of every word of the glossary, with its definition."""
    anchors: list[str] = []
    for entry in BeautifulSoup(page, "html.parser").select("dl.glossary > dt, dl.glossary > dd"):
        if entry.name == "dt":
            anchors.append(entry.get("id", ""))
            continue
        yield from ((anchor, entry) for anchor in anchors)
        anchors = []


def _targets(page: str) -> Iterator[tuple[str, Tag]]:
    """Yield the anchor of every theorem and figure of a page, with what it is."""
    for match in TARGET.finditer(page):
        yield match[1] or match[2], BeautifulSoup(match[0], "html.parser").find(True)


def write(html: Path) -> None:
    """Write what the cards of a built site show.

    Args:
        html: the folder of the site.
    """
    cards = {}
    for path in sorted([*html.glob("notebooks/*.html"), html / GLOSSARY]):
        name, page = path.relative_to(html).as_posix(), path.read_text(encoding="utf-8")
        for anchor, part in (_terms if name == GLOSSARY else _targets)(page):
            detach(part)
            cards[f"{name}#{anchor}"] = part.decode_contents().strip()
    write_atomic(html / DATA, b"window.bookCards = " + to_json(cards).strip() + b";\n")
