"""Jobs side by side on the machine's cores, in processes that end when their parent does."""

import concurrent.futures
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator, Sequence

from privhelpers import validate


def _end_with_parent() -> None:
    """End this process when its parent is gone: a killed notebook leaves nobody computing."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()


def _on_one_thread(function: Callable, job: tuple) -> object:
    import torch  # late, so that reading this module stays cheap

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return function(*job)
    finally:
        torch.set_num_threads(threads)


def side_by_side(
    function: Callable, jobs: Sequence[tuple], *, processes: int = 1
) -> Iterator[tuple[int, object]]:
    """Call `function(*job)` for every job and yield its number and its result as soon as it is done.

    Every job gets one thread of torch, so a result does not depend on the number of processes.

    Args:
        function: of a module, not of a notebook: other processes import it by its name.
        jobs: arguments of the calls.
        processes: jobs at the same time, 1 or more; 1 stays in this process, in the order of `jobs`.
    """
    validate.positive_int(processes=processes)
    if min(processes, len(jobs)) <= 1:
        yield from ((number, _on_one_thread(function, job)) for number, job in enumerate(jobs))
        return
    # A fresh interpreter each: a forked copy of a process that has used torch's threads can hang.
    context = multiprocessing.get_context("spawn")
    pool = concurrent.futures.ProcessPoolExecutor(
        min(processes, len(jobs)), context, initializer=_end_with_parent
    )
    with pool:
        numbers = {pool.submit(_on_one_thread, function, job): number for number, job in enumerate(jobs)}
        try:
            for done in concurrent.futures.as_completed(numbers):
                yield numbers[done], done.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
