"""The chain as jobs of a real Slurm: same results, same refusals, and what a killed build leaves goes on."""

import json
import re
import shutil
import signal
import subprocess

import pytest
import toy_chain
from one_node import asked, running, wait_for

pytestmark = pytest.mark.cluster

RECORDS, PRETRAINING = "synthetic_records", "public_pretraining"
BUILD = ("book", "--profile", "toy", "--until", PRETRAINING)
ON_SLURM = (*BUILD, "--cluster", "slurm")
# What a site's user would edit: this node is small and its file system has no delay.
EDITS = {
    "mem_mb: 4000": "mem_mb: 500",
    "latency-wait: 60": "latency-wait: 5",
    "seconds-between-status-checks: 10": "seconds-between-status-checks: 1",
    "init-seconds-before-status-checks: 10": "init-seconds-before-status-checks: 1",
}
HEAD, CELLS = toy_chain.NOTEBOOKS[PRETRAINING]
WHERE = 'import os\nprint("job", os.environ.get("SLURM_JOB_ID"), flush=True)'


def make(place):
    """Return a toy book that asks little of the cluster."""
    root = toy_chain.build(place)
    shutil.copytree(toy_chain.ROOT / "cluster", root / "cluster")
    file = root / "cluster" / "slurm" / "config.yaml"
    text = file.read_text()
    for old, new in EDITS.items():
        assert old in text, old
        text = text.replace(old, new)
    file.write_text(text)
    pretrain(root)
    return root


def pretrain(root, *more):
    """Write the second notebook, which says where it runs."""
    path = root / "notebooks" / f"{PRETRAINING}.ipynb"
    toy_chain.write_notebook(path, HEAD, [WHERE, *CELLS, *more])


def finished(root, slug):
    """Return what a run says of itself but for its times."""
    run = json.loads((root / "runs/toy/artifacts" / slug / "run.json").read_text())
    return {key: run[key] for key in ("fingerprint", "parameters", "artifacts")}


def jobs():
    """Return number, run and state of every job that Slurm remembers, in order."""
    matches = re.findall(
        r"^JobId=(\d+).*? JobState=(\S+).*? Comment=rule_toy/(\S+)",
        asked("scontrol", "--oneliner", "show", "jobs"),
        re.MULTILINE,
    )
    return [(int(number), run, state) for number, state, run in matches]


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    with running(tmp_path_factory.mktemp("slurm")):
        yield


@pytest.fixture(scope="module")
def story(slurm, tmp_path_factory):
    """A build that fails, a build that is killed, and one that finds all done once its jobs have ended."""
    root = make(tmp_path_factory.mktemp("cluster") / "book")
    pretrain(root, "raise RuntimeError('no convergence')")
    failed = toy_chain.call(root, *ON_SLURM)

    pretrain(root)
    (root / "params/toy.yml").write_text(f"{toy_chain.PROFILE}{PRETRAINING}:\n  steps: 36000\n")
    killed = subprocess.Popen(
        toy_chain.command(*ON_SLURM), cwd=root, env=toy_chain.environment(root), stderr=subprocess.DEVNULL
    )
    log = root / "runs/toy/logs" / f"{PRETRAINING}.log"
    assert wait_for(lambda: "job" in log.read_text() and "convergence" not in log.read_text())
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    (root / "go").touch()
    assert wait_for(lambda: not asked("squeue", "--noheader")), "the job of the killed build goes on"
    return root, failed, toy_chain.call(root, *ON_SLURM), jobs()


def test_every_run_is_a_job_of_slurm(story):
    root, failed, done, seen = story
    assert [(run, state) for _, run, state in seen] == [
        (RECORDS, "COMPLETED"),
        (PRETRAINING, "FAILED"),
        (PRETRAINING, "COMPLETED"),
    ]
    words = (root / "runs/toy/logs" / f"{PRETRAINING}.log").read_text()
    assert f"job {seen[-1][0]}\n" in words, "the kernel ran inside the job"
    assert failed.returncode == 1 and f"stopped, no site: {PRETRAINING} failed" in failed.stderr
    assert done.returncode == 0 and "complete in" in done.stderr, done.stderr


def test_the_results_are_those_of_one_machine(story, tmp_path):
    root = story[0]
    here = make(tmp_path / "book")
    shutil.copy2(root / "params/toy.yml", here / "params")
    (here / "go").touch()  # or its second run would wait for an hour
    done = toy_chain.call(here, *BUILD)
    assert done.returncode == 0, done.stderr
    for slug in (RECORDS, PRETRAINING):
        assert finished(root, slug) == finished(here, slug)
