"""Audited claims as tables: one row a claim, for programs and for pages."""

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from privhelpers.errors import InvalidParameter
from privhelpers.report.claims import SEVERITIES, VERDICTS, Audited

COLUMNS = ("document", "topic", "where", "claim", "published", "recomputed", "verdict", "severity", "why")


@dataclass(frozen=True, eq=False)
class TextTable:
    """A table of sentences: its cells wrap and start on the left, unlike those of numbers.

    Attributes:
        frame: the cells, as text; the first of several lines in a cell is set in bold.
        widths: share of each column in the width, in percent; empty: as the browser likes.
    """

    frame: pd.DataFrame
    widths: tuple[int, ...] = ()

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.frame)

    def __repr__(self) -> str:
        """Return the cells as plain text."""
        return self.frame.to_string(max_colwidth=None)

    def _repr_html_(self) -> str:
        named = not isinstance(self.frame.index, pd.RangeIndex)

        def cell(value: object) -> str:
            first, *rest = html.escape(str(value)).split("\n")
            return "<br>".join([f"<b>{first}</b>", *rest]) if rest else first

        def row(tag: str, cells: Sequence[object], name: str) -> str:
            start = f'<th scope="row">{html.escape(name)}</th>' if named else ""
            return f"<tr>{start}{''.join(f'<{tag}>{cell(value)}</{tag}>' for value in cells)}</tr>"

        sizes = "".join(f'<col style="width: {width}%">' for width in self.widths)
        body = "".join(row("td", cells, str(name)) for name, *cells in self.frame.itertuples())
        head = row("th", list(self.frame.columns), "")
        return (
            f'<table class="table claims"><colgroup>{sizes}</colgroup>'
            f"<thead>{head}</thead><tbody>{body}</tbody></table>"
        )


def tidy(rows: Sequence[Audited]) -> pd.DataFrame:
    """Return all claims, indexed by id, with the columns of `COLUMNS`."""
    records = {
        row.id: {
            "document": row.claim.document,
            "topic": row.claim.topic,
            "where": row.claim.where,
            "claim": row.claim.says,
            "published": row.claim.published,
            "recomputed": row.finding.value,
            "verdict": row.finding.verdict,
            "severity": row.severity,
            "why": row.finding.why,
        }
        for row in rows
    }
    return pd.DataFrame.from_dict(records, orient="index", columns=list(COLUMNS))


def claim_table(rows: Sequence[Audited], *topics: str) -> TextTable:
    """Return the claims of some topics as text for a page.

    Args:
        rows: what `claims.audit` returned.
        topics: which of them, in the order of the table.

    Raises:
        InvalidParameter: there is no claim on a topic.
    """
    frame = tidy(rows)
    parts = [frame[frame["topic"] == topic] for topic in topics]
    if not parts or any(part.empty for part in parts):
        known = ", ".join(dict.fromkeys(row.claim.topic for row in rows))
        raise InvalidParameter(f"topics = {topics!r}: must be one or more of {known}")
    frame = pd.concat(parts).reset_index(drop=True)
    weight = frame["severity"].where(frame["severity"] == "", " (" + frame["severity"] + ")")
    table = pd.DataFrame(
        {
            "claim [section]": frame["claim"] + " [" + frame["where"] + "]",
            "printed": frame["published"],
            "recomputed": frame["recomputed"],
            "verdict, and why it matters": frame["verdict"] + weight + "\n" + frame["why"],
        }
    )
    return TextTable(table, widths=(27, 18, 25, 30))


def verdict_counts(rows: Sequence[Audited]) -> pd.DataFrame:
    """Return how many claims have each verdict, by severity; a claim that holds has none."""
    frame = tidy(rows)
    counts = pd.crosstab(frame["verdict"], frame["severity"])
    counts = counts.reindex(index=list(VERDICTS), columns=list(SEVERITIES), fill_value=0)
    counts = counts.rename(columns={"": "none"}).rename_axis(index=None, columns=None)
    return counts.assign(claims=counts.sum(axis=1))


def model_row(figures: Mapping[str, float | None]) -> dict[str, str]:
    """Return the figures of one of this book's models as text, each with its control in brackets.

    Args:
        figures: a row of the summary that chapter 14 writes.
    """
    ends = (figures.get("audit_epsilon_lower"), figures["epsilon"])
    auc, low, high = (figures[f"mia_auc{end}"] for end in ("", "_low", "_high"))
    controls = figures["control_canaries_extracted"]
    return {
        "ε at least, at most": ", ".join("none" if end is None else f"{end:.2f}" for end in ends),
        "membership AUC": f"{auc:.3f} [{low:.3f}, {high:.3f}]",
        "canaries": f"{figures['canaries_extracted']} ({controls}) of {figures['canaries_planted']}",
        "strict leaks": f"{figures['strict_leaks']} ({figures['strict_leaks_control']})",
        "perplexity": f"{figures['perplexity']:.2f}",
    }


def as_json(rows: Sequence[Audited]) -> list[dict[str, object]]:
    """Return what other programs may read of each claim."""
    return [
        {
            "id": row.id,
            "document": row.claim.document,
            "topic": row.claim.topic,
            "claim": row.claim.says,
            "published": row.claim.published,
            "recomputed": row.finding.value,
            "figures": {name: float(value) for name, value in row.finding.figures.items()},
            "verdict": row.finding.verdict,
            "severity": row.severity,
        }
        for row in rows
    ]
