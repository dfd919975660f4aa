"""What a result follows from: code as one SHA-256, versions, commit, machine.

A run depends on its notebook's code and on every helper that it imports. Prose, cell ids and outputs are
left out, so that a better sentence does not retrain a model. Imports are followed with `ast`, lazily written
ones inside functions too, through every `__init__` on the way.
"""

import ast
import functools
import hashlib
import json
import os
import platform
import re
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

import privhelpers
from bookmaker.runner import files as sources
from bookmaker.runner import notebooks
from privhelpers.artifacts import SEAL, sha256_of
from privhelpers.errors import InvalidParameter

VERSIONS = ("torch", "transformers", "opacus", "dp-accounting", "numpy")
OF_SOME = ("peft",)  # told of the runs alone whose code imports it
PACKAGES = ("privhelpers", "privaudit", "bookmaker")
# A run's record; and its notebook where it is kept, no .ipynb, so that no tool takes it for a source.
RECORD, PAGE = OF_A_RUN = ("run.json", "page.json")
READER, KEPT_RESULTS = "open_reference", "reference"  # what reads kept results, and where they lie
STUDY = "study"  # the profile whose chapters are kept
PUBLIC, BEST = KEPT_MODELS = ("public", "best")  # the folders of its models, which other profiles take


@functools.cache
def _imported(code: str, package: str) -> frozenset[str]:
    """Return the modules of our packages that `code` names; `package` resolves its relative imports."""
    tree, names = ast.parse(code), set()
    for node in ast.walk(tree) if "import" in code else ():  # most cells have none
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


@functools.cache
def _kept(code: str) -> frozenset[str]:
    """Return the folders of kept results that `code` names."""
    tree = ast.parse(code if READER in code else "")
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = [call.args[0] for call in calls if getattr(call.func, "id", "") == READER]
    if any(not isinstance(name, ast.Constant) for name in named):
        raise ValueError(f'{READER} must be given a name as text, such as {READER}("real")')
    return frozenset(name.value for name in named)


def _python(cell: str) -> str:
    """Return a cell without IPython's magics, which are no Python."""
    try:
        ast.parse(cell)
    except SyntaxError:
        return "\n".join(re.sub(r"^(\s*)[%!].*", r"\1pass", line) for line in cell.splitlines())
    return cell


@contextmanager
def _reading(where: str) -> Iterator[None]:
    """Turn what keeps code from being read meanwhile into a refusal that says where."""
    try:
        yield
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f", line {error.lineno}" if getattr(error, "lineno", None) else ""
        said = getattr(error, "msg", "") or str(error) or "nested too deep"
        raise InvalidParameter(f"{where}{line}: {said}") from error


