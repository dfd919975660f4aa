"""Part I: the assertions of its notebooks hold for other readers' parameters too.

The smoke profile runs them with the parameters of the book.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from patience import LIMIT_SECONDS

from bookmaker.runner import chain, profiles

ROOT = Path(__file__).parents[2]
# Runs the code cells one after the other, once for each set of parameters.
RUN = """
import json, sys
import nbformat
path, sets = sys.argv[1], json.loads(sys.argv[2])
cells = nbformat.read(path, as_version=4).cells
for given in sets:
    print("with", given, file=sys.stderr)
    space = {}
    for cell in cells:
        if cell.cell_type == "code":
            exec(compile(cell.source, path, "exec"), space)
            if "parameters" in cell.metadata.get("tags", []):
                assert set(given) <= set(space), "no such parameter"
                space.update(given)
"""
# What other readers would try. With it go two corners of the ranges: everything at its lowest, which takes
# minutes in the last chapter and is left out there, and everything at its highest.
OTHER = {
    "anonymization": {"seed": 3, "areas": 20, "heart_factor": 0.5},
    "differential_privacy": {"seed": 3, "epsilon": 2.0, "delta": 1e-7, "prior": 0.2, "people": 400},
    "composition": {"seed": 3, "delta": 1e-8, "small_epsilon": 1.5, "big_epsilon": 0.8, "runs": 40},
    "more_mechanisms": {"seed": 3, "epsilon": 2.0, "people": 400},
    "hypothesis_testing": {"seed": 3, "epsilon": 0.4, "delta": 1e-7, "fpr": 0.05, "prior": 0.1},
    "renyi_accounting": {"noise_multiplier": 2.5, "sample_rate": 0.05, "steps": 300},
}
CLOSED = re.compile(r" in [\[(](\S+), (\S+)\]$")


def corners(slug: str) -> list[dict]:
    """Return the parameters of a chapter, all at the low ends of their ranges, and all at the high ends."""
    numbers = {
        name: (parameter, CLOSED.search(parameter.allowed).groups())
        for name, parameter in profiles.declared(chain.source(ROOT, slug)).items()
        if parameter.type_name in ("int", "float")
    }
    return [
        {name: type(parameter.default)(ends[side]) for name, (parameter, ends) in numbers.items()}
        for side in (0, 1)
    ]


@pytest.mark.parametrize("slug", OTHER)
def test_a_foundation_runs_with_other_parameters(slug, tmp_path):
    environment = os.environ | {"PYTHONPATH": str(ROOT), "MPLCONFIGDIR": str(tmp_path)}
    sets = [OTHER[slug], *corners(slug)[slug == "renyi_accounting" :]]
    command = [sys.executable, "-c", RUN, str(chain.source(ROOT, slug)), json.dumps(sets)]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS
    )
    assert done.returncode == 0, done.stderr[-3000:]
