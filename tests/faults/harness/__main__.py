"""`make faults N=... SEED=...`: runs trials, keeps a line of each, and ends with a table.

A run that was stopped goes on where it was, as long as the code is the same.
"""

import argparse
import hashlib
import json
import os
import sys
import time
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
os.environ["HF_HUB_OFFLINE"] = os.environ["TRANSFORMERS_OFFLINE"] = "1"

from faults.harness import base, judge, registry, report

from privhelpers.artifacts import write_atomic
from privhelpers.errors import InvalidParameter, PrivHelpersError

PLACE = report.ROOT / "build" / "faults"
SOURCES = ("privhelpers", "bookmaker", "tests/faults/harness", "notebooks", "params", "Makefile")
MOST = 10_000_000


def whole(name: str, text: str, usual: int, least: int) -> int:
    """Return a whole number that make passes as text; an empty one is the usual one."""
    if text and not (text.isascii() and text.isdigit() and len(text) < 12 and least <= int(text) <= MOST):
        raise InvalidParameter(f"{name}={text!r}: must be a whole number from {least} to {MOST}")
    return int(text) if text else usual


def code() -> str:
    """Return the SHA-256 of everything that a trial runs."""
    digest = hashlib.sha256()
    for source in SOURCES:
        path = report.ROOT / source
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(f"{file.relative_to(report.ROOT)}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def done_before(path: Path, mark: dict) -> set[int]:
    """Return the trials of an earlier run of the same code, and make the record ready to go on."""
    first, *rows = report.read(path) or [None]
    if first != mark:
        write_atomic(path, json.dumps(mark, sort_keys=True).encode() + b"\n")
        return set()
    kept = "".join(json.dumps(row, sort_keys=True) + "\n" for row in (mark, *rows))
    write_atomic(path, kept.encode())
    return {row["index"] for row in rows}


def _tell(done: int, trials: int, thirds: int, start: float, fresh: int) -> None:
    left = (time.monotonic() - start) / max(1, fresh) * (trials - done)
    sys.stderr.write(
        f"\r[faults] {done:,} of {trials:,} trials, {thirds} third outcomes, {left / 60:.0f} min left "
    )
    sys.stderr.flush()


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
    except PrivHelpersError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 2
    classes = registry.load()
    with base.made():
        if options.only is not None:
            result = judge.run(classes[options.only % len(classes)], seed, options.only)
            print(result.line())
            return int(result.outcome == judge.THIRD)
        return _run(classes, trials, seed, jobs)


def _lane(classes: list[registry.Fault], todo: list[int], seed: int, record: int, parent: int) -> None:
    """Run some trials, one after the other, and append a line for each to a record that others share."""
    for index in todo:
        if os.getppid() != parent:
            return
        line = judge.run(classes[index % len(classes)], seed, index).line() + "\n"
        os.write(record, line.encode())


def _run(classes: list[registry.Fault], trials: int, seed: int, jobs: int = 1) -> int:
    path = PLACE / f"{seed}.jsonl"
    ran, machine = report.commit(), report.processor()
    before = done_before(path, {"code": code(), "commit": ran, "machine": machine, "seed": seed})
    todo = [index for index in range(trials) if index not in before]
    start, parent, told, lanes = time.monotonic(), os.getpid(), 0.0, []
    record = os.open(path, os.O_WRONLY | os.O_APPEND)
    sys.stdout.flush()
    for lane in range(jobs):
        if not (pid := os.fork()):
            try:
                _lane(classes, todo[lane::jobs], seed, record, parent)
            except KeyboardInterrupt:
                os._exit(130)
            os._exit(0)
        lanes.append(pid)
    os.close(record)
    while any(not os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) for pid in lanes):
        if time.monotonic() - told > (1 if sys.stderr.isatty() else 60):
            rows, told = report.read(path)[1:], time.monotonic()
            done = len(todo) - trials + len(rows) if len(rows) < trials else len(todo)
            thirds = sum(row["outcome"] == judge.THIRD for row in rows)
            _tell(len(rows), trials, thirds, start, done)
        time.sleep(0.2)
    failed = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in lanes]
    rows = sorted(
        (row for row in report.read(path)[1:] if row["index"] < trials), key=lambda row: row["index"]
    )
    if any(failed) or len(rows) < trials:
        print(f"refused: {trials - len(rows)} trials were not run; call again", file=sys.stderr)
        return 2
    text = report.table(rows, seed, ran, machine)
    write_atomic(PLACE / f"{seed}.md", text.encode())
    print(f"\n{text}", end="")
    return int(any(row["outcome"] == judge.THIRD for row in rows))


if __name__ == "__main__":
    sys.exit(main())
