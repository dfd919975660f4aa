"""The lines of a ledger: how one is made, and what is refused when they are read back.

A line is JSON with sorted keys: `content`, `hash`, `kind`, `previous` and `seq`. The hash is the SHA-256 of
the line without it. A line is verified by writing it again from what it says and comparing every byte.
"""

import hashlib
import json
import math
from dataclasses import dataclass

from privhelpers.artifacts import parse_json
from privhelpers.errors import DamagedArtifact, LedgerDamaged, PrivHelpersError, ResumeRefused
from privhelpers.ledger._header import Header
from privhelpers.text import quoted

START = "0" * 64  # in place of the hash before the first line
OPEN, RESERVE = "open", "reserve"
SAME = 1e-9  # relative: the same accountant on another machine


@dataclass(frozen=True)
class Entry:
    """One line after the opening.

    Attributes:
        seq: place in the ledger; the first entry is 1.
        steps: reserved by this entry, 1 or more.
        total_steps: reserved up to here.
        epsilon: of all steps up to here, in nats; None if a part of the run is not counted.
        hash: SHA-256 of the line, in hexadecimal.
    """

    seq: int
    steps: int
    total_steps: int
    epsilon: float | None
    hash: str


@dataclass(frozen=True)
class Record:
    """The content of a verified ledger.

    Attributes:
        header: sealed at its opening.
        opening: hash of the first line.
        entries: in order.
    """

    header: Header
    opening: str
    entries: tuple[Entry, ...] = ()

    @property
    def steps(self) -> int:
        """Steps reserved so far."""
        return self.entries[-1].total_steps if self.entries else 0

    @property
    def epsilon(self) -> float | None:
        """Epsilon of the steps reserved so far, in nats; 0 at first; None for `header.not_counted`."""
        if self.header.not_counted:
            return None
        return self.entries[-1].epsilon if self.entries else 0.0

    @property
    def remaining(self) -> int:
        """Planned steps that are not reserved yet."""
        return self.header.plan.steps - self.steps

    @property
    def head(self) -> str:
        """Hash of the last line, which identifies the whole ledger up to there."""
        return self.entries[-1].hash if self.entries else self.opening

    def require(self, head: str) -> None:
        """Refuse a ledger that does not continue the one a checkpoint was written under.

        Args:
            head: of the ledger at that time.

        Raises:
            ResumeRefused: the ledger was replaced, or lost lines at its end.
        """
        if head not in (self.opening, *(entry.hash for entry in self.entries)):
            raise ResumeRefused(
                f"head {head!r} is not a line of the ledger of run {self.header.run!r}: the ledger was "
                "replaced or lost its last lines, so it does not show what was spent"
            )


def _canonical(value: dict) -> bytes:
    return json.dumps(value, allow_nan=False, sort_keys=True, separators=(",", ":")).encode()


def seal(seq: int, previous: str, kind: str, content: dict) -> tuple[bytes, str]:
    """Return a line, with its newline, and its hash."""
    line = {"content": content, "kind": kind, "previous": previous, "seq": seq}
    digest = hashlib.sha256(_canonical(line)).hexdigest()
    return _canonical({**line, "hash": digest}) + b"\n", digest


def opening_line(header: Header) -> bytes:
    """Return the first line of a ledger."""
    return seal(0, START, OPEN, header.content())[0]


def next_line(record: Record, steps: int) -> tuple[bytes, Entry]:
    """Return the line, and the entry, by which `steps` more are counted; they fit the plan.

    The accountant rounds, so that a later bound can come out a hair below an earlier one: the larger counts.
    """
    total, seq = record.steps + steps, len(record.entries) + 1
    epsilon = record.header.epsilon_after(total)
    if epsilon is not None:
        epsilon = max(record.epsilon, epsilon)
    content = {"epsilon": epsilon, "steps": steps, "total_steps": total}
    line, digest = seal(seq, record.head, RESERVE, content)
    return line, Entry(seq, steps, total, epsilon, digest)


