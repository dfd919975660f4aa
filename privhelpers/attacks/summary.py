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
    spent = store.read_json(f"private_training/{model}/metrics.json")["spent"]
    return {"epsilon": spent["epsilon"], "delta": spent["delta"]}


def _interval(name: str, values: list[float]) -> dict[str, float]:
    return dict(zip((name, f"{name}_low", f"{name}_high"), values, strict=True))


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
    """Gather one model's figures from the runs of chapters 08, 09, 09a, 10 and 13.

    Returns:
        A flat mapping: budget (None where there is none), perplexity on never-trained notes, membership
        inference with its interval, canaries, extraction counts, and the same for the controls.

    Raises:
        MissingArtifact: a run on this model has not been made.
    """
    extraction = store.read_json(f"extraction/{model}/attack.json")
    membership = store.read_json(f"membership_inference/{model}/attack.json")
    memorization = store.read_json(f"memorization/{model}/attack.json")
    canaries = store.read_jsonl(f"memorization/{model}/canaries.jsonl")
    audit = store.read_json("auditing/audit.json")["models"][model]
    auc, tpr = membership["auc"], membership["tpr_at_1pct_fpr"]
    difference, suffix = memorization["exposure_difference"], memorization["suffix"]
    matches = extraction["matches"]
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
        **_interval("patient_auc", membership["patient_auc"]),
        "best_attack": membership["best_attack"],
        **_interval("best_attack_auc", membership["best_attack_auc"]),
        **_interval("best_attack_tpr_at_1pct_fpr", membership["best_attack_tpr_at_1pct_fpr"]),
        "audit_epsilon_lower": audit["audit_epsilon_lower"],
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


def collect_broken(store: Store) -> dict[str, dict]:
    """Gather what the audit and the attacks said of each broken variant, from the run of chapter 13b.

    Returns:
        By variant: claimed_epsilon, true_epsilon (None: unbounded), audit_epsilon_lower, perplexity, and
        best_attack_auc with its interval.
    """
    kept = ("claimed_epsilon", "true_epsilon", "audit_epsilon_lower", "perplexity")
    found = store.read_json("broken_dpsgd/broken.json")["broken"]
    return {
        name: {key: row[key] for key in kept} | _interval("best_attack_auc", row["best_attack_auc"])
        for name, row in found.items()
    }


def as_json(rows: Mapping[str, dict], broken: Mapping[str, dict]) -> dict:
    """Return the content of `summary.json`: {"models": {name: row}, "broken": {variant: row}}."""
    tables = {"models": rows, "broken": broken}
    return {kind: {name: dict(row) for name, row in table.items()} for kind, table in tables.items()}


def _bounds(upper: float | None, lower: float | None) -> str:
    if pd.isna(upper):
        return "none"
    return f"{upper:.2f} ({'not audited' if pd.isna(lower) else f'{lower:.2f}'})"


def headline(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table of the front page: bounds on ε, utility, and leakage with its control in brackets."""

    def beside(row: pd.Series, hits: str, trials: str, prefix: str = "", suffix: str = "") -> str:
        return f"{row[hits]:.0f} ({row[prefix + hits + suffix]:.0f}) of {row[trials]:.0f}"

    def line(row: pd.Series) -> dict[str, str]:
        interval = f"[{row['mia_auc_low']:.3f}, {row['mia_auc_high']:.3f}]"
        return {
            "ε at most (at least)": _bounds(row["epsilon"], row["audit_epsilon_lower"]),
            "perplexity": f"{row['perplexity']:.2f}",
            "membership AUC [95 %]": f"{row['mia_auc']:.3f} {interval}",
            "canaries (control)": beside(row, "canaries_extracted", "canaries_planted", "control_"),
            "strict leaks (control)": beside(row, "strict_leaks", "attempts", suffix="_control"),
        }

    return pd.DataFrame({name: line(row) for name, row in table.iterrows()}).T.rename_axis("model")
