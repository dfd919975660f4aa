"""What a run depends on, as one SHA-256: the notebook's code and every helper that it imports.

Prose, cell ids and outputs are left out, so that a better sentence does not retrain a model. Imports are
followed with `ast`, lazily written ones inside functions too, through every `__init__` on the way.
"""

import ast
import functools
import hashlib
import json
import re
from pathlib import Path

from bookmaker.runner import notebooks
from privhelpers.artifacts import sha256_of
from privhelpers.errors import InvalidParameter

PACKAGES = ("privhelpers", "bookmaker")


def _files_of(root: Path, module: str) -> list[Path]:
    """Return the files of `module` itself: each package's `__init__` on the way, then the module."""
    parts, found = module.split("."), []
    for depth in range(1, len(parts) + 1):
        place = root.joinpath(*parts[:depth])
        candidates = (place / "__init__.py", place.with_suffix(".py"))
        found += [path for path in candidates if path.is_file()][:1]
    return found


@functools.cache
def _imported(code: str, package: str) -> frozenset[str]:
    """Return the modules of our packages that `code` names; `package` resolves its relative imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                stem = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*stem, *([node.module] if node.module else [])])
            # `from package import name`: the name may be a module or a thing inside the package
            names |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return frozenset(name for name in names if name.split(".")[0] in PACKAGES)


def _neighbours(root: Path, file: Path) -> set[Path]:
    """Return the files that `file` of the package imports directly, and its package's data files."""
    package = ".".join(file.relative_to(root).parent.parts)
    modules = _imported(file.read_text(encoding="utf-8"), package) | {package}
    found = {path for name in modules for path in _files_of(root, name)}
    if file.name == "__init__.py":
        found |= {p for p in file.parent.iterdir() if p.is_file() and p.suffix not in (".py", ".pyc")}
    return found


def _closure(root: Path, start: set[Path]) -> list[Path]:
    """Return `start` and every file of the package that it leads to, sorted."""
    seen: set[Path] = set()
    queue = set(start)
    while queue:
        file = queue.pop()
        seen.add(file)
        if file.suffix == ".py":
            queue |= _neighbours(root, file) - seen
    return sorted(seen)


def _named_by(cell: str) -> frozenset[str]:
    """Return the modules of our package that a cell imports."""
    try:
        return _imported(cell, "")
    except SyntaxError:  # IPython's magics are no Python: read the cell without them
        lines = (re.sub(r"^(\s*)[%!].*", r"\1pass", line) for line in cell.splitlines())
        return _imported("\n".join(lines), "")


def code_of(notebook: Path) -> list[str]:
    """Return the source of every code cell."""
    return [cell.source for cell in notebooks.code_cells(notebooks.read(notebook))]


def helpers_of(root: Path, notebook: Path) -> list[Path]:
    """Return the files of the package that a notebook imports, directly or not."""
    start: set[Path] = set()
    for number, source in enumerate(code_of(notebook), 1):
        try:
            modules = _named_by(source)
        except SyntaxError as error:
            raise InvalidParameter(
                f"notebooks/{notebook.name}, code cell {number}, line {error.lineno}: {error.msg}"
            ) from error
        start |= {path for name in modules for path in _files_of(root, name)}
    return _closure(root, start)


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _hashes(root: Path, files: list[Path]) -> list[tuple[str, str]]:
    return [(file.relative_to(root).as_posix(), sha256_of(file)) for file in files]


def of_notebook(root: Path, notebook: Path) -> str:
    """Return the fingerprint of a notebook of the book at `root`: its code and its helpers' bytes.

    Args:
        root: the repository.
        notebook: a source notebook.

    Raises:
        InvalidParameter: a code cell is not Python.
    """
    return _digest([code_of(notebook), _hashes(root, helpers_of(root, notebook))])


def of_site(root: Path) -> str:
    """Return the fingerprint of everything but the runs that the site is built from."""
    files = [root / name for name in ("_config.yml", "_toc.yml") if (root / name).is_file()]
    for folder, pattern in (("book", "**/*"), ("notebooks", "*.ipynb")):
        files += [path for path in (root / folder).glob(pattern) if path.is_file() and path.name[:1] != "."]
    # All helpers: a page of the site says which of them serves which chapter.
    sources = sorted(path for package in PACKAGES for path in (root / package).rglob("*.py"))
    return _digest(_hashes(root, sorted(files)) + _hashes(root, sources))
