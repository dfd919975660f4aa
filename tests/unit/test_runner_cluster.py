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
    assert _cluster.SLURM_PLUGIN in project["dependencies"]


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
    assert _cluster.ended(tmp_path / "log") == [
        ("toy", "synthetic_records ended by Slurm: TIMEOUT (job 4)"),
        (
            "other",
            "private_training_dp-eps-8 refused by Slurm: sbatch: error: invalid partition specified: x",
        ),
    ]
