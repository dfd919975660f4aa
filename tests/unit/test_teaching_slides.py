"""Slides: what of a chapter's page is shown and said, and that a deck is as inert as the site."""

import hashlib
import re
from pathlib import Path

import pytest
import toy_deck
from bs4 import BeautifulSoup

from bookmaker.site import findings
from bookmaker.teaching import _decks, _slides
from privhelpers.errors import DamagedArtifact, MissingArtifact

VENDORED = {  # as in the wheel of sphinx-revealjs 3.2.1, which holds reveal.js 5.2.0
    "reveal.js": "46538b52db48724192f59bf46f5e851a18e302777c46f4a34c32709d010d6a29",
    "reveal.css": "68f915a11ebf7203c0446576b7e952ff61c5dd02134a8a226ffaf62ed42136d2",
    "LICENSE": "34014800f4126ac2525e224166f099f26628612e95c41f76d70841b63138c989",
}


def words(markup):
    return " ".join(BeautifulSoup(markup, "html.parser").get_text(" ").split())


def deck(*sections, **options):
    return _decks.slides(toy_deck.page(*sections, **options))


def test_a_deck_opens_with_the_question_and_ends_with_one():
    slides = deck(toy_deck.section("One", "<p>A.</p>"))
    assert [slide.title for slide in slides] == [
        "1. Toy",
        "You will",
        "One",
        "Exercises",
        "Summary",
        "A question",
    ]
    first, aims, one, tasks, summary, asked = slides
    assert words(first.body) == "Is it safe?" and words(first.notes) == "It is asked often. See Coins."
    assert "add two numbers" in aims.body and "none" in aims.body and "Reading 3 minutes" in aims.notes
    assert words(one.body) == "A." and words(tasks.body) == "Exercise 1.1 (A sum) Add two numbers."
    assert words(summary.body) == "Take this away." and words(summary.notes) == "Next, more."
    assert words(asked.body) == "What is one and one? Two. Three." and "Three is wrong" not in asked.body
    assert words(asked.notes) == "A is right. It is. B is wrong. It is not."


def test_solutions_stay_out_of_slides_and_notes():
    text = "".join(slide.body + slide.notes for slide in deck(toy_deck.section("One", "<p>A.</p>")))
    assert "quodlibet" not in text and "one_and_one" not in text


def test_a_figure_stands_below_the_sentence_that_reads_it():
    slides = deck(
        toy_deck.section(
            "One",
            "<p>Here it is:</p>",
            toy_deck.cell("draw()", toy_deck.FIGURE),
            "<p>It rises.\nNot by chance.\nNow the next.</p>",
            toy_deck.cell("print(1)", "<pre>1</pre>"),
            "<p>That is one.</p>",
        )
    )
    shown = slides[2]
    assert shown.kind == "figure" and 'alt="A line."' in shown.body and 'src="_images/a.png"' in shown.body
    assert words(shown.body).startswith("It rises. Not by chance.") and "draw" not in shown.body
    assert words(shown.notes) == "Here it is: Now the next."


def test_a_sentence_that_announces_the_next_cell_does_not_read_the_last():
    slides = deck(
        toy_deck.section(
            "One",
            "<p>We draw.</p>",
            toy_deck.cell("draw()", toy_deck.FIGURE),
            "<p>Now we define:</p>",
            toy_deck.cell("def f():\n    return 1"),
        )
    )
    assert [slide.kind for slide in slides[2:4]] == ["figure", "code"]
    assert words(slides[2].body).startswith("We draw.") and words(slides[3].body).startswith("Now we define:")


def test_code_loses_its_imports_and_what_does_not_fit():
    lines = "\n".join(f"    x = {i}" for i in range(40))
    short, long = (
        deck(toy_deck.section("One", "<p>A.</p>", toy_deck.cell(source)))[2].body
        for source in ("import math\n\n\ndef f():\n    return 1", f"setup = 1\n\n\ndef f():\n{lines}")
    )
    assert "import" not in short and "def f" in short
    assert "setup" not in long and "x = 13" in long and "x = 14" not in long and "26 more lines" in long


def test_every_figure_and_every_section_gets_a_slide_and_a_deck_stays_short():
    cells = [toy_deck.cell("def f():\n    return 1"), "<p>It runs.</p>"] * 5
    sections = [
        toy_deck.section(f"Part {i}", *cells, toy_deck.cell("draw()", toy_deck.FIGURE)) for i in range(6)
    ]
    slides = deck(*sections, toy_deck.section("Words", "<p>One.\nTwo.</p><p>Three.</p>"))
    assert len(slides) == _decks.AIM
    assert sum(slide.body.count("<figure") for slide in slides) == 6
    assert words(slides[-4].body) == "One. Three." and words(slides[-4].notes) == "Two."


def test_a_section_that_is_one_box_shows_it():
    box = '<div class="important admonition"><p class="admonition-title">Guarantee</p><p>None.</p></div>'
    (shown,) = deck(toy_deck.section("One", box))[2:-3]
    assert shown.kind == "box" and words(shown.body) == "Guarantee None."


