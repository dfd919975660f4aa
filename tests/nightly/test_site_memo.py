"""What a build of the site keeps for the next one: read as it was written, by the code that wrote it."""

import pytest
import toy_site

from bookmaker.site import _checks, _outputs
from bookmaker.site._build import build
from bookmaker.site._memo import FOLDER, Memo


@pytest.fixture
def code(tmp_path):
    file = tmp_path / "code.py"
    file.write_text("1")
    return file


def asked(memo, *texts):
    """Return the answers, and the texts that had to be worked out."""
    worked = []

    def work(text):
        worked.append(text)
        return {"length": len(text)}

    answers = [memo.of(text, work)["length"] for text in texts]
    memo.write()
    return answers, worked


def test_an_answer_is_worked_out_once(tmp_path, code):
    file = tmp_path / "sub" / "memo.json"
    assert asked(Memo(file, [code]), "a", "bc", "a") == ([1, 2, 1], ["a", "bc"])
    assert asked(Memo(file, [code]), "bc", "def") == ([2, 3], ["def"])
    assert asked(Memo(file, [code]), "a") == ([1], ["a"])  # the build before did not ask for it


@pytest.mark.parametrize("damage", ["code", "edited", "cut", "unsealed"])
def test_what_changed_is_not_read(tmp_path, code, damage):
    file = tmp_path / "memo.json"
    asked(Memo(file, [code]), "bc")
    if damage == "code":
        code.write_text("2")
    elif damage == "edited":
        file.write_bytes(file.read_bytes().replace(b"2", b"7"))
    elif damage == "cut":
        file.write_bytes(file.read_bytes()[:20])
    else:
        (tmp_path / "memo.json.sha256").unlink()
    assert asked(Memo(file, [code]), "bc") == ([2], ["bc"])


def test_what_raises_is_not_kept(tmp_path, code):
    memo = Memo(tmp_path / "memo.json", [code])
    for _ in range(2):
        with pytest.raises(ValueError, match="script"):
            memo.of("<script>", _outputs.plain_table)
    memo.write()
    assert not (tmp_path / "memo.json").exists()


def test_the_next_build_reads_the_pages_and_tables_that_changed_and_no_others(tmp_path, monkeypatch):
    root = toy_site.build(tmp_path / "book")
    html = build(root, toy_site.jobs(root))
    first = {path.relative_to(html): path.read_bytes() for path in html.rglob("*.html")}
    assert {path.stem for path in (html.parents[1] / FOLDER).glob("*.json")} >= {"pages", "architecture"}
    read = []
    monkeypatch.setattr(_checks, "_read_page", lambda html: read.append(html))
    build(root, toy_site.jobs(root))
    assert not read
    assert {path.relative_to(html): path.read_bytes() for path in html.rglob("*.html")} == first
