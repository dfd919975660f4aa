"""A folder that a command makes is there whole, whenever the command is killed, and whichever it is."""

import errno
import os
import signal
import socket
import stat
from pathlib import Path
from types import SimpleNamespace

import pytest
import test_teaching_launch as launch
import toy_deck
import toy_site

from bookmaker.runner import folders, published
from bookmaker.teaching import _launch, _quizzes, _slides, _student
from privhelpers import artifacts
from privhelpers.errors import ArtifactUnavailable, InvalidParameter

repository = launch.repository
OLD, NEW = {"a": b"old", "b": b"old", "own": b"of a user"}, {"a": b"new", "b": b"new", "own": b"of a user"}
WHOLLY_OURS = ("slides",)


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


@pytest.fixture
def copy(tmp_path):
    """Return a folder that the refusals take for a copy of the book."""
    (tmp_path / "_toc.yml").touch()
    (tmp_path / "privhelpers").mkdir()
    return tmp_path


def refused(code, place=None):
    """Return a function that the system refuses, or `Path.rename` where it refuses a place alone."""
    rename = Path.rename

    def call(*given, **named):
        if place and given[0] != place:
            return rename(*given)
        raise OSError(code, os.strerror(code))

    return call


@pytest.fixture(params=["two steps", "an overlay"])
def no_exchange(request, monkeypatch, tmp_path):
    """Let the system exchange no two folders and, as an overlay, not rename the old one."""
    monkeypatch.setattr(folders.ctypes, "CDLL", lambda name: object())
    if request.param == "an overlay":
        monkeypatch.setattr(Path, "rename", refused(errno.EXDEV, tmp_path / "made"))


@pytest.mark.usefixtures("no_exchange")
def test_a_system_that_exchanges_nothing_gets_the_new_folder_and_loses_none(tmp_path):
    fill(place := tmp_path / "made", **OLD)
    replace(place)
    assert held(place) == NEW and names(tmp_path) == ["made"]
    fill(other := tmp_path / "other", **OLD)
    with pytest.raises(FileNotFoundError):
        folders._exchange(tmp_path / "none", other)
    assert held(other) == OLD


@pytest.mark.usefixtures("no_exchange")
def test_the_old_folder_is_put_back_after_a_kill_in_an_exchange(tmp_path, monkeypatch):
    fill(place := tmp_path / "made", **OLD)
    rename, unlink = Path.rename, os.unlink

    def call(at):
        def first(call):
            return lambda *given, **named: (call(*given, **named), at("gone"))

        monkeypatch.setattr(Path, "rename", first(rename))
        monkeypatch.setattr(folders.os, "unlink", first(unlink))
        replace(place)

    assert killed("gone", call)
    monkeypatch.setattr(Path, "rename", rename)
    assert held(place) != OLD, "it is gone, or a file of it"
    replace(tmp_path / "made-too")  # sweeps away nothing of another's
    with pytest.raises(ZeroDivisionError):
        replace(place, lambda moment: 1 / 0)
    assert held(place) == OLD and sorted(names(tmp_path)) == ["made", "made-too"]


def test_a_link_or_a_file_in_its_place_is_refused_before_the_work(copy):
    fill(copy / "elsewhere", **OLD)
    fill(build := copy / "build" / "grades")
    (build / "link").symlink_to(copy / "elsewhere")
    (build / "file").touch()
    for name, folder, made in (
        ("link", build / "link", ()),
        ("file", build / "file", ()),
        ("link", build, ("link/*", "*/b")),
    ):
        with (
            pytest.raises(InvalidParameter, match=f"^build/grades/{name}: a link, a file or .* move it away"),
            folders.replacing(folder, *made),
        ):
            pytest.fail("the work began")
    assert held(copy / "elsewhere") == OLD


