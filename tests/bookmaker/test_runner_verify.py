"""Everything that is published is sealed: what differs is named, refused and made again."""

import json
import os
import re
import shutil

import pytest
import toy_site

from bookmaker.runner import (
    _cli,
    _evidence,
    _fingerprint,
    _manifest,
    _outcome,
    _sites,
    _verify,
    build,
    plan,
    published,
)
from bookmaker.site import _pdf
from privhelpers import artifacts
from privhelpers.errors import DamagedArtifact, InvalidParameter, RunFailed

RUNS, HIPAA = "runs/toy", "runs/toy/artifacts/hipaa"
SWEEP = "runs/sweeps/toy"
SITE, INDEX = "runs/toy/site", "runs/toy/site/_build/html/index.html"


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    """A toy book with a site of two files and a PDF of a few bytes; nothing here looks into them."""
    root = toy_site.build(tmp_path_factory.mktemp("toy") / "book")
    artifacts.write_atomic(root / INDEX, b"<p>ours</p>")
    artifacts.write_atomic(root / SITE / _sites.DOCTREES / "index.doctree", b"ours")
    artifacts.write_atomic(root / SITE / "build.log", b"not part of it")
    published.seal_site(root / SITE)
    published.write_pdf(root / SITE, root / RUNS / published.PDF, b"%PDF")
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


def forge(path):
    """Change a file and its seal together."""
    artifacts.write_sealed(path, path.read_bytes().replace(b"61.0", b"16.0") + b" ")


def swell(path):
    """Let a file and its seal claim ten gigabytes, of which the disk holds none."""
    with open(path, "r+b") as file:
        file.truncate(10**10)


def test_what_is_as_it_was_made_holds(book, jobs, capsys):
    (book / SITE / "build.log").write_text("another")
    (book / SITE / "_build" / ".DS_Store").write_text("of the system")
    assert _verify.verify(book, jobs) and not _verify.damages(book, jobs)
    line = capsys.readouterr().out
    assert line.count("\n") == 1 and f"{len(jobs)} runs, manifest.json, summary.json, site, privai" in line
    (book / RUNS / published.PDF).unlink()
    assert _verify.verify(book, jobs), "nobody has to print"


# What is done to which file; how the line names it; the file whose absence makes a build repair it.
FAULTS = [
    (flip, "runs/toy/notebooks/hipaa.ipynb", "hipaa: runs/toy/notebooks/hipaa.ipynb changed", HIPAA),
    (flip, "runs/toy/artifacts/hipaa/run.json", "hipaa: runs/toy/artifacts/hipaa/run.json: its", HIPAA),
    (empty, "runs/toy/artifacts/hipaa/run.json.sha256", "hipaa: runs/toy/artifacts/hipaa/run.json", HIPAA),
    (flip, "runs/toy/artifacts/comparison/summary.json", "comparison: summary.json: its bytes", None),
    (forge, "runs/toy/artifacts/comparison/summary.json", "comparison: summary.json changed", None),
    (empty, "runs/toy/artifacts/comparison/summary.json.sha256", "comparison: summary.json: its", None),
    (forge, "runs/toy/artifacts/hipaa/run.json", "manifest.json: is not about the present runs", RUNS),
    (flip, "runs/toy/manifest.json", "manifest.json: its bytes changed", RUNS),
    (forge, "runs/toy/manifest.json", "manifest.json: is not about the present runs", RUNS),
    (swell, f"{HIPAA}/run.json", f"hipaa: {HIPAA}/run.json: cannot be read (it has more", HIPAA),
    (remove, "runs/toy/manifest.json.sha256", "manifest.json: has no .sha256 beside it", RUNS),
    (forge, "runs/toy/summary.json", "summary.json: is not about the present runs", RUNS),
    (flip, INDEX, "the site: _build/html/index.html changed after it was made", SITE),
    (remove, INDEX, "the site: _build/html/index.html is gone after it was made", SITE),
    (flip, f"{SITE}/{_sites.DOCTREES}/index.doctree", f"the site: {_sites.DOCTREES}/index", SITE),
    (flip, f"{SITE}/.sealed", "the site: .sealed changed", SITE),
    (remove, f"{SITE}/.sealed", "the site: .sealed is gone", SITE),
    (empty, f"{SITE}/.complete", "the site: .sealed changed", SITE),
    (pipe, f"{SITE}/.sealed", "the site: .sealed cannot be read (it is no regular", SITE),
    (swell, f"{SITE}/.sealed", "the site: .sealed cannot be read (it has more", SITE),
    (pipe, INDEX, "the site: _build/html/index.html: is no file; a result is a plain file", SITE),
]
MARK = {
    HIPAA: f"{HIPAA}/run.json",
    RUNS: "runs/toy/manifest.json",
    SITE: f"{SITE}/.complete",
    None: "runs/toy/artifacts/comparison/run.json",
}


