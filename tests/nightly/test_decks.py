"""The slides of every chapter of the smoke profile in a real browser."""

from collections.abc import Iterator

import pytest
from browsing import (
    DRAWN,
    FORMULAS,
    OUTSIDE,
    SLIDE,
    serving,
)
from bs4 import BeautifulSoup, SoupStrainer

from bookmaker.runner import chain, plan
from bookmaker.teaching import _slides

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def decks(smoke_site) -> dict[str, BeautifulSoup]:
    """Return the slides of every chapter, as `python -m bookmaker slides` writes them."""
    made = _slides.write(smoke_site.root, plan.jobs(smoke_site.root, "smoke"))
    return {path.stem: BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser") for path in made}


def test_every_chapter_has_slides_with_all_its_figures_and_no_solution(decks, smoke_site):
    assert decks.keys() == set(chain.SLUGS)
    for slug, deck in decks.items():
        page = (smoke_site.html / "notebooks" / f"{slug}.html").read_text(encoding="utf-8")
        article = BeautifulSoup(page, "html.parser", parse_only=SoupStrainer("article")).article
        left_out = article.select(".tag_solution figure, .tag_skip-slide figure")
        pictures = {img["src"].removeprefix("../") for img in article.select("figure img")}
        pictures -= {one.img["src"].removeprefix("../") for one in left_out}
        assert {img["src"] for img in deck.select("section img")} == pictures, slug
        assert 8 <= len(deck.find_all("section")) <= 26, slug
        assert len(deck.find_all("section")) == len(deck.select("section > aside.notes")), slug
        assert all(one.get_text(strip=True) for one in deck.select("section > :is(h1, h2)")), slug
        assert all(one.get_text(strip=True) or one.img for one in deck.select("section > .body")), slug
        text = deck.get_text()
        assert "{glue" not in text and not deck.select(".pasted-missing, .solution"), slug
        solutions = [one.extract().get_text() for one in article.select(".solution, .tag_solution")]
        longest = {max(text.split("\n"), key=len).strip() for text in solutions}
        page_text = article.get_text()
        told = {line for line in longest if line not in page_text}
        assert told and not any(line in text for line in told), slug


def open_deck(page, address: str) -> int:
    """Open a deck until it is drawn, and return how many slides it has."""
    page.goto(address)
    page.locator(".reveal.ready").wait_for()
    page.evaluate(DRAWN)
    return page.evaluate("() => Reveal.getTotalSlides()")


@pytest.fixture(scope="module")
def shown_decks(decks, smoke_site) -> Iterator[str]:
    """Serve the decks; yield their address."""
    with serving(smoke_site.root / "runs" / "smoke" / "slides") as address:
        yield address


def test_slides_keep_within_their_edges(decks, shown_decks, chromium):
    longest = sorted(decks, key=lambda slug: len(decks[slug].get_text()))[-3:]
    page = chromium.new_page(viewport=SLIDE)
    said = []
    page.on("console", lambda one: said.append(one.text) if one.type in ("error", "warning") else None)
    page.on("request", lambda one: one.url.startswith((shown_decks, "data:")) or said.append(one.url))
    for slug in longest:
        count = open_deck(page, f"{shown_decks}/{slug}.html")
        assert page.evaluate(FORMULAS) == [], slug
        for number in range(count):
            page.evaluate("number => Reveal.slide(number)", number)
            assert page.evaluate(OUTSIDE) == [], f"{slug}, slide {number + 1}"
    assert said == []
    page.close()
