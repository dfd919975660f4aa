"""`make verify`: whether all that a profile publishes is there and as it was made, in one line."""

from pathlib import Path

from bookmaker.runner import _manifest, published
from bookmaker.runner import plan as planning
from bookmaker.runner.plan import Job
from privhelpers.artifacts import check_seal
from privhelpers.errors import DamagedArtifact

SHOWN = 3


def of_all_runs(root: Path, plan: list[Job]) -> dict[Path, str]:
    """Return what is made from all runs of a profile and is there, but not as it was made; see `damages`."""
    folder = root / "runs" / plan[0].profile
    found = {folder / name: wrong for name, wrong in _manifest.damage(root, plan).items()}
    for name in published.SITES.values():
        mark = folder / name / published.COMPLETE
        if mark.is_file() and (wrong := published.site_damage(mark.parent)):
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


def verify(root: Path, plan: list[Job]) -> bool:
    """Print one line on a profile's runs, manifest, summary, site and PDF; return whether all of them hold.

    A PDF may be missing, for `make book` makes none.
    """
    profile = plan[0].profile
    folder = root / "runs" / profile
    found = list(damages(root, plan).values())
    late = [job.title for job in plan if not (root / job.sentinel).is_file()]
    found += [f"{len(late)} runs are missing, {late[0]} among them"] if late else []
    sites = [name for name in published.SITES.values() if (folder / name / published.COMPLETE).is_file()]
    marks = (*_manifest.FILES, *([] if sites else [f"site/{published.COMPLETE}"]))
    found += [f"{name} is missing" for name in marks if not (folder / name).is_file()]
    pdfs = [name for name in published.PDFS.values() if (folder / name).is_file()]
    for pdf in pdfs:
        try:
            check_seal(folder / pdf, pdf)
        except DamagedArtifact as error:
            found.append(str(error))
    if found:
        more = f"; and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        cure = f"`make book PROFILE={profile}` makes it again"
        print(f"{profile}: does not hold: {'; '.join(found[:SHOWN])}{more}; {cure}")
        return False
    parts = ", ".join([f"{len(plan)} runs", *_manifest.FILES, *sites, *pdfs])
    print(f"{profile}: holds: every file is as it was made: {parts}")
    return True
