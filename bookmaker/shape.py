"""The shape of the packages in numbers: code lines and public names of each room, and who uses what.

    python -m bookmaker.shape              a line for each room
    python -m bookmaker.shape stats        the public names of one room with their chapters and rooms

A code line holds a token of code: blank lines, comments and docstrings do not count. A name is public if it
has no underscore and stands at the top of a module that has none either; a module called `_name.py` serves
its room alone, and what stands in it is public only where the room's `__init__` exports it. A name is used
where a chapter, a program outside the packages (on a page of `book/`, in `binder/`, the Snakefile) or another
room names it, or where a used function of its own room takes or returns it.
"""

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from bookmaker.runner import notebooks, written
from bookmaker.runner.chain import slug_of
from privaudit.console import guarded, one_line
from privhelpers.artifacts import repository_root

PACKAGES = ("privhelpers", "bookmaker")
# The rooms of privhelpers from the ground up: a room imports rooms of lower levels, and of its own level
# only what `tests/unit/test_rooms.py` allows by name.
LEVELS = (
    ("errors", "validate", "spelling"),
    ("rng", "artifacts", "parameters", "pages", "browser", "processes", "text"),
    ("anonymity", "mechanisms", "accounting", "stats"),
    ("records", "models"),
    ("training", "dpsgd", "ledger"),
    ("attacks", "audit", "defenses", "hipaa"),
    ("results", "claims", "figures"),
)
SILENT = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
SILENT |= {tokenize.ENCODING, tokenize.ENDMARKER}


_parse = cache(ast.parse)  # a file that did not change is read once a process


@dataclass
class Room:
    """One room of a package.

    Attributes:
        about: the first line of what the room says about itself.
        lines: of code.
        names: public function or class -> where it is defined, `file:line`.
        says: public name -> the first line of its docstring.
        users: public name -> chapters, programs and rooms that take it.
        signatures: public name -> names that its signature or its fields mention.
    """

    about: str = ""
    lines: int = 0
    names: dict[str, str] = field(default_factory=dict)
    says: dict[str, str] = field(default_factory=dict)
    users: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    signatures: dict[str, set[str]] = field(default_factory=dict)

    def unused(self) -> list[str]:
        """Return the public names that nobody outside the room needs."""
        needed = [name for name in self.names if self.users[name]]
        reached = set(needed)
        while needed:  # what a used name takes or returns is part of the room's face too
            needed = [
                n for n in self.signatures[needed.pop()] if n in self.names and n not in reached
            ] + needed
            reached |= set(needed)
        return sorted(set(self.names) - reached)


