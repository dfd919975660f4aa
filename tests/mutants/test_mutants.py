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
    command = [sys.executable, str(HERE / "run.py"), ""]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    runs = [
        subprocess.Popen(
            [*command, str(part), str(SIDE_BY_SIDE)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for part in range(SIDE_BY_SIDE)
    ]
    outputs = [run.communicate(timeout=LIMIT_SECONDS) for run in runs]
    lines = [json.loads(line) for out, _ in outputs for line in out.splitlines()]
    assert [line for line in lines if not line["killed"]] == [], [error[-2000:] for _, error in outputs]
    assert {line["name"] for line in lines} == {mutant.name for mutant in MUTANTS}
