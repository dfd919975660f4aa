"""Which files there are, with their hashes, and what differs from those on record."""

from collections.abc import Iterator
from pathlib import Path

from privhelpers.artifacts import SEAL, check_seal, read_bounded
from privhelpers.errors import DamagedArtifact
from privhelpers.text import inert

MOST_BYTES = 10_000_000  # of a list of hashes, and of a record, a manifest or a summary
RECORD = "run.json"  # of a run, among its artifacts


def files_below(folder: Path, *, hidden: bool = False) -> Iterator[tuple[str, Path]]:
    """Yield every file below `folder` with its name there, sorted; hidden files are the system's, not ours.

    Args:
        folder: where to look.
        hidden: yield those, too, for whoever uploads the folder uploads them.

    Raises:
        DamagedArtifact: one of them is a link.
    """
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder)
        if not hidden and any(part.startswith(".") for part in name.parts):
            continue
        if file.is_symlink():
            raise DamagedArtifact(f"{name.as_posix()}: is a link; a result is a plain file")
        if not file.is_dir():
            yield name.as_posix(), file


def hashes(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every artifact of the run in `folder`, by relative name.

    Raises:
        DamagedArtifact: a file has no seal, or other bytes than its seal says, or is a link.
    """
    digests = {}
    for name, file in files_below(folder):
        if file.suffix == SEAL:
            if not file.with_suffix("").exists():
                raise DamagedArtifact(f"{name.removesuffix(SEAL)} is gone, and its seal is there")
        elif name != RECORD:
            digests[name] = check_seal(file, name)
    return digests


def listed(path: Path) -> dict[str, str]:
    """Return the hash of each name in a list of the format of `sha256sum -c`."""
    lines = read_bounded(path, MOST_BYTES).decode("utf-8", "replace").split("\n")
    return {line[66:]: line[:64] for line in lines if line}


def difference(recorded: dict[str, str], present: dict[str, str]) -> str:
    """Return the first file whose hash differs between the two, with what became of it, or ""."""
    for name in sorted(recorded.keys() | present.keys()):
        if name not in present:
            return f"{inert(name)} is gone"
        if name not in recorded:
            return f"{inert(name)} was added"
        if present[name] != recorded[name]:
            return f"{inert(name)} changed"
    return ""
