"""The built site in a real browser: drawn whole, silent, and asking nobody else for anything."""

import functools
import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytestmark = pytest.mark.browser
MISSING = "no Chromium on this machine, so nobody has seen the site: `apt-get install chromium`, then again"
NAMES = ("chromium", "chromium-browser", "google-chrome")
DRAWN = "() => window.MathJax && MathJax.startup ? MathJax.startup.promise.then(() => true) : true"
FORMULAS = """() => [...document.querySelectorAll('.math')]
    .filter(e => !e.querySelector('mjx-container')).map(e => e.textContent.slice(0, 80))"""
PICTURES = """() => [...document.querySelectorAll('article img')]
    .filter(e => !(e.complete && e.naturalWidth > 0 && e.alt.trim())).map(e => e.src)"""
STRAY = "() => [...document.querySelectorAll('.cell_output mjx-container')].length"
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 900}


@dataclass
class Visit:
    """What a browser met on one page."""

    errors: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)
    formulas: int = 0
    pictures: int = 0
    undrawn: list[str] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    stray: int = 0
    width: int = 0


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(smoke_site) -> Iterator[tuple[Path, str]]:
    """Serve the site on this machine; yield its folder and its address."""
    with serve(smoke_site.html) as found:
        yield found


class serve:
    """A web server for one folder, on a free port of the loopback device."""

    def __init__(self, html: Path) -> None:
        self.html = html

    def __enter__(self) -> tuple[Path, str]:
        handler = functools.partial(_Quiet, directory=str(self.html))
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self.html, f"http://127.0.0.1:{self.server.server_port}"

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture(scope="module")
def chromium():
    """Yield a headless Chromium; its absence is a failure, since an unseen site counts as broken."""
    path = next((found for name in NAMES if (found := shutil.which(name))), None)
    if path is None:
        pytest.fail(MISSING)
    from playwright.sync_api import sync_playwright

    options = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=options)
        yield browser
        browser.close()


def visit(page, url: str, address: str) -> Visit:
    """Open one page, wait until it is drawn, and note what happened."""
    met = Visit()

    def request(asked) -> None:
        if not asked.url.startswith((address, "data:", "blob:")):
            met.elsewhere.append(asked.url)

    listeners = {
        "request": request,
        "pageerror": lambda error: met.errors.append(str(error)),
        "console": lambda m: met.errors.append(m.text) if m.type in ("error", "warning") else None,
        "requestfailed": lambda asked: met.failed.append(asked.url),
        "response": lambda answer: met.failed.append(answer.url) if answer.status >= 400 else None,
    }
    for event, listener in listeners.items():
        page.on(event, listener)
    page.goto(url, wait_until="networkidle")
    page.evaluate(DRAWN)
    met.formulas = page.locator(".math").count()
    met.pictures = page.locator("article img").count()
    met.undrawn, met.unseen, met.stray = (page.evaluate(js) for js in (FORMULAS, PICTURES, STRAY))
    met.width = page.evaluate("() => document.documentElement.scrollWidth")
    for event, listener in listeners.items():
        page.remove_listener(event, listener)
    return met


def tour(browser, html: Path, address: str, size: dict[str, int]) -> dict[str, Visit]:
    """Visit every page of a site."""
    context = browser.new_context(viewport=size)
    page = context.new_page()
    found = {}
    for path in sorted(html.rglob("*.html")):
        if "_static" not in path.parts:
            name = path.relative_to(html).as_posix()
            found[name] = visit(page, f"{address}/{name}", address)
    context.close()
    return found


@pytest.fixture(scope="module")
def visits(chromium, site) -> dict[str, Visit]:
    """Every page at the width of a desk."""
    return tour(chromium, *site, DESK)


def test_every_run_has_a_page(visits, smoke_site):
    executed = sorted((smoke_site.root / "runs" / "smoke" / "notebooks").rglob("*.ipynb"))
    pages = [name for name in visits if name.startswith(("notebooks/", "runs/"))]
    assert len(executed) > 8
    assert len(pages) == len(executed)


def test_no_page_complains(visits):
    assert {name: met.errors for name, met in visits.items() if met.errors} == {}


def test_nothing_is_missing_and_nothing_comes_from_elsewhere(visits):
    assert {name: met.failed for name, met in visits.items() if met.failed} == {}
    assert {name: met.elsewhere for name, met in visits.items() if met.elsewhere} == {}


def test_formulas_are_drawn_and_outputs_are_left_alone(visits):
    assert sum(met.formulas for met in visits.values()) > 0
    assert {name: met.undrawn for name, met in visits.items() if met.undrawn} == {}
    assert {name: met.stray for name, met in visits.items() if met.stray} == {}


def test_pictures_are_there_and_described(visits):
    assert sum(met.pictures for met in visits.values()) > 0
    assert {name: met.unseen for name, met in visits.items() if met.unseen} == {}


def test_search_finds_exposure(chromium, site):
    page = chromium.new_page()
    page.goto(f"{site[1]}/search.html?q=exposure")
    results = page.locator("#search-results li a")
    results.first.wait_for(timeout=20_000)
    targets = [link.get_attribute("href") or "" for link in results.all()]
    page.close()
    assert any("glossary" in target for target in targets), targets


def test_pages_fit_a_phone(chromium, site):
    wide = {
        name: met.width for name, met in tour(chromium, *site, PHONE).items() if met.width > PHONE["width"]
    }
    assert wide == {}
