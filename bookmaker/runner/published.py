"""What is made from all runs of a profile: its manifest and its site.

The manifest follows from the runs' records, so it is compared with them. A site has a list of hashes, and
`.complete` is the seal of that list, which it names by its place, and of the manifest of the runs that the
site shows: in `runs/<profile>/site`, `sha256sum -c .complete .sealed` says the same as `python -m bookmaker
verify`.
"""

from hashlib import sha256
from pathlib import Path
from typing import Any

from bookmaker.runner import files, profiles
from bookmaker.runner import plan as planning
from bookmaker.runner.chain import STATISTICS
from bookmaker.runner.plan import Job
from privaudit import bundle
from privhelpers.artifacts import (
    Store,
    check_seal,
    first_difference,
    parse_json,
    read_sealed,
    sha256_of,
    to_json,
    write_atomic,
    write_sealed,
)
from privhelpers.errors import DamagedArtifact, MissingArtifact
from privhelpers.text import inert

FILES = MANIFEST, SUMMARY = "manifest.json", "summary.json"
SITES = {True: "site", False: "public"}  # with solutions, and without them
PDFS = {True: "privai-leak.pdf", False: "privai-leak-public.pdf"}
COMPLETE, SEALED = ".complete", ".sealed"
HTML = "_build/html"
DOCTREES = "_build/.doctrees"  # what Sphinx makes the next site from, where a page did not change
BESIDE = ("_failed", "build.log")  # in the folder of the site, but no part of it; hidden files are not either
# What stands beside every epsilon of a chapter's run: what it is worth, and what no epsilon is about.
WORTH, NOT_PROTECTED = bundle.WORDS["modes"]["research"], tuple(bundle.WORDS["not_protected"])


def site(root: Path, profile: str, *, solutions: bool = True) -> Path:
    """Return the folder of a profile's site; one with solutions and one without lie side by side."""
    return root / "runs" / profile / SITES[solutions]


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
        if run["inputs"] != planning.reads(root, job):
            raise DamagedArtifact(f"{job.title}: it read other results than those that are there now")
    name = plan[0].profile
    return {
        "profile": name,
        "parameters": profiles.load(root, name).given,
        "total_seconds": round(sum(run["seconds"] for run in runs if "kept" not in run), 1),
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
    store, summary = Store(root / "runs" / name / "artifacts", name), f"{STATISTICS}/{SUMMARY}"
    return {
        MANIFEST: to_json(described(root, plan)),
        SUMMARY: read_sealed(store.existing(summary), summary, files.MOST_BYTES),
    }


def collect(root: Path, plan: list[Job]) -> None:
    """Write `runs/<profile>/manifest.json` and `summary.json` from the completed runs of a plan."""
    for name, data in contents(root, plan).items():
        write_sealed(root / "runs" / plan[0].profile / name, data)


def manifest_damage(root: Path, plan: list[Job]) -> dict[str, str]:
    """Return which of manifest and summary are not what the runs say, with what is wrong.

    Raises:
        MissingArtifact: a run is not complete.
        DamagedArtifact: a run is not as it was made.
    """
    found = {}
    for name, data in contents(root, plan).items():
        path = root / "runs" / plan[0].profile / name
        try:
            if not path.is_file():
                found[name] = f"{name} is missing"
            elif check_seal(path, name) != sha256(data).hexdigest():
                found[name] = f"{name}: describes other runs than those that are there now"
        except DamagedArtifact as error:
            found[name] = str(error)
    return found


def manifest(root: Path, plan: list[Job]) -> dict[str, Any]:
    """Return the manifest of a profile, made from the runs on disk, in the order of the plan.

    Raises:
        MissingArtifact: it was not written yet, or a run is not complete.
        DamagedArtifact: it, the summary, or the record of a run is not as it was written.
    """
    profile = plan[0].profile
    path = root / "runs" / profile / MANIFEST
    if not path.is_file():
        raise MissingArtifact(f"{path.relative_to(root)} is missing; run `make book PROFILE={profile}`")
    if found := manifest_damage(root, plan):
        raise DamagedArtifact(f"{'; '.join(found.values())}; `make book PROFILE={profile}` writes it again")
    written = parse_json(path.read_bytes(), path.name)
    return written | {"runs": {job.rule: written["runs"][job.rule] for job in plan}}


def _digest(path: Path) -> str:
    return sha256(files.read(path)).hexdigest()


def _files(site: Path) -> dict[str, str]:
    """Return the SHA-256 of every file that a site consists of or is made from, by its name below `site`."""
    paths = files.below(site)
    paths |= {f"{DOCTREES}/{name}": path for name, path in files.below(site / DOCTREES).items()}
    paths |= {f"{HTML}/{name}": path for name, path in files.below(site / HTML, hidden=True).items()}
    return {name: sha256_of(path) for name, path in paths.items() if name.split("/")[0] not in BESIDE}


def site_runs(site: Path) -> list[str]:
    """Return the line of the mark of a site that names its runs' manifest, if there is one.

    Raises:
        DamagedArtifact: the manifest cannot be read.
    """
    path = site.parent / MANIFEST
    return [f"{_digest(path)}  ../{path.name}"] if path.is_file() else []


def _mark(site: Path) -> str:
    """Return the mark of a complete site: the hash of its list, named by its place, and of its manifest."""
    lines = [f"{_digest(site / SEALED)}  ../../{site.parent.name}/{site.name}/{SEALED}", *site_runs(site)]
    return "".join(f"{line}\n" for line in lines)


def seal_site(site: Path) -> None:
    """Write down the hash of every file of a site, then the mark that it is complete.

    Args:
        site: its folder, see `site`.
    """
    lines = "".join(f"{digest}  {name}\n" for name, digest in _files(site).items())
    write_atomic(site / SEALED, lines.encode())
    write_atomic(site / COMPLETE, _mark(site).encode())


def site_damage(site: Path) -> str:
    """Return what is wrong with a site that has the mark of a complete one, or ""."""
    try:
        found, wanted = files.read(site / COMPLETE).decode("utf-8", "replace"), _mark(site)
        if found.partition("\n")[0] != wanted.partition("\n")[0]:
            return f"{SEALED} changed after it was made, or belongs to another site"
        if found != wanted:
            return f"it shows other runs than {MANIFEST}"
        changed = first_difference(files.listed(site / SEALED), _files(site))
    except DamagedArtifact as error:
        return str(error)
    except OSError as error:
        return f"{inert(Path(error.filename or site).name[:200])} cannot be read ({error.strerror})"
    return changed and f"{changed} after it was made"


def site_command(profile: str, solutions: bool) -> str:
    """Return the command that builds a site of a profile."""
    return f"`make book PROFILE={profile}{'' if solutions else ' SOLUTIONS=no'}`"


def finished(root: Path, profile: str, *, solutions: bool) -> Path:
    """Return the folder of a profile's site, which is complete, as it was made, and of the present runs.

    Raises:
        MissingArtifact: there is no such site, or its last build failed.
        DamagedArtifact: it changed, or is of other runs; the message says what makes it again.
    """
    place = site(root, profile, solutions=solutions)
    cure = f"run {site_command(profile, solutions)}"
    if not (place / COMPLETE).is_file():
        raise MissingArtifact(f"there is no finished site of profile {profile}; {cure}")
    if wrong := site_damage(place):
        raise DamagedArtifact(f"the site of profile {profile}: {wrong}; {cure}")
    return place