def test_prose_that_is_on_no_slide_is_in_the_notes():
    below = toy_deck.section("Below", "<p>Deep.\nDeeper.</p>", level=3)
    table = f"<table>{'<tr><td>1</td></tr>' * 40}</table>"
    slides = deck(
        toy_deck.section(
            "One",
            "<p>First.</p>",
            "<ul><li><p>Point.</p></li></ul>",
            toy_deck.cell("show()", table),
            "<p>Too long.</p>",
            toy_deck.cell("draw()", toy_deck.FIGURE),
            below,
        ),
        opening="<p>Before all.</p>",
    )
    everything = words(" ".join(slide.body + " " + slide.notes for slide in slides))
    for said in ("First.", "Point.", "Too long.", "Deep.", "Deeper.", "Before all."):
        assert said in everything
    assert "<table" not in "".join(slide.body for slide in slides), "forty rows are read on the page"


@pytest.mark.parametrize(("tag", "kinds"), [("slide", ["table"]), ("skip-slide", ["text"])])
def test_tags_overrule_the_choice(tag, kinds):
    table = f"<table>{'<tr><td>1</td></tr>' * 40}</table>"
    cell = toy_deck.cell("draw()", table if tag == "slide" else toy_deck.FIGURE, "hide-input", tag)
    slides = deck(toy_deck.section("One", "<p>A.</p>", cell))
    assert [slide.kind for slide in slides[2:-3]] == kinds


def test_what_a_model_wrote_stays_text():
    hostile = "&lt;script&gt;alert(1)&lt;/script&gt; &lt;img src=x onerror=alert(1)&gt;"
    slides = deck(
        toy_deck.section(
            "One &lt;b&gt;",
            f"<p>It wrote {hostile}.\nThen {hostile}.</p>",
            toy_deck.cell("print(text)  # &lt;i&gt;", f"<pre>{hostile}</pre>"),
            f"<p>{hostile}\n{hostile}\n{hostile}</p>",
        )
    )
    for slide in slides:
        found = BeautifulSoup(slide.title + slide.body + slide.notes, "html.parser")
        assert not found.find_all(["script", "i", "b"]) and not found.select("[onerror]")
    assert "&lt;script&gt;" in slides[2].body


def test_a_page_that_is_no_chapter_is_refused():
    for page in (
        "<p>Nothing.</p>",
        "<article></article>",
        "<article><section><h1>A</h1></section></article>",
    ):
        with pytest.raises(DamagedArtifact, match="its page"):
            _decks.slides(page)


def test_decks_load_what_lies_beside_them_and_carry_the_policy_of_the_site(tmp_path):
    toy_deck.site(
        tmp_path / "site", toy_deck.page(toy_deck.section("One", toy_deck.cell("draw()", toy_deck.FIGURE)))
    )
    made = _slides.fill(
        tmp_path / "site", {"Part & more": ["notebooks/toy"], "None": []}, tmp_path / "decks", "toy"
    )
    assert [path.name for path in made] == ["toy.html"]
    assert findings(tmp_path / "decks", []) == []
    for page in (made[0], tmp_path / "decks" / "index.html"):
        text = page.read_text()
        assert "default-src 'self'" in text.partition("<script")[0] and not re.search(
            r"(?:src|href)=.(?:https?:)?//", text
        )
    index = (tmp_path / "decks" / "index.html").read_text()
    assert (
        "Part &amp; more" in index
        and "None" not in index
        and 'href="toy.html">1. Toy</a> <small>6 slides' in index
    )
    assert (tmp_path / "decks" / "_images" / "a.png").is_file()


def test_a_page_that_cannot_become_a_deck_is_named(tmp_path):
    toy_deck.site(tmp_path / "site", "<p>Nothing.</p>")
    with pytest.raises(DamagedArtifact, match=r"notebooks/toy\.html: its page"):
        _slides.fill(tmp_path / "site", {"Part": ["notebooks/toy"]}, tmp_path / "decks", "toy")


def test_there_are_no_slides_without_a_finished_site(tmp_path):
    class Job:
        profile = "toy"

    with pytest.raises(MissingArtifact, match="run `make book PROFILE=toy`"):
        _slides.write(tmp_path, [Job])
    site = tmp_path / "runs" / "toy" / "site"
    site.mkdir(parents=True)
    (site / ".complete").write_text("0  .sealed\n")
    (site / ".sealed").write_text("")
    with pytest.raises(DamagedArtifact, match="changed after it was made"):
        _slides.write(tmp_path, [Job])


def test_what_shows_the_slides_is_what_the_package_holds():
    for name, digest in VENDORED.items():
        assert hashlib.sha256((_slides.OURS / name).read_bytes()).hexdigest() == digest, name
    assert "_static" not in (Path(_slides.OURS) / "deck.css").read_text()
