"""An injected file layer: counts what reaches the system, and fails, waits, or kills, at one such moment."""

import errno
import io
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from unittest import mock

FULL, FAILING, READ_ONLY, KILL, SLOW = "disk full", "device fails", "read-only", "kill", "slow disk"
_NUMBER = {FULL: errno.ENOSPC, FAILING: errno.EIO, READ_ONLY: errno.EROFS}
# Calls that change names; a full disk still renames and removes.
_ALL = ("replace", "rename", "unlink", "mkdir")
_NAMES = {FULL: ("mkdir",), FAILING: _ALL, READ_ONLY: _ALL, KILL: _ALL, SLOW: _ALL}
_write, _fsync = os.write, os.fsync


class Layer:
    """Counts the moments at which bytes, names or flushes reach the system; one of them goes wrong.

    Attributes:
        calls: name of the call at each moment so far.
        at: number of the one that goes wrong, from 1; 0: none.
        kind: what happens then.
        lasting: whether everything after it goes wrong too.
        share: part of the bytes of a write that still arrives, or arrives before the others.
        pause: seconds that a slow disk takes.
    """

    def __init__(
        self,
        kind: str = KILL,
        at: int = 0,
        *,
        lasting: bool = False,
        share: float = 0.5,
        pause: float = 0.0,
    ) -> None:
        self.calls: list[str] = []
        self.at, self.kind, self.lasting, self.share, self.pause = at, kind, lasting, share, pause

    def _moment(self, call: str) -> bool:
        self.calls.append(call)
        count = len(self.calls)
        return bool(self.at) and (count == self.at or (self.lasting and count > self.at))

    def _fail(self) -> None:
        if self.kind == KILL:
            os.kill(os.getpid(), signal.SIGKILL)
        if self.kind == SLOW:
            time.sleep(self.pause)
            return
        number = _NUMBER[self.kind]
        raise OSError(number, os.strerror(number))

    def write(self, descriptor: int, data: bytes) -> int:
        done = 0
        if self._moment("write"):
            if self.kind != READ_ONLY and (some := bytes(data[: int(self.share * len(data))])):
                done = _write(descriptor, some)
            self._fail()
        return done + _write(descriptor, data[done:])

    def fsync(self, descriptor: int) -> None:
        if self._moment("fsync"):
            self._fail()
        _fsync(descriptor)

    def before(self, usual: Callable) -> Callable:
        def called(*given: object, **named: object) -> object:
            if self._moment(usual.__name__):
                self._fail()
            return usual(*given, **named)

        return called

    def opened(self, usual: Callable) -> Callable:
        """Return an `os.fdopen` whose files write to the system at once, in two pieces, through here."""

        def fdopen(descriptor: int, mode: str = "r", *rest: object, **named: object) -> object:
            return _Raw(descriptor, self) if mode == "wb" else usual(descriptor, mode, *rest, **named)

        return fdopen


class _Raw(io.FileIO):
    def __init__(self, descriptor: int, layer: Layer) -> None:
        super().__init__(descriptor, "wb")
        self._layer = layer

    def write(self, data: bytes) -> int:
        left = memoryview(data)
        for piece in (left[: len(left) // 2], left[len(left) // 2 :]):
            done = 0
            while done < len(piece):
                done += self._layer.write(self.fileno(), piece[done:])
        return len(left)


@contextmanager
def injected(layer: Layer) -> Iterator[Layer]:
    """Let every write, flush, new name and removal of this process pass through a layer."""
    with mock.patch.multiple(
        os,
        write=layer.write,
        fsync=layer.fsync,
        fdopen=layer.opened(os.fdopen),
        **{name: layer.before(getattr(os, name)) for name in _NAMES[layer.kind]},
    ):
        yield layer


def survived(work: Callable[[], None]) -> bool:
    """Do some work in a forked child that a layer may kill; return whether it came to its end."""
    pid = os.fork()
    if not pid:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        return False
    if status:
        raise RuntimeError(f"the work ended with status {status} before it was killed")
    return True
