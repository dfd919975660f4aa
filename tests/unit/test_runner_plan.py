"""The chain as data: which runs there are and which wait for which."""

import json

import pytest
import toy_chain

from privhelpers.errors import InvalidParameter, MissingArtifact
from privhelpers.runner import plan


@pytest.fixture
def root(tmp_path):
    root = toy_chain.build(tmp_path / "book")
    (root / "params" / "toy.yml").write_text("08_dpsgd_training:\n  target_epsilon: [8, 0.5]\n")
    return root


@pytest.fixture
def jobs(root):
    return {job.rule: job for job in plan.jobs(root, "toy")}


MODELS = ["public", "baseline", "best_nonprivate", "dp-eps-0.5", "dp-eps-8"]


def test_every_run_is_planned_once(jobs):
    assert len(jobs) == toy_chain.runs(epsilons=2)
    assert [rule for rule in jobs if rule.startswith("09_")] == [f"09_extraction_{model}" for model in MODELS]


def test_private_training_does_not_wait_for_the_baseline(jobs):
    for rule in ("06_baseline_training", "08_dpsgd_training_dp-eps-8"):
        assert set(jobs[rule].needs) == {"05_synthetic_records", "06a_public_pretraining"}


@pytest.mark.parametrize(
    "attack, beside",
    [
        ("09_extraction", {"06a_public_pretraining"}),  # whose texts are public
        ("09a_memorization", set()),
        ("10_membership_inference", {"10a_shadow_models"}),
    ],
)
@pytest.mark.parametrize(
    "model, maker",
    [
        ("public", "06a_public_pretraining"),
        ("baseline", "06_baseline_training"),
        ("best_nonprivate", "06_baseline_training"),
        ("dp-eps-0.5", "08_dpsgd_training_dp-eps-0.5"),
    ],
)
def test_an_attack_waits_for_its_model_and_what_it_compares_with(jobs, attack, beside, model, maker):
    needs = jobs[f"{attack}_{model}"].needs
    assert set(needs) == {"05_synthetic_records", maker} | beside and len(needs) == len(set(needs))


def test_statistics_wait_for_all_and_hipaa_for_statistics(jobs):
    apart = {
        "08b_private_utility",
        "09b_side_by_side",
        "10a_shadow_models",
        "10b_who_is_exposed",
    }
    before = {rule for rule in jobs if rule[:2] in ("05", "06", "08", "09", "10", "13")} - apart
    assert set(jobs["14_statistics"].needs) == before
    read = ("05", "06", "08_", "09_", "09a", "10_")
    assert set(jobs["16_hipaa"].needs) == {"14_statistics", *(r for r in jobs if r.startswith(read))}


def test_the_plan_fills_in_profile_model_and_models(jobs):
    private = jobs["08_dpsgd_training_dp-eps-0.5"].parameters
    assert (private["profile"], private["model"], private["target_epsilon"]) == ("toy", "dp-eps-0.5", 0.5)
    assert jobs["16_hipaa"].parameters["models"] == MODELS
    assert "model" not in jobs["05_synthetic_records"].parameters


def test_paths(jobs):
    job = jobs["08_dpsgd_training_dp-eps-8"]
    assert job.notebook == "runs/toy/notebooks/08_dpsgd_training/dp-eps-8.ipynb"
    assert job.sentinel == "runs/toy/artifacts/08_dpsgd_training/dp-eps-8/run.json"
    assert jobs["14_statistics"].notebook == "runs/toy/notebooks/14_statistics.ipynb"
    assert jobs["14_statistics"].inputs == tuple(jobs[r].sentinel for r in jobs["14_statistics"].needs)


def test_the_runs_up_to_one(jobs):
    found = [job.rule for job in plan.upto(list(jobs.values()), "09_extraction_baseline")]
    assert found == [
        "05_synthetic_records",
        "06a_public_pretraining",
        "06_baseline_training",
        "09_extraction_baseline",
    ]


def test_an_unknown_run_and_a_missing_notebook_are_refused(root, jobs):
    with pytest.raises(InvalidParameter, match="must be one of 01_anonymization"):
        plan.find(list(jobs.values()), "05")
    (root / "notebooks" / "16_hipaa.ipynb").unlink()
    with pytest.raises(MissingArtifact, match=r"notebooks/16_hipaa.ipynb is missing"):
        plan.jobs(root, "toy")


@pytest.mark.parametrize("fault", ["fingerprint", "parameters", "artifact", "notebook", "half", "none"])
def test_a_run_is_current_only_with_this_code_these_parameters_and_its_files(root, jobs, fault):
    job = jobs["05_synthetic_records"]
    done = {"fingerprint": job.fingerprint, "parameters": dict(job.parameters), "artifacts": {"r.json": "0"}}
    if fault == "fingerprint":
        done["fingerprint"] = "other"
    if fault == "parameters":
        done["parameters"]["patients"] = 5
    files = [job.sentinel, job.notebook, job.sentinel.replace("run.json", "r.json")]
    missing = {"artifact": files[2], "notebook": files[1]}.get(fault)
    for file in (file for file in files if file != missing):
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text(json.dumps(done)[: 20 if fault == "half" else None])
    assert plan.is_current(root, job) is (fault == "none")
