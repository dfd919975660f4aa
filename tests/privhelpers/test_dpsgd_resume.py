"""Ledger and checkpoints of a run: what goes on after an interruption, and what is refused."""

import ast
import copy
import dataclasses
import os
import sys
from contextlib import nullcontext
from unittest import mock

import numpy as np
import pytest
import torch
from nights import sampled
from opacus.accountants import RDPAccountant
from test_dpsgd_training import hospital, run, tiny_plan

from privhelpers import artifacts, dpsgd
from privhelpers.accounting import Claimed
from privhelpers.dpsgd import _resume
from privhelpers.dpsgd._log import Tally
from privhelpers.errors import (
    DamagedArtifact,
    ResumeRefused,
)
from privhelpers.ledger import read_ledger

PLAN = {"steps": 12, "accountant": "rdp"}


class Stop(Exception):
    """An interruption in the middle of a run."""


def stopping_before(step):
    """Return a context in which the usual optimizer stops before this step (from 0)."""
    taken, usual = [], dpsgd.PrivateOptimizer.step

    def stopping(self, draw):
        if len(taken) == step:
            raise Stop
        taken.append(step)
        return usual(self, draw)

    return mock.patch.object(dpsgd.PrivateOptimizer, "step", stopping)


@pytest.fixture(scope="module")
def start():
    return hospital()


@pytest.fixture(scope="module")
def whole(start):
    """The uninterrupted run."""
    texts, tokenizer, model = start
    model = copy.deepcopy(model)
    return model, run(model, tokenizer, texts, tiny_plan(**PLAN), seed=5)


def attempt(start, folder, *, stop=None, plan=None, model=None, **settings):
    texts, tokenizer, fresh = start
    model = model or copy.deepcopy(fresh)
    settings = {"seed": 5, "keep": folder, "checkpoint_every": 5, **settings}
    with nullcontext() if stop is None else stopping_before(stop):
        log = run(model, tokenizer, texts, plan or tiny_plan(**PLAN), **settings)
    return model, log


def same_weights(a, b):
    return all(torch.equal(p, q) for p, q in zip(a.parameters(), b.parameters(), strict=True))


@pytest.mark.parametrize("stop", sampled([1, 5, 11], [5]))
def test_an_interrupted_run_ends_with_the_same_weights_and_counts(start, whole, tmp_path, stop):
    with pytest.raises(Stop):
        attempt(start, tmp_path, stop=stop)
    assert read_ledger(tmp_path / "ledger.jsonl").steps >= stop
    model, log = attempt(start, tmp_path)
    assert same_weights(model, whole[0])
    assert log.batch_sizes.tolist() == whole[1].batch_sizes.tolist()
    assert log.median_norms.tolist() == pytest.approx(whole[1].median_norms.tolist(), nan_ok=True)
    assert (log.clipped_share, log.rdp_epsilon) == (whole[1].clipped_share, whole[1].rdp_epsilon)
    assert read_ledger(tmp_path / "ledger.jsonl").steps == 12


def test_dropout_goes_on_where_it_was(start, tmp_path):
    texts, tokenizer, _ = start
    from privhelpers import models

    def fresh():
        return models.build("tiny-gpt2", tokenizer, seed=0, dropout=0.2)

    plain = fresh()
    run(plain, tokenizer, texts, tiny_plan(**PLAN), seed=5)
    with pytest.raises(Stop):
        attempt(start, tmp_path, stop=7, model=fresh())
    model, _ = attempt(start, tmp_path, model=fresh())
    assert same_weights(model, plain)


def test_every_step_is_counted_before_it_is_taken(start, tmp_path):
    counted = []

    class Watching(dpsgd.PrivateOptimizer):
        def step(self, draw):
            counted.append(read_ledger(tmp_path / "ledger.jsonl").steps)
            return super().step(draw)

    attempt(start, tmp_path, optimizer=Watching)
    assert counted == [5] * 5 + [10] * 5 + [12] * 2


