"""`make chainkills N=... SEED=... JOBS=...`: kills parts of a build of the smoke profile, and calls it again.

An undisturbed build is made first, and kept. Each trial copies it, removes the results of a few runs, calls
the same `make book` there, and ends one of its processes by SIGKILL at a moment that chance chose: make
itself, the build with Snakemake in it, the server that runs fork from, a run, its kernel, a worker, the build
of the site, or the whole process group. Then it calls the same command until that ends well. Whatever was
killed, every result must have the bytes of the undisturbed build, and nothing may stay behind.
"""

import contextlib
import functools
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import psutil
from conftest import copy_repository
from faults.harness import counted, report
from faults.harness.judge import OUTCOMES, REFUSAL, RIGHT, THIRD
from patience import LIMIT_SECONDS

from bookmaker.runner import _children, _manifest, _scratch, _seals, _sites, _verify, plan, published
from bookmaker.runner.plan import Job
from privhelpers import rng
from privhelpers.artifacts import SEAL, parse_json, read_sealed, sha256_of, to_json, write_atomic
from privhelpers.errors import PrivHelpersError

PROFILE, CORES = "smoke", 2
# Two processes give these chapters workers, and change no result.
WORKERS = ("shadow_models", "defenses")
# Their results say how long their parts took, so that no two runs of them leave the same bytes.
TIMED = ("real_model", "defenses")
SOURCES = ("book", "Snakefile", "_config.yml", "_toc.yml", "tests/conftest.py")  # beside the usual ones
PREFIX = "chainkills-"
MARK = "CHAIN_KILLS"  # environment variable: the trial that a process belongs to
KINDS = {
    "make": "make",
    "build": "the build, with Snakemake in it",
    "server": "the server that runs fork from",
    "run": "a run",
    "kernel": "a kernel",
    "worker": "a worker of a kernel, or of the site",
    "site": "the build of the manifest or of the site",
    "group": "the whole process group",
}
DURING_RUNS = ("server", "run", "kernel")  # which live no longer than the runs, and not while a site is made
SHORTEST, LONGEST = 10.0, 40.0  # seconds of the runs that a trial makes again, on all cores
START = 8.0  # seconds until the first run has begun
CALLS = 3  # after the one that is disturbed
GRACE = 60.0  # seconds in which the processes of a killed build must have ended
# What a record says about the time at which its run was made, and not about its results.
TIMES = ("started", "seconds", "cpu_seconds", "peak_memory_mib", "activities", "page")
BAR = re.compile(r"\[\d+:\d\d(?::\d\d)?<[^]\n]*\]")  # seconds and speed at the end of a progress bar
TRACEBACK = re.compile(r"Traceback \(most recent call last\):\s+File ")
TYPED = re.compile(r"^(refused: |failed: |\[[\w-]+\] stopped, no site)", re.MULTILINE)
IN_USE = re.compile(r"^failed: .* is in use by process \d+", re.MULTILINE)


@dataclass(frozen=True)
class Book:
    """A whole build that nobody disturbed; trials work on copies of it.

    Attributes:
        root: the copy of the repository that it was made in.
        profile: that was built.
        command: that builds it, in its folder.
        seconds: that each run took, by rule.
        site: seconds that manifest and site took.
        results: the hash of every result, see `results`.
    """

    root: Path
    profile: str
    command: tuple[str, ...]
    seconds: dict[str, float]
    site: float
    results: dict[str, str]


def results(root: Path, profile: str) -> dict[str, str]:
    """Return the SHA-256 of every artifact, seal, executed notebook and record, and of a summary, by name.

    What says when and how fast a run was made is left out: in a record with the hash of its page, in an
    executed notebook at the end of a progress bar. So is the record's own seal.
    """
    folder, found = root / "runs" / profile, {}
    for part in ("artifacts", "notebooks"):
        for name, path in _seals.files_below(folder / part):
            if path.name == _seals.RECORD:
                record = parse_json(read_sealed(path, name, _seals.MOST_BYTES), name)
                lasting = {key: value for key, value in record.items() if key not in TIMES}
                found[f"{part}/{name}"] = sha256(to_json(lasting)).hexdigest()
            elif path.suffix == ".ipynb":
                text = path.read_text(encoding="utf-8")
                found[f"{part}/{name}"] = sha256(BAR.sub("[]", text).encode()).hexdigest()
            elif path.name != _seals.RECORD + SEAL:
                found[f"{part}/{name}"] = sha256_of(path)
    summary = folder / _manifest.SUMMARY
    return found | ({summary.name: sha256_of(summary)} if summary.is_file() else {})


