"""What a browser makes of pages: what ran, what was asked for, what came out of a text, what is covered."""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faults.payloads.catalogue import Payload

from bookmaker.site import _pdf
from privhelpers.text import inert

VIEW = {"width": 1280, "height": 900}
ENCLOSING = "\u20dd"  # a mark that Unicode does not call combining
BATCH = 60  # frames side by side
NOTES = "window.ran = number => console.info(`ran ${number}`);"
FRAME = (
    "<!doctype html><meta charset=utf-8>{policy}"
    "<main><p id=before>before</p>{raw}<p id=after>after</p></main>"
)
OPEN = """documents => Promise.all(documents.map(text => new Promise(done => {
    const frame = document.createElement('iframe');
    frame.width = 300; frame.height = 150;
    frame.onload = done;
    setTimeout(done, 5000);
    frame.srcdoc = text;
    document.body.append(frame);
})))"""
# Somebody acts on everything: each handler is called, and each link and button is pressed.
ACT = """root => {
    const document = root.ownerDocument ?? root;
    for (const one of root.querySelectorAll('*')) {
        for (const {name} of [...one.attributes])
            if (name.startsWith('on')) one.dispatchEvent(new Event(name.slice(2), {bubbles: true}));
        if (one.matches('a, area, button, input'))
            one.dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}));
    }
}"""
ACT_IN_FRAMES = f"""() => {{
    const act = {ACT};
    for (const frame of document.querySelectorAll('iframe'))
        try {{ if (frame.contentDocument) act(frame.contentDocument); }} catch {{}}
}}"""
# Whether the words around a payload are still seen, frame by frame: nothing lies over them.
UNCOVERED = """() => [...document.querySelectorAll('iframe')].map(frame => {
    const document = frame.contentDocument;
    const seen = name => {
        const word = document?.getElementById(name);
        if (!word || !word.checkVisibility({opacityProperty: true, visibilityProperty: true})) return false;
        word.scrollIntoView();
        const box = word.getBoundingClientRect();
        const over = document.elementFromPoint(box.left + 9, box.top + box.height / 2);
        return box.width > 0 && box.right > 0 && (over === word || over?.contains(word) === true);
    };
    return seen('before') && seen('after');
})"""
# Some characters take no room, a text is no longer for them, or look like white space; or one stands to the
# left of the one before it.
AS_WRITTEN = """texts => texts.map(([text, without]) => {
    const place = document.createElement('pre');
    place.style.display = 'inline-block';
    document.body.append(place);
    place.textContent = without;
    const room = place.getBoundingClientRect().width;
    place.textContent = text;
    let fine = text === without || place.getBoundingClientRect().width > room + 1;
    const node = place.firstChild, range = document.createRange();
    for (let at = 0, last; at < text.length;) {
        const size = text.codePointAt(at) > 0xffff ? 2 : 1;
        range.setStart(node, at);
        range.setEnd(node, at += size);
        const character = range.toString(), [box] = range.getClientRects();
        if (character === ' ') continue;
        if (!box || /[\\s\\u2800\\u3164\\uffa0]/.test(character)) fine = false;
        else if (last && box.top < last.bottom - 2 && box.left < last.left) fine = false;
        last = box;
    }
    place.remove();
    return fine;
})"""
# Elements and what they are, but for what is ours: colors and words of code, formulas, links to headings.
BUILT = """where => {
    // A column of words has a class, one of numbers none; what scrolls can be reached by keys.
    const ours = one => one.matches('th, td') ? ['class', 'tabindex'] : ['tabindex'];
    const names = one => [...one.attributes].map(each => each.name).filter(each => !ours(one).includes(each));
    return [...document.querySelectorAll(`:is(${where}), :is(${where}) *`)]
        .filter(one => !one.matches('.highlight pre span, code > span.pre, mjx-container *, a.headerlink'))
        .map(one => [one.localName, ...names(one).sort(), getComputedStyle(one).position].join(' '));
}"""
# What is out of its place on the whole page, apart from what the theme moves while a page loads.
OUT_OF_PLACE = """() => [...document.querySelectorAll('body *')]
    .filter(one => ['fixed', 'absolute', 'sticky'].includes(getComputedStyle(one).position))
    .filter(one => one.checkVisibility() && !one.closest('nav, mjx-container'))
    .map(one => `${one.localName}.${[...one.classList].sort().join('.')}`).sort()"""
