"""How often the audit of a synthetic data set is right: sets that language models wrote.

The models are the smallest of the book, and all start from one public checkpoint. One trains on members until
it has memorized them, as the book's baseline does; two train on members with DP-SGD; one memorizes other
patients of the same hospital, whom the audit never sees. Each writes a set, and each set is audited by the
tool with the same members and held-out patients.

`python benchmarks/synthetic_models.py` prints the table; checkpoint, texts and results are kept in `build/`,
so that a run which was cut off goes on where it stopped.
"""

import argparse
import json
import os
import platform
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch
from audit_kept import Key, go_on
from scipy.stats import sem, t
from synthetic_sets import DEALINGS, PATIENTS, audited, groups, hospital

from privaudit._files import Note
from privhelpers import dpsgd, models, records, training

BASELINE, OTHERS = "members, without privacy", "other patients, without privacy"
PRIVATE = {f"members, ε = {epsilon:g}": epsilon for epsilon in (1.0, 8.0)}
MAKERS = (BASELINE, *PRIVATE, OTHERS)
SEEDS = 20
TEXTS = 1000  # that each model writes, before those are dropped that repeat another
KEPT = Path("build/synthetic_models")
RISKS = ("singling_out", "linkability", "inference")

PUBLIC = {"documents": 1000, "vocab_size": 1024}
PRETRAINING = training.Settings(epochs=3, learning_rate=6e-3, batch_size=32, weight_decay=0.01)
MEMORIZING = training.Settings(epochs=40, learning_rate=6e-3)
DPSGD = {"target_delta": 1e-5, "sample_rate": 0.2, "steps": 40, "max_grad_norm": 0.5}
LEARNING_RATE = 0.01  # of DP-SGD
SAMPLING = models.Sampling(temperature=1.0, top_k=0, top_p=1.0, max_length=128)


@cache
def checkpoint() -> Path:
    """Return the folder of the public checkpoint, which read nobody's name; it is trained once."""
    folder = KEPT / "public"
    if not (folder / "done").exists():
        names = frozenset().union(*(hospital(seed).names for seed in range(SEEDS)))
        texts = records.make_public_corpus(seed=0, documents=PUBLIC["documents"], excluded_names=names)
        net, tokenizer = models.start("micro-gpt2", texts, vocab_size=PUBLIC["vocab_size"], seed=0)
        training.train(net, tokenizer, texts, PRETRAINING, seed=0, progress=False)
        folder.mkdir(parents=True, exist_ok=True)
        models.save(net, tokenizer, folder)
        (folder / "done").touch()
    return folder


@cache
def plan(epsilon: float) -> dpsgd.PrivacyPlan:
    """Return what a private model does and spends: every hospital has as many members."""
    return dpsgd.plan_privacy(target_epsilon=epsilon, units=PATIENTS, **DPSGD)


def patients_of(notes: Sequence[Note]) -> list[list[str]]:
    """Return the notes of each patient."""
    people: dict[str, list[str]] = {}
    for note in notes:
        people.setdefault(note.patient, []).append(note.text)
    return list(people.values())


def write(maker: str, seed: int) -> list[str]:
    """Train a model and return what it writes, each text once."""
    members, _, others = groups(seed)
    net, tokenizer = models.load(checkpoint())
    if maker in PRIVATE:
        dpsgd.train(
            net,
            tokenizer,
            patients_of(members),
            plan(PRIVATE[maker]),
            dpsgd.Settings(LEARNING_RATE),
            chance=dpsgd.research(seed),
            progress=False,
        )
    else:
        notes = members if maker == BASELINE else others
        training.train(net, tokenizer, [note.text for note in notes], MEMORIZING, seed=seed, progress=False)
    texts = models.generate(net, tokenizer, "", samples=TEXTS, seed=seed, sampling=SAMPLING)
    return list(dict.fromkeys(text.strip() for text in texts if text.strip()))


def texts_of(maker: str, seed: int) -> list[str]:
    """Return the set of a maker, which is written once."""
    path = KEPT / f"{seed}-{MAKERS.index(maker)}.json"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps(write(maker, seed)), encoding="utf-8")
        unfinished.replace(path)
    return json.loads(path.read_text(encoding="utf-8"))


