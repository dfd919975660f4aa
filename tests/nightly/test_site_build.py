"""The whole way from runs to a site, on toy notebooks and the book's own pages."""

import contextlib
import re
import shutil
import subprocess
import sys

import nbformat
import pytest
import toy_site
import yaml
from patience import LIMIT_SECONDS

from bookmaker.runner import published, verify
from bookmaker.site import _build, _pdf
from bookmaker.site._build import _titles, build, build_first, causes
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
def finished(tmp_path_factory):
    """A toy book whose site is built; tests that change it take `book`."""
    root = toy_site.build(tmp_path_factory.mktemp("toy") / "book")
    build(root, toy_site.jobs(root))
    return root


@contextlib.contextmanager
def put_back(finished, place):
    """Lend the built book and put it back: Sphinx would read every page of a copy, which lies elsewhere."""
    kept = shutil.copytree(finished, place / "kept")
    try:
        yield finished
    finally:
        shutil.rmtree(finished)
        shutil.copytree(kept, finished)


@pytest.fixture
def book(finished, tmp_path):
    """Lend the built book to one test."""
    with put_back(finished, tmp_path) as lent:
        yield lent


def rebuild(book):
    return build(book, toy_site.jobs(book))


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
    assert (
        "recites 9 of the 11 secrets" in re.sub("<[^>]+>", "", intro) and "0.91" in intro and "0.51" in intro
    )
    assert 'class="dataframe"' in intro
    assert (finished / SITE / "_build" / "html" / "_static" / "mathjax" / "tex-chtml.js").is_file()
    assert "Toy private_training (ε = 12)" in html(finished, "runs/private_training--dp-eps-12")


def test_a_chapter_has_the_number_of_its_file_and_counts_within_itself(finished):
    text = html(finished, "notebooks/composition")
    assert '<span class="section-number">3. </span>Toy composition' in text
    assert '<span class="caption-number">Fig. 3.1 </span>' in text and ">(3.1)<" in text
    assert not re.search(r'<h[2-6]><span class="section-number">', text)
    assert "3. Toy composition" in re.sub("<[^>]+>", "", html(finished, "book/glossary")), "in the sidebar"
    assert '<span class="caption-number">Fig. 1 </span>' in html(finished, "notebooks/hipaa")
    assert '<span class="caption-number">Fig. 1 </span>' in html(finished, "runs/extraction--public")


def test_a_further_run_is_neither_searched_nor_turned_to(finished):
    index = (finished / SITE / "_build" / "html" / "searchindex.js").read_text()
    assert "Toy extraction" in index and "Toy extraction (" not in index
    for name in ("notebooks/extraction", "notebooks/memorization", "book/references"):
        text = html(finished, name)
        assert "prev-next-area" in text and not re.search(r'class="(?:left-prev|right-next)"[^>]*runs/', text)
    assert 'class="left-prev"' not in html(finished, "runs/extraction--public")


def place(text):
    return re.search('<p class="book-place">(.+?)</p>', text)[1]


def test_a_page_says_where_it_stands_and_what_the_next_one_asks(finished):
    text = html(finished, "notebooks/composition")
    assert place(text) == "Chapter 3, in part 1 of 6: Foundations"
    following = re.search(r'class="right-next".*?</a>', text, re.DOTALL)[0]
    assert ">Toy hypothesis_testing<span" in following and ">What is it?</span>" in following
    assert place(html(finished, "runs/extraction--public")) == "In part 3 of 6: Attacks"
    assert place(html(finished, "book/syllabus")) == "In part 6 of 6: Back matter"
    intro = html(finished, "book/intro")
    assert "book-place" not in intro and ">What is it?</span>" in intro
    assert "book-asks" not in html(finished, "notebooks/hipaa"), "a page without a question follows"


def test_no_page_mentions_thebe_or_has_a_script_twice(finished):
    text = html(finished, "notebooks/extraction")
    assert "thebe" not in text.lower()
    inline = re.findall(r"<script>(.+?)</script>", text, re.DOTALL)
    assert len(inline) == len(set(inline)) > 3


