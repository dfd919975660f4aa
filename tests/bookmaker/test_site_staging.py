"""Pages are today's words with the outputs of complete runs of the same code, or there are no pages."""

import base64
import hashlib
import json
import platform
import re
import shutil

import nbformat
import pytest
import toy_site
import yaml
from bs4 import BeautifulSoup
from nbformat import v4

from bookmaker.runner import chain, files, notebooks, published
from bookmaker.site import _staging
from privhelpers.artifacts import write_sealed
from privhelpers.errors import (
    DamagedArtifact,
    InvalidParameter,
    MissingArtifact,
    PrivHelpersError,
    RunFailed,
)


@pytest.fixture(scope="module")
def untouched(tmp_path_factory):
    return toy_site.build(tmp_path_factory.mktemp("toy") / "book")


@pytest.fixture
def book(untouched, tmp_path):
    return shutil.copytree(untouched, tmp_path / "book")


def job(book, rule):
    return next(job for job in toy_site.jobs(book) if job.rule == rule)


def page(book, name):
    return nbformat.read(book / "runs" / "toy" / "site" / f"{name}.ipynb", as_version=4)


def stage(book):
    return _staging.stage(book, toy_site.jobs(book))


@pytest.fixture(scope="module")
def staged(untouched, tmp_path_factory):
    """A book with its staged site, for tests that only look."""
    book = shutil.copytree(untouched, tmp_path_factory.mktemp("staged") / "book")
    stage(book)
    return book


def edit_run(book, rule, change):
    path = book / job(book, rule).notebook
    run = nbformat.read(path, as_version=4)
    change(run)
    nbformat.write(run, path)
    toy_site.record_files(book)


def snapshot(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.stat().st_mtime_ns for path in files}


def test_a_changed_sentence_needs_no_new_run(book):
    source = toy_site.source("synthetic_records")
    source.cells[2].source = "A better sentence:"
    source.cells.insert(3, v4.new_markdown_cell("And a new one.", id="new"))
    source.cells[5].metadata["mystnb"]["image"]["alt"] = "A better description."
    toy_site.write_source(book, "synthetic_records", source)
    stage(book)
    made = page(book, "notebooks/synthetic_records")
    text = "\n".join(cell.source for cell in made.cells)
    assert "A better sentence:" in text and "And a new one." in text
    assert "A sentence that can change" not in text
    cells = {cell.id: cell for cell in made.cells}
    assert cells["text"].outputs[0].text == "exposure of 5.2 bits\n"
    assert cells["picture"].metadata["mystnb"]["image"]["alt"] == "A better description."
    assert cells["picture"].outputs[0].data["image/png"].strip() == toy_site.png()


def test_a_page_says_how_long_its_run_took(staged):
    box = page(staged, "notebooks/synthetic_records").cells[0].source
    assert "Reading 5 minutes; the run of this page took 1\u00a0min\u00a001\u00a0s." in box


def test_changed_code_is_refused(book):
    source = toy_site.source("extraction")
    source.cells[3].source = "print('something else')"
    toy_site.write_source(book, "extraction", source)
    with pytest.raises(RunFailed, match="extraction"):
        stage(book)


def test_only_the_values_that_ran_are_shown_and_folded(staged):
    cells = page(staged, "notebooks/private_training").cells
    tagged = {tag: cell for cell in cells for tag in notebooks.tags(cell)}
    assert "parameters" not in tagged
    shown = tagged["injected-parameters"]
    assert "target_epsilon = 7" in shown.source and "hide-input" in notebooks.tags(shown)


def test_bookkeeping_is_folded(book):
    source = toy_site.source("hipaa")
    next(cell for cell in source.cells if cell.id == "text").metadata["tags"] = ["bookkeeping"]
    toy_site.write_source(book, "hipaa", source)
    stage(book)
    kept = next(c for c in page(book, "notebooks/hipaa").cells if "bookkeeping" in notebooks.tags(c))
    assert "hide-input" in notebooks.tags(kept)


