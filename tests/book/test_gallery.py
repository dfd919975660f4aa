"""The page of a sweep, and a student's feedback, in a real browser: by keys, on a phone, for everyone."""

import pytest
from browsing import BARRIERS, axe_core, serving

from bookmaker.sweep import _gallery, _results
from bookmaker.teaching import _work

pytestmark = pytest.mark.browser
SHOWN = (
    "() => [...document.querySelectorAll('#runs tbody tr')].filter(r => !r.hidden).map(r => r.dataset.seed)"
)


def measured(seed: int, epsilon: float, estimate: float) -> dict:
    """Return one measurement of a private model."""
    row = dict.fromkeys(_results.COLUMNS) | {"profile": f"a-tiny-s{seed}", "architecture": "tiny"}
    row |= {"seed": seed, "model": f"dp-eps-{epsilon:g}", "epsilon": epsilon, "delta": 1e-5}
    row |= {"family": "utility", "measure": "perplexity", "arm": "control", "level": 0.95, "n": 40}
    row |= {"estimate": estimate, "low": estimate - 1, "high": estimate + 1, "method": "bootstrap"}
    return row | {"unit": "note", "cluster": "patient", "clusters": 20}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Write the pages and serve them."""
    folder = tmp_path_factory.mktemp("sweep")
    rows = [measured(2, 8.0, 9.5), measured(0, 1.0, 30.25), measured(1, 8.0, 10.5)]
    (folder / "gallery.html").write_text(_gallery.page(_results.as_table(rows), "demo"), encoding="utf-8")
    task = {"name": "test-noise", "score": 2, "points": 3, "says": "The noise is too small." * 20}
    graded = {"assignment": "1_mechanism", "score": 2, "points": 3, "by_hand": 1, "note": "x"}
    page = _work.feedback("s1", [graded | {"tasks": [task]}])
    (folder / "feedback.html").write_text(page, encoding="utf-8")
    with serving(folder) as url:
        yield url


def test_the_table_sorts_and_filters_by_keyboard(chromium, address):
    page = chromium.new_page()
    page.goto(f"{address}/gallery.html")
    page.get_by_role("button", name="perplexity").focus()
    page.keyboard.press("Enter")
    assert page.evaluate(SHOWN) == ["2", "1", "0"]  # 9.50, 10.50, 30.25: as numbers, not as words
    page.keyboard.press("Enter")
    assert page.evaluate(SHOWN) == ["0", "1", "2"]
    assert page.locator("th[aria-sort=descending]").inner_text().startswith("perplexity")
    page.select_option("select[data-axis=model]", "dp-eps-8")
    assert sorted(page.evaluate(SHOWN)) == ["1", "2"]
    page.fill("#search", "s1")
    assert page.evaluate(SHOWN) == ["1"] and page.inner_text("#count") == "1 of 3 runs"
    page.close()


@pytest.mark.nightly
@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["gallery", "feedback"])
def test_no_page_has_a_barrier_or_is_wider_than_a_phone(chromium, address, name, theme):
    page = chromium.new_page(viewport={"width": 360, "height": 780}, color_scheme=theme)
    errors, elsewhere = [], []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda asked: elsewhere.append(asked.url) if address[:20] not in asked.url else None)
    page.goto(f"{address}/{name}.html")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= 360
    page.evaluate(axe_core())
    # The pages follow the system's scheme, so "light" here means: with every rule, in the present scheme.
    assert page.evaluate(BARRIERS, ["light", {}]) == []
    assert (errors, elsewhere) == ([], [])
    page.close()
