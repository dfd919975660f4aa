"""The chain on toy notebooks: what fails publishes nothing, what is done is not done again."""

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
from faults import chain_kills
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


def named(marker):
    """Return the processes that have a word in their command line."""
    return [p for p in psutil.process_iter(["cmdline"]) if marker in (p.info["cmdline"] or [])]


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
        ("import os\nos.kill(os.getpid(), 9)", "DeadKernelError"),
        ("store.path('synthetic_records/x.csv').write_text('x')", "has no .sha256"),
        ("open('privhelpers/toy_records.py', 'a').write('# edited')", "changed while it ran"),
    ],
    ids=["error", "exit", "killed", "unsealed", "edited"],
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


INSIDE = """
import os, sys
assert os.environ["OMP_NUM_THREADS"] == os.environ["MKL_NUM_THREADS"] == "2"
assert os.environ["HF_HUB_OFFLINE"] == os.environ["TRANSFORMERS_OFFLINE"] == "1"
assert os.environ["PYTHONHASHSEED"] == "0" and hash("a") == EXPECTED
assert "inline" in os.environ["MPLBACKEND"]
assert not os.path.exists(os.path.expanduser("~/.ipython"))
print("a bar", file=sys.stderr)
"""


def test_a_kernel_has_nothing_of_the_user_s_settings(toy, tmp_path):
    for folder in (".local/share/jupyter/kernels/python3", "Library/Jupyter/kernels/python3"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "kernel.json").write_text(
            '{"argv": ["false"], "display_name": "x", "language": "python"}'
        )
    startup = tmp_path / "startup.py"
    startup.write_text("raise SystemExit('the startup file of the user ran')\n")
    environment = toy_chain.environment(toy) | {
        "HOME": str(tmp_path),
        "JUPYTER_PREFER_ENV_PATH": "0",
        "MPLBACKEND": "agg",
        "PYTHONSTARTUP": str(startup),
        "PRIVHELPERS_PROGRESS": "1",
    }
    words = subprocess.run(
        [sys.executable, "-c", "print(hash('a'))"], env={"PYTHONHASHSEED": "0"}, capture_output=True
    )
    old = set_last_cell(toy, RECORDS, INSIDE.replace("EXPECTED", words.stdout.decode().strip()))
    command = toy_chain.command("run", "--profile", "toy", "--job", RECORDS, "--threads", "2")
    done = subprocess.run(
        command, cwd=toy, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS
    )
    set_last_cell(toy, RECORDS, old)
    assert done.returncode == 0, done.stderr
    assert "a bar" in done.stderr, "PRIVHELPERS_PROGRESS shows what the notebook says"
    assert "a bar" in (toy / "runs/toy/logs" / f"{RECORDS}.log").read_text()


@pytest.mark.parametrize("how", ["-O", "PYTHONOPTIMIZE"])
def test_a_claim_that_fails_is_not_published_where_assertions_are_left_out(toy, how):
    old = set_last_cell(toy, RECORDS, "assert 1 + 1 == 3")
    python, *rest = toy_chain.command("run", "--profile", "toy", "--job", RECORDS)
    command = [python, *(["-O"] if how == "-O" else []), *rest]
    optimized = {} if how == "-O" else {how: "1"}
    done = toy_chain.finish(toy, command, optimized)
    set_last_cell(toy, RECORDS, old)
    assert done.returncode == 1 and "AssertionError" in done.stderr, done.stderr


def test_a_cell_that_hangs_is_ended_at_its_limit_with_all_that_it_started(toy):
    marker = f"sleep.{os.getpid()}"  # in the command line of what the cell starts
    code = (
        "import subprocess, sys\nwait = [sys.executable, '-c', 'input()', MARKER]\n"
        "subprocess.Popen(wait, stdin=subprocess.PIPE, start_new_session=True)\n"
        "while True:\n    pass"
    )
    old = set_last_cell(toy, RECORDS, code.replace("MARKER", repr(marker)))
    done = toy_chain.call(toy, "run", "--profile", "toy", "--job", RECORDS, "--limit", "0.002")
    set_last_cell(toy, RECORDS, old)
    assert done.returncode == 1, done.stderr
    limit = rf"{RECORDS}: code cell \d+ \('.+'\) ran for 7.2 s, the limit of a cell"
    assert re.search(limit, done.stderr), done.stderr
    assert named(marker) == []


