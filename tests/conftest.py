"""Shared by all tests; its place puts `tests/` on the import path, where the toys lie."""

import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from privhelpers import browser

ROOT = Path(__file__).parents[1]
LIMIT_SECONDS = 900


@dataclass(frozen=True)
class SmokeSite:
    """The smoke profile, run from nothing in a copy of the repository.

    Attributes:
        root: the copy.
        html: folder of the built site.
        seconds: time of the whole command.
        output: what it printed.
    """

    root: Path
    html: Path
    seconds: float
    output: str


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


@pytest.fixture(scope="session")
def smoke_site(tmp_path_factory: pytest.TempPathFactory) -> SmokeSite:
    """Run the whole smoke profile once for all tests that look at what it leaves."""
    root = copy_repository(tmp_path_factory.mktemp("smoke") / "book")
    command = [sys.executable, "-m", "privhelpers.runner", "book", "--profile", "smoke", "--cores", "2"]
    environment = {**os.environ, "PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"}
    clock = time.monotonic()
    done = subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, timeout=LIMIT_SECONDS
    )
    output = done.stdout + done.stderr
    if done.returncode:
        pytest.fail(f"the smoke profile ended with exit code {done.returncode}:\n{output[-4000:]}")
    html = root / "runs" / "smoke" / "site" / "_build" / "html"
    return SmokeSite(root, html, time.monotonic() - clock, output)


@pytest.fixture(scope="module")
def chromium():
    """Yield a headless Chromium; its absence is a failure, since an unseen site counts as broken."""
    path = browser.require_chromium("looks at the site")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=browser.arguments())
        yield opened
        opened.close()
