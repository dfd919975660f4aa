"""Copies for the cloud make themselves ready; a copy knows where the repository is, and nothing else does."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from nbformat.v4 import new_code_cell, new_notebook
from patience import LIMIT_SECONDS

from bookmaker.runner import chain, fingerprint, notebooks
from bookmaker.teaching import _launch, _student
from privhelpers.errors import DamagedArtifact, InvalidParameter

ROOT = Path(__file__).parents[2]
ADDRESS = "https://github.com/example/privai-leak"
sys.path.insert(0, str(ROOT / "binder"))
import prepare  # noqa: E402


@pytest.fixture
def repository(tmp_path):
    config = yaml.safe_load((ROOT / "_config.yml").read_text())
    config["repository"]["url"] = f"{ADDRESS}/"
    (tmp_path / "_config.yml").write_text(yaml.safe_dump(config))
    (tmp_path / "notebooks").symlink_to(ROOT / "notebooks")
    return tmp_path


def test_every_chapter_has_a_copy_that_reads_the_small_profile(repository):
    written = _launch.write_copies(repository, repository / "copies")
    assert [path.stem for path in written] == list(chain.SLUGS)
    for path in written:
        copy = notebooks.read(path)
        notice, ready = copy.cells[:2]
        assert "smallest profile" in notice.source and ready.cell_type == "code"
        assert ADDRESS + "'" in ready.source and repr(path.stem) in ready.source
        compile(ready.source, path.name, "exec")
        parameters = next(c for c in copy.cells if "parameters" in notebooks.tags(c))
        assert 'profile: str = "smoke"' in parameters.source
        assert len({cell["id"] for cell in copy.cells}) == len(copy.cells)


@pytest.mark.parametrize("url", [None, "", "http://example.org/x", 7, "https://example.org/x' + evil"])
def test_an_address_that_is_missing_or_none_is_refused(tmp_path, url):
    (tmp_path / "_config.yml").write_text(yaml.safe_dump({"repository": {"url": url}}))
    with pytest.raises(InvalidParameter, match=r"_config\.yml, repository\.url"):
        _launch.repository(tmp_path)


def test_a_notebook_without_a_profile_is_named():
    with pytest.raises(DamagedArtifact, match="toy"):
        _student.read_profile(new_notebook(cells=[new_code_cell("x = 1")]), "smoke", "toy")


def test_only_what_is_missing_is_installed_and_never_the_kernel():
    numpy = f"numpy=={prepare.metadata.version('numpy')}"
    torch = f"torch=={prepare.metadata.version('torch').split('+')[0]}"
    assert prepare.missing([numpy, torch]) == []
    assert prepare.missing(["numpy==0.0.1", "no-such-thing==1.0", "ipykernel==0.0.1", "torch==0.1"]) == [
        "numpy==0.0.1",
        "no-such-thing==1.0",
    ]


@pytest.mark.parametrize(("slug", "code"), [("renyi_accounting", 0), ("nothing", 1)])
def test_preparing_a_chapter_of_theory_runs_nothing_and_an_unknown_one_is_refused(slug, code):
    command = [sys.executable, str(ROOT / "binder" / "prepare.py"), "--results", slug]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    assert (done.returncode, done.stdout) == (code, ""), done.stderr


def test_the_first_cell_fetches_the_book_once_and_says_what_went_wrong(tmp_path):
    book = tmp_path / "book"
    (book / "binder").mkdir(parents=True)
    script = book / "binder" / "prepare.py"
    script.write_text("import sys; print('asked for', *sys.argv[1:]); sys.exit(sys.argv[-1] == 'bad')")
    name = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    for command in (["init", "--quiet"], ["add", "."], ["commit", "--quiet", "-m", "a"]):
        fingerprint.git(book, *name, *command)
    (tmp_path / "away").mkdir()

    def start(slug):
        cell = _launch.SETUP.format(address=str(book), slug=slug)
        given = {"cwd": tmp_path / "away", "capture_output": True, "text": True, "timeout": LIMIT_SECONDS}
        return subprocess.run([sys.executable, "-c", cell], **given)

    for _ in range(2):
        done = start("good")
        assert done.returncode == 0, done.stderr
        assert done.stdout == "asked for --packages --results good\n"
    assert (tmp_path / "away" / "privai-leak" / "binder" / "prepare.py").is_file()
    assert "could not be made ready" in start("bad").stderr
