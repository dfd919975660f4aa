"""What a person sees of the chain: one line per run."""

import io
import os
import sys
from pathlib import Path


def say(profile: str, text: str) -> None:
    """Print one line of progress on stderr."""
    message(f"[{profile}] {text}")


def message(line: str) -> None:
    """Print a line on stderr; that nobody reads it any more, or that it cannot be written, stops nothing."""
    try:
        sys.stderr.write(f"{line}\n")  # one write: lines of parallel runs do not mix
        sys.stderr.flush()
    except OSError:
        sys.stderr = Path(os.devnull).open("w")  # noqa: SIM115 - until the end, which else fails as well


def any_terminal() -> None:
    """Let both streams show every character, whatever their encoding: one that they lack by its number."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def duration(seconds: float) -> str:
    """Return seconds as short words."""
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
