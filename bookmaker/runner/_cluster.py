"""The same chain on a cluster: Snakemake hands each run to a scheduler, as `cluster/<name>/config.yaml` says.

The file is a Snakemake profile, which the people of a site edit. What a run prints goes to a file of the
scheduler, on another machine; here the files that it leaves tell what becomes of it.
"""

import contextlib
import importlib.util
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from bookmaker.runner import written
from bookmaker.runner.plan import Job
from bookmaker.runner.progress import counted
from privhelpers.errors import InvalidParameter, MissingProgram, RunFailed
from privhelpers.validate import shown

FOLDER = "cluster"
SLURM = "slurm"
SLURM_PLUGIN = "snakemake-executor-plugin-slurm==2.8.0"
QUEUED = "PENDING,CONFIGURING,RUNNING,SUSPENDED"
JOB_NAME = ("--jobname", "run.{jobid}")  # a file's name too, so without the slash of our rules' names
QUIET = ("--quiet", "progress", "host", "reason")  # but not about jobs that Slurm ended
# What the plugin writes of a job that Slurm itself ended or refused; FAILED is the run's own error.
ENDED = re.compile(
    r"Error in rule (?P<profile>\S+?)/(?P<run>\S+):\n +message: SLURM"
    r"(?:-job '(?P<number>\d+)' failed, SLURM status is: '(?!FAILED)(?P<status>\w+)'"
    r"| sbatch failed\. The error message was '(?P<refusal>.+?)(?:'\.)?$)",
    re.MULTILINE,
)
POLL_SECONDS = 5.0  # a shared file system answers slowly, and a sweep has many files


def _executor(root: Path, name: str) -> str:
    """Return the Snakemake executor that a cluster's file names."""
    known = sorted(path.parent.name for path in (root / FOLDER).glob("*/config.yaml"))
    if name not in known:
        listed = ", ".join(known) or "no folder is there"
        raise InvalidParameter(f"cluster {shown(name)}: must be a folder of {FOLDER}/: {listed}")
    file = f"{FOLDER}/{name}/config.yaml"
    executor = written.mapping(root, file).get("executor")
    if not isinstance(executor, str) or not re.fullmatch("[a-z][a-z0-9-]{0,62}", executor):
        raise InvalidParameter(f"{file}: must have an executor, such as slurm")
    return executor


def _check_tools(name: str, executor: str) -> None:
    """Refuse a cluster that this environment or this machine cannot reach."""
    plugin = f"snakemake-executor-plugin-{executor}"
    if importlib.util.find_spec(plugin.replace("-", "_")) is None:
        wanted = SLURM_PLUGIN if executor == SLURM else plugin
        raise MissingProgram(
            f"cluster {name}: its plugin is missing: {sys.executable} -m pip install {wanted}"
        )
    if executor == SLURM and not shutil.which("sbatch"):
        raise MissingProgram(
            f"cluster {name}: sbatch was not found; start on a machine that submits to Slurm"
        )


def _queued(root: Path, profiles: Sequence[str]) -> list[str]:
    """Return Slurm's numbers of jobs that an earlier build of these profiles left in the queue."""
    columns = "%i|%Z|%k"  # number, folder, comment; Snakemake's comment is the rule's name
    command = ["squeue", "--me", "--noheader", f"--states={QUEUED}", f"--format={columns}"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RunFailed(f"squeue failed, so Slurm cannot be asked: {' '.join(done.stderr.split())}")
    jobs = [line.strip().split("|", 2) for line in done.stdout.splitlines()]
    ours = tuple(f"rule_{profile}/" for profile in profiles)
    here = str(root.resolve())
    return [number for number, folder, comment in jobs if folder == here and comment.startswith(ours)]


def options(root: Path, name: str, profiles: Sequence[str], jobs: int | None) -> list[str]:
    """Return what Snakemake must be told to run on a cluster, once nothing stands in the way.

    Args:
        root: the repository.
        name: a folder of `cluster/`.
        profiles: what will be built.
        jobs: how many jobs at once; None: what the cluster's file says.

    Raises:
        InvalidParameter: there is no such cluster, or its file names no executor.
        MissingProgram: its plugin is not installed, or this machine cannot submit.
        RunFailed: Slurm does not answer, or still has jobs of an earlier build.
    """
    executor = _executor(root, name)
    _check_tools(name, executor)
    # The jobs of a build that was killed go on; a second job for the same run would only disturb the first.
    if executor == SLURM and (left := _queued(root, profiles)):
        raise RunFailed(
            f"Slurm still has {counted(len(left), 'job', 'jobs')} of an earlier build of "
            f"{', '.join(profiles)}: wait until they end (squeue --me), or stop them: "
            f"scancel {' '.join(left)}"
        )
    at_once = ["--jobs", str(jobs)] if jobs else []
    return ["--workflow-profile", str(root / FOLDER / name), *at_once, *JOB_NAME, *QUIET]


def ended(log: Path) -> list[tuple[str, str]]:
    """Return profile and words for every run that Slurm ended or refused, read from Snakemake's log."""
    runs = []
    for job in ENDED.finditer(log.read_text(encoding="utf-8")):
        number, status, refusal = job.group("number", "status", "refusal")
        words = f"ended by Slurm: {status} (job {number})" if number else f"refused by Slurm: {refusal}"
        runs.append((job["profile"], f"{job['run']} {words}"))
    return runs


def _stamp(path: Path) -> int:
    """Return when a file was written, 0 if it is not there."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def _reason(log: Path) -> str:
    """Return the last words of a failed run."""
    lines = log.read_text(encoding="utf-8", errors="replace").split("\n") if log.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "no log")


@contextlib.contextmanager
def told(root: Path, plans: Sequence[list[Job]]) -> Iterator[None]:
    """Say on stderr which runs start, end and fail elsewhere, until the block ends.

    Args:
        root: the repository.
        plans: the runs to watch.
    """
    terminal, ended = sys.stderr, threading.Event()  # inside the block, stderr may be another
    files = [(job, file) for plan in plans for job in plan for file in (job.log, job.sentinel, job.failed)]
    before = {file: _stamp(root / file) for _, file in files}

    def follow() -> None:
        waiting, last = files, False
        while not last:
            last = ended.wait(POLL_SECONDS)
            new = [(job, file) for job, file in waiting if _stamp(root / file) not in (0, before[file])]
            waiting = [pair for pair in waiting if pair not in new]
            for job, file in new:
                words = {job.log: "started", job.sentinel: "done"}.get(file)
                words = words or f"FAILED: {_reason(root / job.log)} (log: {job.log})"
                terminal.write(f"[{job.profile}] {job.title} {words}\n")
            terminal.flush()

    thread = threading.Thread(target=follow, daemon=True, name="told")
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
