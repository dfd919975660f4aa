"""A build of toy notebooks: a failed run publishes nothing, and a build that was killed goes on."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time

import nbformat
import psutil
import pytest
import toy_chain
from patience import LIMIT_SECONDS

from bookmaker.runner import plan
from bookmaker.runner.chain import CHAIN, STATISTICS

RUNS = toy_chain.runs(epsilons=1)
RECORDS, PRETRAINING, HIPAA = "synthetic_records", "public_pretraining", "hipaa"


def started(done):
    """Return the titles of the runs that a build started."""
    return re.findall(r"\] (.+) started$", done.stderr, re.MULTILINE)


def kept(done):
    """Return the titles of the runs that a build left as they were, when all that they read was there."""
    return sorted(re.findall(r"\] (.+) kept: ", done.stderr))


def set_last_cell(root, slug, code):
    path = root / "notebooks" / f"{slug}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    old, notebook.cells[-1].source = notebook.cells[-1].source, code
    nbformat.write(notebook, path)
    return old


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    return toy_chain.build(tmp_path_factory.mktemp("faults") / "{profile} {y}")


@pytest.mark.parametrize(
    "code, reason, options, variables",
    [
        ("1 / 0", "ZeroDivisionError", [], {}),
        ("import sys\nsys.exit(0)", "SystemExit", [], {}),
        ("store.path('synthetic_records/x.csv').write_text('x')", "has no .sha256", [], {}),
        ("open('privhelpers/toy_records.py', 'a').write('# edited')", "changed while it ran", [], {}),
        ("assert 1 + 1 == 3", "AssertionError", [], {"PYTHONOPTIMIZE": "1"}),
        ("while True:\n    pass", "Timeout", ["--limit", "0.001"], {}),
    ],
    ids=["error", "exit", "unsealed", "edited", "assertion", "limit"],
)
def test_a_run_that_does_not_complete_leaves_no_result(toy, code, reason, options, variables):
    old = set_last_cell(toy, RECORDS, code)
    sentinel = toy / "runs/toy/artifacts" / RECORDS / "run.json"
    sentinel.parent.mkdir(parents=True, exist_ok=True)
    sentinel.write_text("{}")  # of an earlier run
    command = toy_chain.command("run", "--profile", "toy", "--job", RECORDS, *options)
    done = toy_chain.finish(toy, command, variables)
    set_last_cell(toy, RECORDS, old)
    assert done.returncode == 1 and reason in done.stderr and "FAILED after" in done.stderr, done.stderr
    assert "Traceback (most recent call last):\n  File" not in done.stderr
    assert not sentinel.exists() and not (toy / "runs/toy/notebooks" / f"{RECORDS}.ipynb").exists()
    assert (toy / "runs/toy/failed" / f"{RECORDS}.ipynb").exists()
    assert (toy / "runs/toy/logs" / f"{RECORDS}.log").read_text().strip()


def test_runs_on_several_models_share_a_kernel_and_no_variable_and_one_that_fails_stops_no_other(toy):
    code = """import os
