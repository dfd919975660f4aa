"""Jobs side by side: every result once, the same with one process and with two, and no orphans."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from patience import LIMIT_SECONDS

from privhelpers.errors import InvalidParameter, RunFailed
from privhelpers.processes import Lock, side_by_side

ROOT = Path(__file__).parents[2]


def threads_and_square(number):
    import torch

    return torch.get_num_threads(), number**2


@pytest.mark.parametrize("processes", [1, 2])
def test_every_job_runs_once_on_one_thread(processes):
    results = dict(side_by_side(threads_and_square, [(n,) for n in range(4)], processes=processes))
    assert results == {n: (1, n**2) for n in range(4)}


def test_no_job_and_no_process():
    assert list(side_by_side(threads_and_square, [], processes=2)) == []
    with pytest.raises(InvalidParameter, match="processes"):
        list(side_by_side(threads_and_square, [(1,)], processes=0))


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_of_a_job_is_raised(processes):
    with pytest.raises(TypeError):
        list(side_by_side(threads_and_square, [("a",), ("b",)], processes=processes))


def answer_or_die(folder, number):
    """Return the number; the second job is killed, as by the system, once the first result was received."""
    while number == 1:
        if (Path(folder) / "received").exists():
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.01)
    return number


@pytest.mark.nightly
def test_a_lost_process_is_named_and_what_was_done_before_is_not_lost(tmp_path):
    jobs, names, received = [(str(tmp_path), n) for n in range(2)], ["north", "south"], []
    with pytest.raises(RunFailed, match=r"before its result \(south\), .* memory .* run it again"):
        for number, _ in side_by_side(answer_or_die, jobs, processes=2, names=names):
            received.append(number)
            (tmp_path / "received").touch()
    assert received == [0]


def running(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def write_pid_and_sleep(folder, number):
    (Path(folder) / f"{number}.pid").write_text(str(os.getpid()))
    time.sleep(2 * LIMIT_SECONDS)


@pytest.mark.nightly
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads /proc")
def test_workers_end_when_their_parent_is_killed(tmp_path):
    code = (
        "import sys, test_processes as t; from privhelpers.processes import side_by_side\n"
        "if __name__ == '__main__':\n"
        "    jobs = [(sys.argv[1], n) for n in range(2)]\n"
        "    list(side_by_side(t.write_pid_and_sleep, jobs, processes=2))\n"
    )
    script = tmp_path / "parent.py"
    script.write_text(code)
    path = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT}/tests:{ROOT}/tests/privhelpers"}
    parent = subprocess.Popen([sys.executable, str(script), str(tmp_path)], env=path)
    try:
        deadline = time.monotonic() + LIMIT_SECONDS
        while time.monotonic() < deadline:
            pids = [f.read_text() for f in tmp_path.glob("*.pid")]
            if len(pids) == 2 and all(pids):
                break
            time.sleep(0.1)
        assert len(pids) == 2
        os.kill(parent.pid, signal.SIGKILL)
        parent.wait()
        while time.monotonic() < deadline and any(running(pid) for pid in pids):
            time.sleep(0.1)
        assert not any(running(pid) for pid in pids)
    finally:
        parent.kill()


def test_a_lock_names_its_holder_and_is_gone_when_it_is_released(tmp_path, monkeypatch):
    path, real, opened = tmp_path / "new" / ".lock", fcntl.flock, []
    held = Lock(path, "this run", busy=RunFailed)
    with pytest.raises(RunFailed, match=f"this run is in use by process {os.getpid()}, since "):
        Lock(path, "this run", busy=RunFailed, wait=0.3)

    def slow(file, operation):
        if not opened:
            held.release()  # between our opening the lock and our taking it
        opened.append(file)
        real(file, operation)

    monkeypatch.setattr(fcntl, "flock", slow)
    again = Lock(path, "this run", busy=RunFailed)
    assert len(opened) == 2 and path.exists(), "the removed lock was taken for a lock"
    again.release()
    assert not path.exists()
