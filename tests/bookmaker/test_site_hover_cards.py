"""What the cards over links show: words, theorems and figures, by the address that a link has."""

import json

from bookmaker.site import _hover_cards

GLOSSARY = """<article><dl class="simple glossary"><dt id="term-one">one</dt><dt id="term-uno">uno</dt>
<dd><p>A <a class="reference internal" href="#term-number" id="x">number</a>, {cite}.</p></dd></dl>
</article>"""
CHAPTER = """<article><section id="top"><h1>A</h1>
<div class="proof theorem admonition" id="thm-a"><p class="admonition-title">Theorem 1</p>
<section id="proof-content"><p>If <span class="math">\\(x\\)</span> &lt;b&gt;, see
<a class="reference internal" href="b.html#c">C</a>.</p><div class="math">y</div></section>
</div><p>Later.</p>
<figure class="align-default" id="fig-a"><img alt="A line." src="../_images/a.png" style="width: 1px"/>
<figcaption><p>Up, as <a href="../reports/a.html">the report</a> has it.
<a class="headerlink" href="#fig-a">#</a></p></figcaption></figure></section></article>"""


def test_cards_show_words_theorems_and_figures(tmp_path):
    for name, text in {"book/glossary": GLOSSARY, "notebooks/a": CHAPTER}.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / f"{name}.html").write_text(text)
    _hover_cards.write(tmp_path)
    head, _, data = (tmp_path / _hover_cards.DATA).read_text().partition(" = ")
    cards = json.loads(data.rstrip(";\n"))
    assert head == "window.bookCards"
    assert cards.keys() == {
        "book/glossary.html#term-one",
        "book/glossary.html#term-uno",
        "notebooks/a.html#thm-a",
        "notebooks/a.html#fig-a",
    }
    assert (
        cards["book/glossary.html#term-one"]
        == cards["book/glossary.html#term-uno"]
        == "<p>A number, {cite}.</p>"
    )
    theorem, figure = cards["notebooks/a.html#thm-a"], cards["notebooks/a.html#fig-a"]
    assert (
        "&lt;b&gt;, see\nC." in theorem and "Later" not in theorem and '<div class="math">y</div>' in theorem
    )
    assert "as the report has it." in figure
    assert 'src="_images/a.png"' in figure and "style" not in figure and "#" not in figure
    assert not any(" id=" in card or "<a" in card for card in cards.values())
