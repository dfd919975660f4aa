"""Jobs side by side in processes that end when their parent does, and locks that end with their process."""

import concurrent.futures.process
import contextlib
import fcntl
import functools
import gc
import itertools
import math
import multiprocessing
import multiprocessing.connection
import multiprocessing.forkserver
import multiprocessing.util
import os
import resource
import signal
import stat
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import psutil

from privhelpers import validate
from privhelpers.errors import ConfinedFailed, InvalidParameter, PrivHelpersError, RunFailed
from privhelpers.text import quoted

_SERVED = multiprocessing.get_context("forkserver")
_CONFINED, _ASKED_AGAIN = "confined", 97  # name of such a process, and its exit code where it asks for one
_PATIENCE = 600  # seconds for a call that uses no time, as one that waits for a device does


def _end_with_parent() -> None:
    """End this process when its parent is gone: a killed notebook leaves nobody computing."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute on one thread meanwhile: several may add in another order, and round otherwise."""
    import torch  # late, so that reading this module stays cheap

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _on_one_thread(function: Callable, job: tuple) -> object:
    with one_thread():
        return function(*job)


def side_by_side(
    function: Callable, jobs: Sequence[tuple], *, processes: int = 1, names: Sequence[str] = ()
) -> Iterator[tuple[int, object]]:
    """Call `function(*job)` for every job and yield its number and its result as soon as it is done.

    Every job gets one thread of torch, so a result does not depend on the number of processes.

    Args:
        function: of a module, not of a notebook: other processes import it by its name.
        jobs: arguments of the calls.
        processes: jobs at the same time, 1 or more; 1 stays in this process, in the order of `jobs`.
        names: of the jobs, for the message about one that was lost; by default their numbers.

    Raises:
        RunFailed: a process ended without a result; the message says what it may have been at.
    """
    processes = validate.positive_int(processes=processes)
    if min(processes, len(jobs)) <= 1:
        yield from ((number, _on_one_thread(function, job)) for number, job in enumerate(jobs))
        return
    # A fresh interpreter each: a forked copy of a process that has used torch's threads can hang.
    context = multiprocessing.get_context("spawn")
    pool = concurrent.futures.ProcessPoolExecutor(
        min(processes, len(jobs)), context, initializer=_end_with_parent
    )
    waiting = iter(enumerate(jobs))
    running: dict[concurrent.futures.Future, int] = {}
    with pool:
        try:
            while True:
                # As many jobs as processes, so that those under way are known.
                for number, job in itertools.islice(waiting, processes - len(running)):
                    running[pool.submit(_on_one_thread, function, job)] = number
                if not running:
                    return
                done, _ = concurrent.futures.wait(running, return_when=concurrent.futures.FIRST_COMPLETED)
                for future in sorted(done, key=lambda one: one.exception() is not None):
                    result = future.result()
                    yield running.pop(future), result
        except concurrent.futures.process.BrokenProcessPool:
            lost = [names[n] if names else f"job {n + 1} of {len(jobs)}" for n in sorted(running.values())]
            raise RunFailed(
                f"a process ended before its result ({' or '.join(lost) or 'between two jobs'}), most likely "
                "because memory ran out: free some, or compute on fewer processes, and run it again; "
                "what is complete and kept is not repeated"
            ) from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _serve(connection: multiprocessing.connection.Connection, make: Callable, memory: int) -> None:
    """Answer the calls of a `Confined`, within its bounds, until its connection is closed.

    `make` comes as an argument, so that its module is imported before the bounds hold: the server imports
    that of the first `Confined` alone.
    """
    gc.freeze()  # what was forked is not looked through, so that its memory stays shared with the server
    _end_with_parent()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, and this process ends with it
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (1, 2):  # what a library says when it panics is no message of ours
        os.dup2(nowhere, standard)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    wanted = psutil.Process().memory_info().vms + memory
    resource.setrlimit(resource.RLIMIT_AS, (wanted if most < 0 else min(wanted, most), most))
    confined: object = None
    while True:
        try:
            method, arguments, seconds = connection.recv()
        except EOFError:
            return
        _, most = resource.getrlimit(resource.RLIMIT_CPU)
        if seconds is not None:
            limit = math.ceil(time.process_time() + seconds)
        resource.setrlimit(resource.RLIMIT_CPU, (limit if most < 0 else min(limit, most), most))
        try:
            answer: object = None
            if confined is None:
                confined = make(*arguments)
            else:
                answer = getattr(confined, method)(*arguments)
            connection.send((None, answer))
        except PrivHelpersError as error:
            connection.send((type(error), str(error)))
        except BaseException as error:  # a panic of Rust is no `Exception`
            connection.send((ConfinedFailed, quoted(f"{type(error).__name__}: {error}", 250)))


