"""A kernel whose process was forked beforehand."""

import subprocess
import sys

import nbformat
from patience import LIMIT_SECONDS

# What a run does: it forks its kernel's process, and executes a notebook; between them the process is killed.
RUN = """
import socket, sys

from bookmaker.runner import _kernel

assert _kernel.fork(socket.socketpair()[0]) is None
_kernel._waiting.kill()
_kernel._waiting.wait()
import papermill

papermill.execute_notebook(*sys.argv[1:], kernel_name="python3", progress_bar=False, **_kernel.manager())
"""


def test_a_kernel_that_is_killed_before_it_has_its_notebook_died_like_any_other(tmp_path):
    given, executed = tmp_path / "given.ipynb", tmp_path / "executed.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("1")]), given)
    command = [sys.executable, "-c", RUN, str(given), str(executed)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("RuntimeError: Kernel died"), done.stderr
    assert done.stderr.count("Traceback") == 1, "the library's own report of an error that is none of ours"
