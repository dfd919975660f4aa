"""A further run of a chapter is beside it without colliding with it."""

import pytest
from nbformat import v4

from bookmaker.site._variants import NOTE, add_switch, variant


def made(*sources, model="dp-eps-0.5"):
    page = v4.new_notebook(
        cells=[v4.new_markdown_cell(one) if isinstance(one, str) else one for one in sources]
    )
    before = page.cells[0].source
    new = variant(page, model=model)
    assert page.cells[0].source == before, "the page that it is made from is not changed"
    return new, "\n".join(cell.source for cell in new.cells)


@pytest.mark.parametrize(("model", "words"), [("dp-eps-4", "ε = 4"), ("public", "public checkpoint")])
def test_a_title_names_the_model(model, words):
    _, text = made("(nb)=\n# Extraction\n\nText.\n# Not a title", model=model)
    assert f"# Extraction ({words})\n" in text and text.count(f"({words})") == 1


def test_every_run_of_a_chapter_leads_to_the_others():
    documents = {"public": "runs/x--public", "baseline": "notebooks/x", "dp-eps-4": "runs/x--dp-eps-4"}
    page = v4.new_notebook(cells=[v4.new_markdown_cell("(nb)=\n# X\n\nText.\n# Not a title")])
    add_switch(page, "baseline", documents)
    assert page.cells[0].source.startswith("(nb)=\n# X\n\n:::{container} models\n")
    links = "{doc}`public checkpoint </runs/x--public>` **baseline** {doc}`ε = 4 </runs/x--dp-eps-4>`"
    assert page.cells[0].source.count(links) == 1


def test_every_label_and_every_reference_to_it_gets_a_name_of_its_own():
    figure = v4.new_code_cell("draw()", metadata={"mystnb": {"figure": {"name": "fig-roc", "caption": "c"}}})
    page, text = made(
        "(nb-x)=\n# X\n\n$$\na\n$$ (eq-a)\n\n```{math}\n:label: eq-b\nb\n```\n\n"
        "```{prf:theorem} T\n:label: thm\nx\n```\n\n{eq}`eq-a` {eq}`eq-b` {prf:ref}`thm` "
        "{numref}`fig-roc` {ref}`text <nb-x>` [there](#nb-x) {ref}`nb-other` {term}`exposure`",
        figure,
    )
    assert page.cells[1].metadata["mystnb"]["figure"]["name"] == "fig-roc--dp-eps-0-5"
    assert text.count("--dp-eps-0-5") == 10
    assert "{ref}`nb-other`" in text and "{term}`exposure`" in text


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("label", [r"fig-\epsilon", r"\1", r"a\g<0>", "$x", "a&b"])
def test_a_label_is_renamed_as_it_is_written(label):
    text = f"({label})=\n# Title\n:name: {label} \n\nSee {{ref}}`words <{label}>` and [here](#{label})."
    _, new = made(text, model="public")
    assert new == text.replace(label, f"{label}--public").replace(
        "# Title", f"# Title (public checkpoint)\n\n{NOTE}"
    )


def test_exercises_and_solutions_are_in_the_chapter_alone():
    _, text = made(
        "# X\n\nText.",
        v4.new_code_cell("kept()"),
        "## Exercises\n\n```{exercise} Sheep\n:label: ex\nCount.\n```",
        "````{solution} ex\n:class: dropdown\nNone.\n````",
        v4.new_code_cell("secret()", metadata={"tags": ["solution", "hide-input"]}),
        ":::{exercise}\n:label: ex2\nDo.\n:::\n\n:::{solution} ex2\nSo.\n:::",
        "## Summary\n\nMore.",
    )
    assert "kept()" in text and "More." in text
    assert not any(word in text for word in ("secret", "Count", "xercise", "solution", "Do"))


def test_a_caption_says_what_is_drawn_and_not_what_the_own_run_shows():
    figure = {"name": "fig-roc", "caption": "**Members are found.** The curves are bands."}
    page, _ = made("# X", v4.new_code_cell("draw()", metadata={"mystnb": {"figure": figure}}))
    assert page.cells[1].metadata["mystnb"]["figure"]["caption"] == "The curves are bands."
