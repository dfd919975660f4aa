"""The 18 identifiers of HIPAA's Safe Harbor list and a ledger of what a model did with each.

The list is 45 CFR 164.514(b)(2)(i)(A)-(R), in our own words. A cell that nobody measured says so: it is
never a zero, because "0 leaks" and "we did not look" are different findings.

>>> frame = ledger({"ssn": 0, "email": 40}, {"email": 1400}, {"email": 17}, {"email": 0})
>>> ledger_table(frame).loc[["F", "G"], ["leaked", "control"]].values.tolist()
[['17', '0'], ['not in the data', 'not in the data']]
"""

import numbers
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
from statsmodels.stats.proportion import proportion_confint

from privhelpers.errors import InvalidParameter

NOT_IN_DATA = "not in the data"
NOT_MEASURED = "not measured"
MEASURED = "measured"
COUNTS = ("planted", "attempted", "leaked", "control")

CAVEAT = (
    "No row and no table of this kind de-identifies a model under HIPAA: Safe Harbor asks that all 18 "
    "identifiers be removed from the data and that nobody knows how to identify a person from what remains, "
    "and Expert Determination asks an expert to show that the risk of identification is very small."
)


@dataclass(frozen=True)
class SafeHarborIdentifier:
    """One entry of the Safe Harbor list.

    Attributes:
        letter: its place in 45 CFR 164.514(b)(2)(i), A to R.
        name: what it covers, in our words.
        record_identifier: the identifier of our notes that falls under it, or None.
    """

    letter: str
    name: str
    record_identifier: str | None = None


IDENTIFIERS = (
    SafeHarborIdentifier("A", "Names", "name"),
    SafeHarborIdentifier("B", "Places smaller than a state", "address"),
    SafeHarborIdentifier("C", "Dates more exact than a year; ages over 89", "dob"),
    SafeHarborIdentifier("D", "Telephone numbers", "phone"),
    SafeHarborIdentifier("E", "Fax numbers"),
    SafeHarborIdentifier("F", "Email addresses", "email"),
    SafeHarborIdentifier("G", "Social security numbers", "ssn"),
    SafeHarborIdentifier("H", "Medical record numbers", "mrn"),
    SafeHarborIdentifier("I", "Health plan numbers"),
    SafeHarborIdentifier("J", "Account numbers"),
    SafeHarborIdentifier("K", "Certificate and license numbers"),
    SafeHarborIdentifier("L", "Vehicle identifiers and plates"),
    SafeHarborIdentifier("M", "Device identifiers and serial numbers"),
    SafeHarborIdentifier("N", "Web addresses"),
    SafeHarborIdentifier("O", "IP addresses"),
    SafeHarborIdentifier("P", "Biometric identifiers"),
    SafeHarborIdentifier("Q", "Full-face photographs"),
    SafeHarborIdentifier("R", "Any other unique number, trait or code"),
)
RECORD_IDENTIFIERS = {row.record_identifier: row.letter for row in IDENTIFIERS if row.record_identifier}


def _by_letter(argument: str, counts: Mapping[str, int | None]) -> dict[str, int | None]:
    found: dict[str, int | None] = {}
    letters = {row.letter for row in IDENTIFIERS}
    for key, value in counts.items():
        letter = RECORD_IDENTIFIERS.get(key, key)
        if letter not in letters:
            known = ", ".join(RECORD_IDENTIFIERS)
            raise InvalidParameter(f"{argument}[{key!r}]: must be one of {known}, or a letter A to R")
        if letter in found:
            raise InvalidParameter(f"{argument}[{key!r}]: identifier {letter} is given twice")
        whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
        if value is not None and not (whole and value >= 0):
            raise InvalidParameter(
                f"{argument}[{key!r}] = {value!r}: must be a whole number of 0 or more, or None"
            )
        found[letter] = None if value is None else int(value)
    return found


