"""Drawn cases, and all that were ever third outcomes, end as accepted or as a typed refusal."""

import json
import os
import signal
from functools import partial

import pytest
from faults.fuzz import __main__ as program
from faults.fuzz import doors, worker
from faults.harness import counted
from hypothesis import given, settings
from hypothesis import strategies as st

from privhelpers.errors import InvalidParameter

SEED, CASES = 2026, 2000


@pytest.fixture(scope="module", autouse=True)
def warm():
    doors.warm()


@pytest.mark.parametrize("name", sorted(program.corpus()))
def test_what_was_found_once_is_accepted_or_refused(name):
    one = program.corpus()[name]
    outcomes, found, _ = worker.run(lambda index: one, 0, 1)
    assert not found and outcomes[0] in (worker.ACCEPTED, worker.REFUSED), found


def test_drawn_cases_at_every_door_have_no_third_outcome():
    outcomes, found, _ = worker.run(partial(worker.case, SEED), 0, CASES)
    assert not found, found[0]
    reached = {(doors.of(index).name, outcome) for index, outcome in enumerate(outcomes)}
    assert {(door.name, worker.REFUSED) for door in doors.DOORS} <= reached
    assert sum(outcome == worker.ACCEPTED for _, outcome in reached) > len(doors.DOORS) / 2


def test_a_case_follows_from_seed_and_index():
    assert worker.case(1, 7) == worker.case(1, 7) != worker.case(2, 7)
    assert sum(door.share for door in doors.DOORS) == 100
    assert {doors.of(index) for index in range(100)} == set(doors.DOORS)


# What may be nested in a value, and how a text can be none.
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)


@pytest.mark.parametrize("door", doors.DOORS, ids=lambda door: door.name)
def test_values_and_bytes_of_any_kind_are_accepted_or_refused(door, tmp_path):
    home, (file, valid) = doors.home(tmp_path), door.inputs()[0]

    @settings(max_examples=20, derandomize=True, database=None, deadline=None)
    @given(
        VALUES.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=60),
        st.integers(0, len(valid)),
    )
    def tried(data, at):
        for whole in (data, valid[:at] + data + valid[at:]):
            outcome, said = worker.judged((door, file, whole), home)
            assert outcome not in worker.THIRD, said

    tried()


def _planted(read, says="x"):
    door = doors.Door("planted", lambda: (("x", b""),), read, 1, says=says)
    return worker.run(lambda index: (door, "x", b"%d" % index), 0, 3)


def _second(act):
    """Return what is fine but at the second of three cases."""
    return lambda home, file, data: act(home) if data == b"1" else None


def refuse(message):
    raise InvalidParameter(message)


def spin(home):
    while True:
        pass


PLANTED = {
    "traceback": (lambda home: {}["a"], worker.UNTYPED, "KeyError at test_fuzz.py"),
    "flood": (lambda home: bytes(2**30), worker.MEMORY, "MemoryError"),
    "killed": (lambda home: os.kill(os.getpid(), signal.SIGTERM), worker.UNTYPED, "signal 15"),
    "hang": (spin, worker.TIME, "signal 24"),
    "exit": (lambda home: os._exit(3), worker.UNTYPED, "status 768"),
    "sys.exit": (lambda home: exit(0), worker.UNTYPED, "SystemExit"),
    "no file": (lambda home: refuse("a = 3: must be 4"), worker.WORDING, "names no file"),
    "two lines": (lambda home: refuse("x:\na"), worker.WORDING, "several lines"),
    "invisible": (lambda home: refuse("x: \x1b[2J"), worker.WORDING, "that nobody sees"),
    "a folder": (lambda home: refuse(f"{home}/x: no"), worker.WORDING, "a folder of this machine"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_third_outcome_is_counted_and_the_rest_goes_on(monkeypatch, name):
    monkeypatch.setattr(worker, "MOST_SECONDS", 0.5)
    act, outcome, words = PLANTED[name]
    outcomes, (found,), _ = _planted(_second(act))
    assert outcomes == [worker.ACCEPTED, outcome, worker.ACCEPTED]
    assert (found.index, found.outcome, found.data) == (1, outcome, "1") and words in found.said, found


def test_the_program_goes_on_where_it_was_and_keeps_what_it_found(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(counted, "PLACE", tmp_path)
    monkeypatch.setattr(counted, "code", lambda: "same")
    monkeypatch.setattr(program, "CHUNK", 4)

    def line(first, cases, number):
        outcomes = {"accepted": number - 1, worker.UNTYPED: 1} if first == 8 else {"accepted": number}
        found = [worker.Found(9, "ledger", "x", worker.UNTYPED, "KeyError", "\xff")] if first == 8 else []
        os.write(note, b"x")
        found = [worker.asdict(one) for one in found]
        return {"counts": {"ledger": outcomes}, "seconds": {"ledger": 1.0}, "found": found}

    note = os.open(tmp_path / "note", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    monkeypatch.setattr(program, "_line", line)

    def made():
        return (tmp_path / "note").stat().st_size

    assert program.main(["--number=7", "--seed=3", "--jobs=2"]) == 0 and made() == 2
    assert program.main(["--number=12", "--seed=3"]) == 1 and made() == 3, "what was done is not done again"
    text = (tmp_path / "fuzz-3.md").read_text()
    assert "| **all** | 12 | 11 | 0 | 1 | 0 | 0 | 0 |" in text and "case 9, ledger: untyped exception" in text
    (path,) = (tmp_path / "fuzz-3").glob("*.json")
    monkeypatch.setattr(program, "CORPUS", path.parent)
    assert program.corpus()[path.stem][1:] == ("x", b"\xff")
    assert program.main(["--number=x"]) == 2 and "refused: N='x'" in capsys.readouterr().err
