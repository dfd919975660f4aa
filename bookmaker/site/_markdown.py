"""Text of users and models for a page of Markdown, escaped so that it is shown and never interpreted."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from privhelpers.text import inert

# Signs with a meaning in Markdown; not the _ in a word, nor a colon that ends one.
MEANT = re.compile(
    r"[^\w .,:;=%+()'\"?!/-]|:(?!\s|$)|(?<=:):|(?<![^\W_])_|_(?![^\W_])|^[^\w\s]|^\d+(?=[.)](?:\s|$))"
)


def code(text: str) -> str:
    """Return text as inline code for a cell of a Markdown table: as it is, whatever it holds."""
    shown = inert(text).replace("|", "\\|")  # a table's one escape, inside of code too
    if not shown.strip():
        return "none"
    fence = "`" * (1 + max(map(len, re.findall("`+", shown)), default=0))
    room = " " if shown[0] in " `" or shown[-1] in " `" else ""
    return f"{fence}{room}{shown}{room}{fence}"


def words(text: str) -> str:
    """Return text as words in Markdown: each sign that could mean something there by its number."""
    return MEANT.sub(lambda signs: "".join(f"&#{ord(sign)};" for sign in signs[0]), inert(text))


def table(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table in Markdown."""
    rule = "| " + " | ".join("---" for _ in header) + " |"
    lines = [f"| {' | '.join(map(str, row))} |" for row in (header, *rows)]
    return "\n".join([lines[0], rule, *lines[1:]]) + "\n"
