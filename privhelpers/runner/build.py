"""The whole chain under Snakemake, quiet but for one line per run."""

import contextlib
import time
from pathlib import Path

from privhelpers.runner import plan as planning
from privhelpers.runner import processes
from privhelpers.runner.plan import Job
from privhelpers.runner.progress import say

OPTIONS = (
    "--nolock",  # our own lock goes away with its holder, Snakemake's does not
    "--rerun-incomplete",
    "--keep-going",
    *("--scheduler", "greedy"),
    *("--quiet", "progress", "rules", "host", "reason"),
)
SHOWN_LINES = 20


def _drop_stale(root: Path, plan: list[Job]) -> list[Job]:
    """Remove the sentinel of every run whose code, parameters or files are not those on record.

    Snakemake keeps its own records in `.snakemake` and sees the same changes, but only for as long as
    that folder is there.
    """
    stale = [job for job in plan if not planning.is_current(root, job)]
    for job in stale:
        (root / job.sentinel).unlink(missing_ok=True)
    return stale


def _snakemake(log: Path, profile: str, cores: int, targets: list[str]) -> int:
    """Run Snakemake inside this process, its own words going to `log`; runs write to the terminal."""
    from snakemake.cli import main

    log.parent.mkdir(parents=True, exist_ok=True)
    # A file name, because Snakemake would read a bare profile called 1 or yes as something else than text.
    chosen = ["--config", f"profile=params/{profile}.yml"]
    arguments = [*targets, "--cores", str(cores), *OPTIONS, *chosen]
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


def _explain(root: Path, plan: list[Job], log: Path) -> None:
    """Say which runs did not complete, or what else stopped Snakemake."""
    profile = plan[0].profile
    missing = [job for job in plan if not (root / job.sentinel).exists()]
    failed = [job.title for job in missing if (root / job.failed).exists()]
    if failed:
        waiting = f"; {len(missing) - len(failed)} runs wait for them" if len(missing) > len(failed) else ""
        say(profile, f"stopped, no site: {', '.join(failed)} failed{waiting}")
        return
    say(profile, f"stopped, no site; the end of {log.relative_to(root)}:")
    for line in log.read_text(encoding="utf-8").splitlines()[-SHOWN_LINES:]:
        say(profile, f"  {line}")


def book(root: Path, plan: list[Job], *, cores: int, until: str | None = None) -> int:
    """Run what is out of date in a plan, then build the site; return the exit code.

    Args:
        root: the repository.
        plan: every run of one profile.
        cores: cores of the whole build, 1 or more.
        until: name of the last run wanted; then neither manifest nor site is made.

    Raises:
        RunFailed: another build of the same profile is going on.
    """
    profile = plan[0].profile
    folder = root / "runs" / profile
    clock = time.monotonic()
    targets = [job.sentinel for job in planning.upto(plan, until)] if until else []
    with processes.exclusive(folder / ".lock", f"profile {profile}"):
        stale = _drop_stale(root, plan)
        say(profile, f"{len(plan)} runs, {len(plan) - len(stale)} up to date")
        code = _snakemake(folder / "logs" / "snakemake.log", profile, cores, targets)
        if code:
            _explain(root, plan, folder / "logs" / "snakemake.log")
            return code
    where = targets[-1] if targets else f"runs/{profile}/site/_build/html/index.html"
    say(profile, f"complete in {time.monotonic() - clock:.0f} s: {where}")
    return 0
