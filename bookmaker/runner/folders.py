"""Folders of files that a command makes: whole as it made them, or as they were, whenever it is killed."""

import contextlib
import ctypes
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from bookmaker.runner import _scratch
from privhelpers.errors import InvalidParameter

AT_FDCWD, RENAME_EXCHANGE = -100, 2  # linux/fcntl.h, linux/fs.h


def _exchange(new: Path, old: Path) -> None:
    """Let two folders change places in one step; where the system knows none, in two."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    names = os.fsencode(new), os.fsencode(old)
    if rename is None or rename(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE):
        aside = old.rename(f"{new}-old")
        try:
            new.rename(old)
        except OSError:
            aside.rename(old)
            raise


@contextlib.contextmanager
def replacing(folder: Path, *made: str) -> Iterator[Path]:
    """Yield a folder beside `folder` that takes its place once the body is over, and goes if that raises.

    What a killed command left beside it is removed.

    Args:
        folder: where the files belong, made if it is missing.
        made: patterns of what an earlier command made and this one makes anew, from `folder` on; all else
            that lies there, such as a user's own files, is in the new folder, too.

    Raises:
        InvalidParameter: there is something else than a folder that can be written to.
    """
    there = os.path.lexists(folder)
    if there and (folder.is_symlink() or not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK)):
        raise InvalidParameter(
            f"{folder.name}: a link, a file or a folder that cannot be written to lies there; move it away"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _scratch.made(folder.parent, f".part-{folder.name}-") as beside:
        new = beside / folder.name
        if there:
            gone = {path for pattern in made for path in folder.glob(pattern)}
            shutil.copytree(
                folder, new, symlinks=True, ignore=lambda at, all_: [n for n in all_ if Path(at, n) in gone]
            )
        else:
            new.mkdir()
        yield new
        if there:
            _exchange(new, folder)
        else:
            new.rename(folder)
