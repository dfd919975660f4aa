"""`privai-leak`: the audit of a model, its answers, or synthetic texts, and the commands around it.

The options are the fields of `Options`; refusals name them here, as `--records`.
`make audit RECORDS=` passes `--records=`. Everything stays in memory until it is complete: a command that is
killed or refused leaves nothing, and one killed between its last two renames leaves the bundle, which
contains the whole report, without a folder.
"""

import argparse
import functools
import itertools
import os
import re
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, PositiveInt, ValidationError

from privaudit import bundle, canaries, console, demo, gate, kit, prompts, residual
from privaudit.console import guarded, say, terminal
from privaudit.output import publish, require_new_path
from privaudit.rows import columns_of
from privhelpers.artifacts import is_there, parse_json, read_bounded, to_json, write_atomic
from privhelpers.errors import InvalidParameter, MissingArtifact, RunFailed
from privhelpers.text import quoted

HOME = Path("runs", "audits")
ABOUT = """Audit what a language model, its answers, or a synthetic data set give away about the people behind
it. Nothing is fetched, and nothing leaves this machine."""
MAKE = "`make audit` takes the same options as variables: its RECORDS= is --records, its DRY= is --dry-run."
EXIT_CODES = """exit codes:
  0    done; audit: and no condition of --fail-if holds; verify: the bundle holds
  1    the work failed; verify: the bundle does not hold; demo: a verdict is not as it should be
  2    refused: an input or an option cannot be used, and nothing was made
  3    audit: a report was made, and a condition of --fail-if holds; canaries --check: some would never
       reach the loss
  130  interrupted"""
EXAMPLE = "privai-leak audit --model=my-model --records=members.jsonl --holdout=nonmembers.jsonl"
SMALL = 5_000_000  # weights


def _named(name: str) -> str:
    """Return the option of a field; a field whose name pydantic has taken ends with an underscore."""
    return f"--{name.rstrip('_').replace('_', '-')}"


def _existing(text: str) -> str:
    if not is_there(text):
        raise ValueError("there is nothing at that place")
    return text


def _folder(text: str) -> str:
    if not is_there(text):
        raise ValueError(
            "there is nothing at that place, and nothing is downloaded; save a model of the Hugging Face "
            "hub to a folder first: hf download NAME --local-dir folder"
        )
    return text


_Path = Annotated[str, AfterValidator(_existing)]
_Folder = Annotated[str, AfterValidator(_folder)]
_Word = BeforeValidator(lambda text: text.casefold() if isinstance(text, str) else text)
_Limit = Annotated[PositiveInt | Literal["all"], _Word]


