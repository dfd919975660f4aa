"""The quiz of a chapter and the cards over links in a browser: by keys alone, in both themes, on a phone."""

import re

import pytest
from browsing import BARRIERS, axe_core

from bookmaker.site import _pdf, _quizzes

pytestmark = pytest.mark.browser
OF_THE_CARD = BARRIERS.replace("{exclude: ['svg']}", "'#book-card'")  # the page is judged in test_browser.py
CHAPTER = f"{_pdf.ADDRESS}notebooks/comparison.html"


@pytest.fixture(scope="module")
def question(smoke_site):
    """Return the question of the chapter's quiz that has neither a formula nor a number, and its place."""
    bank = _quizzes.bank(smoke_site.root, "comparison")
    return next((one, place) for place, one in enumerate(bank) if one.name == "patients-not-attempts")


@pytest.fixture
def chapter(smoke_site, chromium):
    """Open a chapter; when the test ends, it may not have complained, or asked another host for anything."""
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    server, said = _pdf._Server(smoke_site.html), []
    page.on("console", lambda one: said.append(one.text) if one.type in ("error", "warning") else None)
    page.route("**/*", server.answer)
    page.emulate_media(reduced_motion="reduce")
    page.goto(CHAPTER)
    yield page
    assert said == []
    server.check()
    page.close()


def test_a_quiz_is_answered_by_keys_alone(chapter, question):
    chapter.set_viewport_size({"width": 360, "height": 780})
    asked, place = question
    shown = chapter.locator(".quiz-question").nth(place)
    group = chapter.get_by_role("group", name=re.compile(re.escape(asked.asks[:40])))
    assert group.count() == 1, "the legend names the group"
    choices, result = group.get_by_role("radio"), shown.get_by_role("status")
    names = [choices.nth(i).evaluate("one => one.labels[0].textContent") for i in range(choices.count())]
    right = names.index(asked.right.says)
    assert len(names) == len(asked.choices) and result.inner_text() == ""
    choices.first.focus()  # as by Tab: a group of radio buttons is one stop
    chapter.keyboard.press("Tab")
    assert chapter.evaluate("() => document.activeElement.textContent") == "Check"
    outline = chapter.evaluate("() => getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid", "the focus is seen"
    chapter.keyboard.press("Enter")
    assert result.inner_text() == "Choose an answer first."
    chapter.keyboard.press("Shift+Tab")
    chapter.keyboard.press("Space")
    for _ in range(right):
        chapter.keyboard.press("ArrowDown")
    assert choices.nth(right).is_checked()
    chapter.keyboard.press("Tab")
    chapter.keyboard.press("Enter")
    assert result.inner_text().startswith(f"{'ABC'[right]} is right. ")
    chapter.keyboard.press("Shift+Tab")
    chapter.keyboard.press("ArrowDown")
    assert result.inner_text() == "", "another choice is not judged before it is checked"
    chapter.keyboard.press("Tab")
    chapter.keyboard.press("Space")
    assert " is wrong. " in result.inner_text()
    assert chapter.evaluate("() => document.documentElement.scrollWidth") <= 360


@pytest.mark.nightly
def test_a_quiz_can_be_read_without_scripts(smoke_site, chromium, question):
    context = chromium.new_context(java_script_enabled=False)
    page = context.new_page()
    page.route("**/*", _pdf._Server(smoke_site.html).answer)
    page.goto(CHAPTER)
    asked, place = question
    shown = page.locator(".quiz-question").nth(place)
    assert shown.locator("ol > li").count() == len(asked.choices) and not shown.locator("input").count()
    assert not shown.locator(".quiz-why").first.is_visible()
    shown.locator("summary").press("Enter")
    assert shown.locator(".quiz-right").is_visible()
    context.close()


def by_keys(page, link):
    """Give a link the focus as Tab does."""
    page.keyboard.press("Tab")
    link.focus()


def test_a_card_comes_with_the_focus_and_goes_with_escape(chapter):
    card, link = chapter.get_by_role("tooltip"), chapter.locator("article a[href*='#term-']").first
    assert card.count() == 0 and link.get_attribute("aria-describedby") is None
    by_keys(chapter, link)
    card.wait_for()
    assert len(card.inner_text()) > 20 and link.get_attribute("aria-describedby") == "book-card"
    assert card.locator("a, [id]").count() == 0, "a tip holds nothing to act on"
    chapter.evaluate(axe_core())
    for theme in ("light", "dark"):
        assert chapter.evaluate(OF_THE_CARD, [theme, {}]) == []
    chapter.keyboard.press("Escape")
    assert card.count() == 0 and link.evaluate("one => one === document.activeElement"), "the focus stays"
    chapter.set_viewport_size({"width": 360, "height": 780})
    by_keys(chapter, link)
    card.wait_for()
    assert chapter.evaluate("() => document.documentElement.scrollWidth") <= 360
    chapter.keyboard.press("Tab")
    assert card.count() == 0, "it goes with the focus"


@pytest.mark.nightly
def test_a_card_says_what_a_source_is(chapter):
    chapter.goto(f"{_pdf.ADDRESS}book/glossary.html")
    link = chapter.locator("article .bibtex-citation a").first
    assert link.get_attribute("title") is None, "the browser's own tip would lie over the card"
    by_keys(chapter, link)
    card = chapter.get_by_role("tooltip")
    card.wait_for()
    assert re.search(r"\b(?:19|20)\d\d\b", card.inner_text())
