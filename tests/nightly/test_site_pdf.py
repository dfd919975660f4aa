"""The book on paper: complete, in order, typeset, and nothing asked of anyone."""

import io
import re
import shutil
import subprocess
import sys
import unicodedata
from pathlib import Path

import matplotlib
import pytest
from patience import LIMIT_SECONDS
from pypdf import PdfReader

from bookmaker.runner.chain import SLUGS
from bookmaker.site import _pdf
from privhelpers.errors import RunFailed

pytestmark = pytest.mark.browser
SITE = "runs/toy/site"
CHAPTER = "notebooks/hipaa"
FEW = [{"caption": "", "pages": [{"name": CHAPTER, "level": 1}]}]
SMALL = {"parts": FEW, "title": "Few", "front": ["Few"]}
MACHINE = re.compile(r"book\.invalid|file:|127\.0\.0\.1|localhost")


@pytest.fixture(scope="module")
def printed(toy_book):
    """Return a toy book whose site is built and printed."""
    call = [sys.executable, "-m", "bookmaker.site", "pdf", "--profile", "toy"]
    done = subprocess.run(call, cwd=toy_book, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    assert done.returncode == 0 and "runs/toy/privai-leak.pdf" in done.stderr, done.stderr
    return toy_book


@pytest.fixture(scope="module")
def reader(printed):
    return PdfReader(printed / "runs/toy/privai-leak.pdf")


@pytest.fixture(scope="module")
def texts(reader):
    return [unicodedata.normalize("NFKC", page.extract_text()) for page in reader.pages]


@pytest.fixture
def html(printed, tmp_path):
    """A copy of the built site, for a test to damage."""
    return shutil.copytree(printed / SITE / "_build" / "html", tmp_path / "html")


def edit(html, old, new):
    page = html / f"{CHAPTER}.html"
    text = page.read_text(encoding="utf-8")
    assert old in text
    page.write_text(text.replace(old, new), encoding="utf-8")


def bookmarks(reader, entries=None, depth=0):
    """Return every bookmark: depth, title, index of its page."""
    marks = []
    for entry in reader.outline if entries is None else entries:
        if isinstance(entry, list):
            marks += bookmarks(reader, entry, depth + 1)
        else:
            marks.append((depth, entry.title, reader.get_destination_page_number(entry)))
    return marks


def plain(text):
    """Return a text without blanks, and with letters in place of ligatures, which depend on the fonts."""
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", text))


def test_every_page_of_the_book_begins_a_page_in_the_order_of_the_contents(printed, reader, texts):
    names = [page["name"] for part in _pdf.parts(printed / SITE) for page in part["pages"]]
    pages = [(printed / SITE / "_build/html" / f"{name}.html").read_text(encoding="utf-8") for name in names]
    titles = [re.sub("<[^>]+>", "", re.search(r"<h1>(.+?)<a class", page)[1]) for page in pages]
    marks = bookmarks(reader)
    places = [next(place for _, marked, place in marks if plain(marked) == plain(one)) for one in titles]
    assert len(titles) > 40 and places == sorted(places) and len(set(places)) == len(places)
    assert all(plain(one) in plain(texts[at])[:120] for one, at in zip(titles, places, strict=True))
    depth = {title: depth for depth, title, _ in reversed(marks)}  # of its first place
    assert depth["The core"] == depth["Library: attacks"] == 0 and depth["Toy extraction"] == 1
    assert not any(re.search(r"ε\s=\s12", title) for _, title, _ in marks), "a chapter is printed once"
    assert _pdf.TITLE in texts[0] and "profile toy" in texts[0] and "Toy the_claim" in texts[1]


def test_formulas_are_typeset_and_what_is_folded_is_open(texts):
    text = "\n".join(texts)
    assert "$$" not in text and "\\frac" not in text and "\\(" not in text
    assert re.search(r"The formula\s+x2 ?\+ ?y2\s*\W* is drawn", text) and re.search(r"σ ?= ?1\s*ε", text)
    assert "baseline $x$" in text, "a dollar sign in an output is a dollar sign"
    assert text.count("One and one make two.") == len(SLUGS) and "target_epsilon = 7.0" in text
    assert not any(button in text for button in ("Hide this run", "Hide code", "Run it yourself"))


def test_links_lead_into_the_book_or_to_the_world_and_screen_readers_get_structure(printed, reader):
    links = [one.get_object() for page in reader.pages for one in page.get("/Annots", [])]
    outside = [link["/A"]["/URI"] for link in links if "/A" in link]
    inside = [link["/Dest"] for link in links if "/A" not in link]
    assert outside and not any(MACHINE.search(one) for one in outside)
    assert len(inside) > 300 and set(inside) <= reader.named_destinations.keys()
    data, root = (printed / "runs/toy/privai-leak.pdf").read_bytes(), reader.trailer["/Root"]
    assert root["/MarkInfo"]["/Marked"] and root["/Lang"].startswith("en")
    assert b"(A blue rectangle.)" in data and b"/Alt (x^2 + y^2)" in data and b"/JavaScript" not in data


def test_a_missing_file_and_a_wrong_formula_are_refused_by_their_page(html):
    edit(html, "x^2 + y^2", "\\frac{")
    with pytest.raises(RunFailed, match=CHAPTER):
        _pdf.render(html, SMALL)
    (html / f"{CHAPTER}.html").unlink()
    with pytest.raises(RunFailed, match=f"{CHAPTER}.html"):
        _pdf.render(html, SMALL)


@pytest.fixture(params=["the machine's fonts", "DejaVu alone"])
def fonts(request, tmp_path, monkeypatch):
    """Let Chromium have the fonts of this machine, or those alone that come with matplotlib."""
    if request.param == "DejaVu alone":
        place, file = Path(matplotlib.get_data_path(), "fonts", "ttf"), tmp_path / "fonts.conf"
        every = '<match><edit name="family" mode="append"><string>DejaVu Sans</string></edit></match>'
        lines = f"<dir>{place}</dir><cachedir>{tmp_path / 'cache'}</cachedir>{every}"
        file.write_text(f'<?xml version="1.0"?><fontconfig>{lines}</fontconfig>', encoding="utf-8")
        monkeypatch.setenv("FONTCONFIG_FILE", str(file))


@pytest.mark.wrong_numbers
def test_a_heading_of_several_lines_is_one_bookmark_with_its_spaces(html, fonts):
    two = "A heading of so many words that they do not fit next to each other on one line of this paper"
    three = f"{two}, and the first offices that find fluffy waffles need a third line, whatever the font is"
    edit(html, "<h1>Toy hipaa", f"<h1>{two}")
    edit(html, "<h2>What this run", f"<h2>{three}</h2><h3>{two}</h3><h4>{three}</h4><h2>What this run")
    made = PdfReader(io.BytesIO(_pdf.render(html, SMALL)))
    titles = [marked for _, marked, _ in bookmarks(made)]
    assert [titles.count(one) for one in (two, three)] == [2, 2], titles
    text = "".join(page.extract_text() for page in made.pages)
    assert not re.search("[\ufb00-\ufb06]", text), "a word that is copied or searched has its own letters"
