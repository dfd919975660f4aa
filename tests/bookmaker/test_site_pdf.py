"""The book on paper, all of it and one page: complete, in order, typeset, and nothing asked of anybody."""

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
from bookmaker.site import __main__ as command
from bookmaker.site import _pdf
from bookmaker.site._pdf import SUMMARY, TITLE
from privaudit import browser
from privhelpers.errors import MissingArtifact, MissingProgram, RunFailed

pytestmark = pytest.mark.browser
SITE = "runs/toy/site"
CHAPTER = "notebooks/hipaa"
FEW = [{"caption": "", "pages": [{"name": CHAPTER, "level": 1}]}]
SMALL = {"parts": FEW, "title": "Few", "front": ["Few"]}
MACHINE = re.compile(r"book\.invalid|file:|127\.0\.0\.1|localhost")


def files_of(folder):
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.fixture(scope="module")
def printed(toy_book):
    """A toy book whose site is built and printed, and what the site was before that."""
    before = files_of(toy_book / SITE)
    call = [sys.executable, "-m", "bookmaker.site", "pdf", "--profile", "toy"]
    done = subprocess.run(call, cwd=toy_book, capture_output=True, text=True, timeout=LIMIT_SECONDS)
    assert done.returncode == 0, done.stderr
    assert re.search(r"printed in .+: runs/toy/privai-leak\.pdf, [\d.]+ MB", done.stderr)
    return toy_book, before


@pytest.fixture(scope="module")
def reader(printed):
    return PdfReader(printed[0] / "runs/toy/privai-leak.pdf")


@pytest.fixture(scope="module")
def texts(reader):
    return [unicodedata.normalize("NFKC", page.extract_text()) for page in reader.pages]


@pytest.fixture
def html(printed, tmp_path):
    """A copy of the built site, for a test to damage."""
    return shutil.copytree(printed[0] / SITE / "_build" / "html", tmp_path / "html")


def edit(html, old, new, name=CHAPTER):
    page = html / f"{name}.html"
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


def heading(root, name):
    text = (root / SITE / "_build" / "html" / f"{name}.html").read_text(encoding="utf-8")
    return re.sub("<[^>]+>", "", re.search(r"<h1>(.+?)<a class", text)[1])


def plain(text):
    """Return a text without blanks, and with letters in place of ligatures, which depend on the fonts."""
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", text))


def test_every_page_of_the_book_begins_a_page_in_the_order_of_the_contents(printed, reader, texts):
    root, _ = printed
    pages = [page for part in _pdf.parts(root / SITE) for page in part["pages"]]
    titles = [heading(root, page["name"]) for page in pages]
    assert len(titles) > 40 and len(texts) > len(titles)
    marks = bookmarks(reader)
    places = []
    for title in titles:
        matches = [place for _, marked, place in marks if plain(marked) == plain(title)]
        assert matches, f"no bookmark {title}"
        assert plain(title) in plain(texts[matches[0]])[:120]
        places.append(matches[0])
    assert places == sorted(places) and len(set(places)) == len(places)


def test_bookmarks_nest_as_the_contents_do(reader):
    marks = bookmarks(reader)
    titles = [title for _, title, _ in marks]
    depth = {title: depth for depth, title, _ in reversed(marks)}  # of its first place
    assert depth["Foundations"] == depth["Attacks"] == depth["PrivAI-Leak"] == 0
    assert depth["Toy extraction"] == 1
    assert not [title for title in titles if "ε = 12" in title], "a chapter stands once in print"
    assert titles.index("Attacks") == titles.index("Toy extraction") - 1


def test_the_first_pages_name_the_book_and_list_its_chapters(reader, texts):
    assert reader.metadata.title == TITLE
    assert TITLE in texts[0] and plain(SUMMARY) in plain(texts[0]) and "profile toy" in texts[0]
    assert "Contents" in texts[1] and "Toy anonymization" in texts[1]
    assert texts[1].splitlines()[0].strip() == "2", "the number of the page"
    box = reader.pages[0].mediabox
    assert (round(box.width), round(box.height)) == (595, 842), "A4"


def test_formulas_are_typeset_where_they_stand(texts):
    text = "\n".join(texts)
    assert "$$" not in text and "\\frac" not in text and "\\(" not in text
    assert re.search(r"The formula\s+x2 ?\+ ?y2\s*\W* is drawn", text)
    assert re.search(r"σ ?= ?1\s*ε", text)
    assert "baseline $x$" in text, "a dollar sign in an output is a dollar sign"


def test_what_is_folded_on_the_screen_is_open_and_nothing_is_to_be_pressed(texts):
    text = "\n".join(texts)
    assert text.count("One and one make two.") == len(SLUGS)
    assert "target_epsilon = 7.0" in text
    for button in ("Hide this run", "Hide code", "Read from the start", "Run it yourself"):
        assert button not in text, button


def test_links_lead_into_the_book_or_to_the_world(reader):
    destinations = reader.named_destinations
    inside = outside = 0
    for page in reader.pages:
        for link in page.get("/Annots", []):
            link = link.get_object()
            if "/A" in link:
                assert not MACHINE.search(link["/A"]["/URI"])
                outside += 1
            else:
                assert link["/Dest"] in destinations, link["/Dest"]
                inside += 1
    assert inside > 300 and outside


def test_readers_of_the_screen_get_structure_language_and_formulas(printed, reader):
    data = (printed[0] / "runs/toy/privai-leak.pdf").read_bytes()
    root = reader.trailer["/Root"]
    assert root["/MarkInfo"]["/Marked"] and root["/Lang"].startswith("en")
    assert b"(A blue rectangle.)" in data and b"/Alt (x^2 + y^2)" in data
    assert b"/JavaScript" not in data


