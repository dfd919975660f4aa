"""Everything that the attacks measured, one row a model, measure and arm.

A row is one estimate with its interval: of notes, texts, patients or canaries that were trained on (arm
`member`), or of as many that were not (`control`). What varies together is one cluster.

    source = open_source(store)
    table = frame([row for model in models for row in rows(source, model)])
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from tokenizers import Tokenizer

from privhelpers import stats
from privhelpers.artifacts import Store
from privhelpers.errors import DamagedArtifact, InvalidParameter
from privhelpers.stats import Estimate, Interval

# Chosen before any score of a private model was seen, and saved note by note; all others stand in 10.
ATTACKS = (
    "loss",
    "reference_public",
    "reference_auxiliary",
    "reference_shadows",
    "lira_offline_fixed",
)
ARMS = ("member", "control")
PLANTED = {"member": True, "control": False}
COLUMNS = (
    *("model", "family", "measure", "arm", "estimate", "low", "high", "level", "method"),
    *("unit", "n", "distinct_n", "cluster", "clusters"),
)


@dataclass(frozen=True)
class Source:
    """The artifacts that the rows are made of, read once for all models.

    Attributes:
        store: of the profile.
        patient_of: patient of every note, by the note's identifier.
        tokens: tokens of every held-out note, the end of the text included.
    """

    store: Store
    patient_of: Mapping[str, str]
    tokens: Mapping[str, int]


def open_source(store: Store) -> Source:
    """Read whose notes are whose, and how long the held-out ones are.

    Raises:
        MissingArtifact: the records or the public checkpoint have not been made.
    """
    parts = {part: store.read_jsonl(f"synthetic_records/{part}.jsonl") for part in ("train", "heldout")}
    path = store.existing("public_pretraining/public/tokenizer.json")
    texts = [note["text"] for note in parts["heldout"]]
    lengths = [len(row.ids) + 1 for row in Tokenizer.from_file(str(path)).encode_batch(texts)]
    return Source(
        store,
        {note["note_id"]: note["patient_id"] for notes in parts.values() for note in notes},
        dict(zip((note["note_id"] for note in parts["heldout"]), lengths, strict=True)),
    )


@dataclass(frozen=True)
class Scores:
    """The scores of one attack on one model: members first, then never-trained notes.

    Attributes:
        arms: scores (higher = more member-like) and patients of members, then those of others.
        ids: notes, members first.
    """

    arms: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
    ids: tuple[str, ...]


def read_scores(source: Source, model: str, attack: str) -> Scores:
    """Return the scores of an attack of chapter 10 by note, with the patient of each.

    Raises:
        InvalidParameter: the attack's scores were not saved.
        MissingArtifact: the run on this model has not been made.
    """
    home = f"membership_inference/{model}"
    losses = source.store.read_json(f"{home}/losses.json")
    if attack == "loss":
        own = {note: -loss for side in losses.values() for note, loss in side.items()}
    else:
        saved = source.store.read_json(f"{home}/scores.json")
        if attack not in saved:
            raise InvalidParameter(f"attack = {attack!r}: must be loss or one of {', '.join(saved)}")
        own = saved[attack]
    sides = [[note for note in losses[side] if note in own] for side in ("members", "others")]
    arrays = []
    for notes in sides:
        arrays += [
            np.array([own[note] for note in notes]),
            np.array([source.patient_of[note] for note in notes]),
        ]
    return Scores(tuple(arrays), tuple(sides[0] + sides[1]))


@dataclass(frozen=True)
class HeldOut:
    """A model's losses on held-out notes, the same notes for every model.

    Attributes:
        losses: mean loss of each note, nats per token.
        tokens: of each note; they are the weights of a perplexity.
        patients: patient of each note.
        log_perplexity: with the standard error by patient; its exponential is the perplexity.
    """

    losses: np.ndarray
    tokens: np.ndarray
    patients: np.ndarray
    log_perplexity: Estimate

    def interval(self) -> Interval:
        """Return the perplexity with its interval."""
        found = self.log_perplexity.interval()
        ends = (math.exp(value) for value in (found.estimate, found.low, found.high))
        return Interval(*ends, found.level, found.method)


def held_out(source: Source, model: str) -> HeldOut:
    """Return a model's losses on held-out notes with their perplexity.

    Raises:
        DamagedArtifact: losses and lengths do not give the perplexity that chapter 10 measured.
    """
    home = f"membership_inference/{model}"
    losses = source.store.read_json(f"{home}/losses.json")["others"]
    tokens = np.array([source.tokens[note] for note in losses])
    patients = np.array([source.patient_of[note] for note in losses])
    values = np.array(list(losses.values()))
    found = stats.clustered_mean(values, patients, weights=tokens)
    known = source.store.read_json(f"{home}/attack.json")["perplexity"]
    if not math.isclose(math.exp(found.value), known, rel_tol=1e-3):
        raise DamagedArtifact(f"{home}: losses give a perplexity of {math.exp(found.value):.4f}, not {known}")
    return HeldOut(values, tokens, patients, found)


def attempts(source: Source, model: str, rule: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return whether each generation leaked of members and of controls, and its prompt.

    Args:
        source: of the artifacts.
        model: name of the attacked model.
        rule: `strict` or `loose`.

    Raises:
        MissingArtifact: chapter 09 has not run on this model.
    """
    home = f"extraction/{model}"
    hits = source.store.read_json(f"{home}/hits.json")
    prompts = np.array([row["prompt"] for row in source.store.read_jsonl(f"{home}/generations.jsonl")])
    numbers = np.arange(prompts.size)
    return np.isin(numbers, hits[rule]), np.isin(numbers, hits[f"{rule}_control"]), prompts


