"""The page that a graded student gets, in a real browser."""

import pytest
from browsing import BARRIERS, axe_core

from bookmaker.teaching import _work

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_feedback_has_no_barrier_and_runs_nothing(chromium, tmp_path, theme):
    tasks = [
        {"name": "test-noise", "score": 2, "points": 3, "says": "The noise is too small." * 20},
        {"name": "test-<img src=x onerror=alert(1)>", "score": 0, "points": 2, "says": "<script>x</script>"},
    ]
    first = {"assignment": "1_mechanism", "score": 2, "points": 5, "by_hand": 0, "note": "", "tasks": tasks}
    second = first | {"assignment": "6_review", "by_hand": 10, "note": "The notebook lacks a cell."}
    (tmp_path / "s1.html").write_text(_work.feedback("s1", [first, second]), encoding="utf-8")
    context = chromium.new_context(
        viewport={"width": 360, "height": 640}, color_scheme=theme, bypass_csp=True
    )
    page, met = context.new_page(), []
    page.on("dialog", lambda dialog: met.append(dialog.message) or dialog.dismiss())
    page.on("request", lambda request: met.append(request.url))
    page.goto((tmp_path / "s1.html").as_uri())
    page.evaluate(axe_core())
    assert page.evaluate(BARRIERS, [theme, {}]) == []
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), "wider than a phone"
    assert [one for one in met if not one.startswith("file:")] == []
    assert page.get_by_role("heading").all_inner_texts()[1] == "1_mechanism: 2 of 5"
    context.close()
