"""Reading a file that may come from outside, and writing one that a crash does not leave half written."""

import errno
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from privhelpers.errors import ArtifactUnavailable, PrivHelpersError


@contextmanager
def open_regular_file(path: Path) -> Iterator[BinaryIO]:
    """Open a file to read it: never a device, and never waiting for a pipe.

    Raises:
        OSError: it cannot be read, or is not a regular file.
    """
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        yield file


def read_bounded(path: Path, most: int) -> bytes:
    """Return the bytes, `most` or fewer, of a file that may come from outside.

    Raises:
        OSError: it cannot be read, is not a regular file, or is larger; `strerror` states which.
    """
    with open_regular_file(path) as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes")
    return data


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise ArtifactUnavailable for an OSError of the block; the message names the file alone.

    Raises:
        ArtifactUnavailable: the disk is full, fails or may not be written to.
    """
    try:
        yield
    except PrivHelpersError:
        raise
    except OSError as error:
        raise ArtifactUnavailable(error.errno, f"{path.name}: {error.strerror or error}") from error


def _link_new(temporary: Path, path: Path) -> None:
    """Move a file to a path that does not exist."""
    try:
        path.hardlink_to(temporary)
        temporary.unlink()
    except FileExistsError as error:
        raise FileExistsError(
            error.errno, "appeared meanwhile, and is kept as it is; name a new file"
        ) from None
    except OSError:  # of a file system without links
        path.open("xb").close()
        temporary.replace(path)


def write_atomic(path: Path, data: bytes, *, new: bool = False) -> None:
    """Put `data` at `path` so that a reader, or a crash, sees the old bytes or the new ones.

    Args:
        path: of the file.
        data: its new content.
        new: refuse if the path exists.

    Raises:
        ArtifactUnavailable: the system refuses to; the old bytes are there.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".part-")
        try:
            with os.fdopen(handle, "wb") as out:
                out.write(data)
                out.flush()
                os.fsync(out.fileno())
            Path(temporary).chmod(0o644)
            if new:
                _link_new(Path(temporary), path)
            else:
                Path(temporary).replace(path)
        except BaseException:
            with suppress(OSError):  # a second error would hide the first
                Path(temporary).unlink(missing_ok=True)
            raise
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)  # the new name is on the device too
        finally:
            os.close(folder)