def test_the_ledger_of_a_part_under_study_counts_steps_and_no_epsilon(start, tmp_path):
    def everybody(generator, *, units, sample_rate, steps):
        return [list(range(units))] * steps

    _, log = attempt(start, tmp_path, draws=everybody)
    record = read_ledger(tmp_path / "ledger.jsonl")
    assert isinstance(log.spent, Claimed) and record.header.not_counted == log.spent.parts
    assert record.steps == 12 and record.epsilon is None
    with pytest.raises(ResumeRefused, match="not_counted was sealed as"):
        attempt(start, tmp_path)


# Kills, each after so many steps of its attempt (a checkpoint every 5), the steps lost and those kept.
KILLS = {
    "before the first step": ([0], 5, [*range(5, 12)]),  # 0 to 4 were reserved, and none was taken
    "between reserving and a step": ([5], 5, [*range(5), 10, 11]),
    "in the last steps": ([11], 2, [*range(10)]),
    "twice in a row": ([7, 0], 7, [*range(5)]),
    "twice, a checkpoint between": ([3, 6], 7, [*range(5, 10)]),
}


def noting(norms):
    """Return a context in which the norms of every step that is taken are noted."""
    usual = dpsgd.PrivateOptimizer.step

    def noted(self, draw):
        norms.append(usual(self, draw))
        return norms[-1]

    return mock.patch.object(dpsgd.PrivateOptimizer, "step", noted)


def killed_and_gone_on_with(start, folder, kills, **settings):
    """Return the log of a run that was killed after so many steps of each attempt, and the norms it kept."""
    kept, first = [], 0
    for stop in [*kills, None]:
        taken = []
        with noting(taken):
            if stop is None:
                _, log = attempt(start, folder, **settings)
            else:
                with pytest.raises(Stop):
                    attempt(start, folder, stop=stop, **settings)
        (checkpoint,) = folder.glob("step-*.pt")
        kept += taken[: max(0, int(checkpoint.stem.removeprefix("step-")) - first)]
        first = read_ledger(folder / "ledger.jsonl").steps
    return log, kept


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("kills", sampled(KILLS, ["twice, a checkpoint between"]))
def test_release_mode_loses_steps_and_reports_those_in_its_weights(start, tmp_path, kills):
    """Lost steps are counted as lost, once; every other figure is of the steps whose work is kept."""
    stops, lost, steps = KILLS[kills]
    plan = tiny_plan(**PLAN, sample_rate=0.6)  # an empty draw has probability 1e-16
    log, norms = killed_and_gone_on_with(start, tmp_path, stops, plan=plan, chance=dpsgd.release())
    assert (log.lost_steps, log.empty_steps, log.mode) == (lost, 0, "release")
    assert log.batch_sizes.tolist() == [len(step) for step in norms]
    assert len(log.batch_sizes) == len(steps) == 12 - lost
    assert abs(log.batch_sizes.mean() - 24) < 5 * (9.6 / len(steps)) ** 0.5
    assert log.median_norms.tolist() == [float(np.median(step)) for step in norms]
    drawn = np.concatenate(norms)
    assert log.clipped_share == pytest.approx((drawn > 0.5).mean()) and log.refused_gradients == 0
    counted = RDPAccountant()
    counted.history = [(plan.noise_multiplier, 0.6, 12)]  # lost or not, every step is spent
    assert log.rdp_epsilon == pytest.approx(counted.get_epsilon(1e-3), rel=1e-9)
    assert log.spent == plan.spent and log.weight_change > 0
    record = read_ledger(tmp_path / "ledger.jsonl")
    assert (record.steps, record.header.plan.steps) == (12, 12)
    (file,) = tmp_path.glob("step-*.pt")
    assert torch.load(file, weights_only=True)["streams"] == {}
    _, again = attempt(start, tmp_path, stop=0, plan=plan, chance=dpsgd.release())  # it is over, and says so
    for field in dataclasses.fields(log):
        np.testing.assert_equal(getattr(again, field.name), getattr(log, field.name), field.name)


