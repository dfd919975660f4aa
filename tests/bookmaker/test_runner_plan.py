"""The chain as data: which runs there are and which wait for which."""

from dataclasses import replace

import pytest
import toy_chain

from bookmaker.runner import files, plan
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


MODELS = ["public", "baseline", "best_nonprivate", "equal_use", "dp-eps-0.5", "dp-eps-8"]


def test_every_run_is_planned_once(jobs):
    assert len(jobs) == toy_chain.runs(epsilons=2)
    assert [rule for rule in jobs if rule.startswith("extraction_")] == [
        f"extraction_{model}" for model in MODELS
    ]


TRAINED = ("synthetic_records", "public_pretraining", "fine_tuning", "private_training_")
ATTACKED = ("extraction_", "memorization_", "membership_inference_")


def test_the_comparison_waits_for_all_and_hipaa_for_the_comparison(jobs):
    measured = {rule for rule in jobs if rule.startswith((*TRAINED, *ATTACKED))}
    assert set(jobs["comparison"].needs) == {*measured, "private_utility", "auditing", "broken_dpsgd"}
    assert set(jobs["hipaa"].needs) == {*measured, "private_utility", "comparison"}
    beside = {"synthetic_records", "public_pretraining", "fine_tuning"}
    assert set(jobs["extraction_dp-eps-8"].needs) == {*beside, "private_training_dp-eps-8"}


def test_the_plan_fills_in_profile_model_and_models(jobs):
    private = jobs["private_training_dp-eps-0.5"].parameters
    assert (private["profile"], private["model"], private["target_epsilon"]) == ("toy", "dp-eps-0.5", 0.5)
    assert jobs["hipaa"].parameters["models"] == MODELS
    for rule in ("fine_tuning", "private_training_dp-eps-8"):  # neither waits for the other
        assert set(jobs[rule].needs) == {"synthetic_records", "public_pretraining"}
    assert "model" not in jobs["synthetic_records"].parameters


def test_a_plan_for_one_run_says_of_it_what_the_whole_plan_does(root, jobs):
    some = ["extraction_baseline", "composition"]
    alone = {job.rule: job for job in plan.jobs(root, "toy", only=some)}
    assert [alone[rule] for rule in some] == [jobs[rule] for rule in some] and list(alone) == list(jobs)


def test_one_kernel_makes_every_model_of_a_chapter_and_the_chapters_that_read_no_run(jobs):
    rules = plan.together(list(jobs.values()))
    assert [job.model for job in rules["extraction"]] == MODELS
    for name in ("foundations", "alone"):
        assert len(rules[name]) > 1 and not any(job.needs for job in rules[name])
    made = [job.rule for some in rules.values() for job in some]
    assert sorted(made) == sorted(jobs) and len(rules) < len(jobs)
    assert list(plan.together(list(jobs.values()), apart=True)) == list(jobs)


def test_paths(jobs):
    job = jobs["private_training_dp-eps-8"]
    assert job.notebook == "runs/toy/notebooks/private_training/dp-eps-8.ipynb"
    assert job.sentinel == "runs/toy/artifacts/private_training/dp-eps-8/run.json"
    assert jobs["comparison"].notebook == "runs/toy/notebooks/comparison.ipynb"
    before = plan.upto(list(jobs.values()), "comparison")[:-1]
    assert jobs["comparison"].inputs == {other.rule: other.mark for other in before}
    assert set(jobs["comparison"].needs) < {other.rule for other in before}


def test_the_runs_up_to_one_and_what_is_not_there(root, jobs):
    before = ["synthetic_records", "public_pretraining", "fine_tuning", "extraction_baseline"]
    assert [job.rule for job in plan.upto(list(jobs.values()), "extraction_baseline")] == before
    with pytest.raises(InvalidParameter, match=r"05.*anonymization"):
        plan.upto(list(jobs.values()), "05")
    (root / "notebooks" / "hipaa.ipynb").unlink()
    with pytest.raises(MissingArtifact, match="hipaa"):
        plan.jobs(root, "toy")


RECORD = "runs/toy/artifacts/synthetic_records/run.json"
STALE = {
    "nothing": ({}, ""),
    "code": ({"fingerprint": "other"}, "to run: its code"),
    "parameters": ({"parameters": {"patients": 5}}, "to run: changed patients, profile, seed"),
    # What follows carries a seal that fits.
    "of another run": ({"rule": "hipaa"}, f"damaged: {RECORD}"),
    "no hashes": ({"artifacts": {}}, "damaged: r.json"),
}


