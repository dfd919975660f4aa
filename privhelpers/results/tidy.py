"""Everything that the attacks measured: one row per model, measure and arm.

A row is one estimate with its interval: of notes, texts, patients or canaries that were trained on (arm
`member`), or of as many that were not (`control`). What varies together is one cluster.
"""

import math
from collections.abc import Iterator

import numpy as np

from privhelpers import stats
from privhelpers.results.reading import ModelResults, Results
from privhelpers.stats import Interval
from privhelpers.text import in_words

# Chosen before any score of a private model was seen, and saved note by note.
ATTACKS = ("loss", "reference_public", "reference_auxiliary", "reference_shadows", "lira_offline_fixed")
COLUMNS = (
    *("model", "family", "measure", "arm", "estimate", "low", "high", "level", "method"),
    *("unit", "n", "distinct_n", "cluster", "clusters"),
)


def attack_name(attack: str) -> str:
    """Return how an attack on membership is called in the tables."""
    return f"AUC, {in_words(attack)}"


def _row(family: str, measure: str, arm: str, interval: Interval, **units: object) -> dict:
    row = {"family": family, "measure": measure, "arm": arm, "distinct_n": None}
    row |= {name: getattr(interval, name) for name in ("estimate", "low", "high", "level", "method")}
    return row | units


def _independent(unit: str, n: int) -> dict:
    return {"unit": unit, "n": int(n), "cluster": unit, "clusters": int(n)}


def _utility(model_results: ModelResults) -> Iterator[dict]:
    notes = model_results.held_out()
    log = stats.clustered_mean(notes["loss"], notes["patient"], weights=notes["tokens"]).interval()
    ends = (math.exp(value) for value in (log.estimate, log.low, log.high))
    units = {"unit": "note", "n": len(notes), "cluster": "patient", "clusters": notes["patient"].nunique()}
    yield _row("utility", "perplexity", "control", Interval(*ends, log.level, log.method), **units)


def _membership(model_results: ModelResults) -> Iterator[dict]:
    for attack in ATTACKS:
        notes = model_results.scores(attack)
        saved = {
            "member": model_results.membership["attacks"][attack]["sample"]["auc"],
            "control": model_results.membership["nulls"][f"{attack}/sample"]["held_out"],
        }
        # The control sets held-out patients against each other.
        for arm, counted in (("member", notes), ("control", notes[~notes["member"]])):
            units = {"unit": "note", "n": len(counted), "cluster": "patient"}
            units["clusters"] = counted["patient"].nunique()
            interval = Interval(*saved[arm], 0.95, "patient-clustered percentile bootstrap")
            yield _row("membership", attack_name(attack), arm, interval, **units)


def _extraction(model_results: ModelResults) -> Iterator[dict]:
    texts = model_results.attempts()
    units = {
        "unit": "generation",
        "n": len(texts),
        "distinct_n": model_results.extraction["distinct_generations"],
    }
    units |= {"cluster": "prompt", "clusters": texts["prompt"].nunique()}
    # Without a hit the data do not show how alike the texts of a prompt are; the data of the loose rule do.
    borrowed = stats.design_effect(texts["loose"], texts["prompt"])
    for rule in ("strict", "loose"):
        for arm, column in (("member", rule), ("control", f"{rule}_control")):
            effect = None if texts[column].any() else borrowed
            interval = stats.clustered_proportion(texts[column], texts["prompt"], effect=effect)
            yield _row("extraction", f"{rule} leaks", arm, interval, **units)
    for measure, count in model_results.patients_found().iterrows():
        for arm, side in (("member", ""), ("control", "control_")):
            hits, patients = count[f"{side}hits"], count[f"{side}patients"]
            interval = stats.clopper_pearson(int(hits), int(patients))
            yield _row("extraction", measure, arm, interval, **_independent("patient", patients))


def _canaries(model_results: ModelResults) -> Iterator[dict]:
    for arm, planted in (("member", True), ("control", False)):
        canaries = model_results.canaries[model_results.canaries["planted"] == planted]
        units = _independent("canary", len(canaries))
        # Among the sampled references alone, a model that knows its secrets is at the ceiling.
        mean = stats.clustered_mean(canaries["space_bits"], np.arange(len(canaries))).interval()
        yield _row("canaries", "exposure (bits)", arm, mean, **units)
        rate = stats.clopper_pearson(int(canaries["extracted"].sum()), len(canaries))
        yield _row("canaries", "canaries extracted", arm, rate, **units)


def measurements(runs: Results, model: str) -> list[dict]:
    """Return every measure of one model, member and control, as rows with the keys of `COLUMNS`.

    Raises:
        MissingArtifact: a run on this model has not been made.
    """
    model_results = runs.of(model)
    rows = (row for make in (_utility, _membership, _extraction, _canaries) for row in make(model_results))
    return [{name: ({"model": model} | row)[name] for name in COLUMNS} for row in rows]
