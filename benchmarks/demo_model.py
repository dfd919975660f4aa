"""Makes what `privai-leak demo` audits: two models and two files of notes, in `privaudit/example`.

    PYTHONPATH=. python benchmarks/demo_model.py [FOLDER]

Both models have one shape, one start, and one tokenizer, which was trained on public text. `demo` read the
notes of `members.jsonl` until it could recite them, `demo-control` as many notes of other patients as often.
Neither read `nonmembers.jsonl`. Every patient is invented. A minute on one core; the same processor and
versions of packages give the same bytes.
"""

import json
import sys
from pathlib import Path

import torch

from privhelpers import models, training
from privhelpers.artifacts import write_atomic
from privhelpers.records import Stays, make_hospital_records, make_public_corpus, refuse_unsafe

EXAMPLE = Path(__file__).parents[1] / "privaudit" / "example"
PATIENTS = 100  # of each group, with one note each
SEED = 2  # members and nonmembers differ as little as groups by chance: blind baselines have p > 0.1
TRAINING = training.Settings(epochs=60, learning_rate=4e-3, batch_size=10)


def _jsonl(notes: list[dict], name: str) -> bytes:
    """Return notes with the fields that an audit reads, one a line."""
    lines = []
    for number, note in enumerate(notes, 1):
        refuse_unsafe(note["text"], f"{name}, line {number}")
        row = {"patient_id": note["patient_id"], "text": note["text"]}
        row["identifiers"] = [span["value"] for span in note["spans"]]
        lines.append(json.dumps(row) + "\n")
    return "".join(lines).encode()


def main(folder: Path) -> None:
    """Write the models and the files into a folder."""
    torch.set_num_threads(1)
    sizes = dict.fromkeys(("validation_patients", "heldout_patients", "crowd_patients"), PATIENTS)
    one_note = {"report_share": 1.0, "stays": Stays((1.0,), (1.0,))}
    records = make_hospital_records(seed=SEED, patients=1, canaries_per_level=1, **sizes, **one_note)
    public = make_public_corpus(seed=SEED, documents=2000, excluded_names=records.names)
    tokenizer = models.train_tokenizer(public, vocab_size=1024)
    for name, notes in {"demo": records.validation, "demo-control": records.crowd}.items():
        model, texts = models.build("micro-gpt2", tokenizer, seed=SEED), [note["text"] for note in notes]
        training.train(model, tokenizer, texts, TRAINING, seed=SEED, progress=False)
        models.save(model, tokenizer, folder / name)
    for name, notes in {"members": records.validation, "nonmembers": records.heldout}.items():
        write_atomic(folder / f"{name}.jsonl", _jsonl(notes, f"{name}.jsonl"))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if sys.argv[1:] else EXAMPLE)
