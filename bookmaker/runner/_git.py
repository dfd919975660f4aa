"""What git knows of a copy of the book, whatever repository the environment names or lies around it."""

import os
import subprocess
from pathlib import Path


def git(root: Path, *words: str) -> str:
    """Return what git prints about the repository in the folder `root`.

    Raises:
        OSError: there is no git.
        CalledProcessError: it fails, as where there is no repository.
    """
    ours = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "--git-dir=.git", *words]
    return subprocess.run(command, cwd=root, env=ours, capture_output=True, text=True, check=True).stdout


def commit(root: Path) -> str:
    """Return the commit of a copy of the book, marked where files differ from it; empty without git."""
    try:
        return git(root, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*").strip()
    except (OSError, subprocess.CalledProcessError):
        return ""
