"""Imports point one way, from the press to the audit to the helpers, and the rooms import in no circle."""

import ast
import functools
import graphlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ORDER = ("privhelpers", "privaudit", "bookmaker")


@functools.cache
def imported(path):
    """Return the dotted names that a module imports: `a.b.c` for `from a.b import c`."""
    names = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            names += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return names


@pytest.mark.parametrize("package", ORDER)
def test_a_package_imports_those_before_it_alone(package):
    later = set(ORDER[ORDER.index(package) + 1 :])
    for path in (ROOT / package).rglob("*.py"):
        assert not later & {name.split(".")[0] for name in imported(path)}, path


def test_the_rooms_of_the_helpers_import_each_other_in_no_circle():
    rooms = {}
    for path in (ROOT / "privhelpers").rglob("*.py"):
        names = [name.split(".") for name in imported(path)]
        room = path.relative_to(ROOT / "privhelpers").parts[0].removesuffix(".py")
        used = {parts[1] for parts in names if parts[0] == "privhelpers" and len(parts) > 1}
        rooms.setdefault(room, set()).update(used - {room, "__version__"})
    order = list(graphlib.TopologicalSorter(rooms).static_order())  # raises CycleError
    assert order.index("errors") < order.index("artifacts") < order.index("figures")


def test_the_modules_of_the_audit_import_each_other_in_no_circle():
    modules = {}
    for path in (ROOT / "privaudit").rglob("*.py"):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        modules[name] = set(imported(path))
    graph = {
        name: {other for other in modules if any(f"{used}.".startswith(f"{other}.") for used in names)}
        for name, names in modules.items()
        if not name.endswith("__init__")
    }
    assert len(list(graphlib.TopologicalSorter(graph).static_order())) > 10  # raises CycleError


def test_import_is_quiet_and_light():
    code = (
        "import sys, privhelpers.accounting, privhelpers.claims, privhelpers.figures, privhelpers.hipaa;"
        "import bookmaker.runner.cli, nbformat;"
        "sys.exit(' '.join({'torch', 'lark'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