def _kill(process: multiprocessing.Process, connection: multiprocessing.connection.Connection) -> None:
    connection.close()
    process.kill()
    process.join()


def _end_server() -> None:
    """Kill the server: while it still imports, whoever reads what this process printed waits for it, too."""
    server = getattr(multiprocessing.forkserver._forkserver, "_forkserver_pid", None)
    if server is not None:  # our child that nobody waited for, so that its number is no other's
        with contextlib.suppress(OSError):
            os.kill(server, signal.SIGKILL)
            os.waitpid(server, 0)


@functools.cache
def _server_ends_with_this_process() -> None:
    multiprocessing.util.Finalize(None, _end_server, exitpriority=-100)  # last: it waits for its children


def prepare(module: str) -> None:
    """Start the server of confined processes, which imports a module meanwhile; later calls do nothing.

    It imports and computes nothing else: unlike a process at work, it can be forked safely. It ends with this
    process, after every process that it forked.

    Raises:
        InvalidParameter: the folder of temporary files cannot hold its socket, for its name is too long.
    """
    if multiprocessing.current_process().name == _CONFINED:  # it imports the script, which asks once more
        os._exit(_ASKED_AGAIN)
    _SERVED.set_forkserver_preload([module])
    try:
        multiprocessing.forkserver.ensure_running()
    except OSError as error:
        raise InvalidParameter(
            f"TMPDIR={tempfile.gettempdir()[:100]!r}: no socket can be made there ({error}); set TMPDIR to a "
            "folder with a shorter name that can be written to, such as /tmp"
        ) from error
    _server_ends_with_this_process()


class Confined:
    """An object that strangers gave, in a process of its own, with bounds on memory and processor time.

    A panic, an abort, a hang or a flood there ends that process alone and is an error here. The bound of time
    counts the processor's seconds, so that a busy machine refuses nothing.
    """

    def __init__(self, make: Callable, *arguments: object, memory: int, seconds: float) -> None:
        """Call `make(*arguments)` in a new process and keep what it returns there.

        Args:
            make: a class or function of a module; its module is imported once for all such processes.
            arguments: what `pickle` takes.
            memory: bytes of addresses that the process may take beyond what it starts with.
            seconds: processor time for `make`.

        Raises:
            ConfinedFailed: it ended, broke a bound, or raised an error that is none of ours.
            InvalidParameter: the script at work has no `if __name__ == "__main__":` above its calls.
        """
        prepare(make.__module__)
        self._connection, other = _SERVED.Pipe()
        self._process = _SERVED.Process(
            target=_serve, name=_CONFINED, args=(other, make, memory), daemon=True
        )
        self._process.start()
        other.close()
        self._end = weakref.finalize(self, _kill, self._process, self._connection)
        self._ask(None, arguments, seconds)

    def ask(self, method: str, *arguments: object, seconds: float | None) -> object:
        """Return what a method of the object returns.

        Args:
            method: its name.
            arguments: what `pickle` takes.
            seconds: processor time for the call; None: what is left of an earlier one's.

        Raises:
            ConfinedFailed: as above; after it, every further call fails.
        """
        return self._ask(method, arguments, seconds)

    def _ask(self, method: str | None, arguments: tuple, given: float | None) -> object:
        if not self._end.alive:
            raise ConfinedFailed("it was ended by an earlier failure")
        seconds = self._seconds = self._seconds if given is None else given
        try:
            self._connection.send((method, arguments, given))
            if not self._connection.poll(
                _PATIENCE + 20 * seconds
            ):  # it waits for something, and uses no time
                raise EOFError
            error, answer = self._connection.recv()
        except (EOFError, OSError):
            self._process.join(timeout=1)
            code = self._process.exitcode
            self._end()
            if code == _ASKED_AGAIN:
                raise InvalidParameter(
                    'the script at work: put its calls under `if __name__ == "__main__":`; what others '
                    "gave is opened in another process, which imports the script and must not start it again"
                ) from None
            raise ConfinedFailed(_reason(code, seconds)) from None
        except BaseException:  # Ctrl-C: an answer to this call would be taken for the next one's
            self._end()
            raise
        if error is not None:
            self._end()
            raise error(answer)
        return answer


