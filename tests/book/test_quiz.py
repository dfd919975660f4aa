"""The quiz of a chapter and the cards over links in a browser: by keys alone, in both themes, on a phone."""

import re

import pytest
from browsing import BARRIERS, axe_core

from bookmaker.site import _pdf

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def site(toy_book):
    """Return the HTML of a toy book, in which one chapter has a quiz."""
    return toy_book / "runs/toy/site/_build/html"


def test_a_quiz_is_answered_by_keys_alone(site, chromium):
    page = chromium.new_page(viewport={"width": 360, "height": 780})
    said = []
    page.on("console", lambda one: said.append(one.text) if one.type in ("error", "warning") else None)
    server = _pdf._Server(site)
    page.route("**/*", server.answer)
    page.goto(f"{_pdf.ADDRESS}notebooks/comparison.html")
    first = page.locator(".quiz-question").first
    group = page.get_by_role("group", name=re.compile("Is an AUC of 0.91"))
    assert group.count() == 1, "the legend names the group"
    choices, result = group.get_by_role("radio"), first.get_by_role("status")
    names = [choices.nth(i).evaluate("one => one.labels[0].textContent") for i in range(choices.count())]
    right = names.index("Yes, by 0.41.")
    assert len(names) == 3 and result.inner_text() == ""
    choices.first.focus()  # as by Tab: a group of radio buttons is one stop
    page.keyboard.press("Tab")
    assert page.evaluate("() => document.activeElement.textContent") == "Check"
    outline = page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid", "the focus is seen"
    page.keyboard.press("Enter")
    assert result.inner_text() == "Choose an answer first."
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Space")
    for _ in range(right):
        page.keyboard.press("ArrowDown")
    assert choices.nth(right).is_checked()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert result.inner_text().startswith(f"{'ABC'[right]} is right. Guessing has one half.")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("ArrowDown")
    assert result.inner_text() == "", "another choice is not judged before it is checked"
    page.keyboard.press("Tab")
    page.keyboard.press("Space")
    assert " is wrong. " in result.inner_text()
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
    page.set_viewport_size({"width": 1280, "height": 900})
    page.evaluate(axe_core())
    for theme in ("light", "dark"):
        assert page.evaluate(BARRIERS, [theme, {}]) == []
    assert said == []
    server.check()
    page.close()


def test_a_quiz_can_be_read_without_scripts(site, chromium):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.route("**/*", _pdf._Server(site).answer)
    page.goto(f"{_pdf.ADDRESS}notebooks/comparison.html")
    first = page.locator(".quiz-question").first
    assert first.locator("ol > li").count() == 3 and first.locator("input").count() == 0
    assert not first.locator(".quiz-why").first.is_visible()
    first.locator("summary").press("Enter")
    assert first.locator(".quiz-right").is_visible()
    context.close()


@pytest.fixture
def chapter(site, chromium):
    """Open a chapter; nothing may have been asked of elsewhere when the test ends."""
    page, server = chromium.new_page(viewport={"width": 1280, "height": 900}), _pdf._Server(site)
    said = []
    page.on("console", lambda one: said.append(one.text) if one.type in ("error", "warning") else None)
    page.route("**/*", server.answer)
    page.emulate_media(reduced_motion="reduce")
    page.goto(f"{_pdf.ADDRESS}notebooks/comparison.html")
    yield page
    assert said == []
    server.check()
    page.close()


def by_keys(page, link):
    """Give a link the focus as Tab does."""
    page.keyboard.press("Tab")
    link.focus()


def test_a_card_comes_with_the_focus_and_goes_with_escape(chapter):
    card, link = chapter.get_by_role("tooltip"), chapter.locator("article a[href$='#term-epsilon']").first
    assert card.count() == 0 and link.get_attribute("aria-describedby") is None
    by_keys(chapter, link)
    card.wait_for()
    assert "privacy" in card.inner_text() and link.get_attribute("aria-describedby") == "book-card"
    assert card.locator("a, [id]").count() == 0, "a tip holds nothing to act on"
    chapter.evaluate(axe_core())
    for theme in ("light", "dark"):
        assert chapter.evaluate(BARRIERS, [theme, {}]) == []
    chapter.keyboard.press("Escape")
    assert card.count() == 0 and link.evaluate("one => one === document.activeElement"), "the focus stays"
    by_keys(chapter, chapter.locator("article a[href='#fig-comparison']:not(.headerlink)").first)
    card.wait_for()
    assert card.get_by_role("img", name="A blue rectangle.").is_visible()
    assert "A toy figure." in card.inner_text()
    chapter.set_viewport_size({"width": 360, "height": 780})
    chapter.wait_for_timeout(200)  # for the event
    assert chapter.evaluate("() => document.documentElement.scrollWidth") <= 360
    chapter.keyboard.press("Tab")
    assert "A toy figure." not in " ".join(card.all_inner_texts()), "it goes with the focus"


def test_a_card_says_what_a_source_is_and_sets_formulas(chapter):
    chapter.goto(f"{_pdf.ADDRESS}book/glossary.html")
    link = chapter.locator("article .bibtex-citation a").first
    assert link.get_attribute("title") is None, "the browser's own tip would lie over the card"
    by_keys(chapter, link)
    card = chapter.get_by_role("tooltip")
    card.wait_for()
    assert re.search(r"\b(?:19|20)\d\d\b", card.inner_text())
