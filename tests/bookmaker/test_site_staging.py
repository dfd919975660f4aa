"""Pages are today's words with the outputs of complete runs of the same code, or there are no pages."""

import base64
import hashlib
import re
import shutil
from types import SimpleNamespace

import nbformat
import pytest
import toy_site
import yaml
from bs4 import BeautifulSoup
from docutils.core import publish_doctree, publish_string
from nbformat import v4

from bookmaker.runner import chain, files, notebooks
from bookmaker.site import _sphinx_ext, _staging, exercises
from bookmaker.site._run_card import run_card
from privhelpers.errors import DamagedArtifact, InvalidParameter, MissingArtifact, PrivHelpersError, RunFailed
from privhelpers.text import inert


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    return toy_site.build(tmp_path_factory.mktemp("toy") / "book")


@pytest.fixture
def book(untouched, tmp_path):
    return shutil.copytree(untouched, tmp_path / "book")


@pytest.fixture(scope="module")
def staged(untouched, tmp_path_factory):
    """Return the folder of a staged site, for tests that only look."""
    return stage(shutil.copytree(untouched, tmp_path_factory.mktemp("staged") / "book"))


def stage(book):
    return _staging.stage(book, toy_site.jobs(book))


def page(site, name):
    return nbformat.read(site / f"{name}.ipynb", as_version=4)


def job(book, rule):
    return next(job for job in toy_site.jobs(book) if job.rule == rule)


def edit_run(book, rule, change):
    path = book / job(book, rule).notebook
    run = nbformat.read(path, as_version=4)
    change(run)
    nbformat.write(run, path)
    toy_site.record_files(book)


def test_a_changed_sentence_needs_no_new_run(book):
    source = toy_site.source("synthetic_records")
    source.cells[2].source = "A better sentence:"
    source.cells.insert(3, v4.new_markdown_cell("And a new one.", id="new"))
    source.cells[5].metadata["mystnb"]["image"]["alt"] = "A better description."
    toy_site.write_source(book, "synthetic_records", source)
    cells = {cell.id: cell for cell in page(stage(book), "notebooks/synthetic_records").cells}
    assert cells["prose"].source == "A better sentence:" and "new" in cells
    assert cells["text"].outputs[0].text == "exposure of 5.2 bits\n"
    assert cells["picture"].metadata["mystnb"]["image"]["alt"] == "A better description."
    assert cells["picture"].outputs[0].data["image/png"].strip() == toy_site.png()


def test_a_page_folds_what_ran_and_solutions_and_says_how_long_its_run_took(staged):
    cells = page(staged, "notebooks/private_training").cells
    assert "Reading 5 minutes; the run of this page took 1\u00a0min\u00a001\u00a0s." in cells[0].source
    tagged = {tag: cell for cell in cells for tag in notebooks.tags(cell)}
    assert "parameters" not in tagged
    shown = tagged["injected-parameters"]
    assert "target_epsilon = 7" in shown.source and "hide-input" in notebooks.tags(shown)
    assert {"hide-input", "plumbing"} <= set(notebooks.tags(tagged["claims"]))


@pytest.mark.parametrize(
    ("tag", "source", "figure", "shown"),
    [
        ("figure", "draw()", {"caption": "Rates."}, "Show the code of the figure"),
        ("figure", "frame.round(2)", None, "Show the code of the table"),
        ("setup", "import numpy as np", None, "Show the imports and what is read"),
        ("setup", "scores = measure(net)", None, "Show the code of this step"),
    ],
)
def test_a_fold_says_what_is_in_it(tag, source, figure, shown):
    mystnb = {"figure": figure} if figure else {}
    cell = v4.new_code_cell(source, metadata={"tags": [tag], "mystnb": mystnb})
    _staging._fold(v4.new_notebook(cells=[cell]))
    assert cell.metadata["mystnb"]["code_prompt_show"] == shown


def test_a_letter_and_its_value_stay_on_one_line_and_code_as_it_was():
    page = publish_doctree("At ε = 8, ``ε = 8``, and a = 1::\n\n    ε = 8\n")
    _sphinx_ext.hold_values(None, page)
    assert page.astext().splitlines() == ["At ε\u00a0=\u00a08, ε = 8, and a = 1:", "", "ε = 8"]