@pytest.mark.wrong_numbers
def test_empty_draws_and_lost_steps_are_told_apart(start, tmp_path):
    """At this rate most draws are empty; steps 5 to 9 are lost."""
    plan = tiny_plan(**PLAN, sample_rate=0.01)
    settings = {"plan": plan, "chance": dpsgd.release(), "max_rows": 1}
    log, norms = killed_and_gone_on_with(start, tmp_path, [7], **settings)
    assert log.lost_steps == 5 and log.empty_steps == sum(len(step) == 0 for step in norms)
    assert log.empty_steps + np.count_nonzero(log.batch_sizes) + log.lost_steps == 12


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("stop", [0, 11])
def test_a_release_that_lost_all_its_steps_is_refused(start, tmp_path, stop):
    """All were reserved at once, and the one checkpoint is from before the first."""
    settings = {"chance": dpsgd.release(), "checkpoint_every": 50}
    with pytest.raises(Stop):
        attempt(start, tmp_path, stop=stop, **settings)
    for _ in range(2):
        with pytest.raises(ResumeRefused, match="12 steps are spent"):
            attempt(start, tmp_path, **settings)


STOPS = [([7], 48), ([7, 4], 2)]  # before which steps, and rows of a micro-batch


@pytest.mark.wrong_numbers
@pytest.mark.parametrize(("stops", "max_rows"), sampled(STOPS, STOPS[1:]))
def test_a_repeated_run_reports_what_the_undisturbed_one_does(start, tmp_path, stops, max_rows):
    """Research mode with canaries and micro-batches: every field of the log, whatever killed it."""
    settings = {"canaries": dpsgd.GradientCanaries(count=6, seed=1), "max_rows": max_rows}
    _, plain = attempt(start, None, **settings)
    for stop in stops:
        with pytest.raises(Stop):
            attempt(start, tmp_path, stop=stop, **settings)
    _, log = attempt(start, tmp_path, **settings)
    assert log.lost_steps == 0 and log.canaries.scores.tolist() == plain.canaries.scores.tolist()
    for field in dataclasses.fields(log):
        if field.name != "canaries":
            np.testing.assert_equal(getattr(log, field.name), getattr(plain, field.name), field.name)


@pytest.mark.wrong_numbers
def test_what_is_no_finite_gradient_is_refused_and_neither_clipped_nor_in_the_median():
    tally = Tally()
    for norms in ([1.0, 3.0], [], [float("inf"), 0.25, 0.5, float("nan")], [float("nan")]):
        tally.add(torch.tensor(norms, dtype=torch.float64), 0.5)
    told = tally.summary()
    np.testing.assert_equal(told["median_norms"], [2.0, np.nan, 0.375, np.nan])
    assert told["batch_sizes"].tolist() == [2, 0, 4, 1] and told["clipped_share"] == 2 / 7
    assert (told["refused_gradients"], told["empty_steps"], told["lost_steps"]) == (3, 1, 0)


def test_release_mode_without_its_checkpoint_is_refused(start, tmp_path):
    with pytest.raises(Stop):
        attempt(start, tmp_path, stop=7, chance=dpsgd.release())
    for file in tmp_path.glob("step-*"):
        file.unlink()
    with pytest.raises(ResumeRefused, match="10 steps are spent"):
        attempt(start, tmp_path, chance=dpsgd.release())