def test_nothing_of_the_machine_and_no_progress_bar_is_staged(book):
    edit_run(book, "hipaa", lambda run: run.cells[4].outputs[0].update(text=f"in {book}/runs\n"))
    site = stage(book)
    for path in site.rglob("*.ipynb"):
        text = path.read_text()
        assert "papermill" not in re.sub("application/papermill.record|papermill.record", "", text), path
        assert "stderr" not in text and "100%" not in text, path
        assert str(toy_site.ROOT) not in text and str(book) not in text, path


def test_every_chapter_can_be_looked_up_by_more_than_its_title():
    terms = yaml.safe_load((toy_site.ROOT / files.INDEX).read_text(encoding="utf-8"))
    assert set(terms) == {step.slug for step in chain.CHAIN}
    every = [term.lower() for entries in terms.values() for term in entries]
    assert len(set(every)) == len(every) and not any(set(term) & set("!,;`") for term in every)
    page = v4.new_notebook(
        cells=[v4.new_markdown_cell("(label)=\n# Title\n\n# Not this"), v4.new_code_cell("")]
    )
    _staging._add_index(page, ["one", "two words"])
    head = "(label)=\n# Title\n\n```{index} ! one, ! two words\n```\n"
    assert page.cells[0].source == head + "\n# Not this"


@pytest.mark.wrong_numbers
@pytest.mark.parametrize(
    "term",
    [r"\epsilon", r"$\varepsilon$", r"\g<0>", r"\1", "a & b", "$x$", "ε", "<b>bold</b>", r"C:\new", "\\"],
)
def test_a_term_of_the_index_reaches_the_page_as_it_is_written(tmp_path, term):
    (tmp_path / "book").mkdir()
    (tmp_path / files.INDEX).write_text(yaml.safe_dump({"toy": [term]}, allow_unicode=True))
    page = v4.new_notebook(cells=[v4.new_markdown_cell("# Title\n\nText")])
    _staging._add_index(page, files.index(tmp_path)["toy"])
    assert page.cells[0].source == f"# Title\n\n```{{index}} ! {term}\n```\n\nText"


@pytest.mark.wrong_numbers
@pytest.mark.parametrize(
    "term",
    [
        *(
            "$\varepsilon$",
            "a, b",
            "a; b",
            "!a",
            "a`b",
            "two\nlines",
            "tab\there",
            " ",
            "see: a; b",
            "pair: a",
        ),
        # What YAML makes of a backslash before Lambda, Pi, Nabla and _anonymity in double quotes.
        *("\u2028ambda", "\u2029i", "\x85abla", "k\xa0anonymity"),
        "\u200b",
    ],
)
def test_a_term_that_would_be_another_entry_of_the_index_is_refused(tmp_path, term):
    (tmp_path / "book").mkdir()
    (tmp_path / files.INDEX).write_text(yaml.safe_dump({"toy": ["good", term]}))
    with pytest.raises(InvalidParameter, match=r"book/index\.yml, toy: .* cannot be a term"):
        files.index(tmp_path)


def test_a_percent_sign_stays_with_its_number():
    page = v4.new_notebook(
        cells=[v4.new_markdown_cell("5 % of {glue:text}`x` %, $5\\,\\%$, a %s"), v4.new_code_cell("5 % x")]
    )
    page = nbformat.reads(_staging._bytes(page).decode(), as_version=4)
    shown = "5\u00a0% of {glue:text}`x`\u00a0%, $5\\,\\%$, a %s"
    assert [cell.source for cell in page.cells] == [shown, "5 % x"]


def fail_cell(run):
    run.cells[4].outputs = [v4.new_output("error", ename="ValueError", evalue="no", traceback=[])]


def never_ran(run):
    run.cells[-2].execution_count = None


def acts(run):
    run.cells[4].outputs.append(toy_site.show(text_plain="x", application_javascript="alert(1)"))


