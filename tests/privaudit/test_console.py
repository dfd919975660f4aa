"""Every command by hand: whatever a terminal can show, it ends with its words and no traceback."""

import errno
import io
import os
import sys

import pytest

from bookmaker.runner import build
from bookmaker.teaching import __main__ as teaching
from bookmaker.teaching import _launch
from privaudit import console
from privhelpers.artifacts import repository_root, write_atomic
from privhelpers.errors import ArtifactUnavailable, MissingArtifact, RunFailed


def test_what_a_terminal_lacks_is_printed_by_its_number(tmp_path, monkeypatch):
    monkeypatch.setattr(_launch, "write_copies", lambda root, folder: [root / "ε" / "chapter"])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    monkeypatch.setenv("PYTHONINSPECT", "1")
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    assert teaching.main(["launch"]) == 0
    stream.flush()
    assert rb"\u03b5" in stream.buffer.getvalue()
    assert "PYTHONIOENCODING" not in os.environ, "what a command starts may print every character, too"
    assert "PYTHONINSPECT" not in os.environ, "and ends with its own exit code"


def refusal(capsys, error):
    """Return what a command prints that ends with an error."""

    def command():
        raise error

    assert console.guarded(command) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate"),
        RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("CUDA error: out of memory"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: not enough memory: you tried to get 2 bytes"),
        RuntimeError("Out Of Memory"),
        RuntimeError("std::bad_alloc"),
        OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
    ],
)
def test_memory_that_runs_out_ends_a_command_with_one_line(capsys, error):
    def command():
        raise error

    assert console.guarded(command) == 1
    told = capsys.readouterr().err
    assert told.startswith("failed: memory ran out; ") and told.count("\n") == 1


def test_another_error_keeps_its_traceback():
    def command():
        raise RuntimeError("shapes differ")

    with pytest.raises(RuntimeError, match="shapes differ"):
        console.guarded(command)


def test_builds_that_name_their_profiles_in_another_order_do_not_refuse_each_other(tmp_path):
    """One that finds the first of them held has taken none that the other one still wants."""
    with build.alone(tmp_path, ["first"]):
        for names in (["second", "first"], ["first", "second"]):
            with pytest.raises(RunFailed, match="profile first is in use"), build.alone(tmp_path, names):
                raise AssertionError
            assert not (tmp_path / "runs" / "second").exists()


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC, errno.ENOENT, errno.EISDIR])
def test_what_the_system_refuses_is_told_by_its_place_with_a_cure(capsys, monkeypatch, number):
    said, root = os.strerror(number), repository_root()
    told = f"refused: runs/toy: {said}; {console.CURES.get(number, console.CURE)}\n"
    assert refusal(capsys, OSError(number, said, str(root / "runs" / "toy"))) == told
    assert refusal(capsys, OSError(number, said, "runs/toy")) == told
    assert refusal(capsys, OSError(number, said, "/elsewhere/a\nb")) == told.replace("runs/toy", "a b")

    def nowhere(start=None):
        raise MissingArtifact("not inside a copy of the book")

    monkeypatch.setattr(console, "repository_root", nowhere)  # as where the package is installed
    assert refusal(capsys, OSError(number, said, "/elsewhere/a")) == told.replace("runs/toy", "a")


def test_a_file_that_cannot_be_written_is_told_without_a_number(capsys, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ArtifactUnavailable) as refused:
        write_atomic(tmp_path / "a.bin", b"x")
    told = f"refused: a.bin: {os.strerror(errno.ENOSPC)}; make room\n"
    assert refusal(capsys, refused.value) == told
    assert refusal(capsys, OSError("of no number")) == "refused: of no number\n"