def measure(key: Key) -> dict:
    """Audit the set of one maker, and return what came out."""
    maker, seed = key
    return audited(texts_of(maker, seed), seed)


def over_seeds(figures: np.ndarray) -> tuple[float, float]:
    """Return the 95 % interval of the mean over independent sets."""
    half = t.ppf(0.975, len(figures) - 1) * sem(figures)
    return float(figures.mean() - half), float(figures.mean() + half)


def row_of(maker: str, rows: Sequence[dict]) -> list[str]:
    """Return one row of the table."""
    least, outcomes = np.array([row["least"] for row in rows]), [row["outcome"] for row in rows]
    areas = [row["closest"] for row in rows]
    cells = [
        maker,
        str(len(rows)),
        f"{np.median(areas):.3f} ({min(areas):.3f} to {max(areas):.3f})",
        *(str(outcomes.count(outcome)) for outcome in ("flagged", "undecided", "nothing found")),
        str(int((least < 0.001).sum())),
        f"{least.min():.2g}",
    ]
    for name in RISKS:
        figures = np.array([row["risks"][name] for row in rows])
        mean, *ends = figures[:, 0].mean(), *over_seeds(figures[:, 0])
        above, below = int((figures[:, 1] > 0).sum()), int((figures[:, 2] < 0).sum())
        cells.append(
            "{:+.3f} [{:+.3f}, {:+.3f}]; {}; {}".format(mean, *ends, above, len(rows) - above - below)
        )
    return cells


HEAD = (
    "trained on",
    "sets",
    "AUC of the closest text: median (range)",
    "flagged",
    "files differ",
    "nothing found",
    "corrected p < 0.001",
    "smallest corrected p",
    *(f"{name.replace('_', ' ')}: mean; interval above 0; contains 0" for name in RISKS),
)


def page(rows: dict[Key, dict]) -> list[str]:
    """Return the lines of the table, with what each model promises and what the sets were compared with."""
    seeds = len({seed for _, seed in rows})
    budgets = "; ".join(f"{maker}: {plan(epsilon).spent}" for maker, epsilon in PRIVATE.items())
    lines = [
        "# How often the audit of a synthetic data set is right: language models\n",
        f"{seeds} of {SEEDS} seeds, by `benchmarks/synthetic_models.py`: one hospital each, "
        f"{PATIENTS} patients a group, and a set of at most {TEXTS} texts that a micro-gpt2 wrote freely. "
        f"Without privacy: {MEMORIZING.epochs} epochs over the notes of one group, learning rate "
        f"{MEMORIZING.learning_rate:g}. With privacy: {budgets}; clipped at {DPSGD['max_grad_norm']:g}. "
        "The choice of settings is in no budget: they were fixed on another seed's hospital, as linking and "
        "inferring were.\n",
        f"{DEALINGS:,} dealings of whole patients, Holm over the tests of a set; flagged from a corrected p "
        'of 0.01 on. "Files differ" counts sets whose files blind programs tell apart. The risks are '
        "differences of shares of patients, members minus held-out: the mean over sets with its 95 % "
        "interval over seeds, the sets whose own interval lies above 0, and those whose own contains 0.\n",
        f"Python {platform.python_version()}, numpy {np.__version__}, torch {torch.__version__}, "
        f"{platform.machine()}.\n",
        f"| {' | '.join(HEAD)} |\n|{' --- |' * len(HEAD)}",
    ]
    for maker in MAKERS:
        of_maker = [row for key, row in rows.items() if key[0] == maker]
        lines.append(f"| {' | '.join(row_of(maker, of_maker))} |")
    return lines


def main() -> None:
    """Measure what is missing and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", default=0, type=int, help="seed to begin with")
    parser.add_argument("--seeds", default=SEEDS, type=int, help="seed to end before")
    torch.set_num_threads(1)
    asked = parser.parse_args()
    keys = [(maker, seed) for seed in range(asked.first, asked.seeds) for maker in MAKERS]
    rows = go_on(KEPT / "rows.jsonl", keys, measure, "synthetic models")
    print("\n".join(page(rows)))


if __name__ == "__main__":
    main()
