"""Temporary folders: of this process while it lives, swept away by the next when it was killed."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from unittest import mock

import pytest

from bookmaker.runner import _execute, _scratch, _warm

ROOT = Path(__file__).parents[2]
KILLED = """
import os, signal
from bookmaker.runner import _scratch
with _scratch.scratch() as folder, _scratch.scratch() as inner:
    (inner / "key.json").write_text("secret")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return a folder that is the temporary directory."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_a_folder_is_the_temporary_one_and_gone_afterwards(place):
    with _scratch.scratch() as outer:
        assert outer.parent == place and os.environ["TMPDIR"] == tempfile.gettempdir() == str(outer)
        with _scratch.scratch() as inner:
            assert inner.parent == outer
        assert tempfile.gettempdir() == str(outer) and not inner.exists()
    assert os.environ["TMPDIR"] == tempfile.gettempdir() == str(place)
    assert list(place.iterdir()) == []


def test_sockets_lie_where_their_paths_are_short_enough(tmp_path, monkeypatch):
    deep = tmp_path / ("d" * 90)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    with mock.patch.dict(os.environ, {"TMPDIR": str(deep)}):
        with _execute._prepared(ROOT, 1) as (folder, sockets):
            assert folder.parent == deep and sockets.is_dir() and os.environ["TMPDIR"] == str(folder)
            assert len(os.fsencode(sockets / "s-10")) <= _warm.LONGEST
        assert not sockets.exists() and not list(deep.iterdir()) and os.environ["TMPDIR"] == str(deep)
        monkeypatch.setattr(tempfile, "tempdir", "/tmp")
        with _execute._prepared(ROOT, 1) as (folder, sockets):
            assert folder == sockets


def test_what_a_killed_process_left_is_swept_away(place):
    subprocess.run([sys.executable, "-c", KILLED], env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
    (stale,) = place.iterdir()
    with _scratch.scratch():
        assert not stale.exists()


def test_nothing_else_is_swept_away(place):
    precious, other = place / "precious", place / "other"
    for folder in (precious, other):
        folder.mkdir()
        (folder / "data").touch()
    (place / f"{_scratch.PREFIX}link").symlink_to(precious)
    (place / f"{_scratch.PREFIX}file").touch()
    with _scratch.scratch() as ours:
        _scratch.sweep(place)
        assert ours.is_dir(), "its process lives"
    assert (precious / "data").exists() and (other / "data").exists()
    assert (place / f"{_scratch.PREFIX}file").exists()


def test_a_folder_of_another_user_is_left_alone(place, monkeypatch):
    foreign = place / f"{_scratch.PREFIX}foreign"
    foreign.mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: foreign.stat().st_uid + 1)
    _scratch.sweep(place)
    assert foreign.is_dir()


def test_a_process_that_ends_at_once_removes_its_own_and_those_of_a_dead_build(place, monkeypatch):
    build = place / f"{_scratch.PREFIX}build"
    build.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(build))
    with _scratch.scratch() as run:
        _scratch.leave()
        assert not run.exists() and not build.exists()
