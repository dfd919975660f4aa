"""A deck of slides in a real browser: by keys alone, in both themes, silent, and within its slides."""

import pytest
import toy_deck
from browsing import BARRIERS, OUTSIDE, SLIDE, WITHOUT_BACKGROUNDS, axe_core, serving

from bookmaker.teaching import _slides

pytestmark = pytest.mark.browser
WIDE = "<tr>" + "<td>a column of words</td>" * 30 + "</tr>"
LONG = "".join(f"<tr><td>{i}</td></tr>" for i in range(60))
AT = "() => Reveal.getIndices().h"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Serve a deck with everything that could be too large for a slide; yield its address."""
    folder = tmp_path_factory.mktemp("toy")
    sections = [
        toy_deck.section(
            "Wide", "<p>A.</p>", toy_deck.cell("", f"<div tabindex='0'><table>{WIDE}</table></div>")
        ),
        toy_deck.section(
            "Long", "<p>A.</p>", toy_deck.cell("", f"<table>{LONG}</table>", "slide"), "<p>Said.</p>"
        ),
        toy_deck.section("Code", toy_deck.cell(f"def f():\n    return '{'x' * 200}'")),
        toy_deck.section("Picture", "<p>A.</p>", toy_deck.cell("draw()", toy_deck.FIGURE)),
        toy_deck.section("Words", f"<p>{'word ' * 300}</p>"),
    ]
    site = toy_deck.site(folder / "site", toy_deck.page(*sections))
    _slides.fill(site, {"Part": ["notebooks/toy"]}, folder / "decks", "toy")
    with serving(folder / "decks") as address:
        yield address


@pytest.fixture
def deck(chromium, address):
    """Open the deck; afterwards nothing may have been asked of another host, and nothing complained about."""
    context = chromium.new_context(viewport=SLIDE, color_scheme="light")
    page, said = context.new_page(), []
    context.on("console", lambda one: said.append(one.text) if one.type in ("error", "warning") else None)
    context.on("request", lambda one: one.url.startswith((address, "data:")) or said.append(one.url))
    page.goto(f"{address}/toy.html")
    page.locator(".reveal.ready").wait_for()
    yield page
    assert said == []
    context.close()


def test_every_slide_keeps_within_its_edges_and_has_no_barrier(deck):
    deck.evaluate(axe_core())
    deck.evaluate(WITHOUT_BACKGROUNDS)
    count = deck.evaluate("() => Reveal.getTotalSlides()")
    assert count == 10
    for number in range(count):
        deck.evaluate("number => Reveal.slide(number)", number)
        assert deck.evaluate(OUTSIDE) == [], number
        assert [one for theme in ("light", "dark") for one in deck.evaluate(BARRIERS, [theme, {}])] == [], (
            number
        )
    assert deck.get_by_role("img", name="A line.").count() == 0, "a slide that is not shown is not read out"


def test_the_list_of_decks_has_no_barrier_and_leads_to_them(deck, address):
    deck.goto(f"{address}/index.html")
    deck.evaluate(axe_core())
    assert [one for theme in ("light", "dark") for one in deck.evaluate(BARRIERS, [theme, {}])] == []
    deck.get_by_role("link", name="1. Toy").press("Enter")
    deck.locator(".reveal.ready").wait_for()
    assert deck.title() == "1. Toy · PrivAI-Leak"


def test_keys_turn_slides_show_notes_and_change_the_theme(deck):
    assert deck.get_by_role("heading", level=1).inner_text() == "1. Toy"
    deck.keyboard.press("ArrowRight")
    assert deck.evaluate(AT) == 1 and deck.get_by_role("heading", level=2).inner_text() == "You will"
    deck.keyboard.press("t")
    assert "Reading 3 minutes" in deck.locator(".speaker-notes").inner_text()
    deck.keyboard.press("t")
    assert not deck.locator(".speaker-notes").is_visible()
    deck.keyboard.press("d")
    assert deck.evaluate("() => document.documentElement.dataset.theme") == "dark"


def test_the_window_of_the_speaker_goes_along(deck):
    with deck.context.expect_page() as opened:
        deck.keyboard.press("s")
    speaker = opened.value
    speaker.locator(".reveal.ready").wait_for()
    for _ in range(4):
        deck.keyboard.press("ArrowRight")
    speaker.locator(".slides > .present h2", has_text="Code").wait_for()
    speaker.keyboard.press("ArrowLeft")
    deck.locator(".slides > .present h2", has_text="Long").wait_for()
    assert deck.evaluate(AT) == 3 and speaker.locator(".speaker-notes").is_visible()
