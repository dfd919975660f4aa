"""What of a notebook's outputs may reach a page.

A language model's text can hold anything: a script, an escape sequence, a character that turns the line
around. Text is shown with such characters spelled out, HTML is let through only where it is a plain
table, colored and aligned at most. Every richer form is refused rather than repaired, because a page that
had to be repaired is a cell that should print with `text/plain` in the first place.
"""

import ast
import inspect
import re
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import tinycss2
from bs4 import BeautifulSoup, Tag
from nbformat import NotebookNode

from bookmaker.site._memo import FOLDER, Memo
from privhelpers.errors import RunFailed
from privhelpers.text import inert

GLUED = "application/papermill.record/"
IMAGES = {"image/png", "image/jpeg"}  # an SVG is a document, which runs scripts where it is opened alone
_LINES = "\n\t\r"  # what lays out text in lines and columns stays
_LISTS = """
table caption colgroup col thead tbody tfoot tr th td div p pre span style b i em strong code mark sub sup
br hr ul ol li dl dt dd small h2 h3 h4 h5
"""
TAGS = frozenset(_LISTS.split())
VOID = {"br", "col", "hr"}
# What pandas writes, and the classes that keep MathJax out. No class or id of the page itself may be taken.
CLASS = re.compile(
    r"dataframe|table|claims|words|tex2jax_ignore|mathjax_ignore|data|blank|index_name"
    r"|(?:col|row)_(?:heading|trim)|(?:level|row|col)\d+"
)
ATTRIBUTES = {
    "id": r"T_[\w-]+",
    "border": r"\d",
    "colspan": r"\d{1,3}",
    "rowspan": r"\d{1,5}",
    "scope": r"(?:row|col)(?:group)?",
    "scoped": "",
    "type": "text/css",
    "align": "left|right|center",
    "halign": "left|right|center",
    "valign": "top|middle|bottom",
}
ALIGNMENT = {"text-align", "vertical-align"}
# Nothing that takes an element out of its place, covers another one, or loads.
PROPERTIES = ALIGNMENT | {
    "background",
    "background-color",
    "border",
    "border-bottom",
    "border-left",
    "border-right",
    "border-top",
    "color",
    "font-style",
    "font-weight",
    "height",
    "overflow-wrap",
    "padding",
    "text-decoration",
    "white-space",
    "width",
}
CSS_VALUES = {"dimension", "hash", "ident", "number", "percentage", "whitespace"}
CSS_FUNCTIONS = {"hsl", "hsla", "linear-gradient", "rgb", "rgba"}
SELECTOR = re.compile(r"\s*(#T_|\.dataframe\b)[\w\s.:>#-]*")
# Digits with signs, powers, brackets and the few words between numbers: "0.5 (0.4 to 0.6)", "3 of 4".
NUMBER = re.compile(
    r"(?:[\s\d.,:;+\-−–±<>≤≥≈%()\[\]/·×⁰¹²³⁴⁵⁶⁷⁸⁹⁻]|\b(?:to|of|e|inf|s)\b|(?<=\d)e(?=[-+]?\d))+"
)
MISSING = {"none", "no", "undefined", "unknown", "no bound", "nothing varied"}  # of a number


def _plain_value(tokens: list[Any]) -> bool:
    """Return whether a CSS value is made of words, numbers, colors and gradients."""
    return all(
        token.type in CSS_VALUES
        or (token.type == "literal" and token.value in ",/")
        or (token.type == "function" and token.lower_name in CSS_FUNCTIONS and _plain_value(token.arguments))
        for token in tokens
    )


def _plain_declarations(parsed: list[Any], properties: set[str]) -> bool:
    return all(
        one.type == "declaration" and one.lower_name in properties and _plain_value(one.value)
        for one in parsed
    )


def _plain_style(css: str) -> bool:
    """Return whether an attribute `style` only colors and aligns its element."""
    parsed = tinycss2.parse_blocks_contents(css, skip_comments=True, skip_whitespace=True)
    return "\\" not in css and _plain_declarations(parsed, PROPERTIES)


def _plain_sheet(css: str) -> bool:
    """Return whether a style sheet only colors and aligns the table that it came with.

    Its rules are for the id of a Styler; those for every table of pandas, which the page shares, align.
    """
    for rule in tinycss2.parse_stylesheet(css, skip_comments=True, skip_whitespace=True):
        if rule.type != "qualified-rule":
            return False
        selectors = list(map(SELECTOR.fullmatch, tinycss2.serialize(rule.prelude).split(",")))
        if not all(selectors):
            return False
        everywhere = any(selector[1] == ".dataframe" for selector in selectors)
        parsed = tinycss2.parse_blocks_contents(rule.content, skip_comments=True, skip_whitespace=True)
        if not _plain_declarations(parsed, ALIGNMENT if everywhere else PROPERTIES):
            return False
    return "\\" not in css and "<" not in css