@pytest.mark.parametrize("fault, file, words, made_again", FAULTS)
def test_a_difference_is_named_and_its_mark_is_taken_away(book, jobs, capsys, fault, file, words, made_again):
    fault(book / file)
    assert not _verify.verify(book, jobs)
    line = capsys.readouterr().out
    assert words in line and line.count("\n") == 1 and "make book PROFILE=toy" in line
    build._drop_stale(book, jobs)
    mark = "runs/toy/summary.json" if words.startswith("summary") else MARK[made_again]
    assert not (book / mark).exists()
    assert f"[toy] {words}" in capsys.readouterr().err
    assert not _verify.damages(book, jobs), "what is left holds, so the next build has no dead end"


@pytest.mark.parametrize("file", ["manifest.json", "artifacts/hipaa/run.json", "site/.complete"])
def test_a_folder_in_the_place_of_a_file_is_named_by_the_build(book, jobs, capsys, file):
    """`make book` ended well on a folder, and then asked for `make book`."""
    place = book / RUNS / file
    place.unlink()
    place.mkdir()
    assert not _verify.verify(book, jobs)
    if "/" not in file:
        assert f"{file} is no file; move it away" in capsys.readouterr().out
    with pytest.raises(RunFailed, match=f"^{RUNS}/{file} is no file; move it away$"):
        build._drop_stale(book, jobs)


def test_a_hidden_file_in_what_is_uploaded_is_named(book, jobs, capsys):
    (book / SITE / "_build/html/.htaccess").write_text("Redirect / https://evil.example/")
    assert not _verify.verify(book, jobs)
    assert "_build/html/.htaccess was added after it was made" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sheet.html.sha256.sha256", "hipaa: sheet.html.sha256.sha256 was added"),
        ("run.json.sha256.sha256", "hipaa: run.json.sha256.sha256 was added"),
        ("folder.sha256", "hipaa: folder is gone, and its seal is there"),
    ],
)
def test_a_seal_of_no_file_is_named_and_its_run_made_again(book, jobs, capsys, name, words):
    (book / HIPAA / "folder").mkdir()
    (book / HIPAA / name).write_text("any")
    assert not _verify.verify(book, jobs) and words in capsys.readouterr().out
    build._drop_stale(book, jobs)
    assert not (book / HIPAA / "run.json").exists()


def test_a_file_outside_every_run_is_named_and_nothing_made_for_it(book, jobs, capsys):
    home = book / RUNS / "artifacts"
    shutil.copytree(home / "hipaa", home / "of_an_earlier_plan")
    assert _verify.verify(book, jobs)
    for name in ("stray.json", "nowhere/deep/x.sha256", "private_training/dp_eps_99/step-1.pt"):
        artifacts.write_sealed(home / name, b"x")
    capsys.readouterr()
    assert not _verify.verify(book, jobs)
    line = capsys.readouterr().out
    named = ("nowhere", "private_training/dp_eps_99", "stray.json")
    told = "; ".join(f"artifacts/{name} belongs to no run: remove it" for name in named)
    assert line == f"toy: does not hold: {told}; and 1 more\n"
    assert "make book" not in line and line.count("\n") == 1
    assert not build._drop_stale(book, jobs), "every run stays"
    assert "artifacts/stray.json belongs to no run: remove it" in capsys.readouterr().err
    (home / "stray").symlink_to(book)
    assert not _verify.verify(book, jobs) and "artifacts/stray: is a link" in capsys.readouterr().out


def test_a_key_without_a_bundle_is_refused(book, monkeypatch, capsys):
    monkeypatch.chdir(book)
    assert _cli.main(["verify", "--profile", "toy", "--key", "/nope.pem"]) == 2
    assert "refused: --key without --bundle" in capsys.readouterr().err


