"""A repository of toy notebooks, called like the real ones, in which the chain runs in seconds."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import nbformat
from nbformat import v4
from patience import LIMIT_SECONDS

from bookmaker.runner import chain

ROOT = Path(__file__).parents[1]
COPIED = ("__init__", "errors", "validate", "rng", "parameters", "processes", "spelling", "text")
WRITE = "from privhelpers import artifacts\nstore = artifacts.open_store(profile)\n"
HEAD = 'profile: str = "toy"  # name of the profile\nseed: int = 0  # source of chance; in [0, 1000]\n'
PER_MODEL = HEAD + 'model: str = "baseline"  # which model\n'
ALL_MODELS = HEAD + 'models: list[str] = ["baseline"]  # every model\n'


def runs(epsilons: int) -> int:
    """Return how many runs the chain has for so many budgets."""
    return sum(
        {"book": 1, "epsilon": epsilons, "model": len(chain.MAKERS) + epsilons}[step.per]
        for step in chain.CHAIN
    )


def _plain(step: chain.Step) -> tuple[str, list[str]]:
    """Return a notebook that does next to nothing; those that a test looks into stand below."""
    if step.per == "book":
        return HEAD, [WRITE]
    return PER_MODEL, [WRITE + f'store.write_json(f"{step.slug}/{{model}}/a.json", {{}})']


# slug -> parameters cell, code cells
NOTEBOOKS: dict[str, tuple[str, list[str]]] = {
    **{step.slug: _plain(step) for step in chain.CHAIN},
    "synthetic_records": (
        HEAD + "patients: int = 4  # how many; in [1, 100]\n",
        [
            WRITE + "from privhelpers import toy_records",
            'store.write_json("synthetic_records/r.json", {"n": patients})',
        ],
    ),
    "public_pretraining": (
        HEAD + "steps: int = 0  # tenths of a second, at most: until a file `go` is there; in [0, 36000]\n",
        [
            WRITE
            + "import os, sys, time\nfor step in range(steps):\n    time.sleep(0.1)\n"
            + "    print(step, end='\\r', file=sys.stderr)\n    if os.path.exists('go'):\n        break\n"
            + "print('over', file=sys.stderr)",
            'store.write_json("public_pretraining/m.json", {})',
        ],
    ),
    "fine_tuning": (
        HEAD,
        [
            WRITE
            + 'store.read_json("public_pretraining/m.json")\n'
            + 'store.write_json("fine_tuning/m.json", {})'
        ],
    ),
    "private_training": (
        PER_MODEL + "target_epsilon: float = 8.0  # budget, nats; in (0, 1000]\n"
        'accountant: str = "pld"  # which bound; one of pld, rdp\n'
        "widths: list[float] = [0.5, 1.0]  # anything; in (0, 1]\n"
        "private: bool = True  # whether noise is added\n",
        [WRITE + 'store.write_json(f"private_training/{model}/m.json", {"epsilon": target_epsilon})'],
    ),
    "extraction": (
        PER_MODEL,
        [WRITE + "from privhelpers.toy import deep", 'store.write_json(f"extraction/{model}/a.json", {})'],
    ),
    "comparison": (
        ALL_MODELS,
        [
            WRITE + "import privhelpers.toy.shallow as shallow",
            'store.write_json("comparison/summary.json", {"models": {name: {} for name in models}})',
        ],
    ),
    "hipaa": (
        ALL_MODELS + "limit: float = 0.5  # a share; in [0, 1]\n",
        [WRITE + 'store.write_json("hipaa/ledger.json", {"limit": limit})'],
    ),
}
HELPERS = {
    "privhelpers/toy_records.py": '"""Toy."""\n',
    "privhelpers/toy/__init__.py": '"""Toy."""\n',
    "privhelpers/toy/deep.py": '"""Toy."""\n\nfrom . import base\n',
    "privhelpers/toy/base.py": '"""Toy."""\n\n\ndef late():\n    from ..toy_late import x\n    return x\n',
    "privhelpers/toy/shallow.py": '"""Toy."""\n',
    "privhelpers/toy_late.py": '"""Toy."""\n\nx = 1\n',
    "privhelpers/toy_nobody.py": '"""Toy."""\n',
    "bookmaker/site/__init__.py": '"""Toy."""\n',
    "bookmaker/site/__main__.py": '''"""Toy."""
import sys
from pathlib import Path
from bookmaker.runner.published import seal_site
name = "public" if sys.argv[4:] == ["--solutions", "no"] else "site"
page = Path("runs", sys.argv[3], name, "_build", "html", "index.html")
page.parent.mkdir(parents=True, exist_ok=True)
page.write_text("toy")
seal_site(page.parents[2])
''',
}
PROFILE = "shared:\n  seed: 3\nprivate_training:\n  target_epsilon: [8]\n"


def write_notebook(path: Path, parameters: str, cells: list[str], prose: str = "# Toy") -> None:
    """Write a stripped notebook."""
    tagged = v4.new_code_cell(parameters.rstrip("\n"), metadata={"tags": ["parameters"]})
    code = [v4.new_code_cell(cell) for cell in cells]
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    path.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(v4.new_notebook(cells=[v4.new_markdown_cell(prose), tagged, *code], metadata=kernel), path)


def build(root: Path) -> Path:
    """Make the toy repository at `root` and return it."""
    (root / "privhelpers").mkdir(parents=True)
    for name in COPIED:
        origin, copy = ROOT / "privhelpers" / f"{name}.py", root / "privhelpers" / f"{name}.py"
        shutil.copy2(origin, copy)
    ignored = shutil.ignore_patterns("__pycache__")
    for folder in ("privhelpers/artifacts", "privaudit", "bookmaker/runner"):
        shutil.copytree(ROOT / folder, root / folder, ignore=ignored)
    for name in ("__init__", "__main__"):
        shutil.copy2(ROOT / "bookmaker" / f"{name}.py", root / "bookmaker")
    for name, text in HELPERS.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text)
    for slug, (parameters, cells) in NOTEBOOKS.items():
        write_notebook(root / "notebooks" / f"{slug}.ipynb", parameters, cells)
    shutil.copy2(ROOT / "Snakefile", root)
    (root / "_toc.yml").write_text("root: book/intro\n")
    (root / "_config.yml").write_text("title: Toy\n")
    (root / "book").mkdir()
    (root / "book" / "intro.md").write_text("# Toy\n")
    (root / "params").mkdir()
    (root / "params" / "toy.yml").write_text(PROFILE)
    return root


def environment(root: Path) -> dict[str, str]:
    """Return the environment in which the toy's own copy of the package is found, and no other."""
    return {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}


def command(*arguments: str) -> list[str]:
    """Return the command line of the runner."""
    return [sys.executable, "-m", "bookmaker", *arguments]


def call(root: Path, *arguments: str) -> subprocess.CompletedProcess:
    """Run the runner in the toy repository to its end."""
    return finish(root, command(*arguments))


def python(root: Path, script: str) -> subprocess.CompletedProcess:
    """Run a script in the toy repository to its end."""
    return finish(root, [sys.executable, "-c", script])


def finish(
    root: Path, line: list[str], variables: dict[str, str] | None = None
) -> subprocess.CompletedProcess:
    """Run a command line in the toy repository to its end, with more environment variables."""
    return subprocess.run(
        line,
        cwd=root,
        env=environment(root) | (variables or {}),
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