@pytest.mark.parametrize(
    ("change", "cell"), [(fail_cell, "code cell 3"), (never_ran, "code cell 5"), (acts, "code cell 3")]
)
def test_a_failed_or_unfinished_run_and_an_output_that_acts_are_refused(book, change, cell):
    edit_run(book, "membership_inference_public", change)
    with pytest.raises(RunFailed, match=rf"membership_inference.*public.*{cell}"):
        stage(book)


@pytest.mark.parametrize("what", ["sentinel", "notebook"])
def test_a_run_without_one_of_its_files_is_refused(book, what):
    (book / getattr(job(book, "comparison"), what)).unlink()
    with pytest.raises(MissingArtifact, match="comparison"):
        stage(book)


def test_a_refusal_leaves_the_folder_as_it_was(book):
    site = stage(book)
    before = snapshot(site)
    (book / "book" / "intro.md").write_text("# Changed\n")
    edit_run(book, "hipaa", fail_cell)
    with pytest.raises(PrivHelpersError):
        stage(book)
    assert snapshot(site) == before


def test_the_chapter_is_the_run_nearest_eight_or_the_baseline(untouched):
    jobs = toy_site.jobs(untouched)
    model_of = {page.document: page.job.model for page in _staging.pages(jobs)}
    assert model_of["notebooks/private_training"] == "dp-eps-7"
    assert model_of["notebooks/extraction"] == "baseline"
    assert model_of["runs/private_training--dp-eps-0.5"] == "dp-eps-0.5"
    assert model_of["notebooks/comparison"] is None and len(model_of) == len(jobs)


def test_further_runs_stand_beside_their_chapter_and_not_in_the_contents(staged):
    site = staged / "runs" / "toy" / "site"
    further = [f"runs/private_training--dp-eps-{e}.ipynb" for e in ("0.5", "12")]
    assert all((site / name).is_file() for name in further)
    assert "runs/" not in (site / "_toc.yml").read_text()
    chapter = (site / "notebooks/private_training.ipynb").read_text()
    assert all(f"</{name.removesuffix('.ipynb')}>" in chapter for name in further)
    assert "</notebooks/private_training>" in (site / further[0]).read_text()
    assert "{container} models" not in (site / "notebooks/comparison.ipynb").read_text()


def test_a_page_without_a_place_in_the_contents_is_refused(book):
    (book / "book" / "forgotten.md").write_text("# Forgotten\n")
    with pytest.raises(RunFailed, match="no place for book/forgotten"):
        stage(book)


def test_no_stale_page_stays_and_what_did_not_change_is_not_rewritten(book):
    site = stage(book)
    before = snapshot(site)
    (site / "runs" / "extraction--dp-eps-3.ipynb").write_text("{}")
    (site / "old").mkdir()
    (site / "old" / "page.md").write_text("# Old")
    (book / "book" / "glossary.md").write_text("# Glossary\n\nShort.\n")
    (site / "_build").mkdir()
    (site / "_build" / "kept").write_text("")
    stage(book)
    after = snapshot(site)
    assert after.pop("_build/kept")
    assert set(after) == set(before)
    assert not (site / "old").exists()
    assert [name for name in after if after[name] != before[name]] == ["book/glossary.md"]


def test_a_budget_that_left_the_profile_takes_its_pages_along(book):
    site = stage(book)
    assert (site / "runs" / "private_training--dp-eps-12.ipynb").is_file()
    fewer = [job for job in toy_site.jobs(book) if job.model != "dp-eps-12"]
    published.collect(book, fewer)
    _staging.stage(book, fewer)
    assert not list(site.rglob("*dp-eps-12*"))


@pytest.mark.parametrize(
    "path, value",
    [(("versions", "torch"), "9.9"), (("total_seconds",), "fast"), (("runs", "hipaa", "seconds"), 1.5)],
)
def test_a_manifest_that_is_not_what_the_runs_say_is_refused(book, path, value):
    file = book / "runs" / "toy" / "manifest.json"
    manifest = json.loads(file.read_text())
    *parents, last = path
    place = manifest
    for name in parents:
        place = place[name]
    place[last] = value
    file.write_text(json.dumps(manifest))
    with pytest.raises(DamagedArtifact, match=r"manifest\.json"):
        stage(book)
    write_sealed(file, json.dumps(manifest).encode())  # whoever edits the file can edit its seal
    with pytest.raises(DamagedArtifact, match=r"manifest\.json"):
        published.manifest(book, toy_site.jobs(book))


