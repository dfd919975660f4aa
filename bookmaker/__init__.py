"""What makes the book: the runner, the site, sweeps and copies for courses. No notebook imports it.

A copy of the book comes first where Python looks for modules, and `notebooks/` where Jupyter does: a file
called `json.py` would be imported there in place of Python's. So it is refused by its name wherever this
package is imported, and make runs this file by itself before every command. Notebooks and records are written
in UTF-8, so that a place whose name has other bytes is refused here as well.
"""
# pathlib imports modules that a file could stand in for; those that are imported here are there already.
# ruff: noqa: PTH110, PTH118, PTH120, PTH208

import os
import sys
from importlib.machinery import PathFinder

_OURS = ("bookmaker", "privaudit", "privhelpers")


def _stand_in(root: str) -> str:
    """Return the first file of a copy of the book that stands in for a module from elsewhere, or ""."""
    folders = {root: _OURS, os.path.join(root, "notebooks"): ()}  # folder -> the modules that belong there
    others = [path for path in sys.path if os.path.realpath(path) not in folders]
    for folder, own in folders.items():
        try:
            names = {name.partition(".")[0] for name in os.listdir(folder)}
        except OSError:  # what is missing from a copy is named by the command that needs it
            continue
        for name in sorted(names.difference(own)):
            found = PathFinder.find_spec(name, [folder])
            if found and found.origin and (name in _OURS or PathFinder.find_spec(name, others)):
                return os.path.relpath(found.origin, root)
    return ""


def _refusal(root: str) -> str:
    """Return why nothing can be made here, or ""."""
    folders = {name: os.environ.get(name, "") for name in ("TMPDIR", "TEMP", "TMP")}
    if os.path.exists(os.path.join(root, "_toc.yml")):  # else the package is installed
        folders["this copy"] = root
        if file := _stand_in(root):
            return f"{ascii(file)[1:-1]} stands in for another module of that name: rename it"
    for name, folder in folders.items():
        if any("\ud800" <= letter <= "\udfff" for letter in folder):  # Python's word for other bytes
            return f"{name} lies in {folder!a}, which is no text in UTF-8: use a folder whose name is"
    return ""


if _message := _refusal(os.path.dirname(os.path.dirname(os.path.realpath(__file__)))):
    sys.stderr.write(f"refused: {_message}\n")
    sys.exit(2)
