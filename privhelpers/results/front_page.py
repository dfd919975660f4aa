"""One row a model for `summary.json` and the front page, each leakage figure with its control."""

import pandas as pd

from privhelpers import stats
from privhelpers.errors import InvalidParameter, MissingArtifact
from privhelpers.results.reading import ModelResults, Results
from privhelpers.text import in_words


def _interval(name: str, values: list[float]) -> dict[str, float]:
    return dict(zip((name, f"{name}_low", f"{name}_high"), values, strict=True))


def _canaries(canaries: pd.DataFrame) -> dict:
    planted, control = (canaries[canaries["planted"] == side] for side in (True, False))
    if planted.empty or control.empty:
        raise InvalidParameter("canaries: a group without canaries has no mean exposure")
    often = planted[planted["copies"] >= 4]
    return {
        "canaries_planted": len(planted),
        "canaries_planted_control": len(control),
        "canaries_extracted": int(planted["extracted"].sum()),
        "canaries_extracted_control": int(control["extracted"].sum()),
        "canaries_4_copies_or_more": len(often),
        "canaries_4_copies_or_more_extracted": int(often["extracted"].sum()),
        "mean_exposure": float(planted["space_bits"].mean()),
        "mean_exposure_control": float(control["space_bits"].mean()),
    }


def _membership(attack: dict) -> dict:
    intervals = {
        "mia_auc": attack["auc"],
        "tpr_at_1pct_fpr": attack["tpr_at_1pct_fpr"],
        "patient_auc": attack["patient_auc"],
        "best_attack_auc": attack["best_attack_auc"],
        "best_attack_tpr_at_1pct_fpr": attack["best_attack_tpr_at_1pct_fpr"],
        "best_attack_tpr_at_01pct_fpr": attack["best_attack_tpr_at_01pct_fpr"],
        "token_attacks_gain_at_01pct_fpr": attack["token_attacks"]["sample at 0.001"]["difference"],
    }
    row = {key: attack[key] for key in ("perplexity", "membership_advantage", "best_attack")}
    row["null_auc"] = attack["null_auc"][0]
    for name, values in intervals.items():
        row |= _interval(name, values)
    return row


def _content(model_results: ModelResults) -> dict:
    extraction, memorization = model_results.extraction, model_results.memorization
    row = {key: extraction[key] for key in ("attempts", "distinct_generations")}
    for rule in ("strict", "loose"):
        row[f"{rule}_leaks"] = extraction["matches"][rule]["leaks"]
        row[f"{rule}_leaks_control"] = extraction["matches"][f"{rule}_control"]["leaks"]
    row["numbers_completed"], row["numbers_asked"] = extraction["asked"]["mrn member"]
    row["numbers_completed_control"], row["numbers_asked_control"] = extraction["asked"]["mrn control"]
    row |= _interval("exposure_difference", memorization["exposure_difference"])
    row["exposure_at_most"] = memorization["space_bits"]
    suffix = memorization["suffix"]
    return row | {
        "suffixes_recalled": suffix["recalled"],
        "suffixes_recalled_control": suffix["control"],
        "suffix_notes": suffix["notes"],
    }


def _task(runs: Results, model: str) -> dict[str, float]:
    if model not in runs.drug_task.index:
        raise MissingArtifact(
            f"private_utility/utility.json: {model} was not asked which drug follows; "
            "run that chapter again with this model in its list"
        )
    return runs.drug_task.loc[model].to_dict()


def summary_row(runs: Results, model: str) -> dict:
    """Return one model's figures: a flat mapping, with None if there is no budget or no audit.

    Raises:
        MissingArtifact: a run on this model has not been made.
    """
    model_results = runs.of(model)
    spent = model_results.spent or {"epsilon": None, "delta": None}
    row = {"epsilon": spent["epsilon"], "delta": spent["delta"]}
    row |= _membership(model_results.membership) | {"audit_epsilon_lower": model_results.audited_epsilon}
    return row | _task(runs, model) | _canaries(model_results.canaries) | _content(model_results)


def broken_row(runs: Results, variant: str) -> dict:
    """Return claimed, true (None: unbounded) and audited epsilon of a broken variant, and its best attack."""
    figures = runs.broken[variant]
    row = {key: figures[key] for key in ("claimed_epsilon", "true_epsilon", "audit_epsilon_lower")}
    return (
        row | {"perplexity": figures["perplexity"]} | _interval("best_attack_auc", figures["best_attack_auc"])
    )


def _bounds(upper: float | None, lower: float | None) -> str:
    if pd.isna(upper):
        return "none"
    return f"{upper:.2f} ({'not audited' if pd.isna(lower) else f'{lower:.2f}'})"


def _shares(table: pd.DataFrame, words: str, done: str, of: str) -> pd.Series:
    """Return the share of members or planted secrets (%) with its interval, and the control's in brackets.

    Every model is asked the same, so the column's name states how many.
    """
    asked = {arm: table[f"{of}{arm}"].unique().tolist() for arm in ("", "_control")}
    if any(len(sizes) > 1 for sizes in asked.values()):
        raise InvalidParameter(f"{of}: differs between models, {asked}; ask all of them alike")
    (size,), (control_size,) = asked.values()
    cells = []
    for count, control in zip(table[done], table[f"{done}_control"], strict=True):
        interval = stats.clopper_pearson(int(count), int(size))
        shares = (interval.estimate, interval.low, interval.high, control / control_size)
        cells.append("{:.0f} [{:.0f}, {:.0f}] ({:.0f})".format(*(100 * share for share in shares)))
    name = f"{words}, % of {size:.0f} (of {control_size:.0f})"
    return pd.Series(cells, index=table.index, name=name)


def headline(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table of the front page: bounds on ε, utility, and leakage with its control in brackets.

    Leakage is in percent; intervals, in square brackets, are at 95%.

    Args:
        table: a row of `summary_row` for each model, by its name.

    Raises:
        InvalidParameter: two models were not asked the same number of questions.
    """
    task = zip(table["macro_f1"], table["macro_f1_floor"], strict=True)
    ends = zip(table["mia_auc"], table["mia_auc_low"], table["mia_auc_high"], strict=True)
    bounds = zip(table["epsilon"], table["audit_epsilon_lower"], strict=True)
    first = pd.DataFrame(
        {
            "ε at most (at least)": [_bounds(*pair) for pair in bounds],
            "perplexity": [f"{value:.2f}" for value in table["perplexity"]],
            "which drug, F1 (floor)": [f"{score:.2f} ({floor:.2f})" for score, floor in task],
            "membership AUC": [f"{auc:.2f} [{low:.2f}, {high:.2f}]" for auc, low, high in ends],
        },
        index=table.index,
    )
    canaries = _shares(table, "canaries", "canaries_extracted", "canaries_planted")
    numbers = _shares(table, "numbers by name", "numbers_completed", "numbers_asked")
    return first.join([canaries, numbers]).rename(index=in_words).rename_axis(columns="model")
