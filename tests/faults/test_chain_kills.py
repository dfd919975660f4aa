"""A killed build that is called again is judged by its results, and by what it leaves behind."""

import dataclasses
import json
import os
import shutil
import sys

import psutil
import pytest
import toy_site
from conftest import ROOT
from faults import chain_kills
from faults.harness import counted, judge

from bookmaker.runner import _seals, plan, published
from privhelpers import rng
from privhelpers.artifacts import to_json, write_atomic, write_sealed

# A build that waits to be killed, and that puts back what is missing when it is called again.
BUILD = """
import os, shutil, subprocess, sys, time
from pathlib import Path

def copy(source, target):
    Path(target).exists() or shutil.copy2(source, target)

whole, number = sys.argv[1], len(Path("calls").read_text())
if number == 1:
    time.sleep(3600)
SPOIL
shutil.copytree(whole + "/runs", "runs", copy_function=copy, dirs_exist_ok=True)
"""
IN_USE = "sys.exit('failed: profile toy is in use by process 1, since today')"
PAGE = 'list(Path("runs/toy/notebooks").glob("*.ipynb"))[0]'
ARTIFACT = "runs/toy/artifacts/synthetic_records/"
SPOILED = {  # what a build does when it is called again -> what is said of it
    "a traceback": ("1 / 0", "a traceback"),
    "no reason": ("sys.exit('no')", "exit code 1 without a reason: no"),
    "a run that fails": ("sys.exit('[toy] stopped, no site: hipaa failed')", "without a reason"),
    "in use for ever": (IN_USE, "no end after 3 more calls"),
    "a page": (f"shutil.copy2(list(Path(whole, 'notebooks').iterdir())[0], {PAGE})", "another result: "),
    "a file more": (
        f"Path('{ARTIFACT}more.json').touch()",
        "another result: artifacts/synthetic_records/more",
    ),
    "a process": ("subprocess.Popen(['sleep', '3600'], start_new_session=True)", "is left: sleep 3600"),
    "a temporary file": ("Path(os.environ['TMPDIR'], 'x').touch()", "left in the temporary folder: x"),
    "a site": ("Path('runs/toy/site/.sealed').write_text('x')", "verify: toy: does not hold: the site"),
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return a toy book that is complete, whose command is `BUILD`."""
    root = toy_site.build(tmp_path_factory.mktemp("whole") / "book")
    write_atomic(root / "runs/toy/site/_build/html/index.html", b"<p>ours</p>")
    published.seal_site(root / "runs/toy/site")
    return chain_kills.book(root, "toy", [])


@pytest.fixture
def spoiled(whole, monkeypatch):
    """Return a function that gives a book whose build, called again, does something that it should not."""
    start = chain_kills.started

    def started(book, place):
        with open(place / "book" / "calls", "a") as calls:
            calls.write("x")
        return start(book, place)

    monkeypatch.setattr(chain_kills, "started", started)
    monkeypatch.setattr(chain_kills, "START", 0.1)
    monkeypatch.setattr(chain_kills, "MARK", f"CHAIN_KILLS_{os.getpid()}")  # apart from other trials
    monkeypatch.setattr(chain_kills, "GRACE", 0.2)

    def spoil(code=""):
        command = (sys.executable, "-c", BUILD.replace("SPOIL", code), str(whole.root))
        seconds = dict.fromkeys(whole.seconds, 0.01)
        return dataclasses.replace(whole, command=command, seconds=seconds, site=0.0)

    return spoil


def test_no_trial_makes_a_run_again_whose_results_say_how_long_it_took(whole, monkeypatch):
    rules = {job.rule for job in plan.jobs(ROOT, chain_kills.PROFILE)}
    assert {*chain_kills.TIMED, *chain_kills.WORKERS} <= rules, "a chapter that was renamed"
    jobs = plan.jobs(whole.root, "toy")
    monkeypatch.setattr(chain_kills, "TIMED", [job.rule for job in jobs[1:]])
    monkeypatch.setattr(chain_kills.shutil, "rmtree", lambda folder: None)
    monkeypatch.setattr(chain_kills.Path, "unlink", lambda file: None)
    for seed in range(20):
        chosen = chain_kills.removed(whole.root, whole, rng.make(seed, "timed"))
        assert [job.rule for job in chosen] == [jobs[0].rule]


@pytest.mark.parametrize("name", SPOILED)
def test_the_judge_reports_what_a_second_call_left_wrong(spoiled, name):
    code, words = SPOILED[name]
    row = chain_kills.trial(0, seed=0, whole=spoiled(code))
    assert row["outcome"] == judge.THIRD and words in row["said"], row
    assert not [p for p in psutil.process_iter(["environ"]) if chain_kills.MARK in (p.info["environ"] or {})]


def test_builds_that_come_to_the_same_results_are_counted_by_what_was_killed(spoiled, monkeypatch, tmp_path):
    monkeypatch.setattr(counted, "PLACE", tmp_path)
    monkeypatch.setattr(chain_kills, "reference", lambda: spoiled(f"number == 2 and {IN_USE}"))
    assert chain_kills.main(["--number=2", "--seed=1"]) == 0
    text = (tmp_path / "chain-kills-1.md").read_text()
    assert "| **all** | 2 | 0 | 2 | 0 | 77.6 % |" in text, text
    monkeypatch.setattr(chain_kills, "reference", lambda: spoiled("number == 2 and 1 / 0"))
    assert chain_kills.main(["--number=1", "--seed=2"]) == 1
    text = (tmp_path / "chain-kills-2.md").read_text()
    assert "| **all** | 1 | 0 | 0 | 1 | 100 % |" in text and "ZeroDivisionError" in text, text
    assert chain_kills.main(["--number=x"]) == 2


def test_a_site_of_the_runs_before_is_allowed_where_it_is_whole_and_refused(whole, tmp_path, monkeypatch):
    """The kill came after the manifest was gone or new, and before the site was made again."""
    root = tmp_path / "book"
    shutil.copytree(whole.root, root, symlinks=True)
    assert chain_kills.damaged_site(root, "toy") == ""
    write_atomic(root / "runs/toy/manifest.json", b"{}")
    assert chain_kills.damaged_site(root, "toy") == ""
    monkeypatch.setattr(published, "finished", lambda *_, **__: None)
    assert chain_kills.damaged_site(root, "toy") == "a site of other runs is handed out"
    monkeypatch.undo()
    write_atomic(root / "runs/toy/site/_build/html/index.html", b"<p>half</p>")
    assert chain_kills.damaged_site(root, "toy").endswith("index.html changed after it was made")
    (root / "runs/toy/site/.complete").unlink()
    assert chain_kills.damaged_site(root, "toy") == "", "nobody calls it complete"


def test_a_hang_is_a_third_outcome(spoiled, monkeypatch):
    monkeypatch.setattr(chain_kills, "LIMIT_SECONDS", 2)
    row = chain_kills.trial(0, seed=0, whole=spoiled("time.sleep(3600)"))
    assert row["outcome"] == judge.THIRD and "it hangs" in row["said"], row


def test_a_trial_draws_the_same_runs_and_the_same_moment_from_the_same_seed(spoiled):
    rows = [chain_kills.trial(index, seed=4, whole=spoiled()) for index in (0, 0, 1)]
    drawn = [(row["removed"], row["at"]) for row in rows]
    assert drawn[0] == drawn[1] != drawn[2], drawn
    assert [row["outcome"] for row in rows] == [judge.RIGHT] * 3, rows


def test_results_are_all_that_a_run_made_but_its_times(whole, tmp_path):
    root = shutil.copytree(whole.root, tmp_path / "book")
    record, pages = root / "runs/toy/artifacts/hipaa/run.json", set()

    def changed(**values):
        write_sealed(record, to_json(json.loads(record.read_text()) | values))
        return _seals.difference(whole.results, chain_kills.results(root, "toy"))

    assert changed(seconds=99.0, started="2001-01-01T00:00:00+00:00") == ""
    page = root / "runs/toy/notebooks/hipaa.ipynb"
    text = page.read_text()
    for speed in ("00:01<00:00, 29.11note/s", "1:02:03<00:00,  2.5s/note"):
        page.write_text(text.replace("exposure", f"exposure: 100%|##| 20/20 [{speed}]", 1))
        pages = {chain_kills.results(root, "toy")["notebooks/hipaa.ipynb"]} | pages
    assert len(pages) == 1 and whole.results["notebooks/hipaa.ipynb"] not in pages
    page.write_text(text)
    assert changed(fingerprint="0" * 64) == "artifacts/hipaa/run.json changed"


@pytest.mark.parametrize(
    "words, parent, kind",
    [
        ("make book", "", "make"),
        ("python -m bookmaker.runner book --profile=smoke", "make", "build"),
        ("python -m bookmaker.runner._warm 5 smoke", "build", "server"),
        ("python -m bookmaker.runner._warm 5 smoke", "server", "run"),
        ("python -m bookmaker.runner._warm 5 smoke", "run", "kernel"),
        ("python -m bookmaker.runner run --profile smoke --job hipaa", "build", "run"),
        ("python -m ipykernel_launcher -f x", "run", "kernel"),
        ("python -c from multiprocessing.spawn import spawn_main", "kernel", "worker"),
        ("python -m bookmaker.runner collect --profile smoke", "build", "site"),
        ("python -m bookmaker.site build --profile smoke", "build", "site"),
        ("python -c from jupyter_book.cli.main import main", "site", "worker"),
        ("chromium", "worker", "worker"),
    ],
)
def test_a_process_is_known_by_its_command_and_its_parent(words, parent, kind):
    assert chain_kills._kind(words.split(), parent) == kind
