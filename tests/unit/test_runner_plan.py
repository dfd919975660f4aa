"""The chain as data: which runs there are and which wait for which."""

import hashlib
import json

import pytest
import toy_chain

from bookmaker.runner import plan
from privhelpers.errors import InvalidParameter, MissingArtifact


@pytest.fixture
def root(tmp_path):
    root = toy_chain.build(tmp_path / "book")
    (root / "params" / "toy.yml").write_text("private_training:\n  target_epsilon: [8, 0.5]\n")
    return root


@pytest.fixture
def jobs(root):
    return {job.rule: job for job in plan.jobs(root, "toy")}


MODELS = ["public", "baseline", "best_nonprivate", "dp-eps-0.5", "dp-eps-8"]


def test_every_run_is_planned_once(jobs):
    assert len(jobs) == toy_chain.runs(epsilons=2)
    assert [rule for rule in jobs if rule.startswith("extraction_")] == [
        f"extraction_{model}" for model in MODELS
    ]


def test_private_training_does_not_wait_for_the_baseline(jobs):
    for rule in ("fine_tuning", "private_training_dp-eps-8"):
        assert set(jobs[rule].needs) == {"synthetic_records", "public_pretraining"}


@pytest.mark.parametrize(
    "attack, beside",
    [
        ("extraction", {"public_pretraining", "fine_tuning"}),  # public texts, and who leaks most
        ("memorization", set()),
        ("membership_inference", {"shadow_models"}),
    ],
)
@pytest.mark.parametrize(
    "model, maker",
    [
        ("public", "public_pretraining"),
        ("baseline", "fine_tuning"),
        ("best_nonprivate", "fine_tuning"),
        ("dp-eps-0.5", "private_training_dp-eps-0.5"),
    ],
)
def test_an_attack_waits_for_its_model_and_what_it_compares_with(jobs, attack, beside, model, maker):
    needs = jobs[f"{attack}_{model}"].needs
    assert sorted(needs) == sorted({"synthetic_records", maker} | beside)  # each one once


TRAINED = ("synthetic_records", "public_pretraining", "fine_tuning", "private_training_")
ATTACKED = ("extraction_", "memorization_", "membership_inference_")


def test_the_comparison_waits_for_all_and_hipaa_for_the_comparison(jobs):
    measured = {rule for rule in jobs if rule.startswith((*TRAINED, *ATTACKED))}
    assert set(jobs["comparison"].needs) == {*measured, "auditing", "broken_dpsgd"}
    assert set(jobs["hipaa"].needs) == {*measured, "comparison"}


def test_the_plan_fills_in_profile_model_and_models(jobs):
    private = jobs["private_training_dp-eps-0.5"].parameters
    assert (private["profile"], private["model"], private["target_epsilon"]) == ("toy", "dp-eps-0.5", 0.5)
    assert jobs["hipaa"].parameters["models"] == MODELS
    assert "model" not in jobs["synthetic_records"].parameters


def test_paths(jobs):
    job = jobs["private_training_dp-eps-8"]
    assert job.notebook == "runs/toy/notebooks/private_training/dp-eps-8.ipynb"
    assert job.sentinel == "runs/toy/artifacts/private_training/dp-eps-8/run.json"
    assert jobs["comparison"].notebook == "runs/toy/notebooks/comparison.ipynb"
    assert jobs["comparison"].inputs == tuple(jobs[r].sentinel for r in jobs["comparison"].needs)


def test_the_runs_up_to_one(jobs):
    rules = [job.rule for job in plan.upto(list(jobs.values()), "extraction_baseline")]
    assert rules == [
        "synthetic_records",
        "public_pretraining",
        "fine_tuning",
        "extraction_baseline",
    ]


def test_an_unknown_run_and_a_missing_notebook_are_refused(root, jobs):
    with pytest.raises(InvalidParameter, match="must be one of anonymization"):
        plan.upto(list(jobs.values()), "05")
    (root / "notebooks" / "hipaa.ipynb").unlink()
    with pytest.raises(MissingArtifact, match=r"notebooks/NN_hipaa.ipynb is missing"):
        plan.jobs(root, "toy")


STATES = {
    "none": plan.CURRENT,
    "fingerprint": "to run: its code changed",
    "parameters": "to run: changed patients",
    "half": "to run: its run.json is damaged",
    "artifact gone": "to run: r.json is gone",
    "notebook gone": "to run: synthetic_records.ipynb is gone",
    "artifact": "to run: r.json changed after the run",
    "notebook": "to run: synthetic_records.ipynb changed after the run",
    "sentinel gone": "to run",
}


@pytest.mark.parametrize("fault", STATES)
def test_a_run_is_current_only_with_this_code_these_parameters_and_its_files(root, jobs, fault):
    job = jobs["synthetic_records"]
    artifact = job.sentinel.replace("run.json", "r.json")
    digest = hashlib.sha256(b"as written").hexdigest()
    done = {"fingerprint": job.fingerprint, "parameters": dict(job.parameters), "page": digest}
    done["artifacts"] = {"r.json": digest}
    if fault == "fingerprint":
        done["fingerprint"] = "other"
    if fault == "parameters":
        done["parameters"]["patients"] = 5
    files = {"sentinel": job.sentinel, "artifact": artifact, "notebook": job.notebook}
    for name, file in files.items():
        text = json.dumps(done)[: 20 if fault == "half" else None] if name == "sentinel" else "as written"
        (root / file).parent.mkdir(parents=True, exist_ok=True)
        (root / file).write_text("as edited" if fault == name else text)
    for name in (name for name in files if fault == f"{name} gone"):
        (root / files[name]).unlink()
    assert plan.state(root, job) == STATES[fault]
    assert plan.is_current(root, job) is (fault == "none")
