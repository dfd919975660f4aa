"""The whole way from runs to a site, on toy notebooks and the book's own pages."""

import re
import shutil
import subprocess
import sys

import nbformat
import pytest
import toy_site
import yaml
from patience import LIMIT_SECONDS

from bookmaker.site import _build, _pdf
from bookmaker.site._build import build, causes
from privhelpers.artifacts import write_sealed
from privhelpers.errors import RunFailed

SITE = "runs/toy/site"
# What a page may not load, whatever gets into it later on.
INJECT = """() => {
    window.refused = [];
    document.addEventListener('securitypolicyviolation', (event) => window.refused.push(event.blockedURI));
    const make = (name, properties) => Object.assign(document.createElement(name), properties);
    const add = (name, properties) => document.body.append(make(name, properties));
    add('script', {src: 'http://elsewhere.invalid/a.js'});
    add('img', {src: 'http://elsewhere.invalid/b.png'});
    add('object', {data: 'http://elsewhere.invalid/c'});
    fetch('http://elsewhere.invalid/d').catch(() => null);
}"""


@pytest.fixture(scope="module")
def finished(toy_book, tmp_path_factory):
    """Return a toy book whose site is built; tests that change it take `book`."""
    return shutil.copytree(toy_book, tmp_path_factory.mktemp("toy") / "book")


@pytest.fixture(scope="module")
def public(finished):
    """Build the site without solutions beside the other one; return the folder of each."""
    sealed = (finished / SITE / ".complete").read_bytes()
    made = build(finished, toy_site.jobs(finished), solutions=False)
    assert (finished / SITE / ".complete").read_bytes() == sealed, "the full site is left as it was"
    assert made == finished / "runs/toy/public/_build/html"
    return made.parents[1], finished / SITE


@pytest.fixture
def book(finished, tmp_path):
    return shutil.copytree(finished, tmp_path / "book")


def html(book, name):
    return (book / SITE / "_build" / "html" / f"{name}.html").read_text()


def call(book):
    command = [sys.executable, "-m", "bookmaker.site", "build", "--profile", "toy"]
    return subprocess.run(command, cwd=book, capture_output=True, text=True, timeout=LIMIT_SECONDS)


def edit_prose(book, slug, old, new):
    path = book / "notebooks" / f"{slug}.ipynb"
    source = nbformat.read(path, as_version=4)
    for cell in source.cells:
        cell.source = cell.source.replace(old, new) if cell.cell_type == "markdown" else cell.source
    nbformat.write(source, path)


def test_every_page_is_built_and_the_mark_is_set(finished):
    assert "  ../../toy/site/.sealed\n" in (finished / SITE / ".complete").read_text()
    intro = html(finished, "book/intro")
    assert "recites 9 of the 11 secrets" in re.sub("<[^>]+>", "", intro) and "0.91" in intro
    assert 'class="dataframe"' in intro
    assert (finished / SITE / "_build" / "html" / "_static" / "mathjax" / "tex-chtml.js").is_file()
    assert "Toy private_training (ε\u00a0=\u00a012)" in html(finished, "runs/private_training--dp-eps-12")


def test_a_chapter_has_the_number_of_its_file_and_counts_within_itself(finished):
    text = html(finished, "notebooks/composition")
    assert '<span class="section-number">3. </span>Toy composition' in text
    assert '<span class="caption-number">Fig. 3.1 </span>' in text and ">(3.1)<" in text
    assert not re.search(r'<h[2-6]><span class="section-number">', text)
    assert "3. Toy composition" in re.sub("<[^>]+>", "", html(finished, "book/glossary")), "in the sidebar"
    assert '<span class="caption-number">Fig. 1 </span>' in html(finished, "runs/extraction--public")


def test_a_further_run_is_neither_searched_nor_turned_to(finished):
    index = (finished / SITE / "_build" / "html" / "searchindex.js").read_text()
    assert "Toy extraction" in index and "Toy extraction (" not in index
    for name in ("notebooks/extraction", "notebooks/memorization", "book/references"):
        text = html(finished, name)
        assert "prev-next-area" in text and not re.search(r'class="(?:left-prev|right-next)"[^>]*runs/', text)
    assert 'class="left-prev"' not in html(finished, "runs/extraction--public")


def test_no_page_mentions_thebe_or_has_a_script_twice(finished):
    text = html(finished, "notebooks/extraction")
    assert "thebe" not in text.lower()
    inline = re.findall(r"<script>(.+?)</script>", text, re.DOTALL)
    assert len(inline) == len(set(inline)) > 3


