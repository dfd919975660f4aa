"""What goes into the evidence bundle of a profile. No text of a record does."""

import base64
from pathlib import Path

import nbformat

from bookmaker.runner import _manifest, published
from bookmaker.runner._pictures import PNG
from bookmaker.runner.chain import STATISTICS
from bookmaker.runner.plan import Job
from privaudit.bundle import LEDGER, LEDGERS, REPORT, sha256
from privhelpers.errors import DamagedArtifact

# Artifacts of a profile's chapters, and what the bundle calls them.
KEPT = {
    ("your_model", "report.html"): "report.html",
    ("your_model", "report.json"): REPORT,
    (STATISTICS, "measurements.jsonl"): "measurements.jsonl",
    (STATISTICS, "tests.jsonl"): "tests.jsonl",
}


def _pictures(notebook: bytes) -> dict[str, bytes]:
    """Return the named figures of an executed chapter, as PNG by name."""
    files = {}
    for cell in nbformat.reads(notebook.decode(), 4).cells:
        figure = cell.metadata.get("mystnb", {}).get("figure")
        shown = [one.data[PNG] for one in cell.get("outputs", ()) if PNG in one.get("data", ())]
        if figure and shown:
            files[f"figures/{figure['name']}.png"] = base64.b64decode(shown[0])
    return files


def of_profile(root: Path, plan: list[Job]) -> dict[str, bytes]:
    """Return the files of a profile's bundle by name; the same runs give the same bundle.

    Raises:
        MissingArtifact: a run is not complete.
        DamagedArtifact: something is not as it was made.
    """
    profile, manifest = plan[0].profile, published.manifest(root, plan)
    home = root / "runs" / profile
    files = {name: (home / name).read_bytes() for name in _manifest.FILES}

    def kept(path: Path, digest: str) -> bytes:
        if sha256(data := path.read_bytes()) != digest:
            raise DamagedArtifact(f"{path.name} changed after it was made; `make book PROFILE={profile}`")
        return data

    for job in plan:
        run = manifest["runs"][job.rule]
        for name, digest in run["artifacts"].items():
            called = f"{LEDGERS}{job.model}.jsonl" if name == LEDGER else KEPT.get((job.slug, name))
            if called:
                files[called] = kept(home / "artifacts" / job.artifacts / name, digest)
        if job.slug == STATISTICS:
            files |= _pictures(kept(root / job.notebook, run["page"]))
    return files
