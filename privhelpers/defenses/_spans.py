"""Spans of a text to remove, and their removal without leaving a part behind.

Detectors overlap: one sees the first ten digits of a card number as a telephone number, another sees all
sixteen. Replacing one span after the other then cuts into text that has already moved. Here overlapping
spans become one before anything is replaced.

>>> merge([Span(0, 10, "phone"), Span(0, 16, "card"), Span(20, 24, "zip")])
[Span(start=0, end=16, kind='card'), Span(start=20, end=24, kind='zip')]
>>> replace("call (212) 555-0123 now", [Span(5, 19, "phone")]).text
'call [PHONE] now'
"""

from collections.abc import Iterable
from dataclasses import dataclass

from privhelpers.errors import InvalidParameter


@dataclass(frozen=True, order=True)
class Span:
    """A piece of a text that identifies a person.

    Attributes:
        start, end: characters from `start` up to, not including, `end`.
        kind: what it is, in lower case, such as "phone".
    """

    start: int
    end: int
    kind: str

    @property
    def placeholder(self) -> str:
        """What replaces it, such as `[PHONE]`."""
        return f"[{self.kind.upper()}]"


@dataclass(frozen=True)
class Scrubbed:
    """A text without its identifiers.

    Attributes:
        text: the text with typed placeholders.
        spans: what was replaced, as places in the text as it was, in order.
    """

    text: str
    spans: tuple[Span, ...]


def merge(spans: Iterable[Span]) -> list[Span]:
    """Return disjoint spans in order that cover the same characters; each keeps the kind of its longest part.

    Of equally long parts a named kind wins over a mere "number".

    Raises:
        InvalidParameter: a span is empty or starts before the text.
    """
    merged: list[Span] = []
    longest = 0
    for span in sorted(spans, key=lambda s: (s.start, -s.end, s.kind == "number", s.kind)):
        if not 0 <= span.start < span.end:
            raise InvalidParameter(f"{span}: must start at 0 or later and end after its start")
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            kind = span.kind if span.end - span.start > longest else last.kind
            longest = max(longest, span.end - span.start)
            merged[-1] = Span(last.start, max(last.end, span.end), kind)
        else:
            merged.append(span)
            longest = span.end - span.start
    return merged


def replace(text: str, spans: Iterable[Span]) -> Scrubbed:
    """Return the text with a typed placeholder in the place of each merged span.

    Raises:
        InvalidParameter: a span ends after the text.
    """
    merged = merge(spans)
    if merged and merged[-1].end > len(text):
        raise InvalidParameter(f"{merged[-1]}: ends after the text, which has {len(text)} characters")
    pieces, place = [], 0
    for span in merged:
        pieces += [text[place : span.start], span.placeholder]
        place = span.end
    return Scrubbed("".join([*pieces, text[place:]]), tuple(merged))
