"""What `CLUSTER=` refuses before anything runs, and the file that a site's user edits."""

import re
import tomllib
from pathlib import Path

import pytest
import toy_chain

from bookmaker.runner import _cluster, build, plan
from privhelpers.errors import InvalidParameter, MissingProgram, RunFailed

ROOT = Path(__file__).parents[2]
SLURM_FILE = ROOT / "cluster" / "slurm" / "config.yaml"


def write(root, name, text):
    (root / "cluster" / name).mkdir(parents=True)
    (root / "cluster" / name / "config.yaml").write_text(text)


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Return a function that says what Slurm's queue holds; its programs are the only ones on the path."""
    write(tmp_path, "slurm", SLURM_FILE.read_text())
    programs = tmp_path / "bin"
    programs.mkdir()

    def answer(queue="", code=0):
        for name in ("sbatch", "squeue"):
            (programs / name).write_text(f"#!/bin/sh\necho '{queue}'\necho unreachable >&2\nexit {code}\n")
            (programs / name).chmod(0o755)

    monkeypatch.setenv("PATH", str(programs))
    return answer


def test_an_unknown_cluster_is_refused_with_those_that_are_there(tmp_path):
    for name in ("slurm", "night"):
        write(tmp_path, name, "executor: slurm\n")
    with pytest.raises(InvalidParameter, match="'pbs': must be a folder of cluster/: night, slurm"):
        _cluster.options(tmp_path, "pbs", ["toy"], None)


@pytest.mark.parametrize("text", ["jobs: 3\n", "- slurm\n", "executor: [\n", ""])
def test_a_file_without_an_executor_is_refused(tmp_path, text):
    write(tmp_path, "mine", text)
    with pytest.raises(InvalidParameter, match=r"cluster/mine/config\.yaml: must (be YAML|have an executor)"):
        _cluster.options(tmp_path, "mine", ["toy"], None)


def test_a_missing_plugin_or_sbatch_is_named(tmp_path, slurm, monkeypatch):
    with pytest.raises(MissingProgram, match="sbatch was not found"):
        _cluster.options(tmp_path, "slurm", ["toy"], None)
    write(tmp_path, "mine", "executor: nobody-s\n")
    with pytest.raises(MissingProgram, match="pip install snakemake-executor-plugin-nobody-s"):
        _cluster.options(tmp_path, "mine", ["toy"], None)
    monkeypatch.setattr(_cluster.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingProgram, match=f"pip install {_cluster.SLURM_PLUGIN}"):
        _cluster.options(tmp_path, "slurm", ["toy"], None)


def test_the_plugin_is_the_pinned_one():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert _cluster.SLURM_PLUGIN in project["optional-dependencies"]["book"]


def test_only_jobs_of_these_profiles_and_this_folder_are_in_the_way(tmp_path, slurm):
    others = [f"1|{tmp_path}|rule_toy-2/05", "2|/elsewhere|rule_toy/05", f"3|{tmp_path}|(null)"]
    slurm("\n".join(others))
    options = _cluster.options(tmp_path, "slurm", ["toy", "other"], 7)
    assert options[:4] == ["--workflow-profile", str(tmp_path / "cluster/slurm"), "--jobs", "7"]
    assert "/" not in options[options.index("--jobname") + 1].format(jobid=1), "Snakemake makes a file of it"
    assert "--jobs" not in _cluster.options(tmp_path, "slurm", ["toy"], None)
    slurm("\n".join([*others, f"4|{tmp_path}|rule_toy/05", f"5|{tmp_path}|rule_other/05"]))
    with pytest.raises(RunFailed, match=r"still has 2 jobs .* of toy, other: .* scancel 4 5"):
        _cluster.options(tmp_path, "slurm", ["toy", "other"], None)


def test_a_slurm_that_does_not_answer_is_not_taken_for_an_empty_queue(tmp_path, slurm):
    slurm(code=1)
    with pytest.raises(RunFailed, match="squeue failed, so Slurm cannot be asked: unreachable"):
        _cluster.options(tmp_path, "slurm", ["toy"], None)


def test_refusals_reach_the_command_line_before_anything_runs(tmp_path):
    root = toy_chain.build(tmp_path / "book")
    done = toy_chain.call(root, "book", "--profile", "toy", "--cluster", "moon")
    assert done.returncode == 2
    assert done.stderr == "refused: cluster 'moon': must be a folder of cluster/: no folder is there\n"
    assert not (root / "runs/toy/artifacts").exists()


def test_snakemake_understands_the_file_and_every_line_in_it_that_waits(tmp_path, monkeypatch):
    from snakemake.cli import parse_args

    text = SLURM_FILE.read_text()
    waiting = r"^( *)# (?=slurm_\w+: |gpu: |set-resources:|  )"
    assert len(re.findall(waiting, text, re.MULTILINE)) == 7
    write(tmp_path, "slurm", re.sub(waiting, r"\1", text, flags=re.MULTILINE))
    monkeypatch.setenv("SNAKEMAKE_PROFILE", str(tmp_path / "of the user"))
    _, arguments = parse_args([*build.OPTIONS, "--workflow-profile", str(tmp_path / "cluster/slurm")])
    assert arguments.executor == "slurm" and arguments.slurm_status_command == "squeue"
    assert {"mem_mb", "runtime", "slurm_partition", "slurm_account", "gpu"} <= set(
        arguments.default_resources
    )
    (rule,) = arguments.set_resources
    profile, run = rule.split("/")
    assert run in [job.rule for job in plan.jobs(ROOT, profile)]


