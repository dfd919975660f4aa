"""Whether every cell of an executed notebook ran."""

from nbformat import NotebookNode

from bookmaker.runner import notebooks
from privhelpers.errors import RunFailed


def check_complete(notebook: NotebookNode, name: str) -> None:
    """Refuse an executed notebook in which a code cell failed or never ran.

    A `sys.exit(0)` ends a papermill run with success and a killed kernel leaves every cell marked as
    completed, so the cells themselves are asked.

    Raises:
        RunFailed: naming the first such cell.
    """
    for number, cell in enumerate(notebooks.code_cells(notebook), 1):
        if not cell.source.strip():
            continue
        errors = [output for output in cell.outputs if output.output_type == "error"]
        if errors:
            raise RunFailed(f"{name}: code cell {number} raised {errors[0].ename}: {errors[0].evalue}")
        if cell.execution_count is None:
            raise RunFailed(f"{name}: code cell {number} never ran (did an earlier cell call sys.exit?)")
