"""Progress bars, where there is a terminal, and messages, whoever reads them."""

import io
import os
import sys
from pathlib import Path
from typing import TextIO


def terminal() -> TextIO | None:
    """Return where progress bars go: a terminal, or anywhere that PRIVHELPERS_PROGRESS=1 asks for them."""
    wanted = sys.stderr.isatty() or os.environ.get("PRIVHELPERS_PROGRESS") == "1"
    return sys.stderr if wanted else None


class Tee:
    """A log that is copied to the terminal, if there is one."""

    def __init__(self, log: TextIO, copy: TextIO | None = None) -> None:
        """Write to `log` and, where given, to `copy`."""
        self.streams = [log, copy] if copy else [log]

    def write(self, text: str) -> None:
        """Write to every stream."""
        for stream in self.streams:
            stream.write(text)

    def flush(self) -> None:
        """Flush every stream."""
        for stream in self.streams:
            stream.flush()


def message(line: str) -> None:
    """Print a line on stderr; that nobody reads it any more, or that it cannot be written, stops nothing."""
    try:
        sys.stderr.write(f"{line}\n")  # one write: lines of parallel runs do not mix
        sys.stderr.flush()
    except OSError:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - until the end, which else fails as well


def show_every_character() -> None:
    """Let both streams show every character, whatever their encoding: one that they lack by its number."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
