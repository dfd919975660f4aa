"""Looks at every display of every payload under each of the two nets alone, and under both.

The first net is escaping: pages are opened without their policies. The second is the policy of a page:
payloads stand in pages as they are, under each policy that a page of ours has.
"""

import html as markup
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from faults.payloads import looking
from faults.payloads.catalogue import LEADS, Payload
from faults.payloads.displays import Display

from bookmaker.site import _checks, _pdf
from privhelpers.errors import PrivHelpersError
from privhelpers.text import inert

ESCAPING, POLICY, BOTH = NETS = ("escaping alone", "policy alone", "both")
JOINER = "\u2060"  # `print.js` writes one beside each formula
ACTIVE = _checks.ACTIVE | _checks.HEAD_ONLY | _checks.OUTSIDE_ARTICLES | {"script", "img", "image", "a"}
# Without the words around each hit, for which its whole page would be fetched; those of one search will do.
SEARCH = """texts => {
    DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
    texts.forEach(text => Search.performSearch(text));
}"""
FOUND = "text => { DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = true; Search.performSearch(text); }"
HIT = "payload invalid"  # stands in the words of many
KEPT = "\n\t\r\u00a0\u202f"  # what lays out text; some displays spell it out
SPACE = re.compile(r"\\[ntr]|\\xa0|\\u202f|\s")
META = re.compile(r'<meta http-equiv="Content-Security-Policy"\s+content="([^"]*)">')
HASH = re.compile(r" ?'sha256-[\w+/=]+'")


@dataclass(frozen=True)
class Result:
    """What became of the payloads in one display under one net.

    Attributes:
        net: one of `NETS`.
        display: its name.
        tried: numbers of the payloads that were given to it.
        refused: those that it does not show.
        ran, asked: those that were executed, or asked for an address.
        unread: those whose characters a reader does not see as they are.
        amiss: what else a page does that its twin with plain words does not.
    """

    net: str
    display: str
    tried: frozenset[int]
    refused: frozenset[int] = frozenset()
    ran: frozenset[int] = frozenset()
    asked: frozenset[int] = frozenset()
    unread: frozenset[int] = frozenset()
    amiss: tuple[str, ...] = field(default=())

    @property
    def failed(self) -> frozenset[int]:
        """Return the payloads that did anything but stand there as text."""
        return self.ran | self.asked | self.unread


def _squeezed(text: str) -> str:
    return SPACE.sub("", text)


def _unread(display: Display, text: str, payloads: Sequence[Payload]) -> frozenset[int]:
    """Return the payloads whose characters do not all stand in the text of a page."""
    if display.written is None:
        return frozenset()
    shown = _squeezed(text)
    expected = {
        one.number: _squeezed(inert(display.written(one.text), keep=KEPT))
        for one in payloads
        if one.number not in display.refused
    }
    return frozenset(number for number, words in expected.items() if words not in shown)


def _hidden(text: str) -> set[str]:
    """Return the characters of a page that act, spelled out."""
    return {inert(character) for character in set(text) if inert(character, keep=KEPT) != character}


@dataclass
class _Look:
    """What a tab says of one display on the page that is open."""

    text: str
    built: list[str]
    out_of_place: list[str]
    on_top: list[str]


def _looked(page: Any, where: str) -> _Look:
    return _Look(
        page.evaluate(looking.TEXT, where),
        page.evaluate(looking.BUILT, where),
        page.evaluate(looking.OUT_OF_PLACE),
        page.evaluate(looking.ON_TOP, where),
    )


def _amiss(look: _Look, twin: _Look | None) -> Iterator[str]:
    """Yield what a display does that its twin with plain words does not."""
    plain = _hidden(twin.text) if twin else set()
    if hidden := _hidden(look.text) - plain:
        yield f"holds {', '.join(sorted(hidden)[:5])}"
    if on_top := [one for one in look.on_top if twin is None or one not in twin.on_top]:
        yield f"is covered by {on_top[0]}"
    if twin is None:
        acts = (one for one in look.built if one.split()[0] in ACTIVE or " on" in one)
        yield from (f"holds {one}" for one in dict.fromkeys(acts))
        return
    if look.built != twin.built:
        pairs = zip(look.built, twin.built, strict=False)
        at, other = next(((a, b) for a, b in pairs if a != b), ("more elements", "fewer"))
        yield f"holds {at} where plain words have {other} ({len(look.built)} and {len(twin.built)} elements)"
    if look.out_of_place != twin.out_of_place:
        yield f"has {set(look.out_of_place) ^ set(twin.out_of_place) or 'others'} out of its place"


def _opened(chromium: Any, html: Path, name: str, some: Sequence[Display], *, policy: bool, act: bool):
    """Open a page, maybe act on the markup of its displays, and return what was seen, and how they look."""
    places = [one.where for one in some]
    with looking.tab(chromium, html, policy=policy) as (page, seen, server):
        page.goto(f"{_pdf.ADDRESS}{name}")
        page.evaluate("() => window.MathJax?.startup?.promise.then(() => true)")
        for one in (one for one in some if one.hover):
            page.locator(one.hover).first.hover()
            page.locator(one.where).wait_for()
        looks = {where: _looked(page, where) for where in places}
        for one in (one for one in some if act and one.written is None):  # text can not be pressed
            page.locator(one.where).first.evaluate(looking.ACT)
        page.wait_for_timeout(200)
        return seen, looks, tuple(f"asked for {one}" for one in server.refused)


