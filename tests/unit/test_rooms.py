"""The shape of the package: direction of imports, sizes, docstrings, quiet import."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from bookmaker import shape

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "privhelpers"
LEVEL = {room: level for level, rooms in enumerate(shape.LEVELS) for room in rooms}
# Imports inside one level that the design allows.
WITHIN = {
    ("validate", "errors"),
    ("artifacts", "text"),
    ("pages", "text"),
    ("parameters", "text"),
    ("processes", "text"),
    ("dpsgd", "ledger"),
    ("defenses", "attacks"),
    ("hipaa", "attacks"),
    ("claims", "results"),
    ("figures", "results"),
}
FILES = sorted(PACKAGE.rglob("*.py"))


def room_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported_rooms(tree: ast.AST) -> set[str]:
    rooms = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "privhelpers":
            parts = node.module.split(".")
            rooms |= {parts[1]} if len(parts) > 1 else {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            names = [alias.name.split(".") for alias in node.names]
            rooms |= {parts[1] for parts in names if parts[0] == "privhelpers" and len(parts) > 1}
    return rooms - {"__version__"}


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_upward(path):
    room = room_of(path)
    if room == "__init__":
        assert not imported_rooms(ast.parse(path.read_text()))
        return
    assert room in LEVEL, f"{room} has no place in the order of rooms"
    for other in imported_rooms(ast.parse(path.read_text())) - {room}:
        assert LEVEL[other] < LEVEL[room] or (room, other) in WITHIN, f"{room} must not import {other}"


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(PACKAGE)))
def test_public_functions_are_documented_and_typed(path):
    tree = ast.parse(path.read_text())
    if path.stat().st_size:
        assert ast.get_docstring(tree), "a room says why it exists"
    classes = [n for n in tree.body if isinstance(n, ast.ClassDef) and not n.name.startswith("_")]
    functions = [n for scope in (tree, *classes) for n in scope.body if isinstance(n, ast.FunctionDef)]
    for node in functions:
        if node.name.startswith("_"):
            continue
        assert ast.get_docstring(node), f"{node.name} has no docstring"
        arguments = [a for a in node.args.args + node.args.kwonlyargs if a.arg not in ("self", "cls")]
        untyped = [a.arg for a in arguments if a.annotation is None]
        assert not untyped, f"{node.name}: no type for {', '.join(untyped)}"
        assert node.returns is not None or node.name == "torch_generator", f"{node.name}: no return type"


def test_import_is_quiet_and_light():
    code = (
        "import sys, privhelpers, privhelpers.artifacts, privhelpers.accounting, privhelpers.stats;"
        "import bookmaker.runner._cli, nbformat;"
        "sys.exit(' '.join({'torch', 'lark'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, text=True)
    assert done.returncode == 0, f"loaded or failed: {done.stderr}"
    assert not done.stdout and not done.stderr
