"""Limits on the time of a cell and of a run: what hangs is ended, and somebody reads where it hung.

with watched(job.title, cell=3600.0, run=10800.0) as watch:
    watch.begin("code cell 3")
    ...
    watch.done()
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bookmaker.runner import _children, _remaining
from bookmaker.runner.plan import Job
from privaudit.console import duration
from privhelpers.errors import InvalidParameter, RunFailed
from privhelpers.text import inert

HOURS = "BOOKMAKER_LIMIT"  # environment variable: hours of a cell; else from what the run took before
LEAST = 4 * 3600.0  # seconds of a cell, however short the run was: somebody may have asked for more since
UNKNOWN = 24 * 3600.0  # seconds of a cell, where nobody knows what the run takes
TIMES = 20  # a cell may take as many times what the whole run is expected to take
CELLS = 3  # a run may take as long as so many cells at their limit
MOST = 30 * 24.0  # hours
GRACE = 60.0  # seconds, for a run whose kernel was ended to say so


def hours(text: str) -> float | None:
    """Return a limit that somebody gave as hours, None where nobody did.

    Raises:
        InvalidParameter: it is no number of hours, or out of range.
    """
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 < value <= MOST:
        raise InvalidParameter(f"LIMIT={inert(text[:100])}: must be hours of a cell, in (0, {MOST:g}]")
    return value


def hand_down(text: str) -> None:
    """Let a limit that somebody gave hold for this process and all below it; "" changes nothing."""
    if hours(text):
        os.environ[HOURS] = text


def of(root: Path, job: Job) -> dict[str, float]:
    """Return the seconds that a cell and the whole run may take."""
    known = _remaining.expected(root, job.profile)
    expected = known.get(job.rule, known.get(job.slug))
    cell = UNKNOWN if expected is None else min(max(LEAST, TIMES * expected), MOST * 3600)
    if given := hours(os.environ.get(HOURS, "")):
        cell = given * 3600
    return {"cell": cell, "run": CELLS * cell}


class Watch:
    """Ends what runs below this process when a cell, or all of them, took too long.

    Attributes:
        broken: which limit was reached, and where; "" as long as none was.
    """

    def __init__(self, title: str, *, cell: float, run: float) -> None:
        """Begin to count the run called `title`; `cell` and `run` are seconds."""
        self.broken = ""
        self._title, self._cell, self._run = title, cell, run
        self._start = time.monotonic()
        self._where, self._begun = "", self._start
        self._changed, self._over = threading.Condition(), False

    def begin(self, where: str) -> None:
        """Begin to count a cell, by the name that a reader finds it by."""
        with self._changed:
            self._where, self._begun = where, time.monotonic()
            self._changed.notify()

    def done(self) -> None:
        """Note that the cell ended."""
        self.begin("")

    def over(self) -> None:
        """Note that the run ended."""
        with self._changed:
            self._over = True
            self._changed.notify()

    def _reached(self) -> str:
        """Return which limit is reached by now."""
        now = time.monotonic()
        if self._where and now - self._begun >= self._cell:
            return f"{self._where} ran for {duration(self._cell)}, the limit of a cell"
        if now - self._start >= self._run:
            where = f", in {self._where}" if self._where else ""
            return f"the run took {duration(self._run)}, its limit{where}"
        return ""

    def watch(self) -> None:
        """Wait for a limit or for the end of the run, whichever comes first."""
        with self._changed:
            while not self._over and not (reached := self._reached()):
                ends = [self._start + self._run] + [self._begun + self._cell] * bool(self._where)
                self._changed.wait(max(0.0, min(ends) - time.monotonic()))
            if self._over:
                return
            self.broken = f"{self._title}: {reached}; make book LIMIT=hours allows a cell more"
        _children.kill_children()
        with self._changed:
            if self._changed.wait_for(lambda: self._over, timeout=GRACE):
                return
        sys.stderr.write(f"failed: {self.broken}\n")
        _children.end(signal.SIGTERM)


@contextmanager
def watched(title: str, *, cell: float, run: float) -> Iterator[Watch]:
    """Watch a run, and end all processes below this one when a limit is reached.

    Args:
        title: of the run.
        cell: seconds that a cell may take.
        run: seconds that the block may take.

    Raises:
        RunFailed: a limit was reached; the message says which, and in which cell.
    """
    watch = Watch(title, cell=cell, run=run)
    threading.Thread(target=watch.watch, daemon=True, name="limits").start()
    try:
        yield watch
    except Exception as error:
        if watch.broken:
            raise RunFailed(watch.broken) from error
        raise
    finally:
        watch.over()
    if watch.broken:
        raise RunFailed(watch.broken)
