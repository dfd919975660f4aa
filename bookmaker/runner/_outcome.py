"""What a run leaves behind: the hash of every file that it wrote and the versions that it ran under."""

import platform
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import privhelpers
from bookmaker.runner import _activity, processes
from bookmaker.runner.plan import Job
from privhelpers.artifacts import Store, sha256_of
from privhelpers.errors import RunFailed

PACKAGES = ("torch", "transformers", "opacus", "dp-accounting", "numpy")
SEAL = ".sha256"


def versions() -> dict[str, str]:
    """Return the versions that decide the numbers; no package is imported for it."""
    version_of = {"python": platform.python_version(), "privhelpers": privhelpers.__version__}
    for package in PACKAGES:
        try:
            version_of[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            version_of[package] = "not installed"
    return version_of


def hashes(folder: Path, name: str) -> dict[str, str]:
    """Return the SHA-256 of every artifact below `folder`, by relative name.

    Raises:
        RunFailed: a file has no recorded hash, or other bytes than those recorded, or is a link.
    """
    digests: dict[str, str] = {}
    for file in sorted(folder.rglob("*")):
        relative = file.relative_to(folder).as_posix()
        if file.is_symlink():
            raise RunFailed(f"{name}/{relative}: is a link; artifacts are plain files")
        if file.is_dir() or (file.suffix == SEAL and file.with_suffix("").exists()):
            continue
        seal = file.with_name(file.name + SEAL)
        if not seal.is_file():
            raise RunFailed(f"{name}/{relative}: has no {SEAL} beside it; write it through artifacts.Store")
        digests[relative] = sha256_of(file)
        if seal.read_text(encoding="utf-8").split()[:1] != [digests[relative]]:
            raise RunFailed(f"{name}/{relative}: its bytes changed after they were written")
    return digests


def cost(seconds: float, activities: Path) -> dict[str, Any]:
    """Return what a run cost: wall and CPU seconds, memory, and what the time was spent on.

    Args:
        seconds: time in the notebook, kernel start included.
        activities: what the kernel wrote about itself; see `_activity`.
    """
    return processes.used(seconds) | {"activities": _activity.read(activities, seconds)}


def describe(store: Store, job: Job, started: datetime, cost: dict[str, Any]) -> dict[str, Any]:
    """Return the content of run.json for a run that completed.

    Args:
        store: the profile's artifacts.
        job: what ran.
        started: moment in UTC.
        cost: of the run; see there.
    """
    return {
        "rule": job.rule,
        "notebook": job.slug,
        "model": job.model,
        "parameters": job.parameters,
        "started": started.isoformat(timespec="seconds"),
        **cost,
        "versions": versions(),
        "fingerprint": job.fingerprint,
        "artifacts": hashes(store.path(job.artifacts), job.artifacts),
    }
