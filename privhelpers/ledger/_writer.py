"""One process at a time adds to a ledger; any may read it.

The lock is a file beside the ledger; closing the ledger removes it.
"""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from privhelpers import artifacts, processes, validate
from privhelpers.errors import (
    ArtifactUnavailable,
    BudgetExceeded,
    InvalidParameter,
    LedgerDamaged,
    LedgerInUse,
    LedgerUnavailable,
    MissingArtifact,
    PrivHelpersError,
    ResumeRefused,
)
from privhelpers.ledger import _chain
from privhelpers.ledger._chain import Entry, Record
from privhelpers.ledger._terms import Terms

MOST_BYTES = 1 << 26  # a quarter of a million lines, read in seconds


@contextmanager
def _disk(name: str) -> Iterator[None]:
    """Turn what the system refuses into an error of ours; the message names the file, not its folder."""
    try:
        yield
    except ArtifactUnavailable as error:
        raise LedgerUnavailable(error.strerror) from error
    except PrivHelpersError:
        raise
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise InvalidParameter(f"{name}: is a symbolic link; a ledger must be a file") from error
        raise LedgerUnavailable(f"{name}: {error.strerror or error}") from error


def _bytes(path: Path) -> bytes:
    with open(processes.open_regular(path, os.O_RDONLY), "rb") as handle:
        data = handle.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise LedgerDamaged(f"{path.name}: has more than {MOST_BYTES:,} bytes, and no ledger grows so long")
    return data


def _put(path: Path, data: bytes) -> None:
    """Put the whole ledger in place, so that a kill leaves the old one or the new one."""
    artifacts.write_atomic(path, data)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _put_aside(path: Path) -> None:
    """Rename a ledger to the first free one of ledger-1.jsonl, ledger-2.jsonl, ...; the lock is held."""
    number = 1
    while os.path.lexists(aside := path.with_name(f"{path.stem}-{number}{path.suffix}")):
        number += 1
    path.rename(aside)


def _settled(path: Path, terms: Terms, clear: Callable[[], None] | None) -> tuple[int, Record]:
    """Return size and record of the ledger at `path`, made or mended if needed; the lock is held."""
    try:
        data = _bytes(path)
    except FileNotFoundError:
        data = _chain.opening_line(terms)
        _put(path, data)
    record = _chain.verify(data, path.name)
    if differences := record.terms.differences(terms):
        if clear is None:
            raise ResumeRefused(f"{path.name} was opened under other terms: {'; '.join(differences)}")
        clear()
        _put_aside(path)
        return _settled(path, terms, None)
    if not data.endswith(b"\n"):
        data, record = _chain.mended(record, data)
        _put(path, data)
    return len(data), record


def open_ledger(path: Path | str, terms: Terms, *, clear: Callable[[], None] | None = None) -> "Ledger":
    """Open the ledger of a run for writing: a new one, or the verified one that is there.

    An unfinished last line, which a kill or a full disk can leave, is counted as spent by a "torn" entry.

    Args:
        path: of the file; its folder is made if needed.
        terms: of the run. They must fit their budget, and be those that an existing ledger sealed.
        clear: removes what belongs to a ledger of other terms, which is then put aside under a name of its
            own, all while no other process can open it; None: such a ledger is refused.

    Raises:
        BudgetExceeded: the planned steps do not fit the budget; nothing was touched.
        LedgerInUse: another process, which the message names, has it open.
        ResumeRefused: it was opened under other terms; the message names what differs.
        LedgerDamaged: a line is not the one that was written.
        LedgerUnavailable: the system refuses to read or write it.
        InvalidParameter: `path` is a symbolic link, or no file.

    Source: Rogers, Roth, Ullman and Vadhan 2016 (privacy filters).
    """
    terms.require_budget()
    path = Path(path)
    with _disk(path.name), ExitStack() as undo:
        lock = processes.Lock(path.with_name(path.name + ".lock"), path.name, busy=LedgerInUse)
        undo.callback(lock.release)
        size, record = _settled(path, terms, clear)
        ledger = Ledger(path, record, size, processes.open_regular(path, os.O_WRONLY | os.O_APPEND), lock)
        undo.pop_all()
        return ledger


