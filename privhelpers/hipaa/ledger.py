"""A ledger of what a model did with each of the 18 identifiers.

A cell that nobody measured says so: it is never a zero, because "0 leaks" and "we did not look" are
different findings.

>>> frame = ledger({"ssn": 0, "email": 40}, {"email": 1400}, {"email": 17}, {"email": 0})
>>> ledger_table(frame).loc[["F", "G"], ["leaked", "control"]].values.tolist()
[['17', '0'], ['not in the data', '–']]
"""

import numbers
from collections.abc import Mapping, Sequence

import pandas as pd

from privhelpers.errors import InvalidParameter
from privhelpers.hipaa.identifiers import IDENTIFIERS, RECORD_IDENTIFIERS
from privhelpers.hipaa.spans import Carriers, came_out
from privhelpers.stats import clopper_pearson

NOT_IN_DATA = "not in the data"
NOT_MEASURED = "not measured"
MEASURED = "measured"
NO_NUMBER = "–"  # the column "leaked" says why there is none
COUNTS = ("planted", "attempted", "carriers", "leaked", "control_carriers", "control")
RATES = ("rate", "low", "high", "control_rate", "control_low", "control_high")
_WORDS = (NOT_IN_DATA, NOT_MEASURED)
Counts = Mapping[str, int | None]

CAVEAT = (
    "No row and no table of this kind de-identifies a model under HIPAA: Safe Harbor asks that all 18 "
    "identifiers be removed from the data and that nobody knows how to identify a person from what remains, "
    "and Expert Determination asks an expert to show that the risk of identification is very small."
)


def _by_letter(argument: str, counts: Counts) -> dict[str, int | None]:
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


def _share(letter: str, name: str, hits: int | None, trials: int | None) -> tuple[float, float, float] | None:
    if hits is None or not trials:
        return None
    if hits > trials:
        raise InvalidParameter(f"{name}[{letter!r}] = {hits}: must not exceed the {trials} that could")
    found = clopper_pearson(hits, trials)
    return found.estimate, found.low, found.high


def _row(letter: str, counts: dict[str, int | None], by_patient: bool) -> dict[str, object]:
    if counts["planted"] == 0:
        if counts["leaked"]:
            raise InvalidParameter(
                f"leaked[{letter!r}] = {counts['leaked']}: nothing was planted, so nothing can leak"
            )
        return {"planted": 0, "status": NOT_IN_DATA}
    trials = dict.fromkeys(("leaked", "control"), counts["attempted"])
    if by_patient:
        trials = {"leaked": counts["carriers"], "control": counts["control_carriers"]}
    found = {name: _share(letter, name, counts[name], trials[name]) for name in trials}
    if counts["planted"] is None or not counts["attempted"] or found["leaked"] is None:
        return {**counts, "leaked": None, "control": None, "status": NOT_MEASURED}
    rates = dict(zip(RATES[:3], found["leaked"], strict=True))
    if found["control"]:
        rates |= dict(zip(RATES[3:], found["control"], strict=True))
    return {**counts, **rates, "status": MEASURED}


def ledger(
    planted: Counts,
    attempted: Counts,
    leaked: Counts,
    leaked_control: Counts,
    *,
    carriers: Counts | None = None,
    control_carriers: Counts | None = None,
    unlisted: str = NOT_IN_DATA,
) -> pd.DataFrame:
    """Return one row per HIPAA identifier: what was planted, tried and reproduced.

    With `carriers` the unit is the patient and the intervals are exact for independent patients. Without,
    it is the attempt; attempts that share prompts are not independent, so read that interval as the
    narrowest one that could be right.

    Args:
        planted: distinct values in the training notes, by record identifier (`name`, `ssn`, ...) or letter.
        attempted: texts of the model that were searched for one, same keys; None or no key: not measured.
        leaked: attempts that reproduced a planted value, or patients whose value came out; same keys.
        leaked_control: the same for values that no model was trained on.
        carriers: patients who have such an identifier in the training notes: `leaked` counts patients.
        control_carriers: the same for never-trained patients: `leaked_control` counts patients.
        unlisted: status of identifiers that `planted` does not name: `NOT_IN_DATA` for notes that we
            generated, `NOT_MEASURED` for records whose content nobody counted.

    Returns:
        A frame indexed by letter with columns identifier, planted, attempted, carriers, leaked,
        control_carriers, control (whole numbers, <NA> where there is none), rate, low, high, control_rate,
        control_low, control_high (95 % Clopper-Pearson), status.

    Raises:
        InvalidParameter: an unknown identifier, a negative count, more leaks than patients or attempts, a
            leak of something that was never planted, `carriers` without `control_carriers`.
    """
    if unlisted not in _WORDS:
        raise InvalidParameter(f"unlisted = {unlisted!r}: must be {NOT_IN_DATA!r} or {NOT_MEASURED!r}")
    if (carriers is None) != (control_carriers is None):
        raise InvalidParameter("carriers and control_carriers: give both; a rate needs its control")
    given = (planted, attempted, carriers or {}, leaked, control_carriers or {}, leaked_control)
    by_letter = {name: _by_letter(name, counts) for name, counts in zip(COUNTS, given, strict=True)}
    absent = 0 if unlisted == NOT_IN_DATA else None
    rows = []
    for entry in IDENTIFIERS:
        counts = {name: by_letter[name].get(entry.letter) for name in COUNTS}
        counts["planted"] = by_letter["planted"].get(entry.letter, absent)
        rows.append(
            {
                "letter": entry.letter,
                "identifier": entry.name,
                **_row(entry.letter, counts, carriers is not None),
            }
        )
    frame = pd.DataFrame(rows).set_index("letter").reindex(columns=["identifier", *COUNTS, *RATES, "status"])
    return frame.astype(dict.fromkeys(COUNTS, "Int64") | dict.fromkeys(RATES, "float64"))


