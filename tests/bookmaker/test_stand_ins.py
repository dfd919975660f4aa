"""What no command can work with is refused first: a file in place of a module, a place that is no text."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from patience import LIMIT_SECONDS

ROOT = Path(__file__).parents[2]


def started(copy, *command, **variables):
    """Return the exit code and the messages of Python in a copy of the book."""
    given = {"cwd": copy, "env": os.environ | variables, "timeout": LIMIT_SECONDS}
    done = subprocess.run([sys.executable, *command], capture_output=True, text=True, **given)
    return done.returncode, done.stderr


@pytest.fixture
def copy(tmp_path):
    shutil.copytree(
        ROOT / "bookmaker", tmp_path / "bookmaker", ignore=lambda *_: ["runner", "site", "teaching"]
    )
    (tmp_path / "notebooks").mkdir()
    (tmp_path / "_toc.yml").touch()
    return tmp_path


@pytest.mark.parametrize(
    "name",
    [
        *("json.py", "types.py", "random/__init__.py", "numpy.py", "notebooks/secrets.py"),
        "notebooks/privhelpers.py",
    ],
)
def test_a_file_that_stands_in_for_a_module_is_refused(copy, name):
    (copy / name).parent.mkdir(exist_ok=True)
    (copy / name).write_text("raise SystemExit('this ran')")
    told = (2, f"refused: {name} stands in for another module of that name: rename it\n")
    assert started(copy, "-I", "bookmaker/__init__.py") == told, "as make does first"
    if name != "types.py":  # which a start by hand imports before it looks at any of our files
        assert started(copy, "-c", "import bookmaker") == told


def test_other_files_are_no_stand_ins(copy):
    for name in ("own.py", "json", "random.txt", "notebooks/own.py"):
        (copy / name).touch()
    (copy / "csv").mkdir()
    assert started(copy, "-I", "bookmaker/__init__.py") == started(copy, "-c", "import bookmaker") == (0, "")
    there = ("-c", "import sys; sys.path.append('..'); import bookmaker")
    assert started(copy / "notebooks", *there) == (0, ""), "of a module's own folder"


@pytest.mark.parametrize("name", ["TMPDIR", "TEMP", "TMP", "this copy"])
def test_a_place_that_is_no_text_is_refused(copy, name):
    """Kernels write down where they are, in UTF-8: a build there never ended."""
    place, variables = Path(os.fsdecode(os.fsencode(copy) + b"\xff")), {}
    if name == "this copy":
        copy.rename(place)
        copy = place
    else:
        place.mkdir()
        variables = {name: str(place)}
    for command in (("-I", "bookmaker/__init__.py"), ("-c", "import bookmaker")):
        code, message = started(copy, *command, **variables)
        assert code == 2 and message.count("\n") == 1
        assert message.startswith(f"refused: {name} lies in '") and r"\udcff', which is no text" in message


def test_letters_of_any_language_are_text(copy):
    copy = copy.rename(copy.with_name("épsilon ε 日"))
    assert started(copy, "-c", "import bookmaker", TMPDIR=str(copy)) == (0, "")


def test_a_missing_folder_is_left_to_the_command_that_needs_it(copy):
    (copy / "notebooks").rmdir()
    assert started(copy, "-I", "bookmaker/__init__.py") == started(copy, "-c", "import bookmaker") == (0, "")


def test_make_asks_before_it_starts_anything(copy):
    shutil.copy2(ROOT / "Makefile", copy)
    (copy / "json.py").write_text("raise SystemExit('this ran')")
    for name in ("requirements.txt", "requirements.lock", "requirements-torch.lock", "venv/.stamp"):
        (copy / name).parent.mkdir(exist_ok=True)
        (copy / name).touch()
    done = subprocess.run(
        ["make", "VENV=venv", f"PYTHON={sys.executable}", "lab"], cwd=copy, capture_output=True
    )
    assert (
        done.returncode == 2 and done.stderr.startswith(b"refused: json.py stands in for") and not done.stdout
    )