def digest(value: object) -> str:
    """Return the SHA-256 of what JSON can hold."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


class Helpers:
    """Which file of our packages leads to which others, each read once; for the length of one plan."""

    def __init__(self, root: Path) -> None:
        """Know nothing yet of the repository at `root`."""
        self.root = root
        self._files: dict[str, list[Path]] = {}
        self._next: dict[Path, set[Path]] = {}
        self._hashes: dict[Path, str] = {}

    def _files_of(self, module: str) -> list[Path]:
        """Return the files of `module` itself: each package's `__init__` on the way, then the module."""
        if module not in self._files:
            parts, files = module.split("."), []
            for depth in range(1, len(parts) + 1):
                place = self.root.joinpath(*parts[:depth])
                candidates = (place / "__init__.py", place.with_suffix(".py"))
                files += [path for path in candidates if path.is_file()][:1]
            self._files[module] = files
        return self._files[module]

    def _neighbors(self, file: Path) -> set[Path]:
        """Return the files that `file` of a package imports directly, and the data that belong to it."""
        if file not in self._next:
            package = ".".join(file.relative_to(self.root).parent.parts)
            with _reading(file.relative_to(self.root).as_posix()):
                modules = _imported(file.read_text(encoding="utf-8"), package) | {package}
            files = {path for name in modules for path in self._files_of(name)}
            if file.name == "__init__.py":
                files |= {path for path in sources.files(file.parent, "*") if path.suffix != ".py"}
            self._next[file] = files
        return self._next[file]

    def of(self, notebook: Path, profile: str = "") -> list[Path]:
        """Return the files that a notebook reads: of the packages, directly or not, and of kept results.

        What is kept of the profile that it runs for is left out: a run would be out of date as soon as it
        is kept. So are kept pages and records, which no chapter reads.

        Raises:
            InvalidParameter: a code cell, or a helper, is not Python, or does not name what it reads.
        """
        queue: set[Path] = set()
        seen: set[Path] = set()
        for number, source in enumerate(notebooks.code_of(notebook), 1):
            with _reading(f"notebooks/{notebook.name}, code cell {number}"):
                code = _python(source)
                modules, folders = _imported(code, ""), _kept(code)
            queue |= {path for name in modules for path in self._files_of(name)}
            for name in folders - {profile, *(KEPT_MODELS if profile == STUDY else ())}:
                kept = sources.files(self.root / KEPT_RESULTS / name)
                seen |= {path for path in kept if path.name.removesuffix(SEAL) not in OF_A_RUN}
        while queue:
            file = queue.pop()
            seen.add(file)
            if file.suffix == ".py":
                queue |= self._neighbors(file) - seen
        return sorted(seen)

    def packages(self, notebook: Path, profile: str = "") -> tuple[str, ...]:
        """Return the packages whose versions decide the numbers of a notebook's runs.

        Raises:
            InvalidParameter: as `of`.
        """
        helpers = [file for file in self.of(notebook, profile) if file.suffix == ".py"]
        code = "\n".join(
            [*notebooks.code_of(notebook), *(file.read_text(encoding="utf-8") for file in helpers)]
        )
        return *VERSIONS, *(name for name in OF_SOME if re.search(rf"(?m)^\s*(import|from) {name}\b", code))

    def hashes(self, files: list[Path]) -> list[tuple[str, str]]:
        """Return the path below the repository and the SHA-256 of each file."""
        for file in files:
            if file not in self._hashes:
                self._hashes[file] = sha256_of(file)
        return [(file.relative_to(self.root).as_posix(), self._hashes[file]) for file in files]

    def fingerprint(self, notebook: Path, profile: str = "") -> str:
        """Return the fingerprint of a source notebook, run for a profile: its code, and what `of` returns.

        Raises:
            InvalidParameter: as `of`.
        """
        return digest([notebooks.code_of(notebook), self.hashes(self.of(notebook, profile))])


def of_site(root: Path) -> str:
    """Return the fingerprint of everything but the runs that the site is built from."""
    files = [root / name for name in ("_config.yml", "_toc.yml") if (root / name).is_file()]
    files += sources.files(root / "notebooks", "*.ipynb")
    # All of the packages: their code makes the pages, which show words of their data.
    for folder in ("book", *PACKAGES):
        files += sources.files(root / folder)
    return digest(Helpers(root).hashes(files))


def versions(packages: Iterable[str] = (*VERSIONS, *OF_SOME)) -> dict[str, str]:
    """Return the versions that decide the numbers; no package is imported for it."""
    found = {"python": platform.python_version(), "privhelpers": privhelpers.__version__}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def machine() -> str:
    """Return processor and cores of this machine, with what it multiplies bfloat16, if it does, and GPUs."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.is_file() else []
    name = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
    flags = next((line.split(":", 1)[1].split() for line in lines if line.startswith("flags")), [])
    short = next((f", {flag}" for flag in ("amx_bf16", "avx512_bf16") if flag in flags), "")
    known_to_driver = sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))
    told = "".join(file.read_text(encoding="utf-8") for file in known_to_driver)
    gpus = "".join(f", {model.strip()}" for model in re.findall(r"(?m)^Model:(.*)", told))
    return f"{name or platform.processor() or platform.machine()}, {os.cpu_count()} cores{short}{gpus}"


def git(root: Path, *words: str) -> str:
    """Return what git prints about the repository in the folder `root`, whatever the environment names.

    Raises:
        OSError: git is not installed.
        CalledProcessError: it fails, for example because `root` is not a repository.
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