def test_a_page_that_was_added_to_the_site_is_named(book, jobs, capsys):
    artifacts.write_sealed(book / SITE / "_build/html/more.html", b"x")
    assert not _verify.verify(book, jobs)
    assert "_build/html/more.html was added after it was made" in capsys.readouterr().out


@pytest.fixture
def swept(book, jobs):
    """The same book with a sweep whose table stands for its runs."""
    artifacts.write_sealed(book / SWEEP / "results.parquet", b"table")
    artifacts.write_atomic(book / SWEEP / "gallery" / "index.html", b"<p>rows</p>")
    published.seal_sweep(book, "toy", jobs)
    return book


SWEPT = [
    (flip, f"{SWEEP}/gallery/index.html", "gallery/index.html changed after it was made"),
    (flip, f"{SWEEP}/results.parquet", "results.parquet changed after it was made"),
    (forge, f"{SWEEP}/results.parquet", "results.parquet changed after it was made"),
    (remove, f"{SWEEP}/results.parquet.sha256", "results.parquet.sha256 is gone after it was made"),
    (flip, f"{SWEEP}/{published.RUNS}", f"{published.RUNS} changed after it was made"),
    (flip, f"{SWEEP}/.sealed", ".sealed changed"),
    (remove, f"{SWEEP}/.complete", ".complete is gone"),
    (flip, "runs/toy/notebooks/hipaa.ipynb", "toy, hipaa: runs/toy/notebooks/hipaa.ipynb changed"),
    (forge, "runs/toy/artifacts/comparison/summary.json", "toy, comparison: summary.json changed"),
    (forge, "runs/toy/artifacts/hipaa/run.json", "toy, hipaa: its record is not that of the sweep"),
    (remove, "runs/toy/artifacts/hipaa/run.json", "toy, hipaa: its record is not that of the sweep"),
]


@pytest.mark.parametrize("fault, file, words", SWEPT)
def test_a_sweep_is_compared_with_what_it_was_made_from(swept, jobs, capsys, fault, file, words):
    assert _verify.verify(swept, jobs)
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(
        f"sweep toy: holds: every file is as it was made: {len(jobs)} runs, results.parquet"
    )
    assert second.startswith("toy: holds: ")
    fault(swept / file)
    assert not _verify.verify(swept, jobs)
    line = capsys.readouterr().out.splitlines()[0]
    assert line.startswith(f"sweep toy: does not hold: {words}") and "`make sweep PROFILE=toy ...`" in line


def test_what_belongs_to_no_run_of_a_sweep_is_named_without_a_command(swept, jobs, capsys):
    artifacts.write_sealed(swept / RUNS / "artifacts/private_training/dp_eps_99/step-1.pt", b"x")
    assert not _verify.verify(swept, jobs)
    line = capsys.readouterr().out.splitlines()[0]
    stray = "toy, artifacts/private_training/dp_eps_99 belongs to no run: remove it"
    assert line == f"sweep toy: does not hold: {stray}"


def test_a_sweep_needs_no_book_of_its_profile(swept, jobs, capsys):
    for job in jobs:
        (swept / job.sentinel).unlink()
    assert not _verify.verify(swept, jobs)
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("sweep toy: does not hold: toy, ")
    published.seal_sweep(swept, "toy", [])
    assert _verify.verify(swept, jobs)
    assert capsys.readouterr().out.startswith("sweep toy: holds: every file is as it was made: 0 runs")


def test_a_list_of_runs_that_is_too_long_is_named(swept, jobs, capsys):
    artifacts.write_atomic(swept / SWEEP / published.RUNS, b"x" * 10_000_001)
    published.seal_site(swept / SWEEP)
    assert not _verify.verify(swept, jobs)
    line = capsys.readouterr().out.splitlines()[0]
    assert line.startswith(f"sweep toy: does not hold: {published.RUNS} cannot be read (it has more than")


@pytest.mark.parametrize("name", ["x", "", "runs", "\x1b[2J" * 1000])
def test_a_list_of_runs_with_names_of_no_run_is_refused_in_a_line(swept, jobs, capsys, name):
    artifacts.write_atomic(swept / SWEEP / published.RUNS, f"{'0' * 64}  {name}\n".encode())
    published.seal_site(swept / SWEEP)
    assert not _verify.verify(swept, jobs)
    line = capsys.readouterr().out.splitlines()[0]
    assert "is no longer a run of its profile" in line and "\x1b" not in line and len(line) < 1000


