"""Names that are safe in a path, and the folder of the book."""

import re
from pathlib import Path

from privhelpers.errors import InvalidParameter, MissingArtifact
from privhelpers.validate import shown

NAME = re.compile(r"[a-z0-9][a-z0-9_.-]{0,62}")


def check_name(name: str) -> str:
    """Return `name` if it is safe as a file, run or profile name, and refuse it otherwise."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise InvalidParameter(
            f"name {shown(name)}: use 1 to 63 of a-z, 0-9, '-', '_' and '.', starting with a letter or digit"
        )
    return name


def check_parts(name: str) -> None:
    """Refuse a relative path in which a part is not a safe name."""
    for part in name.split("/") if isinstance(name, str) else [name]:
        check_name(part)


def repository_root(start: Path | None = None) -> Path:
    """Return the copy of the book around `start` (default: where we are), or else the one of this package.

    Raises:
        MissingArtifact: neither is in a copy of the book.
    """
    here = (start or Path.cwd()).resolve()
    package = Path(__file__).resolve().parents[2]
    for folder in (here, *here.parents, package):
        if (folder / "_toc.yml").exists() and (folder / "privhelpers").is_dir():
            return folder
    raise MissingArtifact(f"{here.name}: not inside a copy of the book (no _toc.yml above it)")


def is_there(place: str | Path) -> bool:
    """Return whether a path exists; False for an invalid name."""
    try:
        return Path(place).exists()
    except (OSError, ValueError):
        return False
