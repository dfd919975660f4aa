"""Computes a result in other surroundings: those that its process began with, and those that it is asked for.

`python -m faults.harness.elsewhere` reads a line of JSON for each result: its name, the seed it is made from,
the time zone, and the clock. It forks for each, and answers with a line.
"""

import contextlib
import functools
import hashlib
import json
import locale
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from unittest import mock

from privhelpers import rng
from privhelpers.artifacts import Store, seal_of
from privhelpers.records import make_hospital_records

PATIENTS = {"patients": 12, "validation_patients": 6, "heldout_patients": 12, "canaries_per_level": 2}


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _records(seed: int, place: Path) -> str:
    """Return the SHA-256 of a small hospital, with its names and canaries."""
    made = make_hospital_records(seed=seed, **PATIENTS)
    rows = [made.train, made.validation, made.heldout, [one.as_dict() for one in made.canaries]]
    return _digest(json.dumps([*rows, sorted(made.names)]).encode())


def _tables(seed: int, place: Path) -> str:
    """Return the SHA-256 of a table and of rows as they lie on the disk, with their seals."""
    drawn, store = rng.plain(seed, "tables"), Store(place, "toy")
    words = [chr(drawn.choice((65, 0xE9, 0x130, 0x131, 0x2028, 0x1F600)) + n) for n in range(40)]
    store.write_json("a/table.json", {word: drawn.random() for word in words})
    store.write_jsonl("a/rows.jsonl", [{"id": word, "x": drawn.gauss(0, 1e9)} for word in words])
    paths = [place / "a" / name for name in ("table.json", "rows.jsonl")]
    again = [store.read_json("a/table.json"), store.read_jsonl("a/rows.jsonl")]
    data = b"".join(one.read_bytes() for path in paths for one in (path, seal_of(path)))
    return _digest(data + json.dumps(again).encode())


def _weights(seed: int, place: Path) -> str:
    """Return the weights of the small private run, and what its ledger and its last checkpoint hold."""
    from faults.harness import base  # late: it takes seconds, and the other results do without

    weights, log = base.train(place / "kept", learning_rate=1e-2 * (1 + seed))
    files = [path for path in sorted((place / "kept").iterdir()) if path.suffix != ".lock"]
    digests = [f"{path.name} {_digest(path.read_bytes())}" for path in files]
    return " ".join([weights, repr(log.spent), *log.batch_sizes.astype(str), *digests])


def _around(seed: int, place: Path) -> str:
    """Return what surroundings change."""
    now = time.time() - time.monotonic()
    return ascii([hash("a"), locale.getpreferredencoding(False), time.localtime(0).tm_gmtoff, round(now)])


RESULTS: dict[str, Callable[[int, Path], str]] = {
    "records": _records,
    "tables": _tables,
    "weights": _weights,
    "around": _around,
}


@contextlib.contextmanager
def clock(at: int, seconds: float) -> Iterator[None]:
    """Set the clock on, or back, from its call number `at` on."""
    calls, usual, usual_ns = count(1), time.time, time.time_ns

    def shift() -> float:
        return seconds if next(calls) >= at else 0.0

    with (
        mock.patch("time.time", lambda: usual() + shift()),
        mock.patch("time.time_ns", lambda: usual_ns() + int(shift() * 1e9)),
    ):
        yield


def computed(
    name: str, seed: int, place: Path, *, zone: str = "UTC", at: int = 0, seconds: float = 0.0
) -> str:
    """Return a result, computed in a time zone, under a clock that is set at its call number `at`."""
    os.environ["TZ"] = zone
    time.tzset()
    with clock(at, seconds):
        return RESULTS[name](seed, place)


class Elsewhere:
    """A process in other surroundings."""

    def __init__(self, environment: dict[str, str]) -> None:
        """Start it with some variables beside the usual ones."""
        command = [sys.executable, "-m", __name__]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        tests = Path(__file__).parents[2]
        imports = {"PYTHONPATH": os.pathsep.join([str(tests.parent), str(tests)])}
        self._process = subprocess.Popen(command, env={**os.environ, **imports, **environment}, **pipes)

    def ask(self, name: str, seed: int, place: Path, **settings: object) -> str:
        """Return a result, see `computed`, or how it failed."""
        line = json.dumps([name, seed, str(place), settings])
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()
        return self._process.stdout.readline().decode().strip() or "it ended"

    def close(self) -> None:
        """End it."""
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()


@functools.cache
def _usual() -> None:
    """Import what the private run needs, and make its model, once for all that ask."""
    import torch
    from faults.harness import base

    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # until the fork: a process that used several cannot be forked
    base.hospital()
    base.plan()
    os.environ["FAULTS_THREADS"] = str(threads)


def _answer(name: str, seed: int, place: str, settings: dict) -> str:
    if name == "weights":
        import torch

        torch.set_num_threads(int(os.environ["FAULTS_THREADS"]))
    try:
        return computed(name, seed, Path(place), **settings)
    except Exception as error:
        return ascii(f"{type(error).__name__}: {error}")


def main() -> None:
    """Answer one line after the other until there is none."""
    out = os.dup(1)
    os.dup2(2, 1)  # what libraries print is no answer
    for line in sys.stdin.buffer:
        name, *given = json.loads(line)
        if name == "weights":
            _usual()
        if not (pid := os.fork()):
            try:
                os.write(out, f"{_answer(name, *given)}\n".encode())
            finally:
                os._exit(0)
        if os.waitpid(pid, 0)[1]:
            os.write(out, b"it was killed\n")


if __name__ == "__main__":
    main()
