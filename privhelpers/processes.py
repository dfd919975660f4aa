"""Jobs side by side in processes that end when their parent does, and locks that end with their process."""

import concurrent.futures.process
import contextlib
import fcntl
import itertools
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from privhelpers import validate
from privhelpers.errors import PrivHelpersError, RunFailed


def _end_with_parent() -> None:
    """End this process when its parent is gone: a killed notebook leaves no process computing."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute on one thread: several may add in another order, and round otherwise."""
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
        RunFailed: a process ended without a result; the message names its likely job.
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


def is_at(path: Path, descriptor: int) -> bool:
    """Return whether the file at `path` is the one behind an open descriptor."""
    try:
        return os.path.samestat(path.lstat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False


class Lock:
    """A lock file that one process at a time holds, until it calls `release`.

    The system lets go of it when the process ends, however it ends, so a file that a dead
    process left does not block.
    """

    def __init__(self, path: Path, what: str, *, busy: type[PrivHelpersError], wait: float = 0.0) -> None:
        """Take the lock.

        Args:
            path: the lock file; its folder is made if needed, and releasing the lock removes the file.
            what: what is locked, for the message.
            busy: the error if another process holds it; the message names the process and since when.
            wait: seconds to wait for a holder that is about to end, 0 or more.

        Raises:
            OSError: the system refuses the file.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        deadline = time.monotonic() + wait
        while True:
            file = open(path, "a+")  # noqa: SIM115 - open as long as it is locked
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if is_at(path, file.fileno()):
                    break
                # Its holder removed it after we had opened it: this one locks nothing.
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    file.seek(0)
                    holder = file.read(100).strip() or "another process"
                    raise busy(f"{what} is in use by {holder}: wait until it ends, or stop it") from None
                time.sleep(0.2)
            file.close()
        file.truncate(0)
        file.write(f"process {os.getpid()}, since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC\n")
        file.flush()
        self._path, self._file = path, file

    def release(self) -> None:
        """Remove the lock while we hold it, so that no copy of the descriptor in a forked child matters."""
        if is_at(self._path, self._file.fileno()):
            self._path.unlink()
        self._file.close()
