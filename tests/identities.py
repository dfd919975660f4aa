"""Rules for identifiers that can belong to a real person, and where to look for them.

The rules are written here a second time, from what the authorities publish, and share no code with the check
that `privhelpers.records` makes before it writes.
"""

import contextlib
import html
import ipaddress
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from bookmaker.runner import fingerprint
from privhelpers.records import make_hospital_records

ROOT = Path(__file__).parents[1]
Shown = tuple[int, list[tuple[str, str, str]]]  # files, and of each value: its file, its kind, itself
ASIDE = 500  # of them for validation, and as many held out
RESERVED = ("example.com", "example.net", "example.org", "example", "test", "invalid", "localhost")
ENDINGS = "com|net|org|edu|gov|mil|int|io|co|us|uk|de|fr|health|care|clinic|hospital|info|biz|app|dev|ai"
DOCUMENTATION = [ipaddress.ip_network(net) for net in ("192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24")]
ITIN = {*range(50, 66), *range(70, 89), *range(90, 93), *range(94, 100)}  # middle two digits, IRS
ATIN = {93}
IRSN = {*range(1, 11), 17, 18, 19, 28, 29, 37, 38, 39}


def _luhn(digits: str) -> bool:
    total = 0
    for place, digit in enumerate(map(int, reversed(digits))):
        doubled = digit * (1 + place % 2)
        total += doubled // 10 + doubled % 10
    return total % 10 == 0


def _taxpayer(found: re.Match) -> bool:
    """Whether a number of nine digits can have been given to a person: SSN, ITIN, ATIN or IRSN."""
    area, group, serial = (int(part) for part in found.groups())
    if area >= 900:
        return group in ITIN | ATIN | IRSN
    return area not in (0, 666) and group != 0 and serial != 0


def _reserved(host: str) -> bool:
    host = host.lower().rstrip(".")
    return any(host == name or host.endswith(f".{name}") for name in RESERVED)


def _address(found: re.Match) -> bool:
    try:
        address = ipaddress.ip_address(found[0])
    except ValueError:
        return False
    return not (address.is_loopback or any(address in net for net in DOCUMENTATION))


# Kind -> what has its form, and whether that can be a real person's.
RULES: dict[str, tuple[re.Pattern, Callable[[re.Match], bool]]] = {
    "SSN, ITIN, ATIN or IRSN": (re.compile(r"(?<!\d)(\d{3})[-. ]?(\d{2})[-. ]?(\d{4})(?!\d)"), _taxpayer),
    "telephone number": (
        re.compile(r"(?<!\d)(?:\(?[2-9]\d{2}\)?[-. /]{0,2})([2-9]\d{2})[-. ]?(\d{4})(?!\d)"),
        lambda found: not (found[1] == "555" and found[2].startswith("01")),
    ),
    "local telephone number": (
        re.compile(r"(?<![\d-])([2-9]\d{2})-(\d{4})(?![\d-])"),
        lambda found: not (found[1] == "555" and found[2].startswith("01")),
    ),
    "mail address": (re.compile(r"\S+@([\w.-]+)"), lambda found: not _reserved(found[1])),
    "host name": (
        re.compile(rf"(?:https?://|www\.)([\w.-]+)|\b((?:[\w-]+\.)+(?:{ENDINGS}))\b", re.IGNORECASE),
        lambda found: not _reserved(found[1] or found[2]),
    ),
    "IP address": (re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])"), _address),
    "provider number (NPI)": (
        re.compile(r"(?<!\d)\d{10}(?!\d)"),
        lambda found: found[0][0] in "12" and _luhn("80840" + found[0]),
    ),
    "ZIP code": (
        re.compile(r"\b(?:ZIP|[A-Z]{2})(?: code)?:? (\d{5})(?:-\d{4})?\b"),
        lambda found: int(found[1]) >= 501,  # the first that the postal service has assigned is 00501
    ),
    "payment card": (re.compile(r"(?<!\d)\d(?:[ -]?\d){12,18}(?!\d)"), lambda found: _card(found[0])),
    "record number": (
        re.compile(r"\b(?:MRN|record number)[:# ]*(\S+)", re.IGNORECASE),
        lambda found: not found[1].startswith("SYN-"),
    ),
}


def _card(text: str) -> bool:
    digits = re.sub(r"\D", "", text)
    return digits[0] in "23456" and _luhn(digits)


