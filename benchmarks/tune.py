"""Trials of training settings on the auxiliary hospital, which shares no patient with the book's.

python benchmarks/tune.py TRIALS.jsonl

Each line of the file is one trial as JSON, with the fields of `Trial` that differ from their defaults.
A trial trains once, privately or not, and asks the model which drug follows in the notes of held-out
patients: macro-F1 decides, because it and perplexity disagree. `reference/search` keeps every trial, for a
chapter to show. They are written line by line in `build/` first, so that a run which was cut off goes on
where it stopped.
"""

import json
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from kept import ROOT, Key, about, go_on, options_of
from sklearn.metrics import f1_score

from privhelpers import artifacts, dpsgd, models, records, training
from privhelpers.attacks.attributes import candidate_table
from privhelpers.results.reference import ABOUT, FOLDER

DRUGS = list(records.MEDICATIONS)
DELTA = 1e-5
HELD_OUT = 400  # patients


@dataclass(frozen=True)
class Trial:
    """One training; a private one has an `epsilon`.

    Attributes:
        patients: whom it reads.
        epsilon: budget in nats; 0 trains without privacy.
        sample_rate, steps, max_grad_norm, notes_per_step, frozen: of a private training; `frozen` names
            weights that do not move, parted by commas.
        learning_rate: peak of the schedule.
        epochs, batch_size, weight_decay: of a training without privacy.
        seed: of everything.
    """

    patients: int = 8000
    epsilon: float = 8.0
    sample_rate: float = 0.05
    steps: int = 150
    max_grad_norm: float = 0.5
    notes_per_step: int = 1
    frozen: str = ""
    learning_rate: float = 0.01
    epochs: int = 0
    batch_size: int = 32
    weight_decay: float = 0.05
    seed: int = 0


def train(trial: Trial, hospital: records.Records, net: object, tokenizer: object) -> dict:
    """Train `net` in place; return the noise, or the validation losses, in nats a token."""
    if trial.epochs:
        settings = training.Settings(
            epochs=trial.epochs,
            learning_rate=trial.learning_rate,
            batch_size=trial.batch_size,
            weight_decay=trial.weight_decay,
            patience=2,
        )
        texts, others = ([note["text"] for note in part] for part in (hospital.train, hospital.validation))
        log, weights = training.train(
            net, tokenizer, texts, settings, seed=trial.seed, validation_texts=others
        )
        net.load_state_dict(weights)
        return {"validation_loss": log.validation_loss, "stopped_early": log.stopped_early}
    for name, weight in net.named_parameters():
        weight.requires_grad_(not any(part in name for part in filter(None, trial.frozen.split(","))))
    units = list(records.by_patient(hospital.train).values())
    plan = dpsgd.plan_privacy(
        target_epsilon=trial.epsilon,
        target_delta=DELTA,
        sample_rate=trial.sample_rate,
        steps=trial.steps,
        max_grad_norm=trial.max_grad_norm,
        units=len(units),
    )
    settings = dpsgd.Settings(trial.learning_rate, notes_per_step=trial.notes_per_step)
    dpsgd.train(net, tokenizer, units, plan, settings, chance=dpsgd.research(trial.seed))
    noise = plan.noise_multiplier / plan.expected_batch_size
    return {"noise_multiplier": plan.noise_multiplier, "noise_on_mean": noise}


def measure(key: Key) -> dict:
    """Train by one trial's settings; return perplexity and macro-F1 on patients whom it did not read."""
    trial = Trial(*key)
    hospital = records.make_hospital_records(
        seed=trial.seed,
        patients=trial.patients,
        validation_patients=50,
        heldout_patients=HELD_OUT,
        canaries_per_level=1,
        hospital="auxiliary",
    )
    net, tokenizer = models.take(artifacts.open_store("course"), "public")
    start = time.process_time()
    trained = train(trial, hospital, net, tokenizer)
    seconds = time.process_time() - start
    starts, given = records.drug_questions(hospital.heldout)
    said = candidate_table(net, tokenizer, starts, DRUGS, batch_size=64).argmax(1)
    macro_f1 = f1_score(given, said, labels=range(len(DRUGS)), average="macro", zero_division=0)
    scores = models.score(net, tokenizer, [note["text"] for note in hospital.heldout])
    return trained | {
        "perplexity": float(scores.perplexity),
        "macro_f1": float(macro_f1),
        "floor": float(floor(given)),
        "cpu_seconds": round(seconds),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
    }


def floor(given: np.ndarray) -> float:
    """Return the macro-F1 of always naming the most frequent drug."""
    usual = np.full(len(given), np.bincount(given).argmax())
    return f1_score(given, usual, labels=range(len(DRUGS)), average="macro", zero_division=0)


def keep(rows: dict[Key, dict], root: Path) -> None:
    """Write the trials where a chapter reads them."""
    store = artifacts.Store(root / FOLDER / "search", "search")
    trials = [asdict(Trial(*key)) | row for key, row in rows.items()]
    store.write_json("luck_and_size/trials.json", trials)
    asked = {"delta": DELTA, "held_out_patients": HELD_OUT}
    store.write_json(ABOUT, about("python benchmarks/tune.py", trials, asked))


def main() -> None:
    """Run the trials that are missing and keep all of them with the book."""
    parser = options_of(__doc__)
    parser.add_argument("trials", type=Path, help="a file with one trial a line, as JSON")
    lines = parser.parse_args().trials.read_text(encoding="utf-8").split("\n")
    keys = [tuple(asdict(Trial(**json.loads(line))).values()) for line in lines if line.strip()]
    keep(go_on(ROOT / "build" / "trials.jsonl", keys, measure, "trials"), ROOT)


if __name__ == "__main__":
    main()
