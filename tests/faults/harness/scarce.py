"""Memory that runs out: at a call of ours that chance chose, or for everything from one moment on."""

import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

import psutil
from faults.harness.report import ROOT

OURS = tuple(f"{ROOT}/{package}/" for package in ("privhelpers", "bookmaker"))
# They give back: none of them asks for memory.
FREEING = {"__exit__", "close", "release", "unlink", "pop_all"}


class Exhausted:
    """Counts the calls that code of ours makes from now on, and raises MemoryError in the place of one.

    Attributes:
        count: calls so far.
        at: number of the one that is not made, from 1; 0: none.
        within: beginnings of the names of files whose calls count.
    """

    def __init__(self, at: int = 0, within: tuple[str, ...] = OURS) -> None:
        self.count, self.at, self.within = 0, at, within

    def __enter__(self) -> "Exhausted":
        """Begin to count."""
        sys.setprofile(self._event)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop counting."""
        sys.setprofile(None)

    def _event(self, frame: FrameType, event: str, function: Callable | None) -> None:
        if event == "call":
            caller, name = frame.f_back, frame.f_code.co_name
        elif event == "c_call":
            caller, name = frame, function.__name__
        else:
            return
        if caller and caller.f_code.co_filename.startswith(self.within) and name not in FREEING:
            self.count += 1
            if self.count == self.at:
                sys.setprofile(None)
                raise MemoryError("on purpose")


@contextmanager
def bounded(more: int) -> Iterator[None]:
    """Let this process take no more than so many bytes of addresses beyond what it has."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    limit = psutil.Process().memory_info().vms + more
    resource.setrlimit(resource.RLIMIT_AS, (min(limit, before[1]) if before[1] > 0 else limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
