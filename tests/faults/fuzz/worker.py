"""Runs cases in a process with bounds, so that a hang, a flood or an abort is an outcome and not the end."""

import json
import mmap
import os
import resource
import shutil
import signal
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
from faults.fuzz import doors
from faults.harness.judge import wrong_message

from privhelpers import rng
from privhelpers.errors import PrivHelpersError
from privhelpers.text import inert

OUTCOMES = (ACCEPTED, REFUSED, UNTYPED, MEMORY, TIME, WORDING) = (
    *("accepted", "typed refusal", "untyped exception"),
    *("over 512 MB", "over 5 s", "a refusal that says too little"),
)
THIRD = OUTCOMES[2:]
MOST_MEMORY, MOST_SECONDS = 2**29, 5.0  # bytes beyond what the process starts with; of its processor
IDLE = 300.0  # seconds in which a case neither ends nor uses the processor
Case = tuple[doors.Door, str, bytes]


@dataclass(frozen=True)
class Found:
    """A third outcome, which is a defect.

    Attributes:
        index: of the case.
        door, file: where.
        outcome: one of `THIRD`.
        said: the error, or what is wrong with the refusal.
        data: the bytes, as text in Latin-1.
    """

    index: int
    door: str
    file: str
    outcome: str
    said: str
    data: str


def case(seed: int, index: int) -> Case:
    """Return door, file and bytes of a case, which depend on seed and index alone."""
    door = doors.of(index)
    return (door, *door.case(rng.plain(seed, f"fuzz {index}")))


def _wording(message: str, names: tuple[str, ...], home: Path) -> str:
    """Return what a refusal lacks, or ""."""
    if wrong := wrong_message(message):
        return wrong
    if not any(name and name in message for name in names):
        return f"a refusal that names no file: {message}"
    if str(home) in message:
        return f"a refusal that names a folder of this machine: {message}"
    return "" if inert(message) == message else f"a refusal with characters that nobody sees: {message!a}"


def judged(one: Case, home: Path) -> tuple[str, str]:
    """Return the outcome of a case in this process, and what was said."""
    door, file, data = one
    start = time.process_time()
    try:
        door.read(home, file, data)
        outcome, said = ACCEPTED, ""
    except PrivHelpersError as error:
        said = str(error)
        wrong = _wording(said, (file, Path(file).name, door.says), home)
        outcome, said = (WORDING, wrong) if wrong else (REFUSED, said)
    except MemoryError as error:
        outcome, said = MEMORY, repr(error)
    except BaseException as error:  # a panic of Rust is no `Exception`
        if isinstance(error, KeyboardInterrupt):
            raise
        where = traceback.extract_tb(error.__traceback__)[-1]
        outcome, said = (
            UNTYPED,
            f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno}: {error}",
        )
    if (took := time.process_time() - start) > MOST_SECONDS:
        outcome, said = TIME, f"{took:.1f} s of processor time; {said}"
    return outcome, ascii(said)[1:-1][:400]


def _confine() -> None:
    quiet = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(quiet, standard)
    limit = psutil.Process().memory_info().vms + MOST_MEMORY
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _work(cases: Callable[[int], Case], todo: range, outcomes: mmap.mmap, told: int, place: Path) -> None:
    """Run cases, note each outcome in shared memory, and write third outcomes and seconds to a file."""
    home = doors.home(place)
    _confine()
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    seconds: dict[str, float] = {}
    for number, index in enumerate(todo):
        start = time.process_time()
        resource.setrlimit(resource.RLIMIT_CPU, (int(start + MOST_SECONDS) + 2, hard))
        one = cases(index)
        outcome, said = judged(one, home)
        if outcome in THIRD:
            found = Found(index, one[0].name, one[1], outcome, said, one[2].decode("latin-1"))
            os.write(told, json.dumps(asdict(found)).encode() + b"\n")
        outcomes[index - todo.start] = 1 + OUTCOMES.index(outcome)
        name = one[0].name
        seconds[name] = seconds.get(name, 0.0) + time.process_time() - start
        if number % 500 == 499 or index == todo.stop - 1:
            os.write(told, json.dumps({"seconds": seconds}).encode() + b"\n")
            seconds = {}


def _watched(pid: int, outcomes: mmap.mmap) -> int:
    """Wait for a worker, end one that waits for something, and return its status."""
    before, since = (0, 0.0), time.monotonic()
    while not os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
        time.sleep(0.02)
        used = psutil.Process(pid).cpu_times()
        now = (bytes(outcomes).rstrip(b"\0").__len__(), round(used.user + used.system, 1))
        if now != before:
            before, since = now, time.monotonic()
        elif time.monotonic() - since > IDLE:
            os.kill(pid, signal.SIGKILL)
    return os.waitpid(pid, 0)[1]


def run(
    cases: Callable[[int], Case], first: int, number: int
) -> tuple[list[str], list[Found], dict[str, float]]:
    """Run some cases in as many processes as they end; return outcomes, third ones, and seconds by door.

    Args:
        cases: returns the case of an index.
        first: index of the first.
        number: of cases.
    """
    outcomes, begin, found, seconds = mmap.mmap(-1, number), 0, [], {}
    while begin < number:
        place = Path(tempfile.mkdtemp(prefix="fuzz-"))
        told = os.open(place / "told", os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            if not (pid := os.fork()):
                code = 1
                try:
                    _work(
                        cases, range(first, first + number)[begin:], memoryview(outcomes)[begin:], told, place
                    )
                    code = 0
                finally:
                    os._exit(code)
            status = _watched(pid, outcomes)
            for line in (place / "told").read_text().splitlines():
                row = json.loads(line)
                if "seconds" in row:
                    seconds = {
                        n: seconds.get(n, 0) + row["seconds"].get(n, 0) for n in seconds | row["seconds"]
                    }
                else:
                    found.append(Found(**row))
        finally:
            os.close(told)
            shutil.rmtree(place, ignore_errors=True)
        ended = bytes(outcomes).find(0)
        if ended < 0:
            break
        if not status:
            raise RuntimeError(f"a worker left case {first + ended} undone")
        if ended == begin and os.WIFEXITED(status):
            raise RuntimeError(f"a worker ended with status {status} before case {first + ended}")
        door, file, data = cases(first + ended)
        killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        outcome = TIME if killed in (signal.SIGXCPU, signal.SIGKILL) else UNTYPED
        said = f"the process ended with status {status}, signal {killed}"
        found.append(Found(first + ended, door.name, file, outcome, said, data.decode("latin-1")))
        outcomes[ended] = 1 + OUTCOMES.index(outcome)
        begin = ended + 1
    return [OUTCOMES[value - 1] for value in bytes(outcomes)], found, seconds
