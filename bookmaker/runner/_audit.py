"""`make audit`: the audit of somebody's own model or synthetic texts, from files to a folder with reports.

Everything is held in memory until it is complete: a command that is killed, or refused, leaves nothing.
"""

import argparse
import contextlib
import errno
import fcntl
import os
import re
import shlex
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bookmaker.runner._terminal import terminal
from bookmaker.runner.progress import say
from privhelpers import browser, processes
from privhelpers.artifacts import NAME, check_name, to_json, write_atomic
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


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options; an empty one, as make passes what nobody gave, counts as not given."""
    for name, text in (
        ("model", "a local Hugging Face folder: config.json, safetensors, tokenizer"),
        ("synthetic", "in place of a model: the texts of a synthetic data set: text"),
        ("records", "what it was trained on or made from, JSONL, CSV or Parquet: patient_id, text"),
        ("holdout", "what it never saw, of other patients"),
        ("canaries", "texts made for the audit: text, inserted"),
        ("columns", "what the files call these: 'patient_id=mrn text=note'"),
        ("patients", "asked about of each file, at most, or all; default: what can be asked in minutes"),
        ("notes", "of a patient that are asked about, at most, or all"),
        ("base", "where MODEL holds a LoRA adapter alone: the folder of the model that it was trained on"),
        ("reference", "a model folder that saw neither file, such as the one trained further"),
        ("epsilon", "claimed budget, in nats, for one record more or less; needs canaries to be tested"),
        ("delta", "of the claim"),
        ("out", "new folder for the reports; default: runs/audits/<name of the model>"),
        ("pdf", "no: leave out the PDF, which needs Chromium"),
        ("show", "yes: let the report show what the model wrote; it is then as confidential as the records"),
        ("seed", "of everything drawn, a whole number; default 0"),
    ):
        parser.add_argument(f"--{name}", default="", help=text)


def _told(text: str) -> str:
    """Return what was given as a message shows it: short, and every character visible."""
    return inert(text if len(text) <= 100 else f"{text[:97]}...")


def _number(name: str, text: str, kind: Callable[[str], float] = float) -> float | None:
    if not text:
        return None
    try:
        return kind(text)
    except ValueError:
        raise InvalidParameter(f"{name.upper()}={_told(text)}: must be a number") from None


def _limit(name: str, text: str) -> dict[str, int | None]:
    """Return a limit as a setting: a number, None for all, or nothing where nobody gave one."""
    if not text:
        return {}
    if text.casefold() == ALL:
        return {name: None}
    limit = _number(name, text, int)
    if limit < 1:
        raise InvalidParameter(f"{name.upper()}={_told(text)}: must be a whole number of 1 or more, or all")
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
            f"COLUMNS={_told(text)}: must be pairs such as 'patient_id=mrn text=note', names with blanks in "
            "quotes"
        ) from None
    if strange := sorted(set(columns) - set(FIELDS)):
        raise InvalidParameter(
            f"COLUMNS: {_told(strange[0])} is no field; the fields are {', '.join(FIELDS)}"
        )
    if len(columns) < len(pairs) or len(set(columns.values())) < len(pairs) or not all(columns.values()):
        raise InvalidParameter(f"COLUMNS={_told(text)}: each field, and each column, can be named once")
    return columns


def _flag(name: str, text: str, default: bool) -> bool:
    if not text:
        return default
    if text.casefold() not in (*YES, *NO):
        raise InvalidParameter(f"{name.upper()}={_told(text)}: must be yes or no")
    return text.casefold() in YES


def _places(root: Path, out: str, model: Path) -> list[Path]:
    """Return the folders that the reports may become, in the order of preference; none exists yet.

    Raises:
        InvalidParameter: the one that was asked for by name does, or can be none.
    """
    if out:
        place = Path(out)
        if not out.isprintable():
            raise InvalidParameter(f"OUT={out!r}: holds a character that no name should; name another folder")
        try:
            place.lstat()
            taken = True
        except FileNotFoundError:
            taken = False
        except OSError as error:
            raise InvalidParameter(
                f"OUT={out}: cannot be made ({error.strerror}); name another folder"
            ) from None
        above = next(folder for folder in place.absolute().parents if folder.exists())
        if taken:
            raise InvalidParameter(
                f"OUT={out}: is there already; name a new folder, an old report is kept as it is"
            )
        if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
            raise InvalidParameter(f"OUT={out}: its folder cannot be written to; name another folder")
        return [place]
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "_.-") else "-" for c in model.resolve().name)
    stem = plain.lower().strip("-._")[:50]
    stem = check_name(stem) if NAME.fullmatch(stem) else "model"
    names = [stem, *(f"{stem}-{number}" for number in range(2, 10_000))]
    return [place for name in names if not os.path.lexists(place := root / HOME / name)]


def _held(folder: Path) -> int | None:
    """Return a descriptor that holds a folder for this process, or None where another one holds it."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor


