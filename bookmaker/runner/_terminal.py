"""Progress bars, where there is a terminal."""

import os
import sys
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