def book(root: Path, profile: str, command: Sequence[str]) -> Book:
    """Return what trials have to know about a whole build in the folder `root`."""
    jobs = plan.jobs(root, profile)
    seconds = {job.rule: float(plan.record(root, job)["seconds"]) for job in jobs}
    cost = root / "runs" / profile / "site" / ".cost.json"
    site = float(parse_json(cost.read_bytes(), cost.name)["seconds"]) if cost.exists() else 0.0
    return Book(root, profile, tuple(command), seconds, site, results(root, profile))


def removed(root: Path, whole: Book, chance: np.random.Generator) -> list[Job]:
    """Remove the results of one to four runs, and in half of the trials of runs that read them; return them.

    Together they take no longer than chance allowed, unless the first one alone does.
    """
    jobs = [job for job in plan.jobs(root, whole.profile) if job.rule not in TIMED]
    budget = CORES * chance.uniform(SHORTEST, LONGEST)
    wanted = [jobs[number] for number in chance.permutation(len(jobs))[: chance.integers(1, 5)]]
    if chance.random() < 0.5:
        first = {job.rule for job in wanted}
        wanted += [job for job in jobs if first & job.inputs.keys() and job.rule not in first]
    chosen: list[Job] = []
    for job in wanted:
        if not chosen or sum(whole.seconds[one.rule] for one in (*chosen, job)) <= budget:
            chosen.append(job)
    for job in chosen:
        shutil.rmtree((root / job.sentinel).parent)
        (root / job.notebook).unlink()
    return chosen


def _kind(words: list[str], parent: str) -> str:
    """Return what a process of a build is, by its command line and what its parent is."""
    if parent in ("kernel", "worker", "site"):
        return "worker"
    if parent in ("server", "run"):
        return {"server": "run", "run": "kernel"}[parent]
    if parent != "build":
        return "build" if {"bookmaker.runner", "book"} <= {*words} else "make"
    if "bookmaker.runner._warm" in words:
        return "server"
    return "site" if "bookmaker.site" in words or "collect" in words else "run"


def living(top: psutil.Process) -> dict[str, list[psutil.Process]]:
    """Return the processes of a build by their kind; `top` is make, or the build where nobody called make."""
    kinds: dict[int, str] = {}
    found: dict[str, list[psutil.Process]] = {kind: [] for kind in KINDS}
    for process in [top, *top.children(recursive=True)]:
        with contextlib.suppress(psutil.NoSuchProcess, psutil.ZombieProcess):
            kind = _kind(process.cmdline(), kinds.get(process.ppid(), ""))
            kinds[process.pid] = kind
            found[kind].append(process)
    return found


def killed(top: psutil.Process, wanted: str, chance: np.random.Generator) -> str:
    """Kill a process of the wanted kind, or of one that lives at this moment, and return its kind."""
    alive = living(top)
    others = [str(kind) for kind in chance.permutation([kind for kind in KINDS if kind != wanted])]
    for kind in (wanted, *others):
        with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
            if kind == "group":
                os.killpg(top.pid, signal.SIGKILL)
                return kind
            if alive[kind]:
                alive[kind][chance.integers(len(alive[kind]))].kill()
                return kind
    return ""


def started(whole: Book, place: Path) -> subprocess.Popen:
    """Call the command of a build in the folder `book` of a trial; what it says goes to the file `said`."""
    ours = {n: value for n, value in os.environ.items() if not n.startswith(("MAKE", "MFLAGS", "PYTHON"))}
    root = place / "book"
    given = {"TMPDIR": str(place / "tmp"), MARK: str(place), "PYTHONPATH": str(root)}
    with open(place / "said", "wb") as said:
        return subprocess.Popen(
            whole.command,
            cwd=root,
            env=ours | given,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            # A trial that is killed itself takes its build along.
            preexec_fn=lambda: _children.prctl(_children.PR_SET_PDEATHSIG, signal.SIGKILL),
        )


