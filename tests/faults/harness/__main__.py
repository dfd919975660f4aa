"""`make faults N=... SEED=...`: runs trials, keeps a line of each, and ends with a table.

A run that was stopped goes on where it was, as long as the code is the same.
"""

import argparse
import json
import os
import sys
from dataclasses import asdict

os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"

from faults.harness import base, counted, judge, registry, report
from faults.harness.counted import PLACE, code, whole

from privhelpers.artifacts import write_atomic
from privhelpers.errors import PrivHelpersError


def main(arguments: list[str] | None = None) -> int:
    """Run the trials and return 1 if there was a third outcome."""
    parser = argparse.ArgumentParser(prog="make faults")
    parser.add_argument("--trials", default="")
    parser.add_argument("--seed", default="")
    parser.add_argument("--jobs", default="", help="trials at once")
    parser.add_argument("--only", type=int, help="run one trial and tell everything about it")
    options = parser.parse_args(arguments)
    try:
        trials = whole("N", options.trials, 1000, 1)
        seed = whole("SEED", options.seed, 0, 0)
        jobs = whole("JOBS", options.jobs, 1, 1)
        classes = registry.load()
        with base.made():
            if options.only is None:
                return _run(classes, trials, seed, jobs)
            result = judge.run(classes[options.only % len(classes)], seed, options.only)
            print(json.dumps(asdict(result), sort_keys=True))
            return int(result.outcome == judge.THIRD)
    except PrivHelpersError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 2


def _tell(rows: list[dict], trials: int) -> str:
    thirds = sum(row["outcome"] == judge.THIRD for row in rows)
    return f"[faults] {len(rows):,} of {trials:,} trials, {thirds} third outcomes"


def _run(classes: list[registry.Fault], trials: int, seed: int, jobs: int = 1) -> int:
    ran, machine = report.commit(), report.processor()
    rows = counted.run(
        PLACE / f"{seed}.jsonl",
        {"code": code(), "commit": ran, "machine": machine, "seed": seed},
        lambda index: asdict(judge.run(classes[index % len(classes)], seed, index)),
        trials,
        jobs=jobs,
        tell=lambda so_far: _tell(so_far, trials),
    )
    text = report.table(rows, seed, ran, machine)
    write_atomic(PLACE / f"{seed}.md", text.encode())
    print(f"\n{text}", end="")
    return int(any(row["outcome"] == judge.THIRD for row in rows))


if __name__ == "__main__":
    sys.exit(main())
