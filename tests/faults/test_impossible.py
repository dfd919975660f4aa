"""A release gives no number that is impossible without a unit, and the counter finds those of a wrong one."""

import pytest
import torch
from faults import impossible
from faults.harness import counted

from privhelpers.dpsgd._chance import _Release


@pytest.fixture
def small(monkeypatch, tmp_path):
    monkeypatch.setattr(counted, "PLACE", tmp_path)
    monkeypatch.setattr(impossible, "BLOCK", 4096)
    monkeypatch.setattr(impossible, "TRIAL", 4 * 4096)
    return tmp_path


def rows_of(text, name):
    return [[cell.strip() for cell in line.split("|")[2:-1]] for line in text.splitlines() if name in line]


def test_a_release_gives_no_impossible_number_and_the_controls_do(small, capsys):
    assert impossible.main(["--number=1", "--seed=5"]) == 0
    text = (small / "impossible-5.md").read_text()
    [release] = rows_of(text, "**release mode**")
    assert release[:2] == [f"{7 * 4 * 4096:,}", "0"] and release[3] == "0"
    contributions, controls = rows_of(text, "a contribution of"), rows_of(text, "control: ")
    assert len(contributions) == 7 and all(row[1] == "0" for row in contributions)
    assert len(controls) == 2 and all(row[1] != "0" and row[3] == "0" for row in controls)
    assert impossible.main(["--number=x"]) == 2 and "refused: N='x'" in capsys.readouterr().err


def test_a_release_that_shows_a_unit_fails_the_command(small, monkeypatch):
    """The noise is on the grid, and the sum to which it is added is not."""

    def unrounded(self, totals, deviation, sensitivity):
        for total in totals.values():
            self.fill_with_noise(noise := torch.empty_like(total), deviation)
            total += noise

    def given(self, count):
        return self.deviation / self.step

    monkeypatch.setattr(_Release, "after_sum", unrounded)
    monkeypatch.setattr(impossible.Release, "_steps_of_a_normal", given)
    assert impossible.main(["--number=1", "--seed=6"]) == 1
    [release] = rows_of((small / "impossible-6.md").read_text(), "**release mode**")
    assert int(release[1].replace(",", "")) > 7 * 4096
