"""A private run killed at any moment: the same weights to the bit, the ledger never below what was done."""

import json
import os
import subprocess
import sys
from pathlib import Path

from patience import LIMIT_SECONDS

ROOT = Path(__file__).parents[2]
KILLS = 12

# Imports once, then forks: each child trains until it kills itself before a line of ours that chance chose,
# the last one to the end. Lines are counted, not seconds: the moments are the same on any machine.
SCRIPT = '''
import copy, json, os, random, signal, sys
from pathlib import Path

sys.path[:0] = [sys.argv[1] + "/tests", sys.argv[1] + "/tests/unit"]
import torch

torch.set_num_threads(1)
from test_dpsgd_resume import PLAN
from test_dpsgd_training import hospital, run, tiny_plan
from privhelpers import dpsgd
from privhelpers.dpsgd import _checkpoint as checkpoint
from privhelpers.ledger import read_ledger

OURS = tuple(f"{sys.argv[1]}/privhelpers/{name}" for name in ("dpsgd/", "ledger/", "artifacts.py"))
folder, kills = Path(sys.argv[2]), int(sys.argv[3])
start, plan = hospital(), tiny_plan(**PLAN)
chance = random.Random(0)


class Counting(dpsgd.PrivateOptimizer):
    """Notes every finished step in a file of its own, after it was taken."""

    def step(self, draw):
        norms = super().step(draw)
        lines.begun = lines.begun or lines.count
        with open(folder / "finished", "a") as file:
            file.write("x")
        return norms


Counting.__qualname__ = dpsgd.PrivateOptimizer.__qualname__


def train(keep, optimizer):
    texts, tokenizer, model = start
    model = copy.deepcopy(model)
    run(model, tokenizer, texts, plan, seed=5, keep=keep, checkpoint_every=3, make_optimizer=optimizer)
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


class Lines:
    """Counts the lines of ours that begin, and kills this process before the last one."""

    def __init__(self, last=None):
        self.count, self.last, self.begun = 0, last, 0  # begun: lines until the first step was taken
        sys.settrace(self.enter)

    def enter(self, frame, event, _):
        return self.line if frame.f_code.co_filename.startswith(OURS) else None

    def line(self, frame, event, _):
        self.count += event == "line"
        if self.count == self.last:
            os.kill(os.getpid(), signal.SIGKILL)
        return self.line


def child(result, last):
    if pid := os.fork():
        return pid
    Lines(last)
    weights = train(folder / "kept", Counting)
    result.write_bytes(weights.numpy().tobytes())
    os._exit(0)


def moment():
    """Return a line before the end of the first step, or, twice as often, of the next third of the run."""
    if chance.random() < 1 / 3:
        return chance.randrange(lines.begun)
    return lines.begun + chance.randrange((lines.count - lines.begun) // 3)


lines = Lines()
whole = train(folder / "whole", Counting).numpy().tobytes()
sys.settrace(None)
trials = []
while len(trials) < kills or not (folder / "result").exists():
    (folder / "finished").write_text("")
    saved = checkpoint.newest(folder / "kept")
    begun = int(saved.stem.removeprefix("step-")) if saved else 0
    last = len(trials) >= kills
    _, status = os.waitpid(child(folder / "result", None if last else moment()), 0)
    ledger = folder / "kept" / "ledger.jsonl"
    spent = read_ledger(ledger).steps if ledger.exists() else 0
    done = begun + len((folder / "finished").read_text())
    trials.append({"killed": os.WIFSIGNALED(status), "status": status, "spent": spent, "done": done})
    if last:
        break
same = (folder / "result").exists() and (folder / "result").read_bytes() == whole
print(json.dumps({"trials": trials, "same": same}))
'''


def test_resume_after_sigkill_at_any_moment(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(ROOT), str(tmp_path), str(KILLS)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=LIMIT_SECONDS,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    report = json.loads(done.stdout.splitlines()[-1])
    trials = report["trials"]
    assert sum(trial["killed"] for trial in trials) >= KILLS // 2, trials
    assert trials[-1]["status"] == 0, done.stderr[-2000:]
    spent = [trial["spent"] for trial in trials]
    assert spent == sorted(spent) and spent[-1] == 12
    assert all(trial["done"] <= trial["spent"] for trial in trials)
    assert any(trial["done"] for trial in trials[:-1]), "no kill fell into the training"
    assert len({trial["spent"] for trial in trials}) > 2, "the kills all fell on one moment"
    assert report["same"], "the weights differ from those of the run that was left alone"
