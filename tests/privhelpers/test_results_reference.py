"""Kept results: of a complete run alone, read back as they were; who reads them reruns when they change."""

import shutil

import pytest
import toy_chain
import toy_site

from bookmaker.runner import fingerprint, keep
from privhelpers.artifacts import Store
from privhelpers.errors import DamagedArtifact, MissingArtifact, RunFailed
from privhelpers.results.reference import LONG_RUN, NOTES, open_reference


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    root = toy_site.build(tmp_path_factory.mktemp("reference") / "book")
    store = Store(root / "runs" / "toy" / "artifacts", "toy")
    for name in (*LONG_RUN, NOTES):
        write = store.write_jsonl if name.endswith("l") else store.write_json
        write(name, [{"model": name}] if name.endswith("l") else {"models": {"baseline": {"epsilon": None}}})
    toy_site.record_files(root)
    return root


@pytest.fixture
def root(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "book")


def test_what_was_kept_is_read_back(root):
    folder = keep.reference(root, "toy")
    assert folder == root / "reference" / "toy"
    longer = open_reference("toy", root)
    assert longer.measurements["model"].tolist() == ["comparison/measurements.jsonl"]
    assert longer.tests["model"].tolist() == ["comparison/tests.jsonl"]
    assert longer.results.comparison == {"baseline": {"epsilon": None}}
    assert longer.about["command"] == "make book PROFILE=toy" and longer.about["cpu_seconds"] > 0
    runs = Store(root / "runs" / "toy" / "artifacts", "toy")
    assert longer.read_the_notes_of(runs)
    runs.write_jsonl(NOTES, [{"text": "of other patients"}])
    assert not longer.read_the_notes_of(runs)
    toy_site.record_files(root)
    keep.reference(root, "toy")  # once more, in place of the first
    assert open_reference("toy", root).read_the_notes_of(runs)


def test_a_run_that_is_not_current_is_not_kept_and_what_was_kept_stays(root):
    before = (keep.reference(root, "toy") / "about" / "about.json").read_bytes()
    jobs = {job.rule: job for job in toy_site.jobs(root)}
    (root / jobs["your_model"].sentinel).unlink()  # nothing that is kept comes from it
    keep.reference(root, "toy")
    before = (root / "reference" / "toy" / "about" / "about.json").read_bytes()
    (root / jobs["comparison"].sentinel).unlink()
    with pytest.raises(RunFailed, match="PROFILE=toy"):
        keep.reference(root, "toy")
    assert (root / "reference" / "toy" / "about" / "about.json").read_bytes() == before


def test_nothing_kept_and_a_changed_file_are_refused(root):
    with pytest.raises(MissingArtifact, match="reference/toy"):
        open_reference("toy", root)
    folder = keep.reference(root, "toy")
    file = folder / "comparison" / "tests.jsonl"
    file.write_bytes(file.read_bytes().replace(b"tests", b"texts"))
    with pytest.raises(DamagedArtifact, match=r"comparison/tests\.jsonl"):
        open_reference("toy", root).tests  # noqa: B018


def test_a_chapter_that_reads_kept_results_runs_again_when_they_change_and_no_other(tmp_path):
    """What is kept of a profile makes none of its own runs out of date."""
    root = toy_chain.build(tmp_path / "book")
    reader = root / fingerprint.KEPT_RESULTS[0]
    reader.parent.mkdir(parents=True, exist_ok=True)
    (reader.parent / "__init__.py").touch()
    reader.write_text('"""Toy."""\n')
    code = ["from privhelpers.results.reference import open_reference"]
    toy_chain.write_notebook(root / "notebooks" / "reader.ipynb", 'profile: str = "toy"  # of the run', code)
    toy_chain.write_notebook(root / "notebooks" / "other.ipynb", 'profile: str = "toy"  # of the run', ["1"])

    def fingerprints():
        return {
            (name, profile): fingerprint.Helpers(root, profile).fingerprint(root / f"notebooks/{name}.ipynb")
            for name in ("reader", "other")
            for profile in ("real", "course")
        }

    before = fingerprints()
    Store(root / "reference" / "real", "real").write_json("about/about.json", {"seconds": 1})
    after = fingerprints()
    assert {key for key in before if after[key] != before[key]} == {("reader", "course")}
