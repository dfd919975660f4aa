"""One run: a notebook under papermill in a kernel of its own, published whole or not at all."""

import base64
import io
import os
import re
import resource
import sys
import tempfile
import time
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import papermill
from nbformat import NotebookNode
from PIL import Image
from traitlets.config import Config

from bookmaker.runner import commands, files, fingerprint, notebooks
from bookmaker.runner import plan as planning
from bookmaker.runner.chain import RECORDS, source
from bookmaker.runner.plan import Job
from privaudit.console import duration, say
from privhelpers.artifacts import RUNNER, Store, sha256_of, to_json, write_sealed
from privhelpers.errors import PrivHelpersError, RunFailed

ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
SHOWN_LINES = 12
PNG = "image/png"
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


def _cost(seconds: float) -> dict[str, float]:
    """Return what this process and its kernel used: wall and CPU seconds, and memory of the larger one."""
    process, children = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return {
        "seconds": round(seconds, 1),
        "cpu_seconds": round(sum(usage.ru_utime + usage.ru_stime for usage in (process, children)), 1),
        "peak_memory_mib": round(max(process.ru_maxrss, children.ru_maxrss) / 1024),  # Linux counts in KiB
    }


def _execute(root: Path, job: Job, part: Path, read: dict[str, str], hours: float) -> dict[str, float]:
    """Execute the notebook into `part`; return what it cost."""
    clock = time.monotonic()
    # In /tmp, because the path of a socket may have 107 characters.
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as scratch:
        os.environ.update(environment(root, Path(scratch)))
        for name in ("MPLBACKEND", "PYTHONSTARTUP"):  # the kernel draws inline; no user's startup file
            os.environ.pop(name, None)
        # What the parts that a killed run leaves follow from; the next run takes up those of the same.
        os.environ[RUNNER] = fingerprint.digest([job.rule, job.fingerprint, read, fingerprint.versions()])
        settings = Path(scratch, "ipython", "profile_default", "ipython_kernel_config.py")
        settings.parent.mkdir(parents=True)
        settings.write_text("c.IPKernelApp.log_level = 50\n")  # silent about its own end
        # Sockets instead of TCP ports, which parallel kernels race for.
        address = Config({"KernelManager": {"transport": "ipc", "ip": f"{scratch}/s"}})
        with open(root / job.log, "w", encoding="utf-8", buffering=1) as log:
            papermill.execute_notebook(
                *(str(path).replace("{", "{{").replace("}", "}}") for path in (source(root, job.slug), part)),
                parameters=job.parameters,
                kernel_name="python3",
                language="python",
                cwd=str(root),
                progress_bar=False,
                stdout_file=log,
                stderr_file=log,
                autosave_cell_every=0,
                start_timeout=120,
                execution_timeout=round(3600 * hours) or 1,
                config=address,
            )
    return _cost(time.monotonic() - clock)


def lighten(notebook: NotebookNode) -> None:
    """Give PNG pictures 256 colors, chosen for each: their files become less than half as large.

    A line drawing has a few hundred shades, along its edges. Transparent places become white.
    """
    shown = [output.get("data", {}) for cell in notebooks.code_cells(notebook) for output in cell.outputs]
    for data in (one for one in shown if isinstance(one.get(PNG), str)):
        png, place = base64.b64decode(data[PNG]), io.BytesIO()
        with Image.open(io.BytesIO(png)) as image:
            page = Image.new("RGB", image.size, "white")
            page.paste(image.convert("RGB"), mask=image.convert("RGBA").getchannel("A"))
            few = page.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
            few.save(place, "PNG", optimize=True, dpi=image.info.get("dpi"))
        data[PNG] = base64.b64encode(min(place.getvalue(), png, key=len)).decode()


