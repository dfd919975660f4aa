"""Two processes train what one trains: the same weights, the same epsilon, the same norms."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from patience import LIMIT_SECONDS

from privhelpers import dpsgd, models
from privhelpers.dpsgd import _chance
from privhelpers.dpsgd import processes as shared
from privhelpers.errors import TrainingFailed

ROOT = Path(__file__).parents[2]
NOTES = [[f"Patient {n} was seen on ward {n % 3}. BP 1{n % 10}0/80."] * (1 + n % 2) for n in range(12)]


def ready(notes=NOTES, noise_multiplier=1.0):
    """Return what a run starts from."""
    tokenizer = models.train_tokenizer([text for texts in notes for text in texts], vocab_size=300)
    plan = dpsgd.plan_with_noise(
        noise_multiplier=noise_multiplier,
        target_delta=1e-3,
        sample_rate=0.5,
        steps=4,
        units=len(notes),
        max_grad_norm=0.5,
    )
    return models.build("micro-gpt2", tokenizer, seed=0), tokenizer, plan


def run(prepare=lambda chance: chance, noise_multiplier=1.0):
    model, tokenizer, plan = ready(noise_multiplier=noise_multiplier)
    settings = dpsgd.Settings(learning_rate=1e-2, max_rows=3)
    chance = prepare(dpsgd.research(0))
    dpsgd.train(model, tokenizer, NOTES, plan, settings, chance=chance, progress=False)


def join(rank, world, meeting):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=world)


def test_without_a_process_group_the_refusal_says_how_to_make_one():
    with pytest.raises(TrainingFailed, match="init_process_group"):
        run(shared.agreed)


def disagree(rank, folder):
    join(rank, 2, folder / "meeting")
    with pytest.raises(TrainingFailed, match="different modes or seeds"):
        shared.agreed(dpsgd.research(rank))
    other = dpsgd.research(rank)
    other.shared = True  # as of a run that continues from checkpoints of two steps
    with pytest.raises(TrainingFailed, match="drew different patients"):
        run(lambda _: other)
    with pytest.raises(TrainingFailed, match="different noise multipliers"):
        run(shared.agreed, noise_multiplier=1.0 + rank)
    release = shared.agreed(dpsgd.release())
    assert _chance.is_builtin(release)
    drawn = [torch.rand(3, generator=release.sampling).tolist(), release.choices.random(3).tolist()]
    assert len({repr(draws) for draws in shared._gathered(drawn)}) == 1
    dist.destroy_process_group()


@pytest.mark.nightly
def test_processes_that_disagree_stop_and_a_release_draws_the_same_in_both(tmp_path):
    processes.spawn(disagree, (tmp_path,), nprocs=2)


# In place of the page's own model, which a build must have made: one that is there in a moment.
SMALL = """
from test_dpsgd_processes import NOTES, ready
notes_by_patient = NOTES * 4
model, tokenizer, plan = ready(notes_by_patient)
"""


@pytest.mark.nightly
def test_the_run_of_the_page_under_torchrun_gives_what_one_process_gives(tmp_path):
    page = (ROOT / "book" / "cluster.md").read_text(encoding="utf-8")
    before, code = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert "notes_by_patient =" in before and "model, tokenizer =" in before
    options = re.search(r"bin/torchrun (--standalone .*) my_run\.py$", page, re.MULTILINE)[1]
    (tmp_path / "my_run.py").write_text(SMALL + code)
    here = Path(__file__).parent
    python_path = os.pathsep.join(str(folder) for folder in (ROOT, here, here.parent))
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", *options.split(), "my_run.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": python_path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
    )
    assert done.returncode == 0, done.stderr

    notes = NOTES * 4
    model, tokenizer, plan = ready(notes)
    settings = dpsgd.Settings(learning_rate=6e-3, max_rows=16)
    log = dpsgd.train(model, tokenizer, notes, plan, settings, chance=dpsgd.research(0), progress=False)
    assert f"epsilon {log.spent.epsilon:.3f} with 2 processes" in done.stdout
    together, _ = models.load(tmp_path / "runs/my-model")
    for name, weight in model.state_dict().items():
        torch.testing.assert_close(together.state_dict()[name], weight, rtol=1e-4, atol=1e-5)
