"""A sample of the faults of `make faults`, and a judge that can say that something is wrong."""

import contextlib
import json
import os
import signal
import time
from types import SimpleNamespace

import pytest
from faults.harness import __main__ as program
from faults.harness import (
    base,
    counted,
    elsewhere,
    judge,
    options,
    registry,
    report,
    scarce,
    surroundings,
    training,
)
from faults.harness.registry import Case, Fault

from bookmaker.runner import _verify, build, plan, processes
from privhelpers import artifacts, ledger
from privhelpers import processes as locks
from privhelpers.errors import InvalidParameter, RunFailed

SEED, TRIALS = 2026, 200
SLOW = (
    "training",
    "folders",
    "makefile",
    "surroundings",
    "together",
)  # their trials take more than milliseconds


@pytest.fixture(scope="module")
def ready():
    with base.made() as home:
        yield home


def test_a_trial_of_every_class_has_no_third_outcome(ready):
    classes = registry.load()
    assert len(classes) >= 100 and len({(one.door, one.name) for one in classes}) == len(classes)
    quick = [one for one in classes if one.door not in SLOW]
    assert len(quick) <= TRIALS
    results = [judge.run(quick[index % len(quick)], SEED, index) for index in range(TRIALS)]
    third = [result for result in results if result.outcome == judge.THIRD]
    assert not third, third
    assert {result.outcome for result in results} == {judge.RIGHT, judge.REFUSAL}


@pytest.mark.parametrize("door", SLOW)
def test_a_trial_of_every_slow_door_has_no_third_outcome(ready, door):
    for index, one in enumerate(one for one in registry.load() if one.door == door):
        result = judge.run(one, SEED, index)
        assert result.outcome != judge.THIRD, result


def test_a_trial_draws_the_same_from_the_same_seed(ready):
    one = next(one for one in registry.load() if one.name == "bytes changed at random, read")
    first, second, other = (judge.run(one, seed, 7) for seed in (1, 1, 2))
    assert first.drawn == second.drawn != other.drawn
    assert (first.outcome, first.said) == (second.outcome, second.said)


def refuse(message="x = 1: must be 2"):
    raise InvalidParameter(message)


def spoil_and_refuse(path):
    path.write_text("spoiled")
    refuse()


def watched(t):
    (path := t.place / "old").write_text("old")
    return Case(lambda: spoil_and_refuse(path), watch=(path,))


def leaving(t):
    return Case(lambda: (t.place / ".part-x").touch() or 1, right=1)


def orphan(t):
    def call():
        if not os.fork():
            time.sleep(60)
            os._exit(0)
        return 1

    return Case(call, right=1)


def spin():
    end = time.process_time() + 2
    while time.process_time() < end:
        pass
    return 1


