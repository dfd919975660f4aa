"""`python -m bookmaker verify`: whether all that a profile publishes is there and as it was made."""

from contextlib import suppress
from pathlib import Path

from bookmaker.runner import fingerprint, notebooks, published
from bookmaker.runner import plan as planning
from bookmaker.runner.plan import Job
from privaudit.console import counted
from privhelpers.errors import DamagedArtifact, MissingArtifact

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


def false_claims(root: Path, plan: list[Job]) -> dict[str, list[str]]:
    """Return what chapters conclude and their default runs do not show: {title of the run: sentences}.

    Kept runs are left out: they were checked when they were kept.
    """
    default = [job for job in plan if job.is_default and not job.kept]
    found = {job.title: notebooks.crosses(notebooks.read(root / job.notebook)) for job in default}
    return {title: sentences for title, sentences in found.items() if sentences}


def other_versions(root: Path, plan: list[Job]) -> str:
    """Return in one line how many complete runs were made with versions that are not installed now, or "".

    Kept runs say their versions themselves, and nothing here would make them again.
    """
    now, found = fingerprint.versions(), {}
    for job in [job for job in plan if not job.kept]:
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


def verify(root: Path, plan: list[Job]) -> bool:
    """Print one line on a profile's runs, manifest, summary, and site; return whether all of them hold."""
    profile = plan[0].profile
    home = root / "runs" / profile
    found = list(damaged(root, plan).values())
    sites = [name for name in published.SITES.values() if (home / name / published.COMPLETE).is_file()]
    late = {job.title: why for job in plan if (why := planning.stale(root, job))}
    if late := {title: why for title, why in late.items() if not why.startswith("damaged")}:
        title, why = next(iter(late.items()))
        found.append(f"{counted(len(late), 'run is', 'runs are')} not up to date, {title} among them ({why})")
    found += [f"{name} is missing" for name in published.FILES if not (home / name).is_file()]
    found += [] if sites else ["there is no complete site"]
    if found:
        more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        cure = published.site_command(profile, published.SITES[True] in sites or not sites)
        print(f"{profile}: does not hold: {'; '.join(found[:SHOWN])}{more}; to make it again: {cure}")
    else:
        parts = ", ".join([f"{len(plan)} runs", *published.FILES, *sites])
        print(f"{profile}: holds: every file is as it was made: {parts}")
    if others := other_versions(root, plan):
        print(f"{profile}: {others}")
    return not found
