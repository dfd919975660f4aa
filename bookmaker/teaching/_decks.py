"""Selects the slides of a chapter's page and the speaker notes, as a notebook for nbconvert.

A section (`##` or `###`) becomes a slide for each of its figures, or one for its first definition, code, or
table, or one for how its paragraphs begin. The first sentence of the paragraph that reads an exhibit is shown
above it. All prose is in the notes; code, tables and proofs on no slide are left to the page, and so
are solutions. The tags of a cell overrule this: `slide` puts what it shows on a slide, `skip-slide` keeps it
off.

The page comes from the built site, because nbconvert does not read MyST: its references, theorems and numbers
are the site's, its formulas and pictures are local, and what a model wrote in it is text.
"""

from collections.abc import Iterator

from bs4 import BeautifulSoup, NavigableString, Tag
from nbformat import NotebookNode
from nbformat.v4 import new_notebook, new_raw_cell

from bookmaker.site import detach
from privhelpers.errors import DamagedArtifact

CODE_LINES = 16  # of a cell on a slide
ROWS, LETTERS = 14, 1500  # of what a cell showed: more of them are read on the page
POINTS = 5  # of a slide of words
BEGINNING = "Before we start"
SHOWN = "What this run shows"
OWN_SLIDES = {"Exercises", "Solutions", SHOWN, "Quiz"}
LISTS = {"ul", "ol"}
PROSE = {"p", "dl", "blockquote", *LISTS}
NEVER = {"tag_skip-slide", "tag_solution", "tag_injected-parameters", "solution", "dropdown", "models"}
FOLDED = {"tag_bookkeeping", "tag_hide-input"}


def _inner(tag: Tag | None) -> str:
    return tag.decode_contents().strip() if tag else ""


def _is(tag: Tag, names: set[str]) -> bool:
    return not names.isdisjoint(tag.get("class", []))


def _sentences(paragraph: Tag) -> list[str]:
    r"""Return the sentences of a paragraph as HTML: a source has one in a line.

    >>> _sentences(BeautifulSoup("<p>One\nand <em>a\nhalf</em>.\nTwo.</p>", "html.parser").p)
    ['One', 'and <em>a\nhalf</em>.', 'Two.']
    """
    marked = "".join(
        part.output_ready("minimal").replace("\n", "\0") if type(part) is NavigableString else str(part)
        for part in paragraph.contents
    )
    return [line.strip() for line in marked.split("\0") if line.strip()]


def _slide(title: str, body: str, notes: str, shows: str = "words", level: int = 2) -> list[NotebookNode]:
    """Return the two cells of a slide: what it shows, and what is said; all are HTML."""
    shown = f'<h{level}>{title}</h{level}><div class="body" tabindex="0">{body}</div>'
    types = (("slide", shown), ("notes", notes))
    return [
        new_raw_cell(html, metadata={"slideshow": {"slide_type": kind}, "shows": shows})
        for kind, html in types
    ]


def _of_cell(cell: Tag) -> Iterator[tuple[str, str]]:
    """Yield what a slide may show of a cell, with its kind: each figure, or its code, or what it showed."""
    outputs = [part for shown in cell.select(".cell_output") for part in shown.find_all(recursive=False)]
    figures = [part for part in outputs if part.name == "figure"]
    words = [part for part in outputs if part.name != "figure" and part.get_text(strip=True)]
    for figure in figures:
        yield "figure", str(figure)
    listing = cell.select_one(".cell_input pre")
    if listing and listing.get_text(strip=True) and not figures and not _is(cell, FOLDED):
        lines = listing.decode_contents().rstrip("\n").split("\n")
        if len(lines) > CODE_LINES:
            rest = len(lines) - CODE_LINES + 1
            lines[CODE_LINES - 1 :] = [f'<span class="c1"># … {rest} more lines on the page</span>']
        text = "\n".join(lines)
        yield "code", f'<div class="highlight"><pre>{text}\n</pre></div>'
    height = sum(len(part.find_all("tr")) or part.get_text().count("\n") for part in words)
    letters = sum(len(part.get_text()) for part in words)
    if words and ((height <= ROWS and letters <= LETTERS) or _is(cell, {"tag_slide"})):
        shown = "".join(map(str, words))
        yield "table", f'<div class="cell_output mathjax_ignore tex2jax_ignore">{shown}</div>'


def _exhibits(blocks: list[Tag]) -> list[tuple[int, str, str]]:
    """Return the place, the kind, and the HTML of what the slides of a section show."""
    able, must = [], []
    for place, block in enumerate(blocks):
        if _is(block, NEVER):
            continue
        shown = []
        if block.name == "figure":
            shown = [("figure", str(block))]
        elif _is(block, {"cell"}):
            shown = list(_of_cell(block))
        elif _is(block, {"admonition"}):
            shown = [("box", str(block))]
        able += [(place, *one) for one in shown]
        must += [(place, *one) for one in shown if one[0] == "figure" or _is(block, {"tag_slide"})]
    return must or able[:1]


def _prose(blocks: list[Tag]) -> list[Tag]:
    return [block for block in blocks if block.name != "figure" and not _is(block, {"cell"} | NEVER)]


