"""One run: a notebook under papermill in a kernel of its own, published whole or not at all."""

import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, TextIO

import papermill
from papermill.engines import NBClientEngine, NotebookExecutionManager, papermill_engines
from traitlets.config import Config

from bookmaker.runner import (
    _bytecode,
    _children,
    _fingerprint,
    _inputs,
    _kernel,
    _limits,
    _outcome,
    _pictures,
    _remaining,
    _scratch,
    _warm,
    notebooks,
    processes,
)
from bookmaker.runner import plan as planning
from bookmaker.runner._complete import check_complete
from bookmaker.runner._environment import environment
from bookmaker.runner.chain import source
from bookmaker.runner.plan import Job
from privaudit.console import duration, say, terminal
from privhelpers.artifacts import RUNNER, Store, sha256_of, to_json, write_sealed
from privhelpers.errors import PrivHelpersError, RunFailed

ENGINE = "bookmaker"
SAVED_EVERY = 10.0  # seconds
ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
SHOWN_LINES = 12
SHOWN_CHARACTERS = 60


def _name(cells: list[Any], index: int) -> str:
    """Return how a reader finds a cell: by its number in the chapter, and its first line."""
    code = [c for c in cells[: index + 1] if c.cell_type == "code"]
    injected = sum("injected-parameters" in c.metadata.get("tags", []) for c in code)
    first = next((line for line in cells[index].source.splitlines() if line.strip()), "")
    return f"code cell {len(code) - injected} ({first.strip()[:SHOWN_CHARACTERS]!r})"


class _Tee:
    """A log that is copied to the terminal, if there is one."""

    def __init__(self, log: TextIO, copy: TextIO | None = None) -> None:
        """Write to `log` and, where given, to `copy`."""
        self.streams = [log, copy] if copy else [log]

    def write(self, text: str) -> None:
        """Write to every stream."""
        for stream in self.streams:
            stream.write(text)

    def flush(self) -> None:
        """Flush every stream."""
        for stream in self.streams:
            stream.flush()


class _Engine(NBClientEngine):
    """Papermill's own engine, which tells a watch what cell is running, and seldom writes the notebook.

    It wrote it before and after every cell; at the end, after an error or the kernel's death too, papermill
    does so in any case.
    """

    @classmethod
    def execute_managed_notebook(
        cls, nb_man: NotebookExecutionManager, kernel_name: str, *, watch: _limits.Watch, **kwargs: Any
    ) -> None:
        """Execute the notebook and save what is there now and then."""
        save, last = nb_man.save, time.monotonic()
        begin, done = nb_man.cell_start, nb_man.cell_complete

        def save_seldom(**options: Any) -> None:
            nonlocal last
            if time.monotonic() - last >= SAVED_EVERY:
                save(**options)
                last = time.monotonic()

        def begin_watched(cell: Any, index: int, **options: Any) -> None:
            if cell.cell_type == "code":
                watch.begin(_name(nb_man.nb.cells, index))
            begin(cell, index, **options)

        def done_watched(cell: Any, **options: Any) -> None:
            watch.done()
            done(cell, **options)

        nb_man.save, nb_man.cell_start, nb_man.cell_complete = save_seldom, begin_watched, done_watched
        try:
            super().execute_managed_notebook(nb_man, kernel_name, **kwargs)
        finally:
            nb_man.save = save


papermill_engines.register(ENGINE, _Engine)


@contextmanager
def _prepared(root: Path, threads: int) -> Iterator[tuple[Path, Path]]:
    """Set the environment that kernels inherit and yield a scratch folder, and one where sockets may lie."""
    usual = Path(tempfile.gettempdir())
    deep = len(os.fsencode(usual)) > _warm.LONGEST - len(f"/{_scratch.PREFIX}12345678/s-10")
    short = _scratch.scratch(Path("/tmp")) if deep else nullcontext()
    with short as sockets, _scratch.scratch(usual) as folder:
        os.environ.update(environment(root, folder, threads))
        for name in ("MPLBACKEND", "PYTHONSTARTUP"):  # the kernel draws inline; no user's startup file
            os.environ.pop(name, None)
        yield folder, sockets or folder


def _empty(root: Path, job: Job, store: Store) -> None:
    """Remove what an earlier run left, the sentinel first."""
    folder = store.path(job.artifacts)
    if folder.is_symlink():
        raise RunFailed(f"{job.artifacts}: the artifact folder is a link; remove it")
    for file in (root / job.sentinel, root / job.notebook, root / job.failed):
        file.unlink(missing_ok=True)
    if folder.exists():
        shutil.rmtree(folder)
    folder.mkdir(parents=True)


