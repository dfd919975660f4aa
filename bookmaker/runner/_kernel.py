"""A kernel in a process that was forked beforehand, with the libraries in it.

Jupyter starts a kernel as a new Python. Here the process exists already: it waits, and becomes the kernel
of the one notebook that its parent executes (see `_warm`).
"""

import contextlib
import importlib
import json
import os
import signal
import socket
import sys
import uuid
from pathlib import Path
from typing import Any

import psutil
from jupyter_client import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner

from bookmaker.runner import _children

COLUMNS = 20  # of a table, as pandas prints it in a kernel that loaded it itself
_waiting: "_Process | None" = None  # the process that this one forked


class _Process(psutil.Process):
    """A forked process, with what Jupyter asks of a `subprocess.Popen`."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int, orders: socket.socket) -> None:
        super().__init__(pid)
        self.orders = orders

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal, or None while it runs."""
        try:
            return self.wait(timeout=0)
        except psutil.TimeoutExpired:
            return None


def fork(connection: socket.socket) -> dict[str, Any] | None:
    """Fork the process that will be this one's kernel; must come before any thread.

    Args:
        connection: of this process alone; the kernel closes it.

    Returns:
        None in this process; in the forked one, what the kernel is to be, once that is known.
    """
    global _waiting
    runner = os.getpid()
    ours, theirs = socket.socketpair()
    if pid := os.fork():
        theirs.close()
        _waiting = _Process(pid, ours)
        return None
    ours.close()
    connection.close()
    # By itself it asks every second; and while it becomes a kernel, nobody asks.
    _children.prctl(_children.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != runner:
        os._exit(0)
    os.setsid()  # an interrupt of the terminal is for the runner, which tells its kernel what to do
    with theirs, theirs.makefile() as lines:
        text = lines.read()
    if not text:  # the runner ended and had no notebook for this kernel
        os._exit(0)
    return json.loads(text)


def become(request: dict[str, Any]) -> int:
    """Be an IPython kernel until it is told to stop."""
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    if "torch" in sys.modules:  # read the number of threads when the server loaded it
        sys.modules["torch"].set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    if "pandas" in sys.modules:  # looked for a terminal when the server loaded it, and took it for one
        sys.modules["pandas"].set_option("display.max_columns", COLUMNS)
    sys.argv = ["ipykernel_launcher.py", *request["arguments"]]
    if sys.path[0] in ("", str(Path.cwd())):  # as ipykernel's own launcher does; IPython adds it again
        del sys.path[0]
    # The server has some helpers in memory from before; a cell imports them as they are now on disk.
    for name in [name for name in sys.modules if name.split(".")[0] == "privhelpers"]:
        del sys.modules[name]
    importlib.invalidate_caches()
    from ipykernel.kernelapp import IPKernelApp

    IPKernelApp.launch_instance()
    return 0


class _Provisioner(LocalProvisioner):
    """Hands the kernel's arguments to the waiting process instead of starting one."""

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> Any:
        process = _waiting
        assert process is not None
        request = {
            # It must end with this process; by itself it would ask the environment of the server.
            "arguments": [
                *cmd[cmd.index("-f") :],
                f"--IPKernelApp.parent_handle={os.getpid()}",
                "--IPKernelApp.log_level=CRITICAL",  # what it says of its own end is no news for a reader
            ],
            "env": kwargs["env"],
            "cwd": str(kwargs.get("cwd") or Path.cwd()),
        }
        # A process that was killed reads nothing; that it died is noticed as at any later moment.
        with process.orders, contextlib.suppress(ConnectionError):
            process.orders.sendall(json.dumps(request).encode())
        self.process = process
        self.pid = self.pgid = process.pid
        return self.connection_info


class _Manager(AsyncKernelManager):
    """Jupyter's own kernel manager, but for who starts the process."""

    async def _async_pre_start_kernel(self, **kwargs: Any) -> tuple[list[str], dict[str, Any]]:
        self.kernel_id = self.kernel_id or str(uuid.uuid4())
        self.provisioner = _Provisioner(kernel_id=self.kernel_id, kernel_spec=self.kernel_spec, parent=self)
        return await super()._async_pre_start_kernel(**kwargs)


def manager() -> dict[str, type[AsyncKernelManager]]:
    """Return the options for papermill: nothing, unless a forked process waits."""
    return {"kernel_manager_class": _Manager} if _waiting else {}