@pytest.mark.wrong_numbers
def test_every_table_that_can_be_scrolled_is_reached_by_keys_and_has_a_name(finished):
    """Whether a table is wider than its page depends on the fonts of the reader."""
    pages = {path.name: path.read_text() for path in (finished / SITE / "_build" / "html").rglob("*.html")}
    boxes = [
        (name, box)
        for name, text in pages.items()
        for box in re.findall(r'<div[^>]*class="pst-scrollable-table-container"[^>]*>', text)
    ]
    assert "run_card.html" in dict(boxes)
    assert '<div aria-label="Table" role="group" tabindex="0">' in pages["extraction.html"]
    assert [name for name, text in pages.items() if re.search(r"<div>\s*<table|<style scoped", text)] == []
    assert [one for one in boxes if 'tabindex="0" role="group" aria-label="Table"' not in one[1]] == []


REPORT = "runs/toy/artifacts/your_model/report.html"
SHEET = "runs/toy/artifacts/hipaa/sheet.html"
COPY = "reports/your_model.html"


@pytest.mark.parametrize(
    ("slug", "page", "word"), [("your_model", REPORT, "Quokka"), ("hipaa", SHEET, "Wombat")]
)
def test_what_a_chapter_wrote_lies_beside_it_as_its_run_left_it(finished, public, slug, page, word):
    """Byte for byte, whatever the site does to its pages; nothing of it is searched, or in the chapter."""
    kept, link = (finished / page).read_bytes(), f'<a href="../reports/{slug}.html">'
    assert word.encode() in kept
    for folder, _ in (public, public[::-1]):
        made = folder / "_build" / "html"
        assert {path.name for path in (made / "reports").iterdir()} == {"your_model.html", "hipaa.html"}
        assert (made / "reports" / f"{slug}.html").read_bytes() == kept
        chapter = (made / "notebooks" / f"{slug}.html").read_text()
        assert chapter.count(link) == 1 and word not in chapter and "frame-src" not in chapter
        assert word.lower() not in (made / "searchindex.js").read_text().lower()
        assert sum(link in path.read_text() for path in (made / "notebooks").glob("*.html")) == 1
        assert f"_build/html/reports/{slug}.html" in (folder / published.SEALED).read_text()


def test_the_key_of_a_sheet_is_in_no_site(finished, public):
    assert b"Numbat" in (finished / SHEET).with_name("sheet_key.json").read_bytes()
    assert not any(holding(folder, ["Numbat", "sheet_key"]) for folder in public)


def test_a_report_that_somebody_edited_is_in_no_site(book):
    (book / REPORT).write_text("<p>Nothing was found.</p>")
    with pytest.raises(RunFailed, match=r"your_model: damaged: report\.html: its bytes changed"):
        rebuild(book)
    assert not (book / SITE / ".complete").exists()


SOLVED = (
    "One and one make two",
    "one_and_one",
    "the sum: 2",
    "Quodlibet",
    "quodlibet",
    "Show the solution",
    "{solution}",
)


@pytest.fixture(scope="module")
def public(finished):
    """The site without solutions, beside the other one; returns the folder of each."""
    sealed = (finished / SITE / ".complete").read_bytes()
    made = build(finished, toy_site.jobs(finished), solutions=False)
    assert (finished / SITE / ".complete").read_bytes() == sealed, "the full site is left as it was"
    assert made == finished / "runs/toy/public/_build/html"
    return made.parents[1], finished / SITE