@cache
def _code_lines(source: str) -> int:
    """Return how many lines of a module hold code.

    >>> _code_lines('"Why."\\n\\n# note\\nx = (1,\\n     2)\\n')
    2
    """
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in SILENT:
            lines |= set(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(_parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node, clean=False
        ):
            text = node.body[0]
            lines -= set(range(text.lineno, text.end_lineno + 1))
    return len(lines)


def _first_line(node: ast.Module | ast.ClassDef | ast.FunctionDef) -> str:
    return (ast.get_docstring(node) or "").partition("\n")[0]


def _exported(init: Path) -> set[str]:
    """Return what the `__init__` of a room takes from its modules."""
    if not init.is_file():
        return set()
    nodes = ast.walk(ast.parse(init.read_text(encoding="utf-8")))
    return {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}


def _room_of(path: Path, root: Path) -> str:
    parts = path.relative_to(root).parts
    return f"{parts[0]}.{parts[1].removesuffix('.py')}"


def _mentions(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} | {
        word
        for n in ast.walk(node)
        if isinstance(n, ast.Constant) and isinstance(n.value, str)
        for word in n.value.replace("[", " ").replace("]", " ").split()
    }


def _face(node: ast.FunctionDef | ast.ClassDef) -> set[str]:
    """Return the names in a function's signature, or in the fields, bases and methods of a class."""
    if isinstance(node, ast.FunctionDef):
        return _mentions(node.args) | (_mentions(node.returns) if node.returns else set())
    names = {name for base in node.bases for name in _mentions(base)}
    for inner in node.body:
        if isinstance(inner, ast.AnnAssign):
            names |= _mentions(inner.annotation)
        elif isinstance(inner, ast.FunctionDef) and not inner.name.startswith("_"):
            names |= _face(inner)
    return names


def _module_of(room_or_deeper: str) -> str:
    """Return the room of a module: `privhelpers.stats` for `privhelpers.stats.clustered`."""
    return ".".join(room_or_deeper.split(".")[:2])


def _chain(node: ast.AST) -> list[str]:
    """Return the names of `a.b.c` from the left, or nothing where it does not begin with a plain name."""
    if isinstance(node, ast.Name):
        return [node.id]
    left = _chain(node.value) if isinstance(node, ast.Attribute) else []
    return [*left, node.attr] if left else []


@cache
def _uses(tree: ast.AST) -> frozenset[tuple[str, str]]:
    """Return what code takes from the packages, as (room, name).

    >>> sorted(_uses(ast.parse("from privhelpers import stats as s\\ns.bounds.lower(1).upper")))
    [('privhelpers.stats', 'bounds'), ('privhelpers.stats', 'lower')]
    """
    uses: set[tuple[str, str]] = set()
    modules: dict[str, str] = {}  # a name in this code -> the module of ours that it stands for
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES:
            for alias in node.names:
                modules[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                if "." in node.module:
                    uses.add((_module_of(node.module), alias.name))
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] in PACKAGES:
                    modules[alias.asname or alias.name.split(".")[0]] = (
                        alias.name if alias.asname else alias.name.split(".")[0]
                    )
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and (names := _chain(node)) and names[0] in modules:
            full = [*modules[names[0]].split("."), *names[1:]]
            uses |= {(_module_of(".".join(full)), name) for name in full[2:]}
    return frozenset(uses)


def chapter_code(path: Path) -> str:
    """Return the code of a notebook without IPython's magics."""
    lines = (line for cell in notebooks.code_of(path) for line in cell.splitlines())
    return "\n".join(line for line in lines if not line.lstrip().startswith(("%", "!")))


def _page_code(path: Path) -> str:
    """Return the Python programs that a page of `book/` shows."""
    return "\n".join(re.findall(r"^```python\n(.*?)^```", path.read_text(encoding="utf-8"), re.M | re.S))


def _programs(root: Path) -> dict[str, str]:
    """Return the code outside of the packages and the chapters that calls them, by the place of its file."""
    programs = {f"book/{path.name}": _page_code(path) for path in written.files(root / "book", "*.md")}
    for path in written.files(root / "binder", "*.py"):
        programs[f"binder/{path.name}"] = path.read_text(encoding="utf-8")
    if (root / "Snakefile").is_file():  # Python up to its first rule
        code = (root / "Snakefile").read_text(encoding="utf-8")
        programs["Snakefile"] = re.split(r"^rule ", code, maxsplit=1, flags=re.M)[0]
    return programs


def modules(root: Path) -> list[Path]:
    """Return every module of both packages, sorted."""
    return sorted(path for package in PACKAGES for path in written.files(root / package, "**/*.py"))


def rooms(root: Path) -> dict[str, Room]:
    """Return every room of both packages, by `package.room`, with who uses what.

    Args:
        root: the repository.
    """
    all_rooms: dict[str, Room] = defaultdict(Room)
    readers: list[tuple[str, ast.AST]] = []
    for path in modules(root):
        name, source = _room_of(path, root), path.read_text(encoding="utf-8")
        tree, room = _parse(source), all_rooms[_room_of(path, root)]
        room.lines += _code_lines(source)
        if path.name == "__init__.py" or len(path.relative_to(root).parts) == 2:
            room.about = _first_line(tree)
        readers.append((name, tree))
        inner = path.stem.startswith("_") and path.stem != "__init__"  # `__main__` is a program
        for node in tree.body:
            if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
                continue
            if not inner or node.name in _exported(path.with_name("__init__.py")):
                room.names[node.name] = f"{path.relative_to(root)}:{node.lineno}"
                room.signatures[node.name] = _face(node)
                room.says[node.name] = _first_line(node)
    for path in written.files(root / "notebooks", "*.ipynb"):
        readers.append((slug_of(path.name), _parse(chapter_code(path))))
    readers += [(place, _parse(code)) for place, code in _programs(root).items()]
    for reader, tree in readers:
        for room, name in _uses(tree):
            if room != reader and room in all_rooms and name in all_rooms[room].names:
                all_rooms[room].users[name].add(reader)
    return dict(all_rooms)


def _main(arguments: list[str]) -> int:
    """Print the shape and return 0."""
    parser = argparse.ArgumentParser(prog="python -m bookmaker.shape", description=__doc__.splitlines()[0])
    parser.add_argument("room", nargs="?", help="list the public names of one room, such as stats")
    asked = parser.parse_args(arguments).room
    shape = rooms(repository_root())
    if asked:
        name = next((name for name in shape if asked in (name, name.split(".")[1])), None)
        if name is None:
            parser.error(f"{asked}: no such room; known: {', '.join(shape)}")
        unused = shape[name].unused()
        for public, place in sorted(shape[name].names.items()):
            users = ", ".join(sorted(shape[name].users[public])) or (
                "NOBODY" if public in unused else "(its room)"
            )
            print(f"{public:32} {place:52} {users}")
        return 0
    print(f"{'room':32}{'code lines':>12}{'public':>8}{'unused outside':>16}")
    for package in PACKAGES:
        mine = {name: room for name, room in shape.items() if name.startswith(f"{package}.")}
        for name, room in sorted(mine.items(), key=lambda item: -item[1].lines):
            print(f"{name:32}{room.lines:>12,}{len(room.names):>8}{len(room.unused()):>16}")
        lines, names = sum(r.lines for r in mine.values()), sum(len(r.names) for r in mine.values())
        print(f"{package:32}{lines:>12,}{names:>8}{sum(len(r.unused()) for r in mine.values()):>16}\n")
    print(f"{'both':32}{sum(room.lines for room in shape.values()):>12,}")
    print("\nA module _name.py serves its room alone; its names are public only where __init__ exports them.")
    return 0


if __name__ == "__main__":
    sys.exit(guarded(lambda: _main(sys.argv[1:]), one_line))
