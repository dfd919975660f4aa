# The chain of notebooks, then the site. Called by `make book`; what runs is decided in privhelpers/runner/plan.py.
# Every value is a literal and every command refers to its rule's own params: Snakemake reruns for a
# changed literal only, and evaluates a command after this loop has ended.
import sys
from pathlib import Path

sys.path.insert(0, workflow.basedir)

from privhelpers.runner import fingerprint, plan

PROFILE = Path(config["profile"]).stem
RUNS = f"runs/{PROFILE}"
JOBS = plan.jobs(Path(workflow.basedir), PROFILE)
PYTHON = sys.executable


# Every run by name: a missing file between two that are up to date is not made again otherwise.
rule all:
    input:
        [job.sentinel for job in JOBS],
        f"{RUNS}/site/.complete",


for job in JOBS:

    rule:
        name:
            job.rule
        input:
            job.inputs,
        output:
            job.sentinel,
            job.notebook,
        params:
            job=job.rule,
            profile=PROFILE,
            fingerprint=job.fingerprint,
            parameters=job.parameters,
        threads: job.threads
        priority: job.priority
        shell:
            "exec {PYTHON:q} -m privhelpers.runner run --profile {params.profile} --job {params.job} --threads {threads}"


rule manifest:
    input:
        [job.sentinel for job in JOBS],
    output:
        f"{RUNS}/manifest.json",
        f"{RUNS}/summary.json",
    params:
        profile=PROFILE,
    shell:
        "exec {PYTHON:q} -m privhelpers.runner collect --profile {params.profile}"


rule site:
    input:
        f"{RUNS}/manifest.json",
        [job.sentinel for job in JOBS],
    output:
        f"{RUNS}/site/.complete",
    params:
        profile=PROFILE,
        fingerprint=fingerprint.of_site(Path(workflow.basedir)),
    shell:
        "exec {PYTHON:q} -m privhelpers.site build --profile {params.profile}"
