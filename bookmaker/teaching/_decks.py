"""What of a chapter's page goes on slides, and what a speaker says beside them.

A section (`##` or `###`) becomes a group of slides. A slide has one exhibit: a figure, a definition or
theorem, code that is taught, or what a cell showed; above it stands the sentence that reads it, or says what
it is for. Every figure gets a slide, and so does every `##` section; the rest goes round the sections, best
exhibits first, until the deck is long enough. Prose that stands on no slide is in the notes, in its order;
code, tables and proofs that stand on none are left to the page, and so are solutions.

The tags of a cell overrule this: `slide` puts what it shows on a slide, `skip-slide` keeps it off.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from bs4 import BeautifulSoup, NavigableString, Tag

from bookmaker.site import detach
from privhelpers.errors import DamagedArtifact

FEWEST, AIM = 12, 16  # slides of a deck: how many there are in any case, and to how many good exhibits lead
CODE_LINES = 16  # of a cell on a slide
BESIDE_LINES, BESIDE_LETTERS = 9, 500  # of code, and of what it showed, on one slide
ROWS, LETTERS = 14, 1500  # of what a cell showed: more of them are read on the page
SAID = 190  # letters of two sentences that go on a slide together
POINTS = 5  # of a slide without an exhibit
MUST, BOX, CODE, SHOWN, CALL = range(5)  # ranks of exhibits
BEGINNING = "Before we start"
OWN_SLIDES = {"Exercises", "Summary", "Quiz"}
PROSE = {"p", "ul", "ol", "dl", "blockquote"}
NEVER = {"tag_skip-slide", "tag_solution", "tag_injected-parameters", "solution", "dropdown", "models"}
FOLDED = {"tag_bookkeeping", "tag_hide-input"}


@dataclass(frozen=True)
class Slide:
    """One slide: its title, its body and the notes beside it as HTML, and what kind of thing it shows."""

    title: str
    body: str
    notes: str
    kind: str = "text"


@dataclass(frozen=True)
class _Exhibit:
    """What a slide is about: the place of its block, its rank, the HTML that is shown, and its kind."""

    place: int
    rank: int
    body: str
    kind: str


@dataclass
class _Part:
    """A section without those in it: its title, its blocks, and what may be shown of them."""

    title: str
    group: int  # of its `##` section; 0 is what stands before the first
    blocks: list[Tag]
    exhibits: list[_Exhibit] = field(default_factory=list)
    chosen: list[_Exhibit] = field(default_factory=list)

    def free(self) -> list[_Exhibit]:
        """Return what is not chosen yet, the best first."""
        return sorted(
            (one for one in self.exhibits if one not in self.chosen), key=lambda one: (one.rank, one.place)
        )


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


def _said(paragraph: Tag, reads: bool) -> tuple[str, str]:
    """Return the one or two sentences of a paragraph that go on a slide, and the rest for the notes.

    The last sentence of a paragraph that `reads` what stands above it may announce what follows, and one that
    begins in lower case ends a sentence with a formula in it.
    """
    sentences = _sentences(paragraph)
    first = int(len(sentences) > 1 and sentences[0][0].islower())
    letters = len(BeautifulSoup(" ".join(sentences[first : first + 2]), "html.parser").get_text())
    end = first + (2 if letters <= SAID and not (reads and len(sentences) == 2) else 1)
    rest = "\n".join([*sentences[:first], *sentences[end:]])
    return f'<p class="said">{" ".join(sentences[first:end])}</p>', f"<p>{rest}</p>" if rest else ""


def _taught(source: str) -> tuple[list[int], bool]:
    """Return which lines of a cell go on a slide, counted from 0, and whether it defines something.

    Imports go, and where the cell is too long everything but what it defines.

    >>> _taught("import math\\n\\n\\ndef f():\\n    return 1\\n\\n\\nf()")
    ([3, 4, 5, 7], True)
    """
    lines = source.split("\n")
    try:
        statements = ast.parse(source).body
    except SyntaxError:  # a magic of IPython
        return list(range(len(lines))), False
    imports, defined = set(), set()
    for one in statements:
        if isinstance(one, ast.Import | ast.ImportFrom):
            imports |= set(range(one.lineno - 1, one.end_lineno))
        elif isinstance(one, ast.FunctionDef | ast.ClassDef):
            first = min([one.lineno, *(decorator.lineno for decorator in one.decorator_list)])
            defined |= set(range(first - 1, one.end_lineno + 1))  # with an empty line
    kept = sorted(set(range(len(lines))) - imports)
    if defined and len(kept) > CODE_LINES:
        kept = sorted(defined & set(kept))
    full = [bool(lines[number].strip()) for number in kept]
    last = max((at for at, some in enumerate(full) if some), default=-1)
    # One empty line stands for several, and none for those at the ends.
    shown = [n for at, n in enumerate(kept) if full[at] or (0 < at < last and full[at - 1])]
    return shown, bool(defined)


def _code(cell: Tag) -> tuple[str, int, bool]:
    """Return the code of a cell as a slide shows it, its lines, and whether it defines something."""
    listing = cell.select_one(".cell_input pre")
    if listing is None or _is(cell, FOLDED):
        return "", 0, False
    source, marked = listing.get_text().rstrip("\n"), listing.decode_contents().split("\n")
    numbers, defines = _taught(source)
    shown = [marked[number] for number in numbers]
    if len(shown) > CODE_LINES:
        rest = len(shown) - CODE_LINES + 1
        shown[CODE_LINES - 1 :] = [f'<span class="c1"># … {rest} more lines on the page</span>']
    lines = "\n".join(shown)
    return f'<div class="highlight"><pre>{lines}\n</pre></div>' if shown else "", len(shown), defines


def _of_cell(cell: Tag, place: int) -> Iterator[_Exhibit]:
    """Yield what a slide may show of a cell: each figure, its code, and what it showed in words."""
    must = _is(cell, {"tag_slide"})
    outputs = [part for shown in cell.select(".cell_output") for part in shown.find_all(recursive=False)]
    figures = [part for part in outputs if part.name == "figure"]
    words = [part for part in outputs if part.name != "figure" and part.get_text(strip=True)]
    height = sum(len(part.find_all("tr")) or part.get_text().count("\n") for part in words)
    letters = sum(len(part.get_text()) for part in words)
    said = "".join(map(str, words))
    said = said and f'<div class="cell_output mathjax_ignore tex2jax_ignore">{said}</div>'
    code, lines, defines = _code(cell)
    together = bool(code and said) and not figures and max(lines, height) <= BESIDE_LINES
    together = together and letters <= BESIDE_LETTERS
    if code and (defines or not figures):
        rank = MUST if must else CODE if defines else SHOWN if together else CALL
        yield _Exhibit(place, rank, code + (said if together else ""), "code")
    for figure in figures:
        yield _Exhibit(place, MUST, str(figure), "figure")
    if said and not together and (must or (height <= ROWS and letters <= LETTERS)):
        yield _Exhibit(place, MUST if must else SHOWN, said, "table")


def _exhibits(blocks: list[Tag]) -> Iterator[_Exhibit]:
    """Yield what a slide may show of the blocks of a section."""
    for place, block in enumerate(blocks):
        if _is(block, NEVER):
            continue
        if block.name == "figure":
            yield _Exhibit(place, MUST, str(block), "figure")
        elif _is(block, {"cell"}):
            yield from _of_cell(block, place)
        elif _is(block, {"admonition"}):
            main = _is(block, {"proof"}) and not _is(block, {"lemma"})
            yield _Exhibit(place, BOX if main else SHOWN, str(block), "box")


def _parts(section: Tag, group: int = 0, depth: int = 0) -> Iterator[_Part]:
    """Yield a section and the sections in it, each without the ones below."""
    inside = section.find_all(recursive=False)
    heading = next((tag for tag in inside if tag.name in ("h1", "h2", "h3", "h4")), None)
    if heading is None or (depth == 1 and heading.get_text(strip=True) in OWN_SLIDES):
        return
    blocks = [tag for tag in inside if tag is not heading and tag.name not in ("section", "span")]
    yield _Part(_inner(heading), group, blocks, list(_exhibits(blocks)))
    for number, below in enumerate((tag for tag in inside if tag.name == "section"), 1):
        yield from _parts(below, group or number, depth + 1)


def _choose(parts: list[_Part], fewest: int, aim: int) -> None:
    """Choose the exhibits that get a slide: what must, the best of each group, then round the parts."""
    for part in parts:
        part.chosen = [one for one in part.exhibits if one.rank == MUST]
    groups = {part.group for part in parts if part.group}
    for group in groups - {part.group for part in parts if part.chosen}:
        if able := [part for part in parts if part.group == group and part.exhibits]:
            best = min(able, key=lambda part: part.free()[0].rank)
            best.chosen.append(best.free()[0])
    bare = len(groups - {part.group for part in parts if part.chosen})  # they get a slide of words
    while (count := bare + sum(len(part.chosen) for part in parts)) < aim:
        able = [part for part in parts if part.free() and (part.free()[0].rank < CALL or count < fewest)]
        if not able:
            return
        turn = min(
            able, key=lambda part: (part.free()[0].rank == CALL, len(part.chosen), part.free()[0].rank)
        )
        turn.chosen.append(turn.free()[0])


def _prose(blocks: list[Tag]) -> list[Tag]:
    return [block for block in blocks if block.name != "figure" and not _is(block, {"cell"} | NEVER)]


def _points(part: _Part) -> Slide:
    """Return the slide of a section that shows nothing: its list, or how its paragraphs begin."""
    prose = _prose(part.blocks)
    paragraphs = [block for block in prose if block.name == "p"]
    if lists := [block for block in prose if block.name in ("ul", "ol")]:
        said, rest = _said(paragraphs[0], False) if paragraphs else ("", "")
        body, left = said + str(lists[0]), [rest]
        shown = [*paragraphs[:1], lists[0]]
    else:
        each = 1 if len(paragraphs) > 1 else POINTS
        shown = paragraphs[:POINTS]
        points = [sentence for block in shown for sentence in _sentences(block)[:each]]
        body = "<ul>{}</ul>".format("".join(f"<li>{point}</li>" for point in points))
        left = [f"<p>{' '.join(rest)}</p>" for block in shown if (rest := _sentences(block)[each:])]
    left += [str(block) for block in prose if not any(block is one for one in shown)]
    return Slide(part.title, body, "\n".join(filter(None, left)))


def _announces(paragraph: Tag, following: list[Tag]) -> bool:
    """Return whether a paragraph only says what comes next, of the blocks below it."""
    before_figure = bool(following) and following[0].find("figure") is not None
    return len(_sentences(paragraph)) == 1 and (before_figure or paragraph.get_text().endswith(":"))


def _of_part(part: _Part) -> Iterator[Slide]:
    """Yield the slides of a section, and give each of its paragraphs to the one where it is said."""
    chosen = sorted(part.chosen, key=lambda one: (one.place, part.exhibits.index(one)))
    start = 0
    for number, one in enumerate(chosen, 1):
        following = chosen[number].place if number < len(chosen) else None
        before, after = part.blocks[start : one.place], part.blocks[one.place + 1 :]
        reads = after[:1] if following != one.place and after and after[0].name == "p" else []
        reads = [block for block in reads if not _announces(block, after[1:2])]
        prose = _prose([*before, *(reads if following is not None else after)])
        introduces = [block for block in (before[-1:] if one.kind == "box" else before) if block.name == "p"]
        by_reading = bool(reads) and one.kind in ("figure", "table")
        spoken = reads[0] if by_reading else introduces[-1] if introduces else None
        said, rest = _said(spoken, by_reading) if spoken is not None else ("", "")
        if (
            spoken is None
            and one.kind != "box"
            and one.place
            and (last := part.blocks[one.place - 1]).name == "p"
        ):
            said = f'<p class="said">{_sentences(last)[-1]}</p>'  # said of the slide before, and of this one
        notes = [rest if block is spoken else str(block) for block in prose]
        title = part.title + (f" <small>{number} of {len(chosen)}</small>" if len(chosen) > 1 else "")
        yield Slide(title, said + one.body, "\n".join(filter(None, notes)), one.kind)
        start = one.place + 1 + len(reads)


def _opening(intro: _Part) -> Iterator[Slide]:
    """Yield the first two slides, the question and what one will do, and take them out of the beginning."""
    boxes = [block for block in intro.blocks if _is(block, {"admonition"}) and block.find("p")]
    paragraphs = [block for block in intro.blocks if block.name == "p"]
    if not paragraphs:
        raise DamagedArtifact("its page has no opening")
    question, *rest = _sentences(paragraphs[0])
    yield Slide(intro.title, f'<p class="question">{question}</p>', f"<p>{' '.join(rest)}</p>", "title")
    named = {box.find("p").get_text(strip=True): box for box in boxes}
    aims, promise = named.pop("You will", None), named.pop("Guarantee", "")
    goals = "".join(map(str, aims.find_all(["ul", "ol"]))) if aims else ""
    yield Slide("You will", f"{goals}{promise}", "".join(map(str, named.values())))
    used = [*boxes, paragraphs[0]]
    intro.blocks = [block for block in intro.blocks if not any(block is one for one in used)]
    # Beside a figure, what stands there only gets things ready.
    intro.exhibits = [one for one in _exhibits(intro.blocks) if one.rank == MUST]
    intro.title = BEGINNING


def _closing(article: Tag) -> Iterator[Slide]:
    """Yield the last slides: the exercises without their solutions, what to take away, and a question."""
    if tasks := article.select("div.exercise"):
        titled = ((_inner(task.find("p")), _inner(task.find("div"))) for task in tasks)
        cards = "".join(f"<li><p><strong>{title}</strong></p>{text}</li>" for title, text in titled)
        yield Slide("Exercises", f'<ol class="cards">{cards}</ol>', "")
    for section in article.find_all("section", recursive=False):
        if section.h2 is not None and section.h2.get_text(strip=True) == "Summary":
            blocks = [tag for tag in section.find_all(recursive=False) if tag.name in PROSE]
            shown = [tag for tag in blocks if tag.name in ("ul", "ol")] or blocks[:1]
            others = [str(tag) for tag in blocks if not any(tag is one for one in shown)]
            yield Slide("Summary", "".join(map(str, shown)), "".join(others))
    if asked := article.select_one("div.quiz-question"):
        asks = "".join(str(tag) for tag in asked.find_all(["p", "ol"], recursive=False))
        why = "".join(map(str, asked.select(".quiz-why > p")))
        yield Slide("A question", asks.replace("<strong>1.</strong> ", "", 1), why, "quiz")


def slides(page: str) -> list[Slide]:
    """Return the slides of a chapter.

    Args:
        page: the HTML of the chapter's page on the built site, with or without solutions.

    Raises:
        DamagedArtifact: it is no page of a chapter.
    """
    section = BeautifulSoup(page, "html.parser").select_one("article > section")
    if section is None:
        raise DamagedArtifact("its page has no article")
    detach(section)
    for inner in section.select(".admonition section"):  # to reveal.js a section is a slide
        inner.name = "div"
    parts = list(_parts(section))
    if not parts:
        raise DamagedArtifact("its page has no title")
    deck, last = list(_opening(parts[0])), list(_closing(section))
    taken = len(deck) + len(last)
    _choose(parts, FEWEST - taken, AIM - taken)
    shown = {0} | {part.group for part in parts if part.chosen}
    for part in parts:
        if part.chosen:
            deck += _of_part(part)
        elif part.group not in shown:  # the `##` section itself, which stands before those in it
            shown.add(part.group)
            deck.append(_points(part))
        else:
            notes = [deck[-1].notes, *map(str, _prose(part.blocks))]
            deck[-1] = replace(deck[-1], notes="\n".join(filter(None, notes)))
    return deck + last
