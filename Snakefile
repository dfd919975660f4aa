# The chain of notebooks, then the site. Called by `make book`; what runs is decided in bookmaker/runner/plan.py.
# Every value is a literal and every command refers to its rule's own params: Snakemake reruns for a
# changed literal only, and evaluates a command after this loop has ended.
import os
import sys
from pathlib import Path

sys.path.insert(0, workflow.basedir)

from bookmaker.runner import plan, processes

os.environ[processes.PARENT] = str(os.getpid())  # here or on a node: who starts what rules start

# One profile file, or several with commas between them: a sweep is many small profiles in one schedule.
PROFILES = [Path(file).stem for file in config["profile"].split(",")]
PLANS = {profile: plan.jobs(Path(workflow.basedir), profile) for profile in PROFILES}
JOBS = [job for jobs in PLANS.values() for job in jobs]
SITE = plan.site_fingerprint(Path(workflow.basedir))
PYTHON = sys.executable


# Every run by name: a missing file between two that are up to date is not made again otherwise.
rule all:
    input:
        [job.sentinel for job in JOBS],
        [f"runs/{profile}/site/.complete" for profile in PROFILES],


for job in JOBS:

    rule:
        name:
            f"{job.profile}/{job.rule}"
        input:
            job.inputs,
        output:
            job.sentinel,
            job.notebook,
        params:
            job=job.rule,
            profile=job.profile,
            fingerprint=job.fingerprint,
            parameters=job.parameters,
        threads: job.threads
        priority: job.priority
        shell:
            "exec {PYTHON:q} -m bookmaker.runner run --profile {params.profile} --job {params.job} --threads {threads}"


for profile, jobs in PLANS.items():

    rule:
        name:
            f"{profile}/manifest"
        input:
            [job.sentinel for job in jobs],
        output:
            f"runs/{profile}/manifest.json",
            f"runs/{profile}/summary.json",
        params:
            profile=profile,
        localrule: True  # on a cluster too: it takes a moment
        shell:
            "exec {PYTHON:q} -m bookmaker.runner collect --profile {params.profile}"

    rule:
        name:
            f"{profile}/site"
        input:
            f"runs/{profile}/manifest.json",
            [job.sentinel for job in jobs],
        output:
            f"runs/{profile}/site/.complete",
        params:
            profile=profile,
            fingerprint=SITE,
        localrule: True
        shell:
            "exec {PYTHON:q} -m bookmaker.site build --profile {params.profile}"
