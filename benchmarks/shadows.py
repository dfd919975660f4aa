"""How long the shadow models of `shadow_models` take: all of them on two cores, a few one after the other.

Each trains the default small model for five epochs on a random half of 2,000 patients and scores the notes of
all of them, as the chapter does. Wall time, since the question is how long one waits; starting the processes
is part of it. The time of one core is extrapolated from two models.
"""

import os
import sys
import tempfile
import time
from pathlib import Path

import torch

from bookmaker.runner._environment import KEEP_MEMORY, THREAD_VARIABLES
from privhelpers import models, records, rng, training
from privhelpers.artifacts import Store
from privhelpers.attacks import shadow

MODELS, LIMIT_SECONDS = 16, 240
SETTINGS = training.Settings(epochs=5, learning_rate=6e-3, batch_size=32)


def settle() -> None:
    """Start again with one thread and the book's malloc settings, which the processes inherit."""
    wanted = {**dict.fromkeys(THREAD_VARIABLES, "1"), "HF_HUB_OFFLINE": "1", **KEEP_MEMORY}
    if any(os.environ.get(name) != value for name, value in wanted.items()):
        os.execve(sys.executable, sys.orig_argv, {**os.environ, **wanted})


def tasks_for(store: Store, count: int) -> list[shadow.Task]:
    """Leave a checkpoint with fresh weights in the store and return the models to train from it."""
    public = records.make_public_corpus(seed=0, documents=2000)
    models.put(store, "public", *models.start("tiny-gpt2", public, vocab_size=1536, seed=0))
    hospital = records.make_hospital_records(
        seed=0, patients=2000, validation_patients=1, heldout_patients=1, canaries_per_level=1
    )
    notes = [note for note in hospital.train if note["kind"] != "canary"]
    patients = sorted({note["patient_id"] for note in notes})
    candidates = tuple(note["text"] for note in notes)
    tasks = []
    for number in range(count):
        order = rng.make(0, f"benchmark/half/{number}").permutation(patients)
        chosen = set(order[: len(patients) // 2].tolist())
        texts = tuple(note["text"] for note in notes if note["patient_id"] in chosen)
        tasks.append(shadow.Task(f"shadow-{number:02d}", texts, candidates, SETTINGS, number))
    return tasks


def seconds_for_all(store: Store, tasks: list[shadow.Task], processes: int) -> float:
    """Train the models and return the wall seconds of sixteen, extrapolated where they are fewer."""
    start = time.perf_counter()
    shadow.train_all(store, f"shadows-{processes}", tasks, train=training.train, processes=processes)
    return (time.perf_counter() - start) * MODELS / len(tasks)


def main() -> None:
    """Measure and print."""
    settle()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        store = Store(Path(folder) / "artifacts", "bench")
        tasks = tasks_for(store, MODELS)
        notes = sum(len(task.texts) for task in tasks) // len(tasks)
        two_cores, one_core = seconds_for_all(store, tasks, 2), seconds_for_all(store, tasks[:2], 1)
    print(f"# {MODELS} shadow models, {notes} notes and {SETTINGS.epochs} epochs each\n")
    print(
        f"Two cores: {two_cores:.0f} s of wall time (wanted: {LIMIT_SECONDS} s or less); "
        f"one core: {one_core:.0f} s;"
    )
    print(
        f"side by side takes {two_cores / one_core:.2f} of the time (one core: extrapolated from two models)."
    )


if __name__ == "__main__":
    main()