def test_one_fold_has_the_words_the_code_and_the_result_of_a_solution(staged):
    cells = {cell.id: cell.source for cell in page(staged, "notebooks/private_training").cells}
    solution = cells["exercises"].partition("{solution}")[2]
    assert "solution" not in cells
    assert all(part in solution for part in ("One and one", "```python\none_and_one = 1 + 1", "the sum: 2"))


def test_what_a_solution_printed_cannot_leave_its_fold(book):
    printed = "`````\n# A heading\n```\n<script>alert(1)</script>\n"

    def print_it(run):
        run.cells[-4].outputs = [v4.new_output("stream", text=printed)]

    edit_run(book, "hipaa", print_it)
    cells = {cell.id: cell.source for cell in page(stage(book), "notebooks/hipaa").cells}
    (block,) = exercises.BLOCK.findall(cells["exercises"])[1:]
    assert "# A heading" in block[-1] and block[-1].count("``````text") == 1


def test_a_page_opens_with_its_picture_and_leads_on_after_the_quiz(staged):
    cells = page(staged, "notebooks/private_training").cells
    opening = cells[0].source
    at = [
        opening.index(part) for part in ("?\n", "{image} /pictures/private_training.png", ":::{admonition}")
    ]
    assert at == sorted(at) and ":alt: A blue rectangle." in opening
    picture = (staged / "pictures/private_training.png").read_bytes()
    assert picture == base64.b64decode(toy_site.png())
    asked = page(staged, "notebooks/comparison").cells
    assert [cell.id for cell in asked[-2:]] == ["quiz", "next"]


def test_nothing_of_the_machine_and_no_progress_bar_is_staged(book):
    edit_run(book, "hipaa", lambda run: run.cells[4].outputs[0].update(text=f"in {book}/runs\n"))
    for path in stage(book).rglob("*.ipynb"):
        text = path.read_text()
        assert "papermill" not in re.sub("application/papermill.record|papermill.record", "", text), path
        assert not any(said in text for said in ("stderr", "100%", str(toy_site.ROOT), str(book))), path


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("term", [r"\epsilon", r"$\varepsilon$", r"\g<0>", r"\1", "a & b", "<b>bold</b>"])
def test_a_term_of_the_index_reaches_the_page_as_it_is_written(tmp_path, term):
    (tmp_path / "book").mkdir()
    (tmp_path / files.INDEX).write_text(yaml.safe_dump({"toy": [term]}, allow_unicode=True))
    made = v4.new_notebook(cells=[v4.new_markdown_cell("# Title\n\nText")])
    _staging._add_index(made, files.index(tmp_path)["toy"])
    assert made.cells[0].source == f"# Title\n\n```{{index}} ! {term}\n```\n\nText"


@pytest.mark.wrong_numbers
@pytest.mark.parametrize(
    "term",
    ["$\varepsilon$", "a, b", "a; b", "!a", "a`b", "two\nlines", " ", "see: a", "\u2028a", "\u200b"],
)
def test_a_term_that_would_be_another_entry_of_the_index_is_refused(tmp_path, term):
    (tmp_path / "book").mkdir()
    (tmp_path / files.INDEX).write_text(yaml.safe_dump({"toy": ["good", term]}))
    with pytest.raises(InvalidParameter, match=r"book/index\.yml, toy"):
        files.index(tmp_path)


def failed(book):
    error = v4.new_output("error", ename="ValueError", evalue="no", traceback=[])
    edit_run(book, "hipaa", lambda run: run.cells[4].update(outputs=[error]))


def never_ran(book):
    edit_run(book, "hipaa", lambda run: run.cells[-4].update(execution_count=None))


def acts(book):
    output = toy_site.show(text_plain="x", application_javascript="alert(1)")
    edit_run(book, "hipaa", lambda run: run.cells[4].outputs.append(output))


def other_code(book):
    source = toy_site.source("hipaa")
    source.cells[3].source = "print('something else')"
    toy_site.write_source(book, "hipaa", source)


def other_picture(book):
    path = book / "notebooks" / "comparison.ipynb"
    path.write_text(path.read_text().replace('"fig-bars"', '"fig-other"'))


