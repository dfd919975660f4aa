"""Slides: what of a chapter's page is shown and said, and that a deck is as inert as the site."""

from types import SimpleNamespace

import pytest
import toy_deck
from bs4 import BeautifulSoup

from bookmaker.site import findings
from bookmaker.teaching import _decks, _slides
from privhelpers.errors import DamagedArtifact


def words(markup):
    return " ".join(BeautifulSoup(markup, "html.parser").get_text(" ").split())


def deck(*sections, **options):
    """Return title, body, notes, and kind of each slide."""
    cells = _decks.deck(toy_deck.page(*sections, **options), "a run").cells
    kinds = [cell.metadata.slideshow.slide_type for cell in cells]
    assert kinds == ["slide", "notes"] * (len(cells) // 2)
    slides = []
    for shown, said in zip(cells[::2], cells[1::2], strict=True):
        found = BeautifulSoup(shown.source, "html.parser")
        title, body = found.find(["h1", "h2"]).decode_contents(), found.find(class_="body").decode_contents()
        slides.append(SimpleNamespace(title=title, body=body, notes=said.source, kind=shown.metadata.shows))
    return slides


def test_a_deck_opens_with_the_question_and_ends_with_one():
    slides = deck(toy_deck.section("One", "<p>A.</p>"))
    titles = ["1. Toy", "You will", "One", "Exercises", "What this run shows", "A question"]
    assert [slide.title for slide in slides] == titles
    first, aims, one, tasks, claims, asked = slides
    assert words(first.body) == "Is it safe? a run" and words(first.notes) == "It is asked often. See Coins."
    assert "add two numbers" in aims.body and "none" in aims.body and "Reading 3 minutes" in aims.notes
    assert words(one.body) == "A." and words(tasks.body) == "Exercise 1.1 (A sum) Add two numbers."
    assert words(claims.body) == "✓ Take this away."
    assert words(asked.body) == "What is one and one? Two. Three." and "Three is wrong" not in asked.body
    assert words(asked.notes) == "A is right. It is. B is wrong. It is not."
    text = "".join(slide.body + slide.notes for slide in slides)
    assert "quodlibet" not in text and "one_and_one" not in text, "solutions stay out"


def test_a_figure_stands_below_the_sentence_that_reads_it():
    section = toy_deck.section(
        "One",
        "<p>Here it is:</p>",
        toy_deck.cell("draw()", toy_deck.FIGURE),
        "<p>It rises.\nNot by chance.</p>",
        toy_deck.cell("print(1)", "<pre>1</pre>"),
        "<p>That is one.</p>",
    )
    shown = deck(section)[2]
    assert shown.kind == "figure" and 'alt="A line."' in shown.body and 'src="_images/a.png"' in shown.body
    assert words(shown.body).startswith("It rises.") and "draw" not in shown.body
    assert words(shown.notes) == "Here it is: It rises. Not by chance. That is one."


def test_every_figure_and_every_section_gets_a_slide():
    sections = [
        toy_deck.section(f"Part {i}", toy_deck.cell("f = 1"), *[toy_deck.cell("draw()", toy_deck.FIGURE)] * 2)
        for i in range(3)
    ]
    lines = "\n".join(f"    x = {i}" for i in range(40))
    slides = deck(*sections, toy_deck.section("Words", "<p>One.\nTwo.</p><p>Three.</p>"))
    (shown,) = deck(toy_deck.section("One", toy_deck.cell(f"def f():\n{lines}")))[2:-3]
    assert "x = 13" in shown.body and "x = 14" not in shown.body and "26 more lines" in shown.body
    assert sum(slide.body.count("<figure") for slide in slides) == 6 and len(slides) == 2 + 6 + 1 + 3
    assert words(slides[-4].body) == "One. Three." and words(slides[-4].notes) == "One. Two. Three."


def test_all_prose_is_in_the_notes_and_long_tables_are_left_to_the_page():
    table = f"<table>{'<tr><td>1</td></tr>' * 40}</table>"
    figure, below = (
        toy_deck.cell("draw()", toy_deck.FIGURE),
        toy_deck.section("Below", "<p>Deep.</p>", level=3),
    )
    parts = ("<p>First.</p>", "<ul><li><p>Point.</p></li></ul>", toy_deck.cell("show()", table))
    section = toy_deck.section("One", *parts, "<p>Too long.</p>", figure, below)
    picture = '<img alt="A line." class="opening" src="../_images/toy.png" />'
    slides = deck(section, opening=f"{picture}<p>Before all.</p>")
    assert "toy.png" not in "".join(slide.body + slide.notes for slide in slides), "its figure has a slide"
    notes = words(" ".join(slide.notes for slide in slides))
    assert all(said in notes for said in ("First.", "Point.", "Too long.", "Deep.", "Before all."))
    assert "<table" not in "".join(slide.body for slide in slides)


@pytest.mark.parametrize(("tag", "kinds"), [("slide", ["table"]), ("skip-slide", ["words"])])
def test_tags_overrule_the_choice(tag, kinds):
    table = f"<table>{'<tr><td>1</td></tr>' * 40}</table>"
    cell = toy_deck.cell("draw()", table if tag == "slide" else toy_deck.FIGURE, "hide-input", tag)
    slides = deck(toy_deck.section("One", "<p>A.</p>", cell))
    assert [slide.kind for slide in slides[2:-3]] == kinds


def test_what_a_model_wrote_stays_text():
    hostile = "&lt;script&gt;alert(1)&lt;/script&gt; &lt;img src=x onerror=alert(1)&gt;"
    cell = toy_deck.cell("print(text)  # &lt;i&gt;", f"<pre>{hostile}</pre>")
    said = (f"<p>It wrote {hostile}.\nThen {hostile}.</p>", cell, f"<p>{hostile}\n{hostile}</p>")
    slides = deck(toy_deck.section("One &lt;b&gt;", *said))
    for slide in slides:
        found = BeautifulSoup(slide.title + slide.body + slide.notes, "html.parser")
        assert not found.find_all(["script", "i", "b"]) and not found.select("[onerror]")
    assert "&lt;script&gt;" in slides[2].body


@pytest.mark.parametrize("inside", ["", "<section><h1>A</h1></section>"])
def test_a_page_that_is_not_a_chapter_is_refused(inside):
    with pytest.raises(DamagedArtifact):
        _decks.deck(f"<article>{inside}</article>", "a run")


def test_decks_and_their_index_are_inert_and_a_page_that_cannot_become_a_deck_is_named(tmp_path):
    page = toy_deck.page(toy_deck.section("One", toy_deck.cell("draw()", toy_deck.FIGURE)))
    site = toy_deck.site(tmp_path / "site", page.replace("1. Toy", "&lt;/title&gt;&lt;b&gt;"))
    parts, folder = {"Part & more": ["notebooks/toy"], "None": []}, tmp_path / "decks"
    (made,) = _slides.fill(site, parts, folder, "<b>")
    assert findings(folder, []) == [] and (folder / "_images" / "a.png").is_file()
    for path in (made, folder / "index.html"):
        text = path.read_text()
        found = BeautifulSoup(text, "html.parser")
        assert not found.find("b") and "</title><b>" in found.get_text()
        assert "default-src 'self'" in text.partition("<script")[0]
    (site / "notebooks/toy.html").write_text("<p>Nothing.</p>")
    with pytest.raises(DamagedArtifact, match=r"notebooks/toy\.html"):
        _slides.fill(site, parts, folder, "toy")
