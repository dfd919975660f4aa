"""The page of model cards: what each model of a run is, promises and leaks (Mitchell et al. 2019)."""

from pathlib import Path
from typing import Any

from bookmaker.runner import chain, published
from bookmaker.site._markdown import table, words
from privhelpers.artifacts import Store
from privhelpers.results import Results
from privhelpers.text import in_words

INTRO = """(model-cards)=
# Model cards

A model card says what a model is for, what it was made from and how it was measured {cite:p}`mitchell2019`.
These were written by the run that made this copy of the book.
The data set has its datasheet in {ref}`nb-records`, and {ref}`nb-statistics` says how to read the figures.

**Intended use:** teaching, and measuring leakage where the truth is known.
**Not for:** care, advice, a release, or text that someone could take for a person's record.

**Limits of all:** the patients are invented, their notes are short, in English and from templates, and the
models are small, so that figures do not carry over to another model.
What these attacks do not find, another may; an interval says how far chance reaches, and nothing about
attacks that no one tried.

**A promise to a patient** here is {worth}.
Even of a model that is trained for release, a promise says nothing about:

{not_protected}

Each figure is shown with the same one for people held out, on whose notes no measured model was trained;
of canaries, the planted ones with the ones that were kept out.
The training set is the clinical one, also on the card of the public checkpoint, which saw none of it.
An AUC of the training set compares its notes with those of people held out; an AUC of people held out
compares them with each other.
"""
DIGITS, HASH = 4, 12  # of a number, and of a hash, which the manifest has in full
TRAINED_ON = {"public": ("public.jsonl",), "baseline": ("train.jsonl",)}  # others: the whole hospital
PEOPLE = {"member": "training set", "control": "held out"}


def _number(value: float) -> str:
    return f"{value:.{DIGITS}g}"


def _settings(model: str, run: dict[str, Any], runs: Results) -> str:
    """Return how a model was trained, in words."""
    given = run["parameters"]
    if spent := runs.of(model).spent:
        clip, rate = runs.of(model).metrics["max_grad_norm"], given["learning_rate"]
        return (
            f"DP-SGD with Adam, {spent['steps']} steps, learning rate {rate:g}, gradients clipped to {clip:g}"
        )
    if model == "equal_use":
        way = runs.equal_use
        return (
            f"AdamW, {way['steps']} steps in batches of {way['batch_size']} texts, learning rate "
            f"{way['learning_rate']:g}, stopped at the usefulness of {in_words(way['as_useful_as'])}"
        )
    prefix = "best_" if model == "best_nonprivate" else ""
    metrics = runs.pretraining if model == "public" else runs.fine_tuning[model]
    batch = given[f"{prefix}batch_size"]
    return (
        f"AdamW, {len(metrics['log']['train_loss'])} epochs in batches of {batch} texts, learning rate "
        f"{given[prefix + 'learning_rate']:g}, weight decay {given[prefix + 'weight_decay']:g}"
    )


def _promise(model: str, runs: Results) -> str:
    """Return the privacy promise to the patients of the training notes with its conditions, or "none"."""
    spent = runs.of(model).spent
    if spent is None:
        seen = "; it has seen no patient's note" if model == "public" else ""
        return f"none{seen}"
    unit, adjacency, sampler, accountant = (
        words(spent[name]) for name in ("unit", "adjacency", "sampler", "accountant")
    )
    promise = (
        f"illustrative (see above): epsilon {_number(spent['epsilon'])} at delta {spent['delta']:g}; "
        f"unit: {unit}; adjacency: {adjacency}; sampler: {sampler}, rate {spent['sample_rate']:g}; "
        f"noise multiplier {_number(spent['noise_multiplier'])}; accountant: {accountant}"
    )
    lower, level = runs.of(model).audited_epsilon, runs.audits[model]["confidence"]
    if lower is None:
        return promise
    return f"{promise}; lower bound of the audit, {100 * level:g}% confidence: {_number(lower)}"


def _shape(config: dict[str, Any], weights: int) -> str:
    """Return architecture and size; GPT-2 and Llama call the same things by other names."""
    layers = config.get("n_layer", config.get("num_hidden_layers"))
    width = config.get("n_embd", config.get("hidden_size"))
    return (
        f"{words(config['model_type'])}, {layers} layers of width {width}, a vocabulary of "
        f"{config['vocab_size']:,} tokens, {weights:,} weights"
    )


def _measured(rows: list[dict[str, Any]]) -> str:
    """Return the measurements of one model as a table, the training set above people held out."""
    order = list(dict.fromkeys(row["measure"] for row in rows))
    shown = [
        (
            words(row["measure"]),
            PEOPLE[row["arm"]],
            _number(row["estimate"]),
            f"{_number(row['low'])} to {_number(row['high'])}",
            f"{row['n']:,} ({words(row['unit'])})",
            f"{row['distinct_n']:,}" if row["distinct_n"] else "",
            f"{row['clusters']:,} ({words(row['cluster'])})",
        )
        for row in sorted(rows, key=lambda row: order.index(row["measure"]))
    ]
    level = f"{100 * rows[0]['level']:g}% interval"
    return table(("measure", "notes of", "value", level, "n", "distinct texts", "clusters"), shown)


def model_cards(root: Path, manifest: dict[str, Any]) -> str:
    """Return the page `book/model_cards.md`: a card for every model that the comparison compared.

    Args:
        root: the repository.
        manifest: of the profile whose runs the site shows.

    Raises:
        MissingArtifact, DamagedArtifact: a file of a run is gone or was changed.
    """
    store = Store(root / "runs" / manifest["profile"] / "artifacts", manifest["profile"])
    runs, rows = Results(store), []
    if runs.comparison:
        rows = store.read_jsonl("comparison/measurements.jsonl")
    data = manifest["runs"][chain.RECORDS]["artifacts"]
    cards = []
    for model in sorted(runs.comparison, key=list(dict.fromkeys(row["model"] for row in rows)).index):
        slug = chain.MAKERS.get(model, chain.DPSGD)
        rule, folder = (slug, model) if model in chain.MAKERS else (f"{slug}_{model}", "model")
        place = slug if model in chain.MAKERS else f"{slug}/{model}"
        run = manifest["runs"][rule]
        config = store.read_json(f"{place}/{folder}/config.json")
        weights = run["artifacts"][f"{folder}/model.safetensors"]
        texts = TRAINED_ON.get(model, ("train.jsonl", "crowd.jsonl"))
        read = ", ".join(f"`{text}`, SHA-256 `{data[text][:HASH]}...`" for text in texts)
        start = "random weights" if model == "public" else "the public checkpoint"
        facts = [
            ("architecture", _shape(config, runs.pretraining["parameters"])),
            ("training data", read),
            ("training", f"from {start}; {_settings(model, run, runs)}; seed {run['parameters']['seed']}"),
            ("promise to a patient", _promise(model, runs)),
            ("weights", f"SHA-256 `{weights[:HASH]}...`"),
        ]
        measured = _measured([row for row in rows if row["model"] == model])
        cards.append(f"\n## {in_words(model)}\n\n{table(('', 'this model'), facts)}\n{measured}")
    said = "\n".join(f"- {one}" for one in published.NOT_PROTECTED)
    intro = INTRO.replace("{worth}", published.WORTH).replace("{not_protected}", said)
    return intro + "".join(cards)