def _content(raw: bytes, where: str) -> dict:
    """Return the entry of a line."""
    try:
        line = parse_json(raw.decode("ascii"), where)
    except (UnicodeDecodeError, DamagedArtifact) as error:
        raise LedgerDamaged(f"{where}: is not a line of a ledger ({quoted(error)})") from error
    if not isinstance(line, dict) or not isinstance(line.get("content"), dict):
        raise LedgerDamaged(f"{where}: is not a line of a ledger")
    return line["content"]


def _digest(raw: bytes, where: str, seq: int, previous: str, content: dict) -> str:
    """Return the hash of a line, which is the one that was written for this content at this place."""
    written, digest = seal(seq, previous, RESERVE if seq else OPEN, content)
    if raw + b"\n" != written:
        raise LedgerDamaged(
            f"{where}: is not the line that was written there: it was edited, moved or doubled, or the line "
            "before it is missing"
        )
    return digest


def _opening(raw: bytes, where: str) -> Record:
    try:
        header = Header.of(_content(raw, where))
    except (TypeError, PrivHelpersError) as error:
        raise LedgerDamaged(f"{where}: {quoted(error)}") from error
    return Record(header, _digest(raw, where, 0, START, header.content()))


def _entry(raw: bytes, where: str, record: Record, last: Entry | None) -> Entry:
    """Return the entry of a line that goes on from the `last` one, and spends no less."""
    before = last or Entry(0, 0, 0, 0.0, record.opening)
    content = _content(raw, where)
    if set(content) != {"epsilon", "steps", "total_steps"}:
        raise LedgerDamaged(f"{where}: is not an entry of a ledger")
    steps, total, epsilon = content["steps"], content["total_steps"], content["epsilon"]
    if type(steps) is not int or type(total) is not int or steps < 1:  # `type`: true is not a number of steps
        raise LedgerDamaged(f"{where}: its steps are not whole numbers of 1 or more")
    if total != before.total_steps + steps or total > record.header.plan.steps:
        raise LedgerDamaged(f"{where}: its steps in total are not those reserved up to there")
    if record.header.not_counted:
        as_written = epsilon is None
    else:
        as_written = type(epsilon) is float and math.isfinite(epsilon) and epsilon >= before.epsilon
    if not as_written:
        raise LedgerDamaged(f"{where}: epsilon is not the next of this ledger")
    digest = _digest(raw, where, before.seq + 1, before.hash, content)
    return Entry(before.seq + 1, steps, total, epsilon, digest)


def _require_epsilon(record: Record, name: str) -> None:
    """Refuse a last epsilon that the accountant does not give."""
    if not record.entries or record.header.not_counted:
        return
    *_, before, last = (0.0, *(entry.epsilon for entry in record.entries))
    counted = max(before, record.header.epsilon_after(record.steps))
    if not math.isclose(last, counted, rel_tol=SAME):
        raise LedgerDamaged(
            f"{name}, line {len(record.entries) + 1}: states epsilon {last!r}, but the accountant gives "
            f"{counted!r}"
        )


def whole_lines(data: bytes) -> bytes:
    """Return a file up to its last newline: no step is taken before the newline of its line is written."""
    return data[: data.rfind(b"\n") + 1]


def verify(data: bytes, name: str) -> Record:
    """Return the record in the bytes of a ledger; a last line without its newline reserved nothing.

    Args:
        data: the whole file.
        name: of the file, for messages.

    Raises:
        LedgerDamaged: a line is not the one that was written; the message names it.
    """
    first, *lines = whole_lines(data).split(b"\n")
    if not lines:  # the opening line is put in place whole, so that no kill leaves half of it
        raise LedgerDamaged(f"{name}, line 1: the opening line is not complete")
    opening, entries = _opening(first, f"{name}, line 1"), []
    for number, raw in enumerate(lines[:-1], 2):
        last = entries[-1] if entries else None
        entries.append(_entry(raw, f"{name}, line {number}", opening, last))
    record = Record(opening.header, opening.opening, tuple(entries))
    _require_epsilon(record, name)
    return record
