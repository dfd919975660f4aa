"""Limits of a cell and of a run: generous by default, named when they are reached, and never late."""

import threading

import pytest

from bookmaker.runner import _children, _limits, _remaining
from bookmaker.runner.plan import Job
from privhelpers.errors import InvalidParameter, RunFailed

LONG = 1e9  # seconds


def job(rule):
    return Job(rule, "toy", rule, None, {}, (), (), "", 1, 0)


@pytest.fixture
def killed(monkeypatch):
    """Return an event: somebody killed the processes below this one, which has none."""
    event = threading.Event()
    monkeypatch.setattr(_children, "kill_children", event.set)
    return event


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "1h", "721", "1e400"])
def test_a_limit_that_is_none_is_refused(text):
    with pytest.raises(InvalidParameter, match=f"LIMIT={text}: must be hours"):
        _limits.hand_down(text)


def test_a_limit_comes_from_what_was_asked_or_from_the_last_time(monkeypatch, tmp_path):
    monkeypatch.setattr(_remaining, "expected", lambda *_: {"a": 1000.0, "b": 3.0, "d": float("nan")})
    limits = {rule: _limits.of(tmp_path, job(rule)) for rule in "abcd"}
    least, unknown = {"cell": 14_400, "run": 43_200}, {"cell": 86_400, "run": 259_200}
    assert limits == {"a": {"cell": 20_000, "run": 60_000}, "b": least, "c": unknown, "d": least}
    monkeypatch.setenv(_limits.HOURS, "")  # so that it is put back
    _limits.hand_down("0.5")
    _limits.hand_down("")
    assert _limits.of(tmp_path, job("a")) == {"cell": 1800, "run": 5400}


@pytest.mark.parametrize(
    "limits, words",
    [
        (
            {"cell": 0.0, "run": LONG},
            "^toy: cell 3 ran for 0.0 s, the limit of a cell; make book LIMIT=hours",
        ),
        ({"cell": LONG, "run": 0.0}, "^toy: the run took 0.0 s, its limit"),
    ],
)
def test_a_limit_that_is_reached_is_named_and_ends_what_runs(killed, limits, words):
    with pytest.raises(RunFailed, match=words), _limits.watched("toy", **limits) as watch:
        watch.begin("cell 3")
        killed.wait()
        raise RuntimeError("the kernel is gone")


def test_a_run_that_came_to_its_end_after_a_limit_has_failed_too(killed):
    with pytest.raises(RunFailed, match="the limit of a cell"), _limits.watched("toy", cell=0, run=LONG) as w:
        w.begin("cell 3")
        killed.wait()


def test_no_limit_is_reached_between_cells_nor_after_the_run(killed):
    with _limits.watched("toy", cell=LONG, run=LONG) as watch:
        watch.begin("cell 1")
        watch.done()
        watch._cell = 0.0  # were the cell still counted, it would be over now
        assert watch._reached() == ""
    with pytest.raises(KeyError), _limits.watched("toy", cell=LONG, run=LONG):
        raise KeyError
    assert not killed.is_set()


def test_a_run_that_does_not_end_without_its_kernel_is_ended_itself(killed, monkeypatch, capsys):
    ended = threading.Event()
    monkeypatch.setattr(_limits, "GRACE", 0.0)
    monkeypatch.setattr(_children, "end", lambda number: ended.set())
    with pytest.raises(RunFailed), _limits.watched("toy", cell=0, run=LONG) as watch:
        watch.begin("cell 3")
        ended.wait()
    assert "failed: toy: cell 3 ran" in capsys.readouterr().err


def test_a_limit_that_is_no_number_is_refused_in_a_short_line():
    with pytest.raises(InvalidParameter, match=r"LIMIT=\\x00111") as refusal:
        _limits.hours("\0" + "1" * 5000 + "x")
    assert len(str(refusal.value)) < 200
