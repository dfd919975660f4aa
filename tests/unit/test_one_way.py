"""Imports point one way: the press imports the audit and the helpers, the audit the helpers alone."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ORDER = ("privhelpers", "privaudit", "bookmaker")


@pytest.mark.parametrize("package", ORDER)
def test_a_package_imports_those_before_it_alone(package):
    later = set(ORDER[ORDER.index(package) + 1 :])
    for path in (ROOT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not later & {name.split(".")[0] for name in names}, path
