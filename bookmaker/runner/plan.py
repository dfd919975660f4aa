"""The chain as plain data: which runs a profile asks for, after which others, and what each recorded.

for job in jobs(root, "course"):
    print(job.rule, job.needs, stale(root, job))

Snakemake decides what is made again, by two files of each run. Its mark is what its rule makes, and what the
rules after it need; it holds a hash of the run's results. Its note says what the run follows from, code and
parameters, and is written only where that changes. What the run was is in its record, `run.json`.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from nbformat import NotebookNode

from bookmaker.runner import files, fingerprint, kept, notebooks, profiles
from bookmaker.runner.chain import (
    ALONE,
    CHAIN,
    CHAPTER_MODEL,
    DEFAULT_PROFILES,
    DPSGD,
    EPSILON,
    FOUNDATIONS,
    MAKERS,
    PRETRAINED,
    Step,
    model_name,
    source,
)
from bookmaker.runner.fingerprint import RECORD
from bookmaker.runner.kept import Kept
from privaudit.console import counted
from privhelpers.artifacts import (
    SEAL,
    Store,
    first_difference,
    parse_json,
    read_sealed,
    sha256_of,
    to_json,
    write_atomic,
    write_sealed,
)
from privhelpers.errors import DamagedArtifact, InvalidParameter, MissingArtifact
from privhelpers.validate import shown

MARK = ".made"


@dataclass(frozen=True)
class Job:
    """One run of one notebook; every path is relative to the repository.

    Attributes:
        rule: name of the run, `slug` or `slug_model`.
        profile, slug, model: what runs; model is None where the notebook runs once.
        parameters: every parameter of the notebook.
        needs: rules that must be complete before.
        inputs: the marks of these and of all that they need in turn, by rule.
        fingerprint: SHA-256 of the notebook's code, of the helpers that it imports, and of the pretrained
            model, if it starts from that.
        priority, seconds: see `chain.Step`.
        kept: the run that is shown in place of one, which then waits for nothing; else None.
        older: whether that run was made by other code than today's.
    """

    rule: str
    profile: str
    slug: str
    model: str | None
    parameters: dict[str, Any]
    needs: tuple[str, ...]
    inputs: dict[str, str]
    fingerprint: str
    priority: int
    seconds: int
    kept: Kept | None = None
    older: bool = False

    @property
    def is_default(self) -> bool:
        """Whether the prose of the chapter describes this run."""
        per = next(step.per for step in CHAIN if step.slug == self.slug)
        same = self.profile in DEFAULT_PROFILES and self.model == CHAPTER_MODEL.get(per)
        return same and self.parameters.get("seed", 0) == 0

    @property
    def artifacts(self) -> str:
        """The folder of what the run writes, named as in `artifacts.Store`."""
        return self.slug if self.model is None else f"{self.slug}/{self.model}"

    @property
    def sentinel(self) -> str:
        """The record, which exists when the run is complete."""
        return f"runs/{self.profile}/artifacts/{self.artifacts}/{RECORD}"

    @property
    def mark(self) -> str:
        """What the run's rule makes; hidden, so that it does not count as an artifact."""
        return f"runs/{self.profile}/artifacts/{self.artifacts}/{MARK}"

    @property
    def note(self) -> str:
        """What the run follows from, apart from the results of others."""
        return f"runs/{self.profile}/.notes/{self.rule}.json"

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
        """The place of a failed notebook, kept for reading."""
        return f"runs/{self.profile}/failed/{self.rule}.ipynb"

    @property
    def title(self) -> str:
        """The run in a line of progress."""
        return self.slug if self.model is None else f"{self.slug} {self.model}"


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


