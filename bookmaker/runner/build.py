"""The whole chain under Snakemake, which decides what is made again and in which order.

It compares times of files: a run's mark with its note and with the marks before it (see `plan`), and the
mark of a site with its note, its runs' manifest, and the marks. `chain` only takes away what is damaged, and
brings the notes up to date. Snakemake runs in a process of its own: its words go to a log, and what runs say
to the terminal.
"""

import contextlib
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from bookmaker.runner import commands, fingerprint, kept, published, verify
from bookmaker.runner import plan as planning
from bookmaker.runner.chain import RECORDS
from bookmaker.runner.plan import Job
from privaudit.console import counted, duration, say
from privhelpers.errors import InvalidParameter, RunFailed

OPTIONS = (
    "--nolock",  # our own lock goes away with its holder, Snakemake's does not
    "--rerun-incomplete",
    "--keep-going",
    *("--rerun-triggers", "mtime"),
    "--drop-metadata",  # all that is known of a run lies in runs/<profile>, and may be copied with it
    *("--scheduler", "greedy"),
    *("--profile", "none"),  # a user's own is for other workflows
    *("--quiet", "host", "reason"),
)
CLUSTERS = "cluster"
SHOWN_LINES = 20
TOLD_EVERY = 20.0  # seconds between two lines that say how far a build is
# Slurm's words for a job that ended, unknown to Snakemake's plugin, which would wait for it forever.
UNKNOWN_ENDS = ("LAUNCH_FAILED", "REVOKED", "SPECIAL_EXIT")
LEFT_TO_SLURM = 120.0  # seconds in which a preempted job may return to the queue
SLURM_SAID = re.compile(r"Error in rule (\S+?)/(\S+):\n +message: (?!None)(.+)")
PLANNED = re.compile(r"(\S+) +1\n")  # a line of Snakemake's table of what it will run
STARTED = re.compile(r"(?:local)?rule (\S+):\n")
FINISHED = re.compile(r"Finished jobid: \d+ \(Rule: (\S+)\)")


def site_note(profile: str) -> str:
    """Return the file that says what the sites of a profile are built from, apart from its runs."""
    return f"runs/{profile}/.notes/site"


def site_mark(profile: str, *, solutions: bool = True) -> str:
    """Return the file that a complete site has."""
    return f"runs/{profile}/{published.SITES[solutions]}/{published.COMPLETE}"


def where(root: Path, cluster: str | None, at_once: int | None) -> list[str]:
    """Return Snakemake's options for where runs go.

    Args:
        root: the repository.
        cluster: a folder of `cluster/`; None or "": this machine.
        at_once: cores of the whole schedule; on a cluster, jobs at once. None: 2, or what the cluster's file
            says.

    Raises:
        InvalidParameter: there is no such folder.
    """
    if not cluster:
        return ["--cores", str(at_once or 2), "--workflow-profile", "none"]
    known = sorted(path.parent.name for path in (root / CLUSTERS).glob("*/config.yaml"))
    if cluster not in known:
        raise InvalidParameter(f"CLUSTER={cluster!a}: must be a folder of {CLUSTERS}/: {', '.join(known)}")
    return ["--workflow-profile", f"{CLUSTERS}/{cluster}", *(["--jobs", str(at_once)] if at_once else [])]


def translate_slurm_states() -> None:
    """Let Snakemake's Slurm plugin, in this process, know every state in which a job can end."""
    import snakemake_executor_plugin_slurm as plugin

    ask, preempted = plugin.query_job_status, {}

    def known(number: str, state: str) -> str:
        word = state.split()[0].rstrip("+") if state.strip() else state  # as "CANCELLED by 0" of sacct
        since = preempted.setdefault(number, time.monotonic()) if word == "PREEMPTED" else None
        if since is None:
            preempted.pop(number, None)
            return "FAILED" if word in UNKNOWN_ENDS else word
        return "FAILED" if time.monotonic() - since >= LEFT_TO_SLURM else "PENDING"

    async def asked(*given: object, **named: object) -> tuple[dict[str, str] | None, float | None]:
        said, seconds = await ask(*given, **named)
        return said and {number: known(number, state) for number, state in said.items()}, seconds

    plugin.query_job_status = asked