PLANTED = {
    "traceback": (lambda t: Case(lambda: 1 / 0), "ZeroDivisionError"),
    "accepted": (lambda t: Case(lambda: 1), "accepted: 1"),
    "another result": (lambda t: Case(lambda: 2, right=1), "another result: 2"),
    "another type": (lambda t: Case(lambda: True, right=1), "another result: True"),
    "refused what is right": (lambda t: Case(refuse, right=1, refusal=False), "refused what is right"),
    "no sentence": (lambda t: Case(lambda: refuse(" ")), "a refusal of 1 characters"),
    "several lines": (lambda t: Case(lambda: refuse("a\nb")), "several lines"),
    "long": (lambda t: Case(lambda: refuse("a" * 10_000)), "a refusal of 10000 characters"),
    "a path": (lambda t: Case(lambda: refuse(f"{t.place}/x: no")), "names a folder of this machine"),
    "old result spoiled": (watched, "what was there is changed"),
    "left behind": (leaving, ".part-x is left behind"),
    "a last look": (lambda t: Case(lambda: 1, right=1, after=lambda: "lost"), "lost"),
    "killed": (lambda t: Case(lambda: os.kill(os.getpid(), signal.SIGKILL)), "signal 9"),
    "exit": (lambda t: Case(lambda: os._exit(3)), "the process ended with status"),
    "sys.exit": (lambda t: Case(lambda: exit(0), right=1), "SystemExit"),
    "slow": (lambda t: Case(spin, right=1), "of processor time"),
    "memory": (lambda t: Case(lambda: len(bytes(2**33)), right=1), "MemoryError"),
    "a child left": (orphan, "outlived its trial"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_the_judge_reports_a_planted_third_outcome(ready, name):
    make, words = PLANTED[name]
    result = judge.run(Fault(name, "planted", make, seconds=1.0), 0, 0)
    assert result.outcome == judge.THIRD and words in result.said, result
    assert judge.run(Fault(name, "planted", lambda t: Case(refuse)), 0, 0).outcome == judge.REFUSAL
    assert judge.run(Fault(name, "planted", lambda t: Case(lambda: 1, right=1)), 0, 0).outcome == judge.RIGHT


def in_pieces(path, data, **_):
    """Write as somebody would who thinks of no reader and of no end."""
    path.write_bytes(data[:5])
    time.sleep(0.02)
    path.write_bytes(data)


def half(path, data):
    path.write_bytes(data[:5])
    raise MemoryError


def free(*_, **__):
    """Stand in for a lock that locks nothing."""
    return SimpleNamespace(release=lambda: None)


@contextlib.contextmanager
def held(*_, **__):
    """Stand in for what holds a lock."""
    yield


def unordered(root, names):
    """Hold profiles in the order in which they are named."""
    locks = contextlib.ExitStack()
    for name in names:
        locks.enter_context(processes.exclusive(root / "runs" / name / ".lock", f"profile {name}"))
        time.sleep(0.3)
    return locks


def by_times(root, jobs, **_):
    """Call up to date what is newer than its page, as make does."""
    newer = [(root / one.sentinel).stat().st_mtime >= (root / one.notebook).stat().st_mtime for one in jobs]
    return {one.rule: plan.CURRENT if up else "older" for one, up in zip(jobs, newer, strict=True)}


def dated(*_):
    return str(time.time()), None


def near(_):
    """Stand in for a process whose surroundings change a result."""
    return SimpleNamespace(ask=lambda *_, **__: "other")


def refused_run(*_, **__):
    refuse()


BROKEN = {  # beginning of a class, and what is wrong: what is put in which place, and what a trial says of it
    "training: the disk is slow, refused": (base, "train", refused_run, "refused what is right"),
    "training: memory runs out, uncounted": (training, "_spent", lambda _: -1, "the ledger counts -1 steps"),
    "stored: slow disk, half": (artifacts, "write_atomic", in_pieces, "read meanwhile"),
    "stored: memory runs out, half": (artifacts, "write_sealed", half, "JSONDecodeError"),
    "options: memory runs out, told": (options._cli, "guarded", lambda run: run(), "MemoryError"),
    "together: two builds, not locked": (processes, "exclusive", held, "another result: False"),
    "together: two builds, unordered": (build, "alone", unordered, "both are refused"),
    "together: two sweeps, not locked": (processes, "exclusive", held, "of the other sweep"),
    "together: two runs, not locked": (ledger._writer.processes, "Lock", free, "refused what is right"),
    "together: two writers, not locked": (ledger._writer.processes, "Lock", free, "refused what is right"),
    "surroundings: a private run, dependent": (surroundings, "_process", near, "another result: 'other'"),
    "surroundings: records, dependent": (elsewhere.RESULTS, "records", elsewhere._around, "another result"),
    "surroundings: the clock, dependent": (base, "train", dated, "another result"),
    "surroundings: the clock, by times": (_verify, "states", by_times, "'older'"),
}


@pytest.mark.parametrize("case", BROKEN)
def test_a_class_of_what_is_around_a_run_notices_what_does_not_hold(ready, monkeypatch, case):
    place, name, stand_in, words = BROKEN[case]
    begins = case.rpartition(", ")[0]
    one = next(one for one in registry.load() if f"{one.door}: {one.name}".startswith(begins))
    (monkeypatch.setitem if isinstance(place, dict) else monkeypatch.setattr)(place, name, stand_in)
    said = ""
    for index in range(40):  # whose moments differ
        result = judge.run(one, SEED, index)
        said = result.said if result.outcome == judge.THIRD else said
        if words in said:
            return
    raise AssertionError(f"nothing, or something else, was noticed: {said}")


def test_a_lock_is_free_again_at_whatever_call_memory_ran_out(tmp_path):
    path, within, at, ran_out = tmp_path / "lock", (f"{report.ROOT}/privhelpers/processes.py",), 0, True
    while ran_out:
        at, ran_out = at + 1, False
        with contextlib.suppress(MemoryError), scarce.Exhausted(at, within) as calls:
            locks.Lock(path, "it", busy=RunFailed).release()
        ran_out = calls.count == at
        locks.Lock(path, "it", busy=RunFailed).release()
    assert at > 10


def test_surroundings_are_other_ones(tmp_path):
    """What depends on them differs, so that equal results say something."""
    near = elsewhere.RESULTS["around"](0, tmp_path)
    there = elsewhere.Elsewhere({"PYTHONHASHSEED": "7", "LC_ALL": "C", "PYTHONUTF8": "0"})
    try:
        far = there.ask("around", 0, tmp_path, zone="XYZ-13:37", at=0, seconds=1e9)
        assert there.ask("nobody", 0, tmp_path).startswith('"KeyError')
    finally:
        there.close()
    pairs = list(zip(json.loads(near.replace("'", '"')), json.loads(far.replace("'", '"')), strict=True))
    assert len(pairs) == 4 and all(one != other for one, other in pairs), pairs
    assert pairs[2][1] == 13 * 3600 + 37 * 60 and pairs[3][1] - pairs[3][0] == pytest.approx(1e9, abs=100)


@pytest.fixture
def small(monkeypatch, tmp_path, ready):
    """A program with two classes, one of which can be spoiled, in a folder of its own."""
    runs = tmp_path / "runs"
    runs.touch()

    def make(value):
        def case(t):
            with open(runs, "a") as kept:
                kept.write("x")
            return Case(lambda: value, right=1)

        return case

    classes = [Fault("good", "a", make(1), forked=False), Fault("other", "b", make(1), forked=False)]
    monkeypatch.setattr(counted, "PLACE", tmp_path)
    monkeypatch.setattr(counted, "code", lambda: "same")
    monkeypatch.setattr(registry, "load", lambda: classes)
    return classes, lambda: len(runs.read_text()), make, tmp_path


def test_the_program_counts_goes_on_and_fails_by_a_third_outcome(small, monkeypatch, capsys):
    classes, made, make, place = small

    def run(number, jobs=1):
        return program.main([f"--number={number}", "--seed=3", f"--jobs={jobs}"])

    assert run(10, jobs=2) == 0 and made() == 10
    with open(place / "faults-3.jsonl", "a") as record:
        record.write('{"index": 10, "cut')
    assert run(16) == 0 and made() == 16, "what was done is not done again"
    assert "| **all** | 16 | 16 | 0 | 0 |" in (place / "faults-3.md").read_text()
    monkeypatch.setattr(counted, "code", lambda: "other")
    classes[1] = Fault("other", "b", make(2), forked=False)
    assert run(10) == 1 and made() == 26, "other code begins anew"
    text = (place / "faults-3.md").read_text()
    assert "| **all** | 10 | 5 | 0 | 5 |" in text and "another result: 2" in text
    assert "| b: other | 5 |" in text
    assert json.loads((place / "faults-3.jsonl").read_text().splitlines()[-1])["outcome"] == judge.THIRD
    assert text.splitlines()[2].startswith("Seed 3, 2 classes, commit ")


@pytest.mark.parametrize(
    "given", [("0", "1"), ("-1", "1"), ("x", "1"), ("1", "-2"), ("1", "1.5"), ("9" * 20, "1")]
)
def test_numbers_that_are_none_are_refused(given, capsys):
    assert program.main([f"--number={given[0]}", f"--seed={given[1]}"]) == 2
    assert capsys.readouterr().err.startswith("refused: ")


def test_the_upper_bound_is_that_of_clopper_and_pearson():
    assert report.upper_bound(0, 10_000) == pytest.approx(1 - 0.05 ** (1 / 10_000), rel=1e-9)  # rule of three
    assert report.upper_bound(10, 10) == 1.0 and report.upper_bound(1, 100) == pytest.approx(0.0466, abs=1e-4)