def escaped(
    chromium: Any, html: Path, displays: Sequence[Display], payloads: Sequence[Payload], *, policy: bool
) -> Iterator[Result]:
    """Yield what became of the payloads in each display.

    Args:
        chromium: the browser.
        html: the folder with the pages.
        displays: from `displays.pages`, with `html`.
        payloads: those that the pages show.
        policy: whether the pages' policies hold, too.
    """
    net, tried = BOTH if policy else ESCAPING, frozenset(one.number for one in payloads)
    by_page: dict[str, list[Display]] = {}
    for display in displays:
        by_page.setdefault(display.page, []).append(display)
    for name, some in by_page.items():
        if not name:
            yield from (Result(net, one.name, tried, frozenset(one.refused)) for one in some)
            continue
        seen, looks, asked = _opened(chromium, html, name, some, policy=policy, act=True)
        twin = next((one.twin for one in some if one.twin), "")
        twins = _opened(chromium, html, twin, some, policy=policy, act=False)[1] if twin else {}
        for one in some:
            look = looks[one.where]
            amiss = [*seen.other, *asked, *_amiss(look, twins.get(one.where) if one.twin else None)]
            if not look.built:
                amiss.append("is not on its page")
            ran, asks = frozenset(seen.ran), frozenset(seen.asked)
            unread = _unread(one, look.text, payloads)
            yield Result(net, one.name, tried, frozenset(one.refused), ran, asks, unread, tuple(amiss))
            if one.name == "printed":
                yield printed(chromium, html, one, payloads, policy=policy)
    yield searched(chromium, html, payloads, policy=policy)


def searched(chromium: Any, html: Path, payloads: Sequence[Payload], *, policy: bool) -> Result:
    """Search the site for each payload, and for what stands beside them, and return what became of them."""
    texts = [one.text for one in payloads]
    with looking.tab(chromium, html, policy=policy) as (page, seen, server):
        page.goto(f"{_pdf.ADDRESS}search.html?{urlencode({'q': ' '.join(texts), 'highlight': texts[0]})}")
        page.evaluate(SEARCH, texts)
        page.wait_for_timeout(500)  # each hit is shown a moment after the one before
        page.evaluate(FOUND, HIT)
        page.locator("#search-results li p.context").first.wait_for()  # the words around what was found
        made = page.evaluate(looking.BUILT, "#search-results")
        page.wait_for_timeout(200)
    plain = {"a", "div", "em", "h2", "h3", "li", "mark", "p", "span", "ul"}
    amiss = [f"holds {one}" for one in made if one.split()[0] not in plain or " on" in one]
    amiss += [*seen.other, *(f"asked for {one}" for one in server.refused)]
    net, tried = BOTH if policy else ESCAPING, frozenset(one.number for one in payloads)
    return Result(net, "search", tried, ran=frozenset(seen.ran), asked=frozenset(seen.asked), amiss=(*amiss,))


def printed(
    chromium: Any, html: Path, display: Display, payloads: Sequence[Payload], *, policy: bool
) -> Result:
    """Put the page of a display into the book that is printed, and return what became of the payloads."""
    pages = [{"name": display.page.removesuffix(".html"), "level": 1}]
    parts = [{"caption": "", "pages": [{"name": "book/intro", "level": 1}]}, {"caption": "x", "pages": pages}]
    with looking.tab(chromium, html, policy=policy) as (page, seen, server):
        amiss, text = [], ""
        try:
            _pdf._assemble(page, {"parts": parts, "title": "x", "front": ["x"]}, server)
            text = page.evaluate(looking.TEXT, "main.printed-book")
        except PrivHelpersError as error:
            amiss = [str(error)]
        page.wait_for_timeout(200)
    amiss += [f"holds {one}" for one in _hidden(text.replace(JOINER, ""))]
    net, tried = BOTH if policy else ESCAPING, frozenset(one.number for one in payloads)
    unread = _unread(display, text, payloads)
    ran, asked = frozenset(seen.ran), frozenset(seen.asked)
    return Result(net, "PDF", tried, ran=ran, asked=asked, unread=unread, amiss=(*amiss, *seen.other))


def policies(html: Path, displays: Sequence[Display]) -> dict[str, list[str]]:
    """Return every policy of a page, without the hashes of our scripts and styles, and whose it is.

    Raises:
        AssertionError: a page has none, or one that lets scripts run that stand in it.
    """
    found: dict[str, list[str]] = {}
    for display in displays:
        if not display.page:
            continue
        policy = META.search((html / display.page).read_text(encoding="utf-8"))
        assert policy, f"{display.page} has no policy"
        given = markup.unescape(policy[1])
        scripts = next((part for part in given.split(";") if part.split()[:1] == ["script-src"]), "")
        assert "default-src 'none'" in given and "unsafe" not in scripts and "*" not in scripts, given
        found.setdefault(HASH.sub("", given), []).append(display.name)
    return found


def under_policies(
    chromium: Any, folder: Path, html: Path, displays: Sequence[Display], payloads: Sequence[Payload]
) -> Iterator[Result]:
    """Yield what payloads do that stand in a page as they are, under each policy of ours.

    What leads elsewhere is left out, since no policy of a page keeps a tab from leaving it.

    Args:
        chromium: the browser.
        folder: an empty one.
        html: the folder with the pages.
        displays: whose policies are tried.
        payloads: what is tried.
    """
    some = [one for one in payloads if one.effect != LEADS]
    tried = frozenset(one.number for one in some)
    for policy, names in policies(html, displays).items():
        tag = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        seen, _ = looking.raw(chromium, folder, some, policy=tag)
        ran, asked = frozenset(seen.ran), frozenset(seen.asked)
        yield Result(POLICY, ", ".join(names), tried, ran=ran, asked=asked, amiss=tuple(seen.other))
