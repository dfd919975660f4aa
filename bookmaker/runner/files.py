"""Files and folders: what authors edit, what is sealed with a hash, and what a command makes again.

A file that an author edits is read with a refusal that names it and says what it must be.
"""

import contextlib
import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from privhelpers.artifacts import SEAL, check_seal, parse_yaml, read_bounded
from privhelpers.errors import DamagedArtifact, InvalidParameter
from privhelpers.text import blank, inert, quoted
from privhelpers.validate import shown

INDEX = "book/index.yml"
MOST_BYTES = 10_000_000  # of a list of hashes, and of a record, a manifest, or a summary
# What would end an entry of Sphinx's index, or begin one of another kind.
_NOT_IN_A_TERM = re.compile(
    r"[\x00-\x1f\x7f-\xa0\u2028\u2029,;!`]|^\s*(single|pair|double|triple|see|seealso|module|keyword|operator|object|"
    r"exception|statement|builtin):"
)


def files(folder: Path, pattern: str = "**/*") -> list[Path]:
    """Return the files below a folder that match and that an author keeps there, sorted.

    Left out are byte code and what editors and systems leave: hidden files, copies (`x~`), and the links
    that lead nowhere by which an editor marks a file that is open.
    """
    return sorted(
        path
        for path in folder.glob(pattern)
        if path.is_file()
        and not any(
            part[0] in ".#" or part[-1] == "~" or part == "__pycache__"
            for part in path.relative_to(folder).parts
        )
    )


def text(root: Path, file: str) -> str:
    """Return what a file of the repository says.

    Raises:
        InvalidParameter: it is not text in UTF-8.
    """
    try:
        return (root / file).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidParameter(f"{file}: must be text in UTF-8, and byte {error.start + 1} is not") from error


def mapping(root: Path, file: str) -> dict[str, Any]:
    """Return the mapping in a YAML file of the repository.

    Raises:
        InvalidParameter: it does not map names to values.
    """
    said = text(root, file)
    try:
        value = parse_yaml(said)
    except ValueError as error:
        raise InvalidParameter(f"{file}: must be YAML ({error})") from error
    if not isinstance(value, dict):
        raise InvalidParameter(f"{file}: must be YAML that maps names to values")
    return value


def config(root: Path) -> dict[str, Any]:
    """Return the settings of the site; what maps names to values here is empty where it is missing.

    Raises:
        InvalidParameter: `_config.yml` is something else.
    """
    settings = mapping(root, "_config.yml")
    for name in ("discussion", "html", "repository"):
        settings[name] = settings.get(name) or {}
        if not isinstance(settings[name], dict):
            raise InvalidParameter(f"_config.yml, {name}: must map names to values, such as url: https://...")
    return settings


def contents(root: Path) -> dict[str, Any]:
    """Return the table of contents: `root`, and `parts` of `caption` and `chapters`, each a `file`.

    Raises:
        InvalidParameter: `_toc.yml` is something else.
    """
    toc = mapping(root, "_toc.yml")
    try:
        files = [entry["file"] for part in toc["parts"] for entry in part["chapters"]]
        named = [toc["root"], files[0], *(part["caption"] for part in toc["parts"]), *files]
    except (LookupError, TypeError):  # there may be no chapter at all
        named = [None]
    if not all(isinstance(name, str) for name in named):
        raise InvalidParameter("_toc.yml: must have a root, and parts with caption and chapters of files")
    return toc


def index(root: Path) -> dict[str, list[str]]:
    """Return the terms of the search by chapter; empty if the file is missing.

    Raises:
        InvalidParameter: `book/index.yml` is something else, or a term would be more than one entry.
    """
    terms = mapping(root, INDEX) if (root / INDEX).is_file() else {}
    for slug, listed in terms.items():
        if not (isinstance(listed, list) and all(isinstance(term, str) for term in listed)):
            raise InvalidParameter(f"{INDEX}, {quoted(slug)}: must be a list of terms")
        if wrong := [term for term in listed if blank(term) or _NOT_IN_A_TERM.search(term)]:
            raise InvalidParameter(
                f"{INDEX}, {quoted(slug)}: {shown(wrong[0])} cannot be a term; leave out commas, semicolons, "
                "exclamation marks, backticks, line breaks, and a first word such as see:, and write a "
                "backslash in single quotes: in double ones it begins a control character"
            )
    return terms


def below(folder: Path, *, hidden: bool = False) -> dict[str, Path]:
    """Return every file below `folder` by its name there, sorted; hidden files are the system's, not ours.

    Args:
        folder: where to look.
        hidden: include those too, because an upload of the folder does.

    Raises:
        DamagedArtifact: one of them is a link, or something else than a file, such as a pipe.
    """
    found = {}
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder)
        if file.is_dir() and not file.is_symlink():
            continue
        if hidden or not any(part.startswith(".") for part in name.parts):
            if file.is_symlink() or not file.is_file():
                raise DamagedArtifact(f"{inert(name.as_posix()[:200])}: must be a plain file")
            found[name.as_posix()] = file
    return found


def hashes(folder: Path, record: str) -> dict[str, str]:
    """Return the SHA-256 of every artifact of the run in `folder`, by relative name, its record left out.

    Raises:
        DamagedArtifact: a file has no seal, or other bytes than its seal says, or is a link; or a seal
            belongs to no file.
    """
    found = below(folder)
    sealed = {name for name in found if not name.endswith(SEAL)}
    for name in sorted(found.keys() - sealed):
        if name.removesuffix(SEAL) not in sealed:
            raise DamagedArtifact(f"{inert(name)}: its file is gone, or it was added")
    return {name: check_seal(found[name], name) for name in sorted(sealed - {record})}


def read(path: Path) -> bytes:
    """Return a mark, a seal, a list, or a manifest, of `MOST_BYTES` at most.

    Raises:
        DamagedArtifact: it is gone, or cannot be read; the message names it.
    """
    try:
        return read_bounded(path, MOST_BYTES)
    except FileNotFoundError as error:
        raise DamagedArtifact(f"{path.name} is gone") from error
    except OSError as error:
        raise DamagedArtifact(f"{path.name} cannot be read ({error.strerror})") from error


def listed(path: Path) -> dict[str, str]:
    """Return the hash of each name in a list of the format of `sha256sum -c`; errors are as in `read`."""
    lines = read(path).decode("utf-8", "replace").split("\n")
    return {line[66:]: line[:64] for line in lines if line}


def remove(place: Path) -> None:
    """Remove a file, a link, or a folder with all that it holds; nothing may be there."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)


@contextlib.contextmanager
def replacing(folder: Path, *made: str) -> Iterator[Path]:
    """Yield an empty folder, whose files move to `folder` once the body is over; if it raises, none do.

    Args:
        folder: where the files belong, made if it is missing.
        made: patterns of what an earlier command made there, which is removed; a user's own files stay.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}-") as place:
        new = Path(place)
        yield new
        folder.mkdir(exist_ok=True)
        for old in {path for pattern in made for path in folder.glob(pattern)}:
            remove(old)
        for path in list(new.iterdir()):
            remove(folder / path.name)
            path.rename(folder / path.name)
