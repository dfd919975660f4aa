"""What of a notebook's outputs may reach a page.

A language model's text can hold anything: a script, an escape sequence, a character that turns the line
around. Text is shown with such characters spelled out, HTML is let through only where it is a plain
table, and every richer form is refused rather than repaired, because a page that had to be repaired is
a cell that should print with `text/plain` in the first place.
"""

import re
from html.parser import HTMLParser
from typing import Any

from bs4 import BeautifulSoup, Tag
from nbformat import NotebookNode

from privhelpers.errors import RunFailed
from privhelpers.text import inert

GLUED = "application/papermill.record/"
IMAGES = {"image/png", "image/jpeg", "image/svg+xml"}
TEXTS = {"text/plain", "text/html"}
_LINES = "\n\t\r"  # what lays out text in lines and columns stays
TAGS = set(
    [
        "table",
        "caption",
        "colgroup",
        "col",
        "thead",
        "tbody",
        "tfoot",
        "tr",
        "th",
        "td",
        "div",
        "p",
        "pre",
        "span",
        "style",
        "b",
        "i",
        "em",
        "strong",
        "code",
        "mark",
        "sub",
        "sup",
        "br",
        "hr",
        "ul",
        "ol",
        "li",
        "dl",
        "dt",
        "dd",
        "small",
        "h2",
        "h3",
        "h4",
        "h5",
    ]
)
ATTRIBUTES = {
    "class",
    "id",
    "style",
    "border",
    "colspan",
    "rowspan",
    "scope",
    "align",
    "scoped",
    "valign",
    "halign",
    "title",
    "type",
}
# Digits with signs, powers, brackets and the few words between numbers: "0.5 (0.4 to 0.6)", "3 of 4".
NUMBER = re.compile(
    r"(?:[\s\d.,:;+\-−–±<>≤≥≈%()\[\]/·×⁰¹²³⁴⁵⁶⁷⁸⁹⁻]|\b(?:to|of|e|inf|s)\b|(?<=\d)e(?=[-+]?\d))+"
)
MISSING = {"none", "no", "undefined", "unknown", "no bound", "nothing varied"}  # of a number
CSS_LOADS = re.compile(r"url\s*\(|@import|expression\s*\(|javascript:|</", re.IGNORECASE)
SVG_ACTIVE = re.compile(r"<script|\son\w+\s*=|javascript:|<foreignObject", re.IGNORECASE)


class _Inspector(HTMLParser):
    """Finds the first thing in a piece of HTML that a table does not need.

    Reads the tokens as they are written. `checks` reads a finished page, where elements lie in each other;
    a parser that builds a tree would serve it, but repairs what must be refused here: tags left open,
    comments, declarations.
    """

    def __init__(self) -> None:
        super().__init__()
        self.problem: str | None = None
        self.in_style = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.in_style = tag == "style"
        if tag not in TAGS:
            self.problem = self.problem or f"the tag <{tag}>"
        for name, value in attrs:
            if name not in ATTRIBUTES or (name == "style" and CSS_LOADS.search(value or "")):
                self.problem = self.problem or f"the attribute {name} of <{tag}>"

    def handle_endtag(self, tag: str) -> None:
        self.in_style = False

    def handle_data(self, data: str) -> None:
        if self.in_style and CSS_LOADS.search(data):
            self.problem = self.problem or "a style that loads something"

    def handle_comment(self, data: str) -> None:
        self.problem = self.problem or "a comment"

    def handle_decl(self, decl: str) -> None:
        self.problem = self.problem or "a declaration"

    handle_pi = unknown_decl = handle_decl


def unsafe_html(html: str) -> str | None:
    """Return what in `html` goes beyond a plain table, or None."""
    inspector = _Inspector()
    inspector.feed(html)
    # A tag without its end: the parser waits for more, a browser goes on into the page that follows.
    unclosed = "an unclosed tag" if "<" in inspector.rawdata else None
    inspector.close()
    return inspector.problem or unclosed


