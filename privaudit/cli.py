"""`privai-leak`: the audit of a user's model or synthetic texts, and the verification of its evidence.

The options are the fields of `Options`; whatever is refused because of one is worded here, as `--records`.
`make audit RECORDS=` calls the same with `--records=`. Everything is held in memory until it is complete: a
command that is killed, or refused, leaves nothing. One that is killed between its last two renames leaves
the bundle, which holds the whole report, without a folder.
"""

import argparse
import errno
import os
import re
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from privaudit import browser, bundle
from privaudit.console import guarded, say, terminal
from privaudit.records import FIELDS
from privhelpers.artifacts import NAME, check_name, is_there, read_bounded, to_json, write_atomic
from privhelpers.errors import InvalidParameter, MissingArtifact, RunFailed
from privhelpers.text import inert

HOME = Path("runs", "audits")
ABOUT = """Audit what a language model, or a synthetic data set, gives away about the people behind it.
Nothing is fetched, and nothing leaves this machine."""
MAKE = "`make audit` takes the same options as variables: its RECORDS= is --records, its DRY= is --dry-run."
EXIT_CODES = """exit codes:
  0    audit: a report was made, whatever it says; verify: the bundle holds
  1    audit: the work failed; verify: the bundle does not hold
  2    refused: something given cannot be used, and nothing was made
  130  interrupted"""
EXAMPLE = "privai-leak audit --model=my-model --records=members.jsonl --holdout=nonmembers.jsonl"
ALL = "all"
HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
PART = ".part-audit-"  # folders that are being written
SMALL = 5_000_000  # weights
YES, NO = ("yes", "1", "true"), ("no", "0", "false")


def _shown(text: str) -> str:
    """Return what was given as a message shows it: short, and every character visible."""
    return inert(text if len(text) <= 100 else f"{text[:97]}...")


def _named(name: str) -> str:
    """Return the option of a field."""
    return f"--{name.replace('_', '-')}"


# How an option is read: what is returned is its value, and what is raised says why there is none.


def _existing(text: str) -> str:
    if is_there(text):
        return text
    raise MissingArtifact("there is nothing at that place")


def _folder(text: str) -> str:
    if not is_there(text) and HUB_NAME.fullmatch(text):
        raise MissingArtifact(
            "there is nothing at that place; nothing is fetched: if this is a name of the Hugging Face hub, "
            f"save it to a folder first (hf download {text} --local-dir folder), and name the folder"
        )
    return _existing(text)


def _number(text: str, kind: Callable[[str], float] = float) -> float:
    try:
        return kind(text)
    except ValueError:
        raise InvalidParameter("must be a number") from None


def _seed(text: str) -> int:
    seed = _number(text, int)
    if seed < 0:
        raise InvalidParameter("must be a whole number of 0 or more")
    return seed


def _limit(text: str) -> int | str:
    if text.casefold() == ALL:
        return ALL
    limit = _number(text, int)
    if limit < 1:
        raise InvalidParameter("must be a whole number of 1 or more, or all")
    return limit


def _columns(text: str) -> dict[str, str]:
    if text.isdigit():  # the width that a shell says of its window
        return {}
    try:
        pairs = [word.split("=", 1) for word in shlex.split(text)]
        columns = dict(pairs)
    except ValueError:
        raise InvalidParameter(
            "must be pairs such as 'patient_id=mrn text=note', names with blanks in quotes"
        ) from None
    if strange := sorted(set(columns) - set(FIELDS)):
        raise InvalidParameter(f"{_shown(strange[0])} is no field; the fields are {', '.join(FIELDS)}")
    if len(columns) < len(pairs) or len(set(columns.values())) < len(pairs) or not all(columns.values()):
        raise InvalidParameter("each field, and each column, can be named once")
    return columns


def _flag(text: str) -> bool:
    if text.casefold() not in (*YES, *NO):
        raise InvalidParameter("must be yes or no")
    return text.casefold() in YES


def _option(told: str, read: Callable[[str], Any] = str, default: Any = None) -> Any:
    """Return a field of `Options`: its help, how its text is read, and its value where none is given."""
    return field(default=default, metadata={"help": told, "read": read})


