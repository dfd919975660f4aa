"""How far a build is, and how long the rest of it may take.

The build notes in each profile's folder which runs it will make and what they took before; a run that ends,
wherever it ran, counts what is there.
"""

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

from bookmaker.runner import _seals
from bookmaker.runner._outcome import machine
from bookmaker.runner.plan import Job
from privaudit.console import duration
from privhelpers.artifacts import parse_json, parse_yaml, read_bounded, to_json, write_atomic
from privhelpers.errors import PrivHelpersError

EXPECTED = Path(__file__).with_name("expected.yml")  # seconds of each chapter's runs, on the machine it names
NOTE = ".build.json"
HEAD = """# How long a run of each chapter takes, in seconds: the mean over its models. A profile that never
# ran here is expected to take as long. Written by `python -m bookmaker.runner expect`.
"""
ENOUGH = 30.0  # seconds of finished runs from which this machine's speed is known


def expected(root: Path, profile: str) -> dict[str, float]:
    """Return what a profile's chapters are known to take, and its runs took when it was last complete."""
    known = parse_yaml(EXPECTED.read_text(encoding="utf-8"))["seconds"].get(profile, {})
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, PrivHelpersError):
        manifest = root / "runs" / profile / "manifest.json"
        past = parse_json(read_bounded(manifest, _seals.MOST_BYTES), manifest.name)["runs"]
        known |= {rule: float(run["seconds"]) for rule, run in past.items()}
    return known


def begin(root: Path, names: Sequence[str], stale: Sequence[Job], cores: int | None) -> float | None:
    """Note what a build is about to do, in the folder of each of its profiles; return its expected seconds.

    Args:
        root: the repository.
        names: of its profiles.
        stale: the runs that it will make.
        cores: how many they share; None where nobody knows, and then nor how long it will take.
    """
    known = {name: expected(root, name) for name in names}
    seconds = [known[job.profile].get(job.rule, known[job.profile].get(job.slug)) for job in stale]
    # A chapter that nobody has timed yet must not silence what is known of the others.
    past = [one for one in seconds if one is not None]
    seconds = [sum(past) / len(past) if one is None and past else one for one in seconds]
    runs = [(job.mark, job.threads, expected) for job, expected in zip(stale, seconds, strict=True)]
    for name in names:
        note = {"started": time.time(), "cores": cores, "runs": runs}
        write_atomic(root / "runs" / name / NOTE, to_json(note))
    return _rest(runs, cores)


def end(root: Path, names: Sequence[str]) -> None:
    """Forget what `begin` noted: a run that somebody starts later belongs to no build."""
    for name in names:
        (root / "runs" / name / NOTE).unlink(missing_ok=True)


def _rest(runs: list[Any], cores: int | None) -> float | None:
    """Return the seconds of these runs side by side at the speed of the last time, or None."""
    if not runs or not cores or any(seconds is None for *_, seconds in runs):
        return None
    work = sum(threads * seconds for _, threads, seconds in runs) / cores
    return max(work, max(seconds for *_, seconds in runs))


def _left(note: dict[str, Any], todo: list[Any], done: list[Any]) -> str:
    """Return how long the rest may take, or "" where nobody knows."""
    rest = _rest(todo, note["cores"])
    if rest is None:
        return ""
    past = sum(threads * seconds for _, threads, seconds in done if seconds) / note["cores"]
    speed = past / (time.time() - note["started"]) if past >= ENOUGH else 1.0
    return f", about {duration(rest / speed)} left"


def place(root: Path, profile: str) -> str:
    """Return how far a build is, such as ` (12 of 56; 9 min 20 s so far, about 35 min left)`."""
    try:
        note = json.loads((root / "runs" / profile / NOTE).read_text(encoding="utf-8"))
        runs = [(root / mark, threads, seconds) for mark, threads, seconds in note["runs"]]
        todo = [run for run in runs if not run[0].exists()]
        done = [run for run in runs if run[0].exists()]
        passed = time.time() - note["started"]
        counted = f"{len(done)} of {len(runs)}"
        return f" ({counted}; {duration(passed)} so far{_left(note, todo, done)})"
    except (OSError, ValueError, KeyError, TypeError, ZeroDivisionError):
        return ""  # a run that no build asked for


def expect(profile: str, runs: Sequence[dict[str, Any]]) -> None:
    """Keep the mean seconds of a profile's runs as what a build on another machine may expect.

    Args:
        profile: whose runs they are.
        runs: their records, from `plan.record`.
    """
    seconds: dict[str, list[float]] = {}
    for run in runs:
        seconds.setdefault(run["notebook"], []).append(run["seconds"])
    known = parse_yaml(EXPECTED.read_text(encoding="utf-8"))
    known["machine"] = machine()
    known["seconds"][profile] = {slug: round(sum(took) / len(took)) for slug, took in seconds.items()}
    write_atomic(EXPECTED, (HEAD + yaml.safe_dump(known, sort_keys=True)).encode())
