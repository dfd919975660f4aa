"""A build of toy notebooks: a failed run publishes nothing, and a build that was ended goes on."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import nbformat
import psutil
import pytest
import toy_chain
from patience import LIMIT_SECONDS

from bookmaker.runner import plan, processes

RUNS = toy_chain.runs(epsilons=1)
KEPT = ["unfinished/fine_tuning", "unfinished/scrubbing"]  # of two runs, in case of a kill
RECORDS, PRETRAINING, HIPAA = "synthetic_records", "public_pretraining", "hipaa"


def waits_for(root, rule, other):
    """Return whether a run needs another one, directly or not."""
    needed = {job.rule for job in plan.upto(plan.jobs(root, "toy"), rule)}
    return other in needed - {rule}


def started(done):
    """Return the titles of the runs that a build started."""
    return [
        line.split("] ")[1][: -len(" started")]
        for line in done.stderr.splitlines()
        if line.endswith(" started")
    ]


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
    "code, reason",
    [
        ("1 / 0", "ZeroDivisionError"),
        ("import sys\nsys.exit(0)", "SystemExit"),
        ("store.path('synthetic_records/x.csv').write_text('x')", "has no .sha256"),
        ("open('privhelpers/toy_records.py', 'a').write('# edited')", "changed while it ran"),
    ],
    ids=["error", "exit", "unsealed", "edited"],
)
def test_a_run_that_does_not_complete_leaves_no_result(toy, code, reason):
    old = set_last_cell(toy, RECORDS, code)
    path = toy / "notebooks" / f"{RECORDS}.ipynb"
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.append(nbformat.v4.new_code_cell("1 + 1"))
    nbformat.write(notebook, path)
    sentinel = toy / "runs/toy/artifacts" / RECORDS / "run.json"
    sentinel.parent.mkdir(parents=True, exist_ok=True)
    sentinel.write_text("{}")  # of an earlier run
    done = toy_chain.call(toy, "run", "--profile", "toy", "--job", RECORDS)
    toy_chain.write_notebook(
        path, toy_chain.NOTEBOOKS[RECORDS][0], [*toy_chain.NOTEBOOKS[RECORDS][1][:-1], old]
    )
    assert done.returncode == 1 and reason in done.stderr and "FAILED after" in done.stderr, done.stderr
    assert "Traceback (most recent call last):\n  File" not in done.stderr
    assert not sentinel.exists() and not (toy / "runs/toy/notebooks" / f"{RECORDS}.ipynb").exists()
    assert not list((toy / "runs/toy/.parts").iterdir())
    assert (toy / "runs/toy/failed" / f"{RECORDS}.ipynb").exists()
    assert (toy / "runs/toy/logs" / f"{RECORDS}.log").read_text().strip()


def test_a_claim_that_fails_is_not_published_by_a_python_without_assertions(toy):
    old = set_last_cell(toy, RECORDS, "assert 1 + 1 == 3")
    command = toy_chain.command("run", "--profile", "toy", "--job", RECORDS)
    done = toy_chain.finish(toy, command, {"PYTHONOPTIMIZE": "1"})
    set_last_cell(toy, RECORDS, old)
    assert done.returncode == 1 and "AssertionError" in done.stderr, done.stderr


def test_a_cell_that_hangs_is_ended_at_its_limit(toy):
    old = set_last_cell(toy, RECORDS, "while True:\n    pass")
    done = toy_chain.call(toy, "run", "--profile", "toy", "--job", RECORDS, "--limit", "0.002")
    set_last_cell(toy, RECORDS, old)
    assert done.returncode == 1, done.stderr
    limit = rf"{RECORDS}: code cell \d+ \('.+'\) ran for 7.2 s, the limit of a cell"
    assert re.search(limit, done.stderr), done.stderr


@pytest.fixture(scope="module")
def chain(tmp_path_factory):
    """Return a toy book whose first build failed in the baseline and whose second went through."""
    root = toy_chain.build(tmp_path_factory.mktemp("chain") / "{profile} {y}")
    path = root / "notebooks" / "fine_tuning.ipynb"
    good = path.read_bytes()
    set_last_cell(root, "fine_tuning", "raise RuntimeError('no convergence')")
    for name in KEPT:
        (root / "runs/toy" / name / "parts").mkdir(parents=True)
    failed = toy_chain.call(root, "book", "--profile", "toy")
    there = [
        name
        for name in ("manifest.json", "summary.json", "site/.complete", *KEPT)
        if (root / "runs/toy" / name).exists()
    ]
    path.write_bytes(good)
    # A user's profile of Snakemake, and one that it would find by its place, steer nothing.
    for folder in ("profiles/default", "own"):
        (root / folder).mkdir(parents=True)
        (root / folder / "config.yaml").write_text("touch: true\nuntil: [toy/uncertainty]\n")
    second = toy_chain.command("book", "--profile", "toy")
    return root, failed, there, toy_chain.finish(root, second, {"SNAKEMAKE_PROFILE": str(root / "own")})


def test_a_failed_run_stops_the_site_but_not_its_neighbors(chain):
    root, failed, there, _ = chain
    assert failed.returncode == 1 and there == KEPT[:1], "a run that is complete needs its parts no more"
    assert "RuntimeError: no convergence" in failed.stderr
    waiting = [job for job in plan.jobs(root, "toy") if waits_for(root, job.rule, "fine_tuning")]
    assert f"stopped, no site: fine_tuning failed; {len(waiting)} runs wait" in failed.stderr
    independent = {"private_training dp-eps-8", "shadow_models", "scrubbing"}
    assert independent <= set(started(failed))
    assert not {"extraction baseline", "memorization public", "comparison"} & set(started(failed))


def test_the_next_build_finishes_without_redoing_what_was_done(chain):
    root, failed, _, finished = chain
    assert finished.returncode == 0, finished.stderr
    redone = set(started(failed)) & set(started(finished))
    assert redone == {"fine_tuning"}
    assert len(started(failed)) + len(started(finished)) == RUNS + 1  # the one that failed runs twice
    assert (root / "runs/toy/site/_build/html/index.html").exists()
    assert "[toy] comparison done in " in finished.stderr
    assert not list((root / "runs/toy/failed").iterdir())
    assert not list((root / "runs/toy/unfinished").iterdir())


def test_manifest_and_summary(chain):
    root = chain[0]
    manifest = json.loads((root / "runs/toy/manifest.json").read_text())
    assert len(manifest["runs"]) == RUNS and manifest["total_seconds"] > 0
    assert manifest["parameters"]["private_training"] == {"target_epsilon": [8]}
    private = manifest["runs"]["private_training_dp-eps-8"]
    assert private["parameters"]["target_epsilon"] == 8 and private["parameters"]["seed"] == 3
    folder = root / "runs/toy/artifacts/private_training/dp-eps-8"
    sealed = (folder / "m.json.sha256").read_text().split()[0]
    assert private["artifacts"] == {"m.json": sealed}
    assert json.loads((folder / "m.json").read_text()) == {"epsilon": 8.0}
    models = ["public", "baseline", "best_nonprivate", "dp-eps-8"]
    assert list(json.loads((root / "runs/toy/summary.json").read_text())["models"]) == sorted(models)
    assert str(root) not in json.dumps(manifest)


def test_executed_notebooks_show_what_ran_and_no_path(chain):
    root = chain[0]
    notebook = nbformat.read(root / "runs/toy/notebooks/private_training/dp-eps-8.ipynb", as_version=4)
    (injected,) = [c for c in notebook.cells if "injected-parameters" in c.metadata.get("tags", [])]
    assert "target_epsilon = 8.0" in injected.source and 'accountant = "pld"' in injected.source
    text = nbformat.writes(notebook)
    assert str(root) not in text and "papermill" not in notebook.metadata


def test_nothing_changed_nothing_runs(chain):
    root = chain[0]
    again = toy_chain.call(root, "book", "--profile", "toy")
    assert (
        again.returncode == 0 and started(again) == [] and f"{RUNS} runs, {RUNS} up to date" in again.stderr
    )


def test_a_site_without_solutions_is_made_beside_the_other_one(chain):
    root = chain[0]
    before = {path: path.stat().st_mtime_ns for path in (root / "runs/toy/site").rglob("*") if path.is_file()}
    assert not (root / "runs/toy/public").exists()
    (root / "runs/toy/summary.json").unlink()
    done = toy_chain.call(root, "book", "--profile", "toy", "--solutions", "no")
    assert done.returncode == 0 and started(done) == [], done.stderr
    assert "runs/toy/public/_build/html/index.html" in done.stderr
    assert (root / "runs/toy/public/.complete").is_file() and (root / "runs/toy/summary.json").is_file()
    assert {path: path.stat().st_mtime_ns for path in before} == before
    refused = toy_chain.call(root, "book", "--profile", "toy", "--solutions", "perhaps")
    assert refused.returncode == 2 and "'perhaps'" in refused.stderr


@pytest.mark.parametrize(
    "change, expected",
    [
        ("prose", []),
        ("helper", ["comparison"]),
        ("parameter of a copy", [HIPAA]),
        ("lost artifact", [HIPAA]),
    ],
)
def test_a_change_reruns_what_depends_on_it_and_nothing_else(chain, change, expected):
    root = chain[0]
    complete = root / "runs/toy/site/.complete"
    if change == "prose":
        shutil.rmtree(root / ".snakemake")
        path = root / "notebooks" / f"{HIPAA}.ipynb"
        path.write_text(path.read_text().replace("# Toy", "# Other words"))
    elif change == "helper":
        (root / "privhelpers/toy/shallow.py").write_text('"""Changed."""\n')
    elif change == "lost artifact":
        (root / "runs/toy/artifacts" / HIPAA / "ledger.json").unlink()
    else:
        (root / "params/toy.yml").write_text(f"{toy_chain.PROFILE}{HIPAA}:\n  limit: 0.25\n")
        shutil.rmtree(root / ".snakemake")
        set_clock(root / "runs", days=2)
        set_clock(root / "runs/toy/artifacts" / RECORDS, days=4)
        (root / "runs/toy/manifest.json").unlink()
    site = complete.stat().st_mtime_ns
    done = toy_chain.call(root, "book", "--profile", "toy")
    assert done.returncode == 0, done.stderr
    assert (root / "runs/toy/manifest.json").is_file() and complete.is_file()
    assert sorted(started(done)) == expected
    # Those that read the comparison find the same bytes, whoever made them.
    assert kept(done) == ([HIPAA, "report_audit"] if change == "helper" else []), done.stderr
    assert complete.stat().st_mtime_ns != site, "the site shows the change"


def set_clock(folder, days):
    """Date every file of a folder so many days ahead of now."""
    moment = time.time() + days * 86_400
    for path in folder.rglob("*"):
        os.utime(path, (moment, moment))


def wait_for(condition, process=None):
    deadline = time.monotonic() + LIMIT_SECONDS
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        assert process is None or process.poll() is None, process.communicate()
        time.sleep(0.05)


def pretraining_runs(root):
    log = root / "runs/toy/logs" / f"{PRETRAINING}.log"
    return log.exists() and "3" in log.read_text()


def below(process):
    return psutil.Process(process.pid).children(recursive=True)


def results(root):
    """Return the bytes of every artifact of a build but the records, which say when a run was made."""
    folder = root / "runs/toy/artifacts"
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.startswith("run.json")
    }


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """Return a toy book whose first run is complete and whose second waits for a file `go`."""
    root = toy_chain.build(tmp_path_factory.mktemp("begun") / "book")
    (root / "params/toy.yml").write_text(f"{toy_chain.PROFILE}{PRETRAINING}:\n  steps: 36000\n")
    done = toy_chain.call(root, "run", "--profile", "toy", "--job", RECORDS)
    assert done.returncode == 0, done.stderr
    return root


@pytest.fixture
def slow(begun, tmp_path):
    """Return a copy of the book whose second run waits; its temporary folder has a short path."""
    root = shutil.copytree(begun, tmp_path / "book")
    with tempfile.TemporaryDirectory() as short:  # the path of a socket below it has room for 100 characters
        (root / "tmp").symlink_to(short)
        yield root


@pytest.fixture(scope="module")
def undisturbed(begun, tmp_path_factory):
    """Return every result of the book's first two runs, which no one disturbed."""
    root = shutil.copytree(begun, tmp_path_factory.mktemp("undisturbed") / "book")
    (root / "go").touch()
    done = toy_chain.call(root, "book", "--profile", "toy", "--until", PRETRAINING)
    assert done.returncode == 0, done.stderr
    return results(root)


