"""The end of every process below this one, and of this one after them."""

import os
import signal
import socket
import threading
from contextlib import suppress

import psutil


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
    kill_children()
    os._exit(128 + number)


def end_with(connection: socket.socket) -> None:
    """End this process, and all below it, as soon as the other end of a connection is closed."""

    def watch() -> None:
        with suppress(OSError):
            connection.recv(1)
        end(signal.SIGTERM)

    threading.Thread(target=watch, daemon=True, name="connection-watch").start()