@dataclass(frozen=True)
class Options:
    """Everything that an audit is asked for; each field is an option of the same name."""

    model: str | None = _option("a local Hugging Face folder: config.json, safetensors, tokenizer", _folder)
    synthetic: str | None = _option("in place of a model: the texts of a synthetic data set: text", _existing)
    records: str | None = _option(
        "what it was trained on or made from, JSONL, CSV or Parquet: patient_id, text", _existing
    )
    holdout: str | None = _option("what it never saw, of other patients", _existing)
    canaries: str | None = _option("texts made for the audit: text, inserted", _existing)
    columns: Mapping[str, str] | None = _option(
        "what the files call these: 'patient_id=mrn text=note'", _columns
    )
    patients: int | str | None = _option(
        "asked about of each file, at most, or all; default: what can be asked in minutes", _limit
    )
    notes: int | str | None = _option("of a patient that are asked about, at most, or all", _limit)
    effort: str | None = _option(
        "quick, standard or thorough: a quarter, or four times, of the usual patients and texts", str.casefold
    )
    base: str | None = _option(
        "if the model or the reference is a LoRA adapter alone: the folder of the model it was trained on",
        _folder,
    )
    reference: str | None = _option(
        "a model folder that saw neither file, such as the one trained further", _folder
    )
    epsilon: float | None = _option(
        "claimed budget, in nats, for one record more or less; needs canaries to be tested", _number
    )
    delta: float | None = _option("of the claim", _number)
    out: str | None = _option("new folder for the reports; default: runs/audits/<name of the model>")
    pdf: bool = _option("no: leave out the PDF, which needs Chromium", _flag, True)
    show: bool = _option(
        "yes: let the report show what the model wrote; it is then as confidential as the records",
        _flag,
        False,
    )
    seed: int = _option("of everything drawn, a whole number; default 0", _seed, 0)
    bundle: str | None = _option("new file, .zip: the report with what it was made of, for others to verify")
    key: str | None = _option("private Ed25519 key, PEM, that signs the bundle", _existing)
    ledger: str | None = _option(
        "said to be of the model's private training; the bundle then states its guarantee as your word",
        _existing,
    )
    dry_run: bool = _option(
        "yes, or nothing: say what would be done and for how long, and make nothing", _flag, False
    )

    def __post_init__(self) -> None:
        """Refuse options that do not go together."""
        if self.synthetic:
            for name in ("model", "base", "reference", "show"):
                if getattr(self, name):
                    raise InvalidParameter(
                        f"--synthetic and {_named(name)}: texts are audited without a model; leave out one "
                        "of them"
                    )
        if (self.epsilon, self.delta) != (None, None) and not self.canaries:
            raise InvalidParameter(
                "--epsilon and --delta: a claim can only be tested with canaries; give "
                "--canaries=canaries.jsonl too, or leave the claim out"
            )
        for name in ("key", "ledger"):
            if getattr(self, name) and not self.bundle:
                raise InvalidParameter(f"{_named(name)}: belongs to a bundle; name one, --bundle=out.zip")
        if self.bundle and self.show:
            raise InvalidParameter(
                "--bundle and --show: a bundle is handed on and holds no text; leave out one"
            )

    @property
    def settings(self) -> dict[str, Any]:
        """The arguments of `Settings.for_model` and `Settings.for_texts` that were given."""
        limits = {name: getattr(self, name) for name in ("patients", "notes")}
        given = {name: None if limit == ALL else limit for name, limit in limits.items() if limit is not None}
        if self.effort:
            given["effort"] = self.effort
        return given | {"seed": self.seed, "epsilon": self.epsilon, "delta": self.delta}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the fields of `Options`; an empty one, as make passes what nobody gave, counts as not given."""
    for one in fields(Options):
        alone = {"nargs": "?", "const": YES[0]} if one.metadata["read"] is _flag else {}
        parser.add_argument(_named(one.name), default="", help=one.metadata["help"], **alone)


def read_options(given: argparse.Namespace) -> Options:
    """Return the options that a parser with `add_options` made of a command line.

    Raises:
        InvalidParameter: one is missing, invalid, or does not go with another.
        MissingArtifact: a file or folder does not exist.
    """
    needed = {"records": "--records=members.jsonl", "holdout": "--holdout=nonmembers.jsonl"}
    if not given.synthetic:
        needed = {"model": "--model=folder or --synthetic=notes.jsonl"} | needed
    if missing := [told for name, told in needed.items() if not getattr(given, name)]:
        raise InvalidParameter(f"missing: {', '.join(missing)}; for example: {EXAMPLE}")
    values = {}
    for one in fields(Options):
        if text := getattr(given, one.name):
            try:
                values[one.name] = one.metadata["read"](text)
            except (InvalidParameter, MissingArtifact) as error:
                raise type(error)(f"{_named(one.name)}={_shown(text)}: {error}") from None
    return Options(**values)


def _can_be_made(place: Path) -> bool:
    """Return whether this process may make a file or folder at a place where there is none."""
    try:
        above = next(folder for folder in place.absolute().parents if folder.exists())
    except OSError:  # a folder above it cannot be looked into
        return False
    return above.is_dir() and os.access(above, os.W_OK | os.X_OK)


def require_new_path(option: str, given: str) -> Path:
    """Return a place that is free and can be made.

    Raises:
        InvalidParameter: it is not, or cannot.
    """
    place, told = Path(given), f"{option}={given}"
    if not given.isprintable():
        raise InvalidParameter(f"{option}={given!r}: holds a character that no name should; name another one")
    try:
        place.lstat()
        taken = True
    except FileNotFoundError:
        taken = False
    except OSError as error:
        raise InvalidParameter(f"{told}: cannot be made ({error.strerror}); name another one") from None
    if taken:
        raise InvalidParameter(f"{told}: is there already; name a new one, an old report is kept as it is")
    if not _can_be_made(place):
        raise InvalidParameter(f"{told}: its folder cannot be written to; name another one")
    return place


def _report_paths(root: Path, out: str | None, model: Path) -> list[Path]:
    """Return the folders that the reports may become, in the order of preference; none exists yet.

    Raises:
        InvalidParameter: the one that was asked for by name does, or can be none; or none was, and the usual
            folder cannot be written to.
    """
    if out:
        return [require_new_path("--out", out)]
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "_.-") else "-" for c in model.resolve().name)
    stem = plain.lower().strip("-._")[:50]
    stem = check_name(stem) if NAME.fullmatch(stem) else "model"
    if not _can_be_made(root / HOME / "new"):
        raise InvalidParameter(
            f"{_shown(str(root / HOME))}: the reports would go there, and it cannot be written to; name "
            "another folder, --out=..., or let this user write to that one"
        )
    names = [stem, *(f"{stem}-{number}" for number in range(2, 10_000))]
    return [place for name in names if not os.path.lexists(place := root / HOME / name)]


def _refuse_one_in_the_other(out: Path, bundle: Path | None) -> None:
    """Refuse a bundle that the reports leave no room for, at their place, in their folder or above it."""
    if bundle is None:
        return
    inner, outer = bundle.resolve(), out.resolve()
    if inner.is_relative_to(outer) or outer.is_relative_to(inner):
        raise InvalidParameter(
            f"--bundle={_shown(str(bundle))}: the reports go to {_shown(str(out))}, and neither can lie in "
            "the other; name another file"
        )


def publish(places: Sequence[Path], files: dict[str, bytes]) -> Path:
    """Put a folder of files in the first free one of some places, in one step; return that place.

    Args:
        places: folders of one parent, in the order of preference. One that holds files by now is left alone.
        files: contents by name.

    Raises:
        RunFailed: none is free, or there is no room.
    """
    home = places[0].parent
    try:
        home.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=home, prefix=PART, ignore_cleanup_errors=True) as part:
            return _moved(Path(part), places, files)
    except OSError as error:
        raise RunFailed(
            f"{places[0]}: could not be written ({error.strerror}); is there room, or is it taken?"
        ) from None


def _moved(part: Path, places: Sequence[Path], files: dict[str, bytes]) -> Path:
    """Write files to a folder, move it to the first place that is free, and return that place."""
    for name, data in files.items():
        write_atomic(part / name, data)
    part.chmod(0o755)
    for place in places:
        try:
            return part.rename(place)  # onto a folder that holds files it fails: nothing is overwritten
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
                raise
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST))


def _ledger(given: str) -> bytes:
    """Return a ledger, refused before the work if it is damaged or states no guarantee; it is read once."""
    try:
        data = read_bounded(Path(given), bundle.MOST)
    except OSError as error:
        raise MissingArtifact(f"--ledger={_shown(given)}: cannot be read ({error.strerror})") from None
    bundle.guarantee(data, _shown(Path(given).name))
    return data


def _pdf(page: str) -> bytes:
    """Return a page that needs nothing but itself as a PDF; Chromium may fetch nothing and run nothing."""

    def fill(tab: Any) -> None:
        tab.context.set_default_timeout(60_000)
        tab.set_content(page, wait_until="load")

    return browser.print_pdf(fill, "the report", offline=True, java_script_enabled=False)


def _told(text: str) -> None:
    say("audit", text)


def _bars() -> bool:
    return terminal() is not None


def _bases(options: Options) -> dict[str, str | None]:
    """Return "model" and, if there is one, "reference", each with the base that it needs, if any.

    A base that neither needs is the model's, so that it is refused.
    """
    import privaudit

    named = [name for name in ("model", "reference") if getattr(options, name)]
    adapters = [name for name in named if privaudit.is_adapter(getattr(options, name))] or ["model"]
    return {name: options.base if name in adapters else None for name in named}


def open_parts(options: Options) -> dict[str, Any]:
    """Return what an audit is made of: files, settings, and the models where one is audited."""
    import privaudit

    # What is certain, then the files, then torch, which takes longer to load than a hundred thousand records.
    bases = {} if options.synthetic else _bases(options)
    for name, base in bases.items():
        privaudit.find_model(getattr(options, name), base)
    files = privaudit.read_files(
        options.records,
        options.holdout,
        options.canaries,
        synthetic=options.synthetic,
        columns=options.columns,
    )
    sides = (files.members, files.heldout)
    _told("; ".join(f"{file.name}: {len(file.patients):,} patients" for file in sides))
    if options.synthetic:
        return {"files": files, "settings": privaudit.Settings.for_texts(**options.settings)}
    import torch

    opened = {name: privaudit.open_model(getattr(options, name), base=base) for name, base in bases.items()}
    target = opened["model"]
    if target.parameters < SMALL:  # threads that wait for each other cost more than they save
        torch.set_num_threads(1)
    _told(f"{target.name}: {target.kind}, {target.parameters:,} weights")
    settings = privaudit.Settings.for_model(target, **options.settings)
    return {"files": files, "settings": settings, "target": target, "reference": opened.get("reference")}


def run(root: Path, options: Options) -> Path | None:
    """Audit a model, or synthetic texts, and return the folder of the reports; None where it was only tried.

    Raises:
        PrivHelpersError: something that was given is refused, before the long work begins.
    """
    clock = time.monotonic()
    if not __debug__:
        raise InvalidParameter(
            "PYTHONOPTIMIZE, or python -O: leaves out what libraries that open a model rest on; start again "
            "without it"
        )
    ledger = _ledger(options.ledger) if options.ledger else None
    evidence_file = require_new_path("--bundle", options.bundle) if options.bundle else None
    key = bundle.private_key(options.key or "")
    places = _report_paths(root, options.out, Path(options.model or Path(options.synthetic).stem))
    _refuse_one_in_the_other(places[0], evidence_file)
    os.environ.update({"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"})

    import privaudit

    privaudit.Settings.for_texts(**options.settings)  # an invalid claim or effort is refused here
    if options.pdf:
        browser.require_chromium("makes the PDF", "or do without the PDF: --pdf=no")
    parts = open_parts(options)
    if options.dry_run:
        made = " and ".join(filter(None, [f"{places[0]}/report.html", options.bundle]))
        _told(privaudit.dry_run(**parts))
        _told(f"then {made} would be made")
        _told("nothing was made: this was a dry run")
        return None
    audit = privaudit.run_audit(**parts, progress=_bars(), notify=_told)
    facts = privaudit.report_facts(audit, made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC")
    pictures = privaudit.audit_pictures(audit)
    page = privaudit.report_page(facts, pictures, written=audit if options.show else None)
    made = {"report.html": page.encode(), bundle.REPORT: to_json(facts)}
    made["report.schema.json"] = privaudit.report_schema()
    if options.pdf:
        made["report.pdf"] = _pdf(page)
    if evidence_file:
        evidence = bundle.make(bundle.of_audit(made, pictures.values(), ledger), key)
        write_atomic(evidence_file, evidence, new=True)
    try:
        place = publish(places, made)
    except BaseException:
        if evidence_file:
            evidence_file.unlink(missing_ok=True)
        raise
    _told(f"{audit.verdict.outcome}: {audit.verdict.reasons[0]}")
    _told(facts["coverage"]["sentence"])
    if evidence_file:
        _told(f"evidence: {options.bundle}, SHA-256 {bundle.sha256(evidence)}")
        if options.ledger:
            _told(f"the guarantee of {_shown(Path(options.ledger).name)}: {bundle.WORDS['brought']}")
    shown = place.relative_to(root) if place.is_relative_to(root) else place
    _told(f"complete in {time.monotonic() - clock:.0f} s: {shown}/report.html")
    return place


def _parser() -> argparse.ArgumentParser:
    form = {"epilog": f"{EXIT_CODES}\n\n{MAKE}", "formatter_class": argparse.RawDescriptionHelpFormatter}
    parser = argparse.ArgumentParser(prog="privai-leak", description=ABOUT, **form)
    commands = parser.add_subparsers(dest="command", required=True)
    audit = commands.add_parser("audit", help="audit a model or a synthetic data set", **form)
    add_options(audit)
    verify = commands.add_parser("verify", help="say in one line whether an evidence bundle holds", **form)
    verify.add_argument("bundle", help="the file, .zip")
    verify.add_argument("--key", default="", help="public Ed25519 key, PEM, that must have signed it")
    return parser


def main(arguments: list[str] | None = None) -> int:
    """Run one command where the caller stands, and return its exit code."""

    def call() -> int:
        given = _parser().parse_args(arguments)
        if given.command == "verify":
            return 0 if bundle.verify(given.bundle, given.key) else 1
        run(Path.cwd(), read_options(given))
        return 0

    return guarded(call)


if __name__ == "__main__":
    sys.exit(main())
