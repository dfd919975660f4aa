"""The door of two at once: builds, sweeps, private runs and writers of a ledger that begin together.

One ends right; the other ends right after it, or is refused by name.
"""

import contextlib
import io
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from faults.harness import base, sweeps
from faults.harness.beside import Beside
from faults.harness.layer import SLOW, Layer, injected
from faults.harness.registry import Case, Trial, fault

from bookmaker.runner import build, processes
from bookmaker.sweep import __main__ as sweep
from bookmaker.sweep import _grid
from privhelpers.artifacts import write_atomic
from privhelpers.errors import LedgerInUse, PrivHelpersError, RunFailed
from privhelpers.ledger import open_ledger, read_ledger

KILLED = "killed"
HOLDERS = ("process ", "another process: ")


def _milliseconds(t: Trial, most: int) -> float:
    """Return a drawn time in seconds."""
    return t.below(most) / 1000


def both(works: list[Callable[[], object]], later: float, busy: type[PrivHelpersError]) -> list[object]:
    """Begin two works and return what they return; `busy` where that refused one, `KILLED` for a killed one.

    Args:
        works: each for a child of its own.
        later: seconds after which the second begins.
        busy: the refusal of who comes too late.
    """

    def late() -> object:
        time.sleep(later)
        return works[1]()

    children, ended, wrong = [Beside(works[0]), Beside(late)], [], []
    for child in children:  # none of which outlives the trial
        try:
            ended.append(child.result())
        except busy as error:
            # Which process holds a lock stands in it a moment after it was taken.
            if "\n" in str(error) or not any(f"in use by {who}" in str(error) for who in HOLDERS):
                wrong.append(RuntimeError(f"a refusal that says nothing of a holder: {error}"))
            ended.append(busy)
        except ChildProcessError:
            ended.append(KILLED)
        except Exception as error:
            wrong.append(error)
    if wrong:
        raise wrong[0]
    if all(one is busy for one in ended):
        raise RuntimeError("both are refused")
    return ended


def _note(log: Path, word: str) -> None:
    with open(log, "ab", buffering=0) as out:
        out.write(f"{word}\n".encode())


def alternating(log: Path) -> bool:
    """Return whether each `in` of a log is followed by the `out`, or the end, of the same work."""
    held = None
    for word, who in (line.split() for line in log.read_text().splitlines()):
        if word == "in" and held is None:
            held = who
        elif word in ("out", KILLED) and held == who:
            held = None
        else:
            return False
    return held is None


@fault("two builds that want one profile")
def _(t: Trial) -> Case:
    """Or sweeps, which may name their profiles in another order; one may be killed while it builds."""
    (root := t.place / "root").mkdir()
    log, table = t.place / "log", root / "runs" / "toy" / "table.json"
    log.touch()
    wanted = [t.choose((["toy"], ["toy", "other"], ["other", "toy"])) for _ in range(2)]
    later, holds = _milliseconds(t, 40), [_milliseconds(t, 40) for _ in range(2)]
    killed, pause = t.below(6), _milliseconds(t, 10)

    def work(number: int) -> str:
        with injected(Layer(SLOW, 1, lasting=True, pause=pause)), build.alone(root, wanted[number]):
            _note(log, f"in {number}")
            write_atomic(table, b"%d" % number)
            time.sleep(holds[number])
            if killed == number:
                _note(log, f"{KILLED} {number}")
                os.kill(os.getpid(), signal.SIGKILL)
            _note(log, f"out {number}")
        return "built"

    def call() -> bool:
        both([lambda: work(0), lambda: work(1)], later, RunFailed)
        last = log.read_text().split()[-1]
        with build.alone(root, wanted[0]):
            return alternating(log) and table.read_text() == last

    return Case(call, right=True, refusal=False)


def _grids(t: Trial) -> list[list[str]]:
    """Return the words of two sweeps that share a name, a cell or both."""
    names, seeds = ("toy", "more"), ("0", "0 1", "1 0")
    return [
        [
            *("--profile=toy", "--architectures=tiny", f"--name={t.choose(names)}"),
            *(f"--seeds={t.choose(seeds)}", f"--epsilons={budget}"),
        ]
        for budget in ("1", "8")
    ]


@fault("two sweeps of one name or one cell", seconds=10)
def _(t: Trial) -> Case:
    """What runs are made from is the profile that their own sweep wrote, to the end of its chain."""
    root, log = sweeps._root(t), t.place / "log"
    log.touch()
    asked, later, hold = _grids(t), _milliseconds(t, 200), _milliseconds(t, 100)
    profile, cells = (
        root / "runs/toy-tiny-s0/profile.yml",
        _grid.cells("toy", architectures=["tiny"], seeds=[0]),
    )
    right = [
        _grid.files(root, cells, epsilons=[budget])["runs/toy-tiny-s0/profile.yml"] for budget in (1.0, 8.0)
    ]
    sweep.repository_root = lambda: root
    processes.die_with_parent = lambda **_: None

    def work(number: int) -> bool:
        def chain(*_: object, **__: object) -> int:
            _note(log, f"in {number}")
            before = profile.read_bytes()
            time.sleep(hold)
            if {before, profile.read_bytes()} != {right[number]}:
                raise RuntimeError("the profile is that of the other sweep")
            _note(log, f"out {number}")
            return 3  # no table is to be made of runs that nobody made

        build.chain, said = chain, io.StringIO()
        with contextlib.redirect_stderr(said), contextlib.redirect_stdout(said):
            code = sweep.main(asked[number])
        if code == 3:
            return True
        if code == 1 and said.getvalue().startswith("failed: ") and said.getvalue().count("\n") == 1:
            raise RunFailed(said.getvalue().strip())
        raise RuntimeError(f"exit code {code}: {said.getvalue()}")

    def call() -> bool:
        both([lambda: work(0), lambda: work(1)], later, RunFailed)
        last = int(log.read_text().split()[-1])
        return alternating(log) and profile.read_bytes() == right[last]

    return Case(call, right=True, refusal=False)


@fault("two runs that begin in one folder", seconds=20)
def _(t: Trial) -> Case:
    folder, later = t.place / "kept", _milliseconds(t, 1500)
    if t.below(2):
        t.copy(base.kept())
    pause = _milliseconds(t, 4)

    def work() -> str:
        with injected(Layer(SLOW, 1, lasting=True, pause=pause)):
            return base.train(folder)[0]

    def call() -> tuple[set[str], int, str]:
        ended = both([work, work], later, LedgerInUse)
        spent = read_ledger(folder / "ledger.jsonl").steps
        return {one for one in ended if one is not LedgerInUse}, spent, base.train(folder)[0]

    return Case(call, right=({base.whole()}, base.STEPS, base.whole()), refusal=False)


@fault("two writers of one ledger on a slow disk")
def _(t: Trial) -> Case:
    fresh = bool(t.below(2))
    path = t.place / "ledger.jsonl" if fresh else t.copy(base.ledger())
    before, later, pause = 0 if fresh else 15, _milliseconds(t, 60), _milliseconds(t, 15)

    def work() -> int:
        with injected(Layer(SLOW, 1, lasting=True, pause=pause)), open_ledger(path, base.terms()) as opened:
            for _ in range(2):
                opened.reserve(4)
        return 8

    def call() -> bool:
        ended = both([work, work], later, LedgerInUse)
        counted = before + sum(one for one in ended if one is not LedgerInUse)
        with open_ledger(path, base.terms()) as again:
            return read_ledger(path).steps == again.steps == counted

    return Case(call, right=True, refusal=False)