def _of_words(blocks: list[Tag]) -> str:
    """Return what a slide shows of a section without exhibits: its list, or how its paragraphs begin."""
    paragraphs = [block for block in blocks if block.name == "p" and _sentences(block)]
    if lists := [block for block in blocks if block.name in LISTS]:
        return "".join(f"<p>{_sentences(one)[0]}</p>" for one in paragraphs[:1]) + str(lists[0])
    return "<ul>{}</ul>".format("".join(f"<li>{_sentences(one)[0]}</li>" for one in paragraphs[:POINTS]))


def _of_section(title: str, blocks: list[Tag], exhibits: list[tuple[int, str, str]]) -> list[NotebookNode]:
    """Return the slides of a section; the notes of each have the prose down to what it shows."""
    cells, start = [], 0
    for number, (place, kind, body) in enumerate(exhibits, 1):
        last = number == len(exhibits)
        after = blocks[place + 1 : place + 2]
        reading = [*(after if kind in ("figure", "table") else []), *reversed(blocks[:place])]
        said = next((_sentences(one)[:1] for one in reading if one.name == "p"), []) if kind != "box" else []
        of_all = f" <small>{number} of {len(exhibits)}</small>" if len(exhibits) > 1 else ""
        notes = "\n".join(map(str, _prose(blocks[start : None if last else place])))
        body = "".join(f'<p class="said">{one}</p>' for one in said) + body
        cells += _slide(title + of_all, body, notes, kind)
        start = place
    return cells or _slide(title, _of_words(blocks), "\n".join(map(str, _prose(blocks))))


def _parts(section: Tag, depth: int = 0) -> Iterator[tuple[str, list[Tag]]]:
    """Yield the title and the blocks of a section and of each section in it."""
    inside = section.find_all(recursive=False)
    heading = next((tag for tag in inside if tag.name in ("h1", "h2", "h3", "h4")), None)
    if heading is None or (depth == 1 and heading.get_text(strip=True) in OWN_SLIDES):
        return
    yield (
        _inner(heading),
        [tag for tag in inside if tag is not heading and tag.name not in ("section", "span")],
    )
    for below in (tag for tag in inside if tag.name == "section"):
        yield from _parts(below, depth + 1)


def _opening(title: str, blocks: list[Tag], origin: str) -> list[NotebookNode]:
    """Return the first slides: the question, what one will do, and figures that stand before a section."""
    paragraphs = [block for block in blocks if block.name == "p"]
    if not paragraphs:
        raise DamagedArtifact("its page has no opening")
    question, *rest = _sentences(paragraphs[0])
    body = f'<p class="question">{question}</p><p class="origin">{origin}</p>'
    boxes = [block for block in blocks if _is(block, {"admonition"}) and block.find("p")]
    named = {box.find("p").get_text(strip=True): box for box in boxes}
    aims, promise = named.pop("You will", None), named.pop("Guarantee", "")
    goals = "".join(map(str, aims.find_all(LISTS))) if aims else ""
    others = [
        block for block in blocks if block is not paragraphs[0] and not any(block is one for one in boxes)
    ]
    figures = [one for one in _exhibits(others) if one[1] == "figure"]
    notes = "".join(map(str, [*named.values(), *([] if figures else _prose(others))]))
    cells = _slide(title, body, f"<p>{' '.join(rest)}</p>", "title", level=1)
    cells += _slide("You will", f"{goals}{promise}", notes)
    return cells + (_of_section(BEGINNING, others, figures) if figures else [])


def _closing(article: Tag) -> list[NotebookNode]:
    """Return the last slides: the exercises without their solutions, what to take away, and a question."""
    cells = []
    if tasks := article.select("div.exercise"):
        titled = ((_inner(task.find("p")), _inner(task.find("div"))) for task in tasks)
        cards = "".join(f"<li><p><strong>{title}</strong></p>{text}</li>" for title, text in titled)
        cells += _slide("Exercises", f'<ol class="cards">{cards}</ol>', "")
    for section in article.find_all("section", recursive=False):
        if section.h2 is not None and section.h2.get_text(strip=True) == SHOWN:
            cells += _slide(SHOWN, "".join(map(str, section.select("ul.claims"))), "")
    if asked := article.select_one("div.quiz-question"):
        asks = "".join(str(tag) for tag in asked.find_all(["p", "ol"], recursive=False))
        why = "".join(map(str, asked.select(".quiz-why > p")))
        cells += _slide("A question", asks.replace("<strong>1.</strong> ", "", 1), why, "quiz")
    return cells


def deck(page: str, origin: str) -> NotebookNode:
    """Return the deck of a chapter as a notebook whose cells have nbconvert's slide types.

    Args:
        page: the HTML of the chapter's page on the built site, with or without solutions.
        origin: what the first slide says about the run.

    Raises:
        DamagedArtifact: it is not a page of a chapter.
    """
    section = BeautifulSoup(page, "html.parser").select_one("article > section")
    if section is None:
        raise DamagedArtifact("its page has no article")
    detach(section)
    for picture in section.select("img.opening"):  # a figure further down has a slide of its own
        picture.decompose()
    for inner in section.select(".admonition section"):  # to reveal.js a section is a slide
        inner.name = "div"
    parts = list(_parts(section))
    if not parts:
        raise DamagedArtifact("its page has no title")
    (title, blocks), *rest = parts
    cells = _opening(title, blocks, origin)
    for heading, blocks in rest:
        cells += _of_section(heading, blocks, _exhibits(blocks)) if blocks else []
    return new_notebook(cells=cells + _closing(section), metadata={"title": title})
