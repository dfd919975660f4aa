"""That the payloads are what they say: each is put where nothing stops it, and most of them act."""

import ast
import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2
from docutils.core import publish_parts
from faults.payloads import looking
from faults.payloads.catalogue import (
    ASKS,
    COVERS,
    DRAWS,
    FILLS,
    LEADS,
    RENDERS,
    RUNS,
    TYPESETS,
    Payload,
)

from bookmaker.site import _pdf, _sphinx_ext

SETTINGS = {
    "myst_enable_extensions": ["amsmath", "colon_fence", "deflist", "dollarmath", "substitution", "tasklist"],
    "raw_enabled": True,
    "report_level": 5,
    "halt_level": 5,
}
DELIMITED = 'window.MathJax = {"tex": {"inlineMath": [["$", "$"], ["\\\\(", "\\\\)"]]}};'
TYPESET = """texts => {
    const make = textContent => Object.assign(document.createElement('p'), {textContent});
    document.body.append(...texts.map(make));
    return MathJax.startup.promise.then(() => MathJax.typesetPromise())
        .then(() => [...document.querySelectorAll('p')].map(one => one.matches(':has(mjx-container)')));
}"""


def _typeset(chromium: Any, folder: Path, texts: Sequence[str]) -> list[bool]:
    (folder / "math.html").write_text("<!doctype html><meta charset=utf-8><title>x</title><body>")
    with looking.tab(chromium, folder) as (page, *_):
        page.route(f"{_pdf.ADDRESS}mathjax/**", _pdf._Server(_sphinx_ext._mathjax_source().parent).answer)
        page.goto(f"{_pdf.ADDRESS}math.html")
        page.add_script_tag(content=DELIMITED)
        page.add_script_tag(url=f"{_pdf.ADDRESS}mathjax/tex-chtml.js")
        return page.evaluate(TYPESET, [*texts])


def _rendered(text: str) -> bool:
    """Return whether MyST makes more of a text than a paragraph of its characters."""
    made = publish_parts(
        text, parser_name="myst_parser.docutils_", writer_name="html5", settings_overrides=SETTINGS
    )["body"]
    shown = made.replace("<p>", "").replace("</p>", "").strip()
    plain = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")
    return shown != plain.strip()


def _filled(text: str) -> bool:
    """Return whether some template of Python, or MyST's glue, makes something else of a text."""
    ways = (
        lambda: jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(text).render(),
        lambda: text.format(),
        lambda: text % (),
        lambda: string.Template(text).substitute(),
        lambda: ast.literal_eval(f"'{text}'"),
        lambda: text if not _rendered(text) else "",
    )
    for way in ways:
        try:
            made = way()
        except Exception:
            return True
        if made != text:
            return True
    return False


def idle(chromium: Any, folder: Path, payloads: Sequence[Payload]) -> list[Payload]:
    """Return the payloads that do nothing of what they try although nothing stops them.

    Args:
        chromium: the browser.
        folder: an empty one.
        payloads: to be tried.
    """
    in_pages = [one for one in payloads if one.effect in (RUNS, ASKS, LEADS, COVERS)]
    seen, covered = looking.raw(chromium, folder, in_pages)
    signs = {RUNS: seen.ran, ASKS: seen.asked, LEADS: seen.asked, COVERS: covered}
    acted = {one.number for one in in_pages if one.number in signs[one.effect]}
    for effect, look in ((TYPESETS, _typeset), (DRAWS, looking.drawn_otherwise)):
        some = [one for one in payloads if one.effect == effect]
        found = look(chromium, folder, [one.text for one in some])
        acted |= {one.number for one, does in zip(some, found, strict=True) if does}
    acted |= {one.number for one in payloads if one.effect == RENDERS and _rendered(one.text)}
    acted |= {one.number for one in payloads if one.effect == FILLS and _filled(one.text)}
    return [one for one in payloads if one.number not in acted]
