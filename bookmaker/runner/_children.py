"""The end of every process below this one, and of this one after them."""

import ctypes
import os
import signal
import socket
import sys
import threading
from contextlib import suppress

import psutil

from bookmaker.runner import _scratch

_ending, _ends = threading.RLock(), False
parent: int | None = None  # of this process, where it must not outlive it
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # linux/prctl.h


def prctl(option: int, value: int) -> None:
    """Set an option of this process, on Linux; elsewhere do nothing."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(option, int(value), 0, 0, 0)


def adopt() -> None:
    """Become the parent of every process below whose own parent ends, so that `kill_children` finds it."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)


def kill_children() -> None:
    """Kill every process below this one, those that it starts meanwhile too."""
    for _ in range(3):
        children = psutil.Process().children(recursive=True)
        for child in children:
            try:
                child.kill()
            except psutil.NoSuchProcess:
                continue
        if not children:
            return
        psutil.wait_procs(children, timeout=0.5)


def end(number: int, _frame: object = None) -> None:
    """Kill every process below this one and end it, as the signal `number` would."""
    global _ends
    with _ending:  # a second reason to end waits for the first, or returns to it
        if _ends:
            return
        _ends = True
        kill_children()
        _scratch.leave(parent)
        os._exit(128 + number)


def end_with(connection: socket.socket) -> None:
    """End this process, and all below it, as soon as the other end of a connection is closed."""

    def watch() -> None:
        with suppress(OSError):
            connection.recv(1)
        end(signal.SIGTERM)

    threading.Thread(target=watch, daemon=True, name="connection-watch").start()