@pytest.mark.parametrize("name", ["manifest.json", "summary.json"])
def test_a_manifest_or_summary_that_cannot_be_read_is_refused(book, name):
    file = book / "runs" / "toy" / name
    for spoiled in (b"", b"[]", b"\xff"):
        file.write_bytes(spoiled)
        with pytest.raises(DamagedArtifact, match=name):
            published.manifest(book, toy_site.jobs(book))
    (book / "runs" / "toy" / "manifest.json").unlink()
    with pytest.raises(MissingArtifact, match="manifest"):
        published.manifest(book, toy_site.jobs(book))


def test_a_page_that_changed_after_its_run_is_refused(book):
    """Beside every other check: the first chapters are shown while the build goes on."""
    path = book / job(book, "composition").notebook
    path.write_text(path.read_text().replace("5.2 bits", "0.2 bits"))
    with pytest.raises(DamagedArtifact, match="composition"):
        _staging.stage(book, toy_site.jobs(book), first=True)


def test_the_run_card_shows_what_ran_and_how_to_cite_it(staged):
    text = (staged / "runs" / "toy" / "site" / "book" / "run_card.md").read_text()
    rows = [line for line in text.splitlines() if line.startswith("| private_training |")]
    assert len(rows) == 3 and "1\u00a0min\u00a001\u00a0s" in rows[0] and "512 MiB |" in rows[0]
    assert "| `target_epsilon` | `0.5`, `7`, `12` |" in text
    assert f"| python | `{platform.python_version()}` |" in text
    assert text.index("public_pretraining") < text.index("fine_tuning")
    digest = hashlib.sha256((staged / "runs" / "toy" / "manifest.json").read_bytes()).hexdigest()
    assert text.count(digest) == 2 and "date    = {2026-01-01}" in text
    cited = yaml.safe_load((toy_site.ROOT / "CITATION.cff").read_text())
    assert cited["title"] in text and f"version {cited['version']}." in text


