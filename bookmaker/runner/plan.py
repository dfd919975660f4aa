"""The chain as plain data: which runs a profile asks for, with what, after which others.

for job in jobs(root, "course"):
    print(job.rule, job.needs)
"""

import json
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from bookmaker.runner import _fingerprint, _inputs, _seals, notebooks, profiles
from bookmaker.runner._complete import check_complete
from bookmaker.runner.chain import CHAIN, DPSGD, EPSILON, MAKERS, PRETRAINED, Step, model_name, source
from privhelpers.artifacts import first_difference, parse_json, read_sealed, sha256_of
from privhelpers.errors import DamagedArtifact, InvalidParameter, MissingArtifact
from privhelpers.text import quoted
from privhelpers.validate import non_negative, shown

CURRENT = "up to date"
WAITS = "to run, unless it reads the same: "  # a run before it is to be made
MARK = ".made"
MAPPINGS = ("parameters", "versions", "artifacts", "inputs")  # of a run's record
TEXTS = ("fingerprint", "page")


@dataclass(frozen=True)
class Job:
    """One run of one notebook; every path is relative to the repository.

    Attributes:
        rule: name of the run, `slug` or `slug_model`.
        profile, slug, model: what runs; model is None where the notebook runs once.
        parameters: every parameter of the notebook.
        needs: rules that must be complete before.
        inputs: the sentinels of these and of all that they need in turn, by rule.
        fingerprint: SHA-256 of the notebook's code and of the helpers that it imports.
        threads, priority: see `chain.Step`.
    """

    rule: str
    profile: str
    slug: str
    model: str | None
    parameters: dict[str, Any]
    needs: tuple[str, ...]
    inputs: dict[str, str]
    fingerprint: str
    threads: int
    priority: int

    @property
    def reads(self) -> dict[str, str]:
        """What its record names with a hash: its inputs, and a model that others trained."""
        others = {PRETRAINED: PRETRAINED} if self.parameters.get("start_from") == PRETRAINED else {}
        return self.inputs | others

    @property
    def artifacts(self) -> str:
        """The folder of what the run writes, named as in `artifacts.Store`."""
        return self.slug if self.model is None else f"{self.slug}/{self.model}"

    @property
    def sentinel(self) -> str:
        """The file that exists when the run is complete."""
        return f"runs/{self.profile}/artifacts/{self.artifacts}/{_seals.RECORD}"

    @property
    def mark(self) -> str:
        """What Snakemake takes for the run, see `build`; hidden, so that it is no artifact."""
        return _mark(self.sentinel)

    @property
    def marks_before(self) -> list[str]:
        """The marks of the runs before it."""
        return [_mark(sentinel) for sentinel in self.inputs.values()]

    @property
    def notebook(self) -> str:
        """The executed notebook."""
        return f"runs/{self.profile}/notebooks/{self.artifacts}.ipynb"

    @property
    def log(self) -> str:
        """What the kernel printed."""
        return f"runs/{self.profile}/logs/{self.rule}.log"

    @property
    def failed(self) -> str:
        """Where a failed notebook is kept for reading."""
        return f"runs/{self.profile}/failed/{self.rule}.ipynb"

    @property
    def title(self) -> str:
        """The run in a line of progress."""
        return self.slug if self.model is None else f"{self.slug} {self.model}"


def _mark(sentinel: str) -> str:
    return sentinel.removesuffix(_seals.RECORD) + MARK


def models(profile: profiles.Profile) -> list[str]:
    """Return the names of every model of a profile, non-private ones first, then by budget."""
    return [*MAKERS, *(model_name(epsilon) for epsilon in profile.epsilons)]


def _variants(step: Step, profile: profiles.Profile) -> list[tuple[str | None, dict[str, Any]]]:
    """Return the model and the planned parameters of each run of a step."""
    every = {"profile": profile.name, "models": models(profile)}
    if step.per == "epsilon":
        budgets = {model_name(epsilon): epsilon for epsilon in profile.epsilons}
        return [(m, every | {"model": m, EPSILON: epsilon}) for m, epsilon in budgets.items()]
    if step.per == "model":
        return [(m, every | {"model": m}) for m in models(profile)]
    return [(None, every)]


def _needs(step: Step, model: str | None, before: list[Job]) -> list[Job]:
    """Return the runs that a run waits for."""
    needed = [job for job in before if job.slug in step.after]
    if step.per == "model":
        maker = MAKERS.get(str(model), DPSGD)
        needed += [job for job in before if job.slug == maker]
        needed = [job for job in needed if job.model in (None, model)]
    return list({job.rule: job for job in needed}.values())


def jobs(root: Path, profile_name: str) -> list[Job]:
    """Return every run of a profile, each after those that it needs.

    Args:
        root: the repository.
        profile_name: a file of `params/` without its ending.

    Raises:
        PrivHelpersError: the profile or a notebook is not as it must be; nothing has run.
    """
    profile = profiles.load(root, profile_name)
    plan: list[Job] = []
    helpers = _fingerprint.Helpers(root, profile.name)
    for step in CHAIN:
        code = helpers.fingerprint(source(root, step.slug))
        for model, planned in _variants(step, profile):
            needs, inputs = _needs(step, model, plan), {}
            for other in needs:
                inputs |= other.inputs | {other.rule: other.sentinel}
            job = Job(
                rule=step.slug if model is None else f"{step.slug}_{model}",
                profile=profile.name,
                slug=step.slug,
                model=model,
                parameters=profile.resolve(root, step.slug, **planned),
                needs=tuple(other.rule for other in needs),
                inputs=inputs,
                fingerprint=code,
                threads=step.threads,
                priority=step.priority,
            )
            plan.append(job)
    return plan


