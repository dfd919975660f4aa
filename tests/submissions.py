"""Submissions of students who never were.

    PYTHONPATH=. python tests/submissions.py FOLDER
    make teach SUBMITTED=FOLDER

`right` hands in the solutions. `wrong-1`, `wrong-2` and `wrong-3` hand them in with one cell each that
students typically get wrong, from `tests/assignments/<assignment>/wrong_*.py`: its functions say which cell.
"""

import ast
import sys
from pathlib import Path

from bookmaker.runner import notebooks

ROOT = Path(__file__).parents[1]
WRONG = {
    path.name: sorted((ROOT / "tests/assignments" / path.name).glob("wrong_*.py"))
    for path in sorted((ROOT / "assignments").iterdir())
    if path.is_dir()
}


def read(name):
    """Return an assignment as a teacher has it."""
    return notebooks.read(ROOT / "assignments" / name / f"{name}.ipynb")


def functions(source):
    return [node.name for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]


def wrong(notebook, path):
    """Put a wrong solution into a copy of an assignment and return its cell."""
    code = path.read_text(encoding="utf-8")
    (cell,) = [
        cell
        for cell in notebook.cells
        if cell.metadata.get("nbgrader", {}).get("solution")
        and cell.cell_type == "code"
        and functions(cell.source) == functions(code)
    ]
    cell.source = code
    return cell


def write(folder):
    """Write every submission below a folder."""
    for name, paths in WRONG.items():
        for student, path in (("right", None), *((f"wrong-{n + 1}", path) for n, path in enumerate(paths))):
            notebook = read(name)
            if path:
                wrong(notebook, path)
            notebooks.write(notebook, folder / student / name / f"{name}.ipynb")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