def unlisted(book):
    (book / "book" / "forgotten.md").write_text("# Forgotten\n")


def not_text(book):
    (book / "book" / "intro.md").write_bytes(b"# Caf\xe9")


REFUSED = [
    *((failed, RunFailed, "hipaa: code cell 3"), (never_ran, RunFailed, "hipaa: code cell 5")),
    *((acts, RunFailed, "hipaa, code cell 3"), (other_code, RunFailed, "hipaa")),
    *((other_picture, RunFailed, "fig-bars"), (unlisted, RunFailed, "book/forgotten")),
    (lambda book: (book / job(book, "hipaa").sentinel).unlink(), MissingArtifact, "hipaa"),
    (lambda book: (book / job(book, "hipaa").notebook).unlink(), DamagedArtifact, "hipaa"),
    (not_text, InvalidParameter, "book/intro.md"),
    (lambda book: (book / "book/index.yml").write_text("hipaa: PHI"), InvalidParameter, "book/index.yml"),
    (lambda book: (book / "_config.yml").write_text("html: x"), InvalidParameter, "_config.yml"),
]


@pytest.mark.parametrize(("change", "error", "named"), REFUSED)
def test_what_cannot_be_a_page_is_named_and_the_folder_stays_as_it_was(book, change, error, named):
    site = book / "runs" / "toy" / "site"
    site.mkdir()
    (site / "old.md").write_text("# Old\n")
    change(book)
    with pytest.raises(PrivHelpersError, match=re.escape(named)) as refused:
        stage(book)
    assert isinstance(refused.value, error) and [path.name for path in site.iterdir()] == ["old.md"]


def test_the_chapter_is_the_run_nearest_eight_or_the_baseline(untouched, staged):
    jobs = toy_site.jobs(untouched)
    model_of = {page.document: page.job.model for page in _staging.pages(jobs)}
    assert model_of["notebooks/private_training"] == "dp-eps-7"
    assert model_of["notebooks/extraction"] == "baseline"
    assert model_of["runs/private_training--dp-eps-0.5"] == "dp-eps-0.5"
    assert model_of["notebooks/comparison"] is None and len(model_of) == len(jobs)
    assert all((staged / f"{document}.ipynb").is_file() for document in model_of)
    assert "runs/" not in (staged / "_toc.yml").read_text()
    assert (staged / "book" / "result.png").read_bytes() == base64.b64decode(toy_site.png(60, 30))
    course = (staged / "book" / "course_card.md").read_text()
    assert course.count("\n## Toy ") == len(chain.SLUGS) == course.count("- add two numbers.")


def test_the_run_card_shows_what_ran_and_how_to_cite_it(staged):
    text = (staged / "book" / "run_card.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| private_training |")]
    assert len(rows) == 3 and "1\u00a0min\u00a001\u00a0s" in rows[0] and "512\u00a0MiB |" in rows[0]
    assert "| `target_epsilon` | `0.5`, `7`, `12` |" in text and "date    = {2026-01-01}" in text
    assert text.count(hashlib.sha256((staged.parent / "manifest.json").read_bytes()).hexdigest()) == 2


