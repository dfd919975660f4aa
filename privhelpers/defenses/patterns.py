"""Identifiers that a pattern can find: numbers, addresses of mail and web, dates. Names have no pattern.

Every pattern is bounded, so the time is linear in the text whatever the text is: an adversary who can
make a model write a megabyte must not be able to stop the filter behind it.

>>> PatternScrubber().scrub("SSN 000-12-0000, (212) 555-0123.").text
'SSN [SSN], [PHONE].'
>>> PatternScrubber().scrub("Card 4111111111111111").text
'Card [CARD]'

Sources: North American Numbering Plan; SSA number format; RFC 5321, section 4.5.3.1 (lengths of mail
addresses); ISO/IEC 7812 (check digit of card numbers); 45 CFR 164.514(b)(2) for what to look for.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from privhelpers.defenses.folding import fold
from privhelpers.defenses.spans import Scrubbed, Span, merge, replace

_MONTH = (
    r"(?:Jan(?:uary)?|Feb(?:ruary)?|Mar(?:ch)?|Apr(?:il)?|May|June?|July?|Aug(?:ust)?|Sept?(?:ember)?"
    r"|Oct(?:ober)?|Nov(?:ember)?|Dec(?:ember)?)"
)
_STREET = (
    r"(?:Street|St|Avenue|Ave|Road|Rd|Lane|Ln|Drive|Dr|Court|Ct|Boulevard|Blvd|Way|Walk|Close|Rise|Row|"
    r"Place|Pl|Terrace|Square|Sq)"
)
_ZIP = r"\d{5}(?:-\d{4})?(?!\d)"
_CAPITAL = r"[A-Z][\w'.-]{0,20}"
_HOUSE = rf"(?<![\w/])\d{{1,5}}[A-Z]? (?:{_CAPITAL} ){{1,3}}"
_FLAT = r"(?:,? (?:Apt|Unit|Suite)\.? ?\w{1,5})"
_TOWN = rf"(?:, {_CAPITAL}(?: {_CAPITAL})?)"
_ISO_DATE, _US_DATE = r"\d{4}([-/.])\d{1,2}\1\d{1,2}", r"\d{1,2}([-/.])\d{1,2}\2\d{4}"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?"
_PHONE_LABEL = r"(?:phone|tel|telephone|call|contact|fax|mobile|cell|pager)\W{0,3}(?:number|no|is|at)?\W{0,3}"
_MRN_LABEL = r"(?:MRN|medical record|record number|record no|chart number|chart no)"


def luhn(digits: str) -> bool:
    """Say whether the last digit is the check digit of a card number.

    >>> luhn("4111111111111111"), luhn("4111111111111112")
    (True, False)
    """
    doubled = (int(d) * (2 if place % 2 else 1) for place, d in enumerate(reversed(digits)))
    return sum(value - 9 if value > 9 else value for value in doubled) % 10 == 0


def _is_card(match: re.Match) -> bool:
    return luhn(re.sub(r"\D", "", match[0]))


def _is_ip(match: re.Match) -> bool:
    return all(int(part) <= 255 for part in match[0].split("."))


def _is_date(match: re.Match) -> bool:
    numbers = [int(part) for part in re.split(r"[-/.]", match[0])]
    day_or_month = sorted(numbers[1:] if numbers[0] > 31 else numbers[:2])
    return 1 <= day_or_month[0] <= 12 and day_or_month[1] <= 31


@dataclass(frozen=True)
class _Pattern:
    """A form, a check of what it matched, and pieces of which a text must hold one for it to match.

    The pieces are in lower case with every digit as 0; looking for them first costs almost nothing, and
    most texts hold none of them.
    """

    kind: str
    form: re.Pattern
    pieces: tuple[str, ...]
    valid: Callable[[re.Match], bool] | None = None


def _form(text: str, flags: int = 0) -> re.Pattern:
    return re.compile(text, flags | re.ASCII)


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_STREETS = tuple(f" {word}" for word in re.findall("[a-z]+", _STREET.lower()))
_PATTERNS = (
    _Pattern(
        "ssn",
        _form(r"(?<!\d)(?<!\d-)\d{3}([- .])\d{2}\1\d{4}(?!\d|-\d)"),
        ("000-00-0000", "000 00 0000", "000.00.0000"),
    ),
    _Pattern(
        "ssn",
        _form(r"(?:ssn|social security)\D{0,15}(?P<value>\d{9})(?!\d)", re.I),
        ("ssn", "social security"),
    ),
    _Pattern(
        "phone",
        _form(
            r"(?<!\d)(?:\+?1[ .-]?)?(?:\([2-9]\d\d\)[ .-]?|[2-9]\d\d[ ./-])\d{3}[ .-]\d{4}(?!\d)"
            r"(?: ?(?:x|ext\.?) ?\d{1,5})?"
        ),
        ("000-0000", "000 0000", "000.0000"),
    ),
    _Pattern("phone", _form(r"\+[1-9](?:[ .()-]{0,2}\d){7,14}(?!\d)"), ("+0",)),
    _Pattern(
        "phone",
        _form(rf"\b{_PHONE_LABEL}(?P<value>[2-9]\d{{9}}|[2-9]\d\d[-. ]?\d{{4}})(?!\d)", re.I),
        ("0000",),
    ),
    _Pattern("card", _form(r"(?<!\d)(?<!\d-)\d(?:[ -]?\d){12,18}(?!\d|-\d)"), ("0000",), _is_card),
    _Pattern("ip", _form(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?!\d|\.\d)"), ("0.0",), _is_ip),
    _Pattern("mrn", _form(r"\bSYN[- ]?\d{4}[- ]?\d{4}(?!\d)", re.I), ("syn",)),
    _Pattern(
        "mrn",
        _form(rf"\b{_MRN_LABEL}[^\d\n]{{0,12}}?(?P<value>(?:\b[A-Z]{{1,5}}-?)?\d{{5,12}})(?!\d)", re.I),
        ("00000",),
    ),
    _Pattern("number", _form(r"(?<!\d)\d{9,}+"), ("000000000",)),
    _Pattern(
        "date", _form(rf"(?<![\d./-])(?:{_ISO_DATE}|{_US_DATE})(?![\d-])"), ("0-0", "0/0", "0.0"), _is_date
    ),
    _Pattern("date", _form(r"(?<![\d./-])\d{1,2}([-/])\d{1,2}\1\d\d(?![\d/-])"), ("0-0", "0/0"), _is_date),
    _Pattern("date", _form(rf"(?<![a-z]){_MONTH}\b\.?,? (?:{_DAY},? )?\d{{4}}\b", re.I), _MONTHS),
    _Pattern("date", _form(rf"(?<!\d){_DAY} (?:of )?{_MONTH}\b\.?,? \d{{4}}\b", re.I), _MONTHS),
    _Pattern("address", _form(rf"{_HOUSE}{_STREET}\b\.?{_FLAT}?{_TOWN}?(?:,? (?:ZIP )?{_ZIP})?"), _STREETS),
    _Pattern("address", _form(rf"\bZIP(?: code)?:? ?{_ZIP}", re.I), ("zip",)),
    _Pattern("age", _form(r"\b(?:9\d|1[01]\d)(?=[- ]?(?:years?|yrs?|y/o|yo)\b)", re.I), ("0y", "0 y", "0-y")),
    _Pattern("url", _form(r"(?:https?://|\bwww\.)[^\s<>\"']{3,2000}", re.I), ("://", "www.")),
)

_AT = re.compile(r"@(?=\w)|[ ]?[\[({] ?at ?[\])}] ?", re.IGNORECASE)
_DOT = r"(?:\.|\s?[\[({]\s?dot\s?[\])}]\s?)"
_HOST = re.compile(rf"[^\W_](?:[\w-]{{0,62}}){_DOT}(?:[\w-]{{1,63}}{_DOT}){{0,6}}[^\W\d_]{{2,24}}")
_LOCAL = frozenset("!#$%&'*+/=?^`{|}~.-_")
_LONGEST_LOCAL = 64
_SHAPE = str.maketrans("123456789", "000000000")


def _emails(text: str) -> Iterator[Span]:
    """Find mail addresses from their sign outward: starting with the name takes quadratic time."""
    done = 0
    for sign in _AT.finditer(text):
        host = _HOST.match(text, sign.end())
        if host is None:
            continue
        start, first = sign.start(), max(done, sign.start() - _LONGEST_LOCAL)
        while start > first and (text[start - 1].isalnum() or text[start - 1] in _LOCAL):
            start -= 1
        while start < sign.start() and text[start] in ".'":
            start += 1
        if start < sign.start():
            done = host.end()
            yield Span(start, done, "email")


def _matches(text: str) -> Iterator[Span]:
    if "@" in text or _AT.search(text):
        yield from _emails(text)
    shape = text.lower().translate(_SHAPE)
    for pattern in _PATTERNS:
        if not any(piece in shape for piece in pattern.pieces):
            continue
        group = "value" if "value" in pattern.form.groupindex else 0
        for match in pattern.form.finditer(text):
            if pattern.valid is None or pattern.valid(match):
                yield Span(*match.span(group), pattern.kind)


def find_identifiers(text: str, *, spelled: bool = False) -> list[Span]:
    """Return the identifiers that patterns find, merged, in order.

    Args:
        text: any text.
        spelled: look at digits written as words too.
    """
    folded = fold(text, spelled=spelled)
    return merge(Span(*folded.place(s.start, s.end), s.kind) for s in _matches(folded.text))


@dataclass(frozen=True)
class PatternScrubber:
    """Replaces what patterns find.

    Attributes:
        spelled: look at digits written as words too.
    """

    spelled: bool = False

    def find(self, text: str) -> list[Span]:
        """Return the identifiers of a text, merged, in order."""
        return find_identifiers(text, spelled=self.spelled)

    def find_all(self, texts: Iterable[str]) -> list[list[Span]]:
        """Return the identifiers of each text, merged, in order."""
        return [self.find(text) for text in texts]

    def scrub(self, text: str) -> Scrubbed:
        """Return the text with a typed placeholder for each identifier."""
        return replace(text, self.find(text))
