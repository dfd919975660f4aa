"""A private run killed at any moment: the same weights to the bit, the ledger never below what was begun."""

import pytest
from faults import kills
from faults.harness import base, counted

from privhelpers.dpsgd._chance import _Research
from privhelpers.ledger import Ledger

RUNS = 2
ONE_OF = 9  # boundaries; all of them by `make kills`


@pytest.fixture(scope="module")
def ready():
    with base.made():
        yield


def test_a_run_killed_before_any_line_goes_on_to_the_same_weights(ready):
    known = {}
    rows = [kill for index in range(RUNS) for kill in kills.at_lines(index, 0, known)]
    assert not [kill for kill in rows if kills.wrong(kill)]
    assert sum(kill["killed"] for kill in rows) >= RUNS * kills.IN_A_RUN - RUNS, rows
    assert len({kill["begun"] for kill in rows}) > 2, "the kills all fell on one step"
    assert {kill["of"] for kill in rows} != {rows[0]["of"]}, "no kill followed on another"


def test_a_run_killed_at_a_boundary_goes_on_to_the_same_weights(ready):
    edges = kills.boundaries()
    assert {call for call, _, _ in edges} >= {"write", "fsync", "replace", "unlink"}
    rows = [kill for edge in edges[::ONE_OF] for kill in kills.at_boundary(*edge)]
    assert all(kill["killed"] for kill in rows), rows
    assert not [kill for kill in rows if kills.wrong(kill)]


def test_a_run_that_forgets_its_streams_or_its_ledger_fails_the_command(ready, monkeypatch, tmp_path):
    monkeypatch.setattr(counted, "PLACE", tmp_path)
    monkeypatch.setattr(kills, "boundaries", lambda: [("fsync", 30, 0.0)])
    with monkeypatch.context() as patch:
        patch.setattr(_Research, "restore", lambda self, state: None)
        assert kills.main(["--number=1", "--seed=3"]) == 1
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "_append", lambda self, line: None)
        assert kills.main(["--number=1", "--seed=4"]) == 1
    table = (tmp_path / "kills-3.md").read_text()
    assert "| **every boundary of a run** | 1 | 0 |  | 0 |  |" in table and "'same': False" in table
    assert kills.main(["--number=x"]) == 2
