"""What the system refuses, in words: where, and what helps."""

import contextlib
import errno
from pathlib import Path

from privhelpers.artifacts import repository_root
from privhelpers.text import quoted

CURES = dict.fromkeys(
    (errno.EROFS, errno.EACCES, errno.EPERM), "let it be read and written, or work in a copy of your own"
)
CURES |= {errno.ENOSPC: "make room", errno.EDQUOT: "make room", errno.ENOENT: "put it back, or install it"}
CURE = "make room or move it away"


def named(place: Path) -> str:
    """Return a place for a message: from the repository on, or its name alone where it lies elsewhere."""
    shown = place.name if place.is_absolute() else place.as_posix()
    with contextlib.suppress(FileNotFoundError):  # the package is installed, and used elsewhere
        root = repository_root(place.parent)
        shown = place.relative_to(root).as_posix() if place.is_relative_to(root) else shown
    return quoted(shown)


def worded(place: Path, error: OSError) -> str:
    """Return what the system refused at a place, and what helps."""
    return f"{named(place)}: {error.strerror or error}; {CURES.get(error.errno, CURE)}"


def told(error: Exception) -> str:
    """Return what an error says; where it is the system's, by its place, and with what helps."""
    number = getattr(error, "errno", None)
    if number and isinstance(error.filename, str):
        return worded(Path(error.filename), error)
    # What could not be written has its name in its words.
    return f"{error.strerror}; {CURES[number]}" if number in CURES else str(error)
