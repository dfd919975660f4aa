"""The chain as jobs of a real Slurm of one node, whose daemons, files and ports end with the test."""

import os
import pwd
import re
import shutil
import signal
import socket
import subprocess
import time

import pytest
import toy_chain
from patience import LIMIT_SECONDS

pytestmark = pytest.mark.cluster

PROGRAMS = ("sbatch", "srun", "slurmctld", "slurmd")
SEARCH = f"{os.environ['PATH']}:/usr/sbin"  # where Debian keeps daemons
CONFIGURATION = """\
ClusterName=book
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
# One user on one machine: no one else can reach these ports with a user's name.
AuthType=auth/none
CredType=cred/none
StateSaveLocation={place}/state
SlurmdSpoolDir={place}/spool
SlurmctldPidFile={place}/slurmctld.pid
SlurmdPidFile={place}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
# Seconds until a job that ended is forgotten: the test asks for all of them, on a slow machine too.
MinJobAge=36000
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
# A node as big as the jobs need, whatever the machine has.
SlurmdParameters=config_overrides
NodeName=book1 NodeAddr=127.0.0.1 CPUs=2 RealMemory=4000
PartitionName=main Nodes=ALL Default=YES State=UP
"""
RECORDS, PRETRAINING = "synthetic_records", "public_pretraining"
ON_SLURM = ("book", "--profile", "toy", "--until", PRETRAINING, "--cluster", "slurm")
# What a site's user would edit: this node is small and its file system has no delay.
EDITS = {
    "mem_mb: 4000": "mem_mb: 500",
    "latency-wait: 60": "latency-wait: 5",
    "seconds-between-status-checks: 10": "seconds-between-status-checks: 1",
    "init-seconds-before-status-checks: 10": "init-seconds-before-status-checks: 1",
}
HEAD, CELLS = toy_chain.NOTEBOOKS[PRETRAINING]
WHERE = 'import os\nprint("job", os.environ.get("SLURM_JOB_ID"), flush=True)'


def wait_for(condition, seconds=LIMIT_SECONDS):
    """Return whether `condition` became true in time."""
    deadline = time.monotonic() + seconds
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.2)
    return condition()


def asked(*command):
    """Return what a Slurm program prints, nothing if it fails."""
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS).stdout


@pytest.fixture
def slurm(tmp_path, monkeypatch):
    """Start the daemons, let every program find them, and stop them at the end."""
    if missing := [name for name in PROGRAMS if not shutil.which(name, path=SEARCH)]:
        pytest.skip(f"not installed here: {', '.join(missing)}; on Debian: apt-get install slurmctld slurmd")
    place = tmp_path / "slurm"
    for folder in ("state", "spool", "bin"):
        (place / folder).mkdir(parents=True)
    listening = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    named = {"host": socket.gethostname().split(".")[0], "user": pwd.getpwuid(os.getuid()).pw_name}
    named["ports"] = [server.getsockname()[1] for server in listening]
    for server in listening:
        server.close()
    file, srun = place / "slurm.conf", place / "bin" / "srun"
    file.write_text(CONFIGURATION.format(place=place, **named))
    # The plugin starts srun without Slurm's variables, and a configuration elsewhere would be lost.
    srun.write_text(f'#!/bin/sh\nSLURM_CONF={file} exec {shutil.which("srun")} "$@"\n')
    srun.chmod(0o755)
    monkeypatch.setenv("SLURM_CONF", str(file))
    monkeypatch.setenv("PATH", f"{place / 'bin'}:{SEARCH}")
    with open(place / "words.log", "w+") as words:
        options = {"stdout": words, "stderr": words, "start_new_session": True}
        commands = (["slurmctld", "-D", "-i"], ["slurmd", "-D", "-N", "book1"])
        daemons = [subprocess.Popen(command, **options) for command in commands]
        try:
            if not wait_for(lambda: asked("sinfo", "--noheader", "--format=%t").strip() == "idle", 120):
                words.seek(0)
                pytest.skip(f"Slurm does not start here: {words.read()[-600:]}")
            yield
            asked("scancel", "--me")
            assert wait_for(lambda: not asked("squeue", "--noheader")), "jobs stayed in the queue"
        finally:
            for daemon in reversed(daemons):
                daemon.terminate()
            for daemon in daemons:
                daemon.wait(timeout=LIMIT_SECONDS)


def pretrain(root, *more):
    """Write the second notebook, which says where it runs."""
    path = root / "notebooks" / f"{PRETRAINING}.ipynb"
    toy_chain.write_notebook(path, HEAD, [WHERE, *CELLS, *more])


@pytest.mark.usefixtures("slurm")
def test_every_run_is_a_job_and_what_a_killed_build_left_is_not_run_again(tmp_path):
    root = toy_chain.build(tmp_path / "book")
    shutil.copytree(toy_chain.ROOT / "cluster", root / "cluster")
    file = root / "cluster" / "slurm" / "config.yaml"
    for old, new in EDITS.items():
        assert old in file.read_text(), old
        file.write_text(file.read_text().replace(old, new))
    pretrain(root, "raise RuntimeError('no convergence')")
    failed = toy_chain.call(root, *ON_SLURM)
    assert failed.returncode == 1 and f"stopped, no site: {PRETRAINING} failed" in failed.stderr

    pretrain(root)
    (root / "params/toy.yml").write_text(f"{toy_chain.PROFILE}{PRETRAINING}:\n  steps: 36000\n")
    line, log = toy_chain.command(*ON_SLURM), root / "runs/toy/logs" / f"{PRETRAINING}.log"
    killed = subprocess.Popen(line, cwd=root, env=toy_chain.environment(root), stderr=subprocess.DEVNULL)
    assert wait_for(lambda: "job" in log.read_text() and "convergence" not in log.read_text())
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    (root / "go").touch()
    assert wait_for(lambda: not asked("squeue", "--noheader")), "the job of the killed build goes on"
    done = toy_chain.call(root, *ON_SLURM)
    assert done.returncode == 0 and "complete in" in done.stderr, done.stderr
    jobs = re.findall(
        r"^JobId=(\d+).*? JobState=(\S+).*? Comment=rule_toy/(\S+)",
        asked("scontrol", "--oneliner", "show", "jobs"),
        re.MULTILINE,
    )
    ended = [(RECORDS, "COMPLETED"), (PRETRAINING, "FAILED"), (PRETRAINING, "COMPLETED")]
    assert [(run, state) for _, state, run in jobs] == ended
    assert f"job {jobs[-1][0]}\n" in log.read_text(), "the kernel ran inside the job"