def holding(folder, words):
    """Return the files below a folder that hold any of the words, in whatever bytes they are written."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {
        p.relative_to(folder).as_posix() for p in files if any(w.encode() in p.read_bytes() for w in words)
    }


def test_a_site_without_solutions_holds_none_in_any_file(public):
    made, full = public
    index, source = "_build/html/searchindex.js", "_build/html/_sources/notebooks/hipaa.ipynb"
    known = holding(full, SOLVED)
    assert {"_build/html/notebooks/hipaa.html", source, "notebooks/hipaa.ipynb"} <= known
    assert index in known and (made / index).is_file(), (
        "what a solution says can be searched in the other site"
    )
    assert holding(made, SOLVED) == set()
    for name in (source, "_build/html/notebooks/hipaa.html"):
        assert "Add two numbers" in (made / name).read_text(), "the exercise stays"


def test_a_site_without_solutions_leads_to_no_repository(public):
    book = public[0].parents[2]
    settings = yaml.safe_load((public[0] / "_config.yml").read_text())
    assert settings["repository"]["url"] == ""
    assert settings["html"] == yaml.safe_load((book / "_config.yml").read_text())["html"]


def test_both_sites_are_verified_each_by_itself(public, capsys):
    book = public[0].parents[2]
    assert verify.verify(book, toy_site.jobs(book))
    assert "site, public" in capsys.readouterr().out
    page = public[0] / "_build/html/notebooks/hipaa.html"
    kept = page.read_bytes()
    page.write_bytes(kept + b" ")
    assert list(verify.damaged(book, toy_site.jobs(book))) == [public[0] / ".complete"]
    page.write_bytes(kept)


def test_a_quiz_stands_at_the_end_of_its_chapter_and_of_no_other(finished):
    text = html(finished, "notebooks/comparison")
    assert text.count('class="quiz-question') == 2 and text.index("quiz-question") > text.index("A toy.")
    assert "Is an AUC of 0.91" in re.sub("<[^>]+>", "", text) and "Yes, by 0.41." in text
    assert text.count("quiz-right") == 2 and text.count("is wrong.</strong>") == 4
    assert "std-term" not in text[text.index("quiz-question") :], "no link stands in a label"
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
    before = page.evaluate("() => document.documentElement.dataset.mode")
    page.locator(".theme-switch-button").first.click()
    assert page.evaluate("() => document.documentElement.dataset.mode") != before
    page.evaluate("() => { window.print = window.toggleFullScreen = () => { window.pressed = true; } }")
    for button in (".btn-fullscreen-button", ".btn-download-pdf-button"):
        page.evaluate("() => { window.pressed = false; }")
        page.locator(button).first.dispatch_event("click")
        assert page.evaluate("() => window.pressed"), button
    solution = page.locator(".solution.dropdown").first
    assert not solution.locator("p").last.is_visible()
    solution.locator("button").click()
    assert solution.locator("p").last.is_visible()
    folded = page.locator("details.hide").first
    folded.locator("summary").first.click()
    assert folded.evaluate("one => one.open")
    page.goto(f"{_pdf.ADDRESS}search.html?q=hipaa")
    page.locator("#search-results li a").first.wait_for()
    page.goto(f"{_pdf.ADDRESS}book/explore.html")
    assert page.locator("#explore-roc svg path").count() == 3
    assert said == []
    page.evaluate(INJECT)
    page.wait_for_function("() => window.refused.length >= 4")
    server.check()
    page.close()


def pictures(book):
    """Return the names of the pictures of the site."""
    return {path.name for path in (book / SITE / "_build" / "html" / "_images").iterdir()}


def read_pages(book):
    """Return when Sphinx last read each page, by the page's name."""
    trees = book / SITE / "_build" / ".doctrees"
    return {str(path.relative_to(trees)): path.stat().st_mtime_ns for path in trees.rglob("*.doctree")}


HOSTILE = "</pre><script>alert(1)</script> $x$ {ref}`a` \u202e\x1b[31m <b onmouseover='x()'>"


@pytest.fixture(scope="module")
def edited(finished, tmp_path_factory):
    """Build the book again after three edits; return pages, and when each was read before and after."""
    with put_back(finished, tmp_path_factory.mktemp("edited")) as book:
        before, old = read_pages(book), pictures(book)
        edit_prose(book, "hipaa", "A sentence that can change:", "Another sentence:")
        quoted = book / "runs/toy/notebooks/comparison.ipynb"
        text = quoted.read_text().replace("0.91", "0.83")
        quoted.write_text(text.replace(toy_site.png(60, 30), toy_site.png(70, 30)))
        path = book / "runs/toy/notebooks/extraction/baseline.ipynb"
        run = nbformat.read(path, as_version=4)
        run.cells[4].outputs = [
            nbformat.v4.new_output("stream", text=HOSTILE),
            toy_site.show(text_plain=HOSTILE),
        ]
        nbformat.write(run, path)
        toy_site.record_files(book)
        rebuild(book)
        names = ("notebooks/hipaa", "notebooks/extraction", "book/intro")
        pages = {name: html(book, name) for name in names}
        return pages, before, read_pages(book), old, pictures(book)


