"""Chapters are kept from complete runs alone, shown where patients and models are the same, and say so."""

import json
import shutil

import pytest
import toy_site

from bookmaker.runner import build, chain, cli, files, keep, notebooks, plan, verify
from bookmaker.site import _staging
from bookmaker.site._run_card import run_card
from privhelpers.artifacts import SEAL, Store, parse_json, to_json, write_sealed
from privhelpers.errors import DamagedArtifact, InvalidParameter, RunFailed
from privhelpers.results.reference import open_reference

SHADOWS, UTILITY = "shadow_models", "private_utility"
COURSE = f"kept: [{SHADOWS}, {UTILITY}]\nprivate_training:\n  target_epsilon: [1, 8]\n"
NOTES = {part: [{"text": part}] for part in ("train", "heldout", "crowd", "validation", "public")}
WEIGHTS = {  # of the models that are kept
    "public_pretraining/public/model.safetensors": b"public",
    "fine_tuning/best_nonprivate/model.safetensors": b"best",
    "fine_tuning/best_nonprivate/tokenizer.json": b"{}",
    "fine_tuning/baseline/model.safetensors": b"baseline",
}


def edit(root, slug, change):
    """Write a toy notebook with a seed, after a change of it."""
    source = toy_site.source(slug)
    source.cells[1].source += "\nseed: int = 0  # of all chance; in [0, 9]"
    change(source)
    toy_site.write_source(root, slug, source)


def make_runs(root, profile):
    """Let every run of a profile be complete, as toys are."""
    store = Store(root / "runs" / profile / "artifacts", profile)
    for part, rows in NOTES.items():
        store.write_jsonl(f"synthetic_records/{part}.jsonl", rows)
    store.write_json("public_pretraining/metrics.json", {"log": {}})
    store.write_bytes("public_pretraining/public_scores.npz", b"large, and no one reads it")
    store.write_json("fine_tuning/metrics.json", {"best_nonprivate": {}})
    for name, content in WEIGHTS.items():
        store.write_bytes(name, content)
    store.write_json(f"{SHADOWS}/summary.json", {"shadows": 16})
    store.write_json(f"{UTILITY}/of/utility.json", {"drugs": {}})
    store.write_json("comparison/summary.json", {"models": {}})
    for job in plan.jobs(root, profile):
        if not job.kept:
            source = notebooks.read(chain.source(root, job.slug))
            toy_site.write_run(root, job, toy_site.executed(source, job))


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    """A toy book whose study is complete and kept; the course has no runs yet."""
    root = tmp_path_factory.mktemp("kept") / "book"
    for folder in ("params", "privhelpers"):
        (root / folder).mkdir(parents=True)
    for slug in toy_site.PARAMETERS:
        toy_site.write_source(root, slug, toy_site.source(slug))
    for slug in ("synthetic_records", SHADOWS, UTILITY, "private_training", "extraction"):
        edit(root, slug, lambda source: None)
    (root / "params" / "course.yml").write_text(COURSE)
    (root / "params" / "study.yml").write_text("extends: course\nkept: []\n")
    make_runs(root, "study")
    keep.reference(root, "study")
    return root


@pytest.fixture
def book(untouched, tmp_path):
    return shutil.copytree(untouched, tmp_path / "book")


def jobs(root, profile="course"):
    return {job.rule: job for job in plan.jobs(root, profile)}


def kept(root, profile="course"):
    return [rule for rule, job in jobs(root, profile).items() if job.kept]


def test_a_kept_chapter_takes_the_place_of_a_run_and_waits_for_none(book, capsys):
    job = jobs(book)[SHADOWS]
    assert kept(book) == [SHADOWS, UTILITY] and (job.needs, job.inputs, job.seconds) == ((), {}, 0)
    assert SHADOWS in jobs(book)["membership_inference_baseline"].inputs
    build._prepare(book, list(jobs(book).values()))
    said = capsys.readouterr().err
    assert "2 runs are kept ones, of 2026-01-01\n" in said and "older" not in said
    assert plan.stale(book, job) == "" and plan.stale(book, jobs(book)["extraction_public"]) == "to run"
    for name in (f"artifacts/{SHADOWS}/summary.json", f"notebooks/{SHADOWS}.ipynb"):
        assert (book / "runs/course" / name).read_bytes() == (book / "runs/study" / name).read_bytes()
    store = Store(book / "runs/course/artifacts", "course")
    assert store.read_json(f"{UTILITY}/of/utility.json") == {"drugs": {}}
    made = (book / job.mark).stat().st_mtime_ns
    build._prepare(book, list(jobs(book).values()))
    assert (book / job.mark).stat().st_mtime_ns == made, "nothing changed"
    (book / "runs/course/artifacts" / SHADOWS / "summary.json").write_text("{}")
    assert plan.stale(book, job).startswith("damaged: summary.json")
    build._prepare(book, list(jobs(book).values()))
    assert not plan.stale(book, job) and "to be made again" in capsys.readouterr().err


