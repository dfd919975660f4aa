"""Everything that is published is sealed: what differs is named, refused, and made again."""

import json
import os
import shutil

import pytest
import toy_site

from bookmaker.runner import build, cli, fingerprint, keep, plan, published, verify
from bookmaker.site import _pdf
from privhelpers import artifacts
from privhelpers.errors import DamagedArtifact, InvalidParameter

RUNS, HIPAA, COMPARISON = "runs/toy", "runs/toy/artifacts/hipaa", "runs/toy/artifacts/comparison"
SWEEP = "runs/sweeps/toy"
SITE, PUBLIC, INDEX = "runs/toy/site", "runs/toy/public", "runs/toy/site/_build/html/index.html"
BOOK, PRINT = "`make book PROFILE=toy`", "`python -m bookmaker pdf --profile toy`"


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    """A toy book with both sites, of a file or two, and their PDFs; nothing here looks into them."""
    root = toy_site.build(tmp_path_factory.mktemp("toy") / "book")
    artifacts.write_atomic(root / INDEX, b"<p>ours</p>")
    artifacts.write_atomic(root / SITE / published.DOCTREES / "index.doctree", b"ours")
    artifacts.write_atomic(root / SITE / "build.log", b"not part of it")
    artifacts.write_atomic(root / PUBLIC / "_build/html/index.html", b"<p>without</p>")
    for kind, name in published.SITES.items():
        published.seal_site(root / RUNS / name)
        published.write_pdf(root / RUNS / name, root / RUNS / published.PDFS[kind], name.encode())
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


def swell(path):
    """Let a file and its seal claim ten gigabytes, of which the disk holds none."""
    with open(path, "r+b") as file:
        file.truncate(10**10)


def reprint(path):
    """Build the site again, and keep the PDF."""
    path.write_text("new")
    published.seal_site(path.parents[2])


def swap(path):
    """Let the site without solutions stand in the place of the other one."""
    site = path.parents[2]
    site.rename(site.with_name("old"))
    shutil.copytree(site.with_name("public"), site)


def link(path):
    site = path.parents[2]
    site.rename(site.with_name("old"))
    site.symlink_to(site.with_name("old"))


def test_what_is_as_it_was_made_holds(book, jobs, capsys):
    (book / SITE / "build.log").write_text("another")
    (book / SITE / "_build" / ".DS_Store").write_text("of the system")
    assert verify.verify(book, jobs) and not verify.damaged(book, jobs)
    line = capsys.readouterr().out
    assert line.count("\n") == 1 and f"{len(jobs)} runs, manifest.json, summary.json, site, public, p" in line
    for name in published.PDFS.values():
        (book / RUNS / name).unlink()
    assert verify.verify(book, jobs), "no one has to print"


# What is done to which file; the word that names it; the file that the next build makes again.
MANIFEST = f"{RUNS}/manifest.json"
FAULTS = [
    (flip, "runs/toy/notebooks/hipaa.ipynb", "hipaa.ipynb changed", f"{HIPAA}/.made"),
    (flip, f"{HIPAA}/run.json", "run.json: its bytes changed", f"{HIPAA}/.made"),
    (empty, f"{HIPAA}/run.json.sha256", "run.json", f"{HIPAA}/.made"),
    (swell, f"{HIPAA}/run.json", "cannot be read", f"{HIPAA}/.made"),
    (add, f"{HIPAA}/sheet.html.sha256.sha256", "sheet.html.sha256.sha256", f"{HIPAA}/.made"),
    (flip, f"{COMPARISON}/summary.json", "summary.json: its bytes changed", f"{COMPARISON}/.made"),
    (forge, f"{COMPARISON}/summary.json", "summary.json changed", f"{COMPARISON}/.made"),
    (remove, f"{COMPARISON}/summary.json", "summary.json", f"{COMPARISON}/.made"),
    (forge, f"{HIPAA}/run.json", "manifest.json: describes other runs", MANIFEST),
    (flip, MANIFEST, "manifest.json: its bytes changed", MANIFEST),
    (forge, MANIFEST, "manifest.json: describes other runs", MANIFEST),
    (remove, f"{MANIFEST}.sha256", "manifest.json: has no .sha256", MANIFEST),
    (forge, f"{RUNS}/summary.json", "summary.json: describes other runs", f"{RUNS}/summary.json"),
    (flip, INDEX, "_build/html/index.html changed", f"{SITE}/.complete"),
    (remove, INDEX, "_build/html/index.html is gone", f"{SITE}/.complete"),
    (pipe, INDEX, "_build/html/index.html: must be a plain file", f"{SITE}/.complete"),
    (add, f"{SITE}/_build/html/.htaccess", "_build/html/.htaccess was added", f"{SITE}/.complete"),
    (flip, f"{SITE}/{published.DOCTREES}/index.doctree", "index.doctree changed", f"{SITE}/.complete"),
    (flip, f"{SITE}/.sealed", ".sealed changed", f"{SITE}/.complete"),
    (pipe, f"{SITE}/.sealed", ".sealed cannot be read", f"{SITE}/.complete"),
    (empty, f"{SITE}/.complete", ".sealed changed", f"{SITE}/.complete"),
    (swap, INDEX, "belongs to another site", f"{SITE}/.complete"),
    (link, INDEX, "it is a link to another folder", f"{SITE}/.complete"),
]


