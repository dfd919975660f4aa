"""A private run killed at any moment: the same weights to the bit, the ledger never below what was done."""

import json
import os
import subprocess
import sys
from pathlib import Path

from patience import LIMIT_SECONDS

ROOT = Path(__file__).parents[2]
KILLS = 12

# Imports once, then forks: each child trains until it is killed, the last one to the end.
SCRIPT = '''
import copy, json, os, random, signal, sys, time
from pathlib import Path

sys.path[:0] = [sys.argv[1] + "/tests", sys.argv[1] + "/tests/unit"]
import torch

torch.set_num_threads(1)
from test_dpsgd_resume import PLAN
from test_dpsgd_training import hospital, run, tiny_plan
from privhelpers import dpsgd
from privhelpers.dpsgd import _checkpoint as checkpoint
from privhelpers.ledger import read_ledger

ENDED = os.WEXITED | os.WNOHANG | os.WNOWAIT
folder, kills = Path(sys.argv[2]), int(sys.argv[3])
start, plan = hospital(), tiny_plan(**PLAN)
chance = random.Random(0)


class Counting(dpsgd.PrivateOptimizer):
    """Notes every finished step in a file of its own, after it was taken."""

    def step(self, draw):
        norms = super().step(draw)
        with open(folder / "finished", "a") as file:
            file.write("x")
        return norms


Counting.__qualname__ = dpsgd.PrivateOptimizer.__qualname__


def train(keep, optimizer):
    texts, tokenizer, model = start
    model = copy.deepcopy(model)
    run(model, tokenizer, texts, plan, seed=5, keep=keep, checkpoint_every=3, make_optimizer=optimizer)
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


def child(result):
    if pid := os.fork():
        return pid
    weights = train(folder / "kept", Counting)
    result.write_bytes(weights.numpy().tobytes())
    os._exit(0)


clock = time.monotonic()
whole = train(folder / "whole", dpsgd.PrivateOptimizer).numpy().tobytes()
length = time.monotonic() - clock
trials, most = [], 0
while len(trials) < kills or not (folder / "result").exists():
    (folder / "finished").write_text("")
    saved = checkpoint.newest(folder / "kept")
    begun = int(saved.stem.removeprefix("step-")) if saved else 0
    pid = child(folder / "result")
    last = len(trials) >= kills
    if not last:
        # After so many of its steps, and a part of the next: however fast the machine is at the moment.
        steps = chance.randrange(5)
        while len((folder / "finished").read_text()) < steps and not os.waitid(os.P_PID, pid, ENDED):
            time.sleep(length / 1000)
        time.sleep(chance.uniform(0, length / 12))
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
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
