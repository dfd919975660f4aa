"""Everything that is published is sealed: what differs is named, refused, and made again."""

import json
import os
import shutil

import pytest
import toy_site

from bookmaker.runner import build, cli, fingerprint, keep, plan, published, verify
from bookmaker.site import _pdf
from privhelpers import artifacts
from privhelpers.errors import DamagedArtifact

RUNS, HIPAA, COMPARISON = "runs/toy", "runs/toy/artifacts/hipaa", "runs/toy/artifacts/comparison"
SITE, PUBLIC, INDEX = "runs/toy/site", "runs/toy/public", "runs/toy/site/_build/html/index.html"
MANIFEST = f"{RUNS}/manifest.json"


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    """A toy book with both sites, of a file or two; nothing here looks into them."""
    root = toy_site.build(tmp_path_factory.mktemp("toy") / "book")
    artifacts.write_atomic(root / INDEX, b"<p>ours</p>")
    artifacts.write_atomic(root / SITE / published.DOCTREES / "index.doctree", b"ours")
    artifacts.write_atomic(root / SITE / "build.log", b"not part of it")
    artifacts.write_atomic(root / PUBLIC / "_build/html/index.html", b"<p>without</p>")
    for name in published.SITES.values():
        published.seal_site(root / RUNS / name)
    return root


@pytest.fixture(scope="module")
def jobs(untouched):
    return toy_site.jobs(untouched)


@pytest.fixture
def book(untouched, tmp_path):
    return shutil.copytree(untouched, tmp_path / "book")


