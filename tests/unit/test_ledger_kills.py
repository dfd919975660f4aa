"""A ledger after kills, cuts, a full disk and a second writer: it never counts less than was done."""

import json
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
            # Each kill costs one reserve that was not used up, and one that was torn.
            assert taken <= ledger.steps <= taken + (trial + 1) * 2 * MOST
            assert head is None or ledger.contains(head), "the chain was lost"
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
    for size, steps in [(0, 6), (1, 9), (length // 2, 9), (length - 2, 9), (length - 1, 8), (length, 8)]:
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
def test_a_kill_while_an_unfinished_line_is_counted_counts_it_once(path, when):
    data = filled(path, 4)
    path.write_bytes(data + b'{"content":{"eps')
    assert run(_die_at_rename, path, when) == -signal.SIGKILL
    assert read_ledger(path).steps == (8 if when == "after" else 4)
    for _ in range(2):
        with open_ledger(path, TERMS) as ledger:
            assert ledger.steps == 8 and [entry.kind for entry in ledger.record.entries] == [
                "reserve",
                "torn",
            ]


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_kill_while_a_ledger_is_made_leaves_none_or_a_whole_one(path, when):
    assert run(_die_at_rename, path, when) == -signal.SIGKILL
    assert path.exists() == (when == "after")
    assert filled(path, 4).count(b"\n") == 2


# Cuts


@pytest.mark.parametrize(("reserves", "torn"), [([7], 1), ([3, 5, 2], 5)])
def test_a_last_line_that_is_cut_is_counted_as_spent(path, reserves, torn):
    data = filled(path, *reserves)
    record = read_ledger(path)
    *_, line = data.splitlines(keepends=True)
    start, before = len(data) - len(line), sum(reserves[:-1])
    legible = line.index(b'"total_steps"')  # from there on the line still says what it reserved
    for cut in [*range(0, len(line), 5), len(line) - 1, len(line)]:
        path.write_bytes(data[: start + cut])
        if 0 < cut < len(line) - 1:
            assert read_ledger(path).unfinished == cut
            counted = max(torn, reserves[-1]) if cut >= legible else torn
        else:
            counted = reserves[-1] if cut else 0
        for _ in range(2):  # counted once, however often it is opened
            with open_ledger(path, TERMS) as ledger:
                assert ledger.steps == before + counted, f"cut after {cut} bytes"
                assert all(ledger.contains(entry.hash) for entry in record.entries[:-1])
        with open_ledger(path, TERMS) as ledger:
            assert ledger.reserve(2).total_steps == before + counted + 2
        assert read_ledger(path).steps == before + counted + 2
        if 0 < cut < len(line) - 1:
            torn_entry = json.loads(path.read_bytes().splitlines()[-2])
            assert torn_entry["kind"] == "torn" and torn_entry["content"]["bytes"] == cut
            with open_ledger(path, TERMS) as ledger, pytest.raises(ResumeRefused):
                ledger.require(record.head)


@pytest.mark.parametrize("left", [3, 1, 0])
def test_a_cut_line_counts_within_the_plan(path, left):
    terms = Terms(**{**TERMS.content(), "steps": 9 + left})
    path.write_bytes(filled(path, 8, 1, terms=terms) + b"{")
    with open_ledger(path, terms) as ledger:
        assert ledger.record.entries[-1].steps == left
        assert ledger.steps == 9 + left and ledger.remaining == 0


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
def test_a_full_disk_refuses_the_step_and_what_was_written_counts(path, room):
    data = filled(path, 4)
    assert run(_reserve_on_a_full_disk, path, room) == 0
    assert path.stat().st_size == len(data) + room
    with open_ledger(path, TERMS) as ledger:
        assert ledger.steps == (8 if room else 4)
