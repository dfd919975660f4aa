"""Which results a run read: a hash of those of every run before it, and whether they are still there."""

from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from bookmaker.runner import _seals
from privhelpers.artifacts import SEAL, parse_json, read_sealed, to_json
from privhelpers.errors import DamagedArtifact


def hashes(root: Path, inputs: Mapping[str, str]) -> dict[str, str]:
    """Return a hash of the results of each complete run, by rule, and of the seals in a folder of no run.

    It is one of their artifacts alone: whoever made the same files again, later or faster, changed nothing.

    Args:
        root: the repository.
        inputs: the runs' sentinels by rule, see `plan.Job.reads`.
    """
    found = {}
    for rule, sentinel in inputs.items():
        with suppress(DamagedArtifact, LookupError, TypeError):  # gone or damaged: that run says so itself
            if (root / sentinel).is_dir():
                seals = sorted((root / sentinel).rglob(f"*{SEAL}"))
                found[rule] = sha256(b"".join(map(_seals.read, seals))).hexdigest()
                continue
            done = parse_json(read_sealed(root / sentinel, sentinel, _seals.MOST_BYTES), sentinel)
            found[rule] = sha256(to_json(done["artifacts"])).hexdigest()
    return found


def misread(root: Path, inputs: Mapping[str, str], recorded: Mapping[str, str]) -> str:
    """Return in words where a run that recorded these hashes read other results than are there now, or ""."""
    for rule, digest in hashes(root, inputs).items():
        if rule not in recorded:
            return f"its record does not say which results of {rule} it read"
        if recorded[rule] != digest:
            return f"{rule} was made again since, with other results"
    return ""
