"""A ledger after kills, cuts, a full disk and a second writer: it never counts less than was done."""

import multiprocessing
import os
import random
import resource
import signal
import time

import pytest
from patience import LIMIT_SECONDS

from privhelpers.errors import (
    LedgerInUse,
    LedgerUnavailable,
    ResumeRefused,
)
from privhelpers.ledger import Terms, open_ledger, read_ledger

TERMS = Terms(
    run="crashing",
    target_epsilon=1e6,
    delta=1e-5,
    noise_multiplier=1.5,
    sample_rate=0.04,
    steps=1_000_000,
    max_grad_norm=1.0,
    accountant="rdp",
    mode="research",
    fingerprint={"data": "0" * 64, "parameters": "1" * 64, "code": "2" * 64},
)
MOST = 5  # steps in one reserve

PROCESSES = multiprocessing.get_context("forkserver")  # one import of the accountants for all that die
PROCESSES.set_forkserver_preload(["privhelpers.ledger", __name__])


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.jsonl"


def filled(path, *reserves, terms=TERMS):
    with open_ledger(path, terms) as ledger:
        for steps in reserves:
            ledger.reserve(steps)
    return path.read_bytes()


def run(target, *arguments):
    """Run a function in a process of its own and return its exit code."""
    process = PROCESSES.Process(target=target, args=arguments)
    process.start()
    process.join(LIMIT_SECONDS)
    code = process.exitcode
    process.kill()
    return code


def wait_until(condition):
    deadline = time.monotonic() + LIMIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "the other process does not come to it"
        time.sleep(0.001)


# Kills


def _train(path, finished, seed):
    chance, parent = random.Random(seed), os.getppid()
    with open_ledger(path, TERMS) as ledger, open(finished, "ab", buffering=0) as steps:
        while os.getppid() == parent:
            for _ in range(ledger.reserve(chance.randint(1, MOST)).steps):
                steps.write(b".")


def test_a_kill_at_any_moment_leaves_at_least_the_steps_that_were_taken(path, tmp_path):
    finished, chance, trials, head = tmp_path / "finished", random.Random(7), 6, None
    finished.touch()
    for trial in range(trials):
        before = finished.stat().st_size
        process = PROCESSES.Process(target=_train, args=(path, finished, trial))
        process.start()
        wait_until(lambda before=before: finished.stat().st_size > before)
        time.sleep(chance.uniform(0, 0.05))
        process.kill()
        process.join()
        assert process.exitcode == -signal.SIGKILL
        taken = finished.stat().st_size
        assert read_ledger(path).steps >= taken, "an entry was not written ahead of its steps"
        with open_ledger(path, TERMS) as ledger:
            # Each kill costs one reserve that was not used up.
            assert taken <= ledger.steps <= taken + (trial + 1) * MOST
            assert head is None or ledger.record.contains(head), "the chain was lost"
            head = ledger.head
    assert taken >= trials, "the trials did nothing"


def _die_after(path, size, steps):
    """Reserve, and be killed when `size` bytes of the line are written."""
    write = os.write

    def dying(descriptor, line):
        write(descriptor, line[:size])
        os.kill(os.getpid(), signal.SIGKILL)

    with open_ledger(path, TERMS) as ledger:
        os.write = dying
        ledger.reserve(steps)


def test_a_kill_inside_the_write_of_a_line(path, tmp_path):
    data = filled(path, 3, 3)
    length = len(filled(tmp_path / "longer.jsonl", 3, 3, 2)) - len(data)
    for size, steps in [(0, 6), (1, 6), (length // 2, 6), (length - 1, 6), (length, 8)]:
        path.write_bytes(data)
        assert run(_die_after, path, size, 2) == -signal.SIGKILL
        assert path.stat().st_size == len(data) + size
        with open_ledger(path, TERMS) as ledger:
            assert ledger.steps == steps, f"{size} of {length} bytes"


def _die_at_rename(path, when):
    replace = os.replace

    def dying(*names):
        if when == "after":
            replace(*names)
        os.kill(os.getpid(), signal.SIGKILL)

    os.replace = dying
    open_ledger(path, TERMS)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_while_an_unfinished_line_is_dropped_loses_no_other(path, when):
    data = filled(path, 4)
    path.write_bytes(data + b'{"content":{"eps')
    assert run(_die_at_rename, path, when) == -signal.SIGKILL
    assert read_ledger(path).steps == 4
    with open_ledger(path, TERMS) as ledger:
        assert ledger.steps == 4 and path.read_bytes() == data


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_while_a_ledger_is_made_leaves_none_or_a_whole_one(path, when):
    assert run(_die_at_rename, path, when) == -signal.SIGKILL
    assert path.exists() == (when == "after")
    assert filled(path, 4).count(b"\n") == 2


# Cuts


@pytest.mark.parametrize("reserves", [[7], [3, 5, 2]])
def test_a_last_line_that_is_cut_reserved_nothing(path, reserves):
    """`reserve` returns when the newline is on the device, so no step of a cut line was taken."""
    data, record = filled(path, *reserves), read_ledger(path)
    *before, line = data.splitlines(keepends=True)
    for cut in [*range(0, len(line), 5), len(line) - 1]:
        path.write_bytes(b"".join(before) + line[:cut])
        assert read_ledger(path).steps == sum(reserves[:-1])
        with open_ledger(path, TERMS) as ledger:
            assert path.read_bytes() == b"".join(before)
            with pytest.raises(ResumeRefused):  # by a checkpoint that was written under the whole line
                ledger.require(record.head)
            assert ledger.reserve(2).total_steps == sum(reserves[:-1]) + 2
        assert read_ledger(path).steps == sum(reserves[:-1]) + 2


# Writers


def _hold(path, ready):
    with open_ledger(path, TERMS) as ledger:
        ledger.reserve(1)
        ready.touch()
        time.sleep(LIMIT_SECONDS)


def test_a_second_writer_is_refused_and_a_dead_one_is_no_obstacle(path, tmp_path):
    ready = tmp_path / "ready"
    process = PROCESSES.Process(target=_hold, args=(path, ready))
    process.start()
    try:
        wait_until(ready.exists)
        with pytest.raises(LedgerInUse, match=f"process {process.pid}, since .*: wait"):
            open_ledger(path, TERMS)
        assert process.is_alive(), "refused at once, not after the other had ended"
        assert read_ledger(path).steps == 1
    finally:
        process.kill()
        process.join()
    lock = path.with_name("ledger.jsonl.lock")
    assert lock.read_text().startswith(f"process {process.pid}, since "), "what the dead process left"
    lock.write_text("process 99999999999999\n")
    with open_ledger(path, TERMS) as ledger:
        assert ledger.reserve(1).total_steps == 2
        assert lock.read_text().startswith(f"process {os.getpid()}, since ")


# Disks


def _limit(size):
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def _reserve_on_a_full_disk(path, room):
    with open_ledger(path, TERMS) as ledger:
        _limit(path.stat().st_size + room)
        for words in ("File too large", "open it again"):
            with pytest.raises(LedgerUnavailable, match=words):
                ledger.reserve(2)
        assert ledger.steps == 4, "a reserve that failed allows no step"


@pytest.mark.parametrize("room", [0, 100])
def test_a_full_disk_refuses_the_step(path, room):
    data = filled(path, 4)
    assert run(_reserve_on_a_full_disk, path, room) == 0
    assert path.stat().st_size == len(data) + room
    with open_ledger(path, TERMS) as ledger:
        assert ledger.steps == 4 and ledger.reserve(2).total_steps == 6
