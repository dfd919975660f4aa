"""Trials that are counted: each has a number and a line in a record, from which a stopped run goes on."""

import argparse
import hashlib
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from faults.harness import report

from privhelpers.artifacts import write_atomic
from privhelpers.errors import InvalidParameter, PrivHelpersError

PLACE = report.ROOT / "build" / "faults"
SOURCES = ("privhelpers", "bookmaker", "tests/faults", "notebooks", "params", "Makefile")
MOST = 1_000_000_000


@dataclass(frozen=True)
class Count:
    """What a program that counts is to do, and where that goes.

    Attributes:
        stem: name of its record and its table, without their endings.
        number: how many trials make asked for; 0 where their number is fixed.
        seed: of what is drawn.
        jobs: processes that share the trials.
        commit: that runs, and whether files differ from it.
        machine: its processor.
    """

    stem: str
    number: int
    seed: int
    jobs: int
    commit: str
    machine: str

    def rows(
        self,
        trial: Callable[[int], dict],
        trials: int,
        tell: Callable[[list[dict]], str],
        sources: Iterable[str] = (),
    ) -> list[dict]:
        """Return the lines of all trials, as `run` does; `sources` are files and folders beside the usual."""
        mark = {"code": code(*sources), "commit": self.commit, "machine": self.machine, "seed": self.seed}
        return run(PLACE / f"{self.stem}.jsonl", mark, trial, trials, jobs=self.jobs, tell=tell)

    def publish(self, text: str) -> None:
        """Write the table, and print it."""
        write_atomic(PLACE / f"{self.stem}.md", text.encode())
        print(f"\n{text}", end="")


def program(
    name: str,
    usual: int | None,
    count: Callable[[Count], int],
    arguments: list[str] | None = None,
    *,
    only: Callable[[int, int], int] | None = None,
) -> int:
    """Run a program that counts, as make calls it, and return its exit code: 2 for a refusal.

    Args:
        name: of the target of make, which is written without hyphens, and of its files.
        usual: trials where make names no number; None: they are fixed, and nothing is drawn.
        count: runs them and returns the exit code.
        arguments: `--number`, `--seed` and `--jobs`, empty where make was not told.
        only: runs the trial `--only` of a seed alone.
    """
    parser = argparse.ArgumentParser(prog=f"make {name.replace('-', '')}")
    for option in ("--number", "--seed", "--jobs"):
        parser.add_argument(option, default="")
    if only:
        parser.add_argument("--only", type=int, help="run one trial and tell everything about it")
    options = parser.parse_args(arguments)
    try:
        seed = whole("SEED", options.seed, 0, 0)
        if only and options.only is not None:
            return only(seed, options.only)
        jobs = whole("JOBS", options.jobs, 1, 1)
        number = whole("N", options.number, usual or 0, 1)
        stem = name if usual is None else f"{name}-{seed}"
        return count(Count(stem, number, seed, jobs, report.commit(), report.processor()))
    except PrivHelpersError as error:
        print(f"refused: {error}", file=sys.stderr)
        return 2


def whole(name: str, text: str, usual: int, least: int) -> int:
    """Return a whole number that make passes as text; an empty one is the usual one."""
    if text and not (text.isascii() and text.isdigit() and len(text) < 12 and least <= int(text) <= MOST):
        raise InvalidParameter(f"{name}={text!r}: must be a whole number from {least} to {MOST}")
    return int(text) if text else usual


def code(*more: str) -> str:
    """Return the SHA-256 of everything that a trial runs, and of more files and folders."""
    digest = hashlib.sha256()
    for source in (*SOURCES, *more):
        path = report.ROOT / source
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if file.is_file() and "__pycache__" not in file.parts:
                digest.update(f"{file.relative_to(report.ROOT)}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def _done_before(path: Path, mark: dict) -> set[int]:
    """Return the trials of an earlier run of the same code, and make the record ready to go on."""
    first, *rows = report.read(path) or [None]
    if first != mark:
        write_atomic(path, json.dumps(mark, sort_keys=True).encode() + b"\n")
        return set()
    kept = "".join(json.dumps(row, sort_keys=True) + "\n" for row in (mark, *rows))
    write_atomic(path, kept.encode())
    return {row["index"] for row in rows}


def _lane(trial: Callable[[int], dict], todo: Iterable[int], record: int, parent: int) -> None:
    """Run some trials, one after the other, and append a line for each to a record that others share."""
    for index in todo:
        if os.getppid() != parent:
            return
        line = json.dumps({"index": index} | trial(index), sort_keys=True) + "\n"
        os.write(record, line.encode())


def run(
    path: Path,
    mark: dict,
    trial: Callable[[int], dict],
    trials: int,
    *,
    jobs: int,
    tell: Callable[[list[dict]], str],
) -> list[dict]:
    """Run trials that the record does not hold yet, and return the lines of all, in the order of their index.

    Args:
        path: of the record, a line of JSON a trial.
        mark: its first line: a record with another one is begun anew.
        trial: makes the line of a trial from its index.
        trials: how many.
        jobs: processes, which share the trials.
        tell: says in words how far the lines so far have come; the time that is left follows on it.

    Raises:
        PrivHelpersError: a process ended before its trials were run.
    """
    before = _done_before(path, mark)
    todo = [index for index in range(trials) if index not in before]
    start, parent, told, lanes = time.monotonic(), os.getpid(), 0.0, []
    record = os.open(path, os.O_WRONLY | os.O_APPEND)
    sys.stdout.flush()
    for lane in range(jobs):
        if not (pid := os.fork()):
            try:
                _lane(trial, todo[lane::jobs], record, parent)
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(0)
        lanes.append(pid)
    os.close(record)

    def rows() -> list[dict]:
        return [row for row in report.read(path)[1:] if row["index"] < trials]

    while any(not os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) for pid in lanes):
        if time.monotonic() - told > (1 if sys.stderr.isatty() else 60):
            so_far, told = rows(), time.monotonic()
            fresh = len(so_far) - (trials - len(todo))
            left = (told - start) / max(1, fresh) * (trials - len(so_far)) / 60
            sys.stderr.write(f"\r{tell(so_far)}" + (f", {left:.0f} min left " if fresh else " "))
            sys.stderr.flush()
        time.sleep(0.2)
    for pid in lanes:
        os.waitpid(pid, 0)
    if missing := trials - len(rows()):
        raise PrivHelpersError(f"{missing} trials were not run; call again")
    return sorted(rows(), key=lambda row: row["index"])
