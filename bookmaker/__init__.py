"""What makes the book: the runner, the site, sweeps and copies for courses. No notebook imports it.

A copy of the book comes first where Python looks for modules, and `notebooks/` where Jupyter does: a file
called `json.py` would be imported there in place of Python's. So it is refused by its name wherever this
package is imported, and make runs this file by itself before every command.
"""
# pathlib imports modules that a file could stand in for; those that are imported here are there already.
# ruff: noqa: PTH110, PTH118, PTH120, PTH208

import os
import sys
from importlib.machinery import PathFinder

_OURS = ("bookmaker", "privhelpers")


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


_root = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
if os.path.exists(os.path.join(_root, "_toc.yml")) and (_file := _stand_in(_root)):
    sys.stderr.write(f"refused: {ascii(_file)[1:-1]} stands in for another module of that name: rename it\n")
    sys.exit(2)
