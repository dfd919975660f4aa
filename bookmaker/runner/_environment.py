"""What the environment of every kernel says, whoever starts it."""

import os
import sys
from pathlib import Path

from bookmaker.runner.processes import PARENT
from privaudit.console import terminal
from privhelpers.artifacts import RUNNER

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


def environment(root: Path, scratch: Path, threads: int) -> dict[str, str]:
    """Return what a kernel's environment must say: threads, no network, nothing of this user's settings.

    Args:
        root: the repository; kernels find `privhelpers` there.
        scratch: a folder that lives as long as the kernel.
        threads: cores that the run may use.
    """
    return {
        **dict.fromkeys(THREAD_VARIABLES, str(threads)),
        # A thread that waits sleeps: on a busy machine spinning threads took four times the CPU seconds.
        "OMP_WAIT_POLICY": "PASSIVE",
        "TOKENIZERS_PARALLELISM": "true" if threads > 1 else "false",
        **KEEP_MEMORY,
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_PROGRESS_BARS": "1",  # a bar for every small model that is loaded says nothing
        "TRANSFORMERS_OFFLINE": "1",
        "TRANSFORMERS_VERBOSITY": "error",  # no advice about settings that a chapter chose
        "PYTHONHASHSEED": "0",
        # A kernel that loads tqdm by itself would show it on the page; the server keeps warnings quiet.
        "PYTHONWARNINGS": "ignore:IProgress not found",
        "PYTHONPYCACHEPREFIX": "",  # its byte code is not checked, see `_bytecode`
        "PYTHONOPTIMIZE": "",  # it would leave out the assertions, which hold up what a chapter claims
        PARENT: "",  # what a cell starts is no part of a build
        # Above a user's matplotlibrc, and empty. The folder stays theirs, with its list of fonts: making one
        # takes a second, and every run would.
        "MATPLOTLIBRC": os.devnull,
        "PYTHONPATH": str(root),
        RUNNER: "1",  # it may change the artifacts of its profile; a run has a hash here
        # Seconds between two states of a progress bar: each is kept in the log.
        "TQDM_MININTERVAL": "0.5" if terminal() else "10",
        # First on Jupyter's search path: a kernel called python3 in the user's home cannot win.
        "JUPYTER_PATH": str(Path(sys.prefix, "share", "jupyter")),
        "JUPYTER_RUNTIME_DIR": str(scratch),
        "IPYTHONDIR": str(scratch / "ipython"),
    }
