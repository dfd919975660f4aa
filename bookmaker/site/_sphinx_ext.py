"""Sphinx extension of the book: nothing is loaded from elsewhere, and nothing twice.

MathJax comes from the wheel of sphinx-mathjax-offline. Loaded as an extension, that wheel copies 15 MB;
the pages need the 3 MB listed in `MATHJAX`.
"""

import importlib.util
import re
import shutil
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config

from bookmaker.runner import files
from bookmaker.site import _discussion, _numbers, _pictures

MATHJAX = ("tex-chtml.js", "output/chtml/fonts/woff-v2", "input/tex/extensions", "a11y", "ui/lazy.js", "sre")

# What the theme writes, and what a screen reader can use; a wide table is scrolled by keys. What
# the theme's buttons do is in `book/_static/buttons.js`.
SPOKEN = {
    '<summary><span class="toctree-toggle" role="presentation">': (
        '<summary aria-label="Pages below"><span class="toctree-toggle" aria-hidden="true">'
    ),
    "<th></th>": "<td></td>",
    '<div class="pst-scrollable-table-container">': (
        '<div class="pst-scrollable-table-container" tabindex="0" role="group" aria-label="Table">'
    ),
    '<div role="list" class="citation-list">': '<div class="citation-list">',
    ' role="doc-biblioentry"': "",
    ' onclick="toggleFullScreen()"': "",
    ' onclick="window.print()"': "",
}
_MATH = r'<span class="math notranslate nohighlight">\\\([^<]*\\\)</span>'
_HELD = re.compile(rf'(?<!"unbroken">)(?:[(\[“]{_MATH}[-.,;:!?)\]”’]*|(?<![(\[“]){_MATH}[-.,;:!?)\]”’]+)')
NEW_TAB = re.compile(r'\starget="_blank"(?![^>]*\srel=)')
VALUE = re.compile(r"(?<=[α-ω]) = ")
# The icons' style sheet is enough: the script is 1.5 MB and draws them once more, and browsers warn of fonts
# that are fetched early and not drawn at once, as on a busy computer, or never.
HEAVY = re.compile(
    r"<script[^>]*/fontawesome/[^>]*>\s*</script>"
    r'|<link rel="preload"[^>]*/fontawesome/[^>]*>'
)


def _copy_mathjax(app: Sphinx, error: Exception | None) -> None:
    """Put MathJax beside the pages that were built."""
    if error is not None or app.builder.format != "html":
        return
    source = Path(importlib.util.find_spec("sphinx-mathjax-offline").origin).parent / "static" / "mathjax"
    for name in MATHJAX:
        old, new = source / name, Path(app.outdir, "_static", "mathjax", name)
        new.parent.mkdir(parents=True, exist_ok=True)
        if old.is_dir():
            shutil.copytree(old, new, dirs_exist_ok=True)
        else:
            shutil.copy2(old, new)


def _drop_thebe(app: Sphinx, config: Config) -> None:
    """Disconnect sphinx-thebe, which names a CDN in every page for a button that this book does not have."""
    for listeners in list(app.events.listeners.values()):
        for listener in list(listeners):
            if getattr(listener.handler, "__module__", "").split(".")[0] == "sphinx_thebe":
                app.disconnect(listener.id)


def _launch_if_public(app: Sphinx, config: Config) -> None:
    """Drop the launch buttons of a book whose repository has no address."""
    options = config.html_theme_options
    if not options.get("repository_url"):
        options.pop("launch_buttons", None)


def _discuss_if_there_is_a_place(app: Sphinx, config: Config) -> None:
    """End each page with the link to where readers ask."""
    options = config.html_theme_options
    options["extra_footer"] = options.get("extra_footer", "") + _discussion.link(
        files.config(Path(app.srcdir))
    )


def _launch_chapters_only(
    app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Drop the launch buttons of a further run: the repository holds its chapter, not the page."""
    if page.startswith(_numbers.RUNS):
        buttons = context.get("header_buttons", [])
        context["header_buttons"] = [button for button in buttons if button.get("label") != "launch-buttons"]


def hold_formulas(text: str) -> str:
    """Hold formulas and the signs next to them together: a browser may end a line before a comma.

    What is held together already is left alone: a build also finds pages that an earlier one finished.
    """
    return _HELD.sub(r'<span class="unbroken">\g<0></span>', text)


def _finish(app: Sphinx, error: Exception | None) -> None:
    """Drop what no page needs, and write what a screen reader, a keyboard, and a line's end can use."""
    if error is not None or app.builder.format != "html":
        return
    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        finished = NEW_TAB.sub(r'\g<0> rel="noopener"', HEAVY.sub("", text))
        for old, new in SPOKEN.items():
            finished = finished.replace(old, new)
        finished = hold_formulas(finished)
        if finished != text:
            page.write_text(finished, encoding="utf-8")


def _leave_outputs_to_the_reader(app: Sphinx, doctree: nodes.document) -> None:
    """Keep MathJax out of cell outputs: a dollar sign in generated text is a dollar sign."""
    for node in doctree.findall(nodes.container):
        if "cell_output" in node["classes"]:
            node["classes"] += ["mathjax_ignore", "tex2jax_ignore"]


def hold_values(app: Sphinx, doctree: nodes.document) -> None:
    """Keep a Greek letter and its value on one line: `ε = 8` breaks nowhere."""
    for text in list(doctree.findall(nodes.Text)):
        held = VALUE.sub("\u00a0=\u00a0", text)
        if held != text and not isinstance(text.parent, nodes.literal | nodes.math | nodes.FixedTextElement):
            text.parent.replace(text, nodes.Text(held))


def _tidy_head(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Keep one of each script, as Sphinx 7 emits one that is added late twice, and no style of thebe."""
    styles = context.get("css_files", [])
    context["css_files"] = [css for css in styles if "thebe" not in str(getattr(css, "filename", css))]
    seen, kept = set(), []
    for script in context.get("script_files", []):
        attributes = getattr(script, "attributes", {})
        key = (str(getattr(script, "filename", script) or ""), attributes.get("body"))
        if key not in seen:
            seen.add(key)
            kept.append(script)
    context["script_files"] = kept


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the extension."""
    _numbers.setup(app)
    _pictures.setup(app)
    app.connect("config-inited", _drop_thebe)
    app.connect("config-inited", _launch_if_public)
    app.connect("config-inited", _discuss_if_there_is_a_place)
    app.connect("doctree-read", _leave_outputs_to_the_reader)
    app.connect("doctree-read", hold_values)
    app.connect("html-page-context", _launch_chapters_only, priority=900)
    app.connect("html-page-context", _tidy_head, priority=900)
    app.connect("build-finished", _copy_mathjax)
    app.connect("build-finished", _finish)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