def test_the_page_shows_the_file():
    assert f"```yaml\n{SLURM_FILE.read_text()}```\n" in (ROOT / "book" / "cluster.md").read_text()


def test_what_becomes_of_runs_elsewhere_is_told_once(tmp_path, capsys):
    jobs = plan.jobs(toy_chain.build(tmp_path / "book"), "toy")
    early, late, failing = jobs[:3]
    root = tmp_path / "book"

    def leave(file, text=""):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(text)

    leave(early.log)
    leave(early.sentinel)
    with _cluster.told(root, [jobs]):
        leave(late.log)
        leave(late.sentinel)
        leave(failing.log, "a line\nValueError: wrong\n\n")
        leave(failing.failed)
    words = capsys.readouterr().err.splitlines()
    assert words == [
        f"[toy] {late.title} started",
        f"[toy] {late.title} done",
        f"[toy] {failing.title} started",
        f"[toy] {failing.title} FAILED: ValueError: wrong (log: {failing.log})",
    ]


SAID = """\
Error in rule toy/synthetic_records:
    message: SLURM-job '4' failed, SLURM status is: 'TIMEOUT'. Detailed failure reason unavailable
Error in rule other/public_pretraining:
    message: SLURM-job '5' failed, SLURM status is: 'FAILED'. The notebook said why.
Error in rule other/private_training_dp-eps-8:
    message: SLURM sbatch failed. The error message was 'sbatch: error: invalid partition specified: x
sbatch: error: Batch job submission failed: Invalid partition name specified'.
"""


def test_what_slurm_ended_is_told_apart_from_what_failed(tmp_path):
    (tmp_path / "log").write_text(SAID)
    timed_out, failed, refused = _cluster.ended(tmp_path / "log", {})
    assert timed_out[:3] == ("toy", "synthetic_records", "TIMEOUT") and "(job 4)" in timed_out[3]
    assert failed[:3] == ("other", "public_pretraining", _cluster.FAILED)
    assert "runs/other/logs/public_pretraining.log" in failed[3]
    assert refused[:3] == ("other", "private_training_dp-eps-8", "")
    assert "invalid partition specified: x" in refused[3]


FINAL = (
    *("BOOT_FAIL", "CANCELLED", "CANCELLED by 0", "CANCELLED by 1000", "DEADLINE", "FAILED", "LAUNCH_FAILED"),
    *("NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED", "REVOKED", "SPECIAL_EXIT", "TIMEOUT"),
)


def lines_of_the_plugin(state, command, monkeypatch):
    """Return what Slurm's plugin logs of a job in a state, and whether it goes on waiting for it."""
    import asyncio
    from types import SimpleNamespace
    from unittest import mock

    import snakemake_executor_plugin_slurm as plugin

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
    with _cluster.states() as states:
        waiting = asyncio.run(check())
    return said, bool(waiting), states


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("command", ["squeue", "sacct"])
@pytest.mark.parametrize("state", FINAL)
def test_every_state_in_which_a_job_can_end_names_run_state_and_cure(state, command, tmp_path, monkeypatch):
    monkeypatch.setattr(_cluster, "LEFT_TO_SLURM", 0.0)
    said, waiting, states = lines_of_the_plugin(state, command, monkeypatch)
    assert len(said) == 1 and not waiting
    (tmp_path / "log").write_text(f"Error in rule toy/hipaa:\n    message: {said[0]}\n    jobid: 3\n")
    [(profile, run, word, words)] = _cluster.ended(tmp_path / "log", states)
    assert (profile, run, word) == ("toy", "hipaa", state.split()[0])
    assert words.startswith("hipaa ended by Slurm:") and f"{state} (job 7)" in words
    assert _cluster.AGAIN in words


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("state", ["PENDING", "RUNNING", "COMPLETING", "REQUEUED", "SUSPENDED", "PREEMPTED"])
def test_a_job_that_can_go_on_is_waited_for(state, monkeypatch):
    said, waiting, _ = lines_of_the_plugin(state, "squeue", monkeypatch)
    assert said == [] and waiting


def test_a_preempted_job_that_returns_to_the_queue_has_its_whole_time_again(monkeypatch):
    clock = iter([0.0, 0.0, 100.0, 100.0, 150.0, 150.0])
    monkeypatch.setattr(_cluster.time, "monotonic", lambda: next(clock))
    states = _cluster.States()
    seen = [states.as_plugin({"7": one})["7"] for one in ("PREEMPTED", "PENDING", "PREEMPTED", "PREEMPTED")]
    assert seen == ["PENDING"] * 4 and states["7"] == "PREEMPTED"


@pytest.mark.wrong_numbers
def test_a_run_that_slurm_killed_by_a_signal_is_named_and_one_that_said_why_is_named_once(tmp_path, capsys):
    root = toy_chain.build(tmp_path / "book")
    jobs = plan.jobs(root, "toy")
    log = root / "runs/toy/logs/snakemake.log"
    log.parent.mkdir(parents=True)
    log.write_text(
        "".join(
            f"Error in rule toy/{job.rule}:\n"
            f"    message: SLURM-job '{n}' failed, SLURM status is: 'FAILED'. Reason: Unknown.\n"
            for n, job in enumerate(jobs[:2])
        )
    )
    (root / jobs[1].failed).parent.mkdir(parents=True)
    (root / jobs[1].failed).touch()
    build._explain(root, [jobs], log, {})
    lines = capsys.readouterr().err.splitlines()
    assert [jobs[0].rule in line and "FAILED (job 0)" in line for line in lines] == [True, False]
    assert f"{jobs[1].title} failed" in lines[1]