class _Copy(HTMLParser):
    """Reads HTML as it is written, and writes anew what a table needs; notes the first thing beyond that.

    What was looked at is thus what a browser gets, however the two would have read the original. `checks`
    reads a finished page, where elements lie in each other; a parser that builds a tree would serve it, but
    repairs what must be refused here: tags left open, comments, declarations.
    """

    def __init__(self) -> None:
        super().__init__()
        self.problem: str | None = None
        self.written: list[str] = []
        self.open: list[str] = []
        self.sheet = ""

    def _refuse(self, what: str) -> None:
        self.problem = self.problem or what

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in TAGS:
            self._refuse(f"the tag <{tag}>")
        for name, value in attrs:
            if not self._allowed(name, value or ""):
                self._refuse(f"the attribute {name} of <{tag}>")
        values = (name if value is None else f'{name}="{escape(value)}"' for name, value in attrs)
        self.written.append(f"<{' '.join([tag, *values])}>")
        if tag not in VOID:
            self.open.append(tag)

    def _allowed(self, name: str, value: str) -> bool:
        if name == "style":
            return _plain_style(value)
        if name == "class":
            return all(map(CLASS.fullmatch, value.split()))
        return name in ATTRIBUTES and bool(re.fullmatch(ATTRIBUTES[name], value))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self._refuse(f"a </{tag}> that closes nothing")
        if tag == "style":
            if not _plain_sheet(self.sheet):
                self._refuse("a style that does more than color and align its table")
            self.written.append(self.sheet)
            self.sheet = ""
        self.written.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["style"]:
            self.sheet += data
        else:  # character references were resolved: what they stand for is spelled out too
            text = escape(inert(data, keep=f"{_LINES}\u00a0"), quote=False)
            self.written.append(text.replace("\u00a0", "&nbsp;"))

    def handle_comment(self, data: str) -> None:
        self._refuse("a comment")

    def handle_decl(self, decl: str) -> None:
        self._refuse("a declaration")

    handle_pi = unknown_decl = handle_decl


def plain_table(html: str) -> str:
    """Return HTML that is a plain table, or as plain as one, written anew.

    Raises:
        ValueError: what in it goes beyond that.
    """
    copy = _Copy()
    copy.feed(html)
    # A tag without its end: the parser waits for more, a browser goes on into the page that follows.
    unfinished = "<" in copy.rawdata
    copy.close()
    if unfinished or copy.open:
        copy._refuse("an unclosed tag")
    if copy.problem:
        raise ValueError(copy.problem)
    return "".join(copy.written)


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


def _clean_table(html: str) -> str:
    """Return a table as a page shows it; ValueError: what in it goes beyond a plain one."""
    return words_on_the_left(one_header(plain_table(html)))


def tables_memo(site: Path) -> Memo:
    """Return the tables that the last build of a site cleaned."""
    return Memo(site / FOLDER / "tables.json", [Path(__file__), Path(inspect.getfile(inert))])


def _quotable(value: str) -> str:
    """Return a glued value as its `repr`; a text in it stays inert when a sentence quotes what is meant."""
    try:
        text = ast.literal_eval(value)
    except (SyntaxError, ValueError, MemoryError, RecursionError):  # what it stands for is itself
        text = None
    return repr(inert(text, keep=_LINES)) if isinstance(text, str) else inert(value, keep=_LINES)


def _clean_bundle(data: dict[str, Any], where: str, tables: Memo | None) -> dict[str, Any]:
    """Return the representations of one output that pages may show."""
    clean: dict[str, Any] = {}
    for mime, value in data.items():
        plain = mime.removeprefix(GLUED)
        if plain in IMAGES:
            clean[mime] = value
        elif plain == "text/plain":
            clean[mime] = inert(value, keep=_LINES) if plain == mime else _quotable(value)
        elif plain == "text/html":
            try:
                clean[mime] = tables.of(value, _clean_table) if tables else _clean_table(value)
            except ValueError as error:
                raise RunFailed(
                    f"{where}: HTML output with {error}; show it as text or as a plain table"
                ) from error
        else:
            raise RunFailed(
                f"{where}: output of type {mime}; pages show text, plain tables, and PNG and JPEG pictures"
            )
    return clean


def clean_outputs(cell: NotebookNode, where: str, tables: Memo | None = None) -> None:
    """Keep of a code cell's outputs what a page may show; stderr, which is progress bars, goes.

    Args:
        cell: a code cell, changed in place.
        where: page and cell, for the message.
        tables: those that were cleaned before; None cleans each anew.

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
            output.data = NotebookNode(_clean_bundle(output.data, where, tables))
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
