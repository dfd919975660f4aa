"""Make mutants by rule, put each into the package, and say which test notices it first.

    python tests/mutants/generate.py SEED A_ROOM [ROOMS]

One operator, number, comparison or condition of one line changes. Lines and rules are drawn by the seed, so
many from each room; the verdicts are printed as JSON, and `generated.json` keeps them. A mutant meets the
tests that reach its line, the shortest first, and every test of its room only where none of those notices it.
"""

import ast
import contextlib
import copy
import gc
import json
import random
import resource
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
import run
from table import Mutant

KEPT = Path(__file__).with_name("generated.json")
LIMIT = 150  # seconds of the processor for the tests of one mutant
UNIT = "tests/privhelpers/test_"
ROOMS = {
    "accounting": (
        (
            *("_bounds", "_renyi", "_runs", "_participation", "_calibration", "_moments", "_search"),
            "_spent",
        ),
        ("accounting_runs", "accounting_renyi", "accounting", "accounting_search"),
    ),
    "ledger": (("_chain", "_terms", "_writer"), ("ledger",)),
    "lower_bounds": (
        ("_one_run", "_result", "_scores", "_chance", "_own_curve"),
        ("lower_bounds_bounds", "lower_bounds_scores", "lower_bounds_own_curve", "lower_bounds_refusals"),
    ),
    "dpsgd": (
        (
            *("_plan", "_batches", "_optimizer", "_units", "_chance", "_log", "_loop", "_losses"),
            *("_engine", "_checks", "_contributions", "_recorder", "_layers", "_canaries"),
            *("_checkpoint", "_resume"),
        ),
        ("dpsgd_engine", "dpsgd_training", "dpsgd_resume", "dpsgd_canaries"),
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


def _statements(tree: ast.AST) -> dict[int, range]:
    """Return, for each line, the lines of the innermost statement that it is of; of a block, its head."""
    of = {}
    for node in ast.walk(tree):  # outer ones come first
        if isinstance(node, ast.stmt):
            inner = getattr(node, "body", None)
            end = max(node.lineno, inner[0].lineno - 1) if inner else node.end_lineno
            of |= dict.fromkeys(range(node.lineno, end + 1), range(node.lineno, end + 1))
    return of


def candidates(module: str) -> Iterator[tuple[Mutant, range]]:
    """Yield every mutant of a module whose line stands in it once, and the lines of its statement."""
    text = (run.ROOT / (module.replace(".", "/") + ".py")).read_text()
    lines, tree = text.split("\n"), ast.parse(text)
    statements = _statements(tree)
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
                yield (
                    Mutant(name, module, old, changed, ""),
                    statements.get(node.lineno, range(node.lineno, node.lineno + 1)),
                )


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


class Covering:
    """Notes which lines of a room each test reaches, and how long the test takes."""

    def __init__(self, room: str) -> None:
        """Look at the files of one room."""
        self.place = str(run.ROOT / "privhelpers" / room)
        self.tests: dict[str, list[str]] = defaultdict(list)  # by "module line"
        self.seconds: dict[str, float] = {}

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item):
        """Trace one test."""
        seen = set()

        def line(frame, event, _):
            seen.add((frame.f_code.co_filename, frame.f_lineno))
            return line

        def enter(frame, event, _):
            return line if frame.f_code.co_filename.startswith(self.place) else None

        start = time.process_time()
        sys.settrace(enter)
        yield
        sys.settrace(None)
        self.seconds[item.nodeid] = time.process_time() - start
        for file, number in seen:
            self.tests[f"{Path(file).stem} {number}"].append(item.nodeid)


def covered(room: str, suites: list[str]) -> tuple[dict[str, list[str]], dict[str, float]]:
    """Return the tests that reach each line of a room, by module and line, and the seconds of each test."""

    def work() -> str:
        covering = Covering(room)
        pytest.main(["-q", *run.SHORT, *suites], plugins=[covering])
        return json.dumps([covering.tests, covering.seconds])

    return tuple(json.loads(run.said(work)))


def verdict(mutant: Mutant, tests: list[str]) -> str:
    """Return the first test that notices a mutant, "" if none does, or "no end"."""

    def work() -> str:
        resource.setrlimit(resource.RLIMIT_CPU, (LIMIT, LIMIT))
        signal.alarm(20 * LIMIT)  # for one that waits and uses no processor
        sys.meta_path.insert(0, run.Finder(mutant))
        first = First()
        pytest.main(["-x", "-q", *run.SHORT, *tests], plugins=[first])
        return first.failed or "nobody"

    said = run.said(work)
    return {"": "no end", "nobody": ""}.get(said, said)


def main(seed: str, each: str, *rooms: str) -> None:
    """Judge mutants of rooms, `each` from every one, and print a line for each."""
    run.prepare()
    gc.freeze()
    for room in rooms or ROOMS:
        modules, names = ROOMS[room]
        suites = [f"{UNIT}{name}.py" for name in names]
        found = [one for module in modules for one in candidates(f"privhelpers.{room}.{module}")]
        chosen = random.Random(f"{seed} {room}").sample(found, min(int(each), len(found)))
        tests, seconds = covered(room, suites)
        for mutant, lines in chosen:
            stem = mutant.module.rpartition(".")[2]
            near = {test for number in lines for test in tests.get(f"{stem} {number}", [])}
            # What ran in a fixture, a cache or another process is of no test: then all have to look.
            by = verdict(mutant, sorted(near, key=seconds.get)) if near else ""
            by = by or verdict(mutant, suites)
            row = {"name": mutant.name, "module": mutant.module, "old": mutant.old, "new": mutant.new}
            print(json.dumps({**row, "of": len(found), "by": by}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