def test_the_site_is_left_as_it_was(printed):
    root, before = printed
    assert files_of(root / SITE) == before
    assert sorted(path.name for path in (root / "runs/toy").iterdir() if path.name.startswith(".part")) == []


def test_a_request_that_leaves_the_site_is_a_refusal(html):
    edit(html, "<h1>", '<img alt="a" src="https://example.org/a.png"><h1>')
    with pytest.raises(RunFailed, match=r"asks for https://example\.org/a\.png"):
        _pdf.render(html, SMALL)


@pytest.mark.parametrize("name", ["_static/mathjax/tex-chtml.js", f"{CHAPTER}.html"])
def test_a_missing_file_is_a_refusal_that_names_it(html, name):
    (html / name).unlink()
    with pytest.raises(RunFailed, match=rf"asks for {re.escape(name)}.*build it again"):
        _pdf.render(html, SMALL)


def test_a_formula_that_is_wrong_is_a_refusal_that_names_its_page(html):
    edit(html, "x^2 + y^2", "\\frac{")
    with pytest.raises(RunFailed, match=rf"not typeset: 1, the first in {CHAPTER}: "):
        _pdf.render(html, SMALL)


def test_code_and_tables_wider_than_the_paper_are_wrapped_or_made_smaller(html):
    wide = "".join(f"<td>{'wide' * 4}{i}</td>" for i in range(20))
    table = f"<table class='dataframe'><tbody><tr>{wide}</tr></tbody></table>"
    code = f"<div class='highlight'><pre>{'x' * 400}end</pre></div>"
    edit(html, "<h2>Summary", f"{table}{code}<h2>Summary")
    made = PdfReader(io.BytesIO(_pdf.render(html, SMALL)))
    places = []

    def note(text, page, line, _font, _size):
        places.append((text, line[4] * page[0] + page[4]))

    for page in made.pages:
        page.extract_text(visitor_text=note)
    right_edge = 595 - 57  # points: A4 without a margin of 20 mm
    assert max(place for text, place in places if "wide" in text) < right_edge
    lines = [line for page in made.pages for line in page.extract_text().splitlines()]
    assert max(len(line) for line in lines if "xxx" in line) < 150
    text = plain("".join(page.extract_text() for page in made.pages))
    assert "x" * 400 + "end" in text and "wide" * 4 + "19" in text


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
    edit(html, "<h2>Summary", f"<h2>{three}</h2><h3>{two}</h3><h4>{three}</h4><h2>Summary")
    part = (
        "A part whose name fills more than one line of the paper, since it says so much of what it is about"
    )
    book = SMALL | {"parts": [{"caption": part, "pages": FEW[0]["pages"]}]}
    made = PdfReader(io.BytesIO(_pdf.render(html, book)))
    titles = [marked for _, marked, _ in bookmarks(made)]
    assert [titles.count(one) for one in (part, two, three)] == [1, 2, 2], titles
    text = "".join(page.extract_text() for page in made.pages)
    assert not re.search("[\ufb00-\ufb06]", text), "a word that is copied or searched has its own letters"


def test_a_refusal_keeps_the_older_pdf(printed, monkeypatch, capsys):
    root, _ = printed
    place = root / "runs/toy/privai-leak.pdf"
    older = place.read_bytes()
    monkeypatch.chdir(root)
    monkeypatch.setattr(command, "die_with_parent", lambda: None)
    monkeypatch.setattr(browser.shutil, "which", lambda name: None)
    assert command.main(["pdf", "--profile", "toy"]) == 2
    message = capsys.readouterr().err
    assert message.startswith("refused: no Chromium") and "apt-get install chromium" in message
    assert place.read_bytes() == older
    with pytest.raises(MissingProgram, match="prints the book"):
        _pdf.render(place.parent, {})


def test_without_a_finished_site_the_message_says_what_to_run(tmp_path):
    with pytest.raises(
        MissingArtifact, match=r"no finished site of profile toy; run `make book PROFILE=toy`"
    ):
        _pdf.write(tmp_path, "toy")


# Last in this file: while a browser is open here, the code under test cannot open its own.
@pytest.fixture
def sheet(html, chromium):
    """Print one page from the browser, with lines and a table wider than paper; return its text."""
    code = f"<div class='highlight'><pre>{'x' * 400}end</pre></div>"
    listing = f"<div class='cell tag_listing'><div class='cell_output'><pre>{'y ' * 200}end</pre></div></div>"
    cells = "".join(f"<td>{'wide ' * 4}{i}</td>" for i in range(12))
    edit(html, "<h2>Summary", f"{code}{listing}<table class='dataframe'><tr>{cells}</tr></table><h2>Summary")
    page = chromium.new_page()
    page.route("**/*", _pdf._Server(html).answer)
    page.goto(f"{_pdf.ADDRESS}{CHAPTER}.html")
    made = PdfReader(io.BytesIO(page.pdf(format="A4")))
    page.close()
    return "\n".join(one.extract_text() for one in made.pages)


def test_a_page_from_the_browser_is_a_whole_sheet_to_read(sheet):
    assert sheet.startswith("Toy hipaa") and sheet.count("Toy hipaa") == 2, "the title, and a link to it"
    assert "exposure of 5.2 bits" in sheet and "In part 4 of 6: Decisions" in sheet
    for word in ("Back matter", "Search", "Contents", "previous", "By The", "Click to", "Show", "Hide"):
        assert word not in sheet, word
    assert "x" * 400 + "end" in plain(sheet) and "y" * 200 + "end" in plain(sheet)
    assert max(len(line) for line in sheet.splitlines() if "xxx" in line) < 150
    assert "wide11" in plain(sheet)
    for words in ("One and one make two.", "the sum: 2", "profile = 'toy'"):  # folded on the screen
        assert plain(words) in plain(sheet), words