# What lies on top in the corners and in the middle, where it is out of its place and inside of what is shown.
ON_TOP = """where => [.02, .5, .98].flatMap(x => [.02, .5, .98].map(y => [x * innerWidth, y * innerHeight]))
    .map(at => document.elementFromPoint(...at))
    .filter(one => one?.closest(where))
    .map(one => {
        for (; one && !one.matches(where); one = one.parentElement)
            if (['fixed', 'absolute'].includes(getComputedStyle(one).position)) return one;
        return null;
    })
    .filter(one => one)
    .map(one => `${one.localName}.${one.className}`)"""
TEXT = "where => [...document.querySelectorAll(where)].map(one => one.textContent).join(' ')"


@dataclass
class Seen:
    """What was noticed in a tab: numbers of payloads, and other signs that something acted."""

    ran: set[int] = field(default_factory=set)
    asked: set[int] = field(default_factory=set)
    other: list[str] = field(default_factory=list)

    def hear(self, message: Any) -> None:
        """Note a line of the console."""
        if match := re.fullmatch(r"ran (\d+)", message.text):
            self.ran.add(int(match[1]))

    def request(self, url: str) -> None:
        """Note a request."""
        if match := re.search(r"payload\.invalid/(\d+)", url):
            self.asked.add(int(match[1]))
        elif not url.startswith((_pdf.ADDRESS, "data:", "blob:", "about:")):
            self.other.append(f"asked for {url[:80]}")

    def dialog(self, dialog: Any) -> None:
        """Note a dialog and close it."""
        self.other.append(f"a dialog: {dialog.message[:80]}")
        dialog.dismiss()


@contextmanager
def tab(chromium: Any, html: Path, *, policy: bool = True) -> Iterator[tuple[Any, Seen, _pdf._Server]]:
    """Open an empty tab that gets the files of a folder and nothing else.

    Args:
        chromium: the browser.
        html: the folder.
        policy: whether the policies of pages hold; else their texts must be harmless by themselves.
    """
    context, seen, server = (
        chromium.new_context(bypass_csp=not policy, viewport=VIEW),
        Seen(),
        _pdf._Server(html),
    )
    context.add_init_script(NOTES)
    context.on("console", seen.hear)
    context.on("dialog", seen.dialog)

    def answer(route: Any) -> None:  # what a policy stops does not get here
        seen.request(route.request.url)
        server.answer(route)

    context.route("**/*", answer)
    yield context.new_page(), seen, server
    context.close()


def raw(
    chromium: Any, folder: Path, payloads: Sequence[Payload], *, policy: str = ""
) -> tuple[Seen, set[int]]:
    """Put payloads as they are into pages, one each, and act on them; return what was seen, and what covered.

    Args:
        chromium: the browser.
        folder: any, which lends its address.
        payloads: what to put there.
        policy: the tag of a Content-Security-Policy that each page has.
    """
    covered, seen = set(), Seen()
    for start in range(0, len(payloads), BATCH):
        some = payloads[start : start + BATCH]
        documents = [FRAME.replace("{policy}", policy).replace("{raw}", one.raw) for one in some]
        (folder / "frames.html").write_text("<!doctype html><title>x</title><body>")
        with tab(chromium, folder) as (page, noticed, _):
            page.goto(f"{_pdf.ADDRESS}frames.html")
            page.evaluate(OPEN, documents)
            page.wait_for_timeout(200)  # what begins by itself
            shown = page.evaluate(UNCOVERED)
            covered |= {one.number for one, fine in zip(some, shown, strict=True) if not fine}
            page.evaluate(ACT_IN_FRAMES)
            page.wait_for_timeout(300)
            seen.ran |= noticed.ran
            seen.asked |= noticed.asked
            seen.other += noticed.other
    return seen, covered


def _plain(text: str) -> str:
    """Return a text without the characters that `inert` spells out, and without marks."""
    return "".join(c for c in text if inert(c) == c and not unicodedata.combining(c) and c not in ENCLOSING)


def drawn_otherwise(chromium: Any, folder: Path, texts: Sequence[str]) -> list[bool]:
    """Return of each text whether a browser that gets it as it is draws it otherwise than it is written."""
    (folder / "frames.html").write_text("<!doctype html><meta charset=utf-8><title>x</title><body>")
    with tab(chromium, folder) as (page, *_):
        page.goto(f"{_pdf.ADDRESS}frames.html")
        return [not fine for fine in page.evaluate(AS_WRITTEN, [[text, _plain(text)] for text in texts])]
