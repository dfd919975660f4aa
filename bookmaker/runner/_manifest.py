"""One file that says what a profile's runs were: parameters, seconds, versions, hash of every artifact."""

from pathlib import Path
from typing import Any

from bookmaker.runner import profiles
from bookmaker.runner.chain import STATISTICS
from bookmaker.runner.plan import Job
from privhelpers.artifacts import Store, parse_json, to_json, write_atomic
from privhelpers.errors import MissingArtifact


def _versions(runs: list[dict[str, Any]]) -> dict[str, str]:
    """Return each package's version; where runs were made under several, all of them."""
    names = sorted({name for run in runs for name in run["versions"]})
    return {n: ", ".join(sorted({run["versions"][n] for run in runs if n in run["versions"]})) for n in names}


def collect(root: Path, plan: list[Job]) -> Path:
    """Write `runs/<profile>/manifest.json` and `summary.json` from the completed runs of a plan.

    Args:
        root: the repository.
        plan: every run of one profile.

    Raises:
        MissingArtifact: a run is not complete, or the statistics chapter wrote no summary.
        DamagedArtifact: the summary does not carry the bytes that were written.
    """
    runs = []
    for job in plan:
        if not (root / job.sentinel).is_file():
            raise MissingArtifact(f"run {job.title} is not complete: {job.sentinel} is missing")
        runs.append(parse_json((root / job.sentinel).read_text(encoding="utf-8"), job.sentinel))
    name = plan[0].profile
    folder = root / "runs" / name
    summary = Store(folder / "artifacts", name).existing(f"{STATISTICS}/summary.json")
    manifest = {
        "profile": name,
        "parameters": profiles.load(root, name).given,
        "total_seconds": round(sum(run["seconds"] for run in runs), 1),
        "versions": _versions(runs),
        "runs": {run["rule"]: run for run in runs},
    }
    write_atomic(folder / "summary.json", summary.read_bytes())
    write_atomic(folder / "manifest.json", to_json(manifest))
    return folder / "manifest.json"
