"""Writes the sources of the site into one folder, `runs/<profile>/site/`.

A page joins the words of the source notebook with the outputs of its run, so that a better sentence needs
no new run; if the code of the two differs, there is no page, or the one that was kept with the run.
"""

import base64
import re
import shutil
import unicodedata
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
import yaml
from nbformat import NotebookNode

from bookmaker.runner import chain, notebooks, published
from bookmaker.runner import files as author
from bookmaker.runner import plan as planning
from bookmaker.runner.plan import Job
from bookmaker.site import _discussion, _numbers, _quizzes, _reports, _syllabus, exercises
from bookmaker.site._map import chapter_map
from bookmaker.site._markdown import words
from bookmaker.site._model_cards import model_cards
from bookmaker.site._outputs import check_picture, clean_outputs
from bookmaker.site._run_card import duration, run_card
from bookmaker.site._variants import add_switch, variant
from privhelpers.artifacts import sha256_of
from privhelpers.errors import InvalidParameter, RunFailed

CHAPTER_EPSILON = 8.0
HOME_PICTURE = (chain.STATISTICS, "fig-bars", "book/result.png")  # chapter, figure, place of the copy
CHAPTER_MODEL = {step.slug: chain.CHAPTER_MODEL["model"] for step in chain.CHAIN if step.per == "model"}
TITLE = re.compile(r"^# .*\n", re.MULTILINE)
MESSAGE = re.compile(r"^([^*`$]+?[.?!])(?:\s+|$)")  # the first sentence of a caption, in plain words
FIRST_BOX = re.compile(r"^:{3,}\{", re.MULTILINE)
READING = re.compile(r"Reading \d+ minutes[^.]*")
RUN_CARD, COURSE_CARD = "book/run_card", "book/course_card"
SYLLABUS, MODEL_CARDS, CHAPTER_MAP = "book/syllabus", "book/model_cards", "book/chapter_map"
# What such a cell does is for the prose alone: a page shows what it returns, not its code.
BOOKKEEPING = "bookkeeping"
# Cells that a page folds, by their tag, and the words on the fold.
FOLDED = {
    "parameters": "this run's parameters",
    "injected-parameters": "this run's parameters",
    "setup": "the imports and what is read",
    "figure": "the code of the figure",
    "agreement": "the checks: our code and the library agree",
    "claims": "the conditions",
    exercises.SOLUTION: "the solution's code and result",  # its result gives the answer away
}


@dataclass(frozen=True)
class Page:
    """One run as a page: `document` is its place in the site, without the ending."""

    job: Job
    document: str
    is_chapter: bool


def _chapter_model(slug: str, jobs: list[Job]) -> str | None:
    """Return the model whose run is the chapter's own page."""
    if slug in CHAPTER_MODEL:
        return CHAPTER_MODEL[slug]
    epsilons = [job.parameters[chain.EPSILON] for job in jobs if job.model]
    if not epsilons:
        return None
    return chain.model_name(min(epsilons, key=lambda epsilon: (abs(epsilon - CHAPTER_EPSILON), epsilon)))


def pages(plan: list[Job]) -> list[Page]:
    """Return the page of every run of a plan, a chapter's own page before its further runs."""
    all_pages = []
    for slug in dict.fromkeys(job.slug for job in plan):
        jobs = [job for job in plan if job.slug == slug]
        chapter = _chapter_model(slug, jobs)
        for job in sorted(jobs, key=lambda job: job.model != chapter):
            is_chapter = job.model in (None, chapter)
            all_pages.append(
                Page(job, f"notebooks/{slug}" if is_chapter else f"runs/{slug}--{job.model}", is_chapter)
            )
    return all_pages


def _folded(tag: str, cell: NotebookNode) -> str:
    """Return the words on the fold of a cell."""
    if tag == "figure" and "figure" not in cell.metadata.get("mystnb", {}):
        return "the code of the table"
    if tag == "setup" and "import" not in cell.source:
        return "the code of this step"
    return FOLDED[tag]


