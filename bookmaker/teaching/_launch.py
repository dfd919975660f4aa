"""Copies of the chapters that run where nothing is installed: on Binder, on Colab, on a JupyterHub.

A copy begins with a cell that fetches the book if it is not there, installs what is missing, and makes the
small results that the chapter reads. The publish workflow puts the copies on the branch `launch`, to which
the buttons of the site lead; `_config.yml` says where the repository is, the one place that says it.
"""

import re
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from bookmaker.runner import chain, files, notebooks
from bookmaker.teaching._student import read_profile
from privhelpers.artifacts import check_name
from privhelpers.errors import InvalidParameter
from privhelpers.validate import shown

PROFILE = "smoke"  # small enough to be made while a reader waits
SAID = """This copy was made to run in the cloud.
Its first cell fetches the book, installs what is missing and makes results of the smallest profile: a
minute for a chapter of theory, some minutes for one that reads models.
The numbers of this profile mean nothing; those of the course are on the site."""
SETUP = """import importlib
import os
import subprocess
import sys
from pathlib import Path

fetched = Path("privai-leak").resolve()
places = [p for p in (*fetched.parents, fetched) if (p / "binder" / "prepare.py").is_file()]
if not places:
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", {address!r}, fetched], check=True)
    places = [fetched]
os.chdir(places[0])
sys.path.insert(0, str(places[0]))
prepare = [sys.executable, "binder/prepare.py", "--packages", "--results", {slug!r}]
with subprocess.Popen(prepare, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
    for line in run.stdout:
        print(line, end="")
importlib.invalidate_caches()
assert run.returncode == 0, "this computer could not be made ready; the lines above say why\""""


def repository(root: Path) -> str:
    """Return the public address of the repository.

    Raises:
        InvalidParameter: `_config.yml` names none, or something else than an address.
    """
    given = files.config(root)["repository"].get("url")
    if not re.fullmatch(r"https://[^'\"\\\s]+", str(given)):
        raise InvalidParameter(
            f"_config.yml, repository.url = {shown(given)}: must be an address that starts with https://, "
            "from which copies fetch the book"
        )
    return given.rstrip("/")


def launch_copy(source: NotebookNode, slug: str, address: str) -> NotebookNode:
    """Return the copy of a chapter that makes itself ready.

    Args:
        source: the notebook of the chapter; not changed.
        slug: its name.
        address: of the repository.
    """
    copy = nbformat.from_dict(source)
    read_profile(copy, PROFILE, slug)
    ready = new_code_cell(SETUP.format(address=address, slug=slug), id="launch-ready")
    copy.cells[:0] = [new_markdown_cell(SAID, id="launch-said"), ready]
    return copy


def write_copies(root: Path, folder: Path) -> list[Path]:
    """Write a copy of every chapter and return their paths.

    Args:
        root: the repository.
        folder: where the copies go, made if it is missing; what else lies there stays.

    Raises:
        InvalidParameter: `_config.yml` does not say where the repository is.
        MissingArtifact: a notebook is missing.
    """
    address, names = repository(root), [f"{check_name(slug)}.ipynb" for slug in chain.SLUGS]
    with files.replacing(folder) as new:
        for slug, name in zip(chain.SLUGS, names, strict=True):
            copy = launch_copy(notebooks.read(chain.source(root, slug)), slug, address)
            notebooks.write(copy, new / name)
    return [folder / name for name in names]
