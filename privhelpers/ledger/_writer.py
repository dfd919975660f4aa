"""One process at a time adds to a ledger; any may read it.

The lock is a file beside the ledger; closing the ledger removes it.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from privhelpers import artifacts, processes, validate
from privhelpers.errors import (
    ArtifactUnavailable,
    BudgetExceeded,
    LedgerInUse,
    LedgerUnavailable,
    MissingArtifact,
    PrivHelpersError,
    ResumeRefused,
)
from privhelpers.ledger import _chain
from privhelpers.ledger._chain import Entry, Record
from privhelpers.ledger._terms import Terms


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
        raise LedgerUnavailable(f"{name}: {error.strerror or error}") from error


def _put(path: Path, data: bytes) -> None:
    """Put the whole ledger in place, so that a kill leaves the old one or the new one."""
    artifacts.write_atomic(path, data)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def open_ledger(path: Path | str, terms: Terms) -> "Ledger":
    """Open the ledger of a run for writing: a new one, or the verified one that is there.

    An unfinished last line, which a kill or a full disk can leave, is removed: it was to be whole on the
    device before a step of it was taken.

    Args:
        path: of the file; its folder is made if needed.
        terms: of the run. They must fit their budget, and be those that an existing ledger sealed.

    Raises:
        BudgetExceeded: the planned steps do not fit the budget; nothing was touched.
        LedgerInUse: another process, which the message names, has it open.
        ResumeRefused: it was opened under other terms; the message names what differs.
        LedgerDamaged: a line is not the one that was written.
        LedgerUnavailable: the system refuses to read or write it.

    Source: Rogers, Roth, Ullman and Vadhan 2016 (privacy filters).
    """
    terms.require_budget()
    path = Path(path)
    with _disk(path.name), ExitStack() as undo:
        lock = processes.Lock(path.with_name(path.name + ".lock"), path.name, busy=LedgerInUse)
        undo.callback(lock.release)
        if not path.exists():
            _put(path, _chain.opening_line(terms))
        data = path.read_bytes()
        record = _chain.verify(data, path.name)
        if differences := record.terms.differences(terms):
            raise ResumeRefused(f"{path.name} was opened under other terms: {'; '.join(differences)}")
        if (whole := _chain.whole_lines(data)) != data:
            _put(path, whole)
        ledger = Ledger(path, record, os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC), lock)
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
    """
    path = Path(path)
    with _disk(path.name):
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise MissingArtifact(f"{path.name}: no ledger is there; `open_ledger` makes one") from None
    return _chain.verify(data, path.name)


class Ledger:
    """An open ledger, made by `open_ledger`; a context manager that closes it.

    Attributes:
        record: what it says so far; the other attributes are those of the record.
    """

    def __init__(self, path: Path, record: Record, descriptor: int, lock: processes.Lock) -> None:
        """Take over the descriptors of a verified file and of its lock."""
        self.record = record
        self._path, self._descriptor, self._lock = path, descriptor, lock
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
            LedgerUnavailable: it is closed, or the system did not write the whole line (a full disk). No step
                may be taken.

        Source: Rogers, Roth, Ullman and Vadhan 2016 (privacy filters).
        """
        steps = validate.positive_int(steps=steps)
        if steps > self.remaining:
            raise BudgetExceeded(
                f"steps = {steps}: {self.steps} of the {self.terms.steps} planned steps are reserved, and "
                f"only the plan is known to fit target_epsilon = {self.terms.target_epsilon:g}"
            )
        if not self._writable:
            raise LedgerUnavailable(f"{self._path.name}: is closed, or its last write failed; open it again")
        line, entry = _chain.next_line(self.record, steps)
        self._writable = False  # until the device has the whole line
        with _disk(self._path.name):
            while line:
                line = line[os.write(self._descriptor, line) :]
            os.fsync(self._descriptor)
        self._writable = True
        entries = (*self.record.entries, entry)
        self.record = Record(self.terms, self.record.opening, entries)
        return entry

    def close(self) -> None:
        """Let go of the file and of the lock; closing twice is harmless."""
        if self._open:
            self._open = self._writable = False
            os.close(self._descriptor)
            self._lock.release()
