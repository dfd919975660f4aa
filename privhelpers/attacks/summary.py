"""One row a model: what the runs on it measured, each leakage figure beside its never-trained control."""

import math
from collections.abc import Mapping

import pandas as pd

from privhelpers.artifacts import Store
from privhelpers.errors import InvalidParameter

NOT_PRIVATE = ("public", "baseline", "best_nonprivate")


def _budget(store: Store, model: str) -> dict:
    if model in NOT_PRIVATE:
        return {"epsilon": None, "delta": None}
    spent = store.read_json(f"08_dpsgd_training/{model}/metrics.json")["spent"]
    return {"epsilon": spent["epsilon"], "delta": spent["delta"]}


def _mean(values: list[float]) -> float:
    if not values:
        raise InvalidParameter("canaries: a group without canaries has no mean exposure")
    return math.fsum(values) / len(values)


def _canaries(rows: list[dict]) -> dict:
    planted = [row for row in rows if row["planted"]]
    control = [row for row in rows if not row["planted"]]
    often = [row for row in planted if row["copies"] >= 4]
    return {
        "canaries_planted": len(planted),
        "canaries_control": len(control),
        "canaries_extracted": sum(row["extracted"] for row in planted),
        "control_canaries_extracted": sum(row["extracted"] for row in control),
        "canaries_4_copies_or_more": len(often),
        "canaries_4_copies_or_more_extracted": sum(row["extracted"] for row in often),
        "mean_exposure": _mean([row["exposure_bits"] for row in planted]),
        "mean_exposure_control": _mean([row["exposure_bits"] for row in control]),
    }


def collect(store: Store, model: str) -> dict:
    """Gather one model's figures from the runs of chapters 08, 09 and 10.

    Returns:
        A flat mapping: budget (None where there is none), perplexity on never-trained notes, membership
        inference with its interval, canaries, extraction counts, and the same for the controls.

    Raises:
        MissingArtifact: a run on this model has not been made.

    Taught in: 14_statistics.
    """
    extraction = store.read_json(f"09_extraction/{model}/attack.json")
    membership = store.read_json(f"10_membership_inference/{model}/attack.json")
    canaries = store.read_jsonl(f"09_extraction/{model}/canaries.jsonl")
    auc, tpr, difference = membership["auc"], membership["tpr_at_1pct_fpr"], extraction["exposure_difference"]
    matches, suffix = extraction["matches"], extraction["suffix"]
    return {
        **_budget(store, model),
        "perplexity": membership["perplexity"],
        "mia_auc": auc[0],
        "mia_auc_low": auc[1],
        "mia_auc_high": auc[2],
        "tpr_at_1pct_fpr": tpr[0],
        "tpr_at_1pct_fpr_low": tpr[1],
        "tpr_at_1pct_fpr_high": tpr[2],
        "membership_advantage": membership["membership_advantage"],
        "null_auc": membership["null_auc"][0],
        **_canaries(canaries),
        "exposure_difference": difference[0],
        "exposure_difference_low": difference[1],
        "exposure_difference_high": difference[2],
        "attempts": extraction["attempts"],
        "distinct_generations": extraction["distinct_generations"],
        "strict_leaks": matches["strict"]["leaks"],
        "strict_leaks_control": matches["strict_control"]["leaks"],
        "loose_leaks": matches["loose"]["leaks"],
        "loose_leaks_control": matches["loose_control"]["leaks"],
        "suffixes_recalled": suffix["recalled"],
        "suffixes_recalled_control": suffix["control"],
        "suffix_notes": suffix["notes"],
    }


def as_json(rows: Mapping[str, dict]) -> dict:
    """Return the rows in the form of `summary.json`: {"models": {name: row}}."""
    return {"models": {name: dict(row) for name, row in rows.items()}}


def headline(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table of the front page: budget, utility, and leakage with its control in brackets."""

    def beside(row: pd.Series, hits: str, trials: str, prefix: str = "", suffix: str = "") -> str:
        return f"{row[hits]:.0f} ({row[prefix + hits + suffix]:.0f}) of {row[trials]:.0f}"

    def line(row: pd.Series) -> dict[str, str]:
        interval = f"[{row['mia_auc_low']:.3f}, {row['mia_auc_high']:.3f}]"
        return {
            "ε": "none" if pd.isna(row["epsilon"]) else f"{row['epsilon']:.2f}",
            "perplexity": f"{row['perplexity']:.2f}",
            "membership AUC [95 %]": f"{row['mia_auc']:.3f} {interval}",
            "canaries (control)": beside(row, "canaries_extracted", "canaries_planted", "control_"),
            "strict leaks (control)": beside(row, "strict_leaks", "attempts", suffix="_control"),
        }

    return pd.DataFrame({name: line(row) for name, row in table.iterrows()}).T.rename_axis("model")
