"""`pip install .[audit]` in a fresh environment: the command starts, and no tool of the book comes along.

It fetches the packages (about 1.6 GB installed), which takes a minute or two.
"""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
TOOLS = {
    "jupyterlab",
    "notebook",
    "jupyter-book",
    "ipykernel",
    "papermill",
    "sphinx",
    "snakemake",
    "nbgrader",
}


def test_the_audit_installs_without_the_tools_of_the_book(tmp_path):
    def run(*command):
        return subprocess.run(
            list(map(str, command)), cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout

    run(sys.executable, "-m", "venv", tmp_path / "env")
    python = tmp_path / "env" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-compile", f"{ROOT}[audit]")
    lines = run(python, "-m", "pip", "list", "--format=freeze").splitlines()
    installed = {line.partition("==")[0].lower() for line in lines}
    assert "torch" in installed and not TOOLS & installed
    assert "audit a model" in run(tmp_path / "env" / "bin" / "privai-leak", "--help")
