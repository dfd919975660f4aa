"""The first chapters as pages while the rest still runs: nobody has to wait for the last run to read them."""

import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bookmaker.runner import chain, written
from bookmaker.runner.plan import Job

LONG = 420.0  # seconds; a build that takes less shows every chapter at once
POLL_SECONDS = 2.0


def _first_part(root: Path, plan: Sequence[Job]) -> list[Job]:
    """Return the runs of the chapters that the first part of the book holds."""
    toc = written.contents(root)
    slugs = {chain.slug_of(entry["file"]) for entry in toc["parts"][0]["chapters"]}
    return [job for job in plan if job.slug in slugs]


def _wait_and_build(root: Path, profile: str, files: list[Path], stop: threading.Event) -> None:
    """Build the first pages once `files` are there; end that build when `stop` is set."""
    while not all(file.exists() for file in files):
        if stop.wait(POLL_SECONDS):
            return
    command = [sys.executable, "-m", "bookmaker.site", "first", "--profile", profile]
    # Linux ends a child when the thread that started it ends, so this one stays until the child is gone.
    with subprocess.Popen(command, cwd=root) as building:
        while building.poll() is None:
            if stop.wait(POLL_SECONDS):
                building.terminate()
                return


@contextmanager
def shown(root: Path, plan: Sequence[Job], seconds: float | None) -> Iterator[None]:
    """Build the site of the first chapters as soon as their runs are complete, beside the other runs.

    Only in a build that takes long, and only where there is no site yet: a complete one stays until the
    next is ready. A first site that fails says so, and stops nothing.

    Args:
        root: the repository.
        plan: every run of the profile.
        seconds: how long the build may take; None where nobody knows.
    """
    profile = plan[0].profile
    there = (root / "runs" / profile / "site" / "_build").exists()
    first = _first_part(root, plan) if seconds is not None and seconds > LONG and not there else []
    if not first:
        yield
        return
    stop = threading.Event()
    files = [root / job.mark for job in first]
    waiting = threading.Thread(
        target=_wait_and_build, args=(root, profile, files, stop), name="first-chapters"
    )
    waiting.start()
    try:
        yield
    finally:
        stop.set()
        waiting.join()
