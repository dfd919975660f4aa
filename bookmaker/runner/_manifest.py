"""One file that says what a profile's runs were: parameters, seconds, versions, hash of every artifact."""

from hashlib import sha256
from pathlib import Path
from typing import Any

from bookmaker.runner import _inputs, _seals, profiles
from bookmaker.runner import plan as planning
from bookmaker.runner.chain import STATISTICS
from bookmaker.runner.plan import Job
from privhelpers.artifacts import Store, check_seal, read_sealed, to_json, write_sealed
from privhelpers.errors import DamagedArtifact, PrivHelpersError

FILES = MANIFEST, SUMMARY = "manifest.json", "summary.json"


def _versions(runs: list[dict[str, Any]]) -> dict[str, str]:
    """Return each package's version; where runs were made under several, all of them."""
    names = sorted({name for run in runs for name in run["versions"]})
    return {n: ", ".join(sorted({run["versions"][n] for run in runs if n in run["versions"]})) for n in names}


def described(root: Path, plan: list[Job]) -> dict[str, Any]:
    """Return what a manifest says of some runs of one profile.

    Raises:
        MissingArtifact: a run is not complete.
        DamagedArtifact: a record does not carry the bytes that were written, or a run read other results than
            those that are there now.
    """
    runs = [planning.record(root, job) for job in plan]
    for job, run in zip(plan, runs, strict=True):
        if wrong := _inputs.misread(root, job.reads, run["inputs"]):
            raise DamagedArtifact(f"{job.title}: {wrong}")
    name = plan[0].profile
    return {
        "profile": name,
        "parameters": profiles.load(root, name).given,
        "total_seconds": round(sum(run["seconds"] for run in runs), 1),
        "versions": _versions(runs),
        "runs": {run["rule"]: run for run in runs},
    }


def contents(root: Path, plan: list[Job]) -> dict[str, bytes]:
    """Return what the manifest and the summary of a plan must say, by the name of the file.

    Raises:
        MissingArtifact: a run is not complete, or the statistics chapter wrote no summary.
        DamagedArtifact: a record or the summary does not carry the bytes that were written.
    """
    name = plan[0].profile
    manifest = described(root, plan)
    store = Store(root / "runs" / name / "artifacts", name)
    summary = f"{STATISTICS}/{SUMMARY}"
    return {
        MANIFEST: to_json(manifest),
        SUMMARY: read_sealed(store.existing(summary), summary, _seals.MOST_BYTES),
    }


def collect(root: Path, plan: list[Job]) -> None:
    """Write `runs/<profile>/manifest.json` and `summary.json` from the completed runs of a plan.

    Args:
        root: the repository.
        plan: every run of one profile.

    Raises:
        PrivHelpersError: see `contents`.
    """
    for name, data in contents(root, plan).items():
        write_sealed(root / "runs" / plan[0].profile / name, data)


def damage(root: Path, plan: list[Job]) -> dict[str, str]:
    """Return which of manifest and summary are there and not what the runs say, with what is wrong.

    Where a run is missing or damaged, each is only compared with its seal.
    """
    folder, found = root / "runs" / plan[0].profile, {}
    try:
        wanted = contents(root, plan)
    except PrivHelpersError:
        wanted = {}
    for name in FILES:
        path = folder / name
        if path.is_file():
            try:
                digest = check_seal(path, name)
                if wanted and digest != sha256(wanted[name]).hexdigest():
                    found[name] = f"{name}: is not about the present runs"
            except DamagedArtifact as error:
                found[name] = str(error)
    return found