CARD_TAGS = {"main", "section", "h1", "h2", "h3", "p", "strong", "code", "span", "table", "colgroup", "col"}
CARD_TAGS |= {"thead", "tbody", "tr", "th", "td"}
HOSTILE = [
    "clinic\n\n<script>alert(99)</script><svg onload=alert(98)></svg>\n\n",
    "``{ref}`x` `` {raw:html}`<b>`",
    "$\\href{javascript:alert(1)}{x}$ $$y$$",
    "[x](javascript:alert(1)) ![x](//elsewhere.example/x.png) <https://elsewhere.example>",
    "x | y \\| z \\\\| |",
    "{{ title }} &lt;b&gt; &#60;b&#62; *a* __b__ ~c~ :d: # e",
    "\u202eabc\u200b\x1b[2J\x00",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_the_run_card_shows_any_text_and_nothing_of_it_acts(text):
    from docutils.core import publish_string

    from bookmaker.site._run_card import run_card
    from privhelpers.text import inert

    run = {"notebook": text, "model": text, "seconds": 1.0, "artifacts": {}, "parameters": {text: text}}
    manifest = {"profile": text, "total_seconds": 1.0, "versions": {text: text}}
    card = run_card(manifest | {"runs": {"n": run, "m": run | {"parameters": {text: [text, "z"]}}}})
    settings = yaml.safe_load((toy_site.ROOT / "_config.yml").read_text())["parse"]
    page = publish_string(
        card, parser_name="myst_parser.docutils_", writer_name="html5", settings_overrides=settings
    )
    body = BeautifulSoup(page, "html.parser").find("main")
    assert {tag.name for tag in body.find_all(True)} <= CARD_TAGS
    assert not body.select("[href], [onload], [onerror], [src], .math, .system-message, .xref")
    rows = [[cell.get_text() for cell in row.select("td")] for row in body.select("tbody tr")]
    runs, versions, values = rows[:2], rows[2], rows[3]
    shown = inert(text)
    assert [row[0].strip() for row in runs] == [shown.strip()] * 2 and len(runs[0]) == 6
    assert versions[0].strip() == shown.strip() and versions[1] == shown
    assert values == [shown, f"{shown}, {shown}, z"]
    assert body.find("h3").get_text().strip() == shown.strip()


def test_the_course_card_tells_what_each_chapter_teaches_and_takes(staged):
    text = (staged / "runs" / "toy" / "site" / "book" / "course_card.md").read_text()
    assert text.count("\n## Toy ") == len(chain.SLUGS)
    assert "{ref}`Read the chapter <hipaa>`: 5 minutes" in text
    assert text.index("Toy gradient_inversion") < text.index("Toy comparison")  # the order of the book
    assert text.index("Toy comparison") < text.index("Toy uncertainty")
    assert "- add two numbers," not in text and "- add two numbers." in text and "Needed: nothing." in text
    assert "{ref}`ex-hipaa`" in text and " runs of " in text


def test_a_chapter_that_opens_otherwise_is_named(book):
    from bookmaker.site._syllabus import course_card

    bare = v4.new_notebook(cells=[v4.new_markdown_cell("# Bare")])
    with pytest.raises(DamagedArtifact, match="hipaa: its first cell lacks a label"):
        course_card({"hipaa": bare}, {"runs": {}})


def test_the_home_page_shows_the_picture_of_this_run(book):
    site = stage(book)
    assert (site / "book" / "result.png").read_bytes() == base64.b64decode(toy_site.png(60, 30))
    path = book / "notebooks" / "comparison.ipynb"
    path.write_text(path.read_text().replace('"fig-bars"', '"fig-other"'))
    with pytest.raises(RunFailed, match="no picture called fig-bars"):
        stage(book)


@pytest.mark.parametrize(
    "file, data",
    [
        ("book/intro.md", b"# Caf\xe9"),
        ("book/a\nb.png", b""),
        ("book/index.yml", b"- a"),
        ("book/index.yml", b"hipaa: PHI"),
        ("_config.yml", b"html:\n  use_edit_page_button: No\n"),
    ],
)
def test_a_broken_file_of_the_book_is_named(book, file, data):
    (book / file).write_bytes(data)
    with pytest.raises(InvalidParameter, match=re.escape(file.encode("unicode_escape").decode())):
        stage(book)


def test_a_solution_outside_of_chapters_is_in_no_site_without_solutions(book):
    def public():
        return _staging._written(book, {}, solutions=False)

    assert "book/intro.md" in public()
    code = v4.new_notebook(cells=[v4.new_code_cell("secret", metadata={"tags": ["solution"]})])
    for name, added in {
        "book/intro.md": "\n```{Solution} ex-a\nsecret\n```\n",
        "book/glossary.md": "\n```{eval-rst}\n.. solution :: ex-a\n\n   secret\n```\n",
        "book/ethics.md": "\n```{code-cell}\n:tags: [solution]\nsecret\n```\n",
        "book/more.rst": ".. solution:: ex-a\n\n   secret\n",
        "book/_static/more.txt": "caf\udce9 .. solution:: ex-a\n\n   secret\n",
        "book/more.ipynb": nbformat.writes(code),
    }.items():
        path = book / name
        before = path.read_bytes() if path.exists() else b""
        path.write_bytes(before + added.encode("utf-8", "surrogateescape"))
        with pytest.raises(InvalidParameter, match=f"{re.escape(name)}: has a solution"):
            public()
        path.write_bytes(before) if before else path.unlink()
    (book / "book/intro.md").write_text("```{solution} ex-a\nsecret\n```\n")
    with pytest.raises(InvalidParameter, match=r"book/intro\.md: has a solution"):
        _staging.stage(book, toy_site.jobs(book), solutions=False)
