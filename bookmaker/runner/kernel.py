"""A kernel for the runs of one process, one after the other: they share its start and its imports alone.

kernel = Kernel(root, scratch)
manager = kernel.begin({"NAME": "value"})
papermill.execute_notebook(..., km=manager)
kernel.used()
kernel.end()
"""

import ast
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from jupyter_client.manager import AsyncKernelManager
from jupyter_client.utils import run_sync

from privhelpers.artifacts import RUNNER
from privhelpers.errors import RunFailed

THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "RAYON_NUM_THREADS",
)
# Training frees and asks for the same large blocks at every step. By default glibc returns them to the
# system each time, and faulting the pages in again costs more than some of the arithmetic.
KEEP_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": str(4 << 30),
    "MALLOC_TRIM_THRESHOLD_": str(8 << 30),
    "MALLOC_TOP_PAD_": str(256 << 20),
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",  # pages of 2 MB where the system has them: fewer to look up
}


def environment(root: Path, scratch: Path) -> dict[str, str]:
    """Return what a kernel's environment must say: one thread, no network, nothing of this user's settings.

    Args:
        root: the repository; kernels find `privhelpers` there.
        scratch: a folder that lives as long as the kernel.
    """
    return {
        **dict.fromkeys(THREAD_VARIABLES, "1"),
        # A thread that waits sleeps: on a busy machine spinning threads took four times the CPU seconds.
        "OMP_WAIT_POLICY": "PASSIVE",
        "TOKENIZERS_PARALLELISM": "false",
        **KEEP_MEMORY,
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",  # a bar for every small model that is loaded says nothing
        "TRANSFORMERS_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",  # no advice about settings that a chapter chose
        "PYTHONHASHSEED": "0",
        "PYTHONWARNINGS": "ignore:IProgress not found",  # a kernel that loads tqdm would show it on the page
        "PYTHONOPTIMIZE": "",  # it would leave out the assertions, which hold up what a chapter claims
        "PYDEVD_DISABLE_FILE_VALIDATION": "1",  # the debugger, which every kernel loads, warns without it
        # Above a user's matplotlibrc, and empty. The folder stays theirs, with its list of fonts: making one
        # takes a second, and every run would.
        "MATPLOTLIBRC": os.devnull,
        "PYTHONPATH": str(root),
        RUNNER: "1",  # it may change the artifacts of its profile; a run has a hash here
        "TQDM_MININTERVAL": "10",  # seconds between two states of a progress bar: each is kept in the log
        "TMPDIR": str(scratch),
        # First on Jupyter's search path: a kernel called python3 in the user's home cannot win.
        "JUPYTER_PATH": str(Path(sys.prefix, "share", "jupyter")),
        "JUPYTER_RUNTIME_DIR": str(scratch),
        "IPYTHONDIR": str(scratch / "ipython"),
    }


START_SECONDS = 120.0
# Sent before each run: nothing is left of the one before but what it imported.
AFRESH = """get_ipython().reset()
__import__("gc").collect()
__import__("os").environ.update({variables!r})
"""
USED = "[(u.ru_utime + u.ru_stime, u.ru_maxrss) for u in map(__import__('resource').getrusage, (0, -1))]"


class Kernel:
    """A Python kernel that starts with the first run that needs it."""

    def __init__(self, root: Path, scratch: Path) -> None:
        """Take the repository, and a folder for the kernel's sockets and settings; nothing starts yet."""
        self._root, self._scratch = root, scratch
        self._manager: AsyncKernelManager | None = None
        self._before = 0.0  # CPU seconds, when the run under way began

    def begin(self, variables: Mapping[str, str]) -> AsyncKernelManager:
        """Return the kernel, as it is at its start, for papermill's `km`.

        Args:
            variables: further ones of its environment, for the run that begins.
        """
        self._before = 0.0 if self._manager is None else self._usage()[0]
        if self._manager is None:
            self._start()
        self._ask(AFRESH.format(variables=dict(variables)), "0")
        return self._manager

    def used(self) -> tuple[float, float]:
        """Return the CPU seconds of the run under way, and the most memory in KiB since the start."""
        seconds, memory = self._usage()
        return seconds - self._before, memory

    def end(self) -> None:
        """End the kernel; the next run has a new one."""
        if self._manager is not None:
            run_sync(self._manager.shutdown_kernel)(now=True)
            self._manager = None

    def _usage(self) -> tuple[float, float]:
        """Return the CPU seconds and the most memory of the kernel, or of a child, since its start."""
        seconds, memory = zip(*ast.literal_eval(self._ask("", USED)), strict=True)
        return sum(seconds), max(memory)

    def _start(self) -> None:
        os.environ.update(environment(self._root, self._scratch))
        for name in ("MPLBACKEND", "PYTHONSTARTUP"):  # the kernel draws inline; no user's startup file
            os.environ.pop(name, None)
        settings = self._scratch / "ipython" / "profile_default" / "ipython_kernel_config.py"
        settings.parent.mkdir(parents=True, exist_ok=True)
        settings.write_text("c.IPKernelApp.log_level = 50\n")  # silent about its own end
        # Sockets instead of TCP ports, which parallel kernels race for.
        manager = AsyncKernelManager(kernel_name="python3", transport="ipc", ip=str(self._scratch / "s"))
        run_sync(manager.start_kernel)(cwd=str(self._root))
        self._manager = manager

    def _ask(self, code: str, expression: str) -> str:
        """Run code that leaves no trace in the history, and return how an expression reads afterwards."""
        client = self._manager.client()
        client.start_channels()
        try:
            run_sync(client.wait_for_ready)(timeout=START_SECONDS)
            reply = run_sync(client.execute_interactive)(
                code, silent=True, user_expressions={"answer": expression}, timeout=START_SECONDS
            )
        finally:
            client.stop_channels()
        if reply["content"]["status"] != "ok":
            raise RunFailed(f"the kernel answered {reply['content']}")
        return reply["content"]["user_expressions"]["answer"]["data"]["text/plain"]