NAMES = {b"a\nb.png": r"a\nb.png", b"sub\r/x": r"sub\r/x", b"x\xff.png": r"x\udcff.png"}


@pytest.mark.parametrize("of_sweep", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_no_list_is_written_that_cannot_hold_a_name(tmp_path, name, of_sweep):
    folder = tmp_path / (SWEEP if of_sweep else SITE)
    artifacts.write_atomic(folder / os.fsdecode(name), b"x")
    with pytest.raises(InvalidParameter, match=rf"^{re.escape(NAMES[name])}: .*rename it$"):
        published.seal_sweep(tmp_path, "toy", []) if of_sweep else published.seal_site(folder)
    assert not (folder / published.SEALED).exists() and not (folder / published.COMPLETE).exists()


def test_what_is_missing_does_not_hold(book, jobs, capsys):
    for name in ("hipaa/run.json", "comparison/run.json"):
        (book / RUNS / "artifacts" / name).unlink()
    (book / SITE / ".complete").unlink()
    assert not _verify.verify(book, jobs)
    line = capsys.readouterr().out
    assert "2 runs are missing, comparison among them" in line and "site/.complete is missing" in line


def make_again(root, jobs, rule, **values):
    """Let a run be made again as it was, but for its record's values."""
    job = next(job for job in jobs if job.rule == rule)
    record = json.loads((root / job.sentinel).read_text())
    toy_site.keep_record(root, job, record | values)


def test_results_made_again_since_are_named_and_neither_kept_nor_published(book, jobs, capsys, monkeypatch):
    artifacts.write_sealed(book / RUNS / "artifacts/comparison/summary.json", b'{"models": {"x": {}}}\n')
    make_again(book, jobs, "comparison")
    states = _verify.states(book, jobs)
    late = {rule: state for rule, state in states.items() if state != plan.CURRENT}
    words = "comparison was made again since, with other results"
    assert set(late) == {"hipaa", "report_audit"} and late["hipaa"] == f"to run: {words}"
    assert not _verify.verify(book, jobs)
    assert f"hipaa: {words}" in capsys.readouterr().out
    for refused in (_manifest.collect, published.manifest, _evidence.of_profile):
        with pytest.raises(DamagedArtifact, match=words):
            refused(book, jobs)
    monkeypatch.chdir(book)
    assert _cli.main(["check", "--profile", "toy"]) == 0
    assert f"to run: {words}" in capsys.readouterr().out


def test_the_same_results_made_again_change_nothing(book, jobs):
    make_again(book, jobs, "comparison", seconds=7.0, started="2027-01-01T00:00:00+00:00")
    assert set(_verify.states(book, jobs).values()) == {plan.CURRENT}


def test_a_record_that_does_not_say_what_it_read_is_made_again(book, jobs):
    for job in jobs:
        record = json.loads((book / job.sentinel).read_text())
        del record["inputs"]
        artifacts.write_sealed(book / job.sentinel, artifacts.to_json(record))
    states = _verify.states(book, jobs)
    assert states["synthetic_records"] == plan.CURRENT, "it reads nothing"
    words = "to run: its record does not say which results of synthetic_records it read"
    assert states["public_pretraining"] == words
    assert states["hipaa"].startswith(plan.WAITS)


def test_a_manifest_that_is_too_large_is_named(book):
    swell(book / "runs/toy/manifest.json")
    words = r"^manifest\.json cannot be read \(it has more than 10,000,000 bytes\)$"
    assert re.search(words, _sites.damage(book / SITE))
    with pytest.raises(DamagedArtifact, match=words):
        published.site_runs(book / SITE)


def test_the_pdf_of_a_site_that_is_gone_or_too_large_is_named(book):
    pdf = book / RUNS / published.PDF
    swell(book / SITE / ".sealed")
    assert _sites.pdf_damage(book / SITE, pdf).startswith(".sealed cannot be read (it has more")
    (book / SITE / ".sealed").unlink()
    assert _sites.pdf_damage(book / SITE, pdf) == "privai-leak.pdf: its site is gone"


def test_the_pdf_is_sealed_and_a_build_does_not_take_it_away(book, jobs, capsys):
    flip(book / RUNS / published.PDF)
    assert not _verify.verify(book, jobs)
    assert "privai-leak.pdf: its bytes changed" in capsys.readouterr().out
    build._drop_stale(book, jobs)
    assert (book / RUNS / published.PDF).exists()


def test_runs_of_other_versions_are_counted_in_one_line(book, jobs, capsys, monkeypatch):
    now = _outcome.versions()
    monkeypatch.setattr(_outcome, "versions", lambda: now | {"python": "9.0"})
    told = f"{len(jobs)} runs were made with python {now['python']}, and 9.0 is installed; to make all anew"
    assert _verify.verify(book, jobs)
    assert f"toy: {told}, remove runs/toy\n" in capsys.readouterr().out
    monkeypatch.chdir(book)
    assert _cli.main(["check", "--profile", "toy"]) == 0
    assert told in capsys.readouterr().out
    assert set(_verify.states(book, jobs).values()) == {plan.CURRENT}, "nothing is thrown away"
    for job in jobs[1:]:
        (book / job.sentinel).unlink()
    assert _verify.other_versions(book, jobs).startswith("1 run was made with python")


def test_what_failed_in_an_earlier_build_did_not_fail_in_this_one(book, jobs, capsys):
    job = next(job for job in jobs if job.rule == "hipaa")
    (book / job.sentinel).unlink()
    assert not _verify.verify(book, jobs)
    assert "1 run is missing, hipaa" in capsys.readouterr().out
    artifacts.write_atomic(book / job.failed, b"{}")
    build._drop_stale(book, jobs)
    assert not (book / job.failed).exists()


def test_runs_that_were_removed_while_they_were_built_are_told(book, jobs):
    """By `make -f dev.mk clean`, or by hand."""
    with pytest.raises(RunFailed, match=r"^runs/toy was removed while it was built"):
        build._explain(book, [jobs], book / "runs/toy/logs/snakemake.log", {})


def finished(book):
    """Return whether a build would leave the toy's site as it is."""
    artifacts.write_atomic(book / RUNS / build.BUILT, b"")
    build._renew(book, "toy")
    return (book / RUNS / build.BUILT).exists()


@pytest.mark.parametrize("name", ["manifest.json", "summary.json", "site/.complete", "site/.sources", ""])
def test_a_site_stays_only_with_all_that_is_made_of_the_same_runs_and_sources(book, jobs, name):
    """A build that was killed between its last run and the manifest left a site of older runs for good."""
    (book / SITE / published.SOURCES).write_text(_fingerprint.of_site(book))
    assert finished(book)
    if name:
        (book / RUNS / name).unlink()
    else:
        (book / "book" / "new.md").write_text("# New\n")
    assert not finished(book)


def test_a_site_whose_manifest_is_gone_is_not_shown(book, jobs):
    (book / RUNS / published.MANIFEST).unlink()
    with pytest.raises(DamagedArtifact, match=r"other runs than manifest\.json; run `make book PROFILE=toy`"):
        published.finished(book, "toy", solutions=True)
    build._drop_stale(book, jobs)
    assert not (book / SITE / ".complete").exists() and not _verify.damages(book, jobs)


def test_what_a_build_must_make_and_did_not_is_named(book, jobs):
    for job in jobs:
        (book / job.mark).touch()
    (book / RUNS / build.BUILT).touch()
    build._require(book, ["toy"], [jobs], [])
    for file in (f"{SITE}/.complete", "runs/toy/summary.json", jobs[-1].mark):
        (book / file).unlink()
        with pytest.raises(RunFailed, match=f"{re.escape(file)} was not made; see runs/toy/logs"):
            build._require(book, ["toy"], [jobs], [])
    build._require(book, ["toy"], [jobs], [jobs[0].mark])


def test_no_pdf_is_printed_from_a_site_that_changed(book):
    flip(book / INDEX)
    with pytest.raises(DamagedArtifact, match=r"index\.html changed .*run `make book PROFILE=toy`"):
        _pdf.write(book, "toy")


def test_the_command_says_it_by_its_exit_code(book, jobs, monkeypatch, capsys):
    monkeypatch.chdir(book)
    assert _cli.main(["verify", "--profile", "toy"]) == 0
    flip(book / INDEX)
    assert _cli.main(["verify", "--profile", "toy"]) == 1
    assert _cli.main(["check", "--profile", "toy"]) == 0
    assert "the site: _build/html/index.html changed" in capsys.readouterr().out


def test_a_run_reads_nothing_that_is_damaged(book, jobs, monkeypatch, capsys):
    """A bit may flip, and a run may be started alone, after the build compared everything."""
    monkeypatch.chdir(book)
    needed = next(job for job in jobs if job.rule == "comparison")
    flip(book / needed.notebook)
    before = {job.rule: plan.state(book, job) for job in jobs}
    monkeypatch.setattr("bookmaker.runner._cli.processes.die_with_parent", lambda clean: None)
    assert _cli.main(["run", "--profile", "toy", "--job", "hipaa"]) == 2
    assert "hipaa reads comparison: runs/toy/notebooks/comparison.ipynb changed" in capsys.readouterr().err
    assert {job.rule: plan.state(book, job) for job in jobs} == before


@pytest.fixture
def both(book):
    """The same book with a site without solutions beside the other one, and a PDF of each."""
    artifacts.write_atomic(book / "runs/toy/public/_build/html/index.html", b"<p>without</p>")
    for kind, name in published.SITES.items():
        published.seal_site(book / RUNS / name)
        published.write_pdf(book / RUNS / name, book / RUNS / published.PDFS[kind], name.encode())
    return book


def other_runs(book):
    """Change what the manifest says, as another run does."""
    forge(book / f"{HIPAA}/run.json")
    _manifest.collect(book, toy_site.jobs(book))
    published.seal_site(book / "runs/toy/public")


def swap(book):
    (book / SITE).rename(book / "t")
    (book / "runs/toy/public").rename(book / SITE)
    (book / "t").rename(book / "runs/toy/public")


def link(book):
    (book / SITE).rename(book / "elsewhere")
    (book / SITE).symlink_to(book / "elsewhere")


def of_another_profile(book):
    shutil.copytree(book / RUNS, book / "runs/other")
    published.seal_site(book / "runs/other/site")
    shutil.rmtree(book / SITE)
    (book / "runs/other/site").rename(book / SITE)


def reprint(book):
    """Keep the PDF while the site is built again."""
    artifacts.write_atomic(book / INDEX, b"<p>new</p>")
    published.seal_site(book / SITE)


def add_a_line(book):
    with (book / SITE / ".complete").open("a") as mark:
        mark.write("more")


def of_another_name(book):
    seal = book / RUNS / "privai-leak.pdf.sha256"
    seal.write_text(seal.read_text().replace("privai-leak", "other"))


def unfinished(book):
    (book / "runs/toy/public/.complete").unlink()


PRINT = "`python -m bookmaker pdf --profile toy`"
BOOK, PUBLIC = "`make book PROFILE=toy`", "`make book PROFILE=toy SOLUTIONS=no`"


@pytest.mark.parametrize(
    "fault, words, cure",
    [
        (other_runs, "the site: it shows other runs than manifest.json", BOOK),
        (add_a_line, "the site: it shows other runs than manifest.json", BOOK),
        (swap, "the site: it was made as another site", BOOK),
        (swap, "the site in public/: it was made as another site", PUBLIC),
        (link, "the site: it is a link", BOOK),
        (of_another_profile, "the site: it was made as another site", BOOK),
        (
            reprint,
            "privai-leak.pdf: was printed from another site than site/",
            PRINT,
        ),
        (
            of_another_name,
            "privai-leak.pdf: was printed from another site",
            PRINT,
        ),
        (unfinished, "public/.complete is missing", PUBLIC),
    ],
)
def test_a_site_is_of_its_runs_its_kind_and_its_profile(both, jobs, capsys, fault, words, cure):
    assert _verify.verify(both, jobs)
    capsys.readouterr()
    fault(both)
    assert not _verify.verify(both, jobs)
    line = capsys.readouterr().out
    assert words in line and cure in line and line.count("\n") == 1
    if "site:" in words:
        with pytest.raises(DamagedArtifact, match=r"run `make book PROFILE=toy`"):
            _pdf.write(both, "toy")
    build._drop_stale(both, jobs)
    assert not _verify.damages(both, jobs)


def test_a_link_goes_and_what_it_leads_to_stays(both, jobs):
    link(both)
    build._drop_stale(both, jobs)
    assert not (both / SITE).is_symlink() and (both / "elsewhere/.complete").is_file()
