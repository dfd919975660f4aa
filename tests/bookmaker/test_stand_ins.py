"""What no command can work with is refused first: a file in place of a module, a path that is not UTF-8."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from patience import LIMIT_SECONDS
from toy_site import ROOT


def started(copy, *command, **variables):
    """Return the exit code and the messages of Python in a copy of the book."""
    given = {"cwd": copy, "env": os.environ | variables, "timeout": LIMIT_SECONDS}
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, **given)
    return done.returncode, done.stderr


@pytest.fixture
def copy(tmp_path):
    rooms = ["runner", "site", "teaching"]
    shutil.copytree(ROOT / "bookmaker", tmp_path / "bookmaker", ignore=lambda *_: rooms)
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "_toc.yml").touch()
    return tmp_path


@pytest.mark.parametrize("name", ["json.py", "random/__init__.py", "numpy.py", "notebooks/privhelpers.py"])
def test_a_file_in_place_of_a_module_is_refused(copy, name):
    (copy / name).parent.mkdir(exist_ok=True)
    (copy / name).write_text("raise SystemExit('this ran')")
    for command in (("-I", "bookmaker/__init__.py"), ("-c", "import bookmaker")):
        code, message = started(copy, *command)
        assert code == 2 and message.startswith(f"refused: {name} ") and message.count("\n") == 1


def test_other_files_are_left_alone(copy):
    for name in ("own.py", "json", "random.txt", "notebooks/own.py"):
        (copy / name).touch()
    copy = copy.rename(copy.with_name("épsilon ε 日"))
    assert started(copy, "-I", "bookmaker/__init__.py") == started(copy, "-c", "import bookmaker") == (0, "")
    there = ("-c", "import sys; sys.path.append('..'); import bookmaker")
    assert started(copy / "notebooks", *there) == (0, ""), "a module's own folder"


@pytest.mark.parametrize("name", ["TMPDIR", "this copy"])
def test_a_path_that_is_not_utf8_is_refused(copy, name):
    """Kernels write down where they are, in UTF-8: a build there never ended."""
    place, variables = os.fsdecode(os.fsencode(copy) + b"\xff"), {}
    if name == "this copy":
        copy = copy.rename(place)
    else:
        Path(place).mkdir()
        variables = {name: place}
    code, message = started(copy, "-c", "import bookmaker", **variables)
    assert code == 2 and message.startswith(f"refused: {name} ") and message.count("\n") == 1
