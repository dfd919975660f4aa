"""Every way in which a page of the book comes to show a text that somebody else wrote.

All payloads stand on the pages that real runs are shown on, and each such page has a twin with plain words in
the same places: what a browser finds in the one and not in the other came out of a payload.
"""

import json
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pandas as pd
import toy_site
import yaml
from faults.payloads.catalogue import Payload
from nbformat import NotebookNode, v4

from bookmaker.runner import chain, notebooks, published
from bookmaker.site import (
    _build,
    _cards,
    _entrance,
    _model_cards,
    _outputs,
    _policy,
    _run_card,
    _staging,
)
from bookmaker.sweep import _gallery, _results
from bookmaker.teaching import _grading, _slides
from privhelpers import hipaa, own_model, parameters
from privhelpers.artifacts import check_name
from privhelpers.attacks import case_studies
from privhelpers.claims import TextTable
from privhelpers.errors import PrivHelpersError
from privhelpers.own_model import _page

ROOT = Path(__file__).parents[3]
CHAPTERS = {"hostile": chain.CHAIN[0].slug, "plain": chain.CHAIN[1].slug}  # chapters that lend their places
RUN_CARDS = {"hostile": "book/run_card", "plain": "book/run_card_plain"}  # by its own name it is not searched
CONFIG = {"n_layer": 2, "n_embd": 8, "vocab_size": 9}
FACTS = ROOT / "reference" / "report" / "evidence.zip"
Texts = Mapping[int, str]


@dataclass(frozen=True)
class Display:
    """One way to be shown.

    Attributes:
        name: of the way.
        page: what shows the payloads, below the folder of the pages.
        where: the part of the page, as a CSS selector.
        twin: the same page with plain words; "" where what is shown depends on the text.
        written: what of a text is given to the page, for example its `repr`; None where markup may be kept.
        refused: why payloads are not shown at all, by number.
        hover: what has to be pointed at before it is there, as a CSS selector.
    """

    name: str
    page: str = ""
    where: str = "main"
    twin: str = ""
    written: Callable[[str], str] | None = str
    refused: dict[int, str] = field(default_factory=dict)
    hover: str = ""


def _refusal(call: Callable[[], object]) -> str:
    """Return why something was refused, as a terminal shows it, or ""."""
    try:
        call()
    except PrivHelpersError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _frame(texts: Texts) -> pd.DataFrame:
    values = list(texts.values())
    # As objects: pandas' own strings hold no lone surrogate.
    return pd.DataFrame(
        {"in a cell": values}, index=pd.Index(values, name="named", dtype=object), dtype=object
    )


def _html(shown: object) -> str:
    limits = ("display.max_rows", None, "display.max_columns", None, "display.max_colwidth", None)
    with pd.option_context(*limits):
        return shown._repr_html_()