def test_what_a_cell_leaves_running_ends_with_the_run(toy):
    marker = f"left.{os.getpid()}"
    code = (
        "import subprocess, sys\nwait = [sys.executable, '-c', 'import time; time.sleep(3600)', MARKER]\n"
        "subprocess.Popen(wait, start_new_session=True)"
    )
    old = set_last_cell(toy, RECORDS, code.replace("MARKER", repr(marker)))
    done = toy_chain.call(toy, "run", "--profile", "toy", "--job", RECORDS)
    set_last_cell(toy, RECORDS, old)
    assert done.returncode == 0, done.stderr
    assert named(marker) == []


def test_an_artifact_folder_that_is_a_link_is_refused(toy, tmp_path):
    folder = toy / "runs/linked/artifacts" / RECORDS
    folder.parent.mkdir(parents=True)
    folder.symlink_to(tmp_path)
    (tmp_path / "precious").write_text("x")
    (toy / "params/linked.yml").write_text(toy_chain.PROFILE)
    done = toy_chain.call(toy, "run", "--profile", "linked", "--job", RECORDS)
    assert done.returncode == 2 and done.stderr.startswith("refused: ") and "link" in done.stderr
    assert (tmp_path / "precious").exists()


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
        ("results", [HIPAA, "report_audit"]),
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
    elif change == "results":
        set_last_cell(root, "comparison", 'store.write_json("comparison/summary.json", {"models": {}})')
        made = toy_chain.call(root, "run", "--profile", "toy", "--job", "comparison")
        assert made.returncode == 0, made.stderr
        told = toy_chain.call(root, "verify", "--profile", "toy").stdout
        assert "hipaa: comparison was made again since, with other results" in told, told
        for slug in expected:  # as if they were made later
            set_clock(root / "runs/toy/artifacts" / slug, days=1)
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


def warmed(root):
    """Let builds of few runs fork them from a server, as builds of many do."""
    path = root / "bookmaker/runner/_warm.py"
    path.write_text(re.sub(r"^WORTH_IT = \d+", "WORTH_IT = 1", path.read_text(), flags=re.MULTILINE))
    return root


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """Return a toy book whose first run is complete and whose second waits for a file `go`."""
    root = toy_chain.build(tmp_path_factory.mktemp("begun") / "book")
    (root / "params/toy.yml").write_text(f"{toy_chain.PROFILE}{PRETRAINING}:\n  steps: 36000\n")
    done = toy_chain.call(root, "run", "--profile", "toy", "--job", RECORDS)
    assert done.returncode == 0, done.stderr
    return root


@pytest.fixture(params=["forked"])
def slow(begun, tmp_path, request):
    """Return a copy of the book whose second run waits, started by a server or, if asked for, by itself."""
    root = shutil.copytree(begun, tmp_path / "book")
    with tempfile.TemporaryDirectory() as short:  # the path of a socket below it has room for 100 characters
        (root / "tmp").symlink_to(short)
        yield warmed(root) if request.param == "forked" else root


@pytest.fixture(scope="module")
def undisturbed(begun, tmp_path_factory):
    """Return the hash of every result of the book's first two runs, which nobody disturbed."""
    root = shutil.copytree(begun, tmp_path_factory.mktemp("undisturbed") / "book")
    (root / "go").touch()
    done = toy_chain.call(root, "book", "--profile", "toy", "--until", PRETRAINING)
    assert done.returncode == 0, done.stderr
    return chain_kills.results(root, "toy")


