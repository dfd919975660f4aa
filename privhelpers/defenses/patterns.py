"""Identifiers that a pattern can find: numbers, addresses of mail and web, dates. Names have no pattern.

The rules are a table of kinds and regular expressions, in `patterns.yml`. Every one of them is bounded, so
the time is linear in the text whatever the text is: an adversary who can make a model write a megabyte
must not be able to stop the filter behind it.

>>> PatternScrubber().scrub("SSN 000-12-0000, (212) 555-0123.").text
'SSN [SSN], [PHONE].'
>>> PatternScrubber().scrub("Card 4111111111111111").text
'Card [CARD]'

Sources: North American Numbering Plan; SSA number format; RFC 5321, section 4.5.3.1 (lengths of mail
addresses); ISO/IEC 7812 (check digit of card numbers); 45 CFR 164.514(b)(2) for what to look for.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from privhelpers.artifacts import parse_yaml
from privhelpers.defenses._spans import Scrubbed, Span, merge, replace
from privhelpers.defenses.folding import fold
from privhelpers.spelling import Spelled
from privhelpers.text import has_check_digit

_TABLE = parse_yaml(Path(__file__).with_suffix(".yml").read_text(encoding="utf-8"))
_PART = re.compile(rf"\{{({'|'.join(_TABLE['parts'])})\}}")
RULES: list[tuple[str, str]] = [
    (kind, _PART.sub(lambda name: _TABLE["parts"][name[1]], form)) for kind, form, _ in _TABLE["rules"]
]
_COMPILED = [(kind, re.compile(form)) for kind, form in RULES]
_PIECES = [pieces for _, _, pieces in _TABLE["rules"]]
_SHAPE = str.maketrans("123456789", "000000000")


def _is_ip(text: str) -> bool:
    return all(int(part) <= 255 for part in text.split("."))


_CHECKS = {"card": has_check_digit, "ip": _is_ip}


# Decoration of a word or a number, as Markdown puts it: to a regular expression an underscore is a letter.
# Between two digits it is a sign of arithmetic, or a part of a name.
_DECORATION = re.compile(r"(?!(?<=\d)[*_`~]+\d)(?:(?<=\S)[*_`~]+ ?| ?[*_`~]+(?=\S))")


def find_identifiers(text: str, *, spelled: bool = False) -> list[Span]:
    """Return the identifiers that patterns find, merged, in order; in decorated text, without decoration too.

    Args:
        text: any text.
        spelled: look at digits written as words too.
    """
    folded = fold(text, spelled=spelled)
    plain = folded.replaced(_DECORATION, lambda found: " ")
    return merge(span for read in {folded, plain} for span in _found(read))


def _found(folded: Spelled) -> Iterator[Span]:
    shape = folded.text.lower().translate(_SHAPE)
    for (kind, form), pieces in zip(_COMPILED, _PIECES, strict=True):
        if not any(piece in shape for piece in pieces):
            continue
        check = _CHECKS.get(kind)
        for match in form.finditer(folded.text):
            if check is None or check(match[0]):
                start, end = match.span("value" if "value" in form.groupindex else 0)
                yield Span(*folded.place(start, end), kind)


class PatternScrubber:
    """Replaces what patterns find."""

    def find_all(self, texts: Iterable[str]) -> list[list[Span]]:
        """Return the identifiers of each text, merged, in order."""
        return [find_identifiers(text) for text in texts]

    def scrub(self, text: str) -> Scrubbed:
        """Return the text with a typed placeholder for each identifier."""
        return replace(text, find_identifiers(text))