def left(root):
    """Return what is in the temporary folder of a build that `launch` started."""
    return [str(path.relative_to(root)) for path in (root / "tmp").rglob("*")]


def launch(root, *command):
    return subprocess.Popen(
        command,
        cwd=root,
        env={**toy_chain.environment(root), "TMPDIR": os.path.realpath(root / "tmp")},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Tests started in the background of a shell inherit an ignored Control-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def launch_make(root):
    """Call make, which builds up to the run that waits."""
    until = f"book --profile toy --until {PRETRAINING}"
    (root / "Makefile").write_text(
        f"START = {processes.PARENT}=$(shell echo $$PPID) exec {sys.executable}\n"
        f".PHONY: book\nbook:\n\t@$(START) -m bookmaker.runner {until}\n"
    )
    return launch(root, "make", "book")


def the_build(make):
    """Return the process of a build that make started."""
    return next(child for child in below(make) if "book" in child.cmdline())


@pytest.mark.parametrize("end", ["kill make", "interrupt"])
def test_a_build_that_is_ended_leaves_no_process_and_the_next_goes_on(slow, undisturbed, end):
    make = launch_make(slow)
    wait_for(lambda: pretraining_runs(slow), make)
    children, build = below(make), the_build(make)
    assert len(children) >= 3, "build, run and kernel"
    if end == "kill make":
        second = toy_chain.call(slow, "book", "--profile", "toy")
        assert second.returncode == 1 and started(second) == []
        assert f"profile toy is in use by process {build.pid}, since" in second.stderr
        make.kill()
    else:
        os.killpg(make.pid, signal.SIGINT)
    make.communicate(timeout=LIMIT_SECONDS)
    _, alive = psutil.wait_procs(children, timeout=LIMIT_SECONDS)
    assert alive == [] and make.returncode != 0
    assert not (slow / "runs/toy/artifacts" / PRETRAINING / "run.json").exists()
    (slow / "go").touch()
    again = launch(slow, *toy_chain.command("book", "--profile", "toy", "--until", PRETRAINING))
    _, words = again.communicate(timeout=LIMIT_SECONDS)
    assert again.returncode == 0 and f"{PRETRAINING} started" in words, words
    assert f"{RECORDS} started" not in words, "what was complete is not made again"
    assert results(slow) == undisturbed and left(slow) == []