def launch(root, *command, interrupt=signal.SIG_DFL):
    (root / "tmp").mkdir(exist_ok=True)
    return subprocess.Popen(
        command or toy_chain.command("book", "--profile", "toy", "--until", PRETRAINING),
        cwd=root,
        env={**toy_chain.environment(root), "TMPDIR": os.path.realpath(root / "tmp")},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Tests started in the background of a shell inherit an ignored Control-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, interrupt),
    )


def left(root):
    """Return what is in the temporary directory of a build that `launch` started."""
    return [str(path.relative_to(root)) for path in (root / "tmp").rglob("*")]


def launch_make(root):
    """Call make, which builds as `launch` does."""
    until = f"book --profile toy --until {PRETRAINING}"
    (root / "Makefile").write_text(
        f"START = {processes.PARENT}=$(shell echo $$PPID) exec {sys.executable}\n"
        f".PHONY: book\nbook:\n\t@$(START) -m bookmaker.runner {until}\n"
    )
    return launch(root, "make", "book")


@pytest.mark.parametrize("slow", ["by itself", "forked"], indirect=True)
def test_kill_9_of_make_leaves_no_process_and_the_next_build_goes_on(slow, undisturbed, request):
    make = launch_make(slow)
    wait_for(lambda: pretraining_runs(slow), make)
    children = below(make)
    assert len(children) >= 3, "launcher, run and kernel, or a server beside them"
    alive = chain_kills.living(psutil.Process(make.pid))
    kinds = {"make", "build", "run", "kernel"} | ({"server"} if "forked" in request.node.name else set())
    assert {kind for kind, found in alive.items() if found} == kinds, alive
    for child in children:
        if any(word.startswith("bookmaker.") for word in child.cmdline()) and child.ppid() in (
            make.pid,
            children[0].pid,
        ):
            assert child.environ()[processes.PARENT] == str(child.ppid()), child.cmdline()

    second = toy_chain.call(slow, "book", "--profile", "toy")
    assert second.returncode == 1 and started(second) == []
    assert f"failed: profile toy is in use by process {children[0].pid}, since" in second.stderr

    make.kill()
    make.communicate()
    gone, alive = psutil.wait_procs(children, timeout=LIMIT_SECONDS)
    assert alive == [] and len(gone) == len(children)
    assert left(slow) == []

    assert not (slow / "runs/toy/artifacts" / PRETRAINING / "run.json").exists()
    (slow / "go").touch()
    done = toy_chain.call(slow, "book", "--profile", "toy", "--until", PRETRAINING)
    assert done.returncode == 0, done.stderr
    assert started(done) == [PRETRAINING]
    assert chain_kills.results(slow, "toy") == undisturbed


def test_kill_9_of_the_build_alone_ends_its_runs_and_the_next_comes_to_the_same_results(slow, undisturbed):
    make = launch_make(slow)
    wait_for(lambda: pretraining_runs(slow), make)
    children = below(make)
    [build] = chain_kills.living(psutil.Process(make.pid))["build"]  # Snakemake runs in it
    build.kill()
    make.communicate(timeout=LIMIT_SECONDS)
    _, alive = psutil.wait_procs(children, timeout=LIMIT_SECONDS)
    assert alive == [] and make.returncode == 2
    assert not (slow / "runs/toy/artifacts" / PRETRAINING / "run.json").exists()
    (slow / "go").touch()
    again = launch(slow)
    _, words = again.communicate(timeout=LIMIT_SECONDS)
    assert again.returncode == 0, words
    assert chain_kills.results(slow, "toy") == undisturbed and left(slow) == []


def test_a_run_killed_by_the_system_takes_its_kernel_along_and_fails(slow):
    build = launch(slow)
    wait_for(lambda: pretraining_runs(slow), build)
    children = below(build)
    (run,) = [p for p in children if "run" in p.cmdline() and "bookmaker.runner" in p.cmdline()]
    run.kill()
    _, words = build.communicate(timeout=LIMIT_SECONDS)
    assert build.returncode == 1 and "no site" in words
    _, alive = psutil.wait_procs(children, timeout=LIMIT_SECONDS)
    assert alive == []
    assert not (slow / "runs/toy/artifacts" / PRETRAINING / "run.json").exists()


