"""What tests in a real browser share: a web server for a folder, and axe-core's question."""

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path

DRAWN = "() => window.MathJax && MathJax.startup ? MathJax.startup.promise.then(() => true) : true"
FORMULAS = """() => [...document.querySelectorAll('.math')]
    .filter(e => !e.querySelector('mjx-container')).map(e => e.textContent.slice(0, 80))"""
# Formulas have a reader of their own (MathJax), and colored code is thousands of spans of a few kinds: one of
# each kind is left, the rest becomes plain text.
WITHOUT_REPEATS = """() => {
    document.querySelectorAll('mjx-container').forEach(formula => formula.remove());
    const met = new Set();
    for (const span of document.querySelectorAll('.highlight pre span[class]:not(:has(*))')) {
        if (met.has(span.className)) span.replaceWith(span.textContent);
        met.add(span.className);
    }
}"""
# Whatever scrolls can be scrolled by keys: the theme sees to it a moment after a page has changed its width.
REACHED_BY_KEYS = """() => [...document.querySelectorAll('pre, .cell_output > .output')].every(
    e => e.tabIndex === 0 || e.scrollWidth <= e.clientWidth && e.scrollHeight <= e.clientHeight)"""
STRUCTURE = {"rules": {"color-contrast": {"enabled": False}}}  # what axe-core shall look at: all but contrast
BARRIERS = """([theme, options]) => {
    document.documentElement.dataset.theme = document.documentElement.dataset.mode = theme;
    return axe.run({exclude: ['svg']}, {preload: false, resultTypes: ['violations'], ...options})
        .then(result => result.violations
            .filter(rule => ['serious', 'critical'].includes(rule.impact))
            .map(rule => `${theme}: ${rule.id}: ${rule.nodes[0].html.slice(0, 120)}`));
}"""

# What a page shows on paper although paper cannot be pressed or turned, and what a sheet would cut off.
# What is folded opens as it does when a reader prints.
ON_PAPER = """() => {
    dispatchEvent(new Event('beforeprint'));
    const seen = (place, of) => [...place.querySelectorAll(of)].filter(one => one.checkVisibility());
    const useless = 'button, input, select, summary, .headerlink, .bd-sidebar, .prev-next-area, .book-card';
    const article = document.querySelector('article');
    if (!article) return [];  // a report has a page of its own
    const edge = article.getBoundingClientRect().right + 1;
    const long = one => one.matches('pre') && one.scrollWidth > one.clientWidth + 1;
    const cut = seen(article, 'pre, table, img, mjx-container, svg').filter(
        one => one.getBoundingClientRect().right > edge || long(one));
    const amiss = [...seen(document.body, useless), ...cut].map(one => one.outerHTML.slice(0, 80));
    dispatchEvent(new Event('afterprint'));
    return amiss;
}"""

# Reveal's layer of backgrounds lies below all slides, empty in ours: with it axe-core judges no contrast.
WITHOUT_BACKGROUNDS = "() => document.querySelector('.reveal > .backgrounds').remove()"
SLIDE = {"width": 1280, "height": 720}
# What reaches beyond its slide, and lies in nothing that scrolls.
OUTSIDE = """() => {
    const slide = document.querySelector('.slides > .present'), edge = slide.getBoundingClientRect();
    const long = box => box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1;
    const scrolls = box => /auto|scroll/.test(getComputedStyle(box).overflow) && long(box);
    const kept = element => element !== slide && (scrolls(element) || kept(element.parentElement));
    return [...slide.querySelectorAll('.body *')].filter(element => {
        const box = element.getBoundingClientRect();
        return box.width && (box.right > edge.right + 1 || box.bottom > edge.bottom + 1) && !kept(element);
    }).map(element => element.outerHTML.slice(0, 80));
}"""


# A page's colors turn over a sixth of a second when its theme does; axe-core would judge one in between.
AT_ONCE = """{
    const still = new CSSStyleSheet();
    still.replaceSync('*, ::before, ::after {transition: none !important; animation: none !important}');
    document.adoptedStyleSheets.push(still);
}"""


def axe_core() -> str:
    """Return the script of axe-core, and one that lets a page change its looks at once."""
    return (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8") + AT_ONCE


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(html: Path) -> Iterator[str]:
    """Serve a folder on a free port of the loopback device, and yield its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Quiet, directory=str(html)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
