"""Where a command writes: a new path, and a folder that is written in one step."""

import os
import tempfile
from pathlib import Path

from privhelpers.artifacts import write_atomic
from privhelpers.errors import InvalidParameter, RunFailed
from privhelpers.text import quoted


def require_new_path(option: str, given: str | Path) -> Path:
    """Return a path that is free and can be made.

    Raises:
        InvalidParameter: it exists or cannot be made.
    """
    place, told = Path(given), f"{option}={quoted(given)}"
    try:
        place.lstat()
    except FileNotFoundError:
        above = next(folder for folder in place.absolute().parents if folder.exists())
        if str(given).isprintable() and above.is_dir() and os.access(above, os.W_OK | os.X_OK):
            return place
        problem = "its folder cannot be written to, or its name cannot be shown"
    except (OSError, ValueError) as error:
        problem = f"cannot be made ({error})"
    else:
        problem = "is there already; an old report is kept as it is"
    raise InvalidParameter(f"{told}: {problem}; name another one")


def publish(place: Path, files: dict[str, bytes]) -> Path:
    """Write a folder of files in one step, and return its path.

    Raises:
        RunFailed: the disk is full, or the path exists by now; it is left as it is.
    """
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(
            dir=place.parent, prefix=".part-audit-", ignore_cleanup_errors=True
        ) as part:
            for name, data in files.items():
                write_atomic(Path(part) / name, data)
            Path(part).chmod(0o755)
            return Path(part).rename(place)  # fails if the folder has files
    except OSError as error:
        raise RunFailed(
            f"{place}: could not be written ({error.strerror}); is the disk full, or does it exist?"
        ) from None