def found_patients(source: Source, model: str) -> dict[str, tuple[int, int, int, int]]:
    """Return how many patients each attack got something out of: hits and patients of members, then controls.

    Named: a generation holds their identifiers. Notes finished: one of theirs, word by word from its first
    half. Diagnoses guessed: from the rest of a note. A patient counts once, so the counts are independent.

    Raises:
        MissingArtifact: chapter 09 or 09a has not run on this model.
    """
    extraction = source.store.read_json(f"extraction/{model}/attack.json")
    group = extraction["patients"]
    named = [extraction["matches"][rule]["patients"] for rule in ("strict", "strict_control")]
    recalled = []
    guesses = source.store.read_jsonl(f"memorization/{model}/guesses.jsonl")
    for arm in ARMS:
        notes = [row for row in guesses if row["arm"] == arm]
        patients = {source.patient_of[row["note_id"]] for row in notes}
        hit = {source.patient_of[row["note_id"]] for row in notes if row["correct"]}
        recalled += [len(hit), len(patients)]
    told = source.store.read_json(f"memorization/{model}/attack.json")["attributes"]
    right = [round(told[f"in_context/{arm}"][0] * group) for arm in ARMS]
    return {
        "patients named": (named[0], group, named[1], group),
        "notes finished": tuple(recalled),
        "diagnoses guessed": (right[0], group, right[1], group),
    }


def canaries(source: Source, model: str, value: str) -> dict[str, np.ndarray]:
    """Return `exposure_bits` or `extracted` of the planted canaries (member) and the kept-out (control)."""
    found = source.store.read_jsonl(f"memorization/{model}/canaries.jsonl")
    return {
        arm: np.array([float(row[value]) for row in found if row["planted"] == planted])
        for arm, planted in PLANTED.items()
    }


def _row(model: str, family: str, measure: str, arm: str, interval: Interval, **units: object) -> dict:
    known = {"model": model, "family": family, "measure": measure, "arm": arm, "distinct_n": None}
    known |= {name: getattr(interval, name) for name in ("estimate", "low", "high", "level", "method")}
    row = known | units
    return {name: row[name] for name in COLUMNS}


