"""The table of a run: counts by class and by door, and what they bound."""

import json
import platform
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from faults.harness.judge import OUTCOMES, THIRD
from scipy.stats import beta

from bookmaker.runner import _git

ROOT = Path(__file__).parents[3]


def upper_bound(failures: int, trials: int) -> float:
    """Return the one-sided Clopper-Pearson upper bound at 95 % on the chance of a third outcome."""
    return 1.0 if failures >= trials else float(beta.ppf(0.95, failures + 1, trials - failures))


def commit() -> str:
    """Return the commit that ran, marked where files differed from it."""
    return _git.commit(ROOT) or "unknown"


def processor() -> str:
    """Return what the processor calls itself."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _row(name: str, rows: list[dict]) -> str:
    counts = Counter(row["outcome"] for row in rows)
    cells = [name, str(len(rows)), *(str(counts[outcome]) for outcome in OUTCOMES)]
    return f"| {' | '.join([*cells, f'{100 * upper_bound(counts[THIRD], len(rows)):.3g} %'])} |"


def table(rows: Iterable[dict], seed: int, ran: str, machine: str) -> str:
    """Return the table of a run as Markdown.

    Args:
        rows: lines of the record.
        seed: of the run.
        ran: commit.
        machine: its processor.
    """
    rows = list(rows)
    doors = sorted({row["door"] for row in rows})
    classes = sorted({(row["door"], row["name"]) for row in rows})
    head = ["what", "trials", *OUTCOMES, "upper bound"]
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", _row("**all**", rows)]
    lines += [_row(f"**{door}**", [row for row in rows if row["door"] == door]) for door in doors]
    for door, name in classes:
        lines.append(
            _row(f"{door}: {name}", [row for row in rows if (row["door"], row["name"]) == (door, name)])
        )
    thirds = [row for row in rows if row["outcome"] == THIRD]
    told = [
        f"- trial {row['index']}, {row['door']}: {row['name']}, {row['drawn']}: {row['said']}"
        for row in thirds
    ]
    return "\n".join(
        [
            "# Faults on purpose",
            "",
            f"Seed {seed}, {len(classes)} classes, commit {ran}, on {machine}.",
            "The upper bound is of the chance of a third outcome, one-sided, at 95 % (Clopper-Pearson).",
            "",
            *lines,
            *(["", "## Third outcomes", "", *told] if told else []),
            "",
        ]
    )


def read(path: Path) -> list[dict]:
    """Return the whole lines of a record; a last one that a kill cut off is left out."""
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [json.loads(line) for line in lines]