class Options(BaseModel, frozen=True):
    """The options of an audit; each field is an option of the same name."""

    model: _Folder | None = Field(
        None, description="a local Hugging Face folder: config.json, safetensors, tokenizer"
    )
    synthetic: _Path | None = Field(
        None, description="instead of a model: the texts of a synthetic data set: text"
    )
    answers: _Path | None = Field(
        None, description="instead of a model: its answers to privai-leak prompts: id, answer"
    )
    budget: PositiveInt | None = Field(
        None, description=f"of these prompts; default {prompts.BUDGET}, as there"
    )
    records: _Path | None = Field(
        None, description="what it was trained on or made from, JSONL, CSV, or Parquet: patient_id, text"
    )
    holdout: _Path | None = Field(None, description="records of other patients, which it never saw")
    canaries: _Path | None = Field(
        None,
        description="a kit, by default the one of --records; or texts made for the audit, some of them "
        "trained on: text, inserted",
    )
    columns: Annotated[dict[str, str], BeforeValidator(columns_of)] | None = Field(
        None, description="the files' names of the columns: 'patient_id=mrn text=note'"
    )
    patients: _Limit | None = Field(
        None, description="most patients of each file, or all; default: as many as take minutes"
    )
    notes: _Limit | None = Field(None, description="most notes of a patient, or all")
    effort: Annotated[Literal["quick", "standard", "thorough"], _Word] | None = Field(
        None,
        description="quick, standard, or thorough: a quarter, all, or four times the usual samples",
    )
    base: _Folder | None = Field(
        None,
        description="if the model or the reference is a LoRA adapter alone: the folder of the base model",
    )
    reference: _Folder | None = Field(
        None, description="a model that saw neither file, such as the one that was fine-tuned"
    )
    epsilon: float | None = Field(
        None,
        description="claimed budget, in nats, for one record added or removed, or for the unit of the "
        "kit; needs canaries",
    )
    delta: float | None = Field(None, description="of the claim")
    out: str | None = Field(
        None, description="new folder for the report; default: runs/audits/<name of the model>"
    )
    pdf: bool = Field(True, description="no: leave out the PDF, which needs Chromium")
    show: bool = Field(
        False,
        description="yes: show in the report what the model wrote; it is then as confidential as the records",
    )
    seed: int = Field(0, ge=0, description="of all randomness, a whole number; default 0")
    bundle: str | None = Field(
        None, description="new file, .zip: the report and its inputs' hashes, for others to verify"
    )
    key: _Path | None = Field(None, description="private Ed25519 key, PEM, to sign the bundle")
    ledger: _Path | None = Field(
        None,
        description="of its private training; the bundle then states the guarantee as your statement",
    )
    dry_run: bool = Field(
        False,
        description="yes, or no value: print what would be done and how long it takes, and make nothing",
    )
    fail_if: Annotated[tuple[gate.Condition, ...], BeforeValidator(gate.read_conditions)] | None = Field(
        None,
        description="exit with code 3 if one of these holds, separated by commas: flagged, undecided, "
        "epsilon-refuted (the canaries refute --epsilon for training with Gaussian noise), or 'auc>0.55' (or "
        "another limit: the first attack, which was fixed before any result, has an area whose "
        "patient-clustered 95%% interval lies above it)",
    )
    json_: str | None = Field(
        None, description="new file for a copy of report.json, or - for standard output"
    )

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments of `Settings.for_model` and `Settings.for_texts` that were given."""
        given = self.model_dump(include={"patients", "notes", "effort", "seed", "epsilon", "delta", "budget"})
        if self.answers:
            given["budget"] = self.budget or prompts.BUDGET
        return {name: None if one == "all" else one for name, one in given.items() if one is not None}


def _refuse_conflicts(options: Options) -> None:
    given = {name for name in Options.model_fields if getattr(options, name)}
    needed = ["model", "records", "holdout"][bool(options.synthetic or options.answers) :]
    missing = [_named(name) for name in needed if name not in given]
    missing = ["--model, --synthetic or --answers" if name == "--model" else name for name in missing]
    unasked = {"model", "synthetic", "base", "reference", "show", "patients", "notes", "effort"}
    unasked = sorted((unasked | {"canaries", "epsilon", "delta"}) & given)
    refusals = {
        f"missing: {', '.join(missing)}; for example: {EXAMPLE}": missing,
        "--synthetic is audited without a model: leave out --model, --base, --reference and --show": (
            options.synthetic and given & {"model", "base", "reference", "show"}
        ),
        f"--answers are audited without a model, so leave out {', '.join(map(_named, unasked))}; --budget "
        "decides how many patients are asked about, and no epsilon can be refuted": options.answers
        and unasked,
        "--budget: is the one of the prompts; give --answers too": options.budget and not options.answers,
        "--epsilon and --delta: a claim can only be tested with canaries; give --canaries=canaries.jsonl "
        "too, or leave the claim out": given & {"epsilon", "delta"} and not options.canaries,
        "--fail-if=epsilon-refuted: there is no claim to refute; give --epsilon, --delta and --canaries": (
            not options.epsilon and gate.Condition(gate.Finding.EPSILON_REFUTED) in (options.fail_if or ())
        ),
        "--key and --ledger: belong to a bundle; name one, --bundle=out.zip": (
            given & {"key", "ledger"} and not options.bundle
        ),
        "--bundle and --show: a bundle is handed on and has no text; leave out one": (
            options.bundle and options.show
        ),
    }
    for told, wrong in refusals.items():
        if wrong:
            raise InvalidParameter(told)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the fields of `Options`; an empty one counts as not given, because make passes all of them."""
    for name, field in Options.model_fields.items():
        alone = {"nargs": "?", "const": "yes"} if field.annotation is bool else {}
        form = {"dest": name, "metavar": name.rstrip("_").upper(), "default": "", **alone}
        parser.add_argument(_named(name), help=field.description, **form)