def _papermill(
    root: Path, job: Job, part: Path, log: TextIO, threads: int, watch: _limits.Watch, read: dict[str, str]
) -> dict[str, Any]:
    """Execute the notebook into `part`; return what it cost. No process that a cell started is left."""
    clock = time.monotonic()
    with _prepared(root, threads) as (_, sockets):
        of_run = [job.rule, job.fingerprint, read, _outcome.versions()]  # what its parts follow from
        os.environ[RUNNER] = sha256(to_json(of_run)).hexdigest()
        # Sockets instead of TCP ports, which parallel kernels race for; the address must differ for each
        # kernel, because by default all kernels of one folder share the same socket files.
        address = Config({"KernelManager": {"transport": "ipc", "ip": str(sockets / "s")}})
        papermill.execute_notebook(
            *(str(path).replace("{", "{{").replace("}", "}}") for path in (source(root, job.slug), part)),
            parameters=job.parameters,
            engine_name=ENGINE,
            kernel_name="python3",
            language="python",
            cwd=str(root),
            progress_bar=False,
            stdout_file=_Tee(log),
            stderr_file=_Tee(log, terminal()),
            autosave_cell_every=0,
            start_timeout=120,
            config=address,
            watch=watch,
            **_kernel.manager(),
        )
        _children.kill_children()
        return _outcome.cost(time.monotonic() - clock)


def _attempt(root: Path, job: Job, threads: int, store: Store, limits: dict[str, float]) -> dict[str, Any]:
    """Run, verify and publish the executed notebook; return the content of run.json."""
    part = root / "runs" / job.profile / ".parts" / f"{job.rule}.ipynb"
    part.parent.mkdir(parents=True, exist_ok=True)
    _bytecode.trust_contents(root)
    started, read = datetime.now(UTC), _inputs.hashes(root, job.reads)
    with open(root / job.log, "w", encoding="utf-8", buffering=1) as log:
        try:
            with _limits.watched(job.title, **limits) as watch:
                cost = _papermill(root, job, part, log, threads, watch, read)
                executed = notebooks.read(part)
                check_complete(executed, job.title)
                notebooks.clean(executed, root)
                _pictures.lighten(executed)
                run = _outcome.describe(store, job, started, cost, read)
                code = _fingerprint.Helpers(root, job.profile).fingerprint(source(root, job.slug))
                if (code, _inputs.hashes(root, job.reads)) != (job.fingerprint, read):
                    raise RunFailed("its code, or results that it reads, changed while it ran; make it again")
                notebooks.write(executed, root / job.notebook)
                run["page"] = sha256_of(root / job.notebook)
        except BaseException as error:
            log.write(f"\n{type(error).__name__}: {ANSI.sub('', str(error))}\n")
            if part.exists():
                (root / job.failed).parent.mkdir(parents=True, exist_ok=True)
                part.replace(root / job.failed)
            raise
    part.unlink()
    return run


def _reason(error: BaseException) -> list[str]:
    """Return the last lines of an error, fit for a terminal."""
    text = str(error) if isinstance(error, PrivHelpersError) else f"{type(error).__name__}: {error}"
    lines = [line.rstrip() for line in ANSI.sub("", text).splitlines()]
    return [line for line in lines if line.strip(" -")][-SHOWN_LINES:]


def _over(root: Path, job: Job, store: Store) -> None:
    """Tell Snakemake that a run is complete, and remove what it kept in case of a kill."""
    with suppress(PrivHelpersError, OSError):  # which changes no result
        store.forget(job.artifacts)
    (root / job.mark).touch()


def run(root: Path, job: Job, *, threads: int, needed: bool = False) -> None:
    """Run one job; afterwards its sentinel exists, or the call has raised and nothing is published.

    Args:
        root: the repository.
        job: one of `plan.jobs`.
        threads: cores that the kernel may use, 1 or more.
        needed: keep a run that is up to date, now that all that it reads is there.

    Raises:
        RunFailed: the notebook failed, ended early, reached a limit, or wrote a file without its hash.
    """
    limits = _limits.of(root, job)
    _children.adopt()
    store = Store(root / "runs" / job.profile / "artifacts", job.profile)
    lock = root / "runs" / job.profile / ".locks" / job.rule
    (root / job.log).parent.mkdir(parents=True, exist_ok=True)
    # A run whose build was killed a moment ago may still be ending: wait for it, on a busy machine too.
    with processes.exclusive(lock, f"run {job.title}", wait=60):
        if needed and planning.is_current(root, job):
            _over(root, job, store)
            say(job.profile, f"{job.title} kept: all that it reads is as it was")
            return
        _empty(root, job, store)
        say(job.profile, f"{job.title} started")
        clock = time.monotonic()
        try:
            finished = _attempt(root, job, threads, store, limits)
        except Exception as error:
            with suppress(Exception):
                _children.kill_children()
            passed = duration(time.monotonic() - clock)
            say(job.profile, f"{job.title} FAILED after {passed} (log: {job.log})")
            raise RunFailed("\n    ".join([f"{job.title} failed:", *_reason(error)])) from error
        write_sealed(root / job.sentinel, to_json(finished))
        _over(root, job, store)
        say(
            job.profile,
            f"{job.title} done in {duration(time.monotonic() - clock)}{_remaining.place(root, job.profile)}",
        )
