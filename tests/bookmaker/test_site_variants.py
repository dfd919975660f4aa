"""A further run of a chapter stands beside it without colliding with it."""

import pytest
from nbformat import v4

from bookmaker.site import _variants
from bookmaker.site._variants import add_switch, variant
from privhelpers.results import in_words


def made(*cells, model="dp-eps-0.5"):
    return variant(v4.new_notebook(cells=list(cells)), model=model)


def md(text):
    return v4.new_markdown_cell(text)


def text_of(notebook):
    return "\n".join(cell.source for cell in notebook.cells)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("dp-eps-4", "ε = 4"),
        ("dp-eps-0.5", "ε = 0.5"),
        ("public", "public checkpoint"),
        ("best_nonprivate", "best non-private"),
        ("baseline", "baseline"),
    ],
)
def test_titles_name_the_model(model, words):
    assert in_words(model) == words
    page = made(md("(nb)=\n# Extraction\n\nText.\n# Not a title"), model=model)
    assert f"# Extraction ({words})\n" in page.cells[0].source
    assert page.cells[0].source.count(f"({words})") == 1


def test_every_run_of_a_chapter_leads_to_the_others():
    documents = {"public": "runs/x--public", "baseline": "notebooks/x", "dp-eps-4": "runs/x--dp-eps-4"}
    page = v4.new_notebook(cells=[v4.new_code_cell("1"), md("(nb)=\n# X\n\nText."), md("# Not a title")])
    add_switch(page, "baseline", documents)
    assert page.cells[1].source.startswith("(nb)=\n# X\n\n:::{container} models\n")
    links = "{doc}`public checkpoint </runs/x--public>` **baseline** {doc}`ε = 4 </runs/x--dp-eps-4>`"
    assert links in page.cells[1].source and page.cells[2].source == "# Not a title"


def test_every_label_and_every_reference_to_it_gets_a_name_of_its_own():
    figure = v4.new_code_cell("draw()", metadata={"mystnb": {"figure": {"name": "fig-roc", "caption": "c"}}})
    page = made(
        md(
            "(nb-x)=\n# X\n\n$$\na\n$$ (eq-a)\n\n```{math}\n:label: eq-b\nb\n```\n\n"
            "```{prf:theorem} T\n:label: thm\nx\n```\n\n{eq}`eq-a` {eq}`eq-b` {prf:ref}`thm` "
            "{numref}`fig-roc` {ref}`text <nb-x>` [there](#nb-x) {ref}`nb-other` {term}`exposure`"
        ),
        figure,
    )
    text = text_of(page)
    for label in ("nb-x", "eq-a", "eq-b", "thm", "fig-roc"):
        assert f"{label}--dp-eps-0-5" in text + page.cells[1].metadata["mystnb"]["figure"]["name"]
    assert text.count("--dp-eps-0-5") == 10
    assert "{ref}`nb-other`" in text and "{term}`exposure`" in text


def test_exercises_and_solutions_stay_in_the_chapter():
    page = made(
        md("# X\n\nText."),
        v4.new_code_cell("kept()"),
        md("## Exercises\n\n```{exercise} Sheep\n:label: ex\nCount.\n```"),
        md("````{solution} ex\n:class: dropdown\nNone.\n````"),
        v4.new_code_cell("secret()", metadata={"tags": ["solution", "hide-input"]}),
        md(":::{exercise}\n:label: ex2\nDo.\n:::\n\n:::{solution} ex2\nSo.\n:::"),
    )
    text = text_of(page)
    assert "kept()" in text
    for word in ("secret", "Count", "exercise", "solution", "Do", "## Exercises"):
        assert word not in text.replace("the exercises stand in the chapter", ""), word


def test_what_follows_an_exercise_is_kept():
    page = made(
        md("# X\n\n:::{exercise}\n:label: ex\nDo.\n:::\n\nAfter."),
        md("## Next\n\nMore."),
        v4.new_code_cell("x()"),
    )
    assert "After." in text_of(page) and "## Next" in text_of(page) and "Do." not in text_of(page)


def test_a_heading_with_content_below_stays():
    page = made(md("# X\n\n## Part"), md("### Step\n\nText."), md("## Empty"), md("## Last\n\nText."))
    assert "## Part" in text_of(page) and "## Empty" not in text_of(page)


def test_the_page_it_is_made_from_is_not_changed():
    notebook = v4.new_notebook(cells=[md("(a)=\n# X")])
    variant(notebook, model="public")
    assert notebook.cells[0].source == "(a)=\n# X"


@pytest.mark.wrong_numbers
@pytest.mark.parametrize("label", [r"fig-\epsilon", r"\1", r"a\g<0>", "$x", "a&b"])
def test_a_label_is_renamed_as_it_is_written(label):
    text = f"({label})=\n# Title\n:name: {label} \n\nSee {{ref}}`words <{label}>` and [here](#{label})."
    new = f"{label}-run"
    assert _variants._rename(text, {label}, "-run") == text.replace(label, new)