def _clear(home: Path) -> None:
    """Remove what commands that were killed while writing left; the system let go of their folders."""
    for left in home.glob(f"{PART}*"):
        with contextlib.suppress(OSError):  # another command is faster
            if (descriptor := _held(left)) is not None:
                shutil.rmtree(left, ignore_errors=True)
                os.close(descriptor)


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
        _clear(home)
        part = Path(tempfile.mkdtemp(dir=home, prefix=PART))
        descriptor = _held(part)
        try:
            return _moved(part, places, files)
        finally:
            shutil.rmtree(part, ignore_errors=True)
            if descriptor is not None:
                os.close(descriptor)
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


def _is_there(place: str) -> bool:
    try:
        return Path(place).exists()
    except OSError:  # no file can have such a name
        return False


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
    for name in (*NEEDED, "synthetic", "canaries", "base", "reference"):
        given = getattr(options, name)
        if given and not _is_there(given):
            cure = ""
            if name in ("model", "base", "reference") and HUB_NAME.fullmatch(given):
                cure = (
                    "; nothing is fetched: if this is a name of the Hugging Face hub, save it to a folder "
                    f"first (hf download {given} --local-dir folder), and name the folder"
                )
            raise MissingArtifact(f"{name.upper()}={_told(given)}: there is nothing at that place{cure}")
    seed = int(_number("seed", options.seed, int) or 0)
    if seed < 0:
        raise InvalidParameter(f"SEED={_told(options.seed)}: must be a whole number of 0 or more")
    claim = {name: _number(name, getattr(options, name)) for name in ("epsilon", "delta")}
    if claim != dict.fromkeys(claim) and not options.canaries:
        raise InvalidParameter(
            "EPSILON and DELTA: a claim can only be tested with canaries; give CANARIES=canaries.jsonl "
            "too, or leave the claim out"
        )
    limits = _limit("patients", options.patients) | _limit("notes", options.notes)
    return {
        "settings": {"seed": seed, **claim, **limits},
        "columns": _columns(options.columns),
        "pdf": _flag("pdf", options.pdf, True),
        "show": _flag("show", options.show, False),
    }


def _pdf(page: str) -> bytes:
    """Return a page that needs nothing but itself as a PDF; Chromium may fetch nothing and run nothing."""

    def fill(tab: Any) -> None:
        tab.context.set_default_timeout(60_000)
        tab.set_content(page, wait_until="load")

    return browser.print_pdf(fill, "the report", offline=True, java_script_enabled=False)


def _examined(options: argparse.Namespace, given: dict) -> Any:
    """Return the audit of a model, or of synthetic texts, and say on the way what is done."""
    import torch

    from privhelpers import own_model

    def told(text: str) -> None:
        say("audit", text)

    files = {"canaries": options.canaries or None, "columns": given["columns"]}
    brought = options.records, options.holdout
    if options.synthetic:
        # A dealing costs little here, and more tests are made: twice as many let one of them be told.
        settings = own_model.Settings(**{"permutations": 19_999} | given["settings"])
        read = own_model.read_files(*brought, **files, synthetic=options.synthetic)
        told(_sizes(read))
        return own_model.examine_synthetic(read, settings, told=told)
    # The model first: where it is refused, nobody should have waited for many records.
    target = own_model.open_model(options.model, base=options.base or None)
    reference = own_model.open_model(options.reference) if options.reference else None
    if target.parameters < SMALL:  # threads that wait for each other cost more than they save
        torch.set_num_threads(1)
    told(f"{target.name}: {target.kind}, {target.parameters:,} weights")
    read = own_model.read_files(*brought, **files)
    told(_sizes(read))
    settings = own_model.Settings.for_model(target, **given["settings"])
    bars = terminal() is not None
    return own_model.examine(target, read, settings, reference=reference, progress=bars, told=told)


def _sizes(files: Any) -> str:
    sides = (files.members, files.heldout)
    return "; ".join(f"{file.name}: {len(file.patients):,} patients" for file in sides)


def run(root: Path, options: argparse.Namespace) -> Path:
    """Audit a model, or synthetic texts, and return the folder of the reports.

    Raises:
        PrivHelpersError: something that was brought is refused, before the long work begins.
    """
    clock = time.monotonic()
    given = _check(options)
    places = _places(root, options.out, Path(options.model or Path(options.synthetic).stem))
    os.environ.update({"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"})
    processes.prepare("privhelpers.own_model")  # beside the imports here

    from privhelpers import own_model
    from privhelpers.figures.own_model import audit_pictures

    own_model.Settings(**given["settings"])  # a claim that is none is refused before the long work
    if given["pdf"]:
        browser.require_chromium("makes the PDF", "or do without the PDF: PDF=no")
    audit = _examined(options, given)
    facts = own_model.report_facts(audit, made=f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC")
    page = own_model.report_page(facts, audit_pictures(audit), written=audit if given["show"] else None)
    made = {"report.html": page.encode(), "report.json": to_json(facts)}
    made["report.schema.json"] = own_model.report_schema()
    if given["pdf"]:
        made["report.pdf"] = _pdf(page)
    place = publish(places, made)
    say("audit", f"{audit.verdict.outcome}: {audit.verdict.reasons[0]}")
    say("audit", facts["coverage"]["sentence"])
    shown = place.relative_to(root) if place.is_relative_to(root) else place
    say("audit", f"complete in {time.monotonic() - clock:.0f} s: {shown}/report.html")
    return place
