# The chain of notebooks, then the site, in the order of bookmaker/runner/plan.py. Called by `make book`, see
# bookmaker/runner/build.py. A run is made again where its note, or the mark of a run before it, is newer than
# its mark. Every command refers to its rule's own params, for it is evaluated after this loop has ended.
import sys
from pathlib import Path

sys.path.insert(0, workflow.basedir)

from bookmaker.runner import build, commands, plan, published

commands.die_with_parent()
if "snakemake_executor_plugin_slurm" in sys.modules:
    build.translate_slurm_states()

# One profile file, or several with commas between them: a sweep is many small profiles in one schedule.
PROFILES = [Path(file).stem for file in config["profile"].split(",")]
PLANS = {profile: plan.jobs(Path(workflow.basedir), profile) for profile in PROFILES}
if config.get("until"):
    PLANS = {profile: plan.upto(jobs, config["until"]) for profile, jobs in PLANS.items()}
PYTHON = sys.executable

for profile, jobs in PLANS.items():

    for name, made in plan.together(jobs, apart=bool(config["apart"])).items():

        rule:
            name:
                f"{profile}/{name}"
            input:
                [job.note for job in made],
                [mark for job in made for mark in job.inputs.values()],
            output:
                [job.mark for job in made],
            params:
                jobs=[job.rule for job in made],
                profile=profile,
                limit=config["limit"],
            priority: made[0].priority
            shell:
                "exec {PYTHON:q} -m bookmaker run --profile {params.profile} --limit {params.limit} --job {params.jobs} 2>&1"

    rule:
        name:
            f"{profile}/manifest"
        input:
            [job.mark for job in jobs],
        output:
            [f"runs/{profile}/{name}" for name in published.FILES],
        params:
            profile=profile,
        localrule: True  # on a cluster too: it takes a moment
        shell:
            "exec {PYTHON:q} -m bookmaker collect --profile {params.profile} 2>&1"

    for solutions in ("yes", "no"):

        rule:
            name:
                f"{profile}/site-{solutions}"
            input:
                build.site_note(profile),
                f"runs/{profile}/{published.MANIFEST}",
                [job.mark for job in jobs],
            output:
                build.site_mark(profile, solutions=solutions == "yes"),
            params:
                profile=profile,
                solutions=solutions,
            localrule: True
            shell:
                "exec {PYTHON:q} -m bookmaker.site build --profile {params.profile} --solutions {params.solutions} 2>&1"
