"""The chain as data: which runs there are and which wait for which."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import toy_chain

from bookmaker.runner import _inputs, _seals, plan
from privhelpers.artifacts import Store, sha256_of, to_json, write_sealed
from privhelpers.errors import DamagedArtifact, InvalidParameter, MissingArtifact


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
        ("memorization", {"extraction_{model}"}),  # of this model alone
        ("membership_inference", {"public_pretraining", "shadow_models", "fine_tuning"}),  # adapters
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
    beside = {rule.format(model=model) for rule in beside}
    assert sorted(needs) == sorted({"synthetic_records", maker} | beside)  # each one once


TRAINED = ("synthetic_records", "public_pretraining", "fine_tuning", "private_training_")
ATTACKED = ("extraction_", "memorization_", "membership_inference_")


def test_the_comparison_waits_for_all_and_hipaa_for_the_comparison(jobs):
    measured = {rule for rule in jobs if rule.startswith((*TRAINED, *ATTACKED))}
    assert set(jobs["comparison"].needs) == {*measured, "private_utility", "auditing", "broken_dpsgd"}
    assert set(jobs["hipaa"].needs) == {*measured, "private_utility", "comparison"}


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
    before = plan.upto(list(jobs.values()), "comparison")[:-1]
    assert jobs["comparison"].inputs == {other.rule: other.sentinel for other in before}
    assert set(jobs["comparison"].needs) < {other.rule for other in before}


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


def spoil(done, **values):
    return {**done, **values}


RECORD = "runs/toy/artifacts/synthetic_records/run.json"
STATES = {
    "nothing": (None, plan.CURRENT),
    "code": (lambda d: spoil(d, fingerprint="other"), "to run: its code changed"),
    "parameters": (
        lambda d: spoil(d, parameters=d["parameters"] | {"patients": 5}),
        "to run: changed patients",
    ),
    # What follows carries a seal that fits.
    "seconds as text": (lambda d: spoil(d, seconds="fast"), f"damaged: {RECORD}: not the record of a run"),
    "seconds below zero": (lambda d: spoil(d, seconds=-1), f"damaged: {RECORD}: not the record of a run"),
    "a version as a list": (
        lambda d: spoil(d, versions={"python": [3]}),
        f"damaged: {RECORD}: not the record of a run",
    ),
    "a start that is no time": (
        lambda d: spoil(d, started="yesterday"),
        f"damaged: {RECORD}: not the record of a run",
    ),
    "of another run": (lambda d: spoil(d, rule="hipaa"), f"damaged: {RECORD}: not the record of a run"),
    "no table": (lambda d: [d], f"damaged: {RECORD}: not the record of a run"),
    "no hashes": (lambda d: spoil(d, artifacts={}), "damaged: r.json was added after the run"),
}


@pytest.fixture
def done(root, jobs):
    """Return a run that is complete and what it recorded."""
    job = jobs["synthetic_records"]
    Store(root / "runs/toy/artifacts", "toy").write_json("synthetic_records/r.json", {"n": 4})
    (root / job.notebook).parent.mkdir(parents=True)
    (root / job.notebook).write_text("as executed")
    files = {"page": sha256_of(root / job.notebook), "artifacts": _seals.hashes(root / "runs/toy/artifacts")}
    files["artifacts"] = {"r.json": files["artifacts"]["synthetic_records/r.json"]}
    cost = {"seconds": 1.5, "cpu_seconds": 1.0, "peak_memory_mib": 300}
    made = {"started": "2026-01-01T00:00:00+00:00", "versions": {"python": "3.11"}}
    named = {"rule": job.rule, "notebook": job.slug, "model": None, "fingerprint": job.fingerprint}
    record = named | made | cost | files | {"parameters": job.parameters}
    write_sealed(root / job.sentinel, to_json(record))
    return job, record


@pytest.mark.parametrize("fault", STATES)
def test_a_run_is_current_only_with_this_code_these_parameters_and_a_record(root, done, fault):
    job, record = done
    change, expected = STATES[fault]
    if change:
        write_sealed(root / job.sentinel, json.dumps(change(record)).encode())
    assert plan.state(root, job).startswith(expected)
    assert plan.is_current(root, job) is (fault == "nothing")


PAGE, HOME = "runs/toy/notebooks/synthetic_records.ipynb", "runs/toy/artifacts/synthetic_records/"


@pytest.mark.parametrize("spoiled", [None, b"", b"as edited", b"\xff\xfe", b"[" * 100_000])
@pytest.mark.parametrize(
    "file, named",
    [
        (PAGE, PAGE),
        (f"{HOME}r.json", "r.json"),
        (f"{HOME}r.json.sha256", "r.json"),
        (f"{HOME}run.json", RECORD),
        (f"{HOME}run.json.sha256", RECORD),
    ],
)
def test_whatever_is_damaged_is_named_and_runs_again(root, done, file, named, spoiled):
    job, _ = done
    if spoiled is None:
        (root / file).unlink()
    else:
        (root / file).write_bytes(spoiled)
    lost = spoiled is None and file == job.sentinel
    state = plan.state(root, job)
    assert state == "to run" if lost else state.startswith(f"damaged: {named}")


@pytest.mark.parametrize("sealed", [False, True])
def test_a_file_that_the_run_did_not_write_is_damage_but_one_of_the_system_is_not(root, done, sealed):
    job, _ = done
    (root / HOME / ".DS_Store").write_bytes(b"x")
    assert plan.is_current(root, job)
    (write_sealed if sealed else Path.write_bytes)(root / HOME / "adapter_config.json", b"{}")
    assert plan.state(root, job).startswith("damaged: adapter_config.json")


def test_a_file_edited_together_with_its_seal_is_damage(root, done):
    job, _ = done
    write_sealed(root / HOME / "r.json", b"{}")
    assert plan.state(root, job) == "damaged: r.json changed after the run"


def test_an_executed_notebook_is_read_only_as_its_run_left_it(root, done):
    job, _ = done
    with pytest.raises(DamagedArtifact, match="not a notebook"):
        plan.executed(root, job)  # the right bytes, though they are none
    (root / job.notebook).write_text("as edited")
    with pytest.raises(DamagedArtifact, match="changed after the run; run `make book PROFILE=toy`"):
        plan.executed(root, job)
    (root / job.notebook).unlink()
    with pytest.raises(MissingArtifact, match="is missing"):
        plan.executed(root, job)


def test_a_model_that_others_trained_is_read_like_a_run(root):
    """Its seals count: whoever fetches another one has other results."""
    job = next(job for job in plan.jobs(root, "toy") if job.rule == "real_model")
    assert job.reads == job.inputs
    job = replace(job, parameters=job.parameters | {"start_from": "pretrained"})
    assert set(job.reads) - set(job.inputs) == {"pretrained"}
    assert "pretrained" not in _inputs.hashes(root, job.reads), "it was not fetched"
    write_sealed(root / "pretrained" / "some-model" / "model.safetensors", b"1")
    read = _inputs.hashes(root, job.reads)
    assert _inputs.misread(root, job.reads, read) == ""
    write_sealed(root / "pretrained" / "some-model" / "model.safetensors", b"2")
    assert _inputs.misread(root, job.reads, read) == "pretrained was made again since, with other results"
