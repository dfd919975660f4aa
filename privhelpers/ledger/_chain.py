"""The lines of a ledger: how one is made, and what is refused when they are read back.

A line is JSON with sorted keys: `content`, `hash`, `kind`, `previous` and `seq`. The hash is the SHA-256 of
the line without it. A line is verified by writing it anew from what it says and comparing every byte.
"""

import dataclasses
import hashlib
import json
import math
import re
from dataclasses import dataclass

from privhelpers.artifacts import parse_json
from privhelpers.errors import DamagedArtifact, LedgerDamaged, PrivHelpersError, ResumeRefused
from privhelpers.ledger._terms import Terms
from privhelpers.text import quoted

START = "0" * 64  # stands for the hash before the first line
KEYS = {"content", "hash", "kind", "previous", "seq"}
CONTENT = {
    "reserve": {"epsilon", "steps", "total_steps"},
    "torn": {"bytes", "epsilon", "steps", "total_steps"},
}
SAME = 1e-9  # relative: the same accountant on another machine
_STEPS = re.compile(rb'"steps":([0-9]{1,8}),')


@dataclass(frozen=True)
class Entry:
    """One line after the opening.

    Attributes:
        seq: place in the ledger; the first entry is 1.
        kind: "reserve", or "torn": steps counted for a line that a kill or a full disk left unfinished.
        steps: reserved by this entry, 1 or more; 0 or more if torn.
        total_steps: reserved up to here.
        epsilon: of all steps up to here, in nats; None where a part of the run is not counted.
        hash: SHA-256 of the line, in hexadecimal.
    """

    seq: int
    kind: str
    steps: int
    total_steps: int
    epsilon: float | None
    hash: str


@dataclass(frozen=True)
class Record:
    """What a verified ledger says.

    Attributes:
        terms: sealed at its opening.
        opening: hash of the first line.
        entries: in order.
        unfinished: bytes of a last line that was not written to its end; the next opening counts them as
            spent, a reader only sees them.
    """

    terms: Terms
    opening: str
    entries: tuple[Entry, ...] = ()
    unfinished: int = 0

    @property
    def steps(self) -> int:
        """Steps reserved so far."""
        return self.entries[-1].total_steps if self.entries else 0

    @property
    def epsilon(self) -> float | None:
        """Epsilon of the steps reserved so far, in nats; 0 before the first; None for `terms.not_counted`."""
        if self.terms.not_counted:
            return None
        return self.entries[-1].epsilon if self.entries else 0.0

    @property
    def remaining(self) -> int:
        """Planned steps that are not reserved yet."""
        return self.terms.steps - self.steps

    @property
    def head(self) -> str:
        """Hash of the last line, which stands for the whole ledger up to there."""
        return self.entries[-1].hash if self.entries else self.opening

    def contains(self, head: str) -> bool:
        """Tell whether this ledger once ended with the line of hash `head`."""
        return head == self.opening or any(head == entry.hash for entry in self.entries)

    def require(self, head: str) -> None:
        """Refuse a ledger that does not continue the one a checkpoint was written under.

        Args:
            head: of the ledger at that time.

        Raises:
            ResumeRefused: the ledger was replaced, or lost lines at its end.
        """
        if not self.contains(head):
            raise ResumeRefused(
                f"head {head!r} is no line of the ledger of run {self.terms.run!r}: the ledger was replaced "
                "or lost its last lines, so it does not show what was spent"
            )

    def extended(self, *entries: Entry) -> "Record":
        """Return the record with more entries and a finished end."""
        return dataclasses.replace(self, entries=(*self.entries, *entries), unfinished=0)


def _canonical(value: dict) -> bytes:
    return json.dumps(value, allow_nan=False, sort_keys=True, separators=(",", ":")).encode()


def seal(seq: int, previous: str, kind: str, content: dict) -> tuple[bytes, str]:
    """Return a line, with its newline, and its hash."""
    line = {"content": content, "kind": kind, "previous": previous, "seq": seq}
    digest = hashlib.sha256(_canonical(line)).hexdigest()
    return _canonical({**line, "hash": digest}) + b"\n", digest


def opening_line(terms: Terms) -> bytes:
    """Return the first line of a ledger."""
    return seal(0, START, "open", terms.content())[0]


def next_line(record: Record, kind: str, steps: int, **more: int) -> tuple[bytes, Entry]:
    """Return the line, and the entry, by which `steps` more are counted; they fit the plan.

    The accountant rounds, so that a later bound can come out a hair below an earlier one: the larger stands.
    """
    total = record.steps + steps
    counted = not record.terms.not_counted
    epsilon = max(record.epsilon, record.terms.epsilon_of(total)) if counted else None
    content = {"epsilon": epsilon, "steps": steps, "total_steps": total, **more}
    seq = len(record.entries) + 1
    line, digest = seal(seq, record.head, kind, content)
    return line, Entry(seq, kind, steps, total, epsilon, digest)


def _parsed(raw: bytes, where: str) -> dict:
    try:
        line = parse_json(raw.decode("ascii"), where)
    except UnicodeDecodeError as error:
        raise LedgerDamaged(f"{where}: byte {error.start} is not ASCII") from error
    except DamagedArtifact as error:
        raise LedgerDamaged(str(error)) from error
    if not isinstance(line, dict) or set(line) != KEYS or not isinstance(line["content"], dict):
        raise LedgerDamaged(f"{where}: is not a line of a ledger")
    return line


