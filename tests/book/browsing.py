"""What tests in a real browser share: a web server for a folder, and axe-core's question."""

import functools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from pathlib import Path

# Colored code is thousands of spans of a few kinds; one of each kind is left, the rest becomes plain text.
ONE_OF_EACH_COLOR = """() => {
    const met = new Set();
    for (const span of document.querySelectorAll('.highlight pre span[class]:not(:has(*))')) {
        if (met.has(span.className)) span.replaceWith(span.textContent);
        met.add(span.className);
    }
}"""
# Formulas have a reader of their own (MathJax) and thousands of elements; the theme changes colors alone.
BARRIERS = """theme => {
    document.documentElement.dataset.theme = document.documentElement.dataset.mode = theme;
    const rules = theme === 'light' ? {} : {runOnly: ['color-contrast']};
    const how = {preload: false, resultTypes: ['violations'], ...rules};
    return axe.run({exclude: ['mjx-container', 'svg']}, how)
        .then(found => found.violations
            .filter(one => ['serious', 'critical'].includes(one.impact))
            .map(one => `${theme}: ${one.id}: ${one.nodes[0].html.slice(0, 120)}`));
}"""


def axe_core() -> str:
    """Return the script of axe-core."""
    return (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


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
