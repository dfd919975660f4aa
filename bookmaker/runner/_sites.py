"""What a site and its PDF consist of, and what of them is not as it was made; see `published`."""

from hashlib import sha256
from pathlib import Path

from bookmaker.runner import _manifest, _seals
from privhelpers.artifacts import check_seal, first_difference, seal_of, sha256_of
from privhelpers.errors import DamagedArtifact
from privhelpers.text import inert

COMPLETE, SEALED = ".complete", ".sealed"
OTHER_RUNS = f"it shows other runs than {_manifest.MANIFEST}"  # a whole site, and not of what is there now
BESIDE = ("_failed", "build.log")  # in the folder of the site, but no part of it; hidden files are not either
HTML = "_build/html"
DOCTREES = "_build/.doctrees"  # what Sphinx makes the next site from, where a page did not change


def files(site: Path) -> dict[str, str]:
    """Return the SHA-256 of every file that a site consists of or is made from, by its name below `site`."""
    paths = dict(_seals.files_below(site))
    paths |= {f"{DOCTREES}/{name}": path for name, path in _seals.files_below(site / DOCTREES)}
    paths |= {f"{HTML}/{name}": path for name, path in _seals.files_below(site / HTML, hidden=True)}
    return {name: sha256_of(path) for name, path in paths.items() if name.split("/")[0] not in BESIDE}


def runs(site: Path) -> list[str]:
    """Return the line of the mark of a site that names its runs' manifest, if there is one.

    Raises:
        DamagedArtifact: the manifest cannot be read.
    """
    manifest = site.parent / _manifest.MANIFEST
    return [f"{_digest(manifest)}  ../{manifest.name}"] if manifest.is_file() else []


def _digest(path: Path) -> str:
    return sha256(_seals.read(path)).hexdigest()


def mark(site: Path) -> list[str]:
    """Return the lines of the mark of a site: of its list, named by its place, and of its runs' manifest.

    Raises:
        DamagedArtifact: one of them is gone, or cannot be read.
    """
    return [f"{_digest(site / SEALED)}  ../../{site.parent.name}/{site.name}/{SEALED}", *runs(site)]


def difference(site: Path) -> str:
    """Return the first file of a site that is not as it was when the site was sealed, or ""."""
    try:
        changed = first_difference(_seals.listed(site / SEALED), files(site))
    except DamagedArtifact as error:
        return str(error)
    except OSError as error:
        return f"{inert(Path(error.filename or site).name[:200])} cannot be read ({error.strerror})"
    return changed and f"{changed} after it was made"


def damage(site: Path) -> str:
    """Return what is wrong with a site that has the mark of a complete one, or ""."""
    if site.is_symlink():
        return "it is a link to another folder"
    try:
        given = _seals.read(site / COMPLETE).decode("utf-8", "replace").split("\n")
        wanted = [*mark(site), ""]
        if given[0][:64] != wanted[0][:64]:
            return f"{SEALED} changed after it was made"
        if given[0] != wanted[0]:
            return "it was made as another site, or before a site said which it is"
        if given[1:] != wanted[1:]:
            return OTHER_RUNS
    except DamagedArtifact as error:
        return str(error)
    return difference(site)


def command(target: str, profile: str, solutions: bool) -> str:
    """Return how a user asks for a site of a profile, or for its PDF."""
    if target == "pdf":
        return f"`python -m bookmaker pdf --profile {profile}{'' if solutions else ' --solutions no'}`"
    return f"`make {target} PROFILE={profile}{'' if solutions else ' SOLUTIONS=no'}`"


def pdf_damage(site: Path, place: Path) -> str:
    """Return what is wrong with the PDF of a site, or ""."""
    if not (site / SEALED).is_file():
        return f"{place.name}: its site is gone"
    try:
        digest = check_seal(place, place.name)
        lines = _seals.read(seal_of(place)).decode("utf-8", "replace").split("\n")
        of_site = f"{_digest(site / SEALED)}  {site.name}/{SEALED}"
    except DamagedArtifact as error:
        return str(error)
    same = lines == [f"{digest}  {place.name}", of_site, ""]
    return "" if same else f"{place.name}: was printed from another site than {site.name}/"
