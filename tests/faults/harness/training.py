"""The door of private runs: killed at any write, refused or held up by the disk there, or without memory.

Each goes on to the same weights.
"""

import os
from contextlib import AbstractContextManager

from faults.harness import base
from faults.harness.layer import FAILING, FULL, KILL, READ_ONLY, SLOW, Layer, injected, survived
from faults.harness.registry import Case, Trial, fault
from faults.harness.report import ROOT
from faults.harness.scarce import Exhausted

from privhelpers.errors import LedgerInUse, PrivHelpersError, ResumeRefused
from privhelpers.ledger import read_ledger
from privhelpers.processes import Lock

MOMENTS = 75  # a little more than a whole run has
CALLS = {"dpsgd/": 82_000, "artifacts.py": 1050, "ledger/": 282, "processes.py": 42}  # of a whole run, too
MEMORY = "no memory"


def _disturbed(t: Trial, kind: str, *, lasting: bool = False, times: int = 1) -> Case:
    folder, taken = t.place / "kept", t.place / "taken"
    part = t.choose(CALLS) if kind == MEMORY else ""
    moments = [1 + t.below(CALLS.get(part, MOMENTS)) for _ in range(times)]
    share = float(t.rng.random())
    pause = (1 + t.below(4 if lasting else 300)) / 1000 if kind == SLOW else 0.0
    told: list[str] = []

    def under(at: int) -> AbstractContextManager:
        if kind == MEMORY:
            return Exhausted(at, (f"{ROOT}/privhelpers/{part}",))
        return injected(Layer(kind, at, lasting=lasting, share=share, pause=pause))

    def attempt(at: int) -> str | None:
        taken.write_bytes(b"")
        note = os.open(taken, os.O_WRONLY | os.O_APPEND)
        saved = sorted(folder.glob("step-*.safetensors")) if folder.exists() else []
        saved = [path for path in saved if path.with_name(path.name + ".sha256").exists()]
        begun = int(saved[-1].stem.removeprefix("step-")) if saved else 0
        before = _spent(folder)
        result = t.place / "result"

        def work() -> None:
            with under(at):
                weights = base.train(folder, note=note)[0]
            result.write_text(weights)

        ended = None
        try:
            if kind == KILL:
                ended = result.read_text() if survived(work) else None
            else:
                work()
                ended = result.read_text()
        except PrivHelpersError as error:
            if "\n" in str(error) or str(t.place) in str(error):
                told.append(f"a refusal that is no clean sentence: {error}")
            if kind == SLOW:
                told.append(f"a slow disk is refused: {error}")
        except MemoryError:
            if kind != MEMORY:
                raise
        os.close(note)
        spent, done = _spent(folder), taken.stat().st_size
        if spent < begun + done or spent < before:
            told.append(
                f"the ledger counts {spent} steps, {begun} + {done} were taken, {before} counted before"
            )
        return ended

    def call() -> str:
        for at in moments:
            if (ended := attempt(at)) is not None:
                return ended
        return base.train(folder)[0]

    def wrong() -> str:
        if not told and folder.exists() and _spent(folder) != base.STEPS:
            told.append(f"in the end the ledger counts {_spent(folder)} of {base.STEPS} steps")
        return "; ".join(told)

    return Case(
        call, right=base.whole(), refusal=False, after=wrong, parts=kind == KILL or (lasting and kind != FULL)
    )


def _spent(folder) -> int:
    path = folder / "ledger.jsonl"
    return read_ledger(path).steps if path.exists() else 0


@fault("killed once", seconds=20)
def _(t: Trial) -> Case:
    return _disturbed(t, KILL)


@fault("killed three times", seconds=30)
def _(t: Trial) -> Case:
    return _disturbed(t, KILL, times=3)


@fault("the disk is full once", seconds=20)
def _(t: Trial) -> Case:
    return _disturbed(t, FULL)


@fault("the disk is full from one moment on", seconds=20)
def _(t: Trial) -> Case:
    return _disturbed(t, FULL, lasting=True)


@fault("the device fails once", seconds=20)
def _(t: Trial) -> Case:
    return _disturbed(t, FAILING)


@fault("the disk becomes read-only", seconds=20)
def _(t: Trial) -> Case:
    return _disturbed(t, READ_ONLY, lasting=True)


@fault("the disk is slow", seconds=20)
def _(t: Trial) -> Case:
    """At one moment, or from one on."""
    return _disturbed(t, SLOW, lasting=bool(t.below(2)))


@fault("memory runs out", seconds=20)
def _(t: Trial) -> Case:
    """Where the call is made again in the same process, as in Jupyter, it ends in the right weights."""
    return _disturbed(t, MEMORY)


@fault("a release killed once", seconds=20)
def _(t: Trial) -> Case:
    """New noise each time: the weights differ, the ledger may not count less than was done."""
    folder, taken = t.place / "kept", t.place / "taken"
    taken.touch()
    at, share = 1 + t.below(MOMENTS), float(t.rng.random())
    note = os.open(taken, os.O_WRONLY | os.O_APPEND)

    def work() -> None:
        with injected(Layer(KILL, at, share=share)):
            base.train(folder, mode="release", note=note)

    def call() -> bool:
        survived(work)
        done, spent = taken.stat().st_size, _spent(folder)
        if spent < done:
            return False
        try:
            base.train(folder, mode="release", note=note)
        except ResumeRefused:
            return spent > 0
        return taken.stat().st_size <= base.STEPS == _spent(folder)

    return Case(call, right=True, parts=True)


@fault("two runs in one folder", seconds=20)
def _(t: Trial) -> Case:
    folder = t.copy(base.kept())
    lock = Lock(folder / "ledger.jsonl.lock", "ledger.jsonl", busy=LedgerInUse)
    t.note(os.getpid())
    return Case(lambda: (base.train(folder), lock.release()), watch=(folder,))