def ended(call: subprocess.Popen, place: Path) -> tuple[int | None, str]:
    """Return the exit code of a call, or None where it hangs, and what it said."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        call.wait(timeout=LIMIT_SECONDS)
    return call.poll(), (place / "said").read_text(encoding="utf-8", errors="replace")


def untyped(code: int | None, said: str, hit: str) -> str:
    """Return why the end of a call is a third outcome, or "".

    Args:
        code: how it ended, see `ended`.
        said: what it said.
        hit: the kind of the process that was killed in it, or "".
    """
    if code is None:
        return f"it hangs, and said: {_end(said)}"
    if TRACEBACK.search(said):
        return f"a traceback: {_end(said)}"
    if code == 0 or hit in ("make", "build", "group"):
        return ""
    wanted = TYPED if hit else IN_USE
    return "" if wanted.search(said) else f"exit code {code} without a reason: {_end(said)}"


def _end(said: str) -> str:
    return " / ".join(said.strip().splitlines()[-6:])[-600:]


def _belonging(place: Path) -> list[psutil.Process]:
    """Return the processes that a trial started, and those that these started."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if process.environ().get(MARK) == str(place) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
    return found


def _left(place: Path) -> str:
    """Return which processes of a trial outlived it, in words, or ""."""
    deadline = time.monotonic() + GRACE
    while (found := _belonging(place)) and time.monotonic() < deadline:
        time.sleep(0.2)
    with contextlib.suppress(psutil.Error):
        return f"a process is left: {' '.join(found[0].cmdline())[:200]}" if found else ""
    return ""


def amiss(whole: Book, place: Path) -> str:
    """Return what differs from the undisturbed build after the last call of a trial, or ""."""
    root, said = place / "book", io.StringIO()
    if left := _left(place):
        return left
    if files := sorted(path.name for path in (place / "tmp").iterdir()):
        return f"left in the temporary folder: {', '.join(files)}"
    try:
        if differs := _seals.difference(whole.results, results(root, whole.profile)):
            return f"another result: {differs}"
        with contextlib.redirect_stdout(said):
            holds = _verify.verify(root, plan.jobs(root, whole.profile))
    except (PrivHelpersError, OSError) as error:
        return f"{type(error).__name__}: {error}"
    return "" if holds else f"verify: {said.getvalue().strip()}"


def damaged_site(root: Path, profile: str) -> str:
    """Return what is wrong with a site that is called complete after a kill, or "".

    It may be that of the runs before, where the kill came between a manifest and its site: then it is whole,
    and every command that hands it out refuses it and says what makes it again.
    """
    site = published.site(root, profile)
    if not (site / published.COMPLETE).exists():
        return ""
    wrong = _sites.damage(site)
    if wrong == _sites.OTHER_RUNS:
        wrong = _sites.difference(site)
        with contextlib.suppress(PrivHelpersError):
            published.finished(root, profile, solutions=True)
            wrong = wrong or "a site of other runs is handed out"
    return wrong


def _called(whole: Book, place: Path, moment: float, wanted: str, chance: np.random.Generator) -> dict:
    """Disturb a build at a moment, in seconds, and call it again until it ends well; return a trial's end."""
    call, hit = started(whole, place), ""
    with contextlib.suppress(subprocess.TimeoutExpired):
        call.wait(timeout=moment)
    if call.poll() is None:
        hit = killed(psutil.Process(call.pid), wanted, chance)
    code, said = ended(call, place)
    codes, wrong = [code], untyped(code, said, hit) or damaged_site(place / "book", whole.profile)
    while not wrong and codes[-1] != 0:
        if len(codes) > CALLS:
            wrong = f"no end after {CALLS} more calls: {_end(said)}"
            break
        code, said = ended(started(whole, place), place)
        codes.append(code)
        wrong = untyped(code, said, "")
    wrong = wrong or amiss(whole, place)
    outcome = THIRD if wrong else REFUSAL if any(codes[1:]) else RIGHT
    return {"killed": hit, "codes": codes, "outcome": outcome, "said": wrong.replace(str(place), "PLACE")}


def trial(index: int, *, seed: int, whole: Book) -> dict:
    """Return the line of one trial: what was removed and killed, when, and how it ended."""
    chance, clock = rng.make(seed, f"chain kills {index}"), time.monotonic()
    wanted = list(KINDS)[index % len(KINDS)]
    with _scratch.made(Path(tempfile.gettempdir()), PREFIX) as place:
        shutil.copytree(whole.root, place / "book", symlinks=True)
        (place / "tmp").mkdir()
        chosen = removed(place / "book", whole, chance)
        seconds = [whole.seconds[job.rule] for job in chosen]
        lasts = START + max(0.0, *seconds, sum(seconds) / CORES)
        if wanted not in DURING_RUNS:
            lasts += whole.site
        moment = lasts * chance.random()
        try:
            row = _called(whole, place, moment, wanted, chance)
        finally:
            for process in _belonging(place):
                with contextlib.suppress(psutil.NoSuchProcess):
                    process.kill()
    told = {"removed": [job.rule for job in chosen], "at": round(moment, 1), "of": round(lasts, 1)}
    return row | told | {"seconds": round(time.monotonic() - clock, 1)}


