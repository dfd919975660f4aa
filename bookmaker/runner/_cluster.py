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
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bookmaker.runner import written
from bookmaker.runner.plan import Job
from privaudit.console import counted
from privhelpers.errors import InvalidParameter, MissingProgram, RunFailed
from privhelpers.validate import shown

FOLDER = "cluster"
SLURM = "slurm"
SLURM_PLUGIN = "snakemake-executor-plugin-slurm==2.8.0"
QUEUED = "PENDING,CONFIGURING,RUNNING,SUSPENDED"
JOB_NAME = ("--jobname", "run.{jobid}")  # a file's name too, so without the slash of our rules' names
QUIET = ("--quiet", "progress", "host", "reason")  # but not about jobs that Slurm ended
# What the plugin writes of a job that Slurm ended or refused.
ENDED = re.compile(
    r"Error in rule (?P<profile>\S+?)/(?P<run>\S+):\n +message: "
    r"(?:SLURM-job '(?P<number>\w+)' failed.*?, SLURM status is: '(?P<state>[^']+)'"
    r"|(?:SLURM sbatch failed\. The error message was|Part of failed array sbatch .*?The error message was) "
    r"'(?P<refusal>.+?)(?:'\.)?$"
    r"|(?:Job|Array job) submission failed with exception: (?P<exception>.+)$)",
    re.MULTILINE,
)
FAILED, PREEMPTED = "FAILED", "PREEMPTED"
AGAIN = "start the same command again"
# Every state in which a job can end without being complete, and what to do (man squeue, "JOB STATE CODES").
CURES = {
    "BOOT_FAIL": f"its node did not start; {AGAIN}",
    "CANCELLED": f"someone canceled it, or a limit of the site did; {AGAIN}",
    "DEADLINE": f"it could not end by its deadline; {AGAIN}",
    FAILED: "it ended with an error or a signal; read {log}, and " + AGAIN,
    "LAUNCH_FAILED": f"its node could not start it; {AGAIN}",
    "NODE_FAIL": f"its node failed; {AGAIN}",
    "OUT_OF_MEMORY": f"give it more memory, mem_mb in the file of the cluster, and {AGAIN}",
    PREEMPTED: f"another job took its place; {AGAIN}, or name another slurm_partition",
    "REVOKED": f"another cluster took it over; {AGAIN}",
    "SPECIAL_EXIT": f"the site held it back; {AGAIN}",
    "TIMEOUT": f"give it more time, runtime in the file of the cluster, and {AGAIN}",
}
LEFT_TO_SLURM = 120.0  # seconds in which a preempted job may return to the queue
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


class States(dict[str, str]):
    """The last state of each job, by its number, as Slurm says it, such as "CANCELLED by 0"."""

    def __init__(self) -> None:
        """Begin without a job."""
        super().__init__()
        self._preempted: dict[str, float] = {}  # since when, on the clock of this process

    def as_plugin(self, said: dict[str, str]) -> dict[str, str]:
        """Keep what Slurm says of each job, and return it in the words that the plugin knows.

        The plugin would wait forever for a job whose state it does not know, for one that "CANCELLED by"
        a user says of, and for a preempted one that no queue takes back.
        """
        self.update(said)
        known = {}
        for number, state in said.items():
            word = state.split()[0].rstrip("+") if state.strip() else state
            if word == PREEMPTED:
                since = self._preempted.setdefault(number, time.monotonic())
                ended = time.monotonic() - since >= LEFT_TO_SLURM
                known[number] = FAILED if ended else "PENDING"
            else:
                self._preempted.pop(number, None)
                known[number] = FAILED if word in CURES.keys() - {"NODE_FAIL"} else word
        return known


@contextlib.contextmanager
def states() -> Iterator[States]:
    """Yield the states of Slurm's jobs, which are kept as the plugin asks for them, until the block ends."""
    kept = States()
    try:
        import snakemake_executor_plugin_slurm as plugin
    except ImportError:  # the cluster has another scheduler
        yield kept
        return
    ask = plugin.query_job_status

    async def asked(*given: object, **named: object) -> tuple[dict[str, str] | None, float | None]:
        said, seconds = await ask(*given, **named)
        return (said if said is None else kept.as_plugin(said)), seconds

    plugin.query_job_status = asked
    try:
        yield kept
    finally:
        plugin.query_job_status = ask


def ended(log: Path, last: Mapping[str, str]) -> list[tuple[str, str, str, str]]:
    """Return every run that Slurm ended or refused, read from Snakemake's log.

    Args:
        log: Snakemake's.
        last: the last state of each job by its number; the log's own where it is missing.

    Returns:
        Of each run its profile, its name, the word for its state ("" if it was refused), and what to say.
    """
    runs = []
    for job in ENDED.finditer(log.read_text(encoding="utf-8")):
        profile, run, number = job.group("profile", "run", "number")
        if number:
            state = last.get(number) or job["state"]
            word = state.split()[0].rstrip("+")
            cure = CURES.get(word, AGAIN).format(log=f"runs/{profile}/logs/{run}.log")
            runs.append((profile, run, word, f"{run} ended by Slurm: {state} (job {number}): {cure}"))
        else:
            refusal = job["refusal"] or job["exception"]
            words = f"{run} refused by Slurm: {refusal}: mend the file of the cluster, and {AGAIN}"
            runs.append((profile, run, "", words))
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