def test_a_sentence_that_a_default_run_does_not_show_is_named_and_not_kept(book, monkeypatch, capsys):
    shown, live = jobs(book, "study")[SHADOWS], jobs(book, "course")[SHADOWS]
    assert verify.false_claims(book, [shown]) == {}
    monkeypatch.setattr(notebooks, "crosses", lambda executed: ["It leaks no one."])
    assert verify.false_claims(book, [shown, live]) == {SHADOWS: ["It leaks no one."]}, (
        "the course shows a kept one"
    )
    assert verify.false_claims(book, [jobs(book, "study")["membership_inference_public"]]) == {}
    with pytest.raises(RunFailed, match="It leaks no one"):
        keep.reference(book, "study")
    # The site is made all the same; the command fails at its end.
    monkeypatch.setattr(build, "chain", lambda *args, **options: 0)
    monkeypatch.setattr(cli, "repository_root", lambda: book)
    assert cli.main(["book", "--profile", "study"]) == 1
    assert f"not shown by {SHADOWS}: It leaks no one." in capsys.readouterr().err


def test_other_patients_or_models_run_live(book):
    for name, text in {
        "seeded": "synthetic_records: {seed: 1}",
        "budgets": "private_training: {target_epsilon: [1, 4]}",
        "own": "kept: []",
        "same": "extraction: {}",
    }.items():
        (book / "params" / f"{name}.yml").write_text(f"extends: course\n{text}\n")
    found = {name: kept(book, name) for name in ("seeded", "budgets", "own", "same")}
    # The attack on shadow models read none of the private models.
    assert found == {"seeded": [], "budgets": [SHADOWS], "own": [], "same": [SHADOWS, UTILITY]}
    shutil.rmtree(book / "reference/study" / SHADOWS)
    assert kept(book) == [UTILITY], "nothing is kept of the other"


def test_a_kept_private_model_stands_beside_live_ones_of_the_same_code_and_settings(book):
    rules = ["private_training_dp-eps-1", "extraction_dp-eps-1"]
    params = book / "params"
    (params / "course.yml").write_text(COURSE.replace("kept: [", f"kept: [{', '.join(rules)}, "))
    keep.reference(book, "study")
    assert kept(book) == [rules[0], SHADOWS, UTILITY, rules[1]]
    plans = jobs(book)
    build._prepare(book, list(plans.values()))
    assert plan.stale(book, plans[rules[1]]) == "" and not (book / plans["extraction_dp-eps-8"].mark).exists()
    (params / "mine.yml").write_text("extends: course\nprivate_training: {seed: 1}\n")
    assert kept(book, "mine") == [SHADOWS], "no private model, nor an attack on one"
    (params / "mine.yml").write_text("extends: course\nshared: {seed: 1}\n")
    assert kept(book, "mine") == []
    edit(book, "extraction", lambda source: source.cells[3].update(source="print('better')"))
    assert kept(book) == [rules[0], SHADOWS, UTILITY], "the other models are attacked by the new code"


def test_older_code_is_told_with_the_command_that_renews_it(book, capsys):
    edit(book, SHADOWS, lambda source: source.cells[3].update(source="print('better')"))
    assert [job.rule for job in jobs(book).values() if job.older] == [SHADOWS]
    build._prepare(book, list(jobs(book).values()))
    said = capsys.readouterr().err
    assert f"older code than today's: {SHADOWS}; `make book PROFILE=study`" in said
    assert plan.stale(book, jobs(book)[SHADOWS]) == "", "it is shown all the same"


def test_other_notes_than_the_kept_runs_read_are_refused_before_anything_runs(book):
    make_runs(book, "course")
    plans = list(jobs(book).values())
    build._prepare(book, plans)
    store = Store(book / "runs/course/artifacts", "course")
    store.write_jsonl("synthetic_records/train.jsonl", [{"text": "of other patients"}])
    job = jobs(book)["synthetic_records"]
    toy_site.keep_record(book, job, json.loads((book / job.sentinel).read_text()))
    with pytest.raises(RunFailed, match=r"2 runs would show other patients; `make book PROFILE=study`"):
        build._prepare(book, plans)
    (book / "params/mine.yml").write_text("extends: course\nkept: []\n")
    assert plan.other_notes(book, list(jobs(book, "mine").values())) == "", "all of it is live"


def test_a_kept_file_that_changed_is_refused_by_its_name(book):
    path = book / "reference/study" / SHADOWS / "summary.json"
    write_sealed(path, b'{"shadows": 17}')
    with pytest.raises(DamagedArtifact, match=rf"reference/study/{SHADOWS}: summary\.json changed"):
        build._prepare(book, list(jobs(book).values()))


