"""`CLUSTER=`: Snakemake's options, the file that a user edits, and every state in which a job can end."""

import asyncio
import re
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

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


def lines_of_the_plugin(state, command, monkeypatch):
    """Return what Slurm's plugin logs of a job in a state, and whether it goes on waiting for it."""
    said = []
    executor = mock.MagicMock()
    executor.get_status_command.return_value = command
    executor.workflow.executor_settings = SimpleNamespace(
        init_seconds_before_status_checks=1, status_attempts=1, requeue=False, keep_successful_logs=True
    )
    executor.next_seconds_between_status_checks = executor._status_query_calls = 1
    executor._status_query_min_seconds = executor._status_query_max_seconds = None
    executor._status_query_failures, executor._status_query_total_seconds = 0, 0.0
    executor._status_query_cycle_rows, executor._failed_nodes = [], set()
    executor.status_rate_limiter.__aenter__ = mock.AsyncMock()
    executor.status_rate_limiter.__aexit__ = mock.AsyncMock()
    executor.report_job_error = lambda job, msg, **_: said.append(msg)
    job = SimpleNamespace(external_jobid="7", aux={})

    async def answer(*_):
        return {"7": state}, 0.0

    async def check():
        return [one async for one in plugin.Executor.check_active_jobs(executor, [job])]

    monkeypatch.setattr(plugin, "query_job_status", answer)
    monkeypatch.setattr(plugin, "is_query_tool_available", lambda tool: tool == command)
    monkeypatch.setattr(plugin, "get_min_job_age", lambda: 10**6)
    monkeypatch.setattr(plugin.subprocess, "check_output", lambda *_, **__: "")
    build.translate_slurm_states()
    return said, bool(asyncio.run(check()))


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("command", ["squeue", "sacct"])
@pytest.mark.parametrize("state", FINAL)
def test_no_job_that_ended_is_waited_for_and_its_run_is_named(state, command, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(build, "LEFT_TO_SLURM", 0.0)
    said, waiting = lines_of_the_plugin(state, command, monkeypatch)
    assert len(said) == 1 and not waiting
    (tmp_path / "log").write_text(f"Error in rule toy/hipaa:\n    message: {said[0]}\n    jobid: 3\n")
    build._explain(tmp_path, [], tmp_path / "log")
    line = capsys.readouterr().err
    word = "FAILED" if state in TRANSLATED else state.split()[0]
    assert line.startswith("[toy] stopped, no site: hipaa: SLURM-job '7'") and word in line


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("state", ["PENDING", "RUNNING", "COMPLETING", "REQUEUED", "SUSPENDED", "PREEMPTED"])
def test_a_job_that_can_go_on_is_waited_for(state, monkeypatch):
    said, waiting = lines_of_the_plugin(state, "squeue", monkeypatch)
    assert said == [] and waiting


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
