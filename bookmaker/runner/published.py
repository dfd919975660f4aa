"""What is made from all runs of a profile, its manifest and its site, read only if it is as it was made.

A run seals its record, `run.json`, which holds the hash of each of its files. The manifest follows from the
records, so it is compared with them. The site has a list of hashes, and `.complete` is the seal of that list,
which it names by its place, and of the manifest of the runs that the site shows: in `runs/<profile>/site`,
`sha256sum -c .complete .sealed` says the same as `python -m bookmaker verify`. The seal of a PDF has a line
for the site that was printed. A sweep is sealed in the same way, and its `runs.sha256` has the hash of the
record of each run that its table was made from.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bookmaker.runner import _manifest, _sites
from bookmaker.runner import written as author
from bookmaker.runner.plan import Job
from privaudit import bundle
from privhelpers.artifacts import parse_json, seal_of, sha256_of, write_atomic, write_sealed
from privhelpers.errors import DamagedArtifact, MissingArtifact

SITES = {True: "site", False: "public"}  # with solutions, and without them
PDF = "privai-leak.pdf"
PDFS = {True: PDF, False: "privai-leak-public.pdf"}
# What stands beside every epsilon of a chapter's run: what it is worth, and what no epsilon is about.
WORTH, NOT_PROTECTED = bundle.WORDS["modes"]["research"], tuple(bundle.WORDS["not_protected"])
MANIFEST = _manifest.MANIFEST
COMPLETE, SEALED = _sites.COMPLETE, _sites.SEALED
site_difference, site_runs, site_command = _sites.difference, _sites.runs, _sites.command
SOURCES = ".sources"  # of a site: the fingerprint of what it was built from beside the runs
FIRST = ".first"  # a site of the first chapters, of a build that goes on
RUNS = "runs.sha256"  # of a sweep, names from the repository on


def site(root: Path, profile: str, *, solutions: bool = True) -> Path:
    """Return the folder of a profile's site; one with solutions and one without lie beside each other."""
    return root / "runs" / profile / SITES[solutions]


def sweep(root: Path, name: str) -> Path:
    """Return the folder of a sweep, which has the name of its profile unless another one was given."""
    return root / "runs" / "sweeps" / name


def manifest(root: Path, plan: list[Job]) -> dict[str, Any]:
    """Return the manifest of a profile, which is that of the runs on disk, in the order of the plan.

    Raises:
        MissingArtifact: it was not written yet, or a run is not complete.
        DamagedArtifact: it, the summary, or the record of a run is not as it was written.
    """
    profile = plan[0].profile
    path = root / "runs" / profile / _manifest.MANIFEST
    if not path.is_file():
        raise MissingArtifact(f"{path.relative_to(root)} is missing; run `make book PROFILE={profile}`")
    if found := _manifest.damage(root, plan):
        raise DamagedArtifact(f"{'; '.join(found.values())}; `make book PROFILE={profile}` writes it again")
    written = parse_json(_manifest.contents(root, plan)[_manifest.MANIFEST], path.name)
    return written | {"runs": {job.rule: written["runs"][job.rule] for job in plan}}


def seal_site(site: Path) -> None:
    """Write down the hash of every file of a site, then the mark that it is complete.

    Args:
        site: its folder, see `site`.

    Raises:
        InvalidParameter: the list cannot hold the name of a file.
    """
    files = _sites.files(site)
    for name in files:
        author.check_name(name)
    lines = "".join(f"{digest}  {name}\n" for name, digest in files.items())
    write_atomic(site / SEALED, lines.encode())
    write_atomic(site / COMPLETE, "".join(f"{line}\n" for line in _sites.mark(site)).encode())


def seal_sweep(root: Path, name: str, jobs: Iterable[Job]) -> None:
    """Write down the record of every run of a sweep by its hash, and seal the sweep's folder.

    Args:
        root: the repository.
        name: of the sweep.
        jobs: the runs that its table was made from.
    """
    lines = "".join(f"{sha256_of(root / job.sentinel)}  {job.sentinel}\n" for job in jobs)
    write_atomic(sweep(root, name) / RUNS, lines.encode())
    seal_site(sweep(root, name))


def finished(root: Path, profile: str, *, solutions: bool) -> Path:
    """Return the folder of a profile's site, which is complete, as it was made, and of the present runs.

    Raises:
        MissingArtifact: there is no such site, or its last build failed.
        DamagedArtifact: it changed, or is of other runs; the message says what makes it again.
    """
    place = site(root, profile, solutions=solutions)
    cure = f"run {_sites.command('book', profile, solutions)}"
    if not (place / COMPLETE).is_file():
        raise MissingArtifact(f"there is no finished site of profile {profile}; {cure}")
    if wrong := _sites.damage(place):
        raise DamagedArtifact(f"the site of profile {profile}: {wrong}; {cure}")
    return place


def write_pdf(site: Path, place: Path, data: bytes) -> None:
    """Write the PDF of a site, its hash, and that of the site's list."""
    write_sealed(place, data)
    seal = seal_of(place)
    write_atomic(seal, seal.read_bytes() + f"{sha256_of(site / SEALED)}  {site.name}/{SEALED}\n".encode())