def _require_same(raw: bytes, written: bytes, where: str) -> None:
    if raw + b"\n" != written:
        raise LedgerDamaged(
            f"{where}: is not the line that was written there: it was edited, moved or doubled, or the line "
            "before it is missing"
        )


def _opening(raw: bytes, where: str) -> Record:
    content = _parsed(raw, where)["content"]
    try:
        terms = Terms(**content)
    except (TypeError, PrivHelpersError) as error:
        raise LedgerDamaged(f"{where}: {quoted(error)}") from error
    written, digest = seal(0, START, "open", terms.content())
    _require_same(raw, written, where)
    return Record(terms, digest)


def _entry(raw: bytes, where: str, *, seq: int, previous: str) -> Entry:
    line = _parsed(raw, where)
    kind, content = line["kind"], line["content"]
    if not isinstance(kind, str) or set(content) != CONTENT.get(kind):
        raise LedgerDamaged(f"{where}: is not an entry of a ledger")
    epsilon, least = content["epsilon"], 1 if kind == "reserve" else 0
    counts = [value for name, value in content.items() if name != "epsilon"]
    # `type`, not `isinstance`: true is no number of steps.
    if any(type(count) is not int or count < 0 for count in counts) or content["steps"] < least:
        raise LedgerDamaged(f"{where}: its steps are not whole numbers of {least} or more")
    if epsilon is not None and (type(epsilon) is not float or not math.isfinite(epsilon)):
        raise LedgerDamaged(f"{where}: epsilon is not a finite number")
    written, digest = seal(seq, previous, kind, content)
    _require_same(raw, written, where)
    return Entry(seq, kind, content["steps"], content["total_steps"], epsilon, digest)


def _follow(raw: bytes, where: str, record: Record, last: Entry | None) -> Entry:
    """Return the entry of a line that goes on from the `last` one, and spends no less."""
    before = last or Entry(0, "open", 0, 0, 0.0, record.opening)
    entry = _entry(raw, where, seq=before.seq + 1, previous=before.hash)
    total = before.total_steps + entry.steps
    if entry.total_steps != total or total > record.terms.steps:
        raise LedgerDamaged(f"{where}: its steps in total are not those reserved up to there")
    if (entry.epsilon is None) != bool(record.terms.not_counted):
        raise LedgerDamaged(f"{where}: epsilon stands where none is counted, or is missing where one is")
    if entry.epsilon is not None and entry.epsilon < before.epsilon:
        raise LedgerDamaged(f"{where}: epsilon is smaller than before")
    return entry


def _require_epsilon(record: Record, name: str) -> None:
    """Refuse a last epsilon that the accountant does not give."""
    if not record.entries or record.terms.not_counted:
        return
    *_, before, last = (0.0, *(entry.epsilon for entry in record.entries))
    counted = max(before, record.terms.epsilon_of(record.steps))
    if not math.isclose(last, counted, rel_tol=SAME):
        raise LedgerDamaged(
            f"{name}, line {len(record.entries) + 1}: says epsilon {last!r} where the accountant gives "
            f"{counted!r}"
        )


def _ending(tail: bytes, where: str, record: Record) -> Record:
    """Return the record with what stands after its last newline: a whole line, or an unfinished one."""

    def read(raw: bytes) -> Entry | None:
        try:
            return _follow(raw, where, record, record.entries[-1] if record.entries else None)
        except LedgerDamaged:
            return None

    if entry := read(tail):
        return record.extended(entry)
    if read(tail[:-1]):  # no kill leaves a whole line and something else in the place of its newline
        raise LedgerDamaged(f"{where}: its last byte is not the newline that was written")
    return dataclasses.replace(record, unfinished=len(tail))


def verify(data: bytes, name: str) -> Record:
    """Return what the bytes of a ledger say.

    Args:
        data: the whole file.
        name: of the file, for messages.

    Raises:
        LedgerDamaged: a line is not the one that was written; the message names it.
    """
    first, *rest = data.split(b"\n")
    if not rest:  # the opening line is put in place whole, so that no kill leaves half of it
        raise LedgerDamaged(f"{name}, line 1: the opening line is not complete")
    record, entries = _opening(first, f"{name}, line 1"), []
    *lines, tail = rest
    for number, raw in enumerate(lines, 2):
        entries.append(_follow(raw, f"{name}, line {number}", record, entries[-1] if entries else None))
    record = record.extended(*entries)
    if tail:
        record = _ending(tail, f"{name}, line {len(lines) + 2}", record)
    _require_epsilon(record, name)
    return record


def mended(record: Record, data: bytes) -> tuple[bytes, Record]:
    """Return the file and its record with every line finished; `data` ends without a newline.

    A whole line only lacks its newline. What an unfinished one reserved is not known, and nothing of it was
    begun: it counts as the largest reserve so far, or as what it still says, within the plan.
    """
    if not record.unfinished:
        return data + b"\n", record
    kept, tail = data[: -record.unfinished], data[-record.unfinished :]
    legible = _STEPS.search(tail)
    largest = max([1, *(entry.steps for entry in record.entries), int(legible[1]) if legible else 1])
    line, entry = next_line(record, "torn", min(largest, record.remaining), bytes=len(tail))
    return kept + line, record.extended(entry)