@pytest.fixture
def done(root, jobs):
    """Return a run that is complete and what it recorded."""
    job = jobs["synthetic_records"]
    Store(root / "runs/toy/artifacts", "toy").write_json("synthetic_records/r.json", {"n": 4})
    (root / job.notebook).parent.mkdir(parents=True)
    (root / job.notebook).write_text("as executed")
    record = {"rule": job.rule, "fingerprint": job.fingerprint, "parameters": job.parameters, "inputs": {}}
    record["page"] = sha256_of(root / job.notebook)
    record["artifacts"] = files.hashes((root / job.sentinel).parent, plan.RECORD)
    write_sealed(root / job.sentinel, to_json(record))
    plan.mark(root, job, record["artifacts"])
    return job, record


@pytest.mark.parametrize("fault", STALE)
def test_a_run_is_up_to_date_only_with_this_code_these_parameters_and_a_record(root, done, fault):
    job, record = done
    change, expected = STALE[fault]
    if change:
        write_sealed(root / job.sentinel, to_json(record | change))
    why = plan.stale(root, job)
    assert why.startswith(expected) and bool(why) == bool(expected)


def test_a_run_is_made_again_where_one_before_it_has_other_results(root, jobs, done):
    """Made again alike, whenever that was, changes nothing."""
    before, record = done
    job = jobs["retrieval"]
    write_sealed(root / job.sentinel, to_json(record | {"rule": job.rule, "artifacts": {}} | {
        "fingerprint": job.fingerprint, "parameters": job.parameters, "inputs": plan.reads(root, job),
        "page": sha256_of(root / before.notebook),
    }))  # fmt: skip
    (root / job.notebook).write_text("as executed")
    plan.mark(root, before, record["artifacts"])
    assert list(plan.reads(root, job)) == ["synthetic_records"] and plan.stale(root, job) == ""
    plan.mark(root, before, {"r.json": "other"})
    assert plan.stale(root, job) == "to run: it read other results of synthetic_records"


def test_a_note_is_new_only_where_it_says_something_else(root, jobs):
    job = jobs["hipaa"]
    plan.note(root, job)
    written = (root / job.note).stat().st_mtime_ns
    plan.note(root, job)
    assert (root / job.note).stat().st_mtime_ns == written
    plan.note(root, replace(job, fingerprint="other"))
    assert (root / job.note).stat().st_mtime_ns != written


PAGE, HOME = "runs/toy/notebooks/synthetic_records.ipynb", "runs/toy/artifacts/synthetic_records/"


@pytest.mark.parametrize("spoiled", [None, b"", b"\xff\xfe"])
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
    why = plan.stale(root, job)
    assert why == "to run" if lost else why.startswith(f"damaged: {named}")


def test_a_file_that_the_run_did_not_write_is_damage_but_one_of_the_system_is_not(root, done):
    job, _ = done
    (root / HOME / ".DS_Store").write_bytes(b"x")
    assert plan.stale(root, job) == ""
    write_sealed(root / HOME / "r.json", b"{}")
    assert plan.stale(root, job).startswith("damaged: r.json"), "also with its seal"
    write_sealed(root / HOME / "adapter_config.json", b"{}")
    assert plan.stale(root, job).startswith("damaged: adapter_config.json")


def test_an_executed_notebook_is_read_only_as_its_run_left_it(root, done):
    job, _ = done
    with pytest.raises(DamagedArtifact, match="not a notebook"):
        plan.executed(root, job)  # the right bytes, though they are none
    (root / job.notebook).write_text("as edited")
    with pytest.raises(DamagedArtifact, match="make book PROFILE=toy"):
        plan.executed(root, job)
    (root / job.sentinel).unlink()
    with pytest.raises(MissingArtifact, match=r"run\.json"):
        plan.executed(root, job)


def test_a_run_that_starts_from_the_pretrained_model_follows_from_its_seals(root):
    def fingerprint(starts):
        path = root / "notebooks" / "real_model.ipynb"
        cell = f'{toy_chain.HEAD}start_from: str = "{starts}"  # which model\n'
        toy_chain.write_notebook(path, cell, ["1 + 1"])
        return next(job.fingerprint for job in plan.jobs(root, "toy") if job.rule == "real_model")

    before = {starts: fingerprint(starts) for starts in ("pretrained", "public")}
    write_sealed(root / "pretrained" / "some-model" / "model.safetensors", b"1")
    after = {starts: fingerprint(starts) for starts in before}
    assert after["public"] == before["public"] and after["pretrained"] != before["pretrained"]


def test_the_prose_describes_one_run_of_a_chapter(jobs):
    default = {rule: replace(job, profile="course", parameters={"seed": 0}) for rule, job in jobs.items()}
    described = {rule for rule, job in default.items() if job.is_default}
    once = {rule for rule, job in jobs.items() if job.model is None}
    attacks = {f"{name}baseline" for name in ATTACKED}
    assert described == {*once, *attacks, "private_training_dp-eps-8"}
    records = default["synthetic_records"]
    assert not replace(records, parameters={"seed": 1}).is_default
    assert not replace(records, profile="smoke").is_default