def found(text: str) -> Iterator[tuple[str, str, bool]]:
    """Yield everything in a text with an identifier's form: its kind, itself, and whether it can be real."""
    for kind, (form, possible) in RULES.items():
        for match in form.finditer(text):
            yield kind, match[0], possible(match)


# What the project quotes, and why it belongs to no one.
QUOTED = {
    **dict.fromkeys(("ZIP code 13222", "ZIP code 13068", "ZIP code 30602"), "tables of published examples"),
    **dict.fromkeys(("50.1.3.1", "50.1.3.2", "50.1.4.1", "4.5.3.1"), "sections of a book or of a standard"),
    "4111 1111 1111 1111": "the test number of payment libraries",
    "-".join(("123", "45", "6789")): "what chapter 6 lets the check refuse",
    'user.email="github-actions[bot]@users.noreply.github.com': "a robot, not a person",
}
# Kind -> how it is written where it is meant. Others are no finding in a file or a page: digits that run
# together are counts, seeds and hashes there, hosts are the goals of links, record numbers are spoken of.
WRITTEN = {
    "SSN, ITIN, ATIN or IRSN": re.compile(r"\d{3}([-. ])\d{2}\1\d{4}"),
    "telephone number": re.compile(r"\(?\d{3}\)?[-. /]{1,2}\d{3}[-. ]\d{4}"),
    "mail address": re.compile(r".*\w@[\w-]+\.[\w.-]*[a-z]{2,}", re.IGNORECASE),
    "payment card": re.compile(r"(?:\d{4}[ -]){3}\d{1,7}"),
    "IP address": re.compile(".*"),
    "ZIP code": re.compile("ZIP.*"),
}
_INLINE = re.compile(r"</?(?:a|b|code|em|i|span|strong)\b[^>]*>")
_PICTURE = re.compile(r"[A-Za-z0-9+/=]{1000,}")  # of a kept page, base64
_TAG = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL)


def shown(text: str) -> Iterator[tuple[str, str]]:
    """Yield the kind and the value of what could be a real identifier in a file or a page of the project."""
    for kind, value, possible in found(text):
        if possible and kind in WRITTEN and WRITTEN[kind].fullmatch(value) and value not in QUOTED:
            yield kind, value


def repository() -> Shown:
    """Return how many files of text git tracks, and the name, kind and value of what they show."""
    texts = {}
    for name in filter(None, fingerprint.git(ROOT, "ls-files", "-z").split("\0")):
        with contextlib.suppress(UnicodeDecodeError, FileNotFoundError):
            texts[name] = _PICTURE.sub("", (ROOT / name).read_text(encoding="utf-8"))
    values = [(name, *one) for name, text in texts.items() for one in shown(text)]
    # The vocabulary of a kept recognizer has shapes of words, such as xx.dddd@xxx.xxx.
    return len(texts), [one for one in values if re.search(r"[^xd.@\W]", one[-1].lower())]


def site(html_folder: Path) -> Shown:
    """Return how many pages a built site has, and the name, kind and value of what they show."""
    pages, values = 0, []
    for path in sorted(html_folder.rglob("*.html")):
        if "_static" not in path.parts:
            text = _TAG.sub("\n", _INLINE.sub("", path.read_text(encoding="utf-8")))
            name = path.relative_to(html_folder).as_posix()
            values += [(name, *one) for one in shown(html.unescape(text))]
            pages += 1
    return pages, values


def hospital(number: int, seed: int, patients: int) -> dict:
    """Return what the notes of a hospital hold: kinds seen, kinds that can be real, some of those, and sizes.

    Every second hospital has report notes alone, which carry all identifiers of their patient.
    """
    aside = min(ASIDE, max(1, patients // 10))
    records = make_hospital_records(
        seed=seed * 100_000 + number,
        patients=patients - 2 * aside,
        validation_patients=aside,
        heldout_patients=aside,
        canaries_per_level=2,
        report_share=1.0 if number % 2 else 0.15,
        hospital="auxiliary" if number % 4 >= 2 else "private",
    )
    seen, real, examples = Counter(), Counter(), []
    notes = [*records.train, *records.validation, *records.heldout]
    for note in notes:
        for kind, text, possible in found(note["text"]):
            seen[kind] += 1
            if possible:
                real[kind] += 1
                examples.append((kind, text))
    return {
        "patients": patients,
        "seen": seen,
        "real": real,
        "examples": examples[:20],
        "notes": len(notes),
        "characters": sum(len(note["text"]) for note in notes),
    }