@pytest.mark.parametrize("fault, file, words, made_again", FAULTS)
def test_a_difference_is_named_and_made_again(book, jobs, capsys, fault, file, words, made_again):
    fault(book / file)
    assert not verify.verify(book, jobs)
    line = capsys.readouterr().out
    assert words in line and line.count("\n") == 1 and "make book PROFILE=toy" in line
    build._prepare(book, jobs)
    assert not (book / made_again).exists() and words in capsys.readouterr().err


@pytest.mark.parametrize(
    "fault, file, words",
    [
        (flip, f"{RUNS}/{published.PDFS[True]}", "privai-leak.pdf: its bytes changed"),
        (empty, f"{RUNS}/{published.PDFS[True]}.sha256", "privai-leak.pdf"),
        (reprint, INDEX, "privai-leak.pdf: was printed from another site than site/"),
    ],
)
def test_a_pdf_that_differs_is_named_and_a_build_leaves_it(book, jobs, capsys, fault, file, words):
    fault(book / file)
    assert not verify.verify(book, jobs)
    line = capsys.readouterr().out
    assert words in line and PRINT in line
    build._prepare(book, jobs)
    assert (book / RUNS / published.PDFS[True]).exists()


@pytest.fixture
def swept(book, jobs):
    """The same book with a sweep whose table stands for its runs."""
    artifacts.write_sealed(book / SWEEP / "results.parquet", b"table")
    artifacts.write_atomic(book / SWEEP / "gallery" / "index.html", b"<p>rows</p>")
    published.seal_sweep(book, "toy", jobs)
    return book


SWEPT = [
    (flip, f"{SWEEP}/gallery/index.html", "gallery/index.html changed"),
    (forge, f"{SWEEP}/results.parquet", "results.parquet changed"),
    (flip, f"{SWEEP}/{published.RUNS}", f"{published.RUNS} changed"),
    (remove, f"{SWEEP}/.complete", ".complete is gone"),
    (flip, "runs/toy/notebooks/hipaa.ipynb", "toy, hipaa: runs/toy/notebooks/hipaa.ipynb changed"),
    (forge, f"{COMPARISON}/summary.json", "toy, comparison: summary.json changed"),
    (forge, f"{HIPAA}/run.json", "toy, hipaa: its record is not that of the sweep"),
    (remove, f"{HIPAA}/run.json", "toy, hipaa: its record is not that of the sweep"),
]


@pytest.mark.parametrize("fault, file, words", SWEPT)
def test_a_sweep_is_compared_with_what_it_was_made_from(swept, jobs, capsys, fault, file, words):
    assert verify.verify(swept, jobs)
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"sweep toy: holds: every file is as it was made: {len(jobs)} runs")
    assert second.startswith("toy: holds: ")
    fault(swept / file)
    assert not verify.verify(swept, jobs)
    line = capsys.readouterr().out.splitlines()[0]
    assert line.startswith(f"sweep toy: does not hold: {words}") and "`make sweep PROFILE=toy ...`" in line


