"""Nothing may outlive the command that started it, and two builds may not share a profile.

A killed `make` cannot clean up after itself, so every process below it watches its parent: Linux sends
a signal when the parent dies, and elsewhere a thread that polls the parent's id does the same.
"""

import functools
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bookmaker.runner import _children
from bookmaker.runner._children import end
from privhelpers import processes as locks
from privhelpers.errors import RunFailed

POLL_SECONDS = 0.5
PARENT = "BOOKMAKER_PARENT"  # environment variable: the process that started this one


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(POLL_SECONDS)
    end(signal.SIGKILL)


@functools.cache
def _parent(_pid: int) -> int:
    """Return who started this process, as that one says; by itself, it may have been given to another."""
    return int(given) if (given := os.environ.get(PARENT, "")).isdecimal() else os.getppid()


def die_with_parent(*, clean: bool) -> None:
    """End this process, and all below it, as soon as its parent is gone; a SIGTERM ends them as well.

    A parent that was killed while this process was starting is not its parent any more. That is why it hands
    down its number in the environment, as this process does to those that it starts itself.

    Args:
        clean: on Linux, let a dying parent send SIGTERM, which is handled by killing the children first
            (for a process whose children, as kernels do, live in a session of their own); otherwise
            SIGKILL, and the children's own watch ends them.
    """
    parent = _children.parent = _parent(os.getpid())
    os.environ[PARENT] = str(os.getpid())
    signal.signal(signal.SIGTERM, end)
    if sys.platform == "linux":
        number = signal.SIGTERM if clean else signal.SIGKILL
        _children.prctl(_children.PR_SET_PDEATHSIG, number)
        if os.getppid() != parent:  # it died before the line above
            end(number)
    else:
        threading.Thread(target=_watch, args=(parent,), daemon=True, name="parent-watch").start()


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
    lock = locks.Lock(path, what, busy=RunFailed, wait=wait)
    try:
        yield
    finally:
        lock.release()
