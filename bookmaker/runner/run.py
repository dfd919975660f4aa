"""Runs: notebooks under papermill, each published whole or not at all."""

import base64
import io
import re
import resource
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import papermill
from nbformat import NotebookNode
from PIL import Image

from bookmaker.runner import commands, files, fingerprint, notebooks
from bookmaker.runner import plan as planning
from bookmaker.runner.chain import RECORDS, source
from bookmaker.runner.kernel import Kernel
from bookmaker.runner.plan import Job
from privaudit.console import duration, say
from privhelpers.artifacts import RUNNER, Store, sha256_of, to_json, write_sealed
from privhelpers.errors import PrivHelpersError, RunFailed

ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
SHOWN_LINES = 12
PNG = "image/png"


def _used() -> tuple[float, float]:
    """Return the CPU seconds of this process, and its most memory in KiB, as Linux counts."""
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def _execute(
    root: Path, job: Job, part: Path, read: dict[str, str], hours: float, kernel: Kernel
) -> dict[str, float]:
    """Execute the notebook into `part`; return wall and CPU seconds, and the larger process's memory."""
    clock, before = time.monotonic(), _used()[0]
    # What the parts that a killed run leaves follow from; the next run takes up those of the same.
    mark = fingerprint.digest([job.rule, job.fingerprint, read, fingerprint.versions()])
    manager = kernel.begin({RUNNER: mark})
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
            execution_timeout=round(3600 * hours) or 1,
            km=manager,
        )
    (own, memory), (seconds, most) = _used(), kernel.used()
    return {
        "seconds": round(time.monotonic() - clock, 1),
        "cpu_seconds": round(own - before + seconds, 1),
        "peak_memory_mib": round(max(memory, most) / 1024),
    }


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


def _attempt(root: Path, job: Job, store: Store, hours: float, kernel: Kernel) -> dict[str, Any]:
    """Run, verify and publish the executed notebook; return the content of run.json."""
    part = root / "runs" / job.profile / ".parts" / f"{job.rule}.ipynb"
    part.parent.mkdir(parents=True, exist_ok=True)
    started, read = datetime.now(UTC), planning.reads(root, job)
    packages = fingerprint.Helpers(root).packages(source(root, job.slug), job.profile)
    try:
        cost = _execute(root, job, part, read, hours, kernel)
        executed = notebooks.read(part)
        notebooks.check_complete(executed, job.title)
        notebooks.clean(executed, root)
        lighten(executed)
        artifacts = files.hashes(store.path(job.artifacts), fingerprint.RECORD)
        plan = planning.jobs(root, job.profile, only=[job.rule])
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
        "versions": fingerprint.versions(packages),
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


def run(root: Path, jobs: Sequence[Job], *, hours: float = 24.0) -> None:
    """Run jobs one after the other in one kernel, those that are not up to date; a failed one stops no other.

    Args:
        root: the repository.
        jobs: of `plan.jobs`; what they read is there.
        hours: that a cell may take.

    Raises:
        RunFailed: notebooks failed, as in `_run`.
    """
    failed = []
    # In /tmp, because the path of a socket may have 107 characters.
    with tempfile.TemporaryDirectory(dir="/tmp", ignore_cleanup_errors=True) as scratch:
        kernel = Kernel(root, Path(scratch))
        try:
            for job in jobs:
                try:
                    _run(root, job, hours, kernel)
                except RunFailed as error:
                    failed.append(str(error))
                    kernel.end()  # it may be dead, or busy with a cell that took too long
        finally:
            kernel.end()
    if failed:
        raise RunFailed("\n".join(failed))


def _run(root: Path, job: Job, hours: float, kernel: Kernel) -> None:
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
            finished = _attempt(root, job, store, hours, kernel)
        except Exception as error:
            passed = duration(time.monotonic() - clock)
            say(job.profile, f"{job.title} FAILED after {passed} (log: {job.log})")
            raise RunFailed("\n    ".join([f"{job.title} failed:", *_reason(error)])) from error
        write_sealed(root / job.sentinel, to_json(finished))
        with suppress(PrivHelpersError, OSError):  # which changes no result
            store.forget(job.artifacts)
        planning.mark(root, job, finished["artifacts"])
        say(job.profile, f"{job.title} done in {duration(time.monotonic() - clock)}")