def _attempt(root: Path, job: Job, store: Store, hours: float) -> dict[str, Any]:
    """Run, verify and publish the executed notebook; return the content of run.json."""
    part = root / "runs" / job.profile / ".parts" / f"{job.rule}.ipynb"
    part.parent.mkdir(parents=True, exist_ok=True)
    started, read = datetime.now(UTC), planning.reads(root, job)
    try:
        cost = _execute(root, job, part, read, hours)
        executed = notebooks.read(part)
        notebooks.check_complete(executed, job.title)
        notebooks.clean(executed, root)
        lighten(executed)
        artifacts = files.hashes(store.path(job.artifacts), fingerprint.RECORD)
        plan = planning.jobs(root, job.profile, only=job.rule)
        now = next(one for one in plan if one.rule == job.rule)
        if (now.fingerprint, planning.reads(root, job)) != (job.fingerprint, read):
            raise RunFailed("its code, or results that it reads, changed while it ran; make it again")
        if job.slug == RECORDS and (wrong := planning.other_notes(root, plan)):
            raise RunFailed(wrong)
        notebooks.write(executed, root / job.notebook)
    except BaseException as error:
        with open(root / job.log, "a", encoding="utf-8") as log:
            log.write(f"\n{type(error).__name__}: {ANSI.sub('', str(error))}\n")
        if part.exists():
            (root / job.failed).parent.mkdir(parents=True, exist_ok=True)
            part.replace(root / job.failed)
        raise
    part.unlink()
    return {
        "rule": job.rule,
        "notebook": job.slug,
        "model": job.model,
        "parameters": job.parameters,
        "started": started.isoformat(timespec="seconds"),
        **cost,
        "versions": fingerprint.versions(),
        "fingerprint": job.fingerprint,
        "inputs": read,
        "artifacts": artifacts,
        "page": sha256_of(root / job.notebook),
    }


def _reason(error: BaseException) -> list[str]:
    """Return the last lines of an error, fit for a terminal."""
    text = str(error) if isinstance(error, PrivHelpersError) else f"{type(error).__name__}: {error}"
    lines = [line.rstrip() for line in ANSI.sub("", text).splitlines()]
    return [line for line in lines if line.strip(" -")][-SHOWN_LINES:]


def run(root: Path, job: Job, *, hours: float = 24.0) -> None:
    """Run one job, unless it is up to date now that all that it reads is there.

    Afterwards its record and its mark exist, or the call has raised and nothing is published.

    Args:
        root: the repository.
        job: one of `plan.jobs`.
        hours: that a cell may take.

    Raises:
        RunFailed: the notebook failed, ended early, reached the limit, or wrote a file without its hash.
    """
    store = Store(root / "runs" / job.profile / "artifacts", job.profile)
    folder = store.path(job.artifacts)
    # The kernel of a run that was killed a moment ago may take a second to end.
    with commands.exclusive(root / "runs" / job.profile / ".locks" / job.rule, f"run {job.title}", wait=60):
        if not planning.stale(root, job):
            planning.mark(root, job, planning.record(root, job)["artifacts"])
            say(job.profile, f"{job.title} kept: all that it reads is unchanged")
            return
        if job.kept:
            planning.restore(root, job)
            return
        for place in (root / job.sentinel, folder, root / job.notebook, root / job.failed):
            files.remove(place)
        folder.mkdir(parents=True)
        (root / job.log).parent.mkdir(parents=True, exist_ok=True)
        say(job.profile, f"{job.title} started")
        clock = time.monotonic()
        try:
            finished = _attempt(root, job, store, hours)
        except Exception as error:
            passed = duration(time.monotonic() - clock)
            say(job.profile, f"{job.title} FAILED after {passed} (log: {job.log})")
            raise RunFailed("\n    ".join([f"{job.title} failed:", *_reason(error)])) from error
        write_sealed(root / job.sentinel, to_json(finished))
        with suppress(PrivHelpersError, OSError):  # which changes no result
            store.forget(job.artifacts)
        planning.mark(root, job, finished["artifacts"])
        say(job.profile, f"{job.title} done in {duration(time.monotonic() - clock)}")
