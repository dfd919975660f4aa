"""The glossary is linked where a page first uses a word."""

import re
from pathlib import Path

import pytest
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

from bookmaker.site import _first_use

CONF = """
extensions = ["myst_parser"]
myst_enable_extensions = ["dollarmath"]
root_doc = "index"


def setup(app):
    from bookmaker.site._first_use import LinkFirstUse

    app.add_post_transform(LinkFirstUse)
"""
GLOSSARY = """# Glossary

```{glossary}
checkpoint
  Weights, which a clipping norm has seen.

public checkpoint
  Weights of public text.

clipping
  Scaling.

PLD
  Losses.

leak
  What got out.
```
"""
PAGE = """# A checkpoint in a heading

`checkpoint` in code, $checkpoint$ in math, a [checkpoint](glossary) in a link, re-checkpoint in a word.

Public checkpoints come first, then the checkpoint, the checkpoint again, and "pld" in small letters.
The PLD is a word; a leak is not linked.

An author's own {term}`norm <clipping>`, then clipping.
"""
LINK = re.compile(
    r'<a class="reference internal" href="([^"]+)"><span class="xref std std-term">([^<]+)</span>'
)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    source = tmp_path_factory.mktemp("first_use")
    (source / "book").mkdir()
    (source / "conf.py").write_text(CONF)
    (source / "index.md").write_text("# Home\n\n```{toctree}\nbook/glossary\npage\n```\n")
    (source / "book" / "glossary.md").write_text(GLOSSARY)
    (source / "page.md").write_text(PAGE.replace("(glossary)", "(book/glossary)"))
    out = source / "out"
    with docutils_namespace():
        Sphinx(
            source, source, out, out / "trees", "html", status=None, freshenv=True, warningiserror=True
        ).build()
    return out


def test_each_word_is_linked_once_where_it_is_first_met(site):
    links = LINK.findall((site / "page.html").read_text())
    assert [word for _, word in links] == ["Public checkpoints", "checkpoint", "PLD", "norm"]
    assert [target.rsplit("#")[-1] for target, _ in links] == [
        "term-public-checkpoint",
        "term-checkpoint",
        "term-PLD",
        "term-clipping",
    ]


def test_what_stands_around_a_word_stays(site):
    text = re.sub(r"<[^>]+>", "", (site / "page.html").read_text())
    assert "Public checkpoints come first, then the checkpoint, the checkpoint again" in text
    assert "The PLD is a word; a leak is not linked." in text


def test_an_authors_own_link_counts_as_the_first(site):
    page = (site / "page.html").read_text()
    assert page.count("#term-clipping") == 1


def test_everyday_words_are_words_of_the_glossary():
    glossary = (Path(__file__).parents[2] / "book" / "glossary.md").read_text(encoding="utf-8")
    assert all(re.search(rf"^{word}$", glossary, re.MULTILINE) for word in _first_use.EVERYDAY)


def test_the_glossary_does_not_link_to_itself(site):
    assert not LINK.search((site / "book" / "glossary.html").read_text())