@contextlib.contextmanager
def alone(root: Path, names: Sequence[str]) -> Iterator[None]:
    """Hold some profiles for this process, from before anything of theirs is written.

    All builds take them in one order, so that among several that want the same ones at once, one goes on.

    Args:
        root: the repository.
        names: of the profiles.

    Raises:
        RunFailed: a build of one of them is going on; the message says in which process.
    """
    with contextlib.ExitStack() as locks:
        for name in sorted(names):
            locks.enter_context(commands.exclusive(root / "runs" / name / ".lock", f"profile {name}"))
        yield


def _prepare(root: Path, plan: list[Job]) -> None:
    """Take away the marks of what is damaged, bring the notes up to date, and restore what is kept.

    Raises:
        RunFailed: the profile's run made other notes than the kept runs read.
    """
    profile = plan[0].profile
    for file, wrong in verify.damaged(root, plan).items():
        say(profile, f"{wrong}: to be made again")
        file.unlink(missing_ok=True)
    for job in plan:
        if not (root / job.sentinel).is_file():
            (root / job.mark).unlink(missing_ok=True)
        (root / job.failed).unlink(missing_ok=True)  # of an earlier build
        planning.note(root, job)
        if job.kept and (planning.stale(root, job) or not (root / job.mark).is_file()):
            planning.restore(root, job)
        made = job.slug == RECORDS and not planning.stale(root, job)
        if made and (wrong := planning.other_notes(root, plan)):
            raise RunFailed(wrong)
    _tell_kept(plan)
    planning.write_if_new(root / site_note(profile), fingerprint.of_site(root).encode())
    if others := verify.other_versions(root, plan):
        say(profile, others)


def _tell_kept(plan: list[Job]) -> None:
    """Say how many runs are kept ones, and which of these were made by older code."""
    taken = [job for job in plan if job.kept]
    if taken:
        dates = sorted({job.kept.source["date"] for job in taken})
        of = " to ".join(dict.fromkeys((dates[0], dates[-1])))
        say(plan[0].profile, f"{counted(len(taken), 'run is a kept one', 'runs are kept ones')}, of {of}")
    if older := [job.title for job in taken if job.older]:
        say(
            plan[0].profile,
            f"kept by older code than today's: {', '.join(older)}; `make book PROFILE={kept.STUDY}` and then "
            f"`python -m bookmaker reference --profile {kept.STUDY}` renew them",
        )


