"""A module that changed is never run from the byte code of before, whatever its time and size say."""

import os
import py_compile
from importlib.machinery import SourceFileLoader, SourcelessFileLoader

import pytest

from bookmaker.runner import _bytecode, _cli


@pytest.fixture
def module(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.dont_write_bytecode", False)
    (tmp_path / "privhelpers").mkdir()
    path = tmp_path / "privhelpers" / "one.py"
    write(path, 1)
    py_compile.compile(str(path), invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP)
    write(path, 2)
    return path


def write(path, value):
    path.write_text(f"VALUE = {value}\n")
    os.utime(path, (10**9, 10**9))


def value(path):
    names = {}
    exec(SourceFileLoader("one", str(path)).get_code("one"), names)
    return names["VALUE"]


def test_byte_code_is_compared_by_content_from_then_on(module, tmp_path):
    assert value(module) == 1, "so Python does by itself"
    _bytecode.trust_contents(tmp_path)
    assert value(module) == 2
    for number in (3, 4):  # Python keeps it anew, and checks that again
        write(module, number)
        assert value(module) == number


@pytest.mark.parametrize("level", [1, 2])
def test_byte_code_without_assertions_stays_so(module, tmp_path, level):
    module.write_text("VALUE = __debug__\n")
    mode = py_compile.PycInvalidationMode.TIMESTAMP
    kept = py_compile.compile(str(module), optimize=level, invalidation_mode=mode)
    _bytecode.trust_contents(tmp_path)
    names = {}
    exec(SourcelessFileLoader("one", kept).get_code("one"), names)
    assert names["VALUE"] is False


def test_an_audit_compares_it_before_it_imports_what_audits(module, tmp_path, monkeypatch):
    run = []
    monkeypatch.setattr(_cli, "repository_root", lambda: tmp_path)
    monkeypatch.setattr(_cli.processes, "die_with_parent", lambda **_: None)
    monkeypatch.setattr(_cli.cli, "read_options", lambda given: given)
    monkeypatch.setattr(_cli.cli, "run", lambda *_: run.append(value(module)))
    assert _cli.main(["audit"]) == 0 and run == [2]


def test_where_python_may_not_keep_byte_code_none_stays(module, tmp_path, monkeypatch):
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    _bytecode.trust_contents(tmp_path)
    assert value(module) == 2 and not list(tmp_path.rglob("*.pyc"))


def test_a_module_that_is_no_python_has_none(module, tmp_path):
    module.write_text("def broken(:\n")
    _bytecode.trust_contents(tmp_path)
    assert not list(tmp_path.rglob("*.pyc"))
