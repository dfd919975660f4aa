"""The first chapters are built beside the other runs: when they are there, and only where somebody waits."""

import threading
import time
from types import SimpleNamespace

import pytest
from patience import LIMIT_SECONDS

from bookmaker.runner import _first_chapters

TOC = """root: book/intro
parts:
  - {caption: First, chapters: [{file: notebooks/01_one}, {file: notebooks/02_two}]}
  - {caption: Second, chapters: [{file: notebooks/03_three}]}
"""
LONG = _first_chapters.LONG + 1


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A plan of three chapters, and a program that notes that it was called, in place of the site's."""
    (tmp_path / "_toc.yml").write_text(TOC)
    program = tmp_path / "program.sh"
    program.write_text('#!/bin/sh\necho "$@" >> called\nexec sleep "${SLEEP:-0}"\n')
    program.chmod(0o755)
    monkeypatch.setattr(_first_chapters, "sys", SimpleNamespace(executable=str(program)))
    monkeypatch.setattr(_first_chapters, "POLL_SECONDS", 0.01)
    slugs = ("one", "two", "three")
    return tmp_path, [SimpleNamespace(slug=s, mark=f"{s}.json", profile="toy") for s in slugs]


def called(root, seconds=LIMIT_SECONDS):
    end = time.monotonic() + seconds
    while not (root / "called").exists() and time.monotonic() < end:
        time.sleep(0.01)
    return (root / "called").read_text().split() if (root / "called").exists() else None


def test_they_are_built_once_when_all_of_them_are_there(book):
    root, plan = book
    with _first_chapters.shown(root, plan, LONG):
        (root / "one.json").touch()
        (root / "three.json").touch()
        assert called(root, seconds=0.3) is None
        (root / "two.json").touch()
        assert called(root) == ["-m", "bookmaker.site", "first", "--profile", "toy"]


@pytest.mark.parametrize("seconds", [None, _first_chapters.LONG])
def test_a_short_build_and_one_of_unknown_length_show_everything_at_once(book, seconds):
    root, plan = book
    before = threading.active_count()
    with _first_chapters.shown(root, plan, seconds):
        assert threading.active_count() == before


def test_a_site_that_is_there_stays(book):
    root, plan = book
    (root / "runs/toy/site/_build").mkdir(parents=True)
    before = threading.active_count()
    with _first_chapters.shown(root, plan, LONG):
        assert threading.active_count() == before


def test_a_build_that_ends_takes_the_first_pages_along(book, monkeypatch):
    root, plan = book
    monkeypatch.setenv("SLEEP", str(10 * LIMIT_SECONDS))
    for name in ("one", "two"):
        (root / f"{name}.json").touch()
    start = time.monotonic()
    with pytest.raises(KeyboardInterrupt), _first_chapters.shown(root, plan, LONG):
        called(root)
        raise KeyboardInterrupt
    assert time.monotonic() - start < LIMIT_SECONDS
