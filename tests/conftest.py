"""Shared by all tests; its place puts `tests/` on the import path, where the toys lie."""

import fcntl
import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest
from patience import LIMIT_SECONDS

from bookmaker.runner import fingerprint
from privaudit import console

ROOT = Path(__file__).parents[1]
# Files that read the smoke profile. The first begins it before all else; the others wait for it, so that
# they begin when most is done.
SMOKE_FILES = (
    *("tests/book/test_browser.py", "tests/book/test_quiz.py"),
    *("tests/nightly/test_decks.py", "tests/notebooks/test_chain.py"),
)
ROOMS = ("tests/privhelpers/", "tests/privaudit/", "tests/bookmaker/")
# Files that take longest, which no process shall begin when the others are about to end.
LONG_FILES = (
    *("tests/privaudit/test_audit_truth.py", "tests/privaudit/test_session.py"),
    *("tests/privaudit/test_audit_command.py", "tests/privaudit/test_loading.py"),
    *("tests/mutants/test_mutants.py", "tests/privhelpers/test_dpsgd_resume.py"),
)
collect_ignore = ["assignments"]  # cells of notebooks: no tests
# Toys gain nothing from a second thread, and two threads that wait for each other during the smoke
# profile take twice the time. Set before torch is imported; runs of the chain set their own number.
os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
# Options of the make that started the tests, such as JOBS=4, would override what tests give to their own.
for _name in [name for name in os.environ if name.startswith(("MAKE", "MFLAGS"))]:
    del os.environ[_name]
# No test fails because the machine is busy: Hypothesis' limit of 200 ms an example is a timing.
hypothesis.settings.register_profile("book", deadline=None)
hypothesis.settings.load_profile("book")


@dataclass(frozen=True)
class SmokeSite:
    """The smoke profile, run from nothing in a copy of the repository.

    Attributes:
        root: a copy of that folder, which no other process of the tests reads.
        html: folder of the built site in it.
        made_in: the folder in which it ran.
    """

    root: Path
    html: Path
    made_in: Path


def copy_repository(place: Path) -> Path:
    """Copy the files that git tracks, or would track, to `place`: no environment, no earlier runs."""
    listing = fingerprint.git(ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    for name in filter(None, listing.split("\0")):
        if (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place / name)
    return place


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the smoke profile, whose process is idle while its runs use both cores; short files end."""
    for item in items:
        if item.location[0].startswith("tests/nightly/"):
            item.add_marker("nightly")
    first, *later = SMOKE_FILES
    order = {file: place for place, file in enumerate((first, *LONG_FILES))}
    others = len(order)
    order |= dict.fromkeys(later, others + 1)
    for item in items:
        if "smoke_site" in getattr(item, "fixturenames", ()) and item.location[0] not in SMOKE_FILES:
            raise pytest.UsageError(f"{item.location[0]} looks at the smoke profile: name it in SMOKE_FILES")

    def place(item: pytest.Item) -> int:
        file = item.location[0]
        return order.get(file, others + 2 * file.startswith(ROOMS))

    items.sort(key=place)


def pytest_collection_finish() -> None:
    """Keep what was imported and collected out of every collection of garbage; libraries ask for some."""
    gc.collect()
    gc.freeze()


def _run_smoke(root: Path) -> str:
    """Run the smoke profile in a copy of the repository; return why it failed, or ""."""
    copy_repository(root)
    command = [sys.executable, "-m", "bookmaker", "book", "--profile", "smoke", "--cores", "2"]
    environment = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS
    )
    said = (done.stdout + done.stderr)[-4000:]
    return f"the smoke profile ended with exit code {done.returncode}:\n{said}" if done.returncode else ""


def _once(tmp_path_factory: pytest.TempPathFactory, name: str, make: Callable[[Path], str]) -> Path:
    """Return a folder that the first process to ask for it makes; `make` returns what went wrong, or ""."""
    place = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        place = place.parent
    made, ended = place / f"{name}-made" / "book", place / f"{name}-ended"
    with open(place / f"{name}-lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not ended.exists():
            ended.write_text(f"the {name} book did not end", encoding="utf-8")
            ended.write_text(make(made), encoding="utf-8")
    if wrong := ended.read_text(encoding="utf-8"):
        pytest.fail(wrong)
    return made


@pytest.fixture(scope="session")
def smoke_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmokeSite]:
    """Run the smoke profile from nothing, once for all processes of the tests; each reads its own copy."""
    made = _once(tmp_path_factory, "smoke", _run_smoke)
    root = tmp_path_factory.mktemp("smoke") / "book"
    shutil.copytree(made, root, symlinks=True)
    yield SmokeSite(root, root / "runs" / "smoke" / "site" / "_build" / "html", made)
    shutil.rmtree(root, ignore_errors=True)


def _build_toy(root: Path) -> str:
    import toy_site

    from bookmaker.site._build import build

    toy_site.build(root)
    build(root, toy_site.jobs(root))
    return ""


@pytest.fixture(scope="session")
def toy_book(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the site of a toy book, once for all tests that read it; others build their own."""
    return _once(tmp_path_factory, "toy", _build_toy)


class Patient:
    """A browser whose pages wait as long as a busy machine needs: no test fails by the clock."""

    def __init__(self, opened) -> None:
        self.opened = opened

    def _waiting(self, made):
        made.set_default_timeout(1000 * LIMIT_SECONDS)
        return made

    def new_page(self, **options):
        return self._waiting(self.opened.new_page(**options))

    def new_context(self, **options):
        return self._waiting(self.opened.new_context(**options))


@pytest.fixture(scope="module")
def chromium():
    """Yield a headless Chromium; its absence is a failure, since an unseen site counts as broken."""
    path = console.require_chromium("looks at the site")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=console.chromium_arguments())
        yield Patient(opened)
        opened.close()
