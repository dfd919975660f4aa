"""`python -m bookmaker profile`: where the time of a profile's last runs went, by chapter and by activity."""

import os
import platform
import re
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from bookmaker.runner import _remaining
from bookmaker.runner import plan as planning
from bookmaker.runner._activity import ACTIVITIES
from bookmaker.runner.plan import Job
from privhelpers.artifacts import parse_json, parse_yaml, write_atomic
from privhelpers.errors import DamagedArtifact

SITE = "site"  # its row in the table
MOST = 1e9  # seconds, or MiB, that something may have cost
HEAD = """# How long a run of each chapter takes, in seconds: the mean over its models. A profile that never
# ran here is expected to take as long. Written by `python -m bookmaker.runner profile --expect`.
"""


def records(root: Path, plan: list[Job]) -> list[dict[str, Any]]:
    """Return what each run of a plan recorded about itself.

    Raises:
        MissingArtifact: a run is not complete.
        DamagedArtifact: its record is not as the run wrote it.
    """
    rows = []
    for job in plan:
        rows.append(planning.record(root, job) | {"threads": job.threads})
    return rows


def idle_seconds(runs: list[dict[str, Any]], cores: int) -> float:
    """Return for how long cores waited while at least one run was going on, in core seconds."""
    changes = []
    for run in runs:
        start = datetime.fromisoformat(run["started"]).timestamp()
        changes += [(start, run["threads"]), (start + run["seconds"], -run["threads"])]
    idle, busy, before = 0.0, 0, 0.0
    for moment, change in sorted(changes):
        if busy:
            idle += max(0, cores - busy) * (moment - before)
        busy, before = busy + change, moment
    return idle


COLUMNS = {"wall s": "seconds", "CPU s": "cpu_seconds", "peak MiB": "peak_memory_mib"}


def _columns(cost: dict[str, Any]) -> dict[str, float]:
    """Return what `processes.used` recorded, under the names of the table."""
    return {column: cost[name] for column, name in COLUMNS.items()}


def _of_site(path: Path) -> dict[str, float]:
    """Return what the build of a site cost, or {} where nothing says it: the file has no seal."""
    with suppress(OSError, DamagedArtifact, LookupError, TypeError):
        cost = _columns(parse_json(path.read_bytes(), path.name))
        if all(type(value) in (int, float) and 0 <= value < MOST for value in cost.values()):
            return cost
    return {}


def table(runs: list[dict[str, Any]], by: str = "chapter") -> pd.DataFrame:
    """Return a row for each chapter, the longest first: runs, seconds, memory, and seconds by activity.

    Args:
        runs: as `records` returns them.
        by: "chapter" or "run", which has a row for each model.
    """
    rows = []
    for run in runs:
        names = {"chapter": run["notebook"], "run": f"{run['notebook']} {run['model'] or ''}".strip()}
        rows.append({by: names[by], "runs": 1} | _columns(run) | run["activities"])
    frame = pd.DataFrame(rows).reindex(columns=[by, "runs", "wall s", "CPU s", "peak MiB", *ACTIVITIES])
    aggregation = {name: "max" if name == "peak MiB" else "sum" for name in frame.columns[1:]}
    return frame.fillna(0.0).groupby(by).agg(aggregation).sort_values("wall s", ascending=False)


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


def expect(profile: str, runs: list[dict[str, Any]]) -> None:
    """Keep the seconds of a profile's runs as what a build on another machine may expect."""
    known = parse_yaml(_remaining.EXPECTED.read_text(encoding="utf-8"))
    seconds = pd.DataFrame(runs).groupby("notebook")["seconds"].mean().round().astype(int)
    known["machine"] = machine()
    known["seconds"][profile] = {str(slug): int(value) for slug, value in seconds.items()}
    text = HEAD + yaml.safe_dump(known, sort_keys=True)
    write_atomic(_remaining.EXPECTED, text.encode())


def tell(root: Path, profile: str, *, cores: int, keep: bool) -> None:
    """Print what the runs of a profile cost.

    Args:
        root: the repository.
        profile: whose runs are complete.
        cores: that the build shared among them, for the idle seconds.
        keep: write the seconds to `_remaining.EXPECTED`.

    Raises:
        MissingArtifact: a run is not complete.
    """
    runs = records(root, planning.jobs(root, profile))
    frame = table(runs)
    if cost := _of_site(root / "runs" / profile / SITE / ".cost.json"):
        frame.loc[SITE] = pd.Series(cost).reindex(frame.columns).fillna(0)
    frame.loc["all"] = frame.sum()
    frame.loc["all", "peak MiB"] = frame["peak MiB"].iloc[:-1].max()
    with pd.option_context("display.width", 250, "display.max_columns", None, "display.max_rows", None):
        print(frame.round().astype(int).replace(0, "").to_string())
        several = [run for run in runs if run["model"]]
        if several:
            print(
                table(several, by="run").drop(columns="runs").round().astype(int).replace(0, "").to_string()
            )
    print(
        f"{len(runs)} runs; idle {idle_seconds(runs, cores):.0f} core seconds of {cores} cores; {machine()}"
    )
    if keep:
        expect(profile, runs)
