"""The gallery of a sweep in a real browser: it sorts, filters, fits a phone, and has no barrier."""

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
    row = dict.fromkeys(_results.COLUMNS)
    row |= {
        "profile": f"a-tiny-s{seed}",
        "architecture": "tiny",
        "seed": seed,
        "model": f"dp-eps-{epsilon:g}",
    }
    row |= {"epsilon": epsilon, "delta": 1e-5, "family": "utility", "measure": "perplexity", "arm": "control"}
    row |= {"estimate": estimate, "low": estimate - 1, "high": estimate + 1, "level": 0.95, "n": 40}
    return row | {"method": "bootstrap", "unit": "note", "cluster": "patient", "clusters": 20}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """Write the gallery of a made-up sweep and serve it."""
    folder = tmp_path_factory.mktemp("sweep") / "gallery"
    rows = [measured(2, 8.0, 9.5), measured(0, 1.0, 30.25), measured(1, 8.0, 10.5)]
    _gallery.write(_results.as_table(rows), folder, "demo")
    task = {"name": "test-noise", "score": 2, "points": 3, "says": "The noise is too small." * 20}
    graded = {
        "assignment": "1_mechanism",
        "score": 2,
        "points": 3,
        "by_hand": 1,
        "note": "x",
        "tasks": [task],
    }
    (folder / "feedback.html").write_text(_work.feedback("s1", [graded]), encoding="utf-8")
    (folder.parent / "results.parquet").write_bytes(b"")
    with serving(folder.parent) as url:
        yield f"{url}/gallery"


def test_the_table_sorts_and_filters_by_keyboard(chromium, address):
    page = chromium.new_page()
    page.goto(f"{address}/index.html")
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
    page.get_by_role("link", name="a-tiny-s1").click()
    assert "dp-eps-8" in page.inner_text("h1")
    page.close()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", ["index", "compare", "a-tiny-s0--dp-eps-1", "feedback"])
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
