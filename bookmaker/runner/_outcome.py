"""What a run leaves behind: the hash of each file that it wrote, its versions, and its machine."""

import os
import platform
import re
import resource
from datetime import datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import privhelpers
from bookmaker.runner import _seals
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


def machine() -> str:
    """Return processor and cores of this machine, with what it multiplies bfloat16, if it does, and GPUs."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
    flags = next((line.split(":", 1)[1].split() for line in lines if line.startswith("flags")), [])
    short = next((f", {flag}" for flag in ("amx_bf16", "avx512_bf16") if flag in flags), "")
    known_to_driver = sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))
    told = "".join(file.read_text(encoding="utf-8") for file in known_to_driver)
    gpus = "".join(f", {model.strip()}" for model in re.findall(r"(?m)^Model:(.*)", told))
    return f"{name or platform.processor() or platform.machine()}, {os.cpu_count()} cores{short}{gpus}"


def cost(seconds: float) -> dict[str, float]:
    """Return what this process and all that it waited for used: seconds, CPU seconds, memory.

    Args:
        seconds: wall time, which nobody here has measured.
    """
    process, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(sum(usage.ru_utime + usage.ru_stime for usage in (process, children)), 1),
        # Of the largest process; Linux counts in KiB. What it shares with others is in it.
        "peak_memory_mib": round(max(process.ru_maxrss, children.ru_maxrss) / 1024),
    }


def describe(
    store: Store, job: Job, started: datetime, cost: dict[str, Any], read: dict[str, str]
) -> dict[str, Any]:
    """Return the content of run.json for a run that completed.

    Args:
        store: the profile's artifacts.
        job: what ran.
        started: moment in UTC.
        cost: wall and CPU seconds and memory; see there.
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
