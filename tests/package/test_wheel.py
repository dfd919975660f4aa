"""The wheel, installed by itself and used far from the book: all that the command reads lies in it."""

import json
import os
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import jsonschema
import pytest
import toy_audit as toy
from conftest import copy_repository
from patience import LIMIT_SECONDS

ROOT = Path(__file__).parents[2]
PACKAGES = ("privhelpers", "privaudit", "bookmaker")


def pip(*arguments: object) -> None:
    """Run pip without an index: whatever it would fetch fails."""
    command = [sys.executable, "-m", "pip", *map(str, arguments), "--quiet", "--no-deps", "--no-index"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    assert done.returncode == 0, done.stderr


@dataclass(frozen=True)
class Installed:
    """A wheel of this book, and where it was installed.

    Attributes:
        source: the files that it was built from.
        wheel: the file.
        folder: holds the packages, and the command in `bin`.
        elsewhere: a folder with files to audit.
    """

    source: Path
    wheel: Path
    folder: Path
    elsewhere: Path

    def run(self, *command: object) -> subprocess.CompletedProcess:
        """Run a command elsewhere, with these packages in front of any others."""
        given = {"capture_output": True, "text": True, "timeout": LIMIT_SECONDS, "cwd": self.elsewhere}
        environment = {**os.environ, "PYTHONPATH": str(self.folder)}
        return subprocess.run([sys.executable, *map(str, command)], env=environment, **given)

    def privai_leak(self, *arguments: object) -> subprocess.CompletedProcess:
        """Run the command as pip installed it."""
        return self.run(self.folder / "bin" / "privai-leak", *arguments)


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Installed:
    home = tmp_path_factory.mktemp("wheel")
    source = copy_repository(home / "book")
    pip("wheel", "--no-build-isolation", "--wheel-dir", home, source)
    (wheel,) = home.glob("*.whl")
    pip("install", "--no-compile", "--target", home / "installed", wheel)
    elsewhere = home / "elsewhere"
    elsewhere.mkdir()
    rows = {letter: toy.notes(letter, 50, seed=n) for n, letter in enumerate("mh")}
    for letter, notes in rows.items():
        toy.write(elsewhere / f"{letter}.jsonl", notes)
    toy.write(elsewhere / "s.jsonl", [{"text": row["text"]} for row in rows["m"]])
    return Installed(source, wheel, home / "installed", elsewhere)


def test_the_builder_of_the_image_is_sent_what_it_copies_and_nothing_else():
    lines = (ROOT / "Containerfile").read_text().splitlines()
    copied = {word for line in lines if line.startswith("COPY ") for word in line.split()[1:-1]}
    _, everything, *sent, caches = (ROOT / ".dockerignore").read_text().splitlines()
    assert (everything, caches) == ("*", "**/__pycache__")
    assert {line.removeprefix("!") for line in sent} == copied


@pytest.mark.nightly
def test_a_wheel_holds_every_file_of_both_packages_and_nothing_else(installed):
    with zipfile.ZipFile(installed.wheel) as wheel:
        held = {name for name in wheel.namelist() if ".dist-info/" not in name}
    files = [path for name in PACKAGES for path in (installed.source / name).rglob("*") if path.is_file()]
    kept = {str(path.relative_to(installed.source)) for path in files if path.suffix != ".pyc"}
    (page,) = held - kept
    assert len(kept) > 250 and held > kept and page.endswith(".data/data/share/man/man1/privai-leak.1")


@pytest.mark.nightly
def test_an_audit_far_from_the_book_is_whole_and_its_bundle_holds(installed):
    """What the report is made of lies in the wheel: words, page, style, schema, bundle."""
    which = installed.run("-c", "import bookmaker, privhelpers as p; print(p.__file__, bookmaker.__file__)")
    assert all(Path(one).is_relative_to(installed.folder) for one in which.stdout.split())
    given = ("--records=m.jsonl", "--holdout=h.jsonl", "--synthetic=s.jsonl", "--effort=quick", "--pdf=no")
    done = installed.privai_leak("audit", *given, "--bundle=out.zip")
    assert done.returncode == 0 and "flagged: " in done.stderr, done.stderr
    folder = installed.elsewhere / "runs" / "audits" / "s"
    assert {path.name for path in folder.iterdir()} == {"report.html", "report.json", "report.schema.json"}
    facts = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    jsonschema.validate(facts, json.loads((folder / "report.schema.json").read_text(encoding="utf-8")))
    assert '<html lang="en">' in (folder / "report.html").read_text()
    done = installed.privai_leak("verify", "out.zip")
    assert done.returncode == 0 and "out.zip: holds: " in done.stdout, done.stderr


@pytest.mark.nightly
def test_the_demonstration_gives_both_verdicts_far_from_the_book(installed):
    done = installed.privai_leak("demo")
    assert done.returncode == 0, done.stderr
    assert "demo: flagged\n" in done.stdout and "demo-control: nothing found\n" in done.stdout
    assert {path.name for path in (installed.elsewhere / "runs" / "audits").iterdir()} >= {
        "demo",
        "demo-control",
    }