def _fold(page: NotebookNode) -> None:
    """Fold plumbing, solutions and the values that ran, which replace the defaults; remove bookkeeping."""
    injected = [cell for cell in page.cells if "injected-parameters" in notebooks.tags(cell)]
    if injected:
        page.cells = [cell for cell in page.cells if "parameters" not in notebooks.tags(cell)]
    for cell in notebooks.code_cells(page):
        tags = notebooks.tags(cell)
        if BOOKKEEPING in tags:
            cell.metadata["tags"] = [*(tag for tag in tags if tag != "hide-input"), "remove-input"]
        for tag in FOLDED.keys() & set(tags):
            hidden = ["hide-cell"] if tag == exercises.SOLUTION else ["hide-input", "plumbing"]
            cell.metadata["tags"] = [*(tag for tag in tags if tag != "hide-input"), *hidden]
            what = _folded(tag, cell)
            prompts = {"code_prompt_show": f"Show {what}", "code_prompt_hide": f"Hide {what}"}
            cell.metadata.setdefault("mystnb", {}).update(prompts)


def _lead(page: NotebookNode) -> None:
    """Print the first sentence of each caption, which says what to see, in bold."""
    for cell in notebooks.code_cells(page):
        if figure := cell.metadata.get("mystnb", {}).get("figure"):
            figure["caption"] = MESSAGE.sub(r"**\1** ", figure["caption"].strip(), count=1).strip()


def _bytes(page: NotebookNode) -> bytes:
    """Return a page as its file holds it."""
    return (nbformat.writes(page, version=4) + "\n").encode()


def _add_index(page: NotebookNode, terms: list[str]) -> None:
    """Let the search find a chapter by terms that are not in its title."""
    entries = ", ".join(f"! {term}" for term in terms)
    directive = f"\n```{{index}} {entries}\n```\n"
    if terms:  # a function, because a backslash in a template would be read as an escape
        page.cells[0].source = TITLE.sub(lambda title: title[0] + directive, page.cells[0].source, 1)


def _tell_minutes(page: NotebookNode, reading: int, seconds: float) -> None:
    """Say how long reading takes, as the syllabus counts it, and how long the run of this page took."""
    told = f"Reading {reading} minutes; the run of this page took {duration(seconds)}"
    page.cells[0].source = READING.sub(lambda _: told, page.cells[0].source, 1)


def _before_boxes(page: NotebookNode, text: str) -> None:
    """Put text into the first cell of a chapter, below the question and its answer, above the first box."""
    source = page.cells[0].source
    place = box.start() if (box := FIRST_BOX.search(source)) else len(source)
    page.cells[0].source = source[:place] + text + source[place:]


def _opening(page: NotebookNode, place: str) -> dict[str, bytes]:
    """Show the figure with the tag `opening` under the question, too; return the file of the picture.

    Args:
        page: one run of a chapter; its first cell is changed.
        place: of the picture, from the folder of the site.
    """
    for cell in notebooks.code_cells(page):
        if "opening" in notebooks.tags(cell) and (picture := _png(cell)):
            alt = " ".join(cell.metadata["mystnb"]["image"]["alt"].split())
            _before_boxes(page, f"```{{image}} /{place}\n:alt: {alt}\n:class: opening\n```\n\n")
            return {place: picture}
    return {}


def _tell_kept(page: NotebookNode, record: dict[str, Any]) -> None:
    """Say under the title of a chapter which kept run its results come from."""
    source = record["kept"]
    profile = source["profile"]
    note = (
        f"These results are kept from a run of {source['date']} (seed {source['seed']}, commit "
        f"{source['commit']}, {words(source['machine'])}, {duration(record['cpu_seconds'])} of computing). "
        f"`make book PROFILE={profile}` runs the chapter live."
    )
    _before_boxes(page, f":::{{admonition}} Kept results\n:class: note\n{note}\n:::\n\n")


def _with_words(job: Job, executed: NotebookNode, source: NotebookNode) -> NotebookNode:
    """Return a run's page with today's words; of a kept run of other code, with the words that it had.

    Raises:
        RunFailed: the code of a run is not today's.
    """
    try:
        return notebooks.refresh_prose(executed, source)
    except RunFailed as error:
        if job.kept:
            return executed
        raise RunFailed(f"{job.title}: {error}") from error