def _of(count: int | None, carriers: int | None, word: str) -> str:
    if pd.isna(count):
        return word
    return f"{count:,}" if pd.isna(carriers) else f"{count:,} of {carriers:,}"


def _interval(low: float, high: float) -> str:
    return NOT_MEASURED if pd.isna(low) else f"{100 * low:.1f} to {100 * high:.1f} %"


def ledger_table(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a ledger as text for a page: a row without a measurement says why, where the leaks would be.

    Args:
        frame: what `ledger` returned.
    """
    table = {}
    for letter, row in frame.iterrows():
        table[letter] = {
            "identifier": row["identifier"],
            "planted": _of(row["planted"], None, NOT_MEASURED),
            "attempted": _of(row["attempted"], None, NO_NUMBER),
            "leaked": row["status"],
            **dict.fromkeys(("control", "95 % interval"), NO_NUMBER),
        }
        if row["status"] == MEASURED:
            table[letter]["leaked"] = _of(row["leaked"], row["carriers"], NOT_MEASURED)
            table[letter]["control"] = _of(row["control"], row["control_carriers"], NOT_MEASURED)
            table[letter]["95 % interval"] = _interval(row["low"], row["high"])
    return pd.DataFrame.from_dict(table, orient="index").rename_axis("letter")


def ledger_matrix(ledgers: Mapping[str, pd.DataFrame]) -> pd.DataFrame:
    """Return all models at once: leaked, a bar, and its control; or the word that says why there is none.

    Args:
        ledgers: what `ledger` returned, by model.
    """
    if not ledgers:
        raise InvalidParameter("ledgers: there is no model")
    columns = {
        model: [
            f"{row['leaked']} | {NOT_MEASURED if pd.isna(row['control']) else row['control']}"
            if row["status"] == MEASURED
            else row["status"]
            for _, row in frame.iterrows()
        ]
        for model, frame in ledgers.items()
    }
    first = next(iter(ledgers.values()))
    return pd.DataFrame({"identifier": first["identifier"].tolist(), **columns}, index=first.index)


def ledger_records(frame: pd.DataFrame) -> dict[str, dict]:
    """Return a ledger as plain values by letter, for a file: None where there is no number.

    Args:
        frame: what `ledger` returned.
    """
    return frame.astype(object).where(frame.notna(), None).to_dict("index")


def patient_ledger(texts: Sequence[str], members: Carriers, controls: Carriers) -> pd.DataFrame:
    """Return the ledger whose unit is the patient: whose values stand in the texts, by identifier.

    Args:
        texts: what a model wrote.
        members: identifiers in the training notes, as `carriers` returns them.
        controls: of patients whom no model was trained on.
    """
    planted = {kind: len(set().union(*own.values())) for kind, own in members.items()}
    groups = (members, controls)
    hits = [{kind: len(who) for kind, who in came_out(texts, own).items()} for own in groups]
    sizes = [{kind: len(own) for kind, own in group.items()} for group in groups]
    return ledger(
        planted,
        dict.fromkeys(planted, len(texts)),
        *hits,
        carriers=sizes[0],
        control_carriers=sizes[1],
    )


def identifier_share(notes: Sequence[dict]) -> float:
    """Return the share of the characters of notes that stand in identifiers."""
    inside = sum(span["end"] - span["start"] for note in notes for span in note["spans"])
    return inside / sum(len(note["text"]) for note in notes)
