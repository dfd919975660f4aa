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


def circle_free(package, name_of):
    """Return the parts of a package in an order in which each imports those before it alone."""
    graph = {}
    for path in (ROOT / package).rglob("*.py"):
        part = name_of(".".join(path.relative_to(ROOT).with_suffix("").parts))
        used = {name_of(name) for name in imported(path) if name.startswith(f"{package}.")}
        graph.setdefault(part, set()).update(used - {part})
    return list(graphlib.TopologicalSorter(graph).static_order())  # raises CycleError


def test_the_rooms_of_the_helpers_import_each_other_in_no_circle():
    order = circle_free("privhelpers", lambda name: name.split(".")[1])
    assert order.index("errors") < order.index("artifacts") < order.index("figures")


def test_the_modules_of_the_audit_import_each_other_in_no_circle():
    modules = [
        ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in (ROOT / "privaudit").rglob("*.py")
    ]

    def module(name):
        return max((one for one in modules if f"{name}.".startswith(f"{one}.")), key=len, default="")

    assert len(circle_free("privaudit", module)) > 10


def test_import_is_quiet_and_light():
    code = (
        "import sys, privhelpers.accounting, privhelpers.claims, privhelpers.figures, privhelpers.hipaa;"
        "import bookmaker.runner.cli, nbformat;"
        "sys.exit(' '.join({'torch', 'lark'} & set(sys.modules)) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
