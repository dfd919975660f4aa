"""Folders of files that a command makes: whole as it made them, or as they were, whenever it is killed.

Where the system cannot exchange two folders, a kill between the steps may leave none, or a part; the next
such command puts it back first.
"""

import contextlib
import ctypes
import errno
import glob
import os
import shutil
from collections.abc import Collection, Iterator, Set
from pathlib import Path

from bookmaker.runner import _scratch
from privaudit import console
from privhelpers.errors import ArtifactUnavailable, InvalidParameter

AT_FDCWD, RENAME_EXCHANGE = -100, 2  # linux/fcntl.h, linux/fs.h
NEW, OLD = "new", "old"  # names of both folders while one takes the place of the other


@contextlib.contextmanager
def _refusing(place: Path) -> Iterator[None]:
    """Turn what the system refuses meanwhile into an error of ours that names the place."""
    try:
        yield
    except ArtifactUnavailable:
        raise
    except OSError as error:
        raise ArtifactUnavailable(console.worded(place, error)) from error


def _check(folder: Path, made: Collection[str]) -> None:
    """Refuse what is no folder of its own in the place of one, or on the way to a pattern."""
    for place in (folder, *(folder / way for pattern in made for way in Path(pattern).parents[:-1])):
        fit = place.is_dir() and not place.is_symlink() and os.access(place, os.R_OK | os.W_OK | os.X_OK)
        if os.path.lexists(place) and not fit:
            raise InvalidParameter(
                f"{console.named(place)}: a link, a file or a read-only folder lies there; move it away"
            )


def _fill(new: Path, old: Path, gone: Set[Path] = frozenset()) -> None:
    """Give a folder what it lacks of another, but not what is gone: the very files, or else copies."""
    new.mkdir(exist_ok=True)
    for path in sorted({*old.iterdir()} - gone):
        kept = new / path.name
        with _refusing(path), contextlib.suppress(FileNotFoundError):  # one that a user removes just now
            if path.is_dir() and not path.is_symlink():
                _fill(kept, path, gone)
            elif not os.path.lexists(kept):
                try:
                    os.link(path, kept, follow_symlinks=False)
                except OSError:  # of a file system without links, or another user's
                    shutil.copy2(path, kept, follow_symlinks=False)
    shutil.copystat(old, new)


def _unlock(place: Path) -> None:
    """Let a folder be removed, whatever in it may not be written to."""
    with contextlib.suppress(OSError):  # another user's
        if place.is_dir() and not place.is_symlink():
            place.chmod(place.stat().st_mode | 0o700)
            for path in place.iterdir():
                _unlock(path)


def _exchange(new: Path, folder: Path) -> None:
    """Let two folders change places in one step, or in several: a kill leaves the old one aside."""
    rename = getattr(ctypes.CDLL(None), "renameat2", None)
    names = os.fsencode(new), os.fsencode(folder)
    if rename is None or rename(AT_FDCWD, names[0], AT_FDCWD, names[1], RENAME_EXCHANGE):
        aside = new.with_name(OLD)
        try:
            try:
                folder.rename(aside)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                _fill(aside, folder)  # an overlay renames no folder of a lower layer
                _unlock(folder)
                shutil.rmtree(folder)
            new.rename(folder)
        except OSError:
            if aside.is_dir():
                _fill(folder, aside)
            raise


@contextlib.contextmanager
def replacing(folder: Path, *made: str) -> Iterator[Path]:
    """Yield an empty folder that takes the place of `folder` once the body is over, and goes if that raises.

    What a killed command left beside it is removed.

    Args:
        folder: where the files belong, made if it is missing.
        made: patterns of what an earlier command made and this one makes anew, from `folder` on; all else
            that lies there after the body, such as a user's own files, stays, but for files that it made.

    Raises:
        InvalidParameter: there, or on the way to a pattern, is something else than a folder that can be
            read and written to; this is asked before the body, and again after it.
        ArtifactUnavailable: the system refuses something, as to keep a user's file; what lay there stays.
    """
    prefix = f".part-{folder.name}~"  # no name of a profile has that sign
    with contextlib.ExitStack() as stack:
        with _refusing(folder):
            _check(folder, made)
            for left in folder.parent.glob(f"{glob.escape(prefix)}*"):
                if os.path.lexists(left / NEW) and (left / OLD).is_dir():  # killed in an exchange
                    _fill(folder, left / OLD)
                _unlock(left)
            beside = stack.enter_context(_scratch.made(folder.parent, prefix))
            stack.callback(_unlock, beside)
            new = beside / NEW
            new.mkdir()
        yield new
        with _refusing(folder):
            _check(folder, made)
            if folder.exists():
                _fill(new, folder, {path for pattern in made for path in folder.glob(pattern)})
                os.utime(new)  # it did change
                _exchange(new, folder)
            else:
                new.rename(folder)
