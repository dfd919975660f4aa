"""What of a profile's runs is kept elsewhere: results in `reference/<profile>`, and a bundle of evidence.

No text of a record goes into a bundle.
"""

import base64
from pathlib import Path

import nbformat

from bookmaker.runner import files, published
from bookmaker.runner import plan as planning
from bookmaker.runner.chain import STATISTICS
from bookmaker.runner.fingerprint import commit, machine
from bookmaker.runner.plan import Job
from privaudit.bundle import LEDGER, LEDGERS, REPORT, sha256
from privaudit.console import say
from privhelpers.artifacts import Store, sha256_of, to_json
from privhelpers.errors import DamagedArtifact, RunFailed
from privhelpers.results.reference import ABOUT, FOLDER, NOTES, kept_of

PNG = "image/png"
# Artifacts of a profile's chapters, and what the bundle calls them.
KEPT = {
    ("your_model", "report.html"): "report.html",
    ("your_model", "report.json"): REPORT,
    (STATISTICS, "measurements.jsonl"): "measurements.jsonl",
    (STATISTICS, "tests.jsonl"): "tests.jsonl",
}


def reference(root: Path, profile: str) -> Path:
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
    if late := {job.title: why for job in plan if (why := planning.stale(root, job))}:
        title, why = next(iter(late.items()))
        raise RunFailed(
            f"{len(late)} of {len(plan)} runs of profile {profile} cannot be kept, {title} among them "
            f"({why}): `make book PROFILE={profile}` makes what is missing"
        )
    runs = Store(root / "runs" / profile / "artifacts", profile)
    manifest = published.described(root, plan)
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
    contents = {name: runs.existing(name).read_bytes() for name in names}
    contents[f"about/{ABOUT}"] = to_json(about)
    folder = root / FOLDER / profile
    with files.replacing(folder, "*") as fresh:
        for name, data in contents.items():
            Store(fresh, profile).write_bytes(name, data)
    say(profile, f"kept {len(names)} files of {len(plan)} runs in {FOLDER}/{profile}")
    return folder


def _pictures(notebook: bytes) -> dict[str, bytes]:
    """Return the named figures of an executed chapter, as PNG by name."""
    found = {}
    for cell in nbformat.reads(notebook.decode(), 4).cells:
        figure = cell.metadata.get("mystnb", {}).get("figure")
        shown = [one.data[PNG] for one in cell.get("outputs", ()) if PNG in one.get("data", ())]
        if figure and shown:
            found[f"figures/{figure['name']}.png"] = base64.b64decode(shown[0])
    return found


def evidence(root: Path, plan: list[Job]) -> dict[str, bytes]:
    """Return the files of a profile's bundle by name; the same runs give the same bundle.

    Raises:
        MissingArtifact: a run is not complete.
        DamagedArtifact: something is not as it was made.
    """
    profile, manifest = plan[0].profile, published.manifest(root, plan)
    home = root / "runs" / profile
    found = {name: (home / name).read_bytes() for name in published.FILES}

    def kept(path: Path, digest: str) -> bytes:
        if sha256(data := path.read_bytes()) != digest:
            raise DamagedArtifact(f"{path.name} changed after it was made; `make book PROFILE={profile}`")
        return data

    for job in plan:
        run = manifest["runs"][job.rule]
        for name, digest in run["artifacts"].items():
            called = f"{LEDGERS}{job.model}.jsonl" if name == LEDGER else KEPT.get((job.slug, name))
            if called:
                found[called] = kept(home / "artifacts" / job.artifacts / name, digest)
        if job.slug == STATISTICS:
            found |= _pictures(kept(root / job.notebook, run["page"]))
    return found
