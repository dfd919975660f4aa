"""Lines of a built page break inside no figure, and not between a formula and its full stop."""

import re

import pytest
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace

CONF = """
extensions = ["myst_parser", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath"]
root_doc = "index"


def setup(app):
    from bookmaker.site._spaces import HoldTogether

    app.add_post_transform(HoldTogether)
"""
PAGE = """# At ε = 8

At ε = 8 it is 95 % of $n$; as `a = 5 %` ($k$), and $m$ of $x$.

$$y = 5$$.

First it is *one*.
Then it is $z$.
"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    source = tmp_path_factory.mktemp("spaces")
    (source / "conf.py").write_text(CONF)
    (source / "index.md").write_text(PAGE)
    out = source / "out"
    with docutils_namespace():
        Sphinx(
            source, source, out, out / "trees", "html", status=None, freshenv=True, warningiserror=True
        ).build()
    return (out / "index.html").read_text()


def test_figures_keep_their_signs(page):
    assert "<h1>At ε\xa0=\xa08" in page
    assert "At ε\xa0=\xa08 it is 95\xa0% of" in page


def test_code_keeps_its_spaces(page):
    assert "a = 5 %" in page.replace('<span class="pre">', "").replace("</span>", "")


def test_a_formula_keeps_its_mark_and_the_sentence_goes_on(page):
    held = re.findall(r'<span class="together"><span class="math[^"]*">([^<]+)</span>([^<]+)</span>', page)
    assert held == [(r"\(n\)", ";"), (r"\(k\)", "),"), (r"\(x\)", "."), (r"\(z\)", ".")]
    assert re.sub(r"<[^>]+>", "", page).count(r"(\(k\)), and \(m\) of \(x\).") == 1


def test_another_mark_that_reads_alike_stays(page):
    assert "First it is one.\nThen it is \\(z\\).<" in re.sub(r"</?(em|span)[^>]*>", "", page)
