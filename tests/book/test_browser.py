"""The built site in a real browser: drawn whole, silent, and asking no one else for anything."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from browsing import (
    BARRIERS,
    DRAWN,
    FORMULAS,
    ON_PAPER,
    REACHED_BY_KEYS,
    STRUCTURE,
    WITHOUT_REPEATS,
    axe_core,
    serving,
)
from playwright import sync_api

from bookmaker.runner import chain
from bookmaker.site import _pdf

pytestmark = pytest.mark.browser
PICTURES = """() => [...document.querySelectorAll('article img')]
    .filter(e => !(e.complete && e.naturalWidth > 0 && e.alt.trim())).map(e => e.src)"""
STRAY = "() => [...document.querySelectorAll('.cell_output mjx-container')].length"
WIDEST = """() => Math.max(0, ...[...document.querySelectorAll(':is(figure, .cell_output) img')]
    .map(e => e.getBoundingClientRect().width))"""
PHONE = {"width": 360, "height": 780}
DESK = {"width": 1280, "height": 900}
# Pages on which axe-core judges contrast too, the most of its time: of every kind of element, one has it.
COLORED = {f"notebooks/{slug}.html" for slug in ("comparison", "your_model", "gradient_inversion")}
COLORED |= {"notebooks/renyi_accounting.html"}
COLORED |= {f"book/{name}.html" for name in ("intro", "glossary", "model_cards")}
FEW = {"book/intro.html", "notebooks/comparison.html"}  # visited before a commit: front page and a chapter


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
    phone_width: int = 0
    widest_picture: float = 0.0  # on a phone
    on_paper: list[str] = field(default_factory=list)
    weight: int = 0
    barriers: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def site(smoke_site) -> Iterator[tuple[Path, str]]:
    """Serve the site on this machine; yield its folder and its address."""
    with serving(smoke_site.html) as address:
        yield smoke_site.html, address


def barriers(page, name: str) -> list[str]:
    """Ask axe-core about an open page: its structure, and on some pages its colors in both themes."""
    page.evaluate(WITHOUT_REPEATS)
    with suppress(sync_api.TimeoutError):  # then axe-core names the box
        page.wait_for_function(REACHED_BY_KEYS, timeout=30_000)
    page.evaluate(axe_core())
    if name not in COLORED:
        return page.evaluate(BARRIERS, ["light", STRUCTURE])
    return [one for theme in ("light", "dark") for one in page.evaluate(BARRIERS, [theme, {}])]


def visit(page, url: str, address: str) -> Visit:
    """Open one page, wait until it is drawn, and note what happened."""
    met = Visit()

    def answered(answer) -> None:
        if answer.status >= 400:
            met.failed.append(answer.url)
        if "/mathjax/" not in answer.url:
            met.weight += int(answer.headers.get("content-length", 0))

    def request(asked) -> None:
        if not asked.url.startswith((address, "data:", "blob:")):
            met.elsewhere.append(asked.url)

    listeners = {
        "request": request,
        "pageerror": lambda error: met.errors.append(str(error)),
        "console": lambda m: met.errors.append(m.text) if m.type in ("error", "warning") else None,
        "requestfailed": lambda asked: met.failed.append(asked.url),
        "response": answered,
    }
    for event, listener in listeners.items():
        page.on(event, listener)
    page.goto(url, wait_until="networkidle")
    page.evaluate(DRAWN)
    met.formulas = page.locator(".math").count()
    met.pictures = page.locator("article img").count()
    met.undrawn, met.unseen, met.stray = (page.evaluate(js) for js in (FORMULAS, PICTURES, STRAY))
    page.set_viewport_size(PHONE)
    met.phone_width = page.evaluate("() => document.documentElement.scrollWidth")
    met.widest_picture = page.evaluate(WIDEST)
    page.set_viewport_size(_pdf.PAPER)
    page.emulate_media(media="print")
    met.on_paper = page.evaluate(ON_PAPER)
    page.emulate_media(media="screen")
    page.set_viewport_size(DESK)
    for event, listener in listeners.items():
        page.remove_listener(event, listener)
    return met


def leads_on(path: Path) -> bool:
    """Tell whether a page only leads on to another one, as the way in and the old addresses do."""
    return 'http-equiv="refresh"' in path.read_text(encoding="utf-8")[:1000]


@pytest.fixture(scope="module", params=["a few", pytest.param("all", marks=pytest.mark.nightly)])
def visits(request, chromium, site) -> dict[str, Visit]:
    """Pages at the widths of a desk and a phone, with what axe-core says of them in both themes."""
    html, address = site
    context = chromium.new_context(viewport=DESK)
    page = context.new_page()
    context.new_cdp_session(page).send("Network.setCacheDisabled", {"cacheDisabled": True})  # full weights
    visited = {}
    for path in sorted(html.rglob("*.html")):
        name = path.relative_to(html).as_posix()
        if request.param == "a few" and name not in FEW:
            continue
        if "_static" not in path.parts and not leads_on(path):
            visited[name] = visit(page, f"{address}/{name}", address)
            # A further run of a chapter has the chapter's elements, and so its barriers.
            if not name.startswith("runs/"):
                visited[name].barriers = barriers(page, name)
                # It took elements out: what the page's own scripts say of that must not reach the next visit.
                page.goto("about:blank")
    context.close()
    return visited


def test_every_run_has_a_page(smoke_site):
    executed = sorted((smoke_site.root / "runs" / "smoke" / "notebooks").rglob("*.ipynb"))
    pages = [path for folder in ("notebooks", "runs") for path in (smoke_site.html / folder).rglob("*.html")]
    pages = [path for path in pages if not leads_on(path)]
    assert len(executed) > 8
    assert len(pages) == len(executed)


def test_no_page_complains_lacks_anything_or_asks_another_host(visits):
    for what in ("errors", "failed", "elsewhere", "undrawn", "stray", "unseen", "barriers", "on_paper"):
        assert {name: getattr(met, what) for name, met in visits.items() if getattr(met, what)} == {}, what
    assert (
        sum(met.formulas for met in visits.values()) > 0 and sum(met.pictures for met in visits.values()) > 0
    )
    # The scripts of the pictures are 0.6 MB of it, which a browser keeps from page to page.
    assert {name: met.weight for name, met in visits.items() if not 300 < met.weight < 1_800_000} == {}


def test_every_table_can_be_scrolled_by_keys(site):
    pages = {path.name: path.read_text(encoding="utf-8") for path in site[0].rglob("*.html")}
    assert sum(text.count('aria-label="Table"') for text in pages.values()) > 100
    assert [name for name, text in pages.items() if re.search(r"<div>\s*<table", text)] == []


FIRST = """query => {
    history.replaceState(null, '', '?q=' + encodeURIComponent(query));  // where scorer.js reads it
    return Search._performSearch(...Search._parseQuery(query)).map(result => result[0]).reverse();
}"""
# What a reader would type, and the chapter that answers.
QUESTIONS = {
    "what is differential privacy": "differential_privacy",
    "how to choose epsilon": "private_utility",
    "Renyi accountant": "renyi_accounting",
    "clip gradients per sample": "private_training",
    "LoRA": "luck_and_size",
    "extract phone number": "extraction",
    "canary exposure": "memorization",
    "membership inference attack": "membership_inference",
    "likelihood ratio attack": "shadow_models",
    "Clopper-Pearson": "auditing",
    "confidence interval bootstrap": "uncertainty",
    "scrub names from notes": "scrubbing",
    "HIPAA safe harbor": "hipaa",
    "audit my own model": "your_model",
}


@pytest.fixture(scope="module")
def search(chromium, site) -> Callable[[str], list[str]]:
    """Ask the site's own search, as its page does; the answer is the chapters and pages, best first."""
    page = chromium.new_page()
    page.goto(f"{site[1]}/search.html")
    page.wait_for_function("() => Search.hasIndex()")
    return lambda query: list(dict.fromkeys(page.evaluate(FIRST, query)))