def jobs(root: Path, profile_name: str, *, only: Collection[str] = ()) -> list[Job]:
    """Return every run of a profile, each after those that it needs; what fits is taken from kept runs.

    Args:
        root: the repository.
        profile_name: a file of `params/` without its ending.
        only: runs; the fingerprints of other chapters are then left empty, since they take most of the time.

    Raises:
        PrivHelpersError: the profile or a notebook is not as it must be; nothing has run.
    """
    profile = profiles.load(root, profile_name)
    plan: list[Job] = []
    trained: dict[str, dict[str, Any]] = {}
    helpers = fingerprint.Helpers(root)
    pretrained = [seal.read_text() for seal in sorted((root / PRETRAINED).rglob(f"*{SEAL}"))]
    for step in CHAIN:
        notebook = source(root, step.slug)
        asked = not only or any(rule.startswith(step.slug) for rule in only)
        code = helpers.fingerprint(notebook, profile.name) if asked else ""
        for model, planned in _variants(step, profile):
            needs, inputs = _needs(step, model, plan), {}
            for other in needs:
                inputs |= other.inputs | {other.rule: other.mark}
            parameters = profile.resolve(root, step.slug, **planned)
            starts = parameters.get("start_from") == PRETRAINED
            job = Job(
                rule=step.slug if model is None else f"{step.slug}_{model}",
                profile=profile.name,
                slug=step.slug,
                model=model,
                parameters=parameters,
                needs=tuple(other.rule for other in needs),
                inputs=inputs,
                fingerprint=fingerprint.digest([code, pretrained]) if starts else code,
                priority=step.priority,
                seconds=step.seconds,
            )
            if step.slug in kept.TRAINED:
                trained[job.rule] = kept.settings_of(parameters)
            found = kept.find(root, job.artifacts) if job.rule in profile.kept else None
            if found and kept.fits(found, parameters, trained):
                taken = _from_kept(job, found, helpers.fingerprint(notebook, kept.STUDY))
                # Other models meet the same chapter live: what was made with other code or values is no
                # match for them.
                alike = kept.settings_of(found.record["parameters"]) == kept.settings_of(parameters)
                job = taken if model is None or (alike and not taken.older) else job
            plan.append(job)
    return plan


def _from_kept(job: Job, found: Kept, code: str) -> Job:
    """Return the job that takes a kept run; `code` is the fingerprint that a run of `study` would have."""
    return replace(
        job,
        parameters=found.record["parameters"],
        needs=(),
        inputs={},
        fingerprint=fingerprint.digest([found.record, found.about]),
        seconds=0,
        kept=found,
        older=found.record["fingerprint"] != code,
    )


def other_notes(root: Path, plan: list[Job]) -> str:
    """Return why kept runs cannot be shown with the notes that a plan's own run made, or "".

    Raises:
        MissingArtifact: there are no notes yet.
    """
    jobs = [job for job in plan if job.kept]
    store = Store(root / "runs" / plan[0].profile / "artifacts", plan[0].profile)
    now = kept.notes_of(store) if jobs else {}
    if all(job.kept.about.get(name) == digest for job in jobs for name, digest in now.items()):
        return ""
    return (
        f"the notes are not those that the kept runs of profile {kept.STUDY} read, and "
        f"{counted(len(jobs), 'run', 'runs')} would show other patients; "
        f"`make book PROFILE={kept.STUDY}` and then `python -m bookmaker reference --profile {kept.STUDY}` "
        f"keep runs on these notes, and `kept: []` in params/{plan[0].profile}.yml runs all chapters live"
    )


def together(plan: list[Job], *, apart: bool = False) -> dict[str, list[Job]]:
    """Return the jobs by the name of the rule that makes them: some short ones are made by one.

    These are runs of a chapter on several models, and the chapters that read no other run. They share a
    kernel: the packages, which take longer to load than a small run takes, load once.

    Args:
        plan: jobs of one profile.
        apart: a rule for each job, as on a cluster, where they run side by side.
    """
    shared = {step.slug: step.slug for step in CHAIN if step.per == "model"}
    shared |= dict.fromkeys(FOUNDATIONS, "foundations") | dict.fromkeys(ALONE, "alone")
    rules: dict[str, list[Job]] = {}
    for job in plan:
        name = job.rule if apart or job.kept else shared.get(job.slug, job.rule)
        rules.setdefault(name, []).append(job)
    return rules


def upto(plan: list[Job], rule: str) -> list[Job]:
    """Return the job called `rule` and every job that it needs, directly or not, in order.

    Raises:
        InvalidParameter: there is no such run.
    """
    if rule not in (rules := [job.rule for job in plan]):
        raise InvalidParameter(f"run {shown(rule)}: must be one of {', '.join(rules)}")
    wanted = {rule}
    for job in reversed(plan):  # a job stands after all that it needs
        if job.rule in wanted:
            wanted |= set(job.needs)
    return [job for job in plan if job.rule in wanted]


