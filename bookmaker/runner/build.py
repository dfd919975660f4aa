"""The whole chain under Snakemake, quiet but for one line per run.

What must be made is decided by what runs recorded (`_verify.states`), never by the times of files, which a
copy or a clock changes. Snakemake orders the runs: it sees a file for each, its mark, which a build puts
there anew where a run is up to date and so are all before it, and which every other run leaves when it is
made, or finds that all that it reads is as it was. Every input is `ancient`: only a missing file counts.
"""

import contextlib
import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from bookmaker.runner import (
    _bytecode,
    _children,
    _fingerprint,
    _first_chapters,
    _limits,
    _manifest,
    _remaining,
    _scratch,
    _verify,
    _warm,
    processes,
    published,
)
from bookmaker.runner import _cluster as clusters
from bookmaker.runner import plan as planning
from bookmaker.runner.plan import Job
from privaudit.console import counted, say
from privhelpers.errors import RunFailed

OPTIONS = (
    "--nolock",  # our own lock goes away with its holder, Snakemake's does not
    "--rerun-incomplete",
    "--keep-going",
    *("--rerun-triggers", "mtime"),  # neither code nor values by its own records; times: see above
    *("--scheduler", "greedy"),
    *("--profile", "none"),  # a user's own, in SNAKEMAKE_PROFILE, is for other workflows
    *("--quiet", "progress", "rules", "host", "reason"),
)
SHOWN_LINES = 20
BUILT, FILES = ".built", _manifest.FILES  # of a profile: the mark of its site, and what is made from all runs
CORES = 2  # of a build that says nothing else


def _drop_stale(root: Path, plan: list[Job]) -> list[Job]:
    """Remove what is damaged and the sentinel of every run that must be made; mark those that are up to date.

    Returns those that are not, or may not be: what some read is known only when others were made.

    Raises:
        RunFailed: a folder, or a device, lies where a file of the build belongs.
    """
    sites = [f"runs/{plan[0].profile}/{name}/{published.COMPLETE}" for name in published.SITES.values()]
    for file in (*made_from_all(plan[0].profile), *sites, *(f for j in plan for f in (j.sentinel, j.mark))):
        if (root / file).exists() and not (root / file).is_file():
            raise RunFailed(f"{file} is no file; move it away")
    for mark, wrong in _verify.damages(root, plan).items():
        say(plan[0].profile, f"{wrong}: to be made again")
        mark.unlink(missing_ok=True)
    for stray in _verify.strays(root, plan):
        say(plan[0].profile, stray)
    states = _verify.states(root, plan, hashed=True)
    for job in plan:
        (root / job.mark).unlink(missing_ok=True)
        if states[job.rule] == planning.CURRENT:
            (root / job.mark).touch()
            continue
        (root / job.failed).unlink(missing_ok=True)  # of an earlier build
        if not states[job.rule].startswith(planning.WAITS):
            (root / job.sentinel).unlink(missing_ok=True)
    return [job for job in plan if states[job.rule] != planning.CURRENT]


def made_from_all(profile: str) -> list[str]:
    """Return what a whole build of a profile makes of its runs."""
    return [f"runs/{profile}/{name}" for name in (*FILES, BUILT)]


def _renew(root: Path, profile: str) -> None:
    """Let a site be built again that is not complete, was built from other sources, or has no manifest."""
    folder, site = root / "runs" / profile, published.site(root, profile)
    note = site / published.SOURCES
    complete = all(path.is_file() for path in (*(folder / name for name in FILES), site / published.COMPLETE))
    if not (complete and note.is_file() and note.read_bytes() == _fingerprint.of_site(root).encode()):
        (folder / BUILT).unlink(missing_ok=True)
    with contextlib.suppress(FileNotFoundError):
        os.utime(folder / published.MANIFEST)  # Snakemake refuses a site that is older, the clock set back


