"""Files that an author edits, each read with a refusal that names it and says what it must be."""

from pathlib import Path
from typing import Any

import yaml

from privhelpers.errors import InvalidParameter


def text(root: Path, file: str) -> str:
    """Return what a file of the repository says.

    Raises:
        InvalidParameter: it is no text in UTF-8.
    """
    try:
        return (root / file).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidParameter(f"{file}: must be text in UTF-8; byte {error.start + 1} is none") from error


def mapping(root: Path, file: str) -> dict[str, Any]:
    """Return the mapping in a YAML file of the repository.

    Raises:
        InvalidParameter: it is no mapping of names to values.
    """
    said = text(root, file)
    try:
        value = yaml.safe_load(said)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidParameter(f"{file}: must be YAML ({' '.join(str(error).split())})") from error
    if not isinstance(value, dict):
        raise InvalidParameter(f"{file}: must be YAML that maps names to values")
    return value


def config(root: Path) -> dict[str, Any]:
    """Return the settings of the site; `html` and `repository` are mappings, empty where they are missing.

    Raises:
        InvalidParameter: `_config.yml` is something else.
    """
    settings = mapping(root, "_config.yml")
    for name in ("html", "repository"):
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
        toc["parts"][0]  # the build shows the first one while the others run
        files = [entry["file"] for part in toc["parts"] for entry in part["chapters"]]
        named = [toc["root"], *(part["caption"] for part in toc["parts"]), *files]
    except (LookupError, TypeError):
        named = [None]
    if not all(isinstance(name, str) for name in named):
        raise InvalidParameter("_toc.yml: must have a root, and parts with caption and chapters of files")
    return toc