def _side_by_side(texts: Texts) -> str:
    given = {f"{number} {text}": text for number, text in texts.items()}
    marks = {name: [(0, max(1, len(text) // 2))] for name, text in given.items()}
    above, heading = list(texts.values())[:2]
    return _html(case_studies.side_by_side(given, marks, first=above, heading=heading))


def _injected(texts: Texts) -> NotebookNode:
    """Return the cell in which papermill writes parameters, of those that pass the door."""
    lines = [f"p{number} = {text!r}" for number, text in texts.items()]
    source = "\n".join(["# Parameters", *lines])
    return v4.new_code_cell(source, id="injected", metadata={"tags": ["injected-parameters"]})


KNOWN = parameters.declared_in('given: str = "toy"  # a text', "toy")


def _refused_parameters(texts: Texts) -> dict[int, str]:
    called = {
        number: _refusal(lambda text=text: parameters.checked(KNOWN, {"given": text}, "toy"))
        for number, text in texts.items()
    }
    return {number: why for number, why in called.items() if why}


def _refused_markup(texts: Texts, shown: Callable[[str], str]) -> dict[int, str]:
    """Return why an output that is markup does not get on a page, for those that do not."""

    def clean(text: str) -> None:
        cell = v4.new_code_cell("", outputs=[toy_site.show(text_html=shown(text))])
        _outputs.clean_outputs(cell, "toy")

    called = {number: _refusal(lambda text=text: clean(text)) for number, text in texts.items()}
    return {number: why for number, why in called.items() if why}


def _styled(text: str) -> str:
    return pd.DataFrame({"x": [text]}, dtype=object).style.to_html()


# Name of the display -> its outputs on the page of a chapter.
OUTPUTS: dict[str, Callable[[Texts], list[NotebookNode]]] = {
    "printed": lambda texts: [v4.new_output("stream", text="".join(f"{text}\n" for text in texts.values()))],
    "returned": lambda texts: [toy_site.show(text_plain=repr(text)) for text in texts.values()],
    "table": lambda texts: [toy_site.show(text_plain="x", text_html=_html(_frame(texts)))],
    "columns": lambda texts: [toy_site.show(text_plain="x", text_html=_html(_frame(texts).T))],
    "side by side": lambda texts: [toy_site.show(text_plain="x", text_html=_side_by_side(texts))],
    "claims": lambda texts: [toy_site.show(text_plain="x", text_html=_html(TextTable(_frame(texts))))],
    # What a page shows of a figure is its table; what a card over a link shows is the figure.
    "figure": lambda texts: [toy_site.show(image_png=toy_site.png(), text_html=_html(_frame(texts)))],
}
WRITTEN = {"printed": lambda text: notebooks.OVERWRITTEN.sub("", text), "returned": repr}
MARKUP = {"HTML": str, "Styler": _styled}
SLIDES = ("printed", "table")  # of the outputs
NUMBERED = "number {}: toy"


def _section(name: str, *cells: NotebookNode) -> list[NotebookNode]:
    return [v4.new_markdown_cell(f"## {name}\n\nToy:", id=name.replace(" ", "-")), *cells]


def _chapter(which: str, texts: Texts, kept: Mapping[str, Texts]) -> tuple[NotebookNode, NotebookNode]:
    """Return the source of a chapter and its run, which shows some texts in every way.

    Args:
        which: one of `CHAPTERS`.
        texts: by number.
        kept: for each display that refuses some, those that it does not.
    """
    title = f"(nb-{which})=\n# Toy {which}\n\nWhat is it?\n\nIt is $x^2$ in {{numref}}`fig-{which}`."
    cells = [
        v4.new_markdown_cell(title, id="title"),
        v4.new_code_cell(toy_site.HEAD.rstrip(), id="parameters", metadata={"tags": ["parameters"]}),
        _injected(kept["parameter"]),
    ]
    for name, made in OUTPUTS.items():
        cell = v4.new_code_cell("show()", id=f"{name.replace(' ', '-')}-cell", outputs=made(texts))
        cell.metadata["tags"] = ["slide" if name in SLIDES else "skip-slide"]
        if name == "figure":
            cell.metadata["mystnb"] = {
                "figure": {"caption": "Toy.", "name": f"fig-{which}"},
                "image": {"alt": "A rectangle."},
            }
        cells += _section(name, cell)
    for name in MARKUP:
        shown = [toy_site.show(text_html=MARKUP[name](text)) for text in kept[name].values()]
        tags = {"tags": ["skip-slide"]}
        cells += _section(name, v4.new_code_cell("show()", id=f"{name}-cell", metadata=tags, outputs=shown))
    glued = [toy_site.glued(f"p{number}", text_plain=repr(text)) for number, text in texts.items()]
    cells.append(v4.new_code_cell("tell()", id="tell", outputs=glued))
    quotes = "\n".join(f"- It is {{glue:text}}`p{number}`." for number in texts)
    cells += _section("quoted", v4.new_markdown_cell(quotes, id="quotes"))
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    for number, cell in enumerate((cell for cell in cells if cell.cell_type == "code"), 1):
        cell.execution_count = number
    run = v4.new_notebook(cells=cells, metadata=kernel)
    source = v4.new_notebook(
        cells=[cell for cell in map(NotebookNode, (dict(c) for c in cells)) if cell.id != "injected"],
        metadata=kernel,
    )
    for cell in source.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    return source, run


def _manifest(texts: Texts) -> dict:
    values = list(texts.values())
    whole = " ".join(values)
    run = {"notebook": whole, "model": whole, "seconds": 9.0, "cpu_seconds": 9.0, "peak_memory_mib": 9}
    run |= {"activities": dict.fromkeys(values, 5.0), "artifacts": {}, "started": "2026-01-01"}
    run |= {"parameters": {text: [text, text] for text in values}}
    versions = dict(zip(values, values, strict=True))
    return {"profile": whole, "total_seconds": 9.0, "versions": versions, "runs": {"toy": run}}


def _model_card(texts: Texts) -> str:
    """Return a page of the cards of models whose every word is a payload."""
    cards, interval = ["# Model cards\n"], {"estimate": 0.5, "low": 0.1, "high": 0.9, "level": 0.95}
    for number, text in texts.items():
        row = {"measure": text, "arm": "member", "unit": text, "cluster": text}
        row |= interval | {"n": 9, "distinct_n": 9, "clusters": 9}
        facts = [("architecture", _model_cards._shape(CONFIG | {"model_type": text}, 9))]
        cards.append(_model_cards._card(f"model {number}", facts, _model_cards._measured([row])))
    return "\n".join(cards)


def _staged(root: Path, texts: Mapping[str, Texts], kept: Mapping[str, Mapping[str, Texts]]) -> Path:
    """Stage the pages of a site that show texts, and return its folder."""
    toy_site.build(root)
    made = {which: _chapter(which, texts[which], kept[which]) for which in CHAPTERS}
    for which, slug in CHAPTERS.items():
        toy_site.write_source(root, slug, made[which][0])
    site = published.site(root, "toy")
    files = {"book/intro.md": "# Toy\n\nWhat is it?\n\nIt is $x^2$.\n"}
    files["book/glossary.md"] = "# Glossary\n\n```{glossary}\nquokka\n  An animal.\n```\n"
    for job in toy_site.jobs(root):
        for which, slug in CHAPTERS.items():
            if job.slug == slug:
                toy_site.write_run(root, job, made[which][1])
                page = _staging.page_of(root, job)
                files[f"notebooks/{which}.ipynb"] = json.dumps(page)
    for which in CHAPTERS:
        files[f"book/card_{which}.md"] = f"# Card {which}\n\nSee {{numref}}`fig-{which}`.\n"
        files[f"{RUN_CARDS[which]}.md"] = _run_card.run_card(_manifest(texts[which]), "0" * 64)
        files[f"book/model_cards_{which}.md"] = _model_card(texts[which])
    pages = [f"book/{name}_{which}" for name in ("card", "model_cards") for which in CHAPTERS]
    pages += RUN_CARDS.values()
    listed = [{"file": name} for name in ("notebooks/plain", "notebooks/hostile", *pages, "book/glossary")]
    toc = {"format": "jb-book", "root": "book/intro", "parts": [{"caption": "Toy", "chapters": listed}]}
    files["_toc.yml"] = yaml.safe_dump(toc, sort_keys=False)
    files["_config.yml"] = (ROOT / "_config.yml").read_text(encoding="utf-8")
    files["book/references.bib"] = (ROOT / "book" / "references.bib").read_text(encoding="utf-8")
    for path in (ROOT / "book" / "_static").iterdir():
        (site / "book" / "_static").mkdir(parents=True, exist_ok=True)
        (site / "book" / "_static" / path.name).write_bytes(path.read_bytes())
    for name, text in files.items():
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        (site / name).write_text(text, encoding="utf-8")
    return site


def _site(root: Path, texts: Mapping[str, Texts], kept: Mapping[str, Mapping[str, Texts]]) -> Path:
    """Build that site as `make book` does, and return its HTML."""
    site = _staged(root, texts, kept)
    _build._jupyter_book(root, site)
    html = site / "_build" / "html"
    _entrance.write(html, None)
    _cards.write(html)
    _policy.protect(html)
    return html


def _report_page(texts: Texts) -> str:
    """Return the report of an audit whose files, models and findings have payloads for names."""
    with zipfile.ZipFile(FACTS) as kept:
        facts = json.loads(kept.read("report.json"))
    values = list(texts.values())
    whole = " ".join(values)
    facts["data"] = [facts["data"][0] | {"file": text, "role": text} for text in values]
    facts["model"] |= {"name": whole, "type": whole, "reference": whole, "kind": whole}
    facts["model"] |= dict.fromkeys(("files", "reference_files"), dict.fromkeys(values, "0"))
    facts["catalogue"] = {"file": whole, "sha256": "0"}
    facts["first_page"] |= {"title": whole, "about": whole, "named": whole}
    facts["explanations"] = values
    facts["tests"] = [facts["tests"][0] | {"name": text} for text in values]
    pictures = {text: b"<svg/>" for text in values}
    written = SimpleNamespace(texts=values, disclosures=SimpleNamespace(disclosed=tuple(values)))
    with mock.patch.object(_page, "_SHOWN", len(values)):
        return own_model.report_page(facts, pictures, written=written)


def _feedback(texts: Texts) -> str:
    tasks = tuple(_grading.Task(text, 0, 1, text) for text in texts.values())
    whole = " ".join(texts.values())
    return _grading.feedback(whole, [_grading.Graded(whole, whole, tasks, 1, whole)])


def _measured(texts: Texts) -> pd.DataFrame:
    rows = []
    for number, text in texts.items():
        row = dict.fromkeys(_results.COLUMNS) | {"profile": "a", "model": "dp-eps-8", "seed": 0}
        row |= {"architecture": text, "epsilon": 8.0, "delta": 1e-5, "level": 0.95, "n": 9}
        row |= {"estimate": 2.0, "low": 1.0, "high": 3.0, "distinct_n": 9, "clusters": 9}
        row |= {"family": text, "method": text, "unit": text, "cluster": text}
        rows.append(row | {"measure": text, "arm": text})
        if number % 25 == 1:  # a picture of them all would be as high as a house
            rows.append(row | {"measure": "perplexity", "arm": "control"})
    return _results.as_table(rows)


def pages(folder: Path, payloads: tuple[Payload, ...]) -> tuple[Path, list[Display]]:
    """Make every page, and return the folder that a browser may ask, with the displays on its pages.

    Args:
        folder: an empty one.
        payloads: what the pages show.
    """
    texts = {
        "hostile": {one.number: one.text for one in payloads},
        "plain": {one.number: NUMBERED.format(one.number) for one in payloads},
    }
    hostile = texts["hostile"]
    refused = {name: _refused_markup(hostile, made) for name, made in MARKUP.items()}
    refused["parameter"] = _refused_parameters(hostile)
    kept = {
        which: {
            name: {number: text for number, text in texts[which].items() if number not in without}
            for name, without in refused.items()
        }
        for which in CHAPTERS
    }
    html = _site(folder / "book", texts, kept)
    chapter = ("notebooks/hostile.html", "notebooks/plain.html")

    def at(name: str) -> str:
        return f"#{name.lower().replace(' ', '-')}"

    def shown(name: str, page: str, twin: str, **more) -> Display:
        return Display(name, page=page, twin=twin, **more)

    displays = [shown(name, *chapter, where=at(name), written=WRITTEN.get(name, str)) for name in OUTPUTS]
    displays.append(shown("quoted", *chapter, where=at("quoted")))
    displays += [
        Display(name, page=chapter[0], where=at(name), written=None, refused=refused[name]) for name in MARKUP
    ]
    injected = ".tag_injected-parameters"
    displays.append(shown("parameter", *chapter, where=injected, written=repr, refused=refused["parameter"]))
    cards = (f"book/card_{which}.html" for which in CHAPTERS)
    displays.append(shown("card over a link", *cards, where="#book-card", hover="article a[href*='fig-']"))
    displays.append(shown("run card", *(f"{name}.html" for name in RUN_CARDS.values()), where="article"))
    cards = (f"book/model_cards_{which}.html" for which in CHAPTERS)
    displays.append(shown("model cards", *cards, where="article"))
    others = {"report": _report_page, "feedback": _feedback}
    others["sheet"] = lambda texts: hipaa.sheet_page([(text, text, text) for text in texts.values()])
    for name, made in others.items():
        for which in CHAPTERS:
            (html / f"{name}_{which}.html").write_text(made(texts[which]), encoding="utf-8")
        displays.append(shown(name, *(f"{name}_{which}.html" for which in CHAPTERS)))
    for which in CHAPTERS:
        _gallery.write(_measured(texts[which]), html / f"gallery_{which}", " ".join(texts[which].values()))
    for page in ("index", "a--dp-eps-8"):
        both = (f"gallery_{which}/{page}.html" for which in CHAPTERS)
        displays.append(shown("gallery" if page == "index" else "run of the gallery", *both))
    displays.append(
        Display("picture", page="gallery_hostile/compare.html", written=None)
    )  # letters are drawn
    names = {number: _refusal(lambda text=text: check_name(text)) for number, text in hostile.items()}
    displays.append(Display("name", refused=names))
    decks = {"Toy": [f"notebooks/{which}" for which in CHAPTERS]}
    _slides.fill(html, decks, html / "slides", "toy")
    displays.append(shown("slides", *(f"slides/{which}.html" for which in CHAPTERS), where="article"))
    return html, displays
