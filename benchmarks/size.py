"""How leakage and utility change with a model's size, at equal training.

Each size is pretrained on the book's public corpus and fine-tuned without privacy on the same notes, with the
settings of a profile, by default `params/course.yml`: equal epochs, batches and learning rates, which were
tuned for `tiny-gpt2`. So a difference between two rows is one of size under these settings, and not of the
best that each size can do. The public checkpoint of each size is the never-trained control of its row.

`python benchmarks/size.py` keeps the results in `reference/size`, for a chapter to show. They are written
line by line in `build/` first, so that a run which was cut off goes on where it stopped.
"""

import time
from pathlib import Path

import numpy as np
import torch
from kept import Key, about, go_on, options_of
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from privhelpers import models, records, stats, training
from privhelpers.artifacts import Store, parse_yaml
from privhelpers.attacks import canaries
from privhelpers.results.reference import ABOUT, FOLDER

SIZES = ("micro-gpt2", "tiny-gpt2", "mini-gpt2")
SEEDS = (0, 1)
MANY = 4  # copies of a canary
PARAMS = Path(__file__).parents[1] / "params"
CHAPTERS = ("synthetic_records", "public_pretraining", "fine_tuning")  # whose settings it takes


def hospital(given: dict, seed: int) -> tuple[records.Records, list[str]]:
    """Return the notes and the public corpus that chapter 6 makes of these settings."""
    sizes = {name: number for name, number in given.items() if name != "public_documents"}
    made = records.make_hospital_records(seed=seed, **sizes)
    public = records.make_public_corpus(
        seed=seed, documents=given["public_documents"], excluded_names=made.names
    )
    return made, public


def interval(estimate: stats.Estimate) -> list[float]:
    """Return an estimate with the ends of its 95% interval."""
    ends = estimate.interval()
    return [ends.estimate, ends.low, ends.high]


def asked(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, made: records.Records, seed: int
) -> dict:
    """Return perplexity on held-out notes, the area of the loss, and the canaries that are recited."""
    notes = {
        "members": [note for note in made.train if note["kind"] != "canary"],
        "controls": [note for note in made.heldout if note["kind"] != "canary"],
    }
    scores, patients = {}, {}
    for arm, of_arm in notes.items():
        scores[arm] = models.score(model, tokenizer, [note["text"] for note in of_arm])
        patients[arm] = [note["patient_id"] for note in of_arm]
    held_out = scores["controls"]
    loss = stats.clustered_mean(held_out.losses, patients["controls"], weights=held_out.tokens)
    area = stats.auc_interval(
        -scores["members"].losses, patients["members"], -held_out.losses, patients["controls"], seed=seed
    )
    secrets = [canary.as_dict() for canary in made.canaries]
    results = canaries.measure(model, tokenizer, secrets, digits=7, references=15, seed=seed, progress=False)
    recited = {
        "planted": [r.extracted for r in results if r.copies >= MANY],
        "control": [r.extracted for r in results if not r.planted],
    }
    return {
        "perplexity": np.exp(interval(loss)).tolist(),
        "auc": [area.estimate, area.low, area.high],
        "recited": {arm: [sum(hits), len(hits)] for arm, hits in recited.items()},
        "notes": {arm: [len(n), len({x["text"] for x in n})] for arm, n in notes.items()},
    }


def measure(key: Key) -> dict:
    """Pretrain and fine-tune a model of one size; return what it says under each of its three states."""
    profile, architecture, seed = key
    course = parse_yaml((PARAMS / f"{profile}.yml").read_text(encoding="utf-8"))
    made, public = hospital(course["synthetic_records"], seed)
    held_back = len(public) // 20
    pretraining, tuning = course["public_pretraining"], course["fine_tuning"]
    start = time.process_time()
    model, tokenizer = models.start(
        architecture, public[held_back:], vocab_size=pretraining["vocab_size"], seed=seed
    )
    settings = training.Settings(
        epochs=pretraining["epochs"], learning_rate=float(pretraining["learning_rate"]), batch_size=32
    )
    training.train(model, tokenizer, public[held_back:], settings, seed=seed)
    states = {"public": asked(model, tokenizer, made, seed)}
    settings = training.Settings(epochs=tuning["epochs"], learning_rate=float(tuning["learning_rate"]))
    log, lowest = training.train(
        model,
        tokenizer,
        [note["text"] for note in made.train],
        settings,
        seed=seed,
        validation_texts=[note["text"] for note in made.validation],
    )
    states["last epoch"] = asked(model, tokenizer, made, seed)
    model.load_state_dict(lowest)
    states["lowest validation loss"] = asked(model, tokenizer, made, seed)
    return {
        "weights": models.count_parameters(model),
        "states": states,
        "training": log.as_dict(),
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "cpu_seconds": time.process_time() - start,
    }


def keep(rows: dict[Key, dict], profile: str, root: Path) -> None:
    """Write what was measured, and how, where a chapter reads it."""
    settings = parse_yaml((PARAMS / f"{profile}.yml").read_text(encoding="utf-8"))
    store = Store(root / FOLDER / "size", "size")
    kept = [{"size": size, "seed": seed} | row for (_, size, seed), row in rows.items()]
    store.write_json("luck_and_size/size.json", kept)
    asked = {chapter: settings[chapter] for chapter in CHAPTERS} | {"canaries": {"least_copies": MANY}}
    store.write_json(ABOUT, about("python benchmarks/size.py", kept, asked))


def main() -> None:
    """Measure what is missing and keep all of it with the book."""
    parser = options_of(__doc__)
    parser.add_argument("--profile", default="course", help="a file of params/ without its ending")
    args = parser.parse_args()
    torch.set_num_threads(1)  # so that two runs at the same time measure the same
    keys = [(args.profile, size, seed) for seed in SEEDS for size in SIZES]
    rows = go_on(Path("build/size.jsonl"), keys, measure, "sizes")
    keep(rows, args.profile, PARAMS.parent)


if __name__ == "__main__":
    main()