def test_pipes_sockets_and_all_of_a_user_are_the_very_files_afterwards(copy, monkeypatch):
    fill(place := copy / "made", **OLD)
    fill(place / "sub", kept=b"of a user")
    (place / "link").symlink_to("nowhere")
    os.mkfifo(place / "pipe")
    monkeypatch.chdir(place)  # the name of a socket may have 100 characters
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("socket")
    own = ("own", "sub/kept", "link", "pipe", "socket")

    def files():
        return {name: (place / name).lstat().st_ino for name in own}

    before = files()
    replace(place)
    assert files() == before and (place / "link").readlink() == Path("nowhere")
    monkeypatch.setattr(folders.os, "link", refused(errno.EPERM))
    with pytest.raises(ArtifactUnavailable, match=r"^made/pipe: .* move it away$"):
        replace(place)
    assert files() == before
    for name in ("pipe", "socket"):
        (place / name).unlink()
    replace(place)
    assert held(place) == {**NEW, "sub/kept": b"of a user"} and (place / "link").is_symlink()


def test_a_folder_of_a_user_is_not_lost_to_a_file_of_that_name(copy):
    fill(copy / "made" / "a", own=b"of a user")
    refusal = pytest.raises(ArtifactUnavailable, match=r"^made/a: File exists; .* move it away$")
    with refusal, folders.replacing(copy / "made") as new:
        (new / "a").touch()
    assert held(copy / "made") == {"a/own": b"of a user"}


def test_what_a_user_may_not_write_to_is_removed_like_the_rest(tmp_path, monkeypatch):
    fill(sub := tmp_path / "made" / "sub", own=b"of a user")
    sub.chmod(0o555)
    remove, closed = folders.shutil.rmtree, []

    def watched(folder, **named):
        closed.extend(path for path in folder.rglob("*/") if not path.stat().st_mode & stat.S_IWUSR)
        remove(folder, **named)

    monkeypatch.setattr(folders.shutil, "rmtree", watched)
    exchange = folders._exchange

    def call(at):
        monkeypatch.setattr(folders, "_exchange", lambda *both: (exchange(*both), at("exchanged")))
        replace(tmp_path / "made", at)

    assert killed("exchanged", call) and len(names(tmp_path)) == 2
    replace(tmp_path / "made")
    assert closed == [] and names(tmp_path) == ["made"], "else they stay, unless root removes them"
    assert stat.S_IMODE(sub.stat().st_mode) == 0o555


def test_what_changes_meanwhile_counts_as_it_is_in_the_end(copy, monkeypatch):
    place = copy / "made"
    for change, expected in (
        (lambda: fill(place, **OLD), NEW),  # it appears
        (lambda: (place / "own").write_bytes(b"edited"), {**NEW, "own": b"edited"}),
        (lambda: folders.shutil.rmtree(place), {"a": b"new", "b": b"new"}),
    ):
        replace(place, lambda moment, change=change: moment == "half" and change())
        assert held(place) == expected
    (place / "own").touch()
    link = os.link
    monkeypatch.setattr(folders.os, "link", lambda path, *to, **named: (path.unlink(), link(path, *to)))
    replace(place)  # where a file goes at the very last
    assert held(place) == {"a": b"new", "b": b"new"}

    def a_link(moment):
        if moment == "half":
            place.rename(copy / "elsewhere")
            place.symlink_to("elsewhere")

    with pytest.raises(InvalidParameter, match=r"^made: a link"):
        replace(place, a_link)
    assert held(copy / "elsewhere") == {"a": b"new", "b": b"new"} and place.is_symlink()


def test_what_else_the_system_refuses_is_told_by_the_name_of_the_folder(copy, monkeypatch):
    fill(place := copy / "made", **OLD)
    monkeypatch.setattr(folders.ctypes, "CDLL", lambda name: object())
    monkeypatch.setattr(Path, "rename", refused(errno.EBUSY, place))
    with pytest.raises(ArtifactUnavailable, match=f"^made: {os.strerror(errno.EBUSY)}; "):
        replace(place)
    assert held(place) == OLD


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
            return lambda: _quizzes.write(book, jobs), book / "build/quizzes"
        return lambda: _student.write(book, jobs), book / "runs/toy/student/notebooks"
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


@pytest.mark.parametrize("name", ["student", "quizzes", "launch", "slides"])
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
