"""`python -m bookmaker verify`: whether all that a profile publishes is there and as it was made."""

from contextlib import suppress
from pathlib import Path

from bookmaker.runner import _inputs, _manifest, _outcome, _seals, _sites, published
from bookmaker.runner import plan as planning
from bookmaker.runner.plan import Job
from privaudit.console import counted
from privhelpers.artifacts import sha256_of
from privhelpers.errors import DamagedArtifact, MissingArtifact
from privhelpers.text import quoted

SHOWN = 3


def of_all_runs(root: Path, plan: list[Job]) -> dict[Path, str]:
    """Return what is made from all runs of a profile and is there, but not as it was made; see `damages`."""
    folder = root / "runs" / plan[0].profile
    found = {folder / name: wrong for name, wrong in _manifest.damage(root, plan).items()}
    late = "it shows other runs than the present ones" if folder / published.MANIFEST in found else ""
    for name in published.SITES.values():
        site = folder / name
        # A link goes as a whole: what it leads to is not ours to change.
        mark = site if site.is_symlink() else site / published.COMPLETE
        if (mark.is_symlink() or mark.is_file()) and (wrong := _sites.damage(site) or late):
            found[mark] = f"the {'site' if name == 'site' else f'site in {name}/'}: {wrong}"
    return found


def damages(root: Path, plan: list[Job]) -> dict[Path, str]:
    """Return all that a profile has and that is not as it was made, in words.

    The keys are the marks of completion: where such a file is removed, the next build makes what it stands
    for again.
    """
    found = {}
    for job in plan:
        if (root / job.sentinel).is_file() and (wrong := planning.damage(root, job)):
            found[root / job.sentinel] = f"{job.title}: {wrong}"
    return found | of_all_runs(root, plan)


def strays(root: Path, plan: list[Job]) -> list[str]:
    """Return in words what lies among the artifacts of a profile, and in no folder of a run."""
    folder = root / "runs" / plan[0].profile / "artifacts"
    return _seals.strays(folder, {job.artifacts for job in plan})


def states(root: Path, plan: list[Job], *, hashed: bool = False) -> dict[str, str]:
    """Return the `state` of every run of a plan, by rule, where each stands after those that it needs."""
    found: dict[str, str] = {}
    for job in plan:
        late = next((rule for rule in job.needs if found.get(rule, planning.CURRENT) != planning.CURRENT), "")
        found[job.rule] = planning.state(root, job, hashed=hashed, waits_for=late)
    return found


def other_versions(root: Path, plan: list[Job]) -> str:
    """Return in one line how many complete runs were made with versions that are not installed now, or ""."""
    now, found = _outcome.versions(), {}
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
    return "; ".join([*told, f"to make all anew, remove runs/{plan[0].profile}"]) if told else ""


def _misread(root: Path, job: Job) -> str:
    return _inputs.misread(root, job.reads, planning.record(root, job)["inputs"])


def _sweep(root: Path, name: str) -> tuple[list[str], list[str], int]:
    """Return what of a sweep is not as it was made, what belongs to no run, and how many runs it has."""
    if wrong := _sites.damage(published.sweep(root, name)):
        return [wrong], [], 0
    try:
        runs, found = _seals.listed(published.sweep(root, name) / published.RUNS), []
    except DamagedArtifact as error:
        return [str(error)], [], 0
    cells = dict.fromkeys(sentinel.split("/")[1] for sentinel in runs if "/" in sentinel)
    plans = [planning.jobs(root, cell) for cell in cells]
    jobs = [job for plan in plans for job in plan if job.sentinel in runs]
    over = [f"{plan[0].profile}, {stray}" for plan in plans for stray in strays(root, plan)]
    if left := runs.keys() - {job.sentinel for job in jobs}:
        found.append(f"{quoted(min(left))} is no longer a run of its profile")
    for job in jobs:
        path = root / job.sentinel
        same = path.is_file() and sha256_of(path) == runs[job.sentinel]
        wrong = "" if same else "its record is not that of the sweep"
        wrong = wrong or planning.damage(root, job) or _misread(root, job)
        found += [f"{job.profile}, {job.title}: {wrong}"] if wrong else []
    return found, over, len(runs)


def _told(name: str, found: list[str], parts: str, cure: str) -> bool:
    if found:
        more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        again = f"; to make it again: {cure}" if cure else ""
        print(f"{name}: does not hold: {'; '.join(found[:SHOWN])}{more}{again}")
    else:
        print(f"{name}: holds: every file is as it was made: {parts}")
    return not found


def verify(root: Path, plan: list[Job]) -> bool:
    """Print one line on a profile's runs, manifest, summary, site and PDF; return whether all of them hold.

    A PDF may be missing, for `make book` makes none. A sweep of the profile has a line of its own, and the
    profile then has none unless one of its own runs was made.
    """
    profile, holds = plan[0].profile, True
    folder = root / "runs" / profile
    if published.sweep(root, profile).is_dir():
        found, over, runs = _sweep(root, profile)
        parts, cure = f"{runs} runs, results.parquet, gallery", f"`make sweep PROFILE={profile} ...`"
        holds = _told(f"sweep {profile}", found + over, parts, cure if found else "")
        if not any((root / job.sentinel).is_file() for job in plan):
            return holds
    late = [job.title for job in plan if not (root / job.sentinel).is_file()]
    sites = [name for name in published.SITES.values() if (folder / name / published.COMPLETE).is_file()]
    pdfs = [name for name in published.PDFS.values() if (folder / name).is_file()]
    wrong, cures = damages(root, plan), {}  # what makes it again -> what is wrong
    for job in plan:
        if (place := root / job.sentinel) not in wrong and place.is_file() and (why := _misread(root, job)):
            wrong[place] = f"{job.title}: {why}"
    for solutions, name in published.SITES.items():
        site, pdf = folder / name, folder / published.PDFS[solutions]
        found = [wrong.pop(place) for place in (site, site / published.COMPLETE) if place in wrong]
        if name not in sites and (site.is_dir() or (solutions and not sites)):
            found.append(f"{name}/{published.COMPLETE} is missing")
        cures[_sites.command("book", profile, solutions)] = found
        damage = pdf.name in pdfs and _sites.pdf_damage(site, pdf)
        cures[_sites.command("pdf", profile, solutions)] = [damage] if damage else []
    found = list(wrong.values())
    if late:
        among = " among them" if len(late) > 1 else ""
        found.append(f"{counted(len(late), 'run is', 'runs are')} missing, {late[0]}{among}")
    for name in _manifest.FILES:
        if not (path := folder / name).is_file():
            found.append(f"{name} is no file; move it away" if path.exists() else f"{name} is missing")
    cures[_sites.command("book", profile, True)][:0] = found
    cures[""] = strays(root, plan)
    parts = ", ".join([f"{len(plan)} runs", *_manifest.FILES, *sites, *pdfs])
    needed = ", then ".join(command for command, faults in cures.items() if command and faults)
    holds &= _told(profile, [one for faults in cures.values() for one in faults], parts, needed)
    if others := other_versions(root, plan):
        print(f"{profile}: {others}")
    return holds