WHO = """
import json, os, psutil
runner = psutil.Process(os.getppid())
who = {"kernel": os.getpid(), "runner": runner.pid, "server": runner.ppid(), "asserts": __debug__}
store.write_json(PLACE, {**who, "edited": edited, "stained": hasattr(json, "stain") or "STAIN" in os.environ})
json.stain = os.environ["STAIN"] = "1"
"""


EDITS = {  # what the server has in memory is edited while it goes on
    RECORDS: "\nedited = open('privhelpers/browser.py', 'a').write('EDITED = True\\n')",
    PRETRAINING: "\nfrom privhelpers import browser\nedited = hasattr(browser, 'EDITED')",
}


@pytest.fixture(scope="module")
def forked(tmp_path_factory):
    """Return what two runs of one server say about themselves, and what the build printed."""
    root = warmed(toy_chain.build(tmp_path_factory.mktemp("forked") / "book"))
    for slug in (RECORDS, PRETRAINING):
        old = set_last_cell(root, slug, "")
        set_last_cell(root, slug, old + EDITS[slug] + WHO.replace("PLACE", repr(f"{slug}/who.json")))
    command = toy_chain.command("book", "--profile", "toy", "--until", PRETRAINING)
    done = toy_chain.finish(root, command, {"PYTHONOPTIMIZE": "1"})
    assert done.returncode == 0, done.stderr
    paths = [root / "runs/toy/artifacts" / slug / "who.json" for slug in (RECORDS, PRETRAINING)]
    return [json.loads(path.read_text()) for path in paths], done


def test_runs_of_one_server_share_nothing_but_the_server(forked):
    (first, second), done = forked
    assert first["server"] == second["server"]
    assert len({first["kernel"], first["runner"], second["kernel"], second["runner"], first["server"]}) == 5
    assert not first["stained"] and not second["stained"]
    assert second["edited"] is True, "nor helpers as they were when the server started"
    assert first["asserts"] and second["asserts"], "nor the wish to leave out assertions"
    assert "existing" not in done.stdout + done.stderr, "kernels print nothing to the terminal"


WIDE = """
import pandas, tqdm.auto
pandas.DataFrame([range(25)], columns=[f"a long name {number}" for number in range(25)])
"""


def test_a_run_leaves_the_same_page_by_itself_and_forked(tmp_path):
    """Pandas looks for a terminal when it is loaded, which is in the server or in the kernel."""
    root, pages = toy_chain.build(tmp_path / "by itself"), []
    (root / "privhelpers/toy_nobody.py").write_text("import pandas\nimport tqdm.auto\n")
    old = set_last_cell(root, RECORDS, "")
    set_last_cell(root, RECORDS, old + WIDE)
    other = warmed(shutil.copytree(root, tmp_path / "forked"))
    for book, words in ((root, ("run", "--job", RECORDS)), (other, ("book", "--until", RECORDS))):
        done = toy_chain.call(book, *words, "--profile", "toy")
        assert done.returncode == 0, done.stderr
        pages.append((book / "runs/toy/notebooks" / f"{RECORDS}.ipynb").read_text())
    assert "a long name 3" in pages[0] and pages[0] == pages[1]


def test_a_killed_server_takes_its_runs_along_and_the_next_build_goes_on(slow):
    build, root = launch(slow), slow
    wait_for(lambda: pretraining_runs(root), build)
    children = below(build)
    server = next(p for p in children if "bookmaker.runner._warm" in p.cmdline() and p.ppid() == build.pid)
    server.kill()
    _, words = build.communicate(timeout=LIMIT_SECONDS)
    assert build.returncode == 1 and "no site" in words
    _, alive = psutil.wait_procs(children, timeout=LIMIT_SECONDS)
    assert alive == []
    (root / "go").touch()
    done = toy_chain.call(root, "book", "--profile", "toy", "--until", PRETRAINING)
    assert done.returncode == 0 and started(done) == [PRETRAINING], done.stderr


