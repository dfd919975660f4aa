"""A Slurm of one node for the tests: its daemons, files and ports are its own and end with them."""

import os
import pwd
import shutil
import socket
import subprocess
import time
from contextlib import contextmanager

import pytest
from patience import LIMIT_SECONDS

NODE = "book1"
PROGRAMS = ("sbatch", "srun", "slurmctld", "slurmd")
CONFIGURATION = """\
ClusterName=book
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
SlurmUser={user}
SlurmdUser={user}
# One user on one machine: nobody else can reach these ports with a user's name.
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
# Seconds until a job that ended is forgotten: the tests ask for all of them, on a slow machine too.
MinJobAge=36000
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
# A node as big as the jobs need, whatever the machine has.
SlurmdParameters=config_overrides
NodeName={node} NodeAddr=127.0.0.1 CPUs=2 RealMemory=4000
PartitionName=main Nodes=ALL Default=YES State=UP
"""


def wait_for(condition, seconds=LIMIT_SECONDS):
    """Return whether `condition` became true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.2)
    return True


def asked(*command):
    """Return what a Slurm program prints, nothing if it fails."""
    return subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS).stdout


def free_ports(number):
    """Return ports that nothing listens at, all different."""
    listening = [socket.create_server(("127.0.0.1", 0)) for _ in range(number)]
    ports = [server.getsockname()[1] for server in listening]
    for server in listening:
        server.close()
    return ports


def configure(place):
    """Write the configuration and return the environment in which every Slurm program reads it."""
    for folder in ("state", "spool", "bin"):
        (place / folder).mkdir()
    file, srun = place / "slurm.conf", place / "bin" / "srun"
    user = pwd.getpwuid(os.getuid()).pw_name
    ports, host = free_ports(2), socket.gethostname().split(".")[0]
    file.write_text(CONFIGURATION.format(host=host, ports=ports, user=user, place=place, node=NODE))
    # The plugin starts srun without Slurm's variables, and a configuration elsewhere would be lost.
    srun.write_text(f'#!/bin/sh\nSLURM_CONF={file} exec {shutil.which("srun")} "$@"\n')
    srun.chmod(0o755)
    return {"SLURM_CONF": str(file), "PATH": f"{place / 'bin'}:{_search()}"}


def _search():
    """Return the search path with the folder where Debian keeps daemons."""
    return f"{os.environ['PATH']}:/usr/sbin"


@contextmanager
def running(place):
    """Start the daemons in the folder `place`, let every program find them, and stop them at the end."""
    missing = [name for name in PROGRAMS if not shutil.which(name, path=_search())]
    if missing:
        pytest.skip(f"not installed here: {', '.join(missing)}; on Debian: apt-get install slurmctld slurmd")
    with pytest.MonkeyPatch.context() as environment, open(place / "words.log", "w+") as words:
        for name, value in configure(place).items():
            environment.setenv(name, value)
        commands = (["slurmctld", "-D", "-i"], ["slurmd", "-D", "-N", NODE])
        options = {"stdout": words, "stderr": words, "start_new_session": True}
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