def flip(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def empty(path):
    path.write_bytes(b"")


def pipe(path):
    path.unlink()
    os.mkfifo(path)


def remove(path):
    path.unlink()


def add(path):
    path.write_text("added")


def forge(path):
    """Change a file and its seal together."""
    artifacts.write_sealed(path, path.read_bytes().replace(b"61.0", b"16.0") + b" ")


def swap(path):
    """Replace the site by the one without solutions."""
    site = path.parents[2]
    site.rename(site.with_name("old"))
    shutil.copytree(site.with_name("public"), site)


def test_what_is_as_it_was_made_holds(book, jobs, capsys):
    (book / SITE / "build.log").write_text("another")
    (book / SITE / "_build" / ".DS_Store").write_text("of the system")
    assert verify.verify(book, jobs) and not verify.damaged(book, jobs)
    line = capsys.readouterr().out
    assert line.count("\n") == 1 and f"{len(jobs)} runs, manifest.json, summary.json, site, public\n" in line


# What is done to which file; what the line names; the file that the next build makes again.
FAULTS = [
    (flip, "runs/toy/notebooks/hipaa.ipynb", "hipaa.ipynb", f"{HIPAA}/.made"),
    (flip, f"{HIPAA}/run.json", "run.json", f"{HIPAA}/.made"),
    (empty, f"{HIPAA}/run.json.sha256", "run.json", f"{HIPAA}/.made"),
    (add, f"{HIPAA}/sheet.html.sha256.sha256", "sheet.html.sha256.sha256", f"{HIPAA}/.made"),
    (forge, f"{COMPARISON}/summary.json", "summary.json", f"{COMPARISON}/.made"),
    (remove, f"{COMPARISON}/summary.json", "summary.json", f"{COMPARISON}/.made"),
    (forge, f"{HIPAA}/run.json", "manifest.json: describes other runs", MANIFEST),
    (flip, MANIFEST, "manifest.json", MANIFEST),
    (remove, f"{MANIFEST}.sha256", "manifest.json", MANIFEST),
    (forge, f"{RUNS}/summary.json", "summary.json: describes other runs", f"{RUNS}/summary.json"),
    (flip, INDEX, "_build/html/index.html", f"{SITE}/.complete"),
    (remove, INDEX, "_build/html/index.html", f"{SITE}/.complete"),
    (pipe, INDEX, "_build/html/index.html", f"{SITE}/.complete"),
    (add, f"{SITE}/_build/html/.htaccess", "_build/html/.htaccess", f"{SITE}/.complete"),
    (flip, f"{SITE}/{published.DOCTREES}/index.doctree", "index.doctree", f"{SITE}/.complete"),
    (flip, f"{SITE}/.sealed", ".sealed", f"{SITE}/.complete"),
    (empty, f"{SITE}/.complete", ".sealed", f"{SITE}/.complete"),
    (swap, INDEX, "another site", f"{SITE}/.complete"),
]


@pytest.mark.parametrize("fault, file, named, made_again", FAULTS)
def test_a_difference_is_named_and_made_again(book, jobs, capsys, fault, file, named, made_again):
    fault(book / file)
    assert not verify.verify(book, jobs)
    line = capsys.readouterr().out
    assert named in line and line.count("\n") == 1 and "make book PROFILE=toy" in line
    build._prepare(book, jobs)
    assert not (book / made_again).exists() and named in capsys.readouterr().err


def test_what_is_missing_does_not_hold(book, jobs, capsys):
    for name in ("hipaa/run.json", "comparison/run.json"):
        (book / RUNS / "artifacts" / name).unlink()
    for name in published.SITES.values():
        (book / RUNS / name / ".complete").unlink()
    assert not verify.verify(book, jobs)
    line = capsys.readouterr().out
    assert "2 runs are not up to date, comparison among them (to run)" in line and "no complete site" in line


def make_again(root, jobs, rule, **values):
    """Let a run be made again as it was, but for its record's values."""
    job = next(job for job in jobs if job.rule == rule)
    record = json.loads((root / job.sentinel).read_text())
    toy_site.keep_record(root, job, record | values)


def test_results_made_again_since_are_named_and_neither_kept_nor_published(book, jobs):
    artifacts.write_sealed(book / COMPARISON / "summary.json", b'{"models": {"x": {}}}\n')
    make_again(book, jobs, "comparison")
    late = {job.rule: why for job in jobs if (why := plan.stale(book, job))}
    after = ("hipaa", "real_model", "another_domain")
    assert late == dict.fromkeys(after, "to run: it read other results of comparison")
    assert not verify.verify(book, jobs)
    for refused in (published.collect, published.manifest, keep.evidence):
        with pytest.raises(DamagedArtifact, match="hipaa"):
            refused(book, jobs)


def test_the_same_results_made_again_change_nothing(book, jobs):
    make_again(book, jobs, "comparison", seconds=7.0, started="2027-01-01T00:00:00+00:00")
    assert not any(plan.stale(book, job) for job in jobs)


def test_runs_of_other_versions_are_counted_in_one_line(book, jobs, capsys, monkeypatch):
    now = fingerprint.versions()
    monkeypatch.setattr(fingerprint, "versions", lambda: now | {"python": "9.0"})
    assert verify.verify(book, jobs)
    assert f"{len(jobs)} runs were made with python {now['python']}, and 9.0" in capsys.readouterr().out
    assert not any(plan.stale(book, job) for job in jobs), "nothing is thrown away"


def test_a_site_whose_manifest_is_gone_or_that_changed_is_not_shown_or_printed(book, jobs):
    (book / MANIFEST).unlink()
    with pytest.raises(DamagedArtifact, match=r"manifest\.json.*`make book PROFILE=toy`"):
        published.finished(book, "toy", solutions=True)
    published.collect(book, jobs)
    flip(book / INDEX)
    with pytest.raises(DamagedArtifact, match=r"index\.html.*`make book PROFILE=toy`"):
        _pdf.write(book, "toy")


def test_the_command_says_it_by_its_exit_code(book, monkeypatch, capsys):
    monkeypatch.chdir(book)
    assert cli.main(["verify", "--profile", "toy"]) == 0
    flip(book / INDEX)
    assert cli.main(["verify", "--profile", "toy"]) == 1
    assert cli.main(["check", "--profile", "toy"]) == 0
    assert "_build/html/index.html" in capsys.readouterr().out
    assert cli.main(["verify", "--profile", "toy", "--key", "/nope.pem"]) == 2
