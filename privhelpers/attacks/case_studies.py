"""The same question to every model, side by side, with the parts that they share with the truth marked.

What a model wrote is untrusted: a training text may contain markup, and a page must show it as the characters
that it is. All text passes through `inert` before it becomes HTML.

>>> _marked("Call Ann B. Hill now", [(5, 16)])
'Call <mark>Ann B. Hill</mark> now'
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from privhelpers.errors import InvalidParameter
from privhelpers.text import inert

Span = tuple[int, int]
# Not as in tables of numbers, which are set to the right and never wrapped.
_NAME = 'style="text-align: left; white-space: nowrap"'
_WRAPPED = 'style="text-align: left; white-space: normal; overflow-wrap: anywhere"'


def _html(text: str) -> str:
    return inert(text, html=True)


def _marked(text: str, spans: Iterable[Span]) -> str:
    """Return text as inert HTML with the spans (start, end) in `<mark>`; those that overlap are joined."""
    joined: list[Span] = []
    for start, stop in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(stop, joined[-1][1]))
        else:
            joined.append((start, stop))
    pieces, end = [], 0
    for start, stop in joined:
        pieces += [_html(text[end:start]), f"<mark>{_html(text[start:stop])}</mark>"]
        end = stop
    return "".join([*pieces, _html(text[end:])])


@dataclass(frozen=True)
class SideBySide:
    """Texts of several models under each other, as a table of a page.

    Attributes:
        head: titles of the columns.
        rows: cells of each row; a cell is a text, or a text with the spans to mark.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str | tuple[str, tuple[Span, ...]], ...], ...]

    def _repr_html_(self) -> str:
        """Return the table; nothing in it can act."""
        titles = "".join(f"<th {_WRAPPED}>{_html(title)}</th>" for title in self.head)
        lines = []
        for row in self.rows:
            name, *cells = (_marked(*cell) if isinstance(cell, tuple) else _html(cell) for cell in row)
            wrapped = "".join(f"<td {_WRAPPED}>{cell}</td>" for cell in cells)
            lines.append(f"<tr><td {_NAME}>{name}</td>{wrapped}</tr>")
        # The classes keep MathJax out: a dollar sign in a model's text is a dollar sign.
        opening = '<table class="dataframe tex2jax_ignore mathjax_ignore">'
        return f"{opening}<thead><tr>{titles}</tr></thead><tbody>{''.join(lines)}</tbody></table>"


def side_by_side(
    texts: Mapping[str, str], spans: Mapping[str, Sequence[Span]], *, first: str = ""
) -> SideBySide:
    """Return a table with one row a model.

    Args:
        texts: what each model wrote, by its name.
        spans: what to mark in it.
        first: a text to put above them, such as the true one.

    Raises:
        InvalidParameter: a model has a text and no spans, or the other way round.
    """
    if set(texts) != set(spans):
        raise InvalidParameter(f"spans: must be given for the models of texts, {', '.join(texts)}")
    rows = [(name, (text, tuple(spans[name]))) for name, text in texts.items()]
    above = [("the note", first)] if first else []
    return SideBySide(("model", "text"), tuple(above + rows))