def test_a_changed_page_is_read_again_and_no_other_chapter(edited):
    pages, before, after, *_ = edited
    again = {name for name in after if after[name] != before.get(name)}
    assert "Another sentence:" in pages["notebooks/hipaa"]
    changed = [f"notebooks/{slug}.doctree" for slug in ("comparison", "extraction", "hipaa")]
    assert sorted(name for name in again if name.startswith("notebooks")) == changed


def test_a_changed_number_reaches_the_page_that_quotes_it(edited):
    text = edited[0]["book/intro"]
    assert "0.83" in text and "0.91" not in text


def test_a_picture_that_no_page_shows_any_more_is_removed(edited):
    *_, old, new = edited
    assert len(old - new) == len(new - old) == 1


def test_what_a_model_writes_arrives_as_text(edited):
    text = edited[0]["notebooks/extraction"]
    assert text.count("alert") == 2 and "<script>alert" not in text and "<b onmouseover" not in text
    assert "\u202e" not in text and "\\u202e" in text
    assert "mathjax_ignore" in re.search(r'<div class="cell_output[^"]*"', text)[0]


@pytest.fixture(scope="module")
def renewed(finished, tmp_path_factory):
    """Build the book again with a new title, an address, other pictures, one model less and an edited report.

    Returns its pages, the names of its pictures before and after, what is left of the model, and what was
    said of the report.
    """
    with put_back(finished, tmp_path_factory.mktemp("renewed")) as book:
        page = html(book, "notebooks/private_training")
        assert "mybinder" not in page and "colab" not in page
        config = book / "_config.yml"
        text = config.read_text().replace('url: "" # such as https://', "url: https://")
        config.write_text(text.replace("  # jupyterhub_url", "  jupyterhub_url"))
        edit_prose(book, "hipaa", "# Toy hipaa", "# A new title")
        edit_prose(book, "synthetic_notes", "What is it?", "Who are <they>?")
        copy = book / SITE / "_build/html" / COPY
        copy.write_text(copy.read_text().replace("Toy", "My"))
        damage = published.site_damage(book / SITE)
        old = pictures(book)
        for run in (book / "runs/toy/notebooks").rglob("*.ipynb"):
            text = run.read_text().replace(toy_site.png(), toy_site.png(50, 30))
            run.write_text(text.replace(toy_site.png(60, 30), toy_site.png(70, 30)))
        toy_site.record_files(book)
        fewer = [job for job in toy_site.jobs(book) if job.model != "dp-eps-12"]
        published.collect(book, fewer)
        build(book, fewer)
        names = ("book/glossary", "notebooks/private_training", "runs/private_training--dp-eps-0.5")
        names += ("book/ethics", COPY.removesuffix(".html"))
        left = list((book / SITE).rglob("*dp-eps-12*"))
        return {name: html(book, name) for name in names}, old, pictures(book), left, damage


def test_a_report_of_the_site_that_somebody_edited_is_noticed_and_taken_from_its_run_again(renewed):
    pages, *_, damage = renewed
    assert COPY in damage and pages[COPY.removesuffix(".html")] == toy_site.REPORT


def test_pages_and_pictures_of_the_past_are_removed(renewed):
    _, old, new, left, _ = renewed
    # The home page's picture keeps its name, under whatever run.
    assert old & new == {"result.png"}
    assert left == []


