"""Known faults of DP-SGD code, put into ours, are noticed by tests: a few here, all at night."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from count import table
from patience import LIMIT_SECONDS
from table import MUTANTS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
GENERATED = json.loads((HERE / "generated.json").read_text())
SIDE_BY_SIDE = 2
ONE_OF = 29  # for `make test`: a mutant takes seconds


def test_names_are_unique_and_there_are_enough():
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) > 60


def test_every_mutant_by_hand_fits():
    for mutant in MUTANTS:
        text = (ROOT / (mutant.module.replace(".", "/") + ".py")).read_text()
        assert text.count(mutant.old) == 1, mutant.name
        compile(text.replace(mutant.old, mutant.new), mutant.name, "exec")  # else any test would kill it


def test_every_generated_mutant_fits_and_has_a_test_or_a_reason():
    assert len({row["name"] for row in GENERATED}) == len(GENERATED)
    for row in GENERATED:
        text = (ROOT / (row["module"].replace(".", "/") + ".py")).read_text()
        assert text.count(row["old"]) == 1, row["name"]
        compile(text.replace(row["old"], row["new"]), row["name"], "exec")
        assert bool(row["by"]) != bool(row.get("equivalent")), row["name"]
        file, _, test = row["by"].partition("::")
        assert not test or f"def {test.partition('[')[0]}(" in (ROOT / file).read_text(), row["name"]


def test_a_table_counts_the_mutants_that_survived():
    killed = [row["name"] for row in GENERATED if row["by"]]
    names = [mutant.name for mutant in MUTANTS] + killed
    rows = [{"name": name, "killed": name not in (names[0], killed[0])} for name in names]
    text = table(rows, GENERATED, "abc", "a processor")
    assert f"by hand: {len(MUTANTS)}, killed {len(MUTANTS) - 1}." in text
    assert f"{len(GENERATED)}, killed {len(killed) - 1}, equivalent" in text
    assert f"{len(GENERATED) - len(killed)}, survived 1;" in text
    assert sum(line.endswith("| **survived** |") for line in text.splitlines()) == 2


def tried(*arguments, names):
    """Run mutants and assert that each of these is killed."""
    done = subprocess.run(
        [sys.executable, str(HERE / "run.py"), "", str(SIDE_BY_SIDE), *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=LIMIT_SECONDS,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line for line in lines if not line["killed"]] == [], done.stderr[-2000:]
    assert {line["name"] for line in lines} == names, done.stderr[-2000:]
    assert done.returncode == 0


def test_a_few_of_the_mutants_by_hand_are_killed():
    tried("", str(ONE_OF), names={mutant.name for mutant in MUTANTS[::ONE_OF]})


@pytest.mark.nightly
def test_every_mutant_by_hand_is_killed():
    tried(names={mutant.name for mutant in MUTANTS})


@pytest.mark.nightly
def test_every_generated_mutant_is_killed():
    tried("generated", names={row["name"] for row in GENERATED if row["by"]})


@pytest.mark.nightly
def test_the_audit_is_a_second_net():
    """An honest run passes, a loud fault is refuted, one elsewhere is not seen, and one does not run."""
    named = ("", "noise divided twice", "noise missing on the tied matrix", "calibration that overshoots")
    script = (
        "import json, run; run.prepare(); import net\n"
        f"rows = [net.caught(name) for name in {named!r}]\n"
        "names = {mutant.name for mutant in run.MUTANTS}\n"
        "assert len(set(net.NET) & names) == 12\n"
        "print(json.dumps([rows, net.table(rows)]))"
    )
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(HERE)}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=LIMIT_SECONDS)
    rows, lines = json.loads(done.stdout or "[[], []]")
    assert [row.get("refuted", row.get("refused")) for row in rows] == [
        *(False, True, False),
        "BudgetExceeded",
    ], done.stderr[-2000:]
    assert rows[0]["own curve"] < rows[0]["claimed"] < rows[1]["own curve"]
    assert sum("not seen" in line for line in lines) == 2 and any("2 of 3." in line for line in lines)
