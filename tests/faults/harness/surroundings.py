"""The door of what is around a run: hash seed, locale, time zone, threads and clock change no byte."""

import functools
import os
import shutil
import tempfile
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from unittest import mock

import toy_site
from faults.harness import base, elsewhere
from faults.harness.layer import KILL, Layer, injected, survived
from faults.harness.registry import Case, Trial, fault
from faults.harness.training import MOMENTS

from bookmaker.runner import _verify, plan
from privhelpers import processes

ZONES = (
    "UTC",
    "Pacific/Kiritimati",
    "Pacific/Marquesas",
    "Asia/Kathmandu",
    "XYZ-13:37",
    "nowhere/at-all",
    "",
)
HASH_SEEDS = ("1", "77", "4294967295", "random")
LOCALES = (
    {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},  # Python writes ASCII alone
    {"LC_ALL": "", "LANG": "tr_TR.UTF-8", "LC_CTYPE": "C.UTF-8"},
    {"LC_ALL": "POSIX"},
    {"LC_ALL": "xx_YY.ISO-8859-1", "LANG": "de_DE"},
)
YEAR = 60 * 60 * 24 * 365  # seconds


def _variables(hash_seed: str, locale: int, threads: int) -> dict[str, str]:
    """Return what a process must find in its environment when it begins."""
    number = {"OMP_NUM_THREADS": str(threads), "MKL_NUM_THREADS": str(threads)}
    # Threads that wait leave the processor to others, of whom there are more than processors.
    return {"PYTHONHASHSEED": hash_seed, "OMP_WAIT_POLICY": "passive", **number, **LOCALES[locale]}


def _settings(t: Trial) -> dict[str, object]:
    """Return a time zone, and a clock that is set by up to fifty years at one of its calls."""
    seconds = (t.below(10**6) / 10**6 - 0.5) * 100 * YEAR
    return {"zone": t.choose(ZONES), "at": t.below(40), "seconds": seconds}


@functools.cache
def _process(number: int) -> elsewhere.Elsewhere:
    """Return one of a few processes, each with surroundings of its own, which stays for later trials."""
    process = elsewhere.Elsewhere(_variables(HASH_SEEDS[number], number, 1 + number))
    base.ENDED.callback(_process.cache_clear)
    base.ENDED.callback(process.close)
    return process


@functools.cache
def _undisturbed(name: str, seed: int) -> str:
    """Return a result as it is here."""
    with tempfile.TemporaryDirectory() as place:
        return elsewhere.RESULTS[name](seed, Path(place))


@fault("a private run in other surroundings", seconds=20, forked=False)
def _(t: Trial) -> Case:
    """Its weights, its log, its ledger and its checkpoints."""
    number, seed, settings = t.below(len(LOCALES)), t.below(2), _settings(t)
    call = lambda: _process(number).ask("weights", seed, t.place, **settings)  # noqa: E731
    return Case(call, right=_undisturbed("weights", seed), refusal=False)


@fault("records, tables and rows in other surroundings", seconds=10)
def _(t: Trial) -> Case:
    """Made by a process of their own, under any hash seed."""
    name, seed, settings = t.choose(("records", "tables")), t.below(10**6), _settings(t)
    variables = _variables(str(t.below(2**32)), t.below(len(LOCALES)), 1 + t.below(4))

    def call() -> str:
        process = elsewhere.Elsewhere(variables)
        try:
            return process.ask(name, seed, t.place, **settings)
        finally:
            process.close()

    return Case(call, right=_undisturbed(name, seed), refusal=False)


def _set_times(t: Trial, folder: Path) -> None:
    """Give every file a time of its own, as clocks that were set between two writes leave them."""
    now = datetime.now().timestamp()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and not path.is_symlink():
            time = now + (float(t.rng.random()) - 0.5) * 100 * YEAR
            os.utime(path, (time, time))


def _wrong_clock(t: Trial) -> type:
    """Return a `datetime` whose clock is set anew at every call."""

    class Wrong(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:
            return datetime.now(tz) + timedelta(seconds=(float(t.rng.random()) - 0.5) * 100 * YEAR)

    return Wrong


def _killed(t: Trial) -> Case:
    """Which checkpoint is the last one is no matter of times."""
    folder, at, share, settings = t.place / "kept", 1 + t.below(MOMENTS), float(t.rng.random()), _settings(t)
    if t.below(2):
        _set_times(t, t.copy(base.kept()))

    def work() -> None:
        with injected(Layer(KILL, at, share=share)):
            base.train(folder)

    def call() -> str:
        with (
            elsewhere.clock(settings["at"], settings["seconds"]),
            mock.patch.object(processes, "datetime", _wrong_clock(t)),
        ):
            survived(work)
            _set_times(t, folder)
            return base.train(folder)[0]

    return Case(call, right=base.whole(), refusal=False, parts=True)


def _built(t: Trial) -> Case:
    """What was up to date is so, whatever the times of its files say."""
    (root := t.place / "book").mkdir()
    for path in base.book().iterdir():
        if path.name == "runs":
            shutil.copytree(path, root / "runs")
        else:
            (root / path.name).symlink_to(path)
    jobs = toy_site.jobs(root)
    _set_times(t, root / "runs")
    call = lambda: set(_verify.states(root, jobs, hashed=True).values())  # noqa: E731
    return Case(call, right={plan.CURRENT}, refusal=False, watch=(root / "runs",))


@fault("the clock is set while a private run is killed and goes on, or between two builds", seconds=30)
def _(t: Trial) -> Case:
    return _killed(t) if t.choose(("run", "builds")) == "run" else _built(t)
