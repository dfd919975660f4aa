"""Runs that fork from one process which has imported the libraries once.

Half of a short run was the import of torch, transformers and the rest: in the runner, and again in its
kernel. A build that has several runs to make starts one server; `python -m bookmaker.runner run` then only
hands its arguments to it and waits. The server forks the runner, and the runner, before it does anything
else, forks the process that becomes its kernel:

    build -> server -> runner -> kernel        (and, beside the server, Snakemake's job waits for an answer)

No run shares anything with another but the libraries' code. The server has imported them and computed
nothing: no torch operation, no thread of Python's. Each process ends with the one to the left of it.
Linux only; elsewhere, and for a build of few runs, every run starts by itself, as one by hand does.
"""

import ast
import gc
import importlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from bookmaker.runner import _children, processes, written
from bookmaker.runner._environment import environment

INLINE = "module://matplotlib_inline.backend_inline"
# Matplotlib asks once, when it is loaded, where it shall draw: on the page. The debugger, which every kernel
# loads, warns of something that matters to nobody here.
LOADED = {"MPLBACKEND": INLINE, "PYDEVD_DISABLE_FILE_VALIDATION": "1"}
ADDRESS = "BOOKMAKER_WARM"  # environment variable: where the server of this build listens
LONGEST = 107  # bytes of a socket's path; where temporary files lie deeper, each run starts by itself
WORTH_IT = 4  # runs; the server's own imports cost as much as those of two
# What a runner and a kernel import before the first cell, beside what the helpers name.
JUPYTER = (
    *("bookmaker.runner._execute", "bookmaker.runner._kernel"),
    *("ipykernel.kernelapp", "ipykernel.debugger", "IPython", "IPython.core.debugger"),
)


@contextmanager
def server(root: Path, runs: int, profiles: Sequence[str]) -> Iterator[None]:
    """Let the runs below this process fork from a server, if there are enough of them.

    Args:
        root: the repository.
        runs: how many runs the build will make.
        profiles: whose runs they are.
    """
    if sys.platform != "linux" or runs < WORTH_IT:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="warm", ignore_cleanup_errors=True) as folder:
        address = str(Path(folder, "s"))
        if len(os.fsencode(address)) > LONGEST:
            yield
            return
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(address)
            # Runs that come while the server still imports wait in this queue.
            listener.listen(128)
            command = [sys.executable, "-m", "bookmaker.runner._warm", str(listener.fileno()), *profiles]
            process = subprocess.Popen(
                command,
                cwd=root,
                env={
                    **os.environ,
                    **environment(root, Path(folder), threads=1),
                    **LOADED,
                    processes.PARENT: str(os.getpid()),
                },
                pass_fds=[listener.fileno()],
                stdin=subprocess.DEVNULL,
            )
        os.environ[ADDRESS] = address
        try:
            yield
        finally:
            del os.environ[ADDRESS]
            process.kill()
            process.wait()


def run_elsewhere(arguments: list[str]) -> int | None:
    """Let the server make a run; return its exit code, or None where there is no server.

    Args:
        arguments: the command line after `python -m bookmaker.runner`.
    """
    address = os.environ.get(ADDRESS)
    if not address:
        return None
    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(address)
        except OSError:  # the server could not start, or was killed: this run starts by itself
            return None
        processes.die_with_parent(clean=False)
        try:
            socket.send_fds(connection, [json.dumps(arguments).encode()], [0, 1, 2])
            answer = connection.recv(16)
        except ConnectionError:
            answer = b""
        except KeyboardInterrupt:
            return 130
    return int(answer) if answer else 1  # nothing: the run was killed before it could answer


def _imported_by_helpers(root: Path) -> list[tuple[str, tuple[str, ...]]]:
    """Return the libraries that the helpers import at their top: module, and the names taken from it."""
    wanted: dict[str, set[str]] = {}
    for file in written.files(root / "privhelpers", "**/*.py"):
        statements: list[ast.stmt] = []
        with suppress(Exception):  # whatever keeps Python from reading it, the runs that import it say so
            statements = ast.parse(file.read_text(encoding="utf-8")).body
        for statement in statements:
            if isinstance(statement, ast.Import):
                for alias in statement.names:
                    wanted.setdefault(alias.name, set())
            elif isinstance(statement, ast.ImportFrom) and statement.level == 0 and statement.module:
                wanted.setdefault(statement.module, set()).update(alias.name for alias in statement.names)
    return [
        (module, tuple(sorted(names)))
        for module, names in sorted(wanted.items())
        if module.split(".")[0] not in ("privhelpers", "__future__")
    ]


def load(root: Path, profiles: Sequence[str]) -> None:
    """Import what runs will need; what fails here fails in the run that needs it, with its message."""
    from bookmaker.runner import plan

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for module, names in [*((module, ()) for module in JUPYTER), *_imported_by_helpers(root)]:
            with suppress(Exception):
                loaded = importlib.import_module(module)
                for name in names:  # some libraries load a part when it is asked for
                    getattr(loaded, name, None)
    # Every run asks for its place in the plan: let it find notebooks and helpers read, and values checked.
    for profile in profiles:
        with suppress(Exception):
            plan.jobs(root, profile)


def _serve(listener: socket.socket) -> tuple[socket.socket, list[str]]:
    """Fork once for each run; return in the forked process alone, with its connection and arguments."""
    while True:
        connection, _ = listener.accept()
        message, files, _, _ = socket.recv_fds(connection, 1 << 16, 3)
        if message and os.fork() == 0:
            listener.close()
            for number, file in enumerate(files):
                os.dup2(file, number)
            for file in files:
                os.close(file)
            return connection, json.loads(message)
        for file in files:
            os.close(file)
        connection.close()
        # Runs that ended leave their exit status here.
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass


def _main(number: int, profiles: Sequence[str]) -> int:
    from bookmaker.runner import _cli, _kernel

    processes.die_with_parent(clean=False)
    root = Path.cwd()
    load(root, profiles)
    gc.collect()
    gc.freeze()  # what is here stays shared between all runs: no collection writes to it
    # Ctrl-C reaches every process of a terminal; the server ends with the build.
    interrupt = signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection, arguments = _serve(socket.socket(fileno=number))
    signal.signal(signal.SIGINT, interrupt)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)  # of the server
    if (request := _kernel.fork(connection)) is not None:
        return _kernel.become(request)
    _children.end_with(connection)
    code = _cli.main(arguments)
    with suppress(OSError):
        connection.send(str(code).encode())
    return code


if __name__ == "__main__":
    sys.exit(_main(int(sys.argv[1]), sys.argv[2:]))
