"""What of a profile's runs is kept elsewhere: runs in `reference/<profile>`, and a bundle of evidence.

No text of a record goes into a bundle.
"""

import base64
import fnmatch
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat

from bookmaker.runner import files, kept, profiles, published, verify
from bookmaker.runner import plan as planning
from bookmaker.runner.chain import BASELINE, PRETRAINING, RECORDS, STATISTICS
from bookmaker.runner.fingerprint import BEST, KEPT_RESULTS, PAGE, PUBLIC, RECORD, commit, machine
from bookmaker.runner.plan import Job
from privaudit.bundle import LEDGER, LEDGERS, REPORT, sha256
from privaudit.console import counted, say
from privhelpers.artifacts import Store, sha256_of, to_json
from privhelpers.errors import DamagedArtifact, InvalidParameter, RunFailed

PNG = "image/png"
# Artifacts of a profile's chapters, and what the bundle calls them.
KEPT = {
    ("your_model", "report.html"): "report.html",
    ("your_model", "report.json"): REPORT,
    (STATISTICS, "measurements.jsonl"): "measurements.jsonl",
    (STATISTICS, "tests.jsonl"): "tests.jsonl",
}
# Large files: made-up notes, which no other chapter reads, and the answers of a model, which it gives again.
NOT_KEPT = ("your_model/*.jsonl", "*_scores.npz")


@dataclass(frozen=True)
class KeptModel:
    """A model of `study` that other profiles take and do not train again.

    Attributes:
        slug: the chapter that trains it.
        files: patterns of the artifacts of that chapter which are kept.
        read: the files of `artifacts/` that it follows from.
    """

    slug: str
    files: tuple[str, ...]
    read: tuple[str, ...]


MODELS = {
    PUBLIC: KeptModel(PRETRAINING, ("*",), (f"{RECORDS}/public.jsonl",)),
    BEST: KeptModel(  # without a tokenizer: it has the one of the checkpoint
        BASELINE,
        ("metrics.json", "best_nonprivate/*.safetensors"),
        (
            *(f"{RECORDS}/{part}.jsonl" for part in ("train", "crowd", "validation")),
            f"{PRETRAINING}/public/model.safetensors",
        ),
    ),
}


def reference(root: Path, profile: str) -> Path:
    """Keep the runs that a profile makes live and the one that it extends does not; return the folder.

    Each is kept with its page, its artifacts and its record, and with how all were made. Of `study` the
    models that other profiles take are kept, too, see `MODELS`.

    Args:
        root: a copy of the book, with the runs.
        profile: whose runs are complete and as they were made, those that the kept ones need.

    Raises:
        InvalidParameter: the profile has no such run.
        RunFailed: a run is missing or out of date, does not show what its page says, or its files changed
            afterwards.
    """
    loaded = profiles.load(root, profile)
    shown = profiles.load(root, loaded.extends).kept if loaded.extends else ()
    plan = planning.jobs(root, profile)
    makers = [job for job in plan if job.rule in shown and job.rule not in loaded.kept]
    if not makers:
        raise InvalidParameter(
            f"profile {profile}: there is nothing to keep; it must extend a profile that shows kept "
            f"runs, and make some of them live, as params/{kept.STUDY}.yml does"
        )
    models = MODELS if profile == kept.STUDY else {}
    wanted = [job.rule for job in makers] + [model.slug for model in models.values()]
    needed = {job.rule for rule in wanted for job in planning.upto(plan, rule)}
    plan = [job for job in plan if job.rule in needed]
    if late := {job.title: why for job in plan if (why := planning.stale(root, job))}:
        title, why = next(iter(late.items()))
        raise RunFailed(
            f"{len(late)} of {len(plan)} runs of profile {profile} cannot be kept, {title} among them "
            f"({why}): `make book PROFILE={profile}` makes what is missing"
        )
    if false := verify.false_claims(root, plan):
        title, sentences = next(iter(false.items()))
        raise RunFailed(f"profile {profile}: {title} does not show what its page says: {' '.join(sentences)}")
    runs = Store(root / "runs" / profile / "artifacts", profile)
    manifest = published.described(root, plan)
    trained = {job.rule: kept.settings_of(job.parameters) for job in plan if job.slug in kept.TRAINED}
    made_at = commit(root)  # asked before the first write, which changes this copy of the book
    about = _about(made_at, manifest, plan) | kept.notes_of(runs) | {"models": trained}
    contents = {kept.ABOUT: to_json(about)}
    for job in makers:
        page = (root / job.notebook).read_bytes()
        contents |= _contents(runs, manifest, job) | {f"{job.artifacts}/{PAGE}": page}
    folder = _write(root, profile, contents)
    for name, model in models.items():
        job = next(job for job in plan if job.slug == model.slug)
        about = _about(made_at, manifest, [job]) | {
            "parameters": job.parameters,
            "made_from": {file: sha256_of(runs.existing(file)) for file in model.read},
        }
        _write(root, name, _contents(runs, manifest, job, model.files) | {kept.ABOUT: to_json(about)})
    say(profile, f"kept {counted(len(makers), 'run', 'runs')} in {KEPT_RESULTS}/{profile}")
    return folder


def _about(made_at: str, manifest: dict[str, Any], plan: list[Job]) -> dict[str, Any]:
    """Return how the runs of a plan were made, see `results.reference.Reference.about`."""
    done = [manifest["runs"][job.rule] for job in plan]
    return {
        "command": f"make book PROFILE={plan[0].profile}",
        "commit": made_at,
        "date": max(run["started"] for run in done)[:10],
        "machine": machine(),
        "cpu_seconds": round(sum(run["cpu_seconds"] for run in done), 1),
        "runs": len(plan),
        "versions": manifest["versions"],
        "parameters": manifest["parameters"],
    }


def _contents(
    runs: Store, manifest: dict[str, Any], job: Job, wanted: tuple[str, ...] = ("*",)
) -> dict[str, bytes]:
    """Return the artifacts of a run that are kept, and its record, which names these alone."""
    run = manifest["runs"][job.rule]
    paths = {name: f"{job.artifacts}/{name}" for name in run["artifacts"] if _fits(name, wanted)}
    names = [name for name, path in paths.items() if not _fits(path, NOT_KEPT)]
    contents = {paths[name]: runs.existing(paths[name]).read_bytes() for name in names}
    record = run | {"artifacts": {name: run["artifacts"][name] for name in names}}
    return contents | {f"{job.artifacts}/{RECORD}": to_json(record)}


def _fits(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def _write(root: Path, name: str, contents: dict[str, bytes]) -> Path:
    """Write a folder of kept results anew, each file with its hash, and return it."""
    folder = root / KEPT_RESULTS / name
    with files.replacing(folder, "*") as fresh:
        for file, data in contents.items():
            Store(fresh, name).write_bytes(file, data)
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

    def unchanged(path: Path, digest: str) -> bytes:
        if sha256(data := path.read_bytes()) != digest:
            raise DamagedArtifact(f"{path.name} changed after it was made; `make book PROFILE={profile}`")
        return data

    for job in plan:
        run = manifest["runs"][job.rule]
        for name, digest in run["artifacts"].items():
            called = f"{LEDGERS}{job.model}.jsonl" if name == LEDGER else KEPT.get((job.slug, name))
            if called:
                found[called] = unchanged(home / "artifacts" / job.artifacts / name, digest)
        if job.slug == STATISTICS:
            found |= _pictures(unchanged(root / job.notebook, run["page"]))
    return found
