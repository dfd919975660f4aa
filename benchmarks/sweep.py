"""How long a sweep of twelve private runs takes on two cores, beside the same runs one after the other.

Both are `make sweep` at the smoke profile, six budgets under two seeds, in fresh copies of the book that
share nothing: once with two cores, once with one, where Snakemake starts a run when the one before it has
ended. What the budgets of a seed share (patients, public checkpoint, shadow models) is made once in both.
Not part of `make bench`, because it takes half an hour; nothing else should run meanwhile.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EPSILONS, SEEDS, LIMIT = ("0.5", "1", "2", "4", "8", "10"), ("0", "1"), 0.6
LEFT = shutil.ignore_patterns("runs", "build", "_build", ".*", "__pycache__")


def seconds(cores: int) -> tuple[float, int]:
    """Run the sweep in a fresh copy of the book and return its wall seconds and the number of notebooks."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(shutil.copytree(ROOT, Path(folder) / "book", ignore=LEFT))
        command = [sys.executable, "-m", "bookmaker.sweep", "--profile", "smoke", "--cores", str(cores)]
        start = time.perf_counter()
        subprocess.run(
            [*command, "--epsilons", *EPSILONS, "--seeds", *SEEDS],
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy)},
            stdout=sys.stderr,
            check=True,
        )
        return time.perf_counter() - start, len(list(copy.glob("runs/*/notebooks/**/*.ipynb")))


def main() -> None:
    """Measure and print."""
    together, notebooks = seconds(2)
    in_turn, again = seconds(1)
    assert notebooks == again, "the two sweeps ran different notebooks"
    print(f"# A sweep of {len(EPSILONS) * len(SEEDS)} private runs, smoke profile, {notebooks} notebooks\n")
    print(f"Two cores: {together:.0f} s of wall time; one run at a time: {in_turn:.0f} s;")
    print(f"side by side takes {together / in_turn:.2f} of the time (wanted: {LIMIT} or less).")


if __name__ == "__main__":
    main()