@pytest.mark.wrong_numbers
def test_every_table_that_can_be_scrolled_is_reached_by_keys_and_has_a_name(finished):
    """Whether a table is wider than its page depends on the fonts of the reader."""
    pages = {path.name: path.read_text() for path in (finished / SITE / "_build" / "html").rglob("*.html")}
    opening = r'<div[^>]*class="pst-scrollable-table-container"[^>]*>'
    boxes = [(name, box) for name, text in pages.items() for box in re.findall(opening, text)]
    assert "run_card.html" in dict(boxes)
    assert '<div aria-label="Table" role="group" tabindex="0">' in pages["extraction.html"]
    assert [name for name, text in pages.items() if re.search(r"<div>\s*<table|<style scoped", text)] == []
    assert [one for one in boxes if 'tabindex="0" role="group" aria-label="Table"' not in one[1]] == []


@pytest.mark.parametrize(("slug", "page"), [("your_model", "report.html"), ("hipaa", "sheet.html")])
def test_what_a_chapter_wrote_is_beside_it_as_its_run_left_it(finished, public, slug, page):
    """Byte for byte, whatever the site does to its pages; nothing of it is searched, or in the chapter."""
    kept = (finished / "runs/toy/artifacts" / slug / page).read_bytes()
    word, link = {"your_model": "Quokka", "hipaa": "Wombat"}[slug], f'<a href="../reports/{slug}.html">'
    for folder in public:
        made = folder / "_build" / "html"
        assert {path.name for path in (made / "reports").iterdir()} == {"your_model.html", "hipaa.html"}
        assert (made / "reports" / f"{slug}.html").read_bytes() == kept
        chapter = (made / "notebooks" / f"{slug}.html").read_text()
        assert chapter.count(link) == 1 and word not in chapter
        assert word.lower() not in (made / "searchindex.js").read_text().lower()


SOLVED = ("One and one make two", "one_and_one", "the sum: 2", "uodlibet", "Show the solution", "{solution}")


def holding(folder, words):
    """Return the files below a folder that hold any of the words, in whatever bytes they are written."""
    files = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {
        path.relative_to(folder).as_posix()
        for path, data in files.items()
        if any(word.encode() in data for word in words)
    }


def test_a_site_without_solutions_holds_none_in_any_file_and_leads_to_no_repository(public):
    made, full = public
    source = "_build/html/_sources/notebooks/hipaa.ipynb"
    assert {"_build/html/notebooks/hipaa.html", source, "_build/html/searchindex.js"} <= holding(full, SOLVED)
    assert holding(made, SOLVED) == set()
    assert "Add two numbers" in (made / source).read_text(), "the exercise stays"
    assert yaml.safe_load((made / "_config.yml").read_text())["repository"]["url"] == ""
    assert not any(holding(folder, ["Numbat", "sheet_key"]) for folder in public), "nor the key of the sheet"


def test_a_quiz_is_at_the_end_of_its_chapter_and_of_no_other(finished):
    text = html(finished, "notebooks/comparison")
    assert text.count('class="quiz-question') == 2 and text.index("quiz-question") > text.index("A toy.")
    assert "Is an AUC of 0.91" in re.sub("<[^>]+>", "", text) and "Yes, by 0.41." in text
    assert text.count("quiz-right") == 2 and text.count("is wrong.</strong>") == 4
    assert "quiz-question" not in html(finished, "notebooks/hipaa")


