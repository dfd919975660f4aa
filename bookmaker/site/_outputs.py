"""What of a notebook's outputs may reach a page.

A language model's text can hold anything: a script, an escape sequence, a character that turns the line
around. Text is shown with such characters spelled out, and nh3 cleans HTML: a table keeps its cells, colors
and alignment, and everything that could act, load or cover another part of the page goes.
"""

import ast
import re
from collections import defaultdict
from typing import Any

import nh3
from bs4 import BeautifulSoup, Tag
from nbformat import NotebookNode

from privhelpers.errors import RunFailed
from privhelpers.text import inert

GLUED = "application/papermill.record/"
IMAGES = {"image/png", "image/jpeg"}  # an SVG is a document, which runs scripts where it is opened alone
LINES = "\n\t\r"  # what lays out text in lines and columns stays
_NAMES = """
table caption colgroup col thead tbody tfoot tr th td div p pre span b i em strong code mark sub sup br hr
ul ol li dl dt dd small h2 h3 h4 h5
"""
TAGS = set(_NAMES.split())
ATTRIBUTES = {
    "*": {"style"},
    "th": {"colspan", "rowspan", "scope", "valign"},
    "td": {"colspan", "rowspan", "valign"},
}
# Of pandas and of the book's own tables, and those that keep MathJax out; no other class of the page.
CLASSES = {"dataframe", "table", "claims", "tex2jax_ignore", "mathjax_ignore"}
# Nothing that takes an element out of its place, covers another one, or loads.
PROPERTIES = {
    *("background-color", "color", "font-style", "font-weight", "text-align", "vertical-align"),
    *("min-width", "overflow-wrap", "white-space"),
}
# The box around a table of pandas scrolls: a keyboard reaches it, and a screen reader names it.
BOX = {"div": {"tabindex": "0", "role": "group", "aria-label": "Table"}}
# Digits with signs, powers, brackets and the few words between numbers: "0.5 (0.4 to 0.6)", "3 of 4".
NUMBER = re.compile(
    r"(?:[\s\d.,:;+\-−–±<>≤≥≈%()\[\]/·×⁰¹²³⁴⁵⁶⁷⁸⁹⁻]|\b(?:to|of|e|inf|s)\b|(?<=\d)e(?=[-+]?\d))+"
)
GAP = 2.5  # between two columns, in letters
DENSE = {"dense": 108, "denser": 112}  # in letters: what is wider than the text is set smaller, in two steps
FEW = 5  # columns that fit, or whose words wrap
PHRASE, PAGE = 30, 95  # letters of a text that may wrap, and of a table that fits a page
SENTENCE, WRAPPED = 40, 20  # letters of a text that wraps, and of the column that it wraps in
MISSING = {"none", "no", "undefined", "unknown", "no bound", "nothing varied"}  # of a number


CLEANER = nh3.Cleaner(
    tags=TAGS,
    attributes=ATTRIBUTES,
    clean_content_tags={"style"},  # text of every other tag that goes stays, as text
    allowed_classes=dict.fromkeys(TAGS, CLASSES),
    filter_style_properties=PROPERTIES,
    set_tag_attribute_values=BOX,
)


def _drop_row_numbers(table: Tag) -> None:
    """Drop the numbers 0, 1, 2 that pandas gives to rows without names."""
    first = [row.find("th") for row in table.select("tbody tr")]
    head = [row.find("th") for row in table.select("thead tr")]
    numbers = [cell.get_text() if cell else "" for cell in (*head, *first)]
    if first and numbers == ["", *map(str, range(len(first)))]:
        for cell in (*head, *first):
            cell.decompose()


def _columns(table: Tag) -> list[list[Tag]]:
    """Return the cells of each column, from the right: a row may share the left cells of one above it."""
    columns = defaultdict(list)
    for row in table.find_all("tr"):
        if not row.find(colspan=True):
            for place, cell in enumerate(reversed(row.find_all(["th", "td"]))):
                columns[place].append(cell)
    return list(columns.values())


def _mark_words(columns: list[list[Tag]]) -> None:
    """Give the columns of words, with their headers, the class `words`: pandas marks none.

    A column holds words if more of its cells are words than numbers; a word for a missing number, such
    as "none", is neither.
    """
    for column in columns:
        texts = [cell.get_text(" ", strip=True) for cell in column if not cell.find_parent("thead")]
        texts = [text for text in texts if any(map(str.isalnum, text)) and text not in MISSING]
        if 2 * sum(bool(NUMBER.fullmatch(text)) for text in texts) < len(texts):
            for cell in column:
                cell["class"] = [*cell.get("class", []), "words"]


def _width(column: list[Tag]) -> float:
    """Return about how many letters wide a column is: headers wrap between words, and so do sentences."""
    widest = 0
    for cell in column:
        text = cell.get_text(" ", strip=True)
        parts = map(len, text.split() if cell.find_parent("thead") else [text])
        widest = max(widest, *(WRAPPED if part > SENTENCE else part for part in parts), 0)
    return widest + GAP


def _is_wordy(columns: list[list[Tag]]) -> bool:
    """Return whether words make a table wider than a page, so that they must wrap."""
    longest = [max(len(cell.get_text(" ", strip=True)) + GAP for cell in column) for column in columns]
    phrases = [
        most for most, column in zip(longest, columns, strict=True) if "words" in column[-1].get("class", [])
    ]
    return sum(longest) > PAGE and max(phrases, default=0) > PHRASE


def clean_html(html: str) -> str:
    """Return HTML that a page may show: no part of it acts, loads, or leaves its place."""
    soup = BeautifulSoup(CLEANER.clean(html), "html.parser")
    for text in soup.find_all(string=True):
        text.replace_with(inert(text, keep=f"{LINES}\u00a0"))
    for table in soup.find_all("table"):
        _drop_row_numbers(table)
        columns = _columns(table)
        _mark_words(columns)
        width = sum(map(_width, columns)) if len(columns) > FEW else 0
        names = [name for name, most in DENSE.items() if width > most]
        names += ["wordy"] if _is_wordy(columns) else []
        table["class"] = [*table.get("class", []), *names]
    return str(soup)


def _quotable(value: str) -> str:
    """Return a glued value as its `repr`; a text in it stays inert when a sentence quotes what is meant."""
    try:
        text = ast.literal_eval(value)
    except (SyntaxError, ValueError, MemoryError, RecursionError):  # not a literal: quoted as it is
        text = None
    return repr(inert(text, keep=LINES)) if isinstance(text, str) else inert(value, keep=LINES)


def _clean_data(data: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the representations of one output that pages may show."""
    clean: dict[str, Any] = {}
    for mime, value in data.items():
        plain = mime.removeprefix(GLUED)
        if plain in IMAGES:
            clean[mime] = value
        elif plain == "text/plain":
            clean[mime] = inert(value, keep=LINES) if plain == mime else _quotable(value)
        elif plain == "text/html":
            clean[mime] = clean_html(value)
        else:
            raise RunFailed(
                f"{where}: output of type {mime}; pages show text, tables, and PNG and JPEG pictures"
            )
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
            output.text = inert(output.text, keep=LINES)
        else:
            output.data = NotebookNode(_clean_data(output.data, where))
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