def test_a_changed_question_reaches_the_page_before(renewed, tmp_path):
    assert ">Who are &lt;they&gt;?</span>" in renewed[0]["book/ethics"]
    page, known = nbformat.v4.new_notebook(), set()
    (tmp_path / "notebooks").mkdir()
    for question in ("What is it?", "What was it?"):
        page.metadata["question"] = question
        nbformat.write(page, tmp_path / "notebooks" / "a.ipynb")
        known.add(_titles(tmp_path))
    assert len(known) == 2, "no build takes the site of the other question for its own"


def test_a_changed_title_and_a_new_address_of_the_book_reach_every_page(renewed):
    pages, page = renewed[0], "notebooks/private_training"
    assert "A new title" in pages["book/glossary"]
    shown = pages[page]
    path = f"launch/{page}.ipynb"
    assert f"mybinder.org/v2/gh/example/privai-leak/launch?urlpath=lab/tree/{path}" in shown
    assert f"colab.research.google.com/github/example/privai-leak/blob/launch/{path}" in shown
    assert "hub.example.edu/hub/user-redirect/git-pull?repo=https" in shown and "branch=launch" in shown
    further = pages["runs/private_training--dp-eps-0.5"]
    assert "mybinder" not in further and "colab" not in further


def test_a_warning_is_a_failure_that_names_page_and_cause(book):
    edit_prose(book, "hipaa", "A sentence that can change:", "See {ref}`nowhere`.")
    done = call(book)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert re.match(r"failed: .*notebooks/hipaa\.ipynb, cell 3, line 1: .*nowhere", done.stderr)
    assert str(book) not in done.stderr
    # Nothing is left that the next build could go on from, and count as built without reading the page.
    assert not (book / SITE / ".complete").exists()
    assert not (book / SITE / "_build").exists()


def test_a_picture_without_alt_text_is_a_refusal(book):
    path = book / "notebooks/synthetic_records.ipynb"
    source = nbformat.read(path, as_version=4)
    for cell in source.cells:
        cell.metadata.get("mystnb", {}).pop("image", None)
    nbformat.write(source, path)
    with pytest.raises(
        RunFailed, match="synthetic_records, code cell 4: shows a picture without a description"
    ):
        rebuild(book)
    assert not (book / SITE / ".complete").exists()


def test_a_file_in_the_place_of_a_folder_of_the_site_is_removed(tmp_path, monkeypatch):
    """Sphinx said nothing of it but a line of signs."""
    site = tmp_path / SITE
    site.mkdir(parents=True)
    for name in ("_build", "_failed"):
        (site / name).write_text("a file")

    def run(*_, **__):
        assert not (site / "_build").exists() and not (site / "_failed").exists()
        (site / "_build").mkdir()
        return subprocess.CompletedProcess([], 1, "=====\nno room\n=====\n", "")

    monkeypatch.setattr(subprocess, "run", run)
    with (
        pytest.raises(RunFailed, match=f"^the site does not build: no room; see {SITE}"),
        _build._kept_out_of_sight(site),
    ):
        _build._jupyter_book(tmp_path, site)
    assert (site / "_failed").is_dir() and not (site / "_build").exists()


def test_a_failed_run_takes_the_mark_away(book):
    path = book / "runs/toy/notebooks/hipaa.ipynb"
    run = nbformat.read(path, as_version=4)
    run.cells[4].outputs = [nbformat.v4.new_output("error", ename="ValueError", evalue="no", traceback=[])]
    nbformat.write(run, path)
    toy_site.record_files(book)
    done = call(book)
    assert done.returncode == 1
    assert done.stderr == "failed: hipaa: code cell 3 raised ValueError: no\n"
    assert not (book / SITE / ".complete").exists()


def test_a_run_of_other_parameters_is_refused(book):
    (book / "params" / "toy.yml").write_text(toy_site.PROFILE.replace("7", "6"))
    done = call(book)
    assert done.returncode == 2 and "dp-eps-6" in done.stderr
    sentinel = book / "runs/toy/artifacts/hipaa/run.json"
    text = sentinel.read_text().replace('"profile": "toy"', '"profile": "other"')
    write_sealed(sentinel, text.encode())
    (book / "params" / "toy.yml").write_text(toy_site.PROFILE)
    assert "hipaa: to run: changed profile; run `make book PROFILE=toy`" in call(book).stderr


