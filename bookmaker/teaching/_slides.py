"""`python -m bookmaker slides`: nbconvert makes a deck of slides with speaker notes for each chapter.

A deck is one page of reveal.js, which lies in `bookmaker/teaching/reveal` as its wheel has it, next to a
template for nbconvert: its own asks other hosts for scripts and styles. The decks pass the checks of the site
and carry its policy. They load nothing but what lies next to them.
"""

import re
import shutil
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape
from nbconvert import SlidesExporter

from bookmaker.runner import files, published
from bookmaker.runner.plan import Job
from bookmaker.site import contents, findings, machine_strings, protect
from bookmaker.teaching._decks import deck
from privhelpers.artifacts import write_atomic
from privhelpers.errors import DamagedArtifact, RunFailed

OURS = Path(__file__).parent / "reveal"
LOADED = ("reveal.js", "reveal.css", "LICENSE", "deck.js", "deck.css")
OF_SITE = ("pygments.css", "favicon.svg", "mathjax")  # below its `_static`
MATHJAX = re.compile(r"<script>(window\.MathJax = .*?)</script>")
PICTURE = re.compile(r'"_images/([^"/]+)"')


def _copy(source: Path, place: Path) -> None:
    """Copy a file or a folder, over what lies there."""
    place.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, place, dirs_exist_ok=True)
    else:
        shutil.copy2(source, place)


def fill(site: Path, parts: dict[str, list[str]], folder: Path, profile: str) -> list[Path]:
    """Write a deck for every page of some parts, what the decks load, and their index; return the decks.

    Args:
        site: the HTML of a built site.
        parts: caption and pages of each, such as `notebooks/auditing`.
        folder: where the decks go, made if it is missing.
        profile: whose run it is, for the title.

    Raises:
        DamagedArtifact: a page is not a chapter; the message names it.
    """
    exporter = SlidesExporter(
        template_name="deck",
        extra_template_basedirs=[str(OURS)],
        reveal_url_prefix="_static",
    )
    made, listed, pictures = [], {caption: [] for caption in parts}, set()
    folder.mkdir(parents=True, exist_ok=True)
    for caption, name in ((caption, name) for caption, pages in parts.items() for name in pages):
        page = (site / f"{name}.html").read_text(encoding="utf-8")
        try:
            notebook = deck(page, f"PrivAI-Leak, run of profile {escape(profile)}")
        except DamagedArtifact as error:
            raise DamagedArtifact(f"{name}.html: {error}") from error
        settings = MATHJAX.search(page)
        notebook.metadata |= {
            "title": Markup(notebook.metadata.title).striptags(),
            "mathjax": settings and settings[1],
        }
        text, _ = exporter.from_notebook_node(notebook)
        pictures |= set(PICTURE.findall(text))
        made.append(folder / f"{Path(name).name}.html")
        write_atomic(made[-1], text.encode())
        listed[caption].append((made[-1].stem, notebook.metadata.title, len(notebook.cells) // 2))
    template = (OURS / "index.html").read_text(encoding="utf-8")
    index = Environment(autoescape=True, undefined=StrictUndefined).from_string(template)
    write_atomic(folder / "index.html", index.render(parts=listed, profile=profile).encode())
    for name in LOADED:
        _copy(OURS / name, folder / "_static" / name)
    for name in [*(f"_static/{name}" for name in OF_SITE), *(f"_images/{name}" for name in sorted(pictures))]:
        _copy(site / name, folder / name)
    protect(folder)
    return made


def write(root: Path, plan: list[Job]) -> list[Path]:
    """Write the decks of every chapter to `runs/<profile>/slides/`, where no other file stays; return them.

    Args:
        root: the repository.
        plan: every run of a profile, whose site is built.

    Raises:
        MissingArtifact: there is no finished site with solutions.
        DamagedArtifact: the site changed after it was built, or one of its pages is not a chapter.
        RunFailed: a deck breaks a rule of the site's checks; the old decks stay.
    """
    profile = plan[0].profile
    site = published.finished(root, profile, solutions=True)
    parts = {
        part["caption"]: [one["file"] for one in part["chapters"] if one["file"].startswith("notebooks/")]
        for part in contents(root, plan)["parts"]
    }
    folder = root / "runs" / profile / "slides"
    with files.replacing(folder, "*") as new:
        made = fill(site / "_build" / "html", parts, new, profile)
        if problems := findings(new, machine_strings(root)):
            raise RunFailed(f"the slides cannot be shown: {'; '.join(problems[:3])}")
    return [folder / deck.name for deck in made]