@pytest.mark.browser
def test_everything_works_under_the_policy_and_nothing_breaks_it(finished, chromium):
    folder = finished / SITE / "_build" / "html"
    for path in folder.rglob("*.html"):
        if "_static" not in path.parts:
            assert not re.search(r"<[^>]*\son\w+=", path.read_text()), path
    said = []
    page = chromium.new_page(viewport={"width": 1280, "height": 900})
    page.on("console", lambda one: said.append(one.text) if one.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    server = _pdf._Server(folder)
    page.route("**/*", server.answer)
    page.goto(f"{_pdf.ADDRESS}index.html")
    page.wait_for_url("**/book/intro.html")
    page.goto(f"{_pdf.ADDRESS}notebooks/hipaa.html")
    page.evaluate("() => MathJax.startup.promise.then(() => true)")
    assert page.locator("article mjx-container").count() == page.locator(".math").count() > 1
    refused = page.evaluate("() => MathJax.tex2chtml('\\\\href{javascript:x()}{y}').outerHTML")
    assert "<a " not in refused and "href=" not in refused
    page.evaluate("() => { window.print = window.toggleFullScreen = () => { window.pressed = true; } }")
    page.locator(".btn-download-pdf-button").first.dispatch_event("click")
    assert page.evaluate("() => window.pressed")
    page.goto(f"{_pdf.ADDRESS}search.html?q=hipaa")
    page.locator("#search-results li a").first.wait_for()
    assert said == []
    page.evaluate(INJECT)
    page.wait_for_function("() => window.refused.length >= 4")
    server.check()
    page.close()


def test_a_new_address_and_changed_pages_reach_the_site_and_the_past_is_removed(book):
    for page in ("notebooks/private_training", "book/intro"):
        assert not any(word in html(book, page) for word in ("mybinder", "Ask a question"))
    config = book / "_config.yml"
    text = config.read_text().replace('url: "" # such as https://', "url: https://")
    config.write_text(text.replace("  # jupyterhub_url", "  jupyterhub_url"))
    edit_prose(book, "hipaa", "# Toy hipaa", "# A new title")
    (book / "params/toy.yml").write_text(toy_site.PROFILE.replace(", 12", ""))
    toy_site.record_files(book)
    build(book, toy_site.jobs(book))
    assert "A new title" in html(book, "book/glossary") and not list((book / SITE).rglob("*dp-eps-12*"))
    shown = html(book, "notebooks/private_training")
    path = "launch/notebooks/private_training.ipynb"
    assert f"mybinder.org/v2/gh/example/privai-leak/launch?urlpath=lab/tree/{path}" in shown
    assert f"colab.research.google.com/github/example/privai-leak/blob/launch/{path}" in shown
    assert "hub.example.edu/hub/user-redirect/git-pull?repo=https" in shown and "branch=launch" in shown
    assert "mybinder" not in html(book, "runs/private_training--dp-eps-0.5")
    link = '<a href="https://forum.example.org/c/privacy">Ask a question about this page</a>'
    for page in ("notebooks/private_training", "runs/private_training--dp-eps-0.5", "book/intro", "search"):
        assert html(book, page).count(link) == 1


def warns(book):
    edit_prose(book, "hipaa", "A sentence that can change:", "See {ref}`nowhere`.")


def lacks_words(book):
    path = book / "notebooks/synthetic_records.ipynb"
    source = nbformat.read(path, as_version=4)
    for cell in source.cells:
        cell.metadata.get("mystnb", {}).pop("image", None)
    nbformat.write(source, path)


def failed_run(book):
    path = book / "runs/toy/notebooks/hipaa.ipynb"
    run = nbformat.read(path, as_version=4)
    run.cells[4].outputs = [nbformat.v4.new_output("error", ename="ValueError", evalue="no", traceback=[])]
    nbformat.write(run, path)
    toy_site.record_files(book)


def edited_page(book):
    path = book / "runs/toy/notebooks/comparison.ipynb"
    path.write_text(path.read_text().replace("0.91", "0.83"))


def edited_report(book):
    (book / "runs/toy/artifacts/your_model/report.html").write_text("<p>Nothing was found.</p>")


def other_parameters(book):
    sentinel = book / "runs/toy/artifacts/hipaa/run.json"
    write_sealed(sentinel, sentinel.read_bytes().replace(b'"profile": "toy"', b'"profile": "other"'))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (warns, r"notebooks/hipaa\.ipynb, cell 3, line 1: .*nowhere"),
        (lacks_words, "synthetic_records, code cell 4"),
        (failed_run, "hipaa: code cell 3 raised ValueError: no"),
        (edited_page, "comparison: damaged"),
        (edited_report, "your_model: damaged"),
        (other_parameters, "hipaa: to run: changed profile"),
    ],
)
def test_a_site_that_cannot_be_published_says_why_in_one_line_and_loses_its_mark(book, change, told):
    change(book)
    done = call(book)
    assert done.returncode in (1, 2) and done.stderr.count("\n") == 1 and str(book) not in done.stderr
    assert re.match(rf"(failed|refused): .*{told}", done.stderr), done.stderr
    assert not (book / SITE / ".complete").exists()


@pytest.mark.parametrize("file", ["runs/toy/manifest.json", "book/intro.md"])
def test_a_site_of_what_changed_meanwhile_is_not_published(book, monkeypatch, file):
    def changed(*_):
        write_sealed(book / file, b"{}")
        return []

    monkeypatch.setattr(_build, "_jupyter_book", lambda root, site: None)
    monkeypatch.setattr(_build, "_finish", lambda root, plan, html: None)
    monkeypatch.setattr(_build._checks, "findings", changed)
    with pytest.raises(RunFailed, match=r"while (its|the|their) site was built"):
        build(book, toy_site.jobs(book), solutions=False)
    assert not (book / "runs/toy/public/.complete").exists()


def test_causes_are_short_and_without_this_machine(tmp_path):
    site = tmp_path / "runs" / "toy" / "site"
    log = (
        f"\x1b[91m{site}/book/intro.md:12: WARNING: no such thing\x1b[39;49;00m\n"
        f"{site}/notebooks/a.ipynb:30002: ERROR: broken\nWARNING: the theme is odd\nbuild finished\n"
    )
    assert causes(log, site) == [
        "book/intro.md:12: no such thing",
        "notebooks/a.ipynb, cell 3, line 1: broken",
        "the site: the theme is odd",
    ]


def test_an_old_address_leads_to_the_page_that_it_named(finished):
    site = finished / SITE / "_build" / "html"
    for old, new in (
        ("notebooks/06a_public_pretraining", "public_pretraining"),
        ("runs/08_dpsgd_training--dp-eps-12", "private_training--dp-eps-12"),
    ):
        assert f'url={new}.html"' in (site / f"{old}.html").read_text()
        assert (site / old).with_name(f"{new}.html").is_file()
