"""What an audit of many records takes: seconds, and memory of all its processes together.

The records are those of the book's hospital, two files of 50,000, each record a stay of one patient in about
55 words; no text stands twice. Audited are a model with few weights that read 1,000 of the members, and the
texts of 10,000 members as a synthetic set. Memory that several processes share is shared out (PSS), which is
looked at four times a second.

`python benchmarks/audit_size.py` prints the table; what is made for it, and each result, stays in `build/`,
so that a run which was cut off goes on where it stopped.
"""

import argparse
import contextlib
import json
import os
import platform
import subprocess
import sys
import tempfile
import threading
import time
from importlib.metadata import version
from pathlib import Path

import psutil
from audit_kept import go_on

import privaudit
from privhelpers import models, records, rng, training
from privhelpers.records import Stays
from privhelpers.text import normalize

RECORDS = 100_000  # of both files together
TEXTS = 10_000  # of the synthetic set
PEOPLE = 15_000  # of one hospital; several are made
STAYS = Stays(admissions=(0.58, 0.2, 0.12, 0.06, 0, 0.04), notes=(0, 1))
KINDS = ("model", "texts")
SECONDS, GIGABYTES = 900, 2  # that are asked for
HEAD = ("what is audited", "records", "seconds", "load", "memory, GB")


def make_records(home: Path) -> None:
    """Write the members and the held-out records, whole patients dealt by lot."""
    people: dict[str, dict[str, list[dict]]] = {}
    missing, seed = int(0.6 * RECORDS) + 200, 0
    while missing > 0:
        made = records.make_hospital_records(
            seed=seed,
            patients=min(missing, PEOPLE),
            validation_patients=1,
            heldout_patients=1,
            canaries_per_level=1,
            stays=STAYS,
        )
        for note in made.train:
            if note["kind"] != "canary":
                stays = people.setdefault(f"{seed}{note['patient_id']}", {})
                stays.setdefault(note["admission"], []).append(note)
        missing, seed = missing - PEOPLE, seed + 1
    names, seen, sides = sorted(people), set(), ([], [])
    for place, number in enumerate(rng.make(0, "bench/big").permutation(len(names)).tolist()):
        for stay, notes in people[names[number]].items():
            text = " ".join(note["text"] for note in notes)
            if normalize(text) in seen:
                continue
            seen.add(normalize(text))
            row = {"patient_id": names[number], "note_id": f"{names[number]}/{stay}", "text": text}
            row["identifiers"] = [span["value"] for note in notes for span in note["spans"]]
            sides[place % 2].append(json.dumps(row) + "\n")
    sides = [side[: RECORDS // 2] for side in sides]
    for name, rows in (("members", sides[0]), ("heldout", sides[1]), ("texts", sides[0][:TEXTS])):
        if name != "texts" and len(rows) < RECORDS // 2:
            raise AssertionError(f"{name}: {len(rows)} records")
        (home / f"{name}.jsonl").write_text("".join(rows), encoding="utf-8")


def make_model(home: Path) -> None:
    """Train a small model a little, on the first members: what it knows costs nothing."""
    lines = (home / "members.jsonl").read_text(encoding="utf-8").splitlines()[:1000]
    texts = [json.loads(line)["text"] for line in lines]
    tokenizer = models.train_tokenizer(texts, vocab_size=1536)
    model = models.build("tiny-gpt2", tokenizer, seed=0)
    plan = training.Settings(epochs=1, learning_rate=3e-3, batch_size=32)
    training.train(model, tokenizer, texts, plan, seed=0)
    models.save(model.eval(), tokenizer, home / "net")


def memory_of(process: psutil.Process) -> int:
    """Return how many bytes a process and all below it hold, shared pages shared out."""
    total, below = 0, []
    with contextlib.suppress(psutil.Error):  # it ended meanwhile
        below = process.children(recursive=True)
    for one in (process, *below):
        with contextlib.suppress(psutil.Error):
            total += one.memory_full_info().pss
    return total


def measured(command: list[str]) -> dict[str, float]:
    """Run a command; return its seconds, the load of the machine, and the most memory of its processes."""
    clock, most = time.monotonic(), 0
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        watched = psutil.Process(process.pid)

        def watch() -> None:
            nonlocal most
            while process.poll() is None:
                most = max(most, memory_of(watched))
                time.sleep(0.25)

        thread = threading.Thread(target=watch)
        thread.start()
        code = process.wait()
        thread.join()
    if code:
        raise RuntimeError(f"exit code {code}: {' '.join(command)}")
    return {"seconds": time.monotonic() - clock, "load": os.getloadavg()[1], "bytes": most}


def audit(home: Path, kind: str) -> dict[str, float]:
    """Audit the model, or the texts, with the settings that an audit has by itself."""
    audited = {"model": ["--model", home / "net"], "texts": ["--synthetic", home / "texts.jsonl"]}[kind]
    with tempfile.TemporaryDirectory(dir=home) as place:
        files = ["--records", home / "members.jsonl", "--holdout", home / "heldout.jsonl"]
        out = ["--out", Path(place, "report")]
        command = [sys.executable, "-m", "privaudit.cli", "audit", *audited, *files, *out]
        return measured([str(part) for part in command])


def row_of(kind: str, weights: int, result: dict[str, float]) -> list[str]:
    """Return one row of the table."""
    what = {"model": f"a model of {weights:,} weights", "texts": f"{TEXTS:,} synthetic texts"}[kind]
    cells = f"{RECORDS:,}", f"{result['seconds']:.0f}", f"{result['load']:.1f}"
    return [what, *cells, f"{result['bytes'] / 1e9:.2f}"]


def main() -> None:
    """Measure what is missing and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--home", default="build/audit_size", type=Path, help="folder of what is made")
    parser.add_argument("--out", type=Path, help="file of the page; default: print it")
    options = parser.parse_args()
    home = options.home.resolve()
    home.mkdir(parents=True, exist_ok=True)
    if not (home / "texts.jsonl").exists():
        make_records(home)
    if not (home / "net").exists():
        make_model(home)
    weights = privaudit.open_model(home / "net").parameters
    results = go_on(home / "rows.jsonl", [(kind,) for kind in KINDS], lambda key: audit(home, *key), "audits")
    rows = [row_of(*key, weights, result) for key, result in results.items()]
    page = (
        "# What an audit of many records takes\n\n"
        f"By `benchmarks/audit_size.py`: two files of {RECORDS // 2:,} records, each in about 55 words, "
        "with the settings that an audit has by itself (2,000 patients a side are asked about), and its PDF. "
        "Memory is that of all processes of the audit together, Chromium among them, a shared page counted "
        f"once, looked at four times a second. Asked for are at most {GIGABYTES} GB and {SECONDS} s.\n\n"
        "The load is how many processes wanted a core, over the last five minutes: with more than there are "
        "cores, an audit waits for others.\n\n"
        f"Python {platform.python_version()}, torch {version('torch')}, {platform.machine()}, "
        f"{psutil.cpu_count()} cores.\n\n"
        f"| {' | '.join(HEAD)} |\n|{' --- |' * len(HEAD)}\n"
        + "".join(f"| {' | '.join(row)} |\n" for row in rows)
    )
    if options.out:
        options.out.write_text(page, encoding="utf-8")
    else:
        print(page, end="")


if __name__ == "__main__":
    main()