def _membership_rows(source: Source, model: str) -> Iterator[dict]:
    attack = source.store.read_json(f"membership_inference/{model}/attack.json")
    method = "patient-clustered percentile bootstrap"
    for name in ATTACKS:
        arms = read_scores(source, model, name).arms
        saved = attack["attacks"][name]["sample"]["auc"], attack["nulls"][f"{name}/sample"]["held_out"]
        for arm, values, owners in zip(ARMS, saved, ((arms[1], arms[3]), (arms[3],)), strict=True):
            size, clusters = (sum(map(len, side)) for side in (owners, [set(o.tolist()) for o in owners]))
            units = {"unit": "note", "n": size, "cluster": "patient", "clusters": clusters}
            interval = Interval(*values, 0.95, method)
            yield _row(model, "membership", attack_name(name), arm, interval, **units)


def attack_name(attack: str) -> str:
    """Return how an attack on membership is called in the tables."""
    return f"AUC, {attack.replace('_', ' ')}"


def _extraction_rows(source: Source, model: str) -> Iterator[dict]:
    distinct = source.store.read_json(f"extraction/{model}/attack.json")["distinct_generations"]
    *loose, prompts = attempts(source, model, "loose")
    units = {"unit": "generation", "n": prompts.size, "distinct_n": distinct}
    units |= {"cluster": "prompt", "clusters": len(set(prompts.tolist()))}
    # Without a hit the data do not tell how alike the texts of a prompt are; those of the loose rule do.
    shared = stats.design_effect(loose[0], prompts)
    for rule in ("strict", "loose"):
        for arm, hits in zip(ARMS, attempts(source, model, rule)[:2], strict=True):
            effect = None if hits.any() else shared
            interval = stats.clustered_proportion(hits, prompts, effect=effect)
            yield _row(model, "extraction", f"{rule} leaks", arm, interval, **units)
    for measure, counts in found_patients(source, model).items():
        for arm, hits, size in zip(ARMS, counts[::2], counts[1::2], strict=True):
            own = {"unit": "patient", "n": size, "cluster": "patient", "clusters": size}
            yield _row(model, "extraction", measure, arm, stats.clopper_pearson(hits, size), **own)


def _canary_rows(source: Source, model: str) -> Iterator[dict]:
    for arm in ARMS:
        exposure = canaries(source, model, "exposure_bits")[arm]
        extracted = canaries(source, model, "extracted")[arm].astype(int)
        size = exposure.size
        units = {"unit": "canary", "n": size, "cluster": "canary", "clusters": size}
        mean = stats.clustered_mean(exposure, np.arange(size)).interval()
        yield _row(model, "canaries", "exposure (bits)", arm, mean, **units)
        rate = stats.clopper_pearson(int(extracted.sum()), size)
        yield _row(model, "canaries", "canaries extracted", arm, rate, **units)


def rows(source: Source, model: str) -> list[dict]:
    """Return every measure of one model, member and control, as rows with the keys of `COLUMNS`.

    Raises:
        MissingArtifact: a run on this model has not been made.
    """
    found = held_out(source, model)
    units = {"unit": "note", "n": found.losses.size, "cluster": "patient"}
    units["clusters"] = len(set(found.patients.tolist()))
    utility = _row(model, "utility", "perplexity", "control", found.interval(), **units)
    attacks = (make(source, model) for make in (_membership_rows, _extraction_rows, _canary_rows))
    return [utility, *(row for family in attacks for row in family)]


def frame(measured: Iterable[dict]) -> pd.DataFrame:
    """Return rows as a table with the columns of `COLUMNS`, each row named once.

    Raises:
        InvalidParameter: a model has the same measure and arm twice, or an interval misses its estimate.
    """
    table = pd.DataFrame(measured, columns=list(COLUMNS))
    twice = table.duplicated(["model", "measure", "arm"])
    if twice.any():
        raise InvalidParameter(
            f"rows: {table[twice].iloc[0]['measure']!r} stands twice for one model and arm"
        )
    wrong = (table["low"] > table["estimate"]) | (table["high"] < table["estimate"])
    if wrong.any():
        raise InvalidParameter(
            f"rows: the interval of {table[wrong].iloc[0]['measure']!r} misses its estimate"
        )
    return table.astype({"distinct_n": "Int64"})