def _row(letter: str, counts: dict[str, int | None]) -> dict[str, object]:
    planted, attempted, leaked, control = (counts[name] for name in COUNTS)
    if planted == 0:
        if leaked:
            raise InvalidParameter(f"leaked[{letter!r}] = {leaked}: nothing was planted, so nothing can leak")
        return {"planted": 0, "status": NOT_IN_DATA}
    if planted is None or not attempted or leaked is None:
        return {**counts, "leaked": None, "control": None, "status": NOT_MEASURED}
    for name, value in (("leaked", leaked), ("control", control)):
        if value is not None and value > attempted:
            raise InvalidParameter(f"{name}[{letter!r}] = {value}: must not exceed {attempted} attempts")
    low, high = proportion_confint(leaked, attempted, alpha=0.05, method="beta")
    return {**counts, "rate": leaked / attempted, "low": low, "high": high, "status": MEASURED}


def ledger(
    planted: Mapping[str, int | None],
    attempted: Mapping[str, int | None],
    leaked: Mapping[str, int | None],
    leaked_control: Mapping[str, int | None],
    *,
    unlisted: str = NOT_IN_DATA,
) -> pd.DataFrame:
    """Return one row per HIPAA identifier: what was planted, tried and reproduced.

    The interval takes attempts as independent; where they share prompts, read it as the narrowest
    one that could be right and set `stats.clustered_proportion` beside it.

    Args:
        planted: distinct values in the training notes, by record identifier (`name`, `ssn`, ...) or letter.
        attempted: attempts that could have reproduced one, same keys; None or no key: not measured.
        leaked: attempts that reproduced a planted value, same keys.
        leaked_control: attempts that reproduced a never-trained value, same keys.
        unlisted: status of identifiers that `planted` does not name: `NOT_IN_DATA` for notes that we
            generated, `NOT_MEASURED` for records whose content nobody counted.

    Returns:
        A frame indexed by letter with columns identifier, planted, attempted, leaked, control (whole
        numbers, <NA> where there is none), rate, low, high (95 % Clopper-Pearson of leaked), status.

    Raises:
        InvalidParameter: an unknown identifier, a negative count, more leaks than attempts, a leak of
            something that was never planted.

    Taught in: 16_hipaa
    """
    if unlisted not in (NOT_IN_DATA, NOT_MEASURED):
        raise InvalidParameter(f"unlisted = {unlisted!r}: must be {NOT_IN_DATA!r} or {NOT_MEASURED!r}")
    given = [
        _by_letter(name, counts)
        for name, counts in zip(
            ("planted", "attempted", "leaked", "leaked_control"),
            (planted, attempted, leaked, leaked_control),
            strict=True,
        )
    ]
    absent = 0 if unlisted == NOT_IN_DATA else None
    rows = []
    for entry in IDENTIFIERS:
        counts = {name: by.get(entry.letter) for name, by in zip(COUNTS, given, strict=True)}
        counts["planted"] = given[0].get(entry.letter, absent)
        rows.append({"letter": entry.letter, "identifier": entry.name, **_row(entry.letter, counts)})
    columns = ["identifier", *COUNTS, "rate", "low", "high", "status"]
    frame = pd.DataFrame(rows).set_index("letter").reindex(columns=columns)
    return frame.astype(dict.fromkeys(COUNTS, "Int64") | dict.fromkeys(("rate", "low", "high"), "float64"))


def ledger_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a ledger as text for a page: every cell without a measurement says which kind it is.

    Args:
        frame: what `ledger` returned.

    Taught in: 16_hipaa
    """
    table = pd.DataFrame({"identifier": frame["identifier"]})
    for name in COUNTS:
        words = frame["status"].where(frame["status"] != MEASURED, NOT_MEASURED)
        table[name] = [
            word if pd.isna(value) else f"{value:,}" for value, word in zip(frame[name], words, strict=True)
        ]
    table["95 % interval"] = [
        f"{100 * low:.2f} % to {100 * high:.2f} %" if status == MEASURED else status
        for low, high, status in zip(frame["low"], frame["high"], frame["status"], strict=True)
    ]
    return table
