"""What a terminal shows of a command: its words, whatever happens, and no traceback of a known failure."""

import errno
import io
import os
import sys

import pytest

from privaudit import console
from privhelpers.artifacts import repository_root, write_atomic
from privhelpers.errors import ArtifactUnavailable, BadRecords, MissingArtifact, RunFailed


def test_what_a_terminal_lacks_is_printed_by_its_number(monkeypatch):
    for name in ("PYTHONIOENCODING", "PYTHONINSPECT"):
        monkeypatch.setenv(name, "1")
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stdout", stream)
    assert console.guarded(lambda: print("ε") or 0) == 0
    stream.flush()
    assert rb"\u03b5" in stream.buffer.getvalue()
    # What a command starts may print every character, too, and ends with its own exit code.
    assert not {"PYTHONIOENCODING", "PYTHONINSPECT"} & set(os.environ)


def ends(capsys, error, code):
    """Return what a command prints that ends with an error, and check its exit code."""

    def command():
        raise error

    assert console.guarded(command) == code
    return capsys.readouterr().err


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate"),
        RuntimeError("[enforce fail] DefaultCPUAllocator: not enough memory: you tried to get 2 bytes"),
        RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"),
        RuntimeError("std::bad_alloc"),
        OSError(errno.ENOMEM, os.strerror(errno.ENOMEM)),
    ],
)
def test_memory_that_runs_out_ends_a_command_with_one_line(capsys, error):
    told = ends(capsys, error, 1)
    assert told.startswith("failed: memory ran out; ") and told.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (KeyboardInterrupt(), 130, ""),
        (RunFailed("no room"), 1, "failed: no room\n"),
        (BadRecords("m.jsonl, line 1: broken"), 2, "refused: m.jsonl, line 1: broken\n"),
    ],
)
def test_each_end_has_its_exit_code(capsys, error, code, told):
    assert ends(capsys, error, code) == told


def test_another_error_keeps_its_traceback(capsys):
    with pytest.raises(RuntimeError, match="shapes differ"):
        ends(capsys, RuntimeError("shapes differ"), 1)


@pytest.mark.parametrize("number", [errno.EROFS, errno.EACCES, errno.ENOSPC, errno.ENOENT, errno.EISDIR])
def test_what_the_system_refuses_is_told_by_its_place_with_a_cure(capsys, monkeypatch, number):
    said, root = os.strerror(number), repository_root()
    told = f"refused: runs/toy: {said}; {console.CURES.get(number, console.CURE)}\n"
    for place in (str(root / "runs" / "toy"), "runs/toy"):
        assert ends(capsys, OSError(number, said, place), 2) == told
    assert ends(capsys, OSError(number, said, "/elsewhere/a\nb"), 2) == told.replace("runs/toy", "a b")

    def nowhere(start=None):
        raise MissingArtifact("not inside a copy of the book")

    monkeypatch.setattr(console, "repository_root", nowhere)  # as where the package is installed
    assert ends(capsys, OSError(number, said, "/elsewhere/a"), 2) == told.replace("runs/toy", "a")


def test_a_file_that_cannot_be_written_is_told_without_a_number(capsys, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ArtifactUnavailable) as refused:
        write_atomic(tmp_path / "a.bin", b"x")
    assert ends(capsys, refused.value, 2) == f"refused: a.bin: {os.strerror(errno.ENOSPC)}; make room\n"
    assert ends(capsys, OSError("of no number"), 2) == "refused: of no number\n"