def read_options(given: argparse.Namespace) -> Options:
    """Return the checked options of a parsed command line.

    Raises:
        InvalidParameter: one is missing, is invalid, conflicts with another, or names a missing file.
    """
    values = {name: getattr(given, name) for name in Options.model_fields if getattr(given, name)}
    if "records" in values and (folder := kit.kit_of(values["records"])):
        values.setdefault("canaries", str(folder))
    try:
        options = Options(**values)
    except ValidationError as error:
        first = error.errors()[0]
        name, told = str(first["loc"][0]), first["msg"].removeprefix("Value error, ")
        raise InvalidParameter(f"{_named(name)}={quoted(values[name])}: {told}") from None
    _refuse_conflicts(options)
    return options


def _report_path(root: Path, options: Options) -> Path:
    """Return the new folder of the report.

    Raises:
        InvalidParameter: it exists, or cannot be written to.
    """
    if options.out:
        return require_new_path("--out", options.out)
    others = Path(options.synthetic or options.answers or "").stem
    name = Path(options.model).resolve().name if options.model else others
    stem = re.sub(r"[^a-z0-9_.-]", "-", name.lower()).strip("-._")[:50] or "model"
    names = itertools.chain([stem], (f"{stem}-{number}" for number in itertools.count(2)))
    free = next(place for one in names if not os.path.lexists(place := root / HOME / one))
    return require_new_path("--out", free)


def _ledger(given: str) -> bytes:
    """Return the bytes of a ledger; refuse one that is damaged or states no guarantee."""
    try:
        data = read_bounded(Path(given), bundle.MOST)
    except OSError as error:
        raise MissingArtifact(f"--ledger={quoted(given)}: cannot be read ({error.strerror})") from None
    bundle.guarantee(data, quoted(Path(given).name))
    return data


def _copy(report: bytes, to: str) -> None:
    """Write a report to a new file, or to standard output if `to` is `-`."""
    try:
        if to == "-":
            with open(sys.stdout.fileno(), "wb", closefd=False) as out:
                out.write(report)
        else:
            write_atomic(Path(to), report, new=True)
    except OSError as error:
        raise RunFailed(
            f"--json={quoted(to)}: could not be written ({error.strerror}); the report's folder is complete"
        ) from None


def _judge(conditions: Sequence[gate.Condition], folder: Path) -> int:
    """Return the exit code for a finished audit, and say which conditions its report meets."""
    facts = parse_json((folder / bundle.REPORT).read_bytes(), bundle.REPORT)
    met = [str(one) for one in conditions if one.holds(facts)]
    if conditions:
        _told(f"--fail-if holds: {', '.join(met) or 'none of its conditions'}")
    return gate.FAILED if met else 0


_told = functools.partial(say, "audit")


def _bases(options: Options) -> dict[str, str | None]:
    """Return "model" and, if given, "reference", each with the base that it needs, if any.

    A base that neither needs goes to the model, which refuses it.
    """
    from privaudit.loading import is_adapter

    named = [name for name in ("model", "reference") if getattr(options, name)]
    adapters = [name for name in named if is_adapter(getattr(options, name))] or ["model"]
    return {name: options.base if name in adapters else None for name in named}


def open_parts(options: Options) -> dict[str, Any]:
    """Return the arguments of `run_audit`: files, settings, and the models if one is audited."""
    import privaudit

    files = privaudit.read_files(
        options.records,
        options.holdout,
        options.canaries,
        synthetic=options.synthetic,
        columns=options.columns,
    )
    sides = (files.members, files.heldout)
    _told("; ".join(f"{file.name}: {len(file.patients):,} patients" for file in sides))
    if not options.model:
        settings = privaudit.Settings.for_texts(**options.settings)
        parts = {"files": files, "settings": settings}
        if options.answers:
            plan = privaudit.plan_questions(files, settings)
            parts["answers"] = privaudit.read_answers(options.answers, plan, options.columns)
        return parts
    import torch  # late: it takes longer to load than a hundred thousand records

    opened = {
        name: privaudit.open_model(getattr(options, name), base=base)
        for name, base in _bases(options).items()
    }
    target = opened["model"]
    if target.parameters < SMALL:  # more threads are slower
        torch.set_num_threads(1)
    _told(f"{target.name}: {target.kind}, {target.parameters:,} weights")
    settings = privaudit.Settings.for_model(target, **options.settings)
    return {"files": files, "settings": settings, "target": target, "reference": opened.get("reference")}


