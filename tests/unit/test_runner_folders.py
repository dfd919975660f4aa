"""A folder that a command makes is there whole, whenever the command is killed, and whichever it is."""

import os
import signal
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
import test_teaching_assignments as assignments
import test_teaching_launch as launch
import toy_deck
import toy_site

from bookmaker.runner import folders, published
from bookmaker.teaching import _assignments, _grading, _launch, _quizzes, _slides, _student
from privhelpers import artifacts
from privhelpers.errors import InvalidParameter

repository = launch.repository
OLD, NEW = {"a": b"old", "b": b"old", "own": b"of a user"}, {"a": b"new", "b": b"new", "own": b"of a user"}
WHOLLY_OURS = ("assignments", "slides")


def held(folder):
    """Return the bytes of every file of a folder by its name."""
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def names(folder):
    return [path.name for path in folder.iterdir()]


def fill(folder, **files):
    folder.mkdir(parents=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)


def replace(folder, at=lambda moment: None):
    with folders.replacing(folder, "[ab]") as new:
        at("begun")
        (new / "a").write_bytes(b"new")
        at("half")
        (new / "b").write_bytes(b"new")
    at("over")


def killed(moment, call):
    """Call a function in a process that is killed at a moment."""
    if not (child := os.fork()):
        call(lambda now: now == moment and os.kill(os.getpid(), signal.SIGKILL))
        os._exit(0)
    return os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL


@pytest.mark.parametrize("moment", ["begun", "half", "exchanged", "over"])
def test_after_a_kill_the_old_or_the_new_folder_is_there(tmp_path, monkeypatch, moment):
    fill(place := tmp_path / "made", **OLD)
    exchange = folders._exchange

    def call(at):
        monkeypatch.setattr(folders, "_exchange", lambda *both: (exchange(*both), at("exchanged")))
        replace(place, at)

    assert killed(moment, call)
    assert held(place) == (OLD if moment in ("begun", "half") else NEW)
    replace(place)
    assert held(place) == NEW and names(tmp_path) == ["made"], "what the killed one left is gone"


def test_a_failure_leaves_what_was_there_and_a_first_folder_is_made(tmp_path):
    place = tmp_path / "deeper" / "made"
    replace(place)
    assert held(place) == {"a": b"new", "b": b"new"}
    with pytest.raises(ZeroDivisionError):
        replace(place, lambda moment: moment == "half" and 1 / 0)
    assert held(place) == {"a": b"new", "b": b"new"} and names(place.parent) == ["made"]


def test_a_system_that_exchanges_nothing_gets_the_new_folder_and_loses_none(tmp_path, monkeypatch):
    monkeypatch.setattr(folders.ctypes, "CDLL", lambda name: object())
    fill(place := tmp_path / "made", **OLD)
    replace(place)
    assert held(place) == NEW and names(tmp_path) == ["made"]
    fill(other := tmp_path / "other", **OLD)
    with pytest.raises(FileNotFoundError):
        folders._exchange(tmp_path / "none", other)
    assert held(other) == OLD


def test_a_link_or_a_file_in_its_place_is_refused(tmp_path):
    fill(tmp_path / "elsewhere", **OLD)
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "file").touch()
    for name in ("link", "file"):
        with pytest.raises(InvalidParameter, match=f"^{name}: a link, a file or .* move it away"):
            replace(tmp_path / name)
    assert held(tmp_path / "elsewhere") == OLD


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    return toy_site.build(tmp_path_factory.mktemp("folders") / "book")


def command(name, tmp_path, monkeypatch, request):
    """Return a command of `bookmaker.teaching`, and the folder that it makes."""
    folder = tmp_path / "build" / name
    if name in ("student", "quizzes"):
        book = request.getfixturevalue("book")
        jobs = toy_site.jobs(book)
        if name == "quizzes":
            return lambda: _quizzes.write(book, jobs, folder), folder
        return lambda: _student.write_copies(book, jobs), book / "runs/toy/student/notebooks"
    if name == "launch":
        root = request.getfixturevalue("repository")
        return lambda: _launch.write_copies(root, folder), folder
    if name == "slides":
        section = toy_deck.section("One", toy_deck.cell("draw()", toy_deck.FIGURE))
        toy_deck.site(tmp_path / "_build" / "html", toy_deck.page(section))
        parts = {"parts": [{"caption": "Part", "chapters": [{"file": "notebooks/toy"}]}]}
        monkeypatch.setattr(published, "finished", lambda *given, solutions: tmp_path)
        monkeypatch.setattr(_slides, "contents", lambda *given: parts)
        monkeypatch.setattr(_slides, "machine_strings", lambda root: [])
        return lambda: _slides.write(tmp_path, [SimpleNamespace(profile="toy")]), tmp_path / "runs/toy/slides"
    monkeypatch.setattr(_assignments, "read", lambda root: [assignments.toy()])
    if name == "assignments":
        return lambda: _assignments.release(tmp_path, folder), folder
    (tmp_path / "in" / "s1" / "toy").mkdir(parents=True)
    monkeypatch.setattr(_grading, "Sandbox", nullcontext)
    monkeypatch.setattr(
        _grading, "grade", lambda one, at, student, box: _grading.Graded(student, "toy", (), 0)
    )
    return lambda: _grading.write(tmp_path, str(tmp_path / "in"), folder), folder


@pytest.mark.parametrize("name", ["student", "quizzes", "launch", "slides", "assignments", "grade"])
def test_every_command_for_teaching_exchanges_its_folder(tmp_path, monkeypatch, request, name):
    make, folder = command(name, tmp_path, monkeypatch, request)
    make()
    fresh = set(held(folder))
    for path in fresh:
        (folder / path).write_bytes(b"old")
    (folder / "own.txt").write_bytes(b"of a user")
    old, during = held(folder), []
    monkeypatch.setattr(artifacts.os, "fsync", lambda descriptor: during.append(held(folder)))
    make()
    assert during and all(one == old for one in during), "no file is written where the old ones lie"
    own, new = {} if name in WHOLLY_OURS else {"own.txt": b"of a user"}, held(folder)
    assert set(new) == fresh | set(own) and own.items() <= new.items() and b"old" not in new.values()
    assert not list(folder.parent.glob(".part-*"))
