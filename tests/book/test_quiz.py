"""The quiz of a chapter in a real browser: by keys alone, on a phone, in both themes, without scripts."""

import re

import pytest
import toy_site
from browsing import BARRIERS, axe_core

from bookmaker.site import _pdf
from bookmaker.site._build import build

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the HTML of a toy book, in which one chapter has a quiz."""
    root = toy_site.build(tmp_path_factory.mktemp("toy") / "book")
    return build(root, toy_site.jobs(root))


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