def test_a_sweep_needs_no_book_of_its_profile(swept, jobs, capsys):
    for job in jobs:
        (swept / job.sentinel).unlink()
    published.seal_sweep(swept, "toy", [])
    assert verify.verify(swept, jobs)
    assert capsys.readouterr().out.startswith("sweep toy: holds: every file is as it was made: 0 runs")


@pytest.mark.parametrize("name", ["x", "runs", "\x1b[2J" * 1000])
def test_a_list_with_names_of_no_run_is_refused_in_a_line(swept, jobs, capsys, name):
    artifacts.write_atomic(swept / SWEEP / published.RUNS, f"{'0' * 64}  {name}\n".encode())
    published.seal_site(swept / SWEEP)
    assert not verify.verify(swept, jobs)
    line = capsys.readouterr().out.splitlines()[0]
    assert "is no longer a run of its profile" in line and "\x1b" not in line and len(line) < 1000


@pytest.mark.parametrize("name", [b"a\nb.png", b"sub\r/x", b"x\xff.png"])
def test_no_list_is_written_that_cannot_hold_a_name(tmp_path, name):
    artifacts.write_atomic(tmp_path / SITE / os.fsdecode(name), b"x")
    with pytest.raises(InvalidParameter):
        published.seal_site(tmp_path / SITE)
    assert not (tmp_path / SITE / published.SEALED).exists()


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


def test_results_made_again_since_are_named_and_neither_kept_nor_published(book, jobs, capsys, monkeypatch):
    artifacts.write_sealed(book / COMPARISON / "summary.json", b'{"models": {"x": {}}}\n')
    make_again(book, jobs, "comparison")
    late = {job.rule: why for job in jobs if (why := plan.stale(book, job))}
    assert late == dict.fromkeys(("hipaa", "report_audit"), "to run: it read other results of comparison")
    assert not verify.verify(book, jobs)
    for refused in (published.collect, published.manifest, keep.evidence):
        with pytest.raises(DamagedArtifact, match="hipaa: it read other results"):
            refused(book, jobs)
    monkeypatch.chdir(book)
    assert cli.main(["check", "--profile", "toy"]) == 0
    assert "to run: it read other results of comparison" in capsys.readouterr().out


def test_the_same_results_made_again_change_nothing(book, jobs):
    make_again(book, jobs, "comparison", seconds=7.0, started="2027-01-01T00:00:00+00:00")
    assert not any(plan.stale(book, job) for job in jobs)


def test_runs_of_other_versions_are_counted_in_one_line(book, jobs, capsys, monkeypatch):
    now = fingerprint.versions()
    monkeypatch.setattr(fingerprint, "versions", lambda: now | {"python": "9.0"})
    told = f"{len(jobs)} runs were made with python {now['python']}, and 9.0 is installed; to make all again"
    assert verify.verify(book, jobs)
    assert told in capsys.readouterr().out
    assert not any(plan.stale(book, job) for job in jobs), "nothing is thrown away"


def test_a_site_whose_manifest_is_gone_or_that_changed_is_not_shown_or_printed(book, jobs):
    (book / MANIFEST).unlink()
    with pytest.raises(DamagedArtifact, match=r"other runs than manifest\.json; run `make book PROFILE=toy`"):
        published.finished(book, "toy", solutions=True)
    published.collect(book, jobs)
    flip(book / INDEX)
    with pytest.raises(DamagedArtifact, match=r"index\.html changed .*run `make book PROFILE=toy`"):
        _pdf.write(book, "toy")


def test_the_command_says_it_by_its_exit_code(book, monkeypatch, capsys):
    monkeypatch.chdir(book)
    assert cli.main(["verify", "--profile", "toy"]) == 0
    flip(book / INDEX)
    assert cli.main(["verify", "--profile", "toy"]) == 1
    assert cli.main(["check", "--profile", "toy"]) == 0
    assert "site/: _build/html/index.html changed" in capsys.readouterr().out
    assert cli.main(["verify", "--profile", "toy", "--key", "/nope.pem"]) == 2
