"""Shared by all tests; its place puts `tests/` on the import path, where the toys lie."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import hypothesis
import pytest

from privhelpers import browser

ROOT = Path(__file__).parents[1]
UNIT = Path(__file__).with_name("unit")
LIMIT_SECONDS = 900
# Toys gain nothing from a second thread, and two threads that wait for each other beside the smoke
# profile take twice the time. Set before torch is imported; runs of the chain set their own number.
os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"
# No test fails because the machine is busy: Hypothesis' limit of 200 ms an example is a timing.
hypothesis.settings.register_profile("book", deadline=None)
hypothesis.settings.load_profile("book")


@dataclass(frozen=True)
class SmokeSite:
    """The smoke profile, run from nothing in a copy of the repository.

    Attributes:
        root: the copy.
        html: folder of the built site.
    """

    root: Path
    html: Path


def copy_repository(place: Path) -> Path:
    """Copy the files that git tracks, or would track, to `place`: no environment, no earlier runs."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    for name in filter(None, listing.stdout.split("\0")):
        if (ROOT / name).is_file():
            (place / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, place / name)
    return place


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Look at the smoke profile last, and let it run beside the unit tests, which leave a core idle."""
    items.sort(key=lambda item: "smoke_site" in getattr(item, "fixturenames", ()))
    first = next((item for item in items if item.path.is_relative_to(UNIT)), None)
    if first is not None and "smoke_site" in items[-1].fixturenames:
        first.fixturenames.insert(0, "smoke_build")


@pytest.fixture(scope="session")
def smoke_build(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path, subprocess.Popen]]:
    """Start the smoke profile from nothing; yield where, what it prints, and the process."""
    root = copy_repository(tmp_path_factory.mktemp("smoke") / "book")
    command = [sys.executable, "-m", "bookmaker.runner", "book", "--profile", "smoke", "--cores", "2"]
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    log = root.with_name("book.log")
    with open(log, "w", encoding="utf-8") as words:
        build = subprocess.Popen(command, cwd=root, env=environment, stdout=words, stderr=subprocess.STDOUT)
        yield root, log, build
        build.terminate()
        build.wait()


@pytest.fixture(scope="session")
def smoke_site(smoke_build) -> SmokeSite:
    """Wait for the smoke profile, run once for all tests that look at what it leaves."""
    root, log, build = smoke_build
    if code := build.wait(timeout=LIMIT_SECONDS):
        said = log.read_text(encoding="utf-8")[-4000:]
        pytest.fail(f"the smoke profile ended with exit code {code}:\n{said}")
    return SmokeSite(root, root / "runs" / "smoke" / "site" / "_build" / "html")


@pytest.fixture(scope="module")
def chromium():
    """Yield a headless Chromium; its absence is a failure, since an unseen site counts as broken."""
    path = browser.require_chromium("looks at the site")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=browser._arguments())
        yield opened
        opened.close()