@contextlib.contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let SIGTERM, and Ctrl-C where it is not ignored, end a build at once with all that it started.

    Snakemake by itself would wait, for hours, until the runs that are going on have ended.
    """
    from snakemake.scheduling.job_scheduler import JobScheduler

    JobScheduler.exit_gracefully = staticmethod(_children.end)  # its handler of SIGTERM
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    for number, handler in before.items():
        if handler != signal.SIG_IGN:
            signal.signal(number, _children.end)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _snakemake(log: Path, profiles: Sequence[str], targets: Sequence[str], where: list[str]) -> int:
    """Run Snakemake inside this process, its own words going to `log`; runs write to the terminal."""
    from snakemake.cli import main

    log.parent.mkdir(parents=True, exist_ok=True)
    # A file name, because Snakemake would read a bare profile called 1 or yes as something else than text.
    chosen = ["--config", "profile=" + ",".join(f"params/{profile}.yml" for profile in profiles)]
    arguments = [*targets, *OPTIONS, *where, *chosen]
    with (
        open(log, "w", encoding="utf-8", buffering=1) as words,
        contextlib.redirect_stdout(words),
        contextlib.redirect_stderr(words),
    ):
        try:
            main(arguments)
        except SystemExit as end:
            return 0 if end.code in (0, None) else 1
    return 0


def _explain(root: Path, plans: Sequence[list[Job]], log: Path, states: Mapping[str, str]) -> None:
    """Say which runs did not complete, or what else stopped Snakemake.

    Raises:
        RunFailed: its words are gone.
    """
    if not log.is_file():
        raise RunFailed(f"runs/{plans[0][0].profile} was removed while it was built; make it again")
    # What failed by itself said why, and is named below.
    own = {(job.profile, job.rule) for plan in plans for job in plan if (root / job.failed).exists()}
    quiet = True
    for profile, run, state, words in clusters.ended(log, states):
        if state != clusters.FAILED or (profile, run) not in own:
            say(profile, f"stopped, no site: {words}")
            quiet = False
    for plan in plans:
        missing = [job for job in plan if not (root / job.mark).exists()]
        if failed := [job.title for job in missing if (root / job.failed).exists()]:
            waiting = len(missing) - len(failed)
            them = "it" if len(failed) == 1 else "them"
            rest = f"; {counted(waiting, 'run waits', 'runs wait')} for {them}" if waiting else ""
            say(plan[0].profile, f"stopped, no site: {', '.join(failed)} failed{rest}")
            quiet = False
    if quiet:
        profile = plans[0][0].profile
        say(profile, f"stopped, no site; the end of {log.relative_to(root)}:")
        for line in log.read_text(encoding="utf-8").splitlines()[-SHOWN_LINES:]:
            say(profile, f"  {line}")


def _require(root: Path, profiles: Sequence[str], plans: Sequence[list[Job]], targets: Sequence[str]) -> None:
    """Refuse to call complete what is not there, whatever Snakemake says of itself."""
    wanted = [*targets]
    for profile, plan in zip(profiles, plans, strict=True):
        if not targets:
            wanted += [*(job.mark for job in plan), *made_from_all(profile)]
            wanted.append(f"runs/{profile}/{published.SITES[True]}/{published.COMPLETE}")
    if missing := [file for file in wanted if not (root / file).is_file()]:
        raise RunFailed(
            f"Snakemake ended without an error, and {missing[0]} was not made; see {_log(profiles[0])}"
        )


def _log(profile: str) -> str:
    return f"runs/{profile}/logs/snakemake.log"


def check(root: Path, names: Sequence[str], cores: int | None, cluster: str | None, limit: str) -> list[str]:
    """Return where Snakemake runs, once nothing stands in the way; the arguments are those of `chain`.

    Raises:
        PrivHelpersError: the limit is none, or the cluster cannot be used.
    """
    _limits.hours(limit)
    if cluster:
        return clusters.options(root, cluster, names, cores)
    return ["--cores", str(cores or CORES), "--workflow-profile", "none"]


@contextlib.contextmanager
def alone(root: Path, names: Sequence[str]) -> Iterator[None]:
    """Hold some profiles for this process, from before anything of theirs is written.

    All builds take them in one order, so that of several that want the same ones at once, one goes on.

    Args:
        root: the repository.
        names: of the profiles.

    Raises:
        RunFailed: a build of one of them is going on; the message says in which process.
    """
    with contextlib.ExitStack() as locks:
        for name in sorted(names):
            locks.enter_context(processes.exclusive(root / "runs" / name / ".lock", f"profile {name}"))
        yield


def chain(
    root: Path,
    plans: Sequence[list[Job]],
    *,
    cores: int | None = None,
    targets: Sequence[str] = (),
    cluster: str | None = None,
    limit: str = "",
) -> int:
    """Run what is out of date in one schedule over several plans, and return the exit code.

    The profiles are held for this process, see `alone`.

    Args:
        root: the repository.
        plans: every run of each profile.
        cores: cores of the whole schedule, 1 or more; on a cluster, jobs at once.
        targets: files wanted; none: everything, the sites of all plans included.
        cluster: a folder of `cluster/` that says where the runs go; None: this machine.
        limit: hours that a cell may take; "": twenty times what its run took before, and four at least.

    Raises:
        PrivHelpersError: the limit is none, or the cluster cannot be used.
        RunFailed: the schedule ended well, and something that it had to make is not there.
    """
    _limits.hand_down(limit)
    names = [plan[0].profile for plan in plans]
    log = root / _log(names[0])
    _bytecode.trust_contents(root)
    _children.adopt()
    with contextlib.ExitStack() as stack:
        stack.callback(_children.kill_children)  # such as what the cell of a killed run left behind
        stack.enter_context(_ended_by_signals())
        # The nodes of a cluster have temporary folders of their own.
        stack.enter_context(contextlib.nullcontext() if cluster else _scratch.scratch())
        where = check(root, names, cores, cluster, limit)
        for name in [name for name in os.environ if name.startswith("SNAKEMAKE_")]:
            if not cluster or name == "SNAKEMAKE_PROFILE":  # the others may say what a cluster's plugin needs
                del os.environ[name]
        watched = clusters.told(root, plans) if cluster else contextlib.nullcontext()
        waiting: list[Job] = []
        for name, plan in zip(names, plans, strict=True):
            stale = _drop_stale(root, plan)
            waiting += [job for job in stale if not targets or job.mark in targets]
            if not targets:
                _renew(root, name)
            say(name, f"{len(plan)} runs, {len(plan) - len(stale)} up to date")
            if others := _verify.other_versions(root, plan):
                say(name, others)
        seconds = _remaining.begin(root, names, waiting, cores if cluster else cores or CORES)
        alone = not targets and not cluster and len(plans) == 1
        early = _first_chapters.shown(root, plans[0], seconds) if alone else contextlib.nullcontext()
        states = stack.enter_context(clusters.states() if cluster else contextlib.nullcontext({}))
        with watched, _warm.server(root, 0 if cluster else len(waiting), names), early:
            code = _snakemake(log, names, targets, where)
        _remaining.end(root, names)
        if code:
            _explain(root, plans, log, states)
        else:
            _require(root, names, plans, targets)
    return code
