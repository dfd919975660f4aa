"""Temporary folders that nobody has to clean up after a kill.

Whoever makes one locks it for as long as it lives. A folder that nobody locks is of a process that was
killed, and the next one that looks removes it.
"""

import contextlib
import fcntl
import glob
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from privhelpers.processes import is_at

PREFIX = "book-"  # short: the path of a socket below it may have 100 characters
ALIVE, ENDING = 2.0, 60.0  # seconds to wait for a parent's folder, if the parent seems to live and if not
GONE = "-gone"  # added to the name of one that is being removed
_made: list[Path] = []  # by this process, the outermost first


def sweep(place: Path, prefix: str = PREFIX) -> None:
    """Remove the folders in `place` that killed processes of this user left; their names begin so."""
    for folder in place.glob(f"{glob.escape(prefix)}*"):
        with contextlib.suppress(OSError):  # gone, in use, a link, or of another user
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(descriptor).st_uid == os.geteuid() and is_at(folder, descriptor):
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(descriptor)


def leave(parent: int | None = None) -> None:
    """Remove what this process made, and what killed ones left beside it; for a process that ends at once.

    Args:
        parent: the process that started this one, where its end is a reason for this one's. Its folder goes
            too: it holds it until its last thread has ended, which may be after this process was told.
    """
    for folder in reversed(_made):
        # Other threads go on until the end; under the old name they find no place for anything more.
        with contextlib.suppress(OSError):
            shutil.rmtree(folder.rename(f"{folder}{GONE}"), ignore_errors=True)
    began = time.monotonic()
    for place in {folder.parent for folder in _made}:
        of_a_build = place.name.startswith(PREFIX)  # the folder of a run lies in that of its build
        sweep(place.parent if of_a_build else place)
        while of_a_build and parent and place.exists():
            if time.monotonic() - began > (ALIVE if os.getppid() == parent else ENDING):
                break
            time.sleep(0.02)
            sweep(place.parent)


@contextlib.contextmanager
def made(place: Path, prefix: str) -> Iterator[Path]:
    """Yield a new folder in `place`, whose name begins so, and remove it afterwards; see `sweep`.

    `place` and what it lacks above it are made too, and go again if nothing stays there.
    """
    missing = [above for above in (place, *place.parents) if not above.exists()]
    with contextlib.ExitStack() as undo:
        for above in reversed(missing):
            undo.callback(_remove_if_empty, above)
        yield undo.enter_context(_made_in(place, prefix))


def _remove_if_empty(folder: Path) -> None:
    with contextlib.suppress(OSError):
        folder.rmdir()


@contextlib.contextmanager
def _made_in(place: Path, prefix: str) -> Iterator[Path]:
    sweep(place, prefix)
    while True:
        place.mkdir(parents=True, exist_ok=True)
        try:
            folder = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue  # another process swept it away before it was locked, or the place with it
        with contextlib.suppress(OSError):  # a file system without locks: nobody can sweep there
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        if is_at(folder, descriptor):
            break
        os.close(descriptor)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


@contextlib.contextmanager
def scratch(place: Path | None = None) -> Iterator[Path]:
    """Yield a new folder, meanwhile the temporary one of this process and of those that it starts.

    Args:
        place: where it is made; None: in what is the temporary folder now.
    """
    outer, before = tempfile.gettempdir(), os.environ.get("TMPDIR")
    with made(place or Path(outer), PREFIX) as folder:
        _made.append(folder)
        tempfile.tempdir = os.environ["TMPDIR"] = str(folder)
        try:
            yield folder
        finally:
            tempfile.tempdir = outer
            os.environ.pop("TMPDIR", None)
            if before is not None:
                os.environ["TMPDIR"] = before
            _made.remove(folder)
