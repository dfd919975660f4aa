"""`python -m bookmaker.precompile`, a part of `make env`: keep the byte code of what our programs import.

Packages are installed without byte code, for most of their modules are never imported. Python keeps that of
a module when it first imports it, unless PYTHONDONTWRITEBYTECODE is set, as it is in many containers: then
every process compiles torch, transformers and the rest anew, and a run starts in three times the time.
"""

import importlib
import os
import sys
from pathlib import Path

# Beside what runs import: the schedule, the site, and the tests of both.
TOOLS = (
    *("snakemake.cli", "snakemake_executor_plugin_slurm", "papermill.cli"),
    *("jupyter_book.cli.main", "sphinx.builders.html", "sphinx_book_theme", "sphinx_external_toc"),
    *("myst_nb.sphinx_ext", "sphinx_proof", "sphinx_exercise", "sphinx_design", "sphinxcontrib.bibtex"),
    *("sphinx_togglebutton", "sphinx_copybutton", "sphinx_thebe", "sphinx_comments"),
    *("sphinx_jupyterbook_latex", "sphinx_multitoc_numbering"),
    *("pytest", "xdist", "hypothesis", "playwright.sync_api"),
)


def _main() -> int:
    """Import everything."""
    sys.dont_write_bytecode = False
    from bookmaker.runner import _bytecode, _warm

    os.environ.update(_warm.LOADED)
    _warm.load(Path.cwd(), [])
    for module in TOOLS:
        importlib.import_module(module)
    _bytecode.trust_contents(Path.cwd())
    return 0


if __name__ == "__main__":
    sys.exit(_main())
