"""Audited claims as tables for programs and for pages: one row per claim."""

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real

import pandas as pd

from privhelpers.claims._documents import SEVERITIES, VERDICTS, Audited
from privhelpers.errors import InvalidParameter


@dataclass(frozen=True, eq=False)
class TextTable:
    """A table of sentences: its cells wrap and are aligned left, unlike numbers.

    Attributes:
        frame: the cells, as text.
        index: show the names of the rows.
    """

    frame: pd.DataFrame
    index: bool = True

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.frame)

    def __repr__(self) -> str:
        """Return the cells as plain text."""
        return self.frame.to_string(max_colwidth=None, index=self.index)

    def _repr_html_(self) -> str:
        with pd.option_context("display.max_colwidth", None):
            return self.frame.to_html(classes="table claims", index=self.index, border=0)


def tidy(rows: Sequence[Audited]) -> pd.DataFrame:
    """Return one row per claim, indexed by id."""
    records = {
        row.id: {
            "document": row.document,
            **{name: row.claim[name] for name in ("topic", "where", "kind", "says", "published")},
            "evidence": row.evidence,
            "verdict": row.verdict,
            "severity": row.severity,
            "why": row.claim["why"],
        }
        for row in rows
    }
    return pd.DataFrame.from_dict(records, orient="index")


def claim_table(rows: Sequence[Audited], *topics: str) -> TextTable:
    """Return the claims of some topics as text for a page.

    Args:
        rows: what `audit` returned.
        topics: which of them, in the order of the table.

    Raises:
        InvalidParameter: there is no claim on a topic.
    """
    frame = tidy(rows)
    unknown = [topic for topic in topics if topic not in set(frame["topic"])]
    if unknown or not topics:
        known = ", ".join(dict.fromkeys(frame["topic"]))
        raise InvalidParameter(f"topics = {topics!r}: must be one or more of {known}")
    frame = pd.concat([frame[frame["topic"] == topic] for topic in topics])
    weight = frame["severity"].where(frame["severity"] == "", " (" + frame["severity"] + ")")
    table = {
        "claim [section]": frame["says"] + " [" + frame["where"] + "]",
        "printed": frame["published"],
        "recomputed, or read": frame["kind"] + ": " + frame["evidence"],
        "verdict, and why it matters": frame["verdict"] + weight + ". " + frame["why"],
    }
    return TextTable(pd.DataFrame(table), index=False)


def verdict_counts(rows: Sequence[Audited]) -> pd.DataFrame:
    """Return how many claims have each verdict, by severity; a claim that holds has none."""
    frame = tidy(rows)
    counts = pd.crosstab(frame["verdict"], frame["severity"])
    counts = counts.reindex(index=list(VERDICTS), columns=list(SEVERITIES), fill_value=0)
    counts = counts.rename(columns={"": "none"}).rename_axis(index=None, columns=None)
    return counts.assign(claims=counts.sum(axis=1))


def as_json(rows: Sequence[Audited]) -> list[dict[str, object]]:
    """Return the fields of each claim that other programs may read."""
    keys = {"says": "claim", "evidence": "recomputed"}
    records = tidy(rows).drop(columns=["where", "why"]).rename(columns=keys).to_dict(orient="index")
    numbers = {
        row.id: {name: float(value) for name, value in row.figures.items() if isinstance(value, Real)}
        for row in rows
    }
    return [{"id": name, **record, "figures": numbers[name]} for name, record in records.items()]
