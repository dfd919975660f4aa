"""What stands in a variable of `make` is text: neither make nor the shell runs a part of it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from patience import LIMIT_SECONDS

ROOT = Path(__file__).parents[2]
# The environment counts as made.
MADE = [word for stamp in ("lab", "stamp", "dev") for word in ("-o", f".venv/.{stamp}")]
STUB = """#!{python}
import json, sys
with open({log!r}, "a") as out:
    out.write(json.dumps(sys.argv[1:]) + "\\n")
"""
HANDED_OVER = {  # what recipes pass on, besides their own words
    "book": ("PROFILE", "JOBS", "CLUSTER", "LIMIT", "SOLUTIONS"),
    "lab": (),
    "serve": ("PROFILE", "SOLUTIONS", "PORT"),
    "sweep": ("PROFILE", "JOBS", "CLUSTER", "LIMIT", "EPSILONS", "SEEDS", "ARCHS"),
    "teach": ("SUBMITTED",),
    "audit": (
        *("MODEL", "RECORDS", "HOLDOUT", "CANARIES", "BASE", "REFERENCE", "EPSILON", "DELTA"),
        *("SYNTHETIC", "COLUMNS", "PATIENTS", "NOTES", "EFFORT", "OUT", "PDF", "SHOW", "SEED"),
        *("ANSWERS", "BUDGET", "BUNDLE", "KEY", "LEDGER", "DRY", "FAIL_IF", "JSON"),
    ),
    "test": (),
}


def variables():
    given = re.search(r"^GIVEN :=((?:.*\\\n)*.*)", (ROOT / "Makefile").read_text(), re.MULTILINE)[1]
    return given.replace("\\", "").split()


@pytest.fixture
def made(tmp_path):
    """Return a function that calls make with a Python that only writes down its arguments."""
    stub, log = tmp_path / "python", tmp_path / "log"
    stub.write_text(STUB.format(python=sys.executable, log=str(log)))
    stub.chmod(0o755)

    def call(target, given, by_environment=False):
        log.write_text("")
        command = ["make", "-s", *MADE, "-o", ".venv-grading/.stamp", target]
        command += [f"PYTHON={stub}", f"GRADER={stub}"]
        if not by_environment:
            command += [f"{name}={value}" for name, value in given.items()]
        environment = {**os.environ, **given} if by_environment else None
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS
        )
        return done, [json.loads(line) for line in log.read_text().splitlines()]

    return call


@pytest.mark.parametrize("by_environment", [False, True])
@pytest.mark.parametrize("target", HANDED_OVER)
def test_nothing_that_is_given_is_run(made, tmp_path, target, by_environment):
    gone = f"touch {tmp_path}/gone"
    value = (
        f"$(shell {gone}1) $({gone}2) `{gone}3` ; {gone}4 ; '; {gone}5;' \"; {gone}6\" $${{X}} # | & > y\nz"
    )
    done, calls = made(target, dict.fromkeys(variables(), value), by_environment)
    assert not list(tmp_path.glob("gone*"))
    if target == "test":  # refused before anything starts
        assert done.returncode != 0 and done.stderr and not calls
        return
    assert done.returncode == 0 and calls, done.stderr
    words = [word.partition("=")[2] if word.startswith("--") else word for word in calls[-1]]
    assert words.count(value) == len(HANDED_OVER[target]), calls


@pytest.mark.parametrize(
    ("given", "named"), [(["book", "PROFILE=nosuch"], "nosuch"), (["audit", "MODEL=m"], "--model=m")]
)
def test_a_wrong_value_is_named_in_one_line(given, named):
    command = ["make", "--no-print-directory", *MADE, *given, f"PYTHON={sys.executable}"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    first, *rest = done.stderr.splitlines()
    assert done.returncode == 2 and named in first and first.startswith("refused: "), done.stderr
    assert len(rest) == 1 and rest[0].startswith("make: ***"), "the second line is make's own"


def test_the_usual_values_reach_the_programs(made):
    _, (sweep,) = made("sweep", {"EPSILONS": "1 8", "SEEDS": "0 1", "JOBS": "3"})
    assert {"--epsilons=1 8", "--seeds=0 1", "--architectures=", "--cores=3", "--profile=course"} <= {*sweep}
    assert "3" in made("test", {"JOBS": "3"})[1][0] and "2" in made("test", {})[1][0]
    assert made("audit", {})[1][0] == ["-m", "privaudit.cli", "demo"]
    lab = made("lab", {"OPTIONS": "--no-browser --port=9999 *"})[1][0]
    assert lab[-3:] == ["--no-browser", "--port=9999", "*"]
