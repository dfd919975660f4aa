"""One process at a time adds to a ledger; any may read it. The lock is on the file itself."""

import fcntl
import os
from pathlib import Path

from privhelpers import artifacts, validate
from privhelpers.errors import (
    ArtifactUnavailable,
    BudgetExceeded,
    LedgerInUse,
    MissingArtifact,
    ResumeRefused,
)
from privhelpers.ledger import _chain
from privhelpers.ledger._chain import Entry, Record
from privhelpers.ledger._header import Header


def open_ledger(path: Path | str, header: Header) -> "Ledger":
    """Open the ledger of a run for writing: a new one, or the verified one that is there.

    An unfinished last line, which a kill or a full disk can leave, is removed: a line is whole on the device
    before a step of it is taken.

    Args:
        path: of the file; its folder is made if needed.
        header: of the run. Its plan must fit its budget, and it must be the one that an existing ledger
            sealed.

    Raises:
        BudgetExceeded: the planned steps do not fit the budget; nothing was touched.
        LedgerInUse: another process has it open.
        ResumeRefused: it was opened under another header; the message names what differs.
        LedgerDamaged: a line is not the one that was written.
        ArtifactUnavailable: the system refuses to read or write it.

    Source: Rogers, Roth, Ullman and Vadhan 2016 (privacy filters).
    """
    header.plan.require_budget()
    path = Path(path)
    with artifacts.writing(path):
        if not path.exists():
            artifacts.write_atomic(path, _chain.opening_line(header), new=True)
        descriptor = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # until `close`, or the process ends
            except BlockingIOError:
                raise LedgerInUse(
                    f"{path.name} is in use by another process: wait until it ends, or stop it"
                ) from None
            data = path.read_bytes()
            record = _chain.verify(data, path.name)
            if differences := record.header.differences(header):
                raise ResumeRefused(f"{path.name} was opened under other terms: {'; '.join(differences)}")
            if len(whole := _chain.whole_lines(data)) != len(data):
                os.ftruncate(descriptor, len(whole))
                os.fsync(descriptor)
        except BaseException:
            os.close(descriptor)
            raise
        return Ledger(path, record, descriptor)


def read_ledger(path: Path | str) -> Record:
    """Return the verified content of a ledger; it may be open elsewhere.

    Args:
        path: of the file.

    Raises:
        MissingArtifact: it is not there.
        LedgerDamaged: a line is not the one that was written; the message names it.
        ArtifactUnavailable: the system refuses to read it.
    """
    path = Path(path)
    with artifacts.writing(path):
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise MissingArtifact(f"{path.name}: no ledger is there; `open_ledger` makes one") from None
    return _chain.verify(data, path.name)


class Ledger:
    """An open ledger, made by `open_ledger`; a context manager that closes it.

    Attributes:
        record: its content so far.
    """

    def __init__(self, path: Path, record: Record, descriptor: int) -> None:
        """Take over the descriptor of a verified and locked file."""
        self.record = record
        self._path, self._descriptor = path, descriptor
        self._open = self._writable = True

    def __enter__(self) -> "Ledger":
        """Return the ledger."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the ledger."""
        self.close()

    def reserve(self, steps: int) -> Entry:
        """Count `steps` steps as spent, on the device, before any of them is taken.

        Args:
            steps: 1 or more.

        Raises:
            InvalidParameter: `steps` is not a whole number of 1 or more.
            BudgetExceeded: the plan, which is what fits the budget, has fewer left; nothing was written.
            ArtifactUnavailable: it is closed, or the system did not write the whole line (a full disk). No
                step may be taken.

        Source: Rogers, Roth, Ullman and Vadhan 2016 (privacy filters).
        """
        steps, record = validate.positive_int(steps=steps), self.record
        if steps > record.remaining:
            raise BudgetExceeded(
                f"steps = {steps}: {record.steps} of the {record.header.plan.steps} planned steps are "
                f"reserved, and only the plan is known to fit target_epsilon = "
                f"{record.header.plan.target_epsilon:g}"
            )
        if not self._writable:
            raise ArtifactUnavailable(
                f"{self._path.name}: is closed, or its last write failed; open it again"
            )
        line, entry = _chain.next_line(record, steps)
        self._writable = False  # until the device has the whole line
        with artifacts.writing(self._path):
            while line:
                line = line[os.write(self._descriptor, line) :]
            os.fsync(self._descriptor)
        self._writable = True
        self.record = Record(record.header, record.opening, (*record.entries, entry))
        return entry

    def close(self) -> None:
        """Let go of the file and of the lock; closing twice is harmless."""
        if self._open:
            self._open = self._writable = False
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)  # a forked child may have a copy of the descriptor
            os.close(self._descriptor)