def _reason(code: int | None, seconds: float) -> str:
    """Return in words how a confined process ended."""
    if code is None:
        return f"it did not answer within {_PATIENCE + 20 * seconds:.0f} seconds"
    if code == -signal.SIGXCPU:
        return f"it took more than {seconds:.0f} seconds of processor time"
    how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return f"it ended with {how}, as libraries do that get no more memory"


def open_regular(path: Path, flags: int) -> int:
    """Return a descriptor of a regular file: never through a link, and never waiting for a pipe.

    Args:
        path: of the file.
        flags: as of `os.open`.

    Raises:
        InvalidParameter: the path is a folder, a device or a pipe.
        OSError: the system refuses; ELOOP says that the path is a symbolic link.
    """
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o644)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise InvalidParameter(f"{path.name}: is not a regular file")
    return descriptor


def is_at(path: Path, descriptor: int) -> bool:
    """Tell whether the file at `path` is the one behind an open descriptor."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


class Lock:
    """A lock file that one process at a time holds, until it calls `release`.

    The system lets go of it when the process ends, however it ends, so that a file which a dead process
    left is no obstacle.
    """

    def __init__(self, path: Path, what: str, *, busy: type[PrivHelpersError], wait: float = 0.0) -> None:
        """Take the lock.

        Args:
            path: the lock file; its folder is made if needed, and releasing the lock removes the file.
            what: what is locked, for the message.
            busy: the error where another process holds it; the message says which and since when.
            wait: seconds to wait for a holder that is about to end, 0 or more.

        Raises:
            OSError: the system refuses the file.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        deadline = time.monotonic() + wait
        while True:
            descriptor = open_regular(path, os.O_RDWR | os.O_CREAT)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                holder = os.pread(descriptor, 100, 0).decode(errors="replace").strip() or "another process"
                os.close(descriptor)
                if not isinstance(error, BlockingIOError):
                    raise
                if time.monotonic() >= deadline:
                    message = f"{what} is in use by {holder}: wait until it ends, or stop it"
                    raise busy(message) from None
                time.sleep(0.2)
                continue
            try:
                held = is_at(path, descriptor)
            except BaseException:  # memory ran out: nothing may stay locked that nobody can release
                os.close(descriptor)
                raise
            if held:
                break
            os.close(descriptor)  # its holder removed it after we had opened it: that one locks nothing
        try:
            os.ftruncate(descriptor, 0)
            now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
            os.pwrite(descriptor, f"process {os.getpid()}, since {now}\n".encode(), 0)
        except (OSError, MemoryError):  # only the message to another process needs it
            pass
        self._path, self._descriptor = path, descriptor

    def release(self) -> None:
        """Remove the lock while we hold it, so that no copy of the descriptor in a forked child matters."""
        try:
            if is_at(self._path, self._descriptor):
                with contextlib.suppress(OSError):  # it is no obstacle
                    self._path.unlink()
        finally:
            os.close(self._descriptor)