@pytest.mark.parametrize(
    "file, told",
    [
        ("runs/toy/manifest.json", "other runs were made while their site was built"),
        ("book/intro.md", "its sources changed while the site was built"),  # and may be changed back later
    ],
)
def test_a_site_of_what_changed_meanwhile_is_not_published(public, book, monkeypatch, file, told):
    def changed(*_):
        write_sealed(book / file, b"{}")
        return []

    monkeypatch.setattr(_build, "_jupyter_book", lambda root, site: None)
    monkeypatch.setattr(_build._checks, "findings", changed)
    cure = "run `make book PROFILE=toy SOLUTIONS=no` again"
    with pytest.raises(RunFailed, match=f"{told}; {cure}"):
        build(book, toy_site.jobs(book), solutions=False)
    assert not (book / "runs/toy/public/.complete").exists()


def test_while_first_chapters_are_built_again_nobody_is_shown_them(book, monkeypatch):
    def stopped(*_, **__):
        raise RunFailed("stopped")

    (book / SITE / published.FIRST).touch()
    monkeypatch.setattr(_build, "_jupyter_book", stopped)
    with pytest.raises(RunFailed, match="stopped"):
        build_first(book, toy_site.jobs(book))
    assert not (book / SITE / published.FIRST).exists()


def test_a_page_that_somebody_edited_is_not_published(book):
    path = book / "runs/toy/notebooks/comparison.ipynb"
    path.write_text(path.read_text().replace("0.91", "0.83"))
    done = call(book)
    assert done.returncode == 1 and not (book / SITE / ".complete").exists()
    assert "comparison: damaged: runs/toy/notebooks/comparison.ipynb changed after the run" in done.stderr


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
        ("notebooks/12_gradient_leakage", "gradient_inversion"),
        ("runs/08_dpsgd_training--dp-eps-12", "private_training--dp-eps-12"),
    ):
        assert f'url={new}.html"' in (site / f"{old}.html").read_text()
        assert (site / old).with_name(f"{new}.html").is_file()
    numbered = [
        path.name for path in (site / "notebooks").glob("[0-9]*.html") if "url=" not in path.read_text()
    ]
    assert not numbered, "no page's own address holds a number"


@pytest.fixture(scope="module")
def first(finished, tmp_path_factory):
    """Build a site while one run is missing, and the whole one over it; return what each held.

    These are pages of the first, whether it was complete, and the pages of the whole one by their paths.
    """
    with put_back(finished, tmp_path_factory.mktemp("first")) as book:
        sentinel = book / {job.slug: job for job in toy_site.jobs(book)}["auditing"].sentinel
        kept = sentinel.read_bytes()
        sentinel.unlink()
        shutil.rmtree(book / SITE)
        build_first(book, toy_site.jobs(book))
        names = ("notebooks/anonymization", "notebooks/auditing", "book/intro", "book/course_card")
        pages, complete = {name: html(book, name) for name in names}, (book / SITE / ".complete").exists()
        sentinel.write_bytes(kept)
        rebuild(book)
        whole = {path: path.read_text() for path in (book / SITE / "_build/html").rglob("*.html")}
        return pages, complete, whole


def test_the_first_site_has_what_is_complete_and_outlines_of_the_rest(first):
    pages, complete, _ = first
    assert not complete
    ready, outline = pages["notebooks/anonymization"], pages["notebooks/auditing"]
    assert "Still to come" not in ready and "One and one make two" in ready
    assert "Still to come" in outline and "One and one" not in outline and "Toy auditing" in outline
    intro = pages["book/intro"]
    listed = intro.partition("These chapters are here")[2].partition("footer")[0]
    assert "anonymization.html" in listed and "auditing.html" not in listed
    assert "Still to come" in intro and "Still to come" in pages["book/course_card"]


def test_nothing_of_the_first_site_is_left_in_the_whole_one(first):
    """A page that could not be linked at first would else keep the text that stood for the link."""
    whole = first[2]
    assert len(whole) > 40 and not any("Still to come" in text for text in whole.values())