def test_search_finds_a_chapter_first_by_its_title(search, smoke_site):
    titles = {}
    for path in sorted((smoke_site.root / "notebooks").glob("*.ipynb")):
        first = "".join(json.loads(path.read_text(encoding="utf-8"))["cells"][0]["source"])
        titles[chain.slug_of(path.stem)] = re.search("^# (.+)$", first, re.MULTILINE)[1]
    assert len(titles) > 30
    first = {slug: search(title)[:1] for slug, title in titles.items()}
    assert {slug: pages for slug, pages in first.items() if pages != [f"notebooks/{slug}"]} == {}


@pytest.mark.parametrize("question", QUESTIONS)
def test_search_answers_a_question_among_the_first_three(search, question):
    assert f"notebooks/{QUESTIONS[question]}" in search(question)[:3]


def test_a_page_loads_the_scripts_of_its_pictures(chromium, site):
    page = chromium.new_page()
    page.goto(f"{site[1]}/notebooks/renyi_accounting.html")
    says = page.locator("[data-picture=epsilon] .says")
    before = says.text_content()
    page.fill("#epsilon-sigma", "0.5")
    assert says.text_content() != before
    page.close()
    assert "pictures/" not in (site[0] / "book" / "glossary.html").read_text(encoding="utf-8")


