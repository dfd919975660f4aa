"""`make faults N=... SEED=...`: runs trials, keeps a line of each, and ends with a table.

A run that was stopped goes on where it was, as long as the code is the same.
"""

import json
import os
import sys
from dataclasses import asdict

os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"

from faults.harness import base, counted, judge, registry, report


def _tell(rows: list[dict], trials: int) -> str:
    thirds = sum(row["outcome"] == judge.THIRD for row in rows)
    return f"[faults] {len(rows):,} of {trials:,} trials, {thirds} third outcomes"


def _count(asked: counted.Count) -> int:
    classes = registry.load()
    with base.made():
        rows = asked.rows(
            lambda index: asdict(judge.run(classes[index % len(classes)], asked.seed, index)),
            asked.number,
            lambda so_far: _tell(so_far, asked.number),
        )
    asked.publish(report.table(rows, asked.seed, asked.commit, asked.machine))
    return int(any(row["outcome"] == judge.THIRD for row in rows))


def _only(seed: int, index: int) -> int:
    classes = registry.load()
    with base.made():
        result = judge.run(classes[index % len(classes)], seed, index)
    print(json.dumps(asdict(result), sort_keys=True))
    return int(result.outcome == judge.THIRD)


def main(arguments: list[str] | None = None) -> int:
    """Run the trials and return 1 if there was a third outcome."""
    return counted.program("faults", 1000, _count, arguments, only=_only)


if __name__ == "__main__":
    sys.exit(main())