def write_if_new(path: Path, data: bytes) -> None:
    """Write a file unless it says the same already: only then is it newer than what follows from it."""
    if not path.is_file() or path.read_bytes() != data:
        write_atomic(path, data)


def note(root: Path, job: Job) -> None:
    """Write down what a run follows from, apart from the results of others."""
    write_if_new(root / job.note, to_json({"fingerprint": job.fingerprint, "parameters": job.parameters}))


def restore(root: Path, job: Job) -> None:
    """Let a kept run take the place of the run of a job that has `kept`: page, artifacts, record, and mark.

    Raises:
        DamagedArtifact: a file is not as it was kept.
    """
    folder = (root / job.sentinel).parent
    for place in (root / job.sentinel, folder, root / job.notebook):
        files.remove(place)
    kept.copy(root, job.kept, folder, root / job.notebook)
    facts = {"fingerprint": job.fingerprint, "inputs": {}, "kept": job.kept.source}
    write_sealed(root / job.sentinel, to_json(job.kept.record | facts))
    mark(root, job, job.kept.record["artifacts"])


def mark(root: Path, job: Job, artifacts: dict[str, str]) -> None:
    """Say that a run is complete, by a hash of its results alone: not of when, and how fast, it was made."""
    write_atomic(root / job.mark, f"{fingerprint.digest(artifacts)}\n".encode())


def reads(root: Path, job: Job) -> dict[str, str]:
    """Return a hash of the results of each complete run that a run may read, by rule."""
    marks = {rule: root / mark for rule, mark in job.inputs.items()}
    return {rule: path.read_text().strip() for rule, path in marks.items() if path.is_file()}


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
    done = parse_json(read_sealed(path, job.sentinel, files.MOST_BYTES), job.sentinel)
    if not isinstance(done, dict) or done.get("rule") != job.rule:
        raise DamagedArtifact(f"{job.sentinel}: must be the record of {job.rule}")
    return done


def _cure(job: Job) -> str:
    return f"run `make book PROFILE={job.profile}`"


def damage(root: Path, job: Job) -> str:
    """Return what is not as a complete run left it, its page and its record among that, or ""."""
    page = root / job.notebook
    try:
        done = record(root, job)
        present = files.hashes((root / job.sentinel).parent, RECORD)
    except (DamagedArtifact, MissingArtifact) as error:
        return str(error)
    present |= {job.notebook: sha256_of(page)} if page.is_file() else {}
    found = first_difference(done["artifacts"] | {job.notebook: done["page"]}, present)
    return found and f"{found} after the run"


def stale(root: Path, job: Job) -> str:
    """Return why a run must be made, or "" where it is complete, as it was left, and of what is there now."""
    if not (root / job.sentinel).is_file():
        return "to run"
    if wrong := damage(root, job):
        return f"damaged: {wrong}"
    done, wanted = record(root, job), json.loads(json.dumps(job.parameters))
    if done["fingerprint"] != job.fingerprint:
        return "to run: its code changed"
    given = done["parameters"]
    if changed := sorted(n for n in wanted | given if wanted.get(n) != given.get(n)):
        return f"to run: changed {', '.join(changed)}"
    now = reads(root, job)
    if other := next((rule for rule in job.inputs if done["inputs"].get(rule) != now.get(rule)), ""):
        return f"to run: it read other results of {other}"
    return ""


def executed(root: Path, job: Job) -> NotebookNode:
    """Return the notebook of a complete run, as the run left it.

    Raises:
        MissingArtifact: the run is not complete.
        DamagedArtifact: the notebook is gone, or it or the run's record changed afterwards.
        RunFailed: a cell failed or never ran.
    """
    done, path = record(root, job), root / job.notebook
    if not path.is_file() or sha256_of(path) != done["page"]:
        raise DamagedArtifact(f"{job.title}: {job.notebook} changed after the run, or is gone; {_cure(job)}")
    notebook = notebooks.read(path)
    notebooks.check_complete(notebook, job.title)
    return notebook
