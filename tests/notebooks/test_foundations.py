"""Part I: its notebooks need no torch, and their assertions hold for other readers' parameters too.

The smoke profile runs them with the parameters of the book.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from patience import LIMIT_SECONDS

from bookmaker.runner import chain

ROOT = Path(__file__).parents[2]
# Runs the code cells one after the other, after the parameters were replaced, where nothing may load torch.
RUN = """
import json, sys
import nbformat
path, given = sys.argv[1], json.loads(sys.argv[2])


class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "torch":
            raise ImportError("a chapter of Part I loaded torch")


sys.meta_path.insert(0, NoTorch())
space = {}
for cell in nbformat.read(path, as_version=4).cells:
    if cell.cell_type == "code":
        exec(compile(cell.source, path, "exec"), space)
        if "parameters" in cell.metadata.get("tags", []):
            assert set(given) <= set(space), "no such parameter"
            space.update(given)
"""
OTHER = {
    "anonymization": '{"seed": 3, "areas": 20, "small": 4}',
    "differential_privacy": '{"seed": 3, "epsilon": 2.0, "delta": 1e-7, "prior": 0.2, "people": 400}',
    "composition": '{"seed": 3, "delta": 1e-8, "small_epsilon": 1.5, "big_epsilon": 0.8, "runs": 40}',
    "hypothesis_testing": '{"seed": 3, "epsilon": 0.4, "delta": 1e-7, "fpr": 0.05, "prior": 0.1}',
    "renyi_accounting": '{"noise_multiplier": 2.5, "sample_rate": 0.01, "steps": 900}',
}


@pytest.mark.parametrize("slug", OTHER)
def test_a_foundation_runs_without_torch(slug, tmp_path):
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OMP_NUM_THREADS": "1",
        "MPLCONFIGDIR": str(tmp_path),
    }
    command = [sys.executable, "-c", RUN, str(chain.source(ROOT, slug)), OTHER[slug]]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS
    )
    assert done.returncode == 0, done.stderr[-3000:]
