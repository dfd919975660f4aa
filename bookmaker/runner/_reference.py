"""Keep the results of a profile's complete run with the book, in `reference/<profile>`."""

from pathlib import Path

from bookmaker.runner import _manifest, folders
from bookmaker.runner import plan as planning
from bookmaker.runner._git import commit
from bookmaker.runner._outcome import machine
from privaudit.console import say
from privhelpers.artifacts import Store, sha256_of, to_json
from privhelpers.errors import RunFailed
from privhelpers.results.reference import ABOUT, FOLDER, NOTES, kept_of


def keep(root: Path, profile: str) -> Path:
    """Copy what `reference` keeps of a profile's runs, with how they were made; return the folder.

    Args:
        root: a copy of the book, with the runs.
        profile: whose runs are complete and as they were made, those that the kept files come from.

    Raises:
        RunFailed: a run is missing or out of date, or its files changed afterwards.
    """
    names = kept_of(profile)
    plan = planning.jobs(root, profile)
    makers = [job for job in plan if any(name.startswith(f"{job.artifacts}/") for name in names)]
    needed = {job.rule for maker in makers for job in planning.upto(plan, maker.rule)}
    plan = [job for job in plan if job.rule in needed]
    states = {job.title: planning.state(root, job) for job in plan}
    if late := {title: state for title, state in states.items() if state != planning.CURRENT}:
        title, state = next(iter(late.items()))
        raise RunFailed(
            f"{len(late)} of {len(plan)} runs of profile {profile} cannot be kept, {title} among them "
            f"({state}): `make book PROFILE={profile}` makes what is missing"
        )
    runs = Store(root / "runs" / profile / "artifacts", profile)
    manifest = _manifest.described(root, plan)
    done = manifest["runs"].values()
    about = {
        "command": f"make book PROFILE={profile}",
        "commit": commit(root),
        "date": max(run["started"] for run in done)[:10],
        "machine": machine(),
        "cpu_seconds": round(sum(run["cpu_seconds"] for run in done), 1),
        "runs": len(plan),
        "versions": manifest["versions"],
        "parameters": manifest["parameters"],
        # A later run can tell whether it reads the same notes.
        "notes_sha256": sha256_of(runs.existing(NOTES)),
    }
    files = {name: runs.existing(name).read_bytes() for name in names}
    files[f"about/{ABOUT}"] = to_json(about)
    folder = root / FOLDER / profile
    with folders.replacing(folder, "*") as fresh:
        for name, data in files.items():
            Store(fresh, profile).write_bytes(name, data)
    say(profile, f"kept {len(names)} files of {len(plan)} runs in {FOLDER}/{profile}")
    return folder
