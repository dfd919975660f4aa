"""What every command has: options as make passes them, a profile to itself, and no life after its parent."""

import argparse
import ctypes
import math
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from privhelpers.errors import RunFailed
from privhelpers.processes import Lock
from privhelpers.validate import shown

MOST_HOURS = 30 * 24.0
PR_SET_PDEATHSIG = 1  # linux/prctl.h


def _number(text: str, kind: Callable[[str], float], least: float, most: float, words: str) -> Any:
    try:
        number = kind(text)
    except ValueError:
        number = math.nan
    if not least <= number <= most:
        raise argparse.ArgumentTypeError(f"{shown(text)}: must be {words}")
    return number


def count(text: str) -> int | None:
    """Return a whole number of 1 or more, or None for an empty text, as make passes what is not given."""
    return _number(text, int, 1, math.inf, "a whole number of 1 or more") if text else None


def port(text: str) -> int:
    """Return a port of this machine, 8000 for an empty text."""
    return _number(text or "8000", int, 1, 65535, "a whole number in 1 to 65535")


def hours(text: str) -> float:
    """Return the hours that a cell may take, 24 for an empty text."""
    return _number(text or "24", float, 1e-6, MOST_HOURS, f"hours of a cell, in (0, {MOST_HOURS:g}]")


def words(kind: Callable[[str], Any]) -> Callable[[str], list[Any]]:
    """Return what reads values of a kind with blanks between, such as "0 1"; an empty text has none."""

    def read(text: str) -> list[Any]:
        try:
            return [kind(word) for word in text.split()]
        except ValueError:
            raise argparse.ArgumentTypeError(f"{shown(text)}: must be numbers, with blanks between") from None

    return read


def die_with_parent() -> None:
    """Let Linux kill this process when its parent ends; elsewhere do nothing.

    make, the build, Snakemake, and each run form a chain of parents; a kernel watches its run by itself.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


@contextmanager
def exclusive(path: Path, what: str, *, wait: float = 0.0) -> Iterator[None]:
    """Hold the lock file `path`.

    Args:
        path: the lock file.
        what: what is locked, for the message.
        wait: seconds to wait for a holder that is about to end.

    Raises:
        RunFailed: another process holds it; the message says which and since when.
    """
    lock = Lock(path, what, busy=RunFailed, wait=wait)
    try:
        yield
    finally:
        lock.release()
