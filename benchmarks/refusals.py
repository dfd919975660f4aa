"""How long a user waits until a mistake is refused: whole commands, in seconds on the clock.

A mistake in a profile, in one of 100,000 notes, and in a model folder, each found late: in the last chapter,
in the last line, in the weights. The commands take turns, round after round, in a copy of what git has in its
index. `make bench` runs it, and it ends with exit code 1 where one was not refused by the words that name its
mistake, or where the median of its seconds is above what is promised.
"""

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm

from bookmaker.runner._git import git
from privhelpers import models

ROOT = Path(__file__).parents[1]
NOTES, ROUNDS = 100_000, 5


@dataclass(frozen=True)
class Mistake:
    """A command that must be refused.

    Attributes:
        name: what is wrong, in words.
        arguments: of `python -m bookmaker.runner`.
        names: words that the refusal must say.
        seconds: that it may take.
    """

    name: str
    arguments: tuple[str, ...]
    names: str
    seconds: float


def _notes(path: Path, number: int, patient: str, last: str = "") -> str:
    """Write `number` notes of a patient each, the last line as given, and return the name of the file."""
    lines = [
        json.dumps(
            {"patient_id": f"{patient}{row}", "text": f"Patient {patient}{row} was seen on day {row}."}
        )
        for row in range(number)
    ]
    path.write_text("\n".join([*lines[:-1], last or lines[-1]]) + "\n", encoding="utf-8")
    return path.name


def made(home: Path, number: int) -> list[Mistake]:
    """Write what is brought to a copy of the book at `home`, and return the mistakes in it.

    Args:
        home: an empty folder.
        number: of notes in a file.
    """
    git(ROOT, "checkout-index", "--all", f"--prefix={home}/")
    smoke = (home / "params" / "smoke.yml").read_text(encoding="utf-8")
    (home / "params" / "mistaken.yml").write_text(smoke.rpartition("texts:")[0] + "texts: -1\n", "utf-8")
    again = json.dumps({"patient_id": "b", "text": "Patient a0 was seen on day 0."})
    records = _notes(home / "records.jsonl", number, "a")
    holdout = _notes(home / "holdout.jsonl", number, "b")
    broken = _notes(home / "broken.jsonl", number, "b", '{"patient_id": "b", "text": ')
    twice = _notes(home / "twice.jsonl", number, "b", again)
    tokenizer = models.train_tokenizer(["Patient a0 was seen on day 0."], vocab_size=300)
    model = models.build("tiny-gpt2", tokenizer, seed=0).eval()
    for folder in ("whole", "cut", "fewer"):
        models.save(model, tokenizer, home / folder)
    weights, config = home / "cut" / "model.safetensors", home / "fewer" / "config.json"
    os.truncate(weights, weights.stat().st_size - 1)
    layers = json.loads(config.read_text(encoding="utf-8"))
    config.write_text(json.dumps(layers | {"n_layer": layers["n_layer"] - 1}), encoding="utf-8")

    def audit(model: str = "whole", records: str = records, holdout: str = holdout) -> tuple[str, ...]:
        return ("audit", f"--model={model}", f"--records={records}", f"--holdout={holdout}", "--pdf=no")

    return [
        Mistake("a profile with a number out of its range", ("book", "--profile=mistaken"), "texts", 2),
        Mistake("a file of notes that is cut off", audit(holdout=broken), f"line {number}", 5),
        Mistake("a note that stands in both files", audit(holdout=twice), "text stands in", 5),
        Mistake("weights that are cut off", audit(model="cut"), "model.safetensors", 10),
        Mistake(
            "weights that the configuration does not use", audit(model="fewer"), "all of its weights", 10
        ),
    ]


def refused(mistake: Mistake, home: Path) -> tuple[float, str]:
    """Return the seconds that a command took, and what is wrong with how it ended, or ""."""
    command = [sys.executable, "-m", "bookmaker.runner", *mistake.arguments]
    start = time.perf_counter()
    ended = subprocess.run(
        command,
        cwd=home,
        env=os.environ | {"PYTHONPATH": str(home)},
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.perf_counter() - start
    said = f"{ended.stdout}\n{ended.stderr}".strip()
    as_asked = ended.returncode == 2 and mistake.names in said
    return seconds, "" if as_asked else f"exit code {ended.returncode}: {said[-300:]}"


def main(arguments: list[str] | None = None) -> int:
    """Measure, print the table, and return 1 if a mistake was not refused by name or in time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="turns of all commands, 1 or more")
    parser.add_argument("--notes", type=int, default=NOTES, help="lines in a file of notes, 60 or more")
    options = parser.parse_args(arguments)
    for name, least in (("rounds", 1), ("notes", 60)):
        if getattr(options, name) < least:
            parser.error(f"--{name} = {getattr(options, name)}: must be {least} or more")
    with tempfile.TemporaryDirectory(prefix="refusals-") as folder:
        mistakes = made(Path(folder), options.notes)
        took: dict[str, list[float]] = {mistake.name: [] for mistake in mistakes}
        amiss: dict[str, str] = {}
        for _ in tqdm(range(options.rounds), desc="refusals", unit="round"):
            for mistake in mistakes:
                seconds, wrong = refused(mistake, Path(folder))
                took[mistake.name].append(seconds)
                if wrong:
                    amiss[mistake.name] = wrong
    print(f"\nPython {platform.python_version()}, {platform.machine()}, {os.cpu_count()} cores")
    print(f"{options.notes:,} notes in a file; {options.rounds} rounds, seconds on the clock")
    print(f"  {'mistake':<46}{'promised':>10}{'median':>10}{'longest':>10}")
    for mistake in mistakes:
        times = took[mistake.name]
        median = statistics.median(times)
        print(f"  {mistake.name:<46}{mistake.seconds:>10g}{median:>10.2f}{max(times):>10.2f}")
        if median > mistake.seconds:
            amiss.setdefault(mistake.name, f"{median:.2f} s, promised: {mistake.seconds:g}")
    for name, wrong in amiss.items():
        print(f"  {name}: {wrong}")
    return int(bool(amiss))


if __name__ == "__main__":
    sys.exit(main())
