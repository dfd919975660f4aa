"""Make mutants by rule, put each into the package, and say which test notices it first.

    python tests/mutants/generate.py SEED A_ROOM [ROOMS]

One operator, number, comparison or condition of one line changes. Lines and rules are drawn by the seed, so
many from each room; the verdicts are printed as JSON, and `generated.json` keeps them.
"""

import ast
import contextlib
import copy
import gc
import io
import json
import os
import random
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import run
from table import Mutant

KEPT = Path(__file__).with_name("generated.json")
LIMIT = 150  # seconds for the tests of one mutant
UNIT = "tests/unit/test_"
ROOMS = {
    "accounting": (
        ("_bounds", "_renyi", "_runs", "_participation", "_calibration"),
        ("accounting_runs", "accounting_renyi", "accounting"),
    ),
    "ledger": (("_chain", "_terms", "_writer"), ("ledger",)),
    "audit": (("_one_run", "_result", "_scores", "_chance"), ("audit_bounds", "audit_scores")),
    "dpsgd": (
        ("_plan", "_batches", "_optimizer", "_units", "_chance", "_log"),
        ("dpsgd_engine", "dpsgd_training", "dpsgd_resume"),
    ),
}
SWAPPED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult,
    ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
CALLED = {
    "min": "max",
    "max": "min",
    "sqrt": "exp",
    "floor": "ceil",
    "ceil": "floor",
    "all": "any",
    "any": "all",
}


def _changed(node: ast.AST) -> tuple[str, ast.AST] | None:
    """Return the rule that fits a node, and the node changed by it."""
    new = copy.deepcopy(node)
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in SWAPPED:
        new.ops = [SWAPPED[type(node.ops[0])]()]
        return "comparison", new
    if isinstance(node, ast.BinOp | ast.BoolOp) and type(node.op) in SWAPPED:
        new.op = SWAPPED[type(node.op)]()
        return "operator", new
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        new.value = node.value + 1 if type(node.value) is int else node.value * 2
        return "number", new
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub):
        return "sign", new.operand
    if isinstance(node, ast.IfExp):
        new.body, new.orelse = new.orelse, new.body
        return "branch", new
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
        name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
        if name in CALLED:
            setattr(new.func, "id" if isinstance(node.func, ast.Name) else "attr", CALLED[name])
            return "call", new
    return None


def candidates(module: str) -> Iterator[Mutant]:
    """Yield every mutant of a module whose line stands in it once."""
    text = (run.ROOT / (module.replace(".", "/") + ".py")).read_text()
    lines, tree = text.split("\n"), ast.parse(text)
    messages = {
        id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)
    }
    for node in ast.walk(tree):
        if id(node) in messages or not (found := _changed(node)) or node.lineno != node.end_lineno:
            continue
        rule, new = found
        old = lines[node.lineno - 1]
        if not old.isascii() or text.count(f"\n{old}\n") != 1 or text.count(old) != 1:
            continue
        put = ast.unparse(new)
        changed = f"{old[: node.col_offset]}{put}{old[node.end_col_offset :]}"
        with contextlib.suppress(SyntaxError):
            ast.parse(text.replace(old, changed))
            if ast.dump(ast.parse(text.replace(old, changed))) != ast.dump(tree):
                name = f"{module.removeprefix('privhelpers.')}: {rule}, {old.strip()} -> {changed.strip()}"
                yield Mutant(name, module, old, changed, "")


class First:
    """Notes the first test that fails."""

    failed = ""

    def pytest_runtest_logreport(self, report):
        """Keep the name of a failed test."""
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def pytest_collectreport(self, report):
        """Keep the name of a file that cannot be read."""
        if report.failed and not self.failed:
            self.failed = report.nodeid


def verdict(mutant: Mutant, suites: list[str]) -> str:
    """Return the first test that notices a mutant, "" if none does, or "no end"."""
    reading, writing = os.pipe()
    if not (pid := os.fork()):
        signal.alarm(LIMIT)
        sys.meta_path.insert(0, run.Finder(mutant))
        first = First()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            pytest.main(["-x", "-q", *run.SHORT, *suites], plugins=[first])
        os.write(writing, (first.failed or "nobody").encode())
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        said = pipe.read().decode()
    os.waitpid(pid, 0)
    return {"": "no end", "nobody": ""}.get(said, said)


def main(seed: str, each: str, *rooms: str) -> None:
    """Judge mutants of rooms, `each` from every one, and print a line for each."""
    run.prepare()
    gc.freeze()
    for room in rooms or ROOMS:
        modules, suites = ROOMS[room]
        found = [m for module in modules for m in candidates(f"privhelpers.{room}.{module}")]
        chosen = random.Random(f"{seed} {room}").sample(found, min(int(each), len(found)))
        for mutant in chosen:
            by = verdict(mutant, [f"{UNIT}{suite}.py" for suite in suites])
            row = {"name": mutant.name, "module": mutant.module, "old": mutant.old, "new": mutant.new}
            print(json.dumps({**row, "of": len(found), "by": by}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