def read_ledger(path: Path | str) -> Record:
    """Return what a ledger says, verified; it may be open elsewhere.

    Args:
        path: of the file.

    Raises:
        MissingArtifact: it is not there.
        LedgerDamaged: a line is not the one that was written; the message names it.
        LedgerUnavailable: the system refuses to read it.
        InvalidParameter: `path` is a symbolic link, or no file.
    """
    path = Path(path)
    with _disk(path.name):
        try:
            data = _bytes(path)
        except FileNotFoundError:
            raise MissingArtifact(f"{path.name}: no ledger is there; `open_ledger` makes one") from None
    return _chain.verify(data, path.name)


class Ledger:
    """An open ledger, made by `open_ledger`; a context manager that closes it.

    Attributes:
        record: what it says so far; the other attributes are those of the record.
    """

    def __init__(self, path: Path, record: Record, size: int, descriptor: int, lock: processes.Lock) -> None:
        """Take over the descriptors of a verified file of `size` bytes and of its lock."""
        self.record = record
        self._path, self._size = path, size
        self._descriptor, self._lock = descriptor, lock
        self._open = self._writable = True

    def __enter__(self) -> "Ledger":
        """Return the ledger."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the ledger."""
        self.close()

    @property
    def terms(self) -> Terms:
        """The sealed settings of the run."""
        return self.record.terms

    @property
    def steps(self) -> int:
        """Steps reserved so far."""
        return self.record.steps

    @property
    def epsilon(self) -> float | None:
        """Epsilon of the steps reserved so far, in nats; None where a part of the run is not counted."""
        return self.record.epsilon

    @property
    def remaining(self) -> int:
        """Planned steps that are not reserved yet."""
        return self.record.remaining

    @property
    def head(self) -> str:
        """Hash of the last line: what a checkpoint keeps."""
        return self.record.head

    def contains(self, head: str) -> bool:
        """Tell whether this ledger once ended with the line of hash `head`."""
        return self.record.contains(head)

    def require(self, head: str) -> None:
        """Refuse a ledger that does not continue the one a checkpoint was written under, as `Record` does."""
        self.record.require(head)

    def reserve(self, steps: int) -> Entry:
        """Count `steps` steps as spent, on the device, before any of them is taken.

        Args:
            steps: 1 or more.

        Raises:
            InvalidParameter: `steps` is no whole number of 1 or more.
            BudgetExceeded: the plan, which is what fits the budget, has fewer left; nothing was written.
            LedgerDamaged: the file was changed, removed or replaced while it was open.
            LedgerUnavailable: it is closed, or the system did not write the whole line (a full disk). No step
                may be taken; the next opening counts the unfinished line as spent.

        Source: Rogers, Roth, Ullman and Vadhan 2016 (privacy filters).
        """
        steps = validate.positive_int(steps=steps)
        if steps > self.remaining:
            raise BudgetExceeded(
                f"steps = {steps}: {self.steps} of the {self.terms.steps} planned steps are reserved, and "
                f"only the plan is known to fit target_epsilon = {self.terms.target_epsilon:g}"
            )
        line, entry = _chain.next_line(self.record, "reserve", steps)
        self._append(line)
        self.record = self.record.extended(entry)
        return entry

    def _append(self, line: bytes) -> None:
        if not self._writable:
            raise LedgerUnavailable(f"{self._path.name}: is closed, or its last write failed; open it again")
        self._writable = False  # until the device has the whole line
        with _disk(self._path.name):
            self._require_unchanged()
            if self._size + len(line) > MOST_BYTES:
                raise LedgerUnavailable(f"{self._path.name}: is full; reserve more steps at once")
            self._size += len(line)
            while line:
                line = line[os.write(self._descriptor, line) :]
            os.fsync(self._descriptor)
        self._writable = True

    def _require_unchanged(self) -> None:
        """Refuse to go on if another hand touched the file: the lock only binds those that ask for it."""
        same = processes.is_at(self._path, self._descriptor)
        if not same or os.fstat(self._descriptor).st_size != self._size:
            raise LedgerDamaged(f"{self._path.name}: was changed, replaced or removed while it was open")

    def close(self) -> None:
        """Let go of the file and of the lock; closing twice is harmless."""
        if self._open:
            self._open = self._writable = False
            os.close(self._descriptor)
            self._lock.release()
