"""No page and no string of this book repeats a claim that a number can protect somebody by law."""

import ast
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Forbidden even inside quotes: a sentence that is read in a hurry loses its quotation marks.
FORBIDDEN = {
    "a model that complies": r"hipaa[\s-]*compliant",
    "a model that nearly complies": r"near(?:ly)?[\s-]*compliant",
    "records that are protected": r"records?\s+protected",
    "an elimination": r"100\s*(?:%|percent|per\s+cent)\s*elimination",
}
PAGES = sorted(
    [
        *(ROOT / "notebooks").glob("*.ipynb"),
        *(ROOT / "book").rglob("*.md"),
        *(ROOT / "book").rglob("*.bib"),
        *(ROOT / "book" / "quizzes").glob("*.yml"),
        *(
            path
            for package in ("privhelpers", "privaudit")
            for kind in ("py", "yml", "html")
            for path in (ROOT / package).rglob(f"*.{kind}")
        ),
        ROOT / "README.md",
    ]
)


def words_of(path: Path) -> str:
    """Return what a reader may see of a file, with white space, emphasis and entities out of the way."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        parts = ["".join(cell["source"]) for cell in cells]
        parts += [json.dumps(cell["metadata"], ensure_ascii=False) for cell in cells]
        text = "\n".join(parts)
    elif path.suffix == ".py":
        nodes = ast.walk(ast.parse(text))
        text = "\n".join(n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str))
    plain = re.sub(r"[*_`\\]|&nbsp;|<[^>]*>", " ", text)
    return re.sub(r"\s+", " ", plain).replace("\u2011", "-").replace("\u2010", "-").lower()


def found_in(text: str) -> list[str]:
    return [name for name, form in FORBIDDEN.items() if re.search(form, text)]


def test_there_is_something_to_read():
    assert len(PAGES) > 100 and {p.suffix for p in PAGES} == {".ipynb", ".md", ".bib", ".py", ".yml", ".html"}


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_forbidden_words_stand_nowhere(path):
    assert not found_in(words_of(path))


@pytest.mark.parametrize(
    "text",
    [
        "This model is HIPAA compliant.",
        "a HIPAA-Compliant release",
        "status: Near-compliant",
        "nearly compliant",
        "1,743 Records Protected",
        "**100%** elimination of memorization",
        "100 percent elimination",
    ],
)
def test_the_lint_sees_each_form(tmp_path, text):
    page = tmp_path / "page.md"
    page.write_text(text)
    assert found_in(words_of(page))
    broken = tmp_path / "module.py"
    broken.write_text(f"CAPTION = {text.replace(' ', chr(10), 1)!r}\n")
    assert found_in(words_of(broken))
    notebook = tmp_path / "page.ipynb"
    cell = {"cell_type": "code", "source": ["x"], "metadata": {"mystnb": {"figure": {"caption": text}}}}
    notebook.write_text(json.dumps({"cells": [cell]}))
    assert found_in(words_of(notebook))


def test_the_lint_lets_honest_words_pass():
    assert not found_in("no page calls a model compliant; every record is protected by its own noise")
