"""`make audit`: the audit of somebody's own model or synthetic texts, from files to a folder with reports.

Everything is held in memory until it is complete: a command that is killed, or refused, leaves nothing. One
that is killed between its last two renames leaves the bundle, which holds the whole report, without a folder.


`privai-leak`: the audit, and the verification of its evidence, as a command for any folder.
"""

import argparse
import errno
import os
import re
import shlex
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from privaudit import browser, bundle
from privaudit.console import guarded, say, terminal
from privhelpers.artifacts import NAME, check_name, is_there, read_bounded, to_json, write_atomic
from privhelpers.errors import InvalidParameter, MissingArtifact, RunFailed
from privhelpers.text import inert

HOME = Path("runs", "audits")
NEEDED = {
    "model": "MODEL=folder or SYNTHETIC=notes.jsonl",
    "records": "RECORDS=members.jsonl",
    "holdout": "HOLDOUT=nonmembers.jsonl",
}
ALL = "all"
HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")
EXAMPLE = "make audit MODEL=my-model RECORDS=members.jsonl HOLDOUT=nonmembers.jsonl"
PART = ".part-audit-"  # folders that are being written
SMALL = 5_000_000  # weights
FIELDS = ("patient_id", "text", "note_id", "identifiers", "inserted")
ONLY_MODEL = ("model", "base", "reference", "show")
YES, NO = ("yes", "1", "true"), ("no", "0", "false")
FLAGS = ("pdf", "show", "dry_run")
OPTIONS = {
    "model": "a local Hugging Face folder: config.json, safetensors, tokenizer",
    "synthetic": "in place of a model: the texts of a synthetic data set: text",
    "records": "what it was trained on or made from, JSONL, CSV or Parquet: patient_id, text",
    "holdout": "what it never saw, of other patients",
    "canaries": "texts made for the audit: text, inserted",
    "columns": "what the files call these: 'patient_id=mrn text=note'",
    "patients": "asked about of each file, at most, or all; default: what can be asked in minutes",
    "notes": "of a patient that are asked about, at most, or all",
    "effort": "quick, standard or thorough: a quarter, or four times, of the usual patients and texts",
    "base": "if MODEL or REFERENCE holds a LoRA adapter alone: the folder of the model it was trained on",
    "reference": "a model folder that saw neither file, such as the one trained further",
    "epsilon": "claimed budget, in nats, for one record more or less; needs canaries to be tested",
    "delta": "of the claim",
    "out": "new folder for the reports; default: runs/audits/<name of the model>",
    "pdf": "no: leave out the PDF, which needs Chromium",
    "show": "yes: let the report show what the model wrote; it is then as confidential as the records",
    "seed": "of everything drawn, a whole number; default 0",
    "bundle": "new file, .zip: the report with what it was made of, for others to verify",
    "key": "private Ed25519 key, PEM, that signs the bundle",
    "ledger": "said to be of the model's private training; the bundle then states its guarantee as your word",
    "dry_run": "yes, or nothing: say what would be done and for how long, and make nothing",
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options; an empty one, as make passes what nobody gave, counts as not given."""
    for name, text in OPTIONS.items():
        alone = {"nargs": "?", "const": YES[0]} if name in FLAGS else {}
        parser.add_argument(f"--{name.replace('_', '-')}", default="", help=text, **alone)


def _shown(text: str) -> str:
    """Return what was given as a message shows it: short, and every character visible."""
    return inert(text if len(text) <= 100 else f"{text[:97]}...")


def _number(name: str, text: str, kind: Callable[[str], float] = float) -> float | None:
    if not text:
        return None
    try:
        return kind(text)
    except ValueError:
        raise InvalidParameter(f"{name.upper()}={_shown(text)}: must be a number") from None


def _limit(name: str, text: str) -> dict[str, int | None]:
    """Return a limit as a setting: a number, None for all, or nothing where nobody gave one."""
    if not text:
        return {}
    if text.casefold() == ALL:
        return {name: None}
    limit = _number(name, text, int)
    if limit < 1:
        raise InvalidParameter(f"{name.upper()}={_shown(text)}: must be a whole number of 1 or more, or all")
    return {name: limit}


def _columns(text: str) -> dict[str, str]:
    """Return field -> what the files call it; a number is the width that a shell says of its window."""
    if text.isdigit():
        return {}
    try:
        pairs = [word.split("=", 1) for word in shlex.split(text)]
        columns = dict(pairs)
    except ValueError:
        raise InvalidParameter(
            f"COLUMNS={_shown(text)}: must be pairs such as 'patient_id=mrn text=note', names with blanks in "
            "quotes"
        ) from None
    if strange := sorted(set(columns) - set(FIELDS)):
        raise InvalidParameter(
            f"COLUMNS: {_shown(strange[0])} is no field; the fields are {', '.join(FIELDS)}"
        )
    if len(columns) < len(pairs) or len(set(columns.values())) < len(pairs) or not all(columns.values()):
        raise InvalidParameter(f"COLUMNS={_shown(text)}: each field, and each column, can be named once")
    return columns


def _flag(name: str, text: str, default: bool) -> bool:
    if not text:
        return default
    if text.casefold() not in (*YES, *NO):
        raise InvalidParameter(f"{name.upper()}={_shown(text)}: must be yes or no")
    return text.casefold() in YES


def _can_be_made(place: Path) -> bool:
    """Return whether this process may make a file or folder at a place where there is none."""
    try:
        above = next(folder for folder in place.absolute().parents if folder.exists())
    except OSError:  # a folder above it cannot be looked into
        return False
    return above.is_dir() and os.access(above, os.W_OK | os.X_OK)


def new_place(option: str, given: str) -> Path:
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


def _places(root: Path, out: str, model: Path) -> list[Path]:
    """Return the folders that the reports may become, in the order of preference; none exists yet.

    Raises:
        InvalidParameter: the one that was asked for by name does, or can be none; or none was, and the usual
            folder cannot be written to.
    """
    if out:
        return [new_place("OUT", out)]
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "_.-") else "-" for c in model.resolve().name)
    stem = plain.lower().strip("-._")[:50]
    stem = check_name(stem) if NAME.fullmatch(stem) else "model"
    if not _can_be_made(root / HOME / "new"):
        raise InvalidParameter(
            f"{_shown(str(root / HOME))}: the reports would go there, and it cannot be written to; name "
            "another folder, OUT=..., or let this user write to that one"
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
            f"BUNDLE={_shown(str(bundle))}: the reports go to {_shown(str(out))}, and neither can lie in the "
            "other; name another file"
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
    name = f"LEDGER={_shown(given)}"
    try:
        data = read_bounded(Path(given), bundle.MOST)
    except OSError as error:
        raise MissingArtifact(f"{name}: cannot be read ({error.strerror})") from None
    bundle.guarantee(data, _shown(Path(given).name))
    return data


def _check(options: argparse.Namespace) -> dict:
    """Return the options as values, refusing what is missing or of no kind."""
    missing = [
        text
        for name, text in NEEDED.items()
        if not getattr(options, name) and not (name == "model" and options.synthetic)
    ]
    if missing:
        raise InvalidParameter(f"missing: {', '.join(missing)}; for example: {EXAMPLE}")
    if options.synthetic and (both := [name for name in ONLY_MODEL if getattr(options, name)]):
        raise InvalidParameter(
            f"SYNTHETIC and {both[0].upper()}: texts are audited without a model; leave out one of them"
        )
    for name in (*NEEDED, "synthetic", "canaries", "base", "reference", "ledger", "key"):
        given = getattr(options, name)
        if given and not is_there(given):
            cure = ""
            if name in ("model", "base", "reference") and HUB_NAME.fullmatch(given):
                cure = (
                    "; nothing is fetched: if this is a name of the Hugging Face hub, save it to a folder "
                    f"first (hf download {given} --local-dir folder), and name the folder"
                )
            raise MissingArtifact(f"{name.upper()}={_shown(given)}: there is nothing at that place{cure}")
    seed = int(_number("seed", options.seed, int) or 0)
    if seed < 0:
        raise InvalidParameter(f"SEED={_shown(options.seed)}: must be a whole number of 0 or more")
    claim = {name: _number(name, getattr(options, name)) for name in ("epsilon", "delta")}
    if claim != dict.fromkeys(claim) and not options.canaries:
        raise InvalidParameter(
            "EPSILON and DELTA: a claim can only be tested with canaries; give CANARIES=canaries.jsonl "
            "too, or leave the claim out"
        )
    limits = _limit("patients", options.patients) | _limit("notes", options.notes)
    given = {
        "settings": {"seed": seed, **claim, **limits},
        "effort": {"effort": options.effort.casefold()} if options.effort else {},
        "columns": _columns(options.columns),
        "pdf": _flag("pdf", options.pdf, True),
        "show": _flag("show", options.show, False),
        "dry": _flag("dry", options.dry_run, False),
    }
    if not options.bundle and (left := [name for name in ("key", "ledger") if getattr(options, name)]):
        raise InvalidParameter(f"{left[0].upper()}: belongs to a bundle; name one, BUNDLE=out.zip")
    if options.bundle and given["show"]:
        raise InvalidParameter("BUNDLE and SHOW: a bundle is handed on and holds no text; leave out one")
    return given | {
        "ledger": _ledger(options.ledger) if options.ledger else None,
        "bundle": new_place("BUNDLE", options.bundle) if options.bundle else None,
        "key": bundle.private_key(options.key),
    }


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


def _bases(options: argparse.Namespace) -> dict[str, str | None]:
    """Return "model" and, if there is one, "reference", each with the base that it needs, if any.

    A base that neither needs is the model's, so that it is refused.
    """
    import privaudit

    named = [name for name in ("model", "reference") if getattr(options, name)]
    adapters = [name for name in named if privaudit.is_adapter(getattr(options, name))] or ["model"]
    return {name: (options.base or None) if name in adapters else None for name in named}


def _opened(options: argparse.Namespace, given: dict) -> dict[str, Any]:
    """Return what an audit is made of: files, settings, and the models where one is audited."""
    import privaudit

    files = {"canaries": options.canaries or None, "columns": given["columns"], "progress": _bars()}
    brought = options.records, options.holdout
    if options.synthetic:
        settings = privaudit.Settings.for_texts(**given["effort"], **given["settings"])
        read = privaudit.read_files(*brought, **files, synthetic=options.synthetic)
        _told(_sizes(read))
        return {"files": read, "settings": settings}
    # What is certain, then the files, then torch, which takes longer to load than a hundred thousand records.
    bases = _bases(options)
    for name, base in bases.items():
        privaudit.find_model(getattr(options, name), base)
    read = privaudit.read_files(*brought, **files)
    _told(_sizes(read))
    import torch

    opened = {name: privaudit.open_model(getattr(options, name), base=base) for name, base in bases.items()}
    target, reference = opened["model"], opened.get("reference")
    if target.parameters < SMALL:  # threads that wait for each other cost more than they save
        torch.set_num_threads(1)
    _told(f"{target.name}: {target.kind}, {target.parameters:,} weights")
    settings = privaudit.Settings.for_model(target, **given["effort"], **given["settings"])
    return {"target": target, "files": read, "settings": settings, "reference": reference}


def _sizes(files: Any) -> str:
    sides = (files.members, files.heldout)
    return "; ".join(f"{file.name}: {len(file.patients):,} patients" for file in sides)


def run(root: Path, options: argparse.Namespace) -> Path | None:
    """Audit a model, or synthetic texts, and return the folder of the reports; None where it was only tried.

    Raises:
        PrivHelpersError: something that was brought is refused, before the long work begins.
    """
    clock = time.monotonic()
    if not __debug__:
        raise InvalidParameter(
            "PYTHONOPTIMIZE, or python -O: leaves out what libraries that open a model rest on; start again "
            "without it"
        )
    given = _check(options)
    places = _places(root, options.out, Path(options.model or Path(options.synthetic).stem))
    _refuse_one_in_the_other(places[0], given["bundle"])
    os.environ.update({"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"})

    import privaudit

    # A claim or an effort that is none is refused before the long work.
    privaudit.Settings.for_texts(**given["effort"], **given["settings"])
    if given["pdf"]:
        browser.require_chromium("makes the PDF", "or do without the PDF: PDF=no")
    parts = _opened(options, given)
    if given["dry"]:
        _told(privaudit.dry_run(**parts))
        _told(
            f"then {' and '.join(filter(None, [f'{places[0]}/report.html', options.bundle]))} would be made"
        )
        _told("nothing was made: this was a dry run")
        return None
    audit = privaudit.run_audit(**parts, progress=_bars(), notify=_told)
    now = datetime.now(UTC)
    facts = privaudit.report_facts(audit, made=f"{now:%Y-%m-%d %H:%M} UTC")
    from privaudit import audit_pictures

    pictures = audit_pictures(audit)
    page = privaudit.report_page(facts, pictures, written=audit if given["show"] else None)
    made = {"report.html": page.encode(), bundle.REPORT: to_json(facts)}
    made["report.schema.json"] = privaudit.report_schema()
    if given["pdf"]:
        made["report.pdf"] = _pdf(page)
    if given["bundle"]:
        evidence = bundle.make(bundle.of_audit(made, pictures.values(), given["ledger"]), given["key"])
        write_atomic(given["bundle"], evidence, new=True)
    try:
        place = publish(places, made)
    except BaseException:
        if given["bundle"]:
            given["bundle"].unlink(missing_ok=True)
        raise
    _told(f"{audit.verdict.outcome}: {audit.verdict.reasons[0]}")
    _told(facts["coverage"]["sentence"])
    if given["bundle"]:
        _told(f"evidence: {options.bundle}, SHA-256 {bundle.sha256(evidence)}")
        if options.ledger:
            _told(f"the guarantee of {_shown(Path(options.ledger).name)}: {bundle.WORDS['brought']}")
    shown = place.relative_to(root) if place.is_relative_to(root) else place
    _told(f"complete in {time.monotonic() - clock:.0f} s: {shown}/report.html")
    return place


ABOUT = """Audit what a language model, or a synthetic data set, gives away about the people behind it.
Nothing is fetched, and nothing leaves this machine."""
EXIT_CODES = """exit codes:
  0    audit: a report was made, whatever it says; verify: the bundle holds
  1    audit: the work failed; verify: the bundle does not hold
  2    refused: something given cannot be used, and nothing was made
  130  interrupted"""


def _parser() -> argparse.ArgumentParser:
    form = {"epilog": EXIT_CODES, "formatter_class": argparse.RawDescriptionHelpFormatter}
    parser = argparse.ArgumentParser(prog="privai-leak", description=ABOUT, **form)
    commands = parser.add_subparsers(dest="command", required=True)
    audit = commands.add_parser("audit", help="audit a model or a synthetic data set", **form)
    add_options(audit)
    verify = commands.add_parser("verify", help="say in one line whether an evidence bundle holds", **form)
    verify.add_argument("bundle", help="the file, .zip")
    verify.add_argument("--key", default="", help="public Ed25519 key, PEM, that must have signed it")
    return parser


def _worded(message: str) -> str:
    """Return a message of `make audit` in the words of this command.

    >>> _worded("PATIENTS=0: must be 1 or more; for example: make audit MODEL=net")
    '--patients=0: must be 1 or more; for example: privai-leak audit --model=net'
    """
    names = {name.upper(): f"--{name}" for name in OPTIONS} | {"DRY": "--dry-run"}
    message = message.replace("make audit", "privai-leak audit")
    return re.sub(rf"(?<![\w/.=-])({'|'.join(names)})(?=[=:, ])", lambda found: names[found[1]], message)


def main(arguments: list[str] | None = None) -> int:
    """Run one command where the caller stands, and return its exit code."""

    def call() -> int:
        options = _parser().parse_args(arguments)
        if options.command == "verify":
            return 0 if bundle.verify(options.bundle, options.key) else 1
        run(Path.cwd(), options)
        return 0

    return guarded(call, _worded)


if __name__ == "__main__":
    sys.exit(main())
