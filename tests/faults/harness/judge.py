"""Runs one trial, within limits on time and memory, and says which of three outcomes it was."""

import json
import os
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from dataclasses import dataclass
from pathlib import Path

import psutil
from faults.harness.registry import REFUSED, Case, Fault, Trial, chance, digest
from patience import LIMIT_SECONDS

from privhelpers.errors import PrivHelpersError

RIGHT, REFUSAL, THIRD = OUTCOMES = ("right bytes", "typed refusal", "third outcome")
MEMORY = 2**30  # bytes of addresses that a trial may take beyond what the harness has
WALL = LIMIT_SECONDS  # for a trial that waits and uses no processor
LONGEST = 3000  # characters of a refusal


@dataclass(frozen=True)
class Result:
    """What became of a trial; the attributes are those of a line of the record."""

    index: int
    door: str
    name: str
    outcome: str
    said: str
    drawn: list[str]
    seconds: float


def wrong_message(message: str) -> str:
    """Return what is wrong with the message of a refusal, or ""."""
    if not message.strip() or len(message) > LONGEST:
        return f"a refusal of {len(message)} characters"
    if "\n" in message or "\r" in message or "\0" in message:
        return f"a refusal of several lines: {message!r}"
    return ""


def _refusal(error: PrivHelpersError, case: Case, place: Path) -> str:
    """Return what is wrong with a refusal, or ""."""
    message = str(error)
    if wrong := wrong_message(message):
        return wrong
    if not case.given and str(place) in message:
        return f"a refusal that names a folder of this machine: {message}"
    if not case.refusal:
        return f"refused what is right: {message}"
    return ""


def _judged(case: Case, place: Path) -> tuple[str, str]:
    """Return the outcome of a case, and why."""
    before = digest(case.watch)
    try:
        got = case.call()
    except PrivHelpersError as error:
        outcome, said = REFUSAL, f"{type(error).__name__}: {error}"
        wrong = _refusal(error, case, place)
        if not wrong and digest(case.watch) != before:
            wrong = f"refused, and what was there is changed: {error}"
    else:
        outcome, said, wrong = RIGHT, "", ""
        if case.right is REFUSED:
            wrong = f"accepted: {got!r}"[:400]
        elif not case.same(got, case.right):
            wrong = f"another result: {got!r}"[:400]
    wrong = wrong or case.after()
    if not wrong and not case.parts and (left := sorted(place.rglob(".part-*"))):
        wrong = f"{left[0].name} is left behind"
    return (THIRD, wrong) if wrong else (outcome, said)


def _attempt(fault: Fault, trial: Trial) -> tuple[str, str]:
    """Return outcome and reason of a trial in this process."""
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            case = fault.make(trial)
            start = time.process_time()
            outcome, said = _judged(case, trial.place)
    except BaseException as error:
        if not isinstance(error, Exception | SystemExit) and not type(error).__module__.startswith("pyo3"):
            raise
        where = traceback.extract_tb(error.__traceback__)[-1]
        said = f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno}: {error}"
        outcome = THIRD
    if (took := time.process_time() - start) > fault.seconds:
        return THIRD, f"took {took:.1f} s of processor time, more than {fault.seconds:g}; {said}"
    return outcome, said


def _child(fault: Fault, trial: Trial, pipe: int) -> None:
    """Run a trial in a forked child and write what became of it to a pipe."""
    os.setsid()
    quiet = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(quiet, standard)
    limit = int(psutil.Process().memory_info().vms + MEMORY)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    seconds = int(time.process_time() + 2 * fault.seconds + 5)
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    outcome, said = _attempt(fault, trial)
    words = json.dumps([outcome, ascii(said)[1:-1][:600], trial.drawn]).encode() + b"\n"
    while words:
        words = words[os.write(pipe, words) :]


def _ended(pid: int) -> bool:
    """Return whether a child has ended; it can still be waited for."""
    return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _forked(fault: Fault, trial: Trial) -> tuple[str, str, list[str]]:
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if not pid:
        try:
            os.close(reading)
            _child(fault, trial, writing)
        finally:
            os._exit(0)
    os.close(writing)
    said, end, status = b"", time.monotonic() + WALL, None
    while not said.endswith(b"\n") and time.monotonic() < end:
        if select.select([reading], [], [], 0 if status is not None else 0.2)[0]:
            if not (part := os.read(reading, 65536)):
                break
            said += part
        elif status is not None:  # a child of the trial holds the pipe, and the trial is over
            break
        else:
            status = os.waitpid(pid, 0)[1] if _ended(pid) else None
    os.close(reading)
    if time.monotonic() >= end:
        os.kill(pid, signal.SIGKILL)
    if status is None:
        _, status = os.waitpid(pid, 0)
    try:
        os.killpg(pid, signal.SIGKILL)
        orphans = True
    except (ProcessLookupError, PermissionError):
        orphans = False
    if not said.endswith(b"\n"):
        how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"status {status}"
        return THIRD, f"the process ended with {how}", []
    outcome, why, drawn = json.loads(said)
    return (THIRD, "a process outlived its trial", drawn) if orphans else (outcome, why, drawn)


def run(fault: Fault, seed: int, index: int) -> Result:
    """Run trial `index` and return what became of it.

    Args:
        fault: its class.
        seed: of the whole run.
        index: of the trial, from 0.
    """
    clock = time.monotonic()
    place = Path(tempfile.mkdtemp(prefix="faults-"))
    trial = Trial(chance(seed, index), place)
    try:
        if fault.forked:
            outcome, said, drawn = _forked(fault, trial)
        else:
            outcome, said = _attempt(fault, trial)
            said, drawn = ascii(said)[1:-1][:600], trial.drawn
    finally:
        for file in place.rglob("*"):
            if file.is_dir() and not file.is_symlink():
                file.chmod(0o755)
        shutil.rmtree(place, ignore_errors=True)
    said = said.replace(str(place), "PLACE")
    return Result(index, fault.door, fault.name, outcome, said, drawn, round(time.monotonic() - clock, 4))
