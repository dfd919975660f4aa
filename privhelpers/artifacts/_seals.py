"""The hash next to each file: it is written after the file and checked on every read."""

import hashlib
from pathlib import Path

from privhelpers.artifacts._files import open_regular_file, read_bounded, write_atomic, writing
from privhelpers.errors import DamagedArtifact
from privhelpers.text import inert

SEAL, _LONGEST_SEAL = ".sha256", 1000  # bytes


def sha256_of(path: Path) -> str:
    """Return the hexadecimal SHA-256 of the bytes of a regular file."""
    with open_regular_file(path) as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def seal_of(path: Path) -> Path:
    """Return the file next to `path` that contains its hash."""
    return path.with_name(path.name + SEAL)


def write_seal(path: Path, digest: str) -> None:
    """Write the hash of a file next to it."""
    write_atomic(seal_of(path), f"{digest}  {path.name}\n".encode())


def write_sealed(path: Path, data: bytes) -> None:
    """Write a file and its hash.

    A file that is replaced loses its seal first: a kill in between leaves a file without a seal, which counts
    as missing, and never new bytes under an old hash, or old bytes under a new one, which count as damaged.
    """
    with writing(path):
        seal_of(path).unlink(missing_ok=True)
    write_atomic(path, data)
    write_seal(path, hashlib.sha256(data).hexdigest())


def check_seal(path: Path, name: str, digest: str | None = None) -> str:
    """Return the SHA-256 of a file, which is the one in its seal.

    Args:
        path: the file.
        name: what a message calls it.
        digest: of the file's bytes, if they were read already.

    Raises:
        DamagedArtifact: the file has other bytes, or no seal that can be read.
    """
    try:
        sealed = read_bounded(seal_of(path), _LONGEST_SEAL).split()[:1]
    except OSError as error:
        raise DamagedArtifact(f"{name}: has no {SEAL} next to it") from error
    try:
        digest = digest or sha256_of(path)
    except OSError as error:
        raise DamagedArtifact(f"{name}: cannot be read ({error.strerror})") from error
    if sealed != [digest.encode()]:
        raise DamagedArtifact(f"{name}: its bytes changed after they were written")
    return digest


def read_sealed(path: Path, name: str, most: int) -> bytes:
    """Return the bytes of a file, `most` or fewer, which are those that its seal was made for.

    Args:
        path: the file.
        name: what a message calls it.
        most: bytes.

    Raises:
        DamagedArtifact: the file has other bytes, or more, or no seal that can be read.
    """
    try:
        data = read_bounded(path, most)
    except OSError as error:
        raise DamagedArtifact(f"{name}: cannot be read ({error.strerror})") from error
    check_seal(path, name, hashlib.sha256(data).hexdigest())
    return data


def first_difference(recorded: dict[str, str], present: dict[str, str]) -> str:
    """Return the first file whose hash differs between the two, with what became of it, or ""."""
    for name in sorted(recorded.keys() | present.keys()):
        if name not in present:
            return f"{inert(name[:200])} is gone"
        if name not in recorded:
            return f"{inert(name[:200])} was added"
        if present[name] != recorded[name]:
            return f"{inert(name[:200])} changed"
    return ""
