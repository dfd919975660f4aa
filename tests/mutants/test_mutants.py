"""Every known fault of DP-SGD code, put into ours, is noticed by the tests."""

import json
import os
import subprocess
import sys
from pathlib import Path

from patience import LIMIT_SECONDS
from table import MUTANTS

HERE = Path(__file__).parent
SIDE_BY_SIDE = 2


def test_names_are_unique_and_there_are_enough():
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 25


def test_every_mutant_is_killed():
    done = subprocess.run(
        [sys.executable, str(HERE / "run.py"), "", str(SIDE_BY_SIDE)],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=LIMIT_SECONDS,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line for line in lines if not line["killed"]] == [], done.stderr[-2000:]
    assert {line["name"] for line in lines} == {mutant.name for mutant in MUTANTS}, done.stderr[-2000:]
    assert done.returncode == 0