def one_header(html: str) -> str:
    """Return a table whose named index has its names in the row of the columns' names, above the index.

    Pandas puts them into a row of their own, which is empty but for them. Other HTML is returned unchanged.
    """
    soup = BeautifulSoup(html, "html.parser")
    changed = False
    for head in soup.find_all("thead"):
        rows = [row.find_all("th") for row in head.find_all("tr")]
        if len(rows) != 2 or len(rows[0]) != len(rows[1]) or any(cell.get("colspan") for cell in rows[0]):
            continue
        named = [bool(cell.get_text(strip=True)) for cell in rows[1]]
        names = named.index(False) if False in named else len(named)
        if not names or any(named[names:]) or any(cell.get_text(strip=True) for cell in rows[0][:names]):
            continue
        for place, cell in zip(rows[0], rows[1][:names], strict=False):
            place.replace_with(cell)
        head.find_all("tr")[1].decompose()
        changed = True
    return str(soup) if changed else html


def _is_number(text: str) -> bool:
    """Return whether a cell reads as a number, with its unit, interval or count, or as a range of them."""
    return bool(NUMBER.fullmatch(text))


def words_on_the_left(html: str) -> str:
    """Return tables whose columns of words, with their headers, have the class `words`: pandas marks none.

    A column holds words if more of its cells are words than numbers; what stands for a missing number, such
    as "none", is neither.
    """
    soup = BeautifulSoup(html, "html.parser")
    for table in soup.find_all("table"):
        head, body = (
            [row.find_all(["th", "td"]) for row in table.select(f"{part} tr")] for part in ("thead", "tbody")
        )
        width = max(map(len, body), default=0)
        columns: list[list[Tag]] = [[] for _ in range(width)]
        for row in body:  # rows that share a name of the index have its cell in the first of them only
            for place, cell in enumerate(row, width - len(row)):
                columns[place].append(cell)
        headers = head[0] if len(head) == 1 and len(head[0]) == width else [None] * width
        for header, column in zip(headers, columns, strict=True):
            texts = [cell.get_text(" ", strip=True) for cell in column]
            texts = [text for text in texts if any(map(str.isalnum, text)) and text not in MISSING]
            numbers = sum(map(_is_number, texts))
            if numbers < len(texts) - numbers:
                for cell in filter(None, [header, *column]):
                    cell["class"] = [*cell.get("class", []), "words"]
    return str(soup) if soup.select_one(".words") else html


def _clean_bundle(data: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the representations of one output that pages may show."""
    clean: dict[str, Any] = {}
    for mime, value in data.items():
        plain = mime.removeprefix(GLUED)
        if plain in IMAGES:
            if plain == "image/svg+xml" and SVG_ACTIVE.search(value):
                raise RunFailed(f"{where}: an SVG image holds a script")
            clean[mime] = value
        elif plain in TEXTS:
            clean[mime] = inert(value, keep=_LINES)
            if plain == "text/html" and (problem := unsafe_html(clean[mime])):
                raise RunFailed(f"{where}: HTML output with {problem}; show it as text or as a plain table")
            if plain == "text/html":
                clean[mime] = words_on_the_left(one_header(clean[mime]))
        else:
            raise RunFailed(f"{where}: output of type {mime}; pages show text, plain tables and images")
    return clean


def clean_outputs(cell: NotebookNode, where: str) -> None:
    """Keep of a code cell's outputs what a page may show; stderr, which is progress bars, goes.

    Args:
        cell: a code cell, changed in place.
        where: page and cell, for the message.

    Raises:
        RunFailed: an output is of a kind that pages do not show.
    """
    kept = []
    for output in cell.outputs:
        if output.output_type == "stream":
            if output.name == "stderr":
                continue
            output.text = inert(output.text, keep=_LINES)
        else:
            output.data = NotebookNode(_clean_bundle(output.data, where))
            glue = {k: v for k, v in output.metadata.items() if k == "scrapbook"}
            output.metadata = NotebookNode(glue)
        kept.append(output)
    cell.outputs = kept


def check_picture(cell: NotebookNode, where: str) -> None:
    """Refuse a caption without its picture, and a picture without a description.

    Args:
        cell: a code cell.
        where: page and cell, for the message.

    Raises:
        RunFailed: a reader, or one who cannot see, would miss the figure.
    """
    mystnb = cell.metadata.get("mystnb", {})
    shown = any(IMAGES & output.get("data", {}).keys() for output in cell.outputs)
    if ("figure" in mystnb or "image" in mystnb) and not shown:
        raise RunFailed(
            f"{where}: has a caption but shows no picture; a figure must be the last value of its cell, "
            "with no semicolon after it"
        )
    if shown and not mystnb.get("image", {}).get("alt", "").strip():
        raise RunFailed(f"{where}: shows a picture without a description (metadata mystnb.image.alt)")