def command() -> list[str]:
    """Return the command that builds the smoke profile in a copy, in the environment of this process."""
    given = {"PROFILE": PROFILE, "JOBS": CORES, "CLUSTER": "", "LIMIT": "", "SOLUTIONS": "", "VENV": ".venv"}
    words = [f"{name}={value}" for name, value in (given | {"PYTHON": sys.executable}).items()]
    return ["make", "-o", ".venv/.stamp", "book", *words]


def reference() -> Book:
    """Return the undisturbed build of this code, made now or by an earlier call.

    Raises:
        PrivHelpersError: it does not end well.
    """
    kept, mark = counted.PLACE / "chain-reference", counted.code(*SOURCES).encode()
    note = kept / "made-of"
    if note.is_file() and note.read_bytes() == mark:
        return book(kept / "book", PROFILE, command())
    shutil.rmtree(kept, ignore_errors=True)
    with _scratch.made(Path(tempfile.gettempdir()), PREFIX) as place:
        root = copy_repository(place / "book")
        profile, text = root / "params" / f"{PROFILE}.yml", ""
        for line in profile.read_text(encoding="utf-8").splitlines():
            text += f"{line}\n" + ("  processes: 2\n" if line.removesuffix(":") in WORKERS else "")
        profile.write_text(text, encoding="utf-8")
        (place / "tmp").mkdir()
        sys.stderr.write("[chainkills] an undisturbed build first: some minutes\n")
        empty = Book(root, PROFILE, tuple(command()), {}, 0.0, {})
        code, said = ended(started(empty, place), place)
        if code != 0:
            raise PrivHelpersError(f"the undisturbed build ended with exit code {code}: {_end(said)}")
        shutil.copytree(root, kept / "book", symlinks=True)
    write_atomic(note, mark)
    return book(kept / "book", PROFILE, command())


def _row(name: str, rows: list[dict]) -> str:
    counts = Counter(row["outcome"] for row in rows)
    bound = f"{100 * report.upper_bound(counts[THIRD], len(rows)):.3g} %" if rows else ""
    return f"| {' | '.join([name, str(len(rows)), *(str(counts[one]) for one in OUTCOMES), bound])} |"


def table(rows: list[dict], seed: int, ran: str, machine: str) -> str:
    """Return what became of the builds as Markdown."""
    hit = [row for row in rows if row["killed"]]
    head = ["killed", "trials", *OUTCOMES, "upper bound"]
    return "\n".join(
        [
            "# A build of the smoke profile killed, and called again",
            "",
            f"Seed {seed}, commit {ran}, on {machine}.",
            "In each trial `make book` makes a few runs and the site again, and one of its processes is",
            "ended by SIGKILL at a moment that chance chose; then the same command is called until it ends",
            f"well, {CALLS} times at most. Right bytes: every artifact, executed notebook and record, but",
            "for its times, has the SHA-256 of an undisturbed build, `make verify` holds, no process is left",
            'and no temporary file. Typed refusal: the same, after a call that said "is in use by process".',
            "All else is a third outcome; the upper bound is of its chance, one-sided, at 95 %",
            "(Clopper-Pearson). A kill may leave the whole site of the runs before; then every command that",
            "hands a site out must refuse it.",
            f"Builds that ended before their moment, with no process killed: {len(rows) - len(hit)}.",
            "",
            f"| {' | '.join(head)} |",
            f"|{'---|' * len(head)}",
            _row("**all**", hit),
            *(_row(words, [row for row in hit if row["killed"] == kind]) for kind, words in KINDS.items()),
            *(f"- {row}" for row in rows if row["outcome"] == THIRD),
            "",
        ]
    )


def _count(asked: counted.Count) -> int:
    whole = reference()

    def tell(rows: list[dict]) -> str:
        return f"[chainkills] {len(rows)} trials, {sum(row['outcome'] == THIRD for row in rows)} wrong"

    rows = asked.rows(functools.partial(trial, seed=asked.seed, whole=whole), asked.number, tell, SOURCES)
    asked.publish(table(rows, asked.seed, asked.commit, asked.machine))
    return int(any(row["outcome"] == THIRD for row in rows))


def main(arguments: list[str] | None = None) -> int:
    """Kill, call again, and return 1 if a build came to other bytes, left something, or said no reason."""
    return counted.program("chain-kills", 100, _count, arguments)


if __name__ == "__main__":
    sys.exit(main())