def test_a_page_has_todays_words_and_says_which_run_it_shows(book):
    edit(book, SHADOWS, lambda source: source.cells[2].update(source="A better sentence:"))
    edit(book, UTILITY, lambda s: (s.cells[3].update(source="print(1)"), s.cells[2].update(source="New:")))
    build._prepare(book, list(jobs(book).values()))
    shown, older = (_staging.page_of(book, jobs(book)[slug]) for slug in (SHADOWS, UTILITY))
    for page, sentence in ((shown, "A better sentence:"), (older, "A sentence that can change:")):
        assert sentence in [cell.source for cell in page.cells]
        text = page.cells[0].source
        assert text.index("# Toy") < text.index(":::{admonition} Kept results") < text.index("You will")
        assert "kept from a run of 2026-01-01 (seed 0, commit" in text and "PROFILE=study" in text
    assert not [cell for cell in older.cells if cell.source == "print(1)"]
    live = _staging.page_of(book, jobs(book, "study")[SHADOWS])
    assert "Kept results" not in live.cells[0].source


def test_the_run_card_counts_and_cites_live_runs_alone(book):
    make_runs(book, "course")
    plans = list(jobs(book).values())
    build._prepare(book, plans)
    for job in plans:  # those that read a kept chapter, made before it was there
        if not job.kept:
            toy_site.keep_record(book, job, json.loads((book / job.sentinel).read_text()))
    manifest = keep.published.described(book, plans)
    manifest["runs"][SHADOWS]["started"] = "2025-01-01"
    live = len(plans) - 2
    assert manifest["total_seconds"] == 61.0 * live and not verify.damaged(book, plans)
    text = run_card(manifest, "0")
    assert f"{live} runs, " in text and f"they took there: {UTILITY}, {SHADOWS}" not in text
    assert f"there: {SHADOWS}, {UTILITY}." in text and "date    = {2026-01-01}" in text


def test_what_is_kept_says_how_it_was_made(book):
    about = parse_json((book / "reference/study/about/about.json").read_bytes(), "about")
    assert about["command"] == "make book PROFILE=study" and about["cpu_seconds"] > 0
    assert about["models"]["synthetic_records"] == {"seed": 0}


def test_what_is_kept_together_names_the_commit_that_it_was_kept_at(book, monkeypatch):
    """The first folder that is written changes the copy, which would then be marked."""
    asked = iter(["clean", "changed", "changed"])
    monkeypatch.setattr(keep, "commit", lambda root: next(asked))
    keep.reference(book, "study")
    assert {open_reference(name, book).about["commit"] for name in ("study", "public", "best")} == {"clean"}


def test_the_models_of_study_are_kept_with_what_they_follow_from(book):
    kept_files = {
        "public": ("metrics.json", "public/model.safetensors", "run.json"),  # the scores are large
        "best": ("best_nonprivate/model.safetensors", "metrics.json", "run.json"),
    }
    runs = Store(book / "runs/study/artifacts", "study")
    for name, chapter in (("public", "public_pretraining"), ("best", "fine_tuning")):
        names = sorted(files.below(book / "reference" / name / chapter))
        assert [file for file in names if not file.endswith(SEAL)] == [*kept_files[name]]
        model = open_reference(name, book)
        settings = jobs(book, "study")[chapter].parameters
        assert model.follows_from(runs, settings) and not model.follows_from(runs, settings | {"seed": 7})
        record = json.loads((book / "reference" / name / chapter / "run.json").read_text())
        assert record["fingerprint"] == jobs(book, "study")[chapter].fingerprint
    read = {name: [*open_reference(name, book).about["made_from"]] for name in kept_files}
    assert read["public"] == ["synthetic_records/public.jsonl"]
    for file in read["public"] + read["best"]:
        before = runs.path(file).read_bytes()
        runs.write_bytes(file, b"other")
        models = {name: open_reference(name, book).follows_from(runs, {}) for name in kept_files}
        assert models == {name: file not in read[name] for name in kept_files}, file
        runs.write_bytes(file, before)


def test_runs_that_are_not_current_are_not_kept_and_what_was_kept_stays(book, monkeypatch, capsys):
    monkeypatch.chdir(book)
    before = files.hashes(book / "reference", "")
    (book / jobs(book, "study")["hipaa"].sentinel).unlink()  # no kept chapter reads it
    keep.reference(book, "study")
    (book / jobs(book, "study")["fine_tuning"].sentinel).unlink()
    with pytest.raises(RunFailed, match="PROFILE=study"):
        keep.reference(book, "study")
    assert files.hashes(book / "reference", "") == before
    with pytest.raises(InvalidParameter, match="nothing to keep"):
        keep.reference(book, "course")
    monkeypatch.setattr(cli, "repository_root", lambda: book)
    assert cli.main(["check", "--profile", "course"]) == 0
    assert f"{SHADOWS:<45} kept        after nothing" in capsys.readouterr().out


def test_a_profile_keeps_the_chapters_that_it_alone_runs_live(book):
    (book / "params/real.yml").write_text(f"extends: course\nkept: [{SHADOWS}]\n")
    make_runs(book, "real")
    build._prepare(book, list(jobs(book, "real").values()))
    for job in jobs(book, "real").values():
        if not job.kept:
            toy_site.keep_record(book, job, json.loads((book / job.sentinel).read_text()))
    folder = keep.reference(book, "real")
    assert sorted(path.name for path in folder.iterdir()) == ["about", UTILITY]
    assert kept(book) == [SHADOWS, UTILITY], "the course goes on with those of study"
    assert to_json(open_reference("real", book).about)
