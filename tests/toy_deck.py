"""A page of a chapter as the site shows it, and a site that holds it, made up in microseconds."""

import base64
from pathlib import Path

import toy_site

FIGURE = (
    '<figure id="fig"><img alt="A line." src="../_images/a.png" style="width: 9px">'
    '<figcaption><p><span class="caption-text">It rises.</span><a class="headerlink" href="#fig">#</a></p>'
    "</figcaption></figure>"
)
HEAD = (
    '<head><meta charset="utf-8"><script>window.MathJax = {"tex": {}}</script></head>'
    '<body><article><section id="toy"><span id="nb-toy"></span><h1>1. Toy</h1>'
)
OPENING = """<p>Is it safe?
It is asked often.
See <a class="reference internal" href="coins.html#nb">Coins</a>.</p>
<div class="tip admonition"><p class="admonition-title">You will</p>
<ul><li><p>add two numbers.</p></li></ul></div>
<div class="note admonition"><p class="admonition-title">Before you start</p><p>Reading 3 minutes.</p></div>
<div class="warning admonition"><p class="admonition-title">Guarantee</p><p>Formal guarantee: none.</p></div>
"""
CLOSING = """<section id="exercises"><h2>Exercises</h2>
<div class="exercise admonition"><p class="admonition-title">Exercise 1.1 (A sum)</p>
<section id="exercise-content"><p>Add two numbers.</p></section></div>
<div class="solution dropdown admonition"><p class="admonition-title">Solution</p>
<section><p>Say quodlibet.</p></section></div>
<div class="cell tag_solution tag_hide-cell"><div class="cell_input"><pre>one_and_one = 2</pre></div></div>
</section>
<section id="shown"><h2>What this run shows</h2><p>It is a list.</p>
<div class="cell tag_claims"><div class="cell_output">
<ul class="claims"><li>✓ Take this away.</li></ul></div></div></section>
<section id="quiz"><span></span><h2>Quiz</h2><p>Choose.</p>
<div class="quiz-question"><p><strong>1.</strong> What is one and one?</p>
<ol><li><p>Two.</p></li><li><p>Three.</p></li></ol>
<details><summary>Answer</summary>
<div class="quiz-why quiz-right"><p><strong>A is right.</strong> It is.</p></div>
<div class="quiz-why"><p><strong>B is wrong.</strong> It is not.</p></div></details></div></section>
"""


def cell(source: str, shown: str = "", *tags: str) -> str:
    """Return a cell: its code, and the HTML of what it showed."""
    kinds = " ".join(["cell", *(f"tag_{tag}" for tag in tags)])
    shown = f'<div class="cell_output">{shown}</div>' if shown else ""
    listing = (
        f'<div class="highlight-python"><div class="highlight"><pre><span></span>{source}\n</pre></div></div>'
    )
    return f'<div class="{kinds}"><div class="cell_input">{listing}</div>{shown}</div>'


def section(title: str, *blocks: str, level: int = 2) -> str:
    """Return a section of a chapter."""
    heading = f'<h{level}>{title}<a class="headerlink" href="#x">#</a></h{level}>'
    return f'<section id="x">{heading}{"".join(blocks)}</section>'


def page(*sections: str, opening: str = "") -> str:
    """Return the page of a chapter with some sections."""
    article = "".join([HEAD, OPENING, opening, *sections, CLOSING])
    return f"<!DOCTYPE html><html>{article}</section></article></body></html>"


def site(folder: Path, text: str) -> Path:
    """Write a site with one page, `notebooks/toy.html`, and what every page of the book has beside it."""
    for name in ("notebooks", "_images", "_static/mathjax"):
        (folder / name).mkdir(parents=True)
    (folder / "notebooks" / "toy.html").write_text(text, encoding="utf-8")
    (folder / "_images" / "a.png").write_bytes(base64.b64decode(toy_site.png(1300, 580)))
    (folder / "_static" / "pygments.css").write_text(".highlight { color: inherit }\n")
    (folder / "_static" / "favicon.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    (folder / "_static" / "mathjax" / "tex-chtml.js").write_text('"use strict";\n')
    return folder
