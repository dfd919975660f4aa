"""What is made from all runs of a profile, its manifest and its site, read only if it is as it was made.

A run seals its record, `run.json`, which holds the hash of each of its files. The manifest follows from the
records, so it is compared with them. The site has a list of hashes, and `.complete` is the seal of that list,
which it names by its place, and of the manifest of the runs that the site shows: in `runs/<profile>/site`,
`sha256sum -c .complete .sealed` says the same as `make verify`. The seal of a PDF has a line for the site
that was printed. A sweep is sealed in the same way, and its `runs.sha256` has the hash of the record of each
run that its table was made from.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from bookmaker.runner import _bundle, _manifest, _seals
from bookmaker.runner.plan import Job
from privhelpers.artifacts import (
    check_seal,
    parse_json,
    read_bounded,
    seal_of,
    sha256_of,
    write_atomic,
    write_sealed,
)
from privhelpers.errors import DamagedArtifact, MissingArtifact

SITES = {True: "site", False: "public"}  # with solutions, and without them
PDF = "privai-leak.pdf"
PDFS = {True: PDF, False: "privai-leak-public.pdf"}
# What stands beside every epsilon of a chapter's run: what it is worth, and what no epsilon is about.
WORTH, NOT_PROTECTED = _bundle.WORDS["modes"]["research"], tuple(_bundle.WORDS["not_protected"])
MANIFEST = _manifest.MANIFEST
COMPLETE, SEALED = ".complete", ".sealed"
FIRST = ".first"  # a site of the first chapters, of a build that goes on
BESIDE = ("_failed", "build.log")  # in the folder of the site, but no part of it; hidden files are not either
RUNS = "runs.sha256"  # of a sweep, names from the repository on
HTML = "_build/html"
DOCTREES = "_build/.doctrees"  # what Sphinx makes the next site from, where a page did not change


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


def _files(site: Path) -> dict[str, str]:
    """Return the SHA-256 of every file that a site consists of or is made from, by its name below `site`."""
    files = dict(_seals.files_below(site))
    files |= {f"{DOCTREES}/{name}": path for name, path in _seals.files_below(site / DOCTREES)}
    files |= {f"{HTML}/{name}": path for name, path in _seals.files_below(site / HTML, hidden=True)}
    return {name: sha256_of(path) for name, path in files.items() if name.split("/")[0] not in BESIDE}


def _mark(site: Path) -> list[str]:
    """Return the lines of the mark of a site: of its list, named by its place, and of its runs' manifest."""
    manifest = site.parent / _manifest.MANIFEST
    lines = [f"{sha256_of(site / SEALED)}  ../../{site.parent.name}/{site.name}/{SEALED}"]
    return lines + ([f"{sha256_of(manifest)}  ../{manifest.name}"] if manifest.is_file() else [])


def seal_site(site: Path) -> None:
    """Write down the hash of every file of a site, then the mark that it is complete.

    Args:
        site: its folder, see `site`.
    """
    lines = "".join(f"{digest}  {name}\n" for name, digest in _files(site).items())
    write_atomic(site / SEALED, lines.encode())
    write_atomic(site / COMPLETE, "".join(f"{line}\n" for line in _mark(site)).encode())


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


def site_difference(site: Path) -> str:
    """Return the first file of a site that is not as it was when the site was sealed, or ""."""
    try:
        found = _seals.difference(_seals.listed(site / SEALED), _files(site))
    except FileNotFoundError:
        return f"{SEALED} is gone"
    except OSError as error:
        return f"{SEALED} cannot be read ({error.strerror})"
    except DamagedArtifact as error:
        return str(error)
    return found and f"{found} after it was made"


def site_damage(site: Path) -> str:
    """Return what is wrong with a site that has the mark of a complete one, or ""."""
    if site.is_symlink():
        return "it is a link to another folder"
    try:
        mark = read_bounded(site / COMPLETE, _seals.MOST_BYTES).decode("utf-8", "replace").split("\n")[:-1]
        wanted = _mark(site)
        if not mark or mark[0][:64] != wanted[0][:64]:
            return f"{SEALED} changed after it was made"
        if mark[0] != wanted[0]:
            return "it was made as another site, or before a site said which it is"
        if mark[: len(wanted)] != wanted:  # a manifest that is gone is missed by itself
            return f"it shows other runs than {MANIFEST}"
    except FileNotFoundError as error:
        return f"{Path(error.filename).name} is gone"
    except OSError as error:
        return f"{COMPLETE} or {SEALED} cannot be read ({error.strerror})"
    return site_difference(site)


def command(target: str, profile: str, solutions: bool) -> str:
    """Return how a user asks for a site of a profile, or for its PDF."""
    return f"`make {target} PROFILE={profile}{'' if solutions else ' SOLUTIONS=no'}`"


def finished(root: Path, profile: str, *, solutions: bool) -> Path:
    """Return the folder of a profile's site, which is complete, as it was made, and of the present runs.

    Raises:
        MissingArtifact: there is no such site, or its last build failed.
        DamagedArtifact: it is none of these; the message says what makes it again.
    """
    place = site(root, profile, solutions=solutions)
    cure = f"run {command('book', profile, solutions)}"
    if not (place / COMPLETE).is_file():
        raise MissingArtifact(f"there is no finished site of profile {profile}; {cure}")
    if wrong := site_damage(place):
        raise DamagedArtifact(f"the site of profile {profile}: {wrong}; {cure}")
    return place


def write_pdf(site: Path, place: Path, data: bytes) -> None:
    """Write the PDF of a site, its hash, and that of the site's list."""
    write_sealed(place, data)
    seal = seal_of(place)
    write_atomic(seal, seal.read_bytes() + f"{sha256_of(site / SEALED)}  {site.name}/{SEALED}\n".encode())


def pdf_damage(site: Path, place: Path) -> str:
    """Return what is wrong with the PDF of a site, or ""."""
    try:
        check_seal(place, place.name)
        lines = read_bounded(seal_of(place), _seals.MOST_BYTES).decode("utf-8", "replace").split("\n")
        same = lines[1:] == [f"{sha256_of(site / SEALED)}  {site.name}/{SEALED}", ""]
    except (DamagedArtifact, OSError) as error:
        return str(error) if isinstance(error, DamagedArtifact) else f"{place.name}: its site is gone"
    return "" if same else f"{place.name}: was printed from another site than {site.name}/"