def _find(plan: list[Job], rule: str) -> Job:
    """Return the job called `rule`."""
    for job in plan:
        if job.rule == rule:
            return job
    raise InvalidParameter(f"run {shown(rule)}: must be one of {', '.join(job.rule for job in plan)}")


def upto(plan: list[Job], rule: str) -> list[Job]:
    """Return the job called `rule` and every job that it needs, directly or not, in order."""
    wanted = {_find(plan, rule).rule}
    for job in reversed(plan):  # a job stands after all that it needs
        if job.rule in wanted:
            wanted |= set(job.needs)
    return [job for job in plan if job.rule in wanted]


def _check(done: Any, job: Job) -> None:
    """Raise unless a record is that of `job`, and each of its values of the type that a page shows."""
    if [done[key] for key in ("rule", "notebook", "model")] != [job.rule, job.slug, job.model]:
        raise ValueError(f"it is of another run, {done['rule']!r}")
    done.setdefault("inputs", {})  # of a run made before records named what they read: it names nothing
    if wrong := [name for name in MAPPINGS if not isinstance(done[name], dict)]:
        raise TypeError(f"{wrong[0]} must be a table")
    texts = {name: done[name] for name in TEXTS} | done["versions"] | done["artifacts"] | done["inputs"]
    if wrong := [name for name, value in texts.items() if not isinstance(value, str)]:
        raise TypeError(f"{wrong[0]} must be text")
    datetime.fromisoformat(done["started"])
    numbers = {name: done[name] for name in ("seconds", "cpu_seconds", "peak_memory_mib")}
    non_negative(**numbers)


def record(root: Path, job: Job) -> dict[str, Any]:
    """Return what a complete run recorded about itself: when, how long, with what, and the hash of each file.

    Raises:
        MissingArtifact: the run is not complete.
        DamagedArtifact: its record is not as the run wrote it.
    """
    path = root / job.sentinel
    if not path.is_file():
        raise MissingArtifact(
            f"{job.title}: its run is not complete ({job.sentinel} is missing); {_cure(job)}"
        )
    done = parse_json(read_sealed(path, job.sentinel, _seals.MOST_BYTES), job.sentinel)
    try:
        _check(done, job)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DamagedArtifact(f"{job.sentinel}: not the record of a run ({quoted(repr(error))})") from error
    return done


def _cure(job: Job) -> str:
    return f"run `make book PROFILE={job.profile}`"


def damage(root: Path, job: Job) -> str:
    """Return what is not as a complete run left it, its page and its record among that, or ""."""
    try:
        done = record(root, job)
        present = _seals.hashes((root / job.sentinel).parent)
    except DamagedArtifact as error:
        return str(error)
    page = root / job.notebook
    present |= {job.notebook: sha256_of(page)} if page.is_file() else {}
    found = first_difference(done["artifacts"] | {job.notebook: done["page"]}, present)
    return found and f"{found} after the run"


def executed(root: Path, job: Job) -> NotebookNode:
    """Return the notebook of a complete run, as the run left it.

    Raises:
        MissingArtifact: the run is not complete, or its notebook is gone.
        DamagedArtifact: the notebook or the run's record changed afterwards.
        RunFailed: a cell failed or never ran.
    """
    done, path = record(root, job), root / job.notebook
    if not path.is_file():
        raise MissingArtifact(f"{job.title}: {job.notebook} is missing; {_cure(job)}")
    if sha256_of(path) != done["page"]:
        raise DamagedArtifact(f"{job.title}: {job.notebook} changed after the run; {_cure(job)}")
    notebook = notebooks.read(path)
    check_complete(notebook, job.title)
    return notebook


def _outdated(root: Path, job: Job) -> str:
    """Return why a run must be made whatever it reads: it is not complete, or of other code or values; or "".

    Raises:
        DamagedArtifact: its record is not as the run wrote it.
    """
    if not (root / job.sentinel).is_file():
        return "to run"
    done = record(root, job)
    if done["fingerprint"] != job.fingerprint:
        return "to run: its code changed"
    wanted, parameters = _as_json(job.parameters), done["parameters"]
    if changed := sorted(n for n in wanted | parameters if wanted.get(n) != parameters.get(n)):
        return f"to run: changed {', '.join(changed)}"
    return ""


def state(root: Path, job: Job, *, hashed: bool = False, waits_for: str = "") -> str:
    """Return `CURRENT` where a run completed as planned and its files are as it left them, or what is not.

    Args:
        root: the repository.
        job: the run.
        hashed: `damage` was just asked; otherwise every recorded hash is compared with the bytes on disk.
        waits_for: a run before it that is to be made; only afterwards is it known what this one must read.
    """
    if not hashed and (root / job.sentinel).is_file() and (found := damage(root, job)):
        return f"damaged: {found}"
    if why := _outdated(root, job):
        return why
    if waits_for:
        return f"{WAITS}{waits_for} is to run"
    why = _inputs.misread(root, job.reads, record(root, job)["inputs"])
    return f"to run: {why}" if why else CURRENT


def is_current(root: Path, job: Job) -> bool:
    """Return whether `state` finds nothing to say against a run."""
    return state(root, job) == CURRENT


def _as_json(value: dict[str, Any]) -> dict[str, Any]:
    return json.loads(json.dumps(value))