def page_of(root: Path, job: Job) -> NotebookNode:
    """Return one run as a page: today's words, that run's outputs, nothing of this machine.

    Args:
        root: the repository.
        job: a complete run.

    Raises:
        RunFailed: the run failed, its code is not today's (of a kept run it may differ), or an output is not
            fit for a page.
        MissingArtifact: the notebook, or its run, is not there.
        DamagedArtifact: the notebook is not as its run left it.
    """
    executed = planning.executed(root, job)
    source = notebooks.read(chain.source(root, job.slug))
    page, record = _with_words(job, executed, source), planning.record(root, job)
    notebooks.clean(page, root)
    for number, cell in enumerate(notebooks.code_cells(page), 1):
        where = f"{job.title}, code cell {number}"
        clean_outputs(cell, where)
        check_picture(cell, where)
    _fold(page)
    _lead(page)
    _tell_minutes(page, _syllabus.reading_minutes(source, job.slug), record["seconds"])
    if job.kept:
        _tell_kept(page, record)
    # A reader types "Renyi" for "Rényi": the search knows a page's words and its keywords.
    title = TITLE.search(page.cells[0].source)[0].strip().removeprefix("# ")
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode()
    if plain != title:
        page.metadata["myst"] = {"html_meta": {"keywords": ", ".join([plain, *plain.split()])}}
    if number := re.match(r"\d+", chain.source(root, job.slug).name):
        page.metadata[_numbers.CHAPTER] = int(number[0])
    page.nbformat_minor = max(page.nbformat_minor, 5)
    return page


def contents(root: Path, plan: list[Job]) -> dict[str, Any]:
    """Return the table of contents, the chapters by their addresses.

    Raises:
        RunFailed: a notebook of the plan has no place in `_toc.yml`, or a page in `book/` has none.
    """
    toc = author.contents(root)
    for entry in (entry for part in toc["parts"] for entry in part["chapters"]):
        folder, _, name = entry["file"].rpartition("/")
        if folder == "notebooks":  # an address keeps its name when the chapter's number changes
            entry["file"] = f"notebooks/{chain.slug_of(name)}"
    named = {toc["root"], *(entry["file"] for part in toc["parts"] for entry in part["chapters"])}
    pages = author.files(root / "book", "**/*.md")
    written = {path.relative_to(root).with_suffix("").as_posix() for path in pages}
    if forgotten := sorted((written | {f"notebooks/{job.slug}" for job in plan}) - named):
        raise RunFailed(f"_toc.yml: has no place for {', '.join(forgotten)}")
    return toc


def _written(root: Path, toc: dict[str, Any], solutions: bool = True) -> dict[str, bytes]:
    """Return the files that need no run: configuration, contents, the pages of `book/` and of the sources.

    A site without solutions names no repository, which holds them: no button leads there, and no link to a
    place of the repository where readers ask.

    Raises:
        InvalidParameter: the configuration or a page is not what it must be.
    """
    config, settings = (root / "_config.yml").read_bytes(), author.config(root)
    place, repository = _discussion.address(settings), settings["repository"].get("url")
    if not solutions:
        settings["repository"] |= {"url": ""}
        if repository and place.lower().startswith(f"{repository}".rstrip("/").lower() + "/"):
            settings["discussion"] |= {"url": ""}
        config = yaml.safe_dump(settings, allow_unicode=True, sort_keys=False).encode()
    files = {"_config.yml": config}
    files["_toc.yml"] = yaml.safe_dump(toc, allow_unicode=True, sort_keys=False).encode()
    for path in author.files(root / "book"):
        name = path.relative_to(root).as_posix()
        files[name] = path.read_bytes()
        if path.suffix in (".md", ".yml"):
            files[name] = author.text(root, name).encode()  # in UTF-8, or refused
        said = files[name].decode("utf-8", "replace")
        solved = exercises.ANY_SOLUTION.search(said) or "{code-cell}" in said or name.endswith(".ipynb")
        if solved and not solutions:  # code may be a solution's
            raise InvalidParameter(f"{name}: has a solution, or code; move it to a chapter, or remove it")
    return files


