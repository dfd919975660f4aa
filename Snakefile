# The chain of notebooks, then the site, in the order of bookmaker/runner/plan.py. Called by `make book`, which
# decides what is to be made (bookmaker/runner/build.py): no time of a file counts here (`ancient`).
# Every command refers to its rule's own params, for it is evaluated after this loop has ended.
import os
import sys
from pathlib import Path

sys.path.insert(0, workflow.basedir)

from bookmaker.runner import build, plan, processes

os.environ[processes.PARENT] = str(os.getpid())  # here or on a node: who starts what rules start

# One profile file, or several with commas between them: a sweep is many small profiles in one schedule.
PROFILES = [Path(file).stem for file in config["profile"].split(",")]
PLANS = {profile: plan.jobs(Path(workflow.basedir), profile) for profile in PROFILES}
JOBS = [job for jobs in PLANS.values() for job in jobs]
MADE_FROM_ALL = [file for profile in PROFILES for file in build.made_from_all(profile)]
PYTHON = sys.executable


# Every run by name: a missing file between two that are up to date is not made again otherwise.
rule all:
    input:
        [job.mark for job in JOBS],
        MADE_FROM_ALL,


for job in JOBS:

    rule:
        name:
            f"{job.profile}/{job.rule}"
        input:
            ancient(job.marks_before),
        output:
            job.mark,
        params:
            job=job.rule,
            profile=job.profile,
        threads: job.threads
        priority: job.priority
        shell:
            "exec {PYTHON:q} -m bookmaker.runner run --profile {params.profile} --job {params.job} --threads {threads} --needed"


for profile, jobs in PLANS.items():

    rule:
        name:
            f"{profile}/manifest"
        input:
            ancient([job.mark for job in jobs]),
        output:
            [f"runs/{profile}/{name}" for name in build.FILES],
        params:
            profile=profile,
        localrule: True  # on a cluster too: it takes a moment
        shell:
            "exec {PYTHON:q} -m bookmaker.runner collect --profile {params.profile}"

    rule:
        name:
            f"{profile}/site"
        input:
            ancient([f"runs/{profile}/manifest.json", *(job.mark for job in jobs)]),
        output:
            touch(f"runs/{profile}/{build.BUILT}"),
        params:
            profile=profile,
        localrule: True
        shell:
            "exec {PYTHON:q} -m bookmaker.site build --profile {params.profile}"
