"""Jobs side by side: every result once, the same with one process and with two, and no orphans."""

import gc
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from patience import LIMIT_SECONDS

from privhelpers.errors import ConfinedFailed, InvalidParameter, RunFailed, UnsupportedModel
from privhelpers.processes import Confined, one_thread, side_by_side

ROOT = Path(__file__).parents[2]


def threads_and_square(number):
    import torch

    return torch.get_num_threads(), number**2


def test_a_server_that_still_imports_ends_with_its_process(tmp_path):
    """Whoever reads what a refused command printed would wait for the import."""
    (tmp_path / "slow.py").write_text(
        f"import time\nprint('begun', flush=True)\ntime.sleep({LIMIT_SECONDS})\n"
    )
    call = subprocess.Popen(
        [sys.executable, "-c", "from privhelpers.processes import prepare; prepare('slow'); input()"],
        env=os.environ | {"PYTHONPATH": f"{ROOT}:{tmp_path}"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        assert call.stdout.readline() == "begun\n"
        # Nothing holds the pipe any more: the import would do so for twice as long.
        assert call.communicate("\n", timeout=LIMIT_SECONDS / 2) == ("", None) and call.returncode == 0
    finally:
        with suppress(ProcessLookupError):
            os.killpg(call.pid, signal.SIGKILL)


@pytest.mark.parametrize("processes", [1, 2])
def test_every_job_runs_once_on_one_thread(processes):
    results = dict(side_by_side(threads_and_square, [(n,) for n in range(4)], processes=processes))
    assert results == {n: (1, n**2) for n in range(4)}


def test_one_thread_is_given_back_after_an_error():
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.raises(KeyError), one_thread():
            assert torch.get_num_threads() == 1
            raise KeyError
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)


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
    path = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT}/tests:{ROOT}/tests/unit"}
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


class Stranger:
    """What tests confine: it misbehaves on demand."""

    def __init__(self, pid=None):
        if pid:
            Path(pid).write_text(str(os.getpid()))

    def hold(self, size):
        return len(bytearray(size))

    def turn(self):
        while True:
            pass

    def end(self, number):
        os.kill(os.getpid(), number)

    def refuse(self, error):
        raise error

    def kept_shared(self):
        return gc.get_freeze_count()


@pytest.fixture
def stranger():
    return Confined(Stranger, memory=2**28, seconds=5)


def test_a_confined_object_answers(stranger):
    assert [stranger.ask("hold", size, seconds=5) for size in (1, 2**20)] == [1, 2**20]
    assert stranger.ask("kept_shared", seconds=5) > 10_000, "what it was forked with is never looked through"


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (("hold", 2**29), "MemoryError"),
        (("turn",), "more than 1 seconds of processor time"),
        (("end", signal.SIGABRT), "SIGABRT"),
        (("refuse", ValueError("no\nmore")), "ValueError: no"),
        (("refuse", KeyboardInterrupt()), "KeyboardInterrupt"),
        (("refuse", SystemExit(3)), "SystemExit: 3"),
    ],
)
def test_what_breaks_a_bound_or_ends_is_an_error_here(stranger, call, words):
    with pytest.raises(ConfinedFailed, match=words):
        stranger.ask(*call, seconds=1)
    with pytest.raises(ConfinedFailed, match="earlier failure"):
        stranger.ask("hold", 1, seconds=1)


def test_a_confined_refusal_keeps_its_type(stranger):
    with pytest.raises(UnsupportedModel, match="not so"):
        stranger.ask("refuse", UnsupportedModel("not so"), seconds=5)


def test_a_confined_error_is_told_in_one_short_line_that_does_nothing(stranger):
    with pytest.raises(ConfinedFailed) as refused:
        stranger.ask("refuse", ValueError("\x1b[31m\u202e\nso" + "\x07" * 10**6), seconds=5)
    message = str(refused.value)
    assert message.startswith(r"ValueError: \x1b[31m\u202e so\x07") and len(message) <= 250


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="reads /proc")
def test_a_confined_process_ends_with_its_owner(tmp_path):
    owned = Confined(Stranger, str(tmp_path / "pid"), memory=2**28, seconds=5)
    pid = (tmp_path / "pid").read_text()
    assert running(pid)
    del owned
    assert not running(pid)


def test_a_script_that_its_own_process_would_start_again_is_told_where_its_calls_belong(tmp_path):
    call = "Confined(dict, memory=2**28, seconds=5).ask('keys', seconds=5)"
    guard = 'if __name__ == "__main__":'
    for line, words in ((call, rf"InvalidParameter: .*{guard}"), (f"{guard} {call}", r"ConfinedFailed: ")):
        script = tmp_path / "script.py"
        script.write_text(f"from privhelpers.processes import Confined\n{line}\n")
        done = subprocess.run([sys.executable, script], capture_output=True, text=True)
        assert done.stderr.count("Traceback") == 1 and re.search(words, done.stderr), done.stderr


def test_a_folder_whose_name_is_too_long_for_a_socket_is_named_with_its_cure(tmp_path):
    deep = tmp_path / ("d" * 100)
    deep.mkdir()
    code = "from privhelpers.processes import prepare; prepare('privhelpers.text')"
    command = [sys.executable, "-c", code]
    ended = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"TMPDIR": str(deep)}, capture_output=True, text=True, check=False
    )
    last = ended.stderr.splitlines()[-1]
    assert "InvalidParameter: TMPDIR=" in last and "set TMPDIR to a folder with a shorter name" in last