def test_pages_fit_a_phone(visits):
    widths = {name: met.phone_width for name, met in visits.items()}
    assert {name: width for name, width in widths.items() if width > PHONE["width"]} == {}


def test_a_picture_is_seen_whole_on_a_phone(visits):
    widths = {name: met.widest_picture for name, met in visits.items()}
    assert {name: width for name, width in widths.items() if width > PHONE["width"]} == {}


@pytest.mark.nightly
def test_a_keyboard_is_enough(chromium, site):
    page = chromium.new_page(viewport=DESK)
    page.goto(f"{site[1]}/notebooks/renyi_accounting.html")
    page.evaluate(DRAWN)
    page.keyboard.press("Tab")
    assert "Skip to main" in page.evaluate("() => document.activeElement.textContent")
    page.keyboard.press("Enter")
    page.wait_for_url("**#main-content")  # a loaded machine gets there later
    solution = page.locator(".solution.dropdown").first
    assert not solution.locator("p").last.is_visible()
    solution.locator(".toggle-button").focus()
    page.keyboard.press("Enter")
    assert solution.locator("p").last.is_visible()
    table = page.locator(".cell_output [role=group][tabindex='0']").first
    table.focus()
    assert table.evaluate("element => element === document.activeElement")
    page.keyboard.press("Control+k")
    page.keyboard.type("exposure")
    page.keyboard.press("Enter")
    page.wait_for_url("**/search.html?q=exposure")
    page.close()


@pytest.mark.nightly
def test_the_whole_report_opens_by_keyboard_and_is_read_in_the_dark(chromium, site):
    page = chromium.new_page(viewport=DESK, color_scheme="dark")
    asked = []
    page.goto(f"{site[1]}/notebooks/your_model.html")
    page.locator("article a", has_text="The whole report of this run").focus()
    page.on("request", lambda request: asked.append(request.url))
    page.keyboard.press("Enter")
    page.wait_for_url("**/reports/your_model.html")
    assert page.locator(".verdict dt").count() == 4
    assert [url for url in asked if not url.startswith("data:")] == [page.url]
    paper = page.evaluate("() => getComputedStyle(document.body).backgroundColor")
    assert max(map(int, re.findall(r"\d+", paper))) < 50
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.getAttribute('aria-label')") == "Areas by attack"
    page.evaluate(axe_core())
    assert page.evaluate(BARRIERS, ["dark", {}]) == []
    page.close()


@pytest.mark.nightly
def test_the_sheet_for_readers_has_no_barrier_and_asks_nobody(chromium, site):
    page = chromium.new_page(viewport=DESK, color_scheme="dark")
    asked = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(f"{site[1]}/reports/hipaa.html")
    assert asked == [page.url] and page.locator("tbody tr").count() > 1
    page.evaluate(axe_core())
    assert page.evaluate(BARRIERS, ["dark", {}]) == []
    page.close()
