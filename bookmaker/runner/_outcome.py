"""What a run leaves behind: the hash of every file that it wrote and the versions that it ran under."""

import platform
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import privhelpers
from bookmaker.runner import _activity, _seals, processes
from bookmaker.runner.plan import Job
from privhelpers.artifacts import Store

PACKAGES = ("torch", "transformers", "opacus", "dp-accounting", "numpy")


def versions() -> dict[str, str]:
    """Return the versions that decide the numbers; no package is imported for it."""
    version_of = {"python": platform.python_version(), "privhelpers": privhelpers.__version__}
    for package in PACKAGES:
        try:
            version_of[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            version_of[package] = "not installed"
    return version_of


def cost(seconds: float, activities: Path) -> dict[str, Any]:
    """Return what a run cost: wall and CPU seconds, memory, and what the time was spent on.

    Args:
        seconds: time in the notebook, kernel start included.
        activities: what the kernel wrote about itself; see `_activity`.
    """
    return processes.used(seconds) | {"activities": _activity.read(activities, seconds)}


def describe(
    store: Store, job: Job, started: datetime, cost: dict[str, Any], read: dict[str, str]
) -> dict[str, Any]:
    """Return the content of run.json for a run that completed.

    Args:
        store: the profile's artifacts.
        job: what ran.
        started: moment in UTC.
        cost: of the run; see there.
        read: from `_inputs.hashes`, before it ran.
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
        "inputs": read,
        "artifacts": _seals.hashes(store.path(job.artifacts)),
    }
