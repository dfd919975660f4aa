"""One page for a sweep: a table of its runs, and a comparison over architectures and budgets.

Nothing is loaded from elsewhere; the table sorts and filters with a few lines of script in the page itself
and is complete without them. Every text is made inert and goes through Jinja's escaping.
"""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from bookmaker.runner import published
from privhelpers import figures, stats
from privhelpers.text import inserted

TEMPLATES = Path(__file__).parent / "templates"
RUN = ["profile", "architecture", "seed", "model", "epsilon"]
# What the table of runs shows: column, measure, arm, digits.
SHOWN = (
    ("perplexity", "perplexity", "control", 2),
    ("loss AUC", "AUC, loss", "member", 3),
    ("loss AUC, control", "AUC, loss", "control", 3),
    ("strict leaks", "strict leaks", "member", 4),
    ("strict leaks, control", "strict leaks", "control", 4),
    ("canaries extracted", "canaries extracted", "member", 3),
    ("canaries, control", "canaries extracted", "control", 3),
    ("ε at least", "epsilon, lower bound", "member", 2),
)
COMPARED = (
    ("perplexity", "control", "Held-out perplexity (per token)"),
    ("AUC, loss", "member", "Area under the ROC, loss attack"),
    ("exposure (bits)", "member", "Mean exposure of canaries (bits)"),
    ("epsilon, lower bound", "member", "Certified lower bound on ε (nats)"),
)


def _worded(row: Any, digits: int) -> str:
    """Return an estimate with its interval; a bound has no upper end, and is shown alone."""
    low, estimate, high = (f"{one:.{digits}f}" for one in (row.low, row.estimate, row.high))
    return estimate if pd.isna(row.high) else f"{estimate} [{low}, {high}]"


def _overview(table: pd.DataFrame) -> list[dict]:
    """Return the runs in the order of the table, each with its measures of `SHOWN` as text."""
    rows = {(row.profile, row.model, row.measure, row.arm): row for row in table.itertuples()}
    runs = table[RUN].drop_duplicates().to_dict("records")
    for run in runs:
        found = [
            (rows.get((run["profile"], run["model"], measure, arm)), digits)
            for _, measure, arm, digits in SHOWN
        ]
        run["shown"] = [_worded(row, digits) if row else "" for row, digits in found]
    return runs


def _over_seeds(values: pd.Series) -> tuple[float, float, float]:
    """Return the mean over seeds with Student's 95% interval; of one seed, its value alone."""
    if len(values) == 1:
        return (float(values.iloc[0]),) * 3
    interval = stats.clustered_mean(values, range(len(values))).interval()
    return interval.estimate, interval.low, interval.high


def _comparison(runs: pd.DataFrame, arm: str, label: str) -> Figure:
    """Draw the mean over seeds for every architecture and budget, beside its never-trained control."""
    budgets = runs["model"].str.removeprefix("dp-eps-").astype(float)
    cells = runs.assign(budget=budgets).groupby(["arm", "architecture", "budget"])["estimate"]
    means = {key: _over_seeds(values) for key, values in cells}
    rows = sorted({key[1:] for key in means if key[0] == arm})
    series = {"trained on" if arm == "member" else "never trained on": arm}
    if arm == "member" and all(("control", *row) in means for row in rows):
        series["never trained on"] = "control"
    return figures.forest(
        [f"{architecture}, ε = {budget:g}" for architecture, budget in rows],
        {
            name: tuple(zip(*(means[side, *row] for row in rows), strict=True))
            for name, side in series.items()
        },
        xlabel=label[0].lower() + label[1:],
        controls=["never trained on"] if "never trained on" in series else (),
    )


def _comparisons(table: pd.DataFrame) -> Iterator[tuple[str, Markup]]:
    """Yield a label and a picture, as an SVG element whose text is drawn as paths, for each measure."""
    private = table[table["epsilon"].notna()]
    for measure, arm, label in COMPARED:
        runs = private[private["measure"] == measure]
        if (runs["arm"] == arm).any():
            picture = io.StringIO()
            _comparison(runs, arm, label).savefig(
                picture, format="svg", metadata={"Date": None, "Creator": None}
            )
            yield label, Markup(picture.getvalue()[picture.getvalue().index("<svg") :])


def page(table: pd.DataFrame, name: str) -> str:
    """Return the page of a sweep.

    Args:
        table: from `_results.collect`.
        name: of the sweep.
    """
    engine = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, finalize=inserted, undefined=StrictUndefined
    )
    return engine.get_template("gallery.html").render(
        name=name,
        columns=[column for column, *_ in SHOWN],
        runs=_overview(table),
        figures=_comparisons(table),
        script=Markup((TEMPLATES / "gallery.js").read_text(encoding="utf-8")),
        worth=published.WORTH,
        not_protected=published.NOT_PROTECTED,
    )
