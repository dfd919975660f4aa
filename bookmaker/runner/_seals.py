"""Which files there are, with their hashes, and what differs from those on record."""

from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath

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
        DamagedArtifact: one of them is a link, or no file, such as a pipe.
    """
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder)
        if not hidden and any(part.startswith(".") for part in name.parts):
            continue
        if file.is_symlink() or not (file.is_file() or file.is_dir()):
            kind = "a link" if file.is_symlink() else "no file"
            raise DamagedArtifact(f"{inert(name.as_posix()[:200])}: is {kind}; a result is a plain file")
        if not file.is_dir():
            yield name.as_posix(), file


def hashes(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of every artifact of the run in `folder`, by relative name.

    Raises:
        DamagedArtifact: a file has no seal, or other bytes than its seal says, or is a link; or a seal is of
            no file, or of another seal.
    """
    files = dict(files_below(folder))
    sealed = {name for name in files if not name.endswith(SEAL)}
    for name in sorted(files.keys() - sealed):
        file = name.removesuffix(SEAL)
        if file not in files:
            raise DamagedArtifact(f"{inert(file)} is gone, and its seal is there")
        if file not in sealed:
            raise DamagedArtifact(f"{inert(name)} was added: a seal has none")
    return {name: check_seal(files[name], name) for name in sorted(sealed - {RECORD})}


def strays(artifacts: Path, folders: Collection[str]) -> list[str]:
    """Return in words what lies among the artifacts of a profile, and in no folder of a run.

    A folder of such files is named once, by its highest place: a run that was killed, and that the profile no
    longer has, leaves one.

    Args:
        artifacts: of the profile.
        folders: of its runs, by their names there; a folder with a record is one of an earlier plan's.
    """
    runs = {PurePosixPath(folder) for folder in folders}
    runs |= {PurePosixPath(record.parent.relative_to(artifacts)) for record in artifacts.rglob(RECORD)}
    ways = {folder for run in runs for folder in run.parents}  # to the runs
    found = {}  # a dict keeps the order
    try:
        for name, _ in files_below(artifacts):
            file = PurePosixPath(name)
            if runs.isdisjoint(file.parents):
                places = (*reversed(file.parents[:-1]), file)
                stray = inert(str(next(place for place in places if place not in ways))[:200])
                found[f"artifacts/{stray} belongs to no run: remove it"] = None
    except DamagedArtifact as error:
        found[f"artifacts/{error}"] = None
    return list(found)


def read(path: Path) -> bytes:
    """Return a mark, a seal, a list or a manifest, of `MOST_BYTES` at most.

    Raises:
        DamagedArtifact: it is gone, or cannot be read; the message names it.
    """
    try:
        return read_bounded(path, MOST_BYTES)
    except FileNotFoundError as error:
        raise DamagedArtifact(f"{path.name} is gone") from error
    except OSError as error:
        raise DamagedArtifact(f"{path.name} cannot be read ({error.strerror})") from error


def listed(path: Path) -> dict[str, str]:
    """Return the hash of each name in a list of the format of `sha256sum -c`; errors are those of `read`."""
    lines = read(path).decode("utf-8", "replace").split("\n")
    return {line[66:]: line[:64] for line in lines if line}
