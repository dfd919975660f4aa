"""`privai-leak canaries`: make canaries before a training, or check that they reach the loss."""

import argparse
import functools
import math
import secrets

from privaudit import kit
from privaudit.console import say
from privaudit.kit import Unit
from privaudit.output import publish, require_new_path
from privaudit.rows import RecordRow, columns_option, read_rows
from privhelpers import validate
from privhelpers.errors import BadRecords, InvalidParameter

EXIT_CODES = """exit codes:
  0    the kit was made; --check: every canary reaches the loss
  1    the work failed
  2    refused: an input cannot be used, and nothing was made
  3    --check: some canaries would never reach the loss"""
_told = functools.partial(say, "canaries")


def _make(given: argparse.Namespace) -> int:
    """Write a kit, and say what it can refute."""
    from privaudit import planting  # late: it loads scipy
    from privaudit.records import read_records

    place = require_new_path("--out", given.out)
    columns = columns_option(given.columns)
    single = given.canaries
    if single is None:
        single = planting.SPARE * planting.fewest_canaries(given.epsilon, given.delta)
    seed = secrets.randbits(62) if given.seed is None else validate.non_negative_int(seed=given.seed)
    records = read_records(given.records, columns)
    rows = [row for _, row in read_rows(given.records, RecordRow, columns)[1]]
    unit = Unit(given.unit)
    made = planting.make_kit(records, rows, single=single, seed=seed, unit=unit, delta=given.delta)
    publish(place, made.files)
    manifest, most = made.manifest, made.manifest.refutes
    inserted, of = (sum(counts.values()) for counts in (manifest.inserted, manifest.canaries))
    _told(
        f"{inserted:,} of {of:,} canaries are inserted, in {manifest.lines:,} lines among {len(rows):,} "
        "records; nobody who trains should see canaries.jsonl or manifest.json"
    )
    gaussian, any_mechanism = most.gaussian, most.any_mechanism
    _told(
        f"if every guess is right, the kit refutes a claimed epsilon of {gaussian:.2f} for one {unit} of a "
        f"training with Gaussian noise, as in DP-SGD, and of {any_mechanism:.2f} of any mechanism (delta "
        f"{most.delta:g}, {100 * most.confidence:g}% confidence)"
    )
    larger = math.ceil(gaussian) + 1
    _told(f"to refute an epsilon of {larger}, a kit needs {_needed(larger, given.delta)}")
    train = place / kit.TRAIN
    _told(f"train on {train}, then: privai-leak audit --records={train} --holdout=... --model=...")
    return 0


def _needed(epsilon: float, delta: float) -> str:
    """Return how many canaries refute an epsilon, in words."""
    from privaudit import planting

    try:
        needed = planting.fewest_canaries(epsilon, delta)
    except InvalidParameter:
        return f"more than {planting.MOST:,} canaries"
    return f"{needed:,} canaries, all guessed right (--canaries={needed})"


def _check(given: argparse.Namespace) -> int:
    """Say which canaries of a kit would never reach the loss."""
    from privaudit.reach import ADVICE, lost_canaries, open_tokenizer  # late: it loads torch
    from privaudit.records import read_canaries

    if kit.kit_of(given.check) is None:
        raise BadRecords("--check: no canary kit at that place; make one with --records and --out")
    canaries = read_canaries(given.check).canaries
    tokenizer, longest = open_tokenizer(given.model)
    limit = min(longest, validate.positive_int(max_length=given.max_length or longest))
    lost = lost_canaries(tokenizer, canaries, limit=limit, mask_before=given.mask_before)
    for cause, lines in lost.items():
        listed = ", ".join(map(str, lines[:20])) + (
            f" and {len(lines) - 20:,} more" if len(lines) > 20 else ""
        )
        _told(f"{len(lines):,} of {len(canaries):,} canaries {ADVICE[cause]}: {kit.CANARIES}, lines {listed}")
    if not lost:
        _told(f"all {len(canaries):,} canaries reach the loss, with at most {limit:,} tokens of a text")
    return 3 if lost else 0


def add_parser(commands: argparse._SubParsersAction) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "canaries",
        help="make canaries before a training, or check that they reach the loss",
        epilog=EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--records", help="to train on, JSONL, CSV, or Parquet: patient_id, text; with --out")
    add("--out", help="new folder for the kit")
    add("--columns", help="the file's names of the columns: 'patient_id=mrn text=note'")
    add("--epsilon", type=float, default=8.0, help="claim that the kit must be able to refute; default 8")
    add("--delta", type=float, default=1e-5, help="of the claim; default 1e-5")
    add("--unit", choices=list(Unit), default=Unit.RECORD, help="that the claim is for; default record")
    add("--canaries", type=int, help="number of canaries with one copy, instead of as many as epsilon needs")
    add("--seed", type=int, help="of all randomness; by default the system draws one")
    add("--check", help="a kit: say which canaries would never reach the loss; with --model")
    add("--model", help="a local Hugging Face folder with a tokenizer")
    add("--max-length", type=int, help="tokens of a text in training; default: as many as the model reads")
    add("--mask-before", default="", help="a text up to whose end no token has a label")


def run(given: argparse.Namespace) -> int:
    """Make a kit or check one, and return the exit code.

    Raises:
        PrivHelpersError: an input is refused, and nothing was made.
    """
    if given.check and given.model and not (given.records or given.out):
        return _check(given)
    if given.records and given.out and not (given.check or given.model):
        return _make(given)
    raise InvalidParameter(
        "give --records and --out to make a kit, or --check and --model to check one; see --help"
    )
