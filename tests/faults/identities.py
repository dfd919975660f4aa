"""`make identities N=... SEED=... JOBS=...`: looks for identifiers of real people in generated patients.

The rules are written down here a second time, from what the authorities publish, and share no code with the
check that `privhelpers.records` makes before it writes.
"""

import argparse
import ipaddress
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor

from faults.harness import report
from faults.harness.counted import PLACE, whole

from privhelpers.artifacts import write_atomic
from privhelpers.errors import PrivHelpersError
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


def hospital(
    seed: int, number: int, patients: int
) -> tuple[Counter, Counter, list[tuple[str, str]], int, int]:
    """Return what the notes of a hospital hold: kinds seen, kinds that can be real, those, notes, characters.

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
    return seen, real, examples[:20], len(notes), sum(len(note["text"]) for note in notes)


def table(seed: int, patients: int, jobs: int) -> tuple[str, int]:
    """Return what was found in so many patients, as Markdown, and how many can be real."""
    sizes = [HOSPITAL] * (patients // HOSPITAL) + ([patients % HOSPITAL] if patients % HOSPITAL else [])
    seen, real, examples, notes, length = Counter(), Counter(), [], 0, 0
    with ProcessPoolExecutor(jobs) as pool:
        for one in pool.map(hospital, [seed] * len(sizes), range(len(sizes)), sizes):
            seen, real, examples = seen + one[0], real + one[1], examples + one[2]
            notes, length = notes + one[3], length + one[4]
            sys.stderr.write(f"\r[identities] {notes:,} notes, {real.total()} possible ")
            sys.stderr.flush()
    rows = [f"| {kind} | {seen[kind]:,} | {real[kind]:,} |" for kind in RULES]
    bound = 100 * report.upper_bound(min(real.total(), patients), patients)
    text = [
        "# Identifiers of real people in generated patients",
        "",
        f"Seed {seed}, {patients:,} patients of {len(sizes):,} hospitals, {notes:,} notes,",
        f"{length:,} characters, commit {report.commit()}, on {report.processor()}.",
        f"Possible ones: {real.total():,}; chance of one in a patient: at most {bound:.2g} %,",
        "one-sided, at 95 % (Clopper-Pearson, patients taken as independent draws).",
        "",
        "| in the form of | seen | can be somebody's |",
        "|---|---|---|",
        *rows,
        *(["", *(f"- {kind}: {text!a}" for kind, text in examples)] if examples else []),
        "",
    ]
    return "\n".join(text), real.total()


def main(arguments: list[str] | None = None) -> int:
    """Look through patients and return 1 if one of them may carry a real identifier."""
    parser = argparse.ArgumentParser(prog="make identities")
    for name in ("--patients", "--seed", "--jobs"):
        parser.add_argument(name, default="")
    options = parser.parse_args(arguments)
    try:
        patients = whole("N", options.patients, 1_000_000, 10)
        seed = whole("SEED", options.seed, 0, 0)
        jobs = whole("JOBS", options.jobs, 1, 1)
    except PrivHelpersError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 2
    text, real = table(seed, patients, jobs)
    write_atomic(PLACE / f"identities-{seed}.md", text.encode())
    print(f"\n{text}", end="")
    return int(real > 0)


if __name__ == "__main__":
    sys.exit(main())