HOSTILE = [
    "clinic\n\n<script>alert(99)</script>\n\n",
    "``{ref}`x` `` {raw:html}`<b>`",
    "$\\href{javascript:alert(1)}{x}$ $$y$$",
    "x | y \\| z \\\\| |",
    "{{ title }} &lt;b&gt; &#60;b&#62; *a* __b__ ~c~ :d: # e",
    "\u202eabc\u200b\x1b[2J\x00",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_the_run_card_shows_any_text_and_nothing_of_it_acts(text):
    run = {"notebook": text, "model": text, "artifacts": {}, "started": "2026-01-01"}
    run |= {"seconds": 1.0, "cpu_seconds": 1.0, "peak_memory_mib": 1, "parameters": {text: text}}
    manifest = {"profile": text, "total_seconds": 1.0, "versions": {text: text}, "runs": {"n": run}}
    settings = yaml.safe_load((toy_site.ROOT / "_config.yml").read_text())["parse"]
    names = {"parser_name": "myst_parser.docutils_", "writer_name": "html5"}
    made = publish_string(run_card(manifest, "0"), settings_overrides=settings, **names)
    body = BeautifulSoup(made, "html.parser").find("main")
    acting = "[href], [onload], [onerror], [src], .math, .system-message, .xref, script, svg, b"
    assert not body.select(acting)
    rows = [[cell.get_text() for cell in row.select("td")] for row in body.select("tbody tr")]
    shown = inert(text)
    assert rows[0][0].strip() == shown.strip() and rows[1][1] == shown and rows[2] == [shown, shown]


def ask_at(book, place, **repository):
    settings = yaml.safe_load((toy_site.ROOT / "_config.yml").read_text()) | {"discussion": {"url": place}}
    settings["repository"] |= repository
    (book / "_config.yml").write_text(yaml.safe_dump(settings))


PLACES = {
    "https://forum.example.org/c/privacy?a=1&b=2#new": "https://forum.example.org/c/privacy?a=1&amp;b=2#new",
    "http://forum.example.org": "http://forum.example.org",
    "https://matrix.example.org/#/#privacy:example.org": "https://matrix.example.org/#/#privacy:example.org",
    "mailto:list@example.org?subject=The%20book": "mailto:list@example.org?subject=The%20book",
    'https://example.org/"><b>': "https://example.org/&quot;&gt;&lt;b&gt;",
}


@pytest.mark.parametrize("place", [*PLACES, "", None])
def test_each_page_ends_with_one_link_to_where_readers_ask_if_there_is_a_place(tmp_path, place):
    ask_at(tmp_path, place)
    config = SimpleNamespace(html_theme_options={"extra_footer": "By us."})
    _sphinx_ext._discuss_if_there_is_a_place(SimpleNamespace(srcdir=tmp_path), config)
    link = f'<a href="{PLACES[place]}">Ask a question about this page</a>' if place else ""
    assert config.html_theme_options == {"extra_footer": f"By us.{link}"}


NO_PLACES = ["javascript:alert(1)", "example.org", "//example.org", "https://", "https://?a", "mailto:me"]
NO_PLACES += [
    "ftp://example.org",
    "https://a b.example.org",
    "https://example.org/\n",
    "https://a:b@example.org",
]
NO_PLACES += ["https://exámple.org", "https://example.org/\u202e", 7, False, ["https://example.org"]]


@pytest.mark.parametrize("place", NO_PLACES)
def test_what_is_no_address_to_ask_at_is_refused_before_a_page_is_made(tmp_path, place):
    ask_at(tmp_path, place)
    with pytest.raises(InvalidParameter, match=r"^_config\.yml, discussion\.url"):
        _staging._written(tmp_path, {})


@pytest.mark.parametrize(
    ("place", "kept"),
    [
        ("https://github.com/example/book/discussions", False),
        ("https://GitHub.com/Example/Book/issues", False),
        ("https://github.com/example/book-forum/discussions", True),
        ("mailto:list@example.org", True),
    ],
)
def test_a_site_without_solutions_leads_to_no_place_in_the_repository(tmp_path, place, kept):
    ask_at(tmp_path, place, url="https://github.com/example/book/")
    (tmp_path / "book").mkdir()
    for solutions in (True, False):
        staged = yaml.safe_load(_staging._written(tmp_path, {}, solutions)["_config.yml"])
        assert (staged["discussion"]["url"] == place) == (kept or solutions)


def test_a_solution_outside_of_chapters_is_in_no_site_without_solutions(book):
    def public():
        return _staging._written(book, {}, solutions=False)

    assert "book/intro.md" in public()
    code = v4.new_notebook(cells=[v4.new_code_cell("secret", metadata={"tags": ["solution"]})])
    for name, added in {
        "book/intro.md": "\n```{Solution} ex-a\nsecret\n```\n",
        "book/ethics.md": "\n```{code-cell}\n:tags: [solution]\nsecret\n```\n",
        "book/more.rst": ".. solution:: ex-a\n\n   secret\n",
        "book/more.ipynb": nbformat.writes(code),
    }.items():
        path = book / name
        before = path.read_bytes() if path.exists() else b""
        path.write_bytes(before + added.encode())
        with pytest.raises(InvalidParameter, match=re.escape(name)):
            public()
        path.write_bytes(before) if before else path.unlink()
