"""What goes into an evidence bundle: of an audit, and of a profile. No text of a record does."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import nbformat

from bookmaker.runner import _manifest, published
from bookmaker.runner._bundle import LEDGERS, REPORT, WORDS, Evidence, sha256
from bookmaker.runner._pictures import PNG
from bookmaker.runner.chain import STATISTICS
from bookmaker.runner.plan import Job
from privhelpers.errors import DamagedArtifact

LEDGER = "ledger.jsonl"
# Artifacts of a profile's chapters, and what the bundle calls them.
KEPT = {
    ("your_model", "report.html"): "report.html",
    ("your_model", "report.json"): REPORT,
    (STATISTICS, "measurements.jsonl"): "measurements.jsonl",
    (STATISTICS, "tests.jsonl"): "tests.jsonl",
}


def of_audit(
    facts: Mapping[str, Any],
    report: Mapping[str, bytes],
    pictures: Mapping[str, bytes],
    *,
    made: str,
    ledger: bytes | None,
) -> tuple[Evidence, dict[str, bytes]]:
    """Return what a bundle of an audit is about, and its files by name.

    Args:
        facts: from `own_model.report_facts`.
        report: files of the report by name.
        pictures: SVG by caption.
        made: when, as ISO 8601 says it.
        ledger: said to be of the training of the model, if any was brought.
    """
    captions = {f"figures/{number}.svg": caption for number, caption in enumerate(pictures, 1)}
    files = {**report, **{name: pictures[caption] for name, caption in captions.items()}}
    if ledger:
        files[LEDGERS + LEDGER] = ledger
        captions[LEDGERS + LEDGER] = f"Ledger of a private training: {WORDS['brought']}"
    brought = [(one["file"], one["sha256"], one["role"]) for one in facts["data"]]
    for role in ("canary_file", "synthetic"):
        if one := facts[role]:
            brought.append((one["file"], one["sha256"], role.removesuffix("_file")))
    kinds = {"files": "model", "reference_files": "reference model"} if facts["model"] else {}
    for key, role in kinds.items():
        brought += [(name, digest, role) for name, digest in facts["model"][key].items()]
    inputs = [dict(zip(("name", "sha256", "role"), one, strict=True)) for one in brought]
    about = Evidence("audit", facts["title"], made, inputs, facts["settings"], facts["versions"], captions)
    return about, files


def _pictures(notebook: bytes) -> tuple[dict[str, bytes], dict[str, str]]:
    """Return the named figures of an executed chapter, as PNG by name, with their captions."""
    files, captions = {}, {}
    for cell in nbformat.reads(notebook.decode(), 4).cells:
        figure = cell.metadata.get("mystnb", {}).get("figure")
        shown = [one.data[PNG] for one in cell.get("outputs", ()) if PNG in one.get("data", ())]
        if figure and shown:
            name = f"figures/{figure['name']}.png"
            files[name], captions[name] = base64.b64decode(shown[0]), figure["caption"]
    return files, captions


def of_profile(root: Path, plan: list[Job]) -> tuple[Evidence, dict[str, bytes]]:
    """Return what a bundle of a profile is about, and its files by name; the same runs give the same bundle.

    Raises:
        MissingArtifact: a run is not complete.
        DamagedArtifact: something is not as it was made.
    """
    profile, manifest = plan[0].profile, published.manifest(root, plan)
    home = root / "runs" / profile
    files = {name: (home / name).read_bytes() for name in _manifest.FILES}
    captions = {}

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
            drawn, captions = _pictures(kept(root / job.notebook, run["page"]))
            files |= drawn
    runs = list(manifest["runs"].values())
    inputs = [
        {"name": run["rule"], "sha256": run["fingerprint"], "role": "code of a chapter and of its helpers"}
        for run in runs
    ]
    title, made = f"Results of the profile “{profile}”", max(run["started"] for run in runs)
    about = Evidence("profile", title, made, inputs, manifest["parameters"], manifest["versions"], captions)
    return about, files
