"""Hostile texts on every page: none runs, asks, covers or hides; and they would, where nothing stops them."""

import re
from collections import Counter

import pytest
from faults.payloads import __main__ as command
from faults.payloads import acting, catalogue, displays, nets

from bookmaker.site import _checks

pytestmark = pytest.mark.browser
PAYLOADS = catalogue.payloads()
KINDS = {one.kind: one for one in reversed(PAYLOADS)}
# `make payloads` shows them all, which takes minutes.
FEW = tuple(one for one in PAYLOADS if one.number % 10 == 1 or one is KINDS[one.kind])


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Make every page once; return their folder and what is displayed on them."""
    return displays.pages(tmp_path_factory.mktemp("payloads"), FEW)


def test_the_catalogue_has_many_kinds_and_no_text_twice():
    assert len(PAYLOADS) >= 300 and len({one.kind for one in PAYLOADS}) >= 15
    assert max(Counter(one.text.replace(str(one.number), "§") for one in PAYLOADS).values()) == 1
    assert {one.effect for one in PAYLOADS} == set(catalogue.EFFECTS)


def test_the_payloads_act_where_nothing_stops_them(chromium, tmp_path):
    idle = acting.idle(chromium, tmp_path, PAYLOADS)
    for effect in catalogue.EFFECTS:
        # What steers a terminal does nothing in a browser, which draws boxes.
        some = [one for one in PAYLOADS if one.effect == effect and one.kind != "ANSI"]
        still = [one.text for one in some if one in idle]
        assert len(still) <= len(some) / 4, (effect, still)


def test_a_text_is_a_text_without_any_policy(chromium, pages):
    html, shown = pages
    made = list(nets.escaped(chromium, html, shown, FEW, policy=False))
    assert len(made) == len(shown) + 2 >= 24  # and the search, and what is printed
    texts = {one.number: one.text for one in PAYLOADS}
    for one in made:
        assert not one.amiss, (one.display, one.amiss)
        assert not one.failed, (one.display, [texts[number] for number in sorted(one.failed)][:5])


def test_a_policy_alone_lets_nothing_run_and_nothing_be_asked_for(chromium, pages, tmp_path):
    made = list(nets.under_policies(chromium, tmp_path, *pages, FEW))
    assert len(made) >= 3
    for one in made:
        assert not (one.ran or one.asked or one.amiss), (one.display, one.ran, one.asked, one.amiss)


def test_a_page_that_takes_a_payload_as_it_is_fails(chromium, pages, tmp_path):
    """A payload, a control and a cover are put into a display behind the back of everything that escapes."""
    html, shown = pages
    display = next(one for one in shown if one.name == "feedback")
    page, run = html / display.page, KINDS["event"]
    kept = page.read_text(encoding="utf-8")
    spoiled = f"</table>{run.text}\u202e<div style='position:fixed;inset:0'></div>"
    page.write_text(kept.replace("</table>", spoiled, 1), encoding="utf-8")
    try:
        one = next(nets.escaped(chromium, html, [display], FEW, policy=False))
    finally:
        page.write_text(kept, encoding="utf-8")
    assert one.ran == {run.number}
    assert any("u202e" in words for words in one.amiss) and any("out of its place" in w for w in one.amiss)


def test_no_page_names_this_machine(pages):
    """Of the site, reports, slides, galleries and feedback alike."""
    html, shown = pages
    machine = _checks.machine_strings(html.parents[4])
    assert any(pattern.search(f" {html} ") for pattern in machine)
    read = 0
    for path in html.rglob("*"):
        if path.suffix in (".html", ".js", ".css", ".ipynb", ".svg", ".txt", ".xml") and path.is_file():
            text, read = path.read_text(encoding="utf-8"), read + 1
            met = [match[0] for match in (pattern.search(text) for pattern in machine) if match]
            assert not met, (path.relative_to(html), met)
    assert read > len(shown)


def test_the_table_counts_by_display_and_by_kind():
    first, second = PAYLOADS[0].number, PAYLOADS[-1].number
    tried = frozenset(one.number for one in PAYLOADS)
    made = [
        nets.Result(nets.ESCAPING, "toy", tried, ran=frozenset({first}), amiss=("is odd",)),
        nets.Result(nets.BOTH, "other", tried, refused=frozenset({second})),
    ]
    text = command.table(PAYLOADS, [PAYLOADS[1]], made)
    count = len(PAYLOADS)
    assert f"| toy | escaping alone | {count} | 0 | 1 | 0 | 0 | 1 |" in text
    assert f"| other | both | {count} | 1 | 0 | 0 | 0 | 0 |" in text
    assert "Failed: 1;" in text and "- toy, escaping alone: is odd" in text
    kind = PAYLOADS[0].kind
    own = sum(one.kind == kind for one in PAYLOADS)
    assert re.search(rf"\| {kind} \| .* \| {own} \| {own - 1} \| {2 * own} \| 0 \| 1 \|", text)
