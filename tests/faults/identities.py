"""`make identities N=... SEED=... JOBS=...`: looks for identifiers of real people in generated patients.

The rules are written down here a second time, from what the authorities publish, and share no code with the
check that `privhelpers.records` makes before it writes.
"""

import ipaddress
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator

from faults.harness import counted, report

from privhelpers.records import make_hospital_records

HOSPITAL = 20_000  # patients; a factory has numbers for 20,196 people
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
    return not any(address in net for net in DOCUMENTATION)


# Kind -> what has its form, and whether that can be somebody's.
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


def _possible(rows: list[dict]) -> int:
    return sum(sum(row["real"].values()) for row in rows)


def table(rows: list[dict], seed: int, ran: str, machine: str) -> str:
    """Return what was found in all hospitals as Markdown.

    Args:
        rows: lines of the record.
        seed: of the run.
        ran: commit.
        machine: its processor.
    """
    patients, notes, length = (sum(row[name] for row in rows) for name in ("patients", "notes", "characters"))
    counts = {of: sum((Counter(row[of]) for row in rows), Counter()) for of in ("seen", "real")}
    kinds = [f"| {kind} | {counts['seen'][kind]:,} | {counts['real'][kind]:,} |" for kind in RULES]
    examples = [f"- {kind}: {text!a}" for row in rows for kind, text in row["examples"]]
    bound = 100 * report.upper_bound(min(_possible(rows), patients), patients)
    return "\n".join(
        [
            "# Identifiers of real people in generated patients",
            "",
            f"Seed {seed}, {patients:,} patients of {len(rows):,} hospitals, {notes:,} notes,",
            f"{length:,} characters, commit {ran}, on {machine}.",
            f"Possible ones: {_possible(rows):,}; chance of one in a patient: at most {bound:.2g} %,",
            "one-sided, at 95 % (Clopper-Pearson, patients taken as independent draws).",
            "",
            "| in the form of | seen | can be somebody's |",
            "|---|---|---|",
            *kinds,
            *(["", *examples] if examples else []),
            "",
        ]
    )


def _count(asked: counted.Count) -> int:
    hospitals = -(-asked.number // HOSPITAL)  # whole ones alone: a longer run later takes them over

    def trial(index: int) -> dict:
        return hospital(index, asked.seed, HOSPITAL)

    def tell(rows: list[dict]) -> str:
        return f"[identities] {len(rows)} of {hospitals} hospitals, {_possible(rows)} possible"

    rows = asked.rows(trial, hospitals, tell)
    asked.publish(table(rows, asked.seed, asked.commit, asked.machine))
    return int(_possible(rows) > 0)


def main(arguments: list[str] | None = None) -> int:
    """Look through patients and return 1 if one of them may carry a real identifier."""
    return counted.program("identities", 1_000_000, _count, arguments)


if __name__ == "__main__":
    sys.exit(main())
