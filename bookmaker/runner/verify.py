"""`python -m bookmaker verify`: whether all that a profile publishes is there and as it was made."""

from contextlib import suppress
from pathlib import Path

from bookmaker.runner import files, fingerprint, published
from bookmaker.runner import plan as planning
from bookmaker.runner.plan import Job
from privaudit.console import counted
from privhelpers.artifacts import sha256_of
from privhelpers.errors import DamagedArtifact, MissingArtifact
from privhelpers.text import quoted

SHOWN = 3


def damaged(root: Path, plan: list[Job]) -> dict[Path, str]:
    """Return all that a profile has and that is not as it was made, in words.

    The keys are records of runs, manifest and summary, and marks of sites: where such a file is removed, the
    next build makes it again.
    """
    home, found = root / "runs" / plan[0].profile, {}
    for job in plan:
        if (root / job.sentinel).is_file() and (wrong := planning.damage(root, job)):
            found[root / job.sentinel] = f"{job.title}: {wrong}"
    with suppress(MissingArtifact, DamagedArtifact):  # it then follows from runs that are to be made
        for name, wrong in published.manifest_damage(root, plan).items():
            if (home / name).exists():
                found[home / name] = wrong
    for name in published.SITES.values():
        mark = home / name / published.COMPLETE
        if mark.is_file() and (wrong := published.site_damage(home / name)):
            found[mark] = f"{name}/: {wrong}"
    return found


def other_versions(root: Path, plan: list[Job]) -> str:
    """Return in one line how many complete runs were made with versions that are not installed now, or ""."""
    now, found = fingerprint.versions(), {}
    for job in plan:
        with suppress(MissingArtifact, DamagedArtifact):  # which is told by itself
            for name, version in planning.record(root, job)["versions"].items():
                if version != now.get(name, version):
                    found.setdefault(name, []).append(version)
    told = [
        f"{counted(len(old), 'run was', 'runs were')} made with {name} {', '.join(sorted({*old}))}, "
        f"and {now[name]} is installed"
        for name, old in sorted(found.items())
    ]
    return "; ".join([*told, f"to make all again, remove runs/{plan[0].profile}"]) if told else ""


def _sweep(root: Path, name: str) -> tuple[list[str], int]:
    """Return what of a sweep is not as it was made, and how many runs it has."""
    folder = published.sweep(root, name)
    if wrong := published.site_damage(folder):
        return [wrong], 0
    runs = files.listed(folder / published.RUNS)
    cells = dict.fromkeys(sentinel.split("/")[1] for sentinel in runs if "/" in sentinel)
    jobs = {job.sentinel: job for cell in cells for job in planning.jobs(root, cell)}
    found = []
    for sentinel, digest in runs.items():
        if not (job := jobs.get(sentinel)):
            found.append(f"{quoted(sentinel)} is no longer a run of its profile")
            continue
        path = root / sentinel
        same = path.is_file() and sha256_of(path) == digest
        if wrong := planning.damage(root, job) if same else "its record is not that of the sweep":
            found.append(f"{job.profile}, {job.title}: {wrong}")
    return found, len(runs)


def _told(name: str, found: list[str], parts: str, cure: str) -> bool:
    if found:
        more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        print(f"{name}: does not hold: {'; '.join(found[:SHOWN])}{more}; to make it again: {cure}")
    else:
        print(f"{name}: holds: every file is as it was made: {parts}")
    return not found


def verify(root: Path, plan: list[Job]) -> bool:
    """Print one line on a profile's runs, manifest, summary, site and PDF; return whether all of them hold.

    A PDF may be missing, for `make book` makes none. A sweep of the profile has a line of its own, and the
    profile then has none unless one of its own runs was made.
    """
    profile, holds = plan[0].profile, True
    home = root / "runs" / profile
    if published.sweep(root, profile).is_dir():
        found, runs = _sweep(root, profile)
        parts, cure = f"{runs} runs, results.parquet, gallery", f"`make sweep PROFILE={profile} ...`"
        holds = _told(f"sweep {profile}", found, parts, cure)
        if not any((root / job.sentinel).is_file() for job in plan):
            return holds
    found = list(damaged(root, plan).values())
    sites = [name for name in published.SITES.values() if (home / name / published.COMPLETE).is_file()]
    late = {job.title: why for job in plan if (why := planning.stale(root, job))}
    if late := {title: why for title, why in late.items() if not why.startswith("damaged")}:
        title, why = next(iter(late.items()))
        found.append(f"{counted(len(late), 'run is', 'runs are')} not up to date, {title} among them ({why})")
    found += [f"{name} is missing" for name in published.FILES if not (home / name).is_file()]
    found += [] if sites else ["there is no complete site"]
    cures = []
    if found:
        cures.append(published.site_command("book", profile, published.SITES[True] in sites or not sites))
    for solutions, name in published.PDFS.items():
        if (home / name).is_file():
            sites.append(name)
            if wrong := published.pdf_damage(published.site(root, profile, solutions=solutions), home / name):
                found.append(wrong)
                cures.append(published.site_command("pdf", profile, solutions))
    parts = ", ".join([f"{len(plan)} runs", *published.FILES, *sites])
    holds &= _told(profile, found, parts, ", then ".join(cures))
    if others := other_versions(root, plan):
        print(f"{profile}: {others}")
    return holds