def _png(cell: NotebookNode) -> bytes | None:
    """Return the first picture that a cell shows."""
    shown = [output.get("data", {}) for output in cell.outputs]
    return next((base64.b64decode(data["image/png"]) for data in shown if "image/png" in data), None)


def _picture(notebook: NotebookNode, name: str) -> bytes:
    """Return the picture of the figure `name`, which Sphinx cannot show on another page than its own."""
    for cell in notebooks.code_cells(notebook):
        named = cell.metadata.get("mystnb", {}).get("figure", {}).get("name") == name
        if named and (picture := _png(cell)):
            return picture
    raise RunFailed(f"{HOME_PICTURE[0]}: has no picture called {name}, which the home page shows")


def _staged_files(root: Path, plan: list[Job], solutions: bool) -> dict[str, bytes]:
    """Return every file that a site is built from, by its name in the folder of the site."""
    toc = contents(root, plan)
    files = _written(root, toc, solutions)
    chapters = {}
    documents: dict[str, dict[str, str]] = {}  # of each chapter: model -> page, in the order of the plan
    page_by_rule = {page.job.rule: page for page in pages(plan)}
    terms = author.index(root)
    for job in plan:
        documents.setdefault(job.slug, {})[str(job.model)] = page_by_rule[job.rule].document
    for page in page_by_rule.values():
        notebook = page_of(root, page.job)
        if page.is_chapter:
            _add_index(notebook, terms.get(page.job.slug, []))
            _reports.add(notebook, page.job.slug)
            _quizzes.add(root, page.job.slug, notebook)
            if not solutions:
                notebook.cells = exercises.without_solutions(notebook.cells, chapter=page.job.slug)
            chapters[page.job.slug] = notebook
            files |= exercises.fold_solutions(notebook, page.job.slug)
        else:
            notebook = variant(notebook, model=str(page.job.model))
        files |= _opening(notebook, f"pictures/{Path(page.document).name}.png")
        if len(documents[page.job.slug]) > 1:
            add_switch(notebook, str(page.job.model), documents[page.job.slug])
        files[f"{page.document}.ipynb"] = _bytes(notebook)
    slug, name, place = HOME_PICTURE
    files[place] = _picture(chapters[slug], name)
    manifest = published.manifest(root, plan)
    digest = sha256_of(root / "runs" / plan[0].profile / published.MANIFEST)
    files[f"{RUN_CARD}.md"] = run_card(manifest, digest).encode()
    order = [Path(entry["file"]).name for part in toc["parts"] for entry in part["chapters"]]
    in_order = {slug: chapters[slug] for slug in order if slug in chapters}
    files[f"{COURSE_CARD}.md"] = _syllabus.course_card(in_order).encode()
    files[f"{CHAPTER_MAP}.md"] = chapter_map(in_order).encode()
    files[f"{MODEL_CARDS}.md"] = model_cards(root, manifest).encode()
    takes = {}
    for slug in in_order:
        live = [run for run in manifest["runs"].values() if run["notebook"] == slug and "kept" not in run]
        seconds = sum(run["seconds"] for run in live)
        takes[slug] = _syllabus.chapter(slug, notebooks.read(chain.source(root, slug)), seconds)
    files[f"{SYLLABUS}.md"] = _syllabus.syllabus(takes).encode()
    return files


def stage(root: Path, plan: list[Job], *, solutions: bool = True) -> Path:
    """Write the folder of a site (see `published.site`) from scratch and return it.

    Args:
        root: the repository.
        plan: every run of one profile, complete.
        solutions: whether the site shows them.

    Raises:
        PrivHelpersError: a run is missing, failed or of other code; the folder is left as it was.
    """
    files = _staged_files(root, plan, solutions)
    site = published.site(root, plan[0].profile, solutions=solutions)
    shutil.rmtree(site, ignore_errors=True)
    for name, data in files.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_bytes(data)
    return site
