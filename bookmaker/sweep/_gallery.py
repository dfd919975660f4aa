"""A folder of static pages for a sweep: a table of runs, a page for each of them, and a comparison.

Nothing is loaded from elsewhere; the table sorts and filters with a few lines of script in the page itself
and is complete without them. Every text is made inert and goes through Jinja's escaping.
"""

import io
import shutil
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from bookmaker.runner import published
from privhelpers import figures, stats
from privhelpers.artifacts import check_name, write_atomic
from privhelpers.text import inserted

TEMPLATES = Path(__file__).parent / "templates"
SCRIPT = (TEMPLATES / "gallery.js").read_text(encoding="utf-8")
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


def _overview(table: pd.DataFrame) -> pd.DataFrame:
    """Return one row a run: the cell, the model, its budget, and the measures of `SHOWN`."""
    keys = [name for name in RUN if name != "epsilon"]
    runs = table.groupby(keys, sort=False, as_index=False)["epsilon"].first()
    for column, measure, arm, _ in SHOWN:
        estimates = table[(table["measure"] == measure) & (table["arm"] == arm)]
        runs = runs.merge(
            estimates[[*keys, "estimate"]].rename(columns={"estimate": column}), "left", on=keys
        )
    return runs


def _page_name(profile: str, model: str) -> str:
    """Return the file name of a run's page."""
    return f"{check_name(profile)}--{check_name(model)}.html"


def _svg(figure: Figure) -> Markup:
    """Return a figure as an SVG element; its text becomes paths, so nothing in it is markup."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    return Markup(text[text.index("<svg") :])


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
    """Yield a label and a picture for each measure."""
    private = table[table["epsilon"].notna()]
    for measure, arm, label in COMPARED:
        runs = private[private["measure"] == measure]
        if (runs["arm"] == arm).any():
            yield label, _svg(_comparison(runs, arm, label))


def _shown(value: object, digits: int = 4) -> str:
    if pd.isna(value):
        return ""
    return f"{value:.{digits}f}" if isinstance(value, float) else str(value)


def pages(table: pd.DataFrame, name: str) -> Iterator[tuple[str, str]]:
    """Yield the file name and the text of every page of a sweep.

    Args:
        table: from `results.collect`.
        name: of the sweep.
    """
    engine = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, finalize=inserted, undefined=StrictUndefined
    )
    engine.filters["shown"] = _shown
    runs = _overview(table)
    common = {"name": name, "shown_columns": SHOWN, "runs": runs.to_dict("records"), "page": _page_name}
    common |= {"script": Markup(SCRIPT), "worth": published.WORTH, "not_protected": published.NOT_PROTECTED}
    yield "index.html", engine.get_template("gallery.html").render(**common)
    yield "compare.html", engine.get_template("compare.html").render(figures=_comparisons(table), **common)
    for (profile, model), measurements in table.groupby(["profile", "model"], sort=False):
        rows = measurements.to_dict("records")
        text = engine.get_template("run.html").render(rows=rows, first=rows[0], **common)
        yield _page_name(profile, model), text


def write(table: pd.DataFrame, folder: Path, name: str) -> Path:
    """Write the pages of a sweep into a folder of their own and return the first one."""
    shutil.rmtree(folder, ignore_errors=True)
    for file, text in pages(table, name):
        write_atomic(folder / file, text.encode())
    return folder / "index.html"
