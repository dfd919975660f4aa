"""`CLUSTER=`: Snakemake's options, the file that a user edits, and every state in which a job can end."""

import asyncio
import inspect
import re
from pathlib import Path

import pytest
import snakemake_executor_plugin_slurm as plugin
import toy_chain
from snakemake.cli import parse_args

from bookmaker.runner import build, plan
from privhelpers.errors import InvalidParameter

ROOT = Path(__file__).parents[2]
SLURM_FILE = ROOT / "cluster" / "slurm" / "config.yaml"


def test_a_cluster_is_a_folder_with_a_file_and_another_one_is_refused(tmp_path):
    (tmp_path / "cluster" / "slurm").mkdir(parents=True)
    (tmp_path / "cluster" / "slurm" / "config.yaml").touch()
    assert build.where(tmp_path, "slurm", None) == ["--workflow-profile", "cluster/slurm"]
    assert build.where(tmp_path, "slurm", 7)[2:] == ["--jobs", "7"]
    assert build.where(tmp_path, "", 3)[:2] == ["--cores", "3"]
    with pytest.raises(InvalidParameter, match=r"'\.\./x': must be a folder of cluster/: slurm"):
        build.where(tmp_path, "../x", None)
    root = toy_chain.build(tmp_path / "book")
    done = toy_chain.call(root, "book", "--profile", "toy", "--cluster", "moon")
    assert done.returncode == 2 and done.stderr.startswith("refused: CLUSTER='moon': must be a folder")
    assert not (root / "runs/toy/artifacts").exists()


def test_snakemake_understands_the_file_and_every_line_in_it_that_waits(tmp_path, monkeypatch):
    text = SLURM_FILE.read_text()
    waiting = r"^( *)# (?=slurm_\w+: |gpu: |set-resources:|  )"
    assert len(re.findall(waiting, text, re.MULTILINE)) == 7
    (tmp_path / "config.yaml").write_text(re.sub(waiting, r"\1", text, flags=re.MULTILINE))
    monkeypatch.setenv("SNAKEMAKE_PROFILE", str(tmp_path / "of the user"))
    _, arguments = parse_args([*build.OPTIONS, "--workflow-profile", str(tmp_path)])
    assert arguments.executor == "slurm" and arguments.slurm_status_command == "squeue"
    assert "/" not in arguments.jobname.format(jobid=1), "Snakemake makes a file of it"
    expected = {"mem_mb", "runtime", "slurm_partition", "slurm_account", "gpu"}
    assert expected <= set(arguments.default_resources)
    (rule,) = arguments.set_resources
    profile, run = rule.split("/")
    assert run in [job.rule for job in plan.jobs(ROOT, profile)]


FINAL = (
    *("BOOT_FAIL", "CANCELLED", "CANCELLED by 0", "CANCELLED by 1000", "DEADLINE", "FAILED", "LAUNCH_FAILED"),
    *("NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "SPECIAL_EXIT", "TIMEOUT"),
)
TRANSLATED = {"LAUNCH_FAILED", "PREEMPTED", "REVOKED", "SPECIAL_EXIT"}  # the plugin then says FAILED


def translated(state, monkeypatch):
    """Return the word that Slurm's plugin gets for a state of a job."""

    async def answer(*_):
        return {"7": state}, 0.0

    monkeypatch.setattr(plugin, "query_job_status", answer)
    build.translate_slurm_states()
    return asyncio.run(plugin.query_job_status())[0]["7"]


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("state", FINAL)
def test_no_job_that_ended_is_waited_for(state, monkeypatch):
    """The plugin waits for each job in a state that it does not know."""
    monkeypatch.setattr(build, "LEFT_TO_SLURM", 0.0)
    word = translated(state, monkeypatch)
    assert word == ("FAILED" if state in TRANSLATED else state.split()[0])
    assert f'"{word}"' in inspect.getsource(plugin.Executor.check_active_jobs)


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("state", ["PENDING", "RUNNING", "COMPLETING", "REQUEUED", "SUSPENDED", "PREEMPTED"])
def test_a_job_that_can_go_on_is_waited_for(state, monkeypatch):
    word = translated(state, monkeypatch)
    assert word == ("PENDING" if state == "PREEMPTED" else state)
    assert f'"{word}"' not in inspect.getsource(plugin.Executor.check_active_jobs)


@pytest.mark.wrong_numbers
def test_a_run_that_slurm_killed_by_a_signal_is_named(tmp_path, capsys):
    root = toy_chain.build(tmp_path / "book")
    killed, failed, *others = plan.jobs(root, "toy")
    (root / failed.failed).parent.mkdir(parents=True)
    (root / failed.failed).touch()
    said = "SLURM-job '4' failed, SLURM status is: 'FAILED'. Reason: Unknown."
    (tmp_path / "log").write_text(f"Error in rule toy/{killed.rule}:\n    message: {said}\n")
    build._explain(root, [[killed, failed, *others]], tmp_path / "log")
    first, second = capsys.readouterr().err.splitlines()
    assert f"{killed.rule}: {said}" in first and f"{failed.title} failed" in second