assert "left" not in globals(), "of the run before"
left = os.getpid()
assert model != "baseline", "not this one"
store.write_json(f"extraction/{model}/a.json", {"kernel": left})"""
    old = set_last_cell(toy, "extraction", code)
    models = ("public", "equal_use", "baseline", "best_nonprivate")
    rules = [f"extraction_{model}" for model in models]
    done = toy_chain.call(toy, "run", "--profile", "toy", "--job", *rules)
    set_last_cell(toy, "extraction", old)
    assert done.returncode == 1 and "AssertionError: not this one" in done.stderr, done.stderr
    assert started(done) == [rule.replace("_", " ", 1) for rule in rules]
    folder = toy / "runs/toy/artifacts/extraction"
    made = {path.parent.name: json.loads(path.read_text())["kernel"] for path in folder.glob("*/a.json")}
    assert made["public"] == made["equal_use"] != made["best_nonprivate"] and len(made) == 3


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    """Return a toy book whose first build failed in the baseline and whose second went through."""
    root = toy_chain.build(tmp_path_factory.mktemp("chain") / "{profile} {y}")
    good = set_last_cell(root, "fine_tuning", "raise RuntimeError('no convergence')")
    failed = toy_chain.call(root, "book", "--profile", "toy")
    there = [name for name in ("manifest.json", "site/.complete") if (root / "runs/toy" / name).exists()]
    set_last_cell(root, "fine_tuning", good)
    # A user's profile of Snakemake, and one that it would find by its place, steer nothing.
    for folder in ("profiles/default", "own"):
        (root / folder).mkdir(parents=True)
        (root / folder / "config.yaml").write_text("touch: true\nuntil: [toy/uncertainty]\n")
    second = toy_chain.command("book", "--profile", "toy")
    return root, failed, there, toy_chain.finish(root, second, {"SNAKEMAKE_PROFILE": str(root / "own")})


def test_a_failed_run_stops_the_site_but_not_its_neighbors(chain):
    root, failed, there, _ = chain
    assert failed.returncode == 1 and not there and "RuntimeError: no convergence" in failed.stderr
    jobs = plan.jobs(root, "toy")
    waiting = [job for job in jobs if "fine_tuning" in job.inputs]
    assert f"stopped, no site: fine_tuning failed; {len(waiting)} runs wait" in failed.stderr
    assert sorted(started(failed)) == sorted(job.title for job in jobs if job not in waiting)


def test_the_next_build_finishes_without_redoing_what_was_done(chain):
    root, failed, _, finished = chain
    assert finished.returncode == 0, finished.stderr
    assert set(started(failed)) & set(started(finished)) == {"fine_tuning"}
    assert len(started(failed)) + len(started(finished)) == RUNS + 1  # the one that failed runs twice
    assert (root / "runs/toy/site/_build/html/index.html").exists()
    assert re.search(rf"\] \d+ of {len(started(finished))} runs in .+, about .+ left", finished.stderr)


def test_what_a_build_leaves(chain):
    root = chain[0]
    manifest = json.loads((root / "runs/toy/manifest.json").read_text())
    assert len(manifest["runs"]) == RUNS and manifest["total_seconds"] > 0
    private = manifest["runs"]["private_training_dp-eps-8"]
    assert private["parameters"]["target_epsilon"] == 8 and private["parameters"]["seed"] == 3
    folder = root / "runs/toy/artifacts/private_training/dp-eps-8"
    assert private["artifacts"] == {"m.json": (folder / "m.json.sha256").read_text().split()[0]}
    assert json.loads((folder / "m.json").read_text()) == {"epsilon": 8.0}
    models = ["public", "baseline", "best_nonprivate", "equal_use", "dp-eps-8"]
    assert list(json.loads((root / "runs/toy/summary.json").read_text())["models"]) == sorted(models)
    notebook = nbformat.read(root / "runs/toy/notebooks/private_training/dp-eps-8.ipynb", as_version=4)
    (injected,) = [c for c in notebook.cells if "injected-parameters" in c.metadata.get("tags", [])]
    assert "target_epsilon = 8.0" in injected.source and 'accountant = "pld"' in injected.source
    assert str(root) not in json.dumps(manifest) and str(root) not in nbformat.writes(notebook)


def test_a_second_build_has_nothing_to_do_and_one_without_solutions_makes_a_site(chain):
    root = chain[0]
    again = toy_chain.call(root, "book", "--profile", "toy")
    assert again.returncode == 0 and started(again) == [] and "is up to date" in again.stderr
    before = {path: path.stat().st_mtime_ns for path in (root / "runs/toy/site").rglob("*") if path.is_file()}
    done = toy_chain.call(root, "book", "--profile", "toy", "--solutions", "no")
    assert done.returncode == 0 and started(done) == [], done.stderr
    assert (root / "runs/toy/public/.complete").is_file()
    assert {path: path.stat().st_mtime_ns for path in before} == before


@pytest.mark.parametrize(
    "change, expected",
    [("prose", []), ("helper", ["comparison"]), ("parameter", [HIPAA]), ("artifact", [HIPAA]), ("copy", [])],
)
def test_a_change_reruns_what_depends_on_it_and_nothing_else(chain, change, expected):
    root = chain[0]
    complete = root / "runs/toy/site/.complete"
    if change == "prose":
        path = root / "notebooks" / f"{HIPAA}.ipynb"
        path.write_text(path.read_text().replace("# Toy", "# Other words"))
    elif change == "helper":
        (root / "privhelpers/toy/shallow.py").write_text('"""Changed."""\n')
    elif change == "parameter":
        (root / "params/toy.yml").write_text(f"{toy_chain.PROFILE}{HIPAA}:\n  limit: 0.25\n")
    elif change == "artifact":
        (root / "runs/toy/artifacts" / HIPAA / "ledger.json").unlink()
    else:  # of another machine, which keeps no times
        shutil.rmtree(root / ".snakemake")
        for path in (root / "runs").rglob("*"):
            path.touch()
    site = complete.stat().st_mtime_ns
    done = toy_chain.call(root, "book", "--profile", "toy")
    assert done.returncode == 0 and complete.is_file(), done.stderr
    assert sorted(started(done)) == expected
    # Those that read the comparison find the same bytes, whenever they were made.
    if change == "helper":
        readers = [step.slug for step in CHAIN if STATISTICS in step.after]
        assert kept(done) == sorted(readers), done.stderr
    assert complete.stat().st_mtime_ns != site, "the site shows the change"


def wait_for(condition):
    deadline = time.monotonic() + LIMIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.1)


def results(root):
    """Return the bytes of every artifact of a build but the records, which say when a run was made."""
    folder = root / "runs/toy/artifacts"
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith("run.json")
    }


@pytest.mark.parametrize("ended", ["make killed", "build killed", "make terminated", "control-C"])
def test_a_build_that_is_ended_leaves_no_process_and_goes_on(tmp_path, ended):
    root = toy_chain.build(tmp_path / "book")
    (root / "params/toy.yml").write_text(f"{toy_chain.PROFILE}{PRETRAINING}:\n  steps: 36000\n")
    until = ("book", "--profile", "toy", "--until", PRETRAINING)
    line = " ".join(toy_chain.command(*until))
    (root / "Makefile").write_text(f".PHONY: book\nbook:\n\t@exec {line}\n")
    make = subprocess.Popen(
        ["make", "book"],
        cwd=root,
        env=toy_chain.environment(root),
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        # Tests started in the background of a shell inherit an ignored Control-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    log = root / "runs/toy/logs" / f"{PRETRAINING}.log"
    wait_for(lambda: log.exists() and "3" in log.read_text())
    below = psutil.Process(make.pid).children(recursive=True)
    assert any("ipykernel_launcher" in " ".join(one.cmdline()) for one in below)
    build = next(one for one in below if "book" in one.cmdline())
    sent = {
        "make killed": lambda: make.kill(),
        "build killed": lambda: build.kill(),
        "make terminated": lambda: make.terminate(),
        "control-C": lambda: os.killpg(make.pid, signal.SIGINT),
    }
    sent[ended]()
    make.wait(LIMIT_SECONDS)
    wait_for(lambda: not [one for one in below if one.is_running() and one.status() != psutil.STATUS_ZOMBIE])
    assert PRETRAINING not in "".join(results(root)), "nothing is published by halves"
    (root / "go").touch()
    done = toy_chain.call(root, *until)
    assert done.returncode == 0 and started(done) == [PRETRAINING], done.stderr
    assert {f"{RECORDS}/r.json", f"{PRETRAINING}/m.json"} <= results(root).keys()


def test_two_builds_do_not_share_a_profile(tmp_path):
    root = toy_chain.build(tmp_path / "book")
    script = (
        "import subprocess, sys\nfrom pathlib import Path\nfrom bookmaker.runner import build\n"
        "with build.alone(Path.cwd(), ['toy']):\n"
        f"    done = subprocess.run({toy_chain.command('book', '--profile', 'toy')!r})\n"
        "sys.exit(done.returncode)"
    )
    done = toy_chain.finish(root, [sys.executable, "-c", script])
    assert done.returncode == 1 and "profile toy is in use by process" in done.stderr


def test_two_cells_of_a_sweep_run_in_one_schedule(tmp_path):
    root = toy_chain.build(tmp_path / "book")
    for seed in (0, 1):
        file = root / f"runs/toy-s{seed}/profile.yml"
        file.parent.mkdir(parents=True)
        file.write_text(f"shared: {{seed: {seed}}}\n")
    plans = [plan.jobs(root, f"toy-s{seed}") for seed in (0, 1)]
    wanted = [job.mark for jobs in plans for job in jobs if job.slug == "private_training"]
    script = (
        "from pathlib import Path\nfrom bookmaker.runner import build, plan\n"
        "plans = [plan.jobs(Path('.'), name) for name in ('toy-s0', 'toy-s1')]\n"
        f"raise SystemExit(build.chain(Path('.').resolve(), plans, cores=2, targets={wanted}))\n"
    )
    done = toy_chain.python(root, script)
    assert done.returncode == 0 and all((root / target).is_file() for target in wanted), done.stderr
    again = toy_chain.python(root, script)
    assert again.returncode == 0 and started(again) == []


def test_a_kept_chapter_runs_nothing_and_other_notes_stop_the_build(tmp_path):
    root = toy_chain.build(tmp_path / "book")
    head, write = toy_chain.HEAD, toy_chain.WRITE
    notes = (
        'for part in ("train", "crowd", "validation", "heldout", "public"):\n'
        '    store.write_jsonl(f"synthetic_records/{part}.jsonl", [{"text": part}])'
    )
    toy_chain.write_notebook(root / f"notebooks/{RECORDS}.ipynb", head, [write, notes])
    public = 'store.write_bytes("public_pretraining/public/model.safetensors", b"")'
    toy_chain.write_notebook(root / f"notebooks/{PRETRAINING}.ipynb", head, [write, public])
    best = 'store.write_json("fine_tuning/metrics.json", {})'
    toy_chain.write_notebook(root / "notebooks/fine_tuning.ipynb", head, [write, best])
    shadows = 'store.write_json("shadow_models/s.json", {"n": 16})'
    toy_chain.write_notebook(root / "notebooks/shadow_models.ipynb", head, [write, shadows])
    (root / "params/course.yml").write_text(f"kept: [shadow_models]\n{toy_chain.PROFILE}")
    (root / "params/study.yml").write_text("extends: course\nkept: []\n")

    def until(run, profile="course"):
        return toy_chain.call(root, "book", "--profile", profile, "--until", run)

    made = [until(run, "study") for run in ("fine_tuning", "shadow_models")]
    assert [started(one) for one in made] == [[RECORDS, PRETRAINING, "fine_tuning"], ["shadow_models"]]
    assert toy_chain.call(root, "reference", "--profile", "study").returncode == 0
    taken = until("shadow_models")
    assert taken.returncode == 0 and started(taken) == [] and "1 run is a kept one" in taken.stderr
    attacked = until("membership_inference_baseline")
    assert started(attacked) == [RECORDS, PRETRAINING, "fine_tuning", "membership_inference baseline"]
    set_last_cell(root, RECORDS, notes.replace("part}]", "part * 2}]"))
    other = until("membership_inference_baseline")
    assert other.returncode == 1 and "would show other patients" in other.stderr
    assert started(other) == [RECORDS]