def _snakemake(root: Path, command: list[str], log: Path, plans: list[list[Job]], *, apart: bool) -> int:
    """Run Snakemake, its words going to `log`, and say how far it is; return its exit code."""
    live = [[job for job in plan if not job.kept] for plan in plans]
    rules = {
        f"{plan[0].profile}/{name}": made
        for plan in live
        for name, made in planning.together(plan, apart=apart).items()
    }
    seconds = {rule: sum(job.seconds for job in made) for rule, made in rules.items()}

    def counted_runs(found: dict[str, int]) -> int:
        return sum(len(rules[rule]) for rule in found)

    profile, begun, told = plans[0][0].profile, time.monotonic(), 0.0
    todo: dict[str, int] = {}
    done: dict[str, int] = {}
    started: dict[str, float] = {}  # run -> when
    log.parent.mkdir(parents=True, exist_ok=True)
    streams = {"stdout": 2, "stderr": subprocess.PIPE, "text": True, "errors": "replace"}
    with (
        open(log, "w", encoding="utf-8", buffering=1) as words,
        subprocess.Popen(command, cwd=root, stdin=subprocess.DEVNULL, **streams) as process,
    ):
        try:
            for line in process.stderr:
                words.write(line)
                if (found := PLANNED.fullmatch(line)) and found[1] in seconds:
                    todo[found[1]] = seconds[found[1]]
                elif line.startswith("total "):
                    say(
                        profile,
                        f"{counted(counted_runs(todo), 'run', 'runs')} to make, of {counted_runs(seconds)}",
                    )
                elif found := STARTED.fullmatch(line):
                    started[found[1]] = time.monotonic()
                elif (found := FINISHED.match(line)) and found[1] in todo:
                    done[found[1]] = todo.pop(found[1])
                    now = time.monotonic()
                    passed = now - begun
                    if passed - told > TOLD_EVERY:
                        told = passed
                        # Runs that are under way count by what they took so far: early on, by far the most.
                        partly = sum(min(todo[run], now - at) for run, at in started.items() if run in todo)
                        rate = (sum(done.values()) + partly) / (now - min(started.values()))
                        left = (sum(todo.values()) - partly) / rate
                        rest = f", about {duration(left)} left" if todo else ""
                        made, total = counted_runs(done), counted_runs(done | todo)
                        say(profile, f"{made} of {total} runs in {duration(passed)}{rest}")
        except KeyboardInterrupt:
            process.wait()  # it cancels the jobs of a cluster
            raise
    if not done and not process.returncode:
        say(profile, "nothing to run: all that was asked for is up to date")
    return process.returncode


def _explain(root: Path, plans: list[list[Job]], log: Path) -> None:
    """Say which runs failed, or else what Snakemake said last."""
    quiet, words = True, log.read_text(encoding="utf-8")
    for profile, run, said in SLURM_SAID.findall(words):
        say(profile, f"stopped, no site: {run}: {said}")
        quiet = False
    for plan in plans:
        missing = [job for job in plan if not (root / job.mark).exists()]
        if failed := {job.rule: job.title for job in missing if (root / job.failed).exists()}:
            waiting = sum(not failed.keys().isdisjoint(job.inputs) for job in missing)
            them = "it" if len(failed) == 1 else "them"
            rest = f"; {counted(waiting, 'run waits', 'runs wait')} for {them}" if waiting else ""
            say(plan[0].profile, f"stopped, no site: {', '.join(failed.values())} failed{rest}")
            quiet = False
    if quiet:
        profile = plans[0][0].profile
        say(profile, f"stopped, no site; the end of {log.relative_to(root)}:")
        for line in words.splitlines()[-SHOWN_LINES:]:
            say(profile, f"  {line}")


def chain(
    root: Path,
    plans: Sequence[list[Job]],
    *,
    targets: Sequence[str],
    cores: int | None = None,
    cluster: str | None = None,
    limit: float = 24.0,
    until: str | None = None,
) -> int:
    """Run what is out of date in one schedule over several plans, and return the exit code.

    The profiles are held for this process, see `alone`.

    Args:
        root: the repository.
        plans: every run of each profile.
        targets: files wanted: marks of runs, or of sites.
        cores, cluster: see `where`.
        limit: hours that a cell may take.
        until: the last run of the plans, where they are not whole.

    Raises:
        PrivHelpersError: the cluster is unknown.
    """
    options, plans = where(root, cluster, cores), list(plans)
    profiles = ",".join(f"params/{plan[0].profile}.yml" for plan in plans)
    # A file name, because Snakemake would read a bare profile called 1 or yes as something else than text.
    config = [
        "--config",
        f"profile={profiles}",
        f"limit={limit}",
        f"until={until or ''}",
        f"apart={cluster or ''}",
    ]
    for plan in plans:
        _prepare(root, plan)
    log = root / "runs" / plans[0][0].profile / "logs" / "snakemake.log"
    command = [sys.executable, "-m", "snakemake", *targets, *OPTIONS, *options, *config]
    if code := _snakemake(root, command, log, plans, apart=bool(cluster)):
        _explain(root, plans, log)
    return 1 if code else 0