CHANGES = {
    "learning_rate": ({"learning_rate": 2e-3}, "fingerprint.parameters"),
    "notes_per_step": ({"notes_per_step": 2}, "fingerprint.parameters"),
    "sigma": ({"plan": "more noise"}, "noise_multiplier"),
    "mode": ({"chance": dpsgd.release()}, "mode"),
    "data": ({"texts": "other"}, "fingerprint.data"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_run_with_other_terms_is_refused(start, tmp_path, change):
    settings, words = CHANGES[change]
    settings = dict(settings)
    with pytest.raises(Stop):
        attempt(start, tmp_path, stop=7)
    if settings.pop("plan", None):
        settings["plan"] = tiny_plan(**PLAN, target_epsilon=7.9)
    if settings.pop("texts", None):
        start = ([["another note"], *start[0][1:]], *start[1:])
    before = (tmp_path / "ledger.jsonl").read_bytes()
    with pytest.raises(ResumeRefused, match=words):
        attempt(start, tmp_path, **settings)
    assert (tmp_path / "ledger.jsonl").read_bytes() == before


def test_the_fingerprint_covers_every_module_that_training_imports():
    """Followed from the import lines, so that a module in a new room is not forgotten."""
    found, waiting = set(), sorted((_resume.PACKAGE / "dpsgd").glob("*.py"))
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        for node in ast.walk(ast.parse(path.read_text())):
            names = []
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("privhelpers"):
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            for name in names:
                place = _resume.PACKAGE.parent.joinpath(*name.split("."))
                files = (place.with_suffix(".py"), place / "__init__.py")
                waiting += [file for file in files if file.is_file()]
    covered = {name for name, _ in _resume._code(torch.nn.Linear(1, 1), ())}
    assert {str(path.relative_to(_resume.PACKAGE)) for path in found} <= covered
    assert len(found) > 30


def test_the_code_of_a_model_and_of_a_part_of_ones_own_is_covered(tmp_path, monkeypatch):
    path = tmp_path / "my_layers.py"
    path.write_text("import torch\n\n\nclass Mine(torch.nn.Linear):\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "my_layers", raising=False)
    import my_layers

    marks = []
    for words in ("", "\n# another line\n"):
        path.write_text(path.read_text() + words)
        marks.append(_resume.fingerprint(torch.nn.Linear(1, 1), [], {}, [my_layers.Mine])["code"])
        marks.append(_resume.fingerprint(my_layers.Mine(1, 1), [], {})["code"])
    assert len(set(marks)) == 4


def test_restart_keeps_the_old_ledger(start, tmp_path):
    with pytest.raises(Stop):
        attempt(start, tmp_path, stop=7)
    _, log = attempt(start, tmp_path, on_change="restart", learning_rate=2e-3)
    assert len(log.batch_sizes) == 12
    assert read_ledger(tmp_path / "ledger-1.jsonl").steps == 10
    assert read_ledger(tmp_path / "ledger.jsonl").steps == 12


def test_a_ledger_that_lost_lines_is_refused(start, tmp_path):
    with pytest.raises(Stop):
        attempt(start, tmp_path, stop=7)
    path = tmp_path / "ledger.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(lines[0])  # a valid chain, and a shorter one
    with pytest.raises(ResumeRefused, match="replaced or lost"):
        attempt(start, tmp_path)


def test_a_flipped_bit_in_the_checkpoint_is_refused(start, tmp_path):
    with pytest.raises(Stop):
        attempt(start, tmp_path, stop=7)
    (file,) = tmp_path.glob("step-*.pt")
    data = bytearray(file.read_bytes())
    data[-5] ^= 1
    file.write_bytes(bytes(data))
    with pytest.raises(DamagedArtifact, match="bytes changed"):
        attempt(start, tmp_path)


def test_an_unsealed_checkpoint_is_not_used(start, whole, tmp_path):
    """A kill between the file and its seal: the older one is still there."""
    with pytest.raises(Stop):
        attempt(start, tmp_path, stop=7)
    (tmp_path / "step-0000009.pt").write_bytes(b"half")
    model, _ = attempt(start, tmp_path)
    assert same_weights(model, whole[0])
    assert [p.name for p in sorted(tmp_path.glob("step-*"))] == [
        "step-0000012.pt",
        "step-0000012.pt.sha256",
    ]


def test_a_checkpoint_never_holds_weights_that_are_not_finite(start, tmp_path):
    from privhelpers.errors import TrainingFailed

    class Explodes(dpsgd.PrivateOptimizer):
        taken = 0

        def step(self, draw):
            norms = super().step(draw)
            Explodes.taken += 1
            if Explodes.taken == 7:
                next(iter(self.parameters.values())).data.fill_(float("inf"))
            return norms

    with pytest.raises(TrainingFailed, match="finite"):
        attempt(start, tmp_path, optimizer=Explodes)
    (file,) = tmp_path.glob("step-*.pt")
    assert file.name == "step-0000005.pt"  # the last good one; what was reserved stays spent
    assert read_ledger(tmp_path / "ledger.jsonl").steps == 10


def test_a_checkpoint_is_read_without_running_code(start, tmp_path):
    class Runs:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "ran"),))

    with pytest.raises(Stop):
        attempt(start, tmp_path, stop=7)
    (path,) = tmp_path.glob("step-*.pt")
    torch.save({"model": Runs()}, path)
    artifacts.write_sealed(path, path.read_bytes())
    with pytest.raises(DamagedArtifact, match="not a checkpoint"):
        attempt(start, tmp_path)
    assert not (tmp_path / "ran").exists()