def run(root: Path, options: Options) -> Path | None:
    """Audit what the options name, and return the folder of the report; None after a dry run.

    Raises:
        PrivHelpersError: an input is refused, before the long work begins.
    """
    clock = time.monotonic()
    ledger = _ledger(options.ledger) if options.ledger else None
    evidence_file = require_new_path("--bundle", options.bundle) if options.bundle else None
    key = bundle.private_key(options.key or "")
    place = _report_path(root, options)
    if options.json_ not in (None, "-"):
        require_new_path("--json", options.json_)
    if evidence_file:
        inner, outer = evidence_file.resolve(), place.resolve()
        if inner.is_relative_to(outer) or outer.is_relative_to(inner):
            raise InvalidParameter("--bundle and --out: neither can be inside the other; name another file")
    os.environ.update({"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"})

    import privaudit

    privaudit.Settings.for_texts(**options.settings)  # refuses an invalid claim before the files are read
    if options.pdf:
        console.require_chromium("makes the PDF", "or leave out the PDF: --pdf=no")
    parts = open_parts(options)
    if options.dry_run:
        made = " and ".join(filter(None, [f"{place}/report.html", options.bundle]))
        _told(privaudit.dry_run(**parts))
        _told(f"then {made} would be made")
        _told("nothing was made: this was a dry run")
        return None
    audit = privaudit.run_audit(**parts, progress=terminal() is not None, notify=_told)
    facts = privaudit.report_facts(audit, made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC")
    pictures = privaudit.audit_pictures(audit)
    page = privaudit.report_page(facts, pictures, written=audit if options.show else None)
    made = {"report.html": page.encode(), bundle.REPORT: to_json(facts)}
    made["report.schema.json"] = privaudit.report_schema()
    if options.pdf:
        made["report.pdf"] = console.print_pdf(page, "the report")
    if evidence_file:
        evidence = bundle.make(bundle.of_audit(made, pictures.values(), ledger), key)
        write_atomic(evidence_file, evidence, new=True)
    try:
        # Another audit may have taken the default folder by now.
        place = publish(place if options.out else _report_path(root, options), made)
    except BaseException:
        if evidence_file:
            evidence_file.unlink(missing_ok=True)
        raise
    if options.json_:
        _copy(made[bundle.REPORT], options.json_)
    _told(f"{audit.verdict.outcome}: {facts['reasons'][0]}")
    _told(facts["coverage"]["sentence"])
    if evidence_file:
        _told(f"evidence: {options.bundle}, SHA-256 {bundle.sha256(evidence)}")
        if options.ledger:
            _told(f"the guarantee of {quoted(Path(options.ledger).name)}: {bundle.WORDS['user_ledger']}")
    written = place.relative_to(root) if place.is_relative_to(root) else place
    _told(f"complete in {time.monotonic() - clock:.0f} s: {written}/report.html")
    return place


def _parser() -> argparse.ArgumentParser:
    form = {"epilog": f"{EXIT_CODES}\n\n{MAKE}", "formatter_class": argparse.RawDescriptionHelpFormatter}
    parser = argparse.ArgumentParser(prog="privai-leak", description=ABOUT, **form)
    commands = parser.add_subparsers(dest="command", required=True)
    audit = commands.add_parser("audit", help="audit a model, its answers, or a synthetic data set", **form)
    add_options(audit)
    canaries.add_parser(commands)
    prompts.add_parser(commands)
    verify = commands.add_parser("verify", help="print in one line whether an evidence bundle holds", **form)
    verify.add_argument("bundle", help="the file, .zip")
    verify.add_argument("--key", default="", help="public Ed25519 key, PEM, that must have signed it")
    demo.add_parser(commands, **form)
    residual.add_parser(commands, **form)
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run one command in the current folder, and return its exit code."""

    def call() -> int:
        given = _parser().parse_args(arguments)
        if given.command == "verify":
            return 0 if bundle.verify(given.bundle, given.key) else 1
        if given.command == "demo":
            return demo.run(lambda **options: run(Path.cwd(), Options(**options)))
        if given.command == "residual":
            return residual.run(given)
        if given.command == "prompts":
            return prompts.run(given)
        if given.command == "canaries":
            return canaries.run(given)
        options = read_options(given)
        folder = run(Path.cwd(), options)
        return _judge(options.fail_if or (), folder) if folder else 0

    return guarded(call)


if __name__ == "__main__":
    sys.exit(main())