@pytest.mark.parametrize(
    "number, kill", [(signal.SIGINT, os.killpg), (signal.SIGINT, os.kill), (signal.SIGTERM, os.kill)]
)
def test_a_signal_ends_a_build_and_everything_below_it(slow, number, kill):
    build = launch(slow)
    wait_for(lambda: pretraining_runs(slow), build)
    children = below(build)
    kill(build.pid, number)
    build.communicate(timeout=LIMIT_SECONDS)
    assert build.returncode == 128 + number
    _, alive = psutil.wait_procs(children, timeout=LIMIT_SECONDS)
    assert alive == [] and left(slow) == []
    assert not (slow / "runs/toy/artifacts" / PRETRAINING / "run.json").exists()


def test_a_build_in_the_background_goes_on_after_control_c(slow):
    build = launch(slow, interrupt=signal.SIG_IGN)
    wait_for(lambda: pretraining_runs(slow), build)
    os.killpg(build.pid, signal.SIGINT)
    (slow / "go").touch()
    _, words = build.communicate(timeout=LIMIT_SECONDS)
    assert build.returncode == 0, words
    assert left(slow) == []


def test_folders_of_a_build_whose_every_process_was_killed_are_removed_by_the_next(slow):
    build = launch(slow)
    wait_for(lambda: pretraining_runs(slow), build)
    for process in [psutil.Process(build.pid), *below(build)]:
        process.suspend()  # so that none can clean up
    assert left(slow) != []
    everyone = [psutil.Process(build.pid), *below(build)]
    for process in everyone:
        process.kill()
    build.communicate(timeout=LIMIT_SECONDS)
    psutil.wait_procs(everyone, timeout=LIMIT_SECONDS)
    (slow / "go").touch()
    again = launch(slow)
    _, words = again.communicate(timeout=LIMIT_SECONDS)
    assert again.returncode == 0, words
    assert left(slow) == []


@pytest.mark.parametrize(
    "module, arguments, number",
    [
        ("bookmaker.runner", ["book", "--profile", "none"], signal.SIGKILL),
        ("bookmaker.runner", ["run", "--profile", "none", "--job", RECORDS], signal.SIGTERM),
        ("bookmaker.runner", ["audit"], signal.SIGTERM),
        ("bookmaker.runner._warm", ["0"], signal.SIGKILL),
        ("bookmaker.sweep", ["--profile", "none", "--epsilons", "1"], signal.SIGKILL),
        ("bookmaker.site", ["build", "--profile", "none"], signal.SIGTERM),
        ("bookmaker.teaching", ["student", "--profile", "none"], signal.SIGKILL),
    ],
)
def test_a_process_whose_parent_died_while_it_started_ends(module, arguments, number):
    with subprocess.Popen(["true"]) as parent:  # killed, let us say, a moment before its child looks for it
        parent.wait()
    command = [sys.executable, "-m", module, *arguments]
    done = toy_chain.finish(toy_chain.ROOT, command, {processes.PARENT: str(parent.pid)})
    assert (done.returncode, done.stderr) == (128 + number, "")


def test_make_hands_down_its_number_and_no_wish_to_leave_out_assertions(tmp_path):
    python = tmp_path / "python"
    python.write_text(
        '#!/bin/sh\necho "$BOOKMAKER_PARENT $PPID ${PYTHONOPTIMIZE-unset}${PYTHONIOENCODING-}"\n'
    )
    python.chmod(0o755)
    teaching = ("student", "solutions", "quizzes", "slides", "launch", "assignments", "grade")
    for target in (
        ["book"],
        ["sweep", "EPSILONS=1"],
        ["audit"],
        ["serve"],
        *(["-o", "book", one] for one in teaching),
    ):
        command = ["make", "-o", ".venv/.stamp", *target, f"PYTHON={python}"]
        done = toy_chain.finish(
            toy_chain.ROOT, command, {"PYTHONOPTIMIZE": "1", "PYTHONIOENCODING": "ascii", "MAKELEVEL": "0"}
        )
        handed, parent, optimize = done.stdout.split()
        assert handed == parent and optimize == "unset", done
