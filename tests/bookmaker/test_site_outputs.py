"""Whatever a model writes, a page shows it as text, and no output of a notebook can act."""

import pandas as pd
import pytest
from bs4 import BeautifulSoup
from myst_nb.core.variables import format_plain_text
from nbformat import v4

from bookmaker.site._outputs import check_picture, clean_html, clean_outputs
from bookmaker.site._sphinx_ext import hold_formulas
from privhelpers.errors import RunFailed
from privhelpers.text import inert

GLUED = "application_papermill.record/"


def cleaned(*outputs):
    cell = v4.new_code_cell("x", outputs=list(outputs))
    clean_outputs(cell, "membership_inference, code cell 3")
    return cell.outputs


def display(**data):
    return v4.new_output("display_data", {k.replace("_", "/", 1): v for k, v in data.items()})


def soup(html):
    return BeautifulSoup(clean_html(html), "html.parser")


@pytest.mark.parametrize("mime", ["text_html", f"{GLUED}text/html"])
@pytest.mark.parametrize(
    ("html", "clean"),
    [
        ("<script>alert(1)</script>", "alert(1)"),
        ("a<img src=x onerror=alert(1)>", "a"),
        ("<b onclick='x()' id='main-content' title='x'>1</b>", "<b>1</b>"),
        ("<a href='javascript:x()'>1</a>", "1"),
        ("<svg><script>1</script></svg>2", "2"),
        ("<math><mi href='javascript:x()'>x</mi></math>a", "a"),
        ("<iframe srcdoc='x'></iframe>a<base href='//elsewhere.example'>", "a"),
        ("<style>td {background: url(//elsewhere.example)}</style>a", "a"),
        ("<b style='position: fixed; background: url(x); color: red'>1</b>", '<b style="color:red">1</b>'),
        ("<p class='modal tex2jax_process dataframe'>x</p>", '<p class="dataframe">x</p>'),
        ("</div></div></article>a", "a"),
        ("<b>left open", "<b>left open</b>"),
        ("a<!--[if IE]><b></b><![endif]-->", "a"),
        ("&lt;b&gt; &#8238;1 < 2 &amp; 3&nbsp;%", "&lt;b&gt; \\u202e1 &lt; 2 &amp; 3\u00a0%"),
        ("<noscript><p title='</noscript><img src=x onerror=x()>'></noscript>", "&lt;p title=''&gt;"),
    ],
)
def test_html_keeps_its_text_and_nothing_that_acts(mime, html, clean):
    (output,) = cleaned(display(**{mime: html}))
    assert list(output.data.values()) == [clean]
    assert clean_html(clean) == clean


def test_tables_of_pandas_keep_their_cells_and_get_a_box_that_keys_can_scroll():
    frame = pd.DataFrame({"text": ["<script>x</script>", "a & b"], "auc": [0.5, 0.9]}, index=["a", "b"])
    wide = pd.DataFrame([[1, 2, 3]], columns=pd.MultiIndex.from_product([["a"], list("xyz")]))
    for table in (frame, pd.concat({"k": pd.concat({"i": wide, "j": wide})})):
        before, after = BeautifulSoup(table._repr_html_(), "html.parser"), soup(table._repr_html_())
        for made in (before, after):
            made.cells = [(cell.text, cell.get("rowspan")) for cell in made.select("td, th")]
        assert before.cells == after.cells
        assert after.div.attrs == {"tabindex": "0", "role": "group", "aria-label": "Table"}
        assert after.table["class"] == ["dataframe"] and not after("style")


def test_the_row_numbers_of_pandas_go_and_names_stay():
    frame = pd.DataFrame({"auc": [0.5, 0.9]})
    named = frame.rename_axis("copies")
    for one, left in (
        (frame, ["auc"]),
        (named, ["", "auc", "copies", "", "0", "1"]),
        (frame[1:], ["", "auc", "1"]),
    ):
        assert [cell.text for cell in soup(one._repr_html_())("th")] == left


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["yes", "“well”", ""], True),
        (["0.5 (0.4 to 0.6)", "no bound", "−1"], False),
        (["3 of 4", "0.96 [0.96, 0.97]", "1·10⁻²⁰"], False),
        (["none", "none", "2.5%"], False),
        (["4-anonymous", "noisy", "30-39"], True),
        (["Ana Example", "ana@example.org", "1234567"], True),
    ],
)
def test_columns_of_words_start_on_the_left_and_numbers_do_not(cells, words):
    frame = pd.DataFrame({"column": cells})
    shown = soup(frame._repr_html_()).select(".words")
    assert [cell.text for cell in shown] == (["column", *cells] if words else [])


@pytest.mark.parametrize(
    ("columns", "cell", "steps"),
    [
        (6, "0.5", []),
        (6, "0.513 [0.466, 0.558]", ["dense", "denser"]),
        (6, "0.51 [0.46, 0.6]", ["dense"]),
        (4, "words that wrap " * 20, []),
    ],
)
def test_a_table_is_set_smaller_only_if_it_would_be_wider_than_the_text(columns, cell, steps):
    frame = pd.DataFrame([[cell] * columns], columns=[f"a long name {i}" for i in range(columns)])
    with pd.option_context("display.max_colwidth", None):
        table = soup(frame._repr_html_()).table
    assert [name for name in table["class"] if "dense" in name] == steps


@pytest.mark.parametrize(
    ("cell", "columns", "wraps"),
    [("a phrase of more than thirty letters", 3, True), ("a phrase of more than thirty letters", 2, False),
     ("0.513 [0.466, 0.558] and 0.513 [0.466, 0.558]", 3, True), ("0.513 [0.466, 0.558]", 6, False)],
)  # fmt: skip
def test_words_wrap_only_in_a_table_that_they_make_wider_than_a_page(cell, columns, wraps):
    table = soup(pd.DataFrame([[cell] * columns])._repr_html_()).table
    assert ("wordy" in table["class"]) == wraps


@pytest.mark.parametrize("mime", ["text/markdown", "text/latex", "application/javascript", "image/svg+xml"])
@pytest.mark.parametrize("prefix", ["", "application/papermill.record/"])
def test_rich_outputs_are_refused_glued_or_not(mime, prefix):
    with pytest.raises(RunFailed, match="code cell 3"):
        cleaned(v4.new_output("display_data", {"text/plain": "x", prefix + mime: "# x"}))


def test_progress_bars_go_and_what_acts_on_a_terminal_is_spelled_out():
    text, shown = "a\u202eb\x1b[0m\n\tε = 8", "a\\u202eb\\x1b[0m\n\tε = 8"
    output = display(text_plain=text)
    output.metadata = {"scrapbook": {"name": "n"}, "path": "/home/someone"}
    outputs = cleaned(
        v4.new_output("stream", name="stderr", text="100%|####| 3/3"),
        v4.new_output("stream", name="stdout", text=text),
        output,
    )
    assert [one.output_type for one in outputs] == ["stream", "display_data"]
    assert outputs[0].text == outputs[1].data["text/plain"] == shown
    assert dict(outputs[1].metadata) == {"scrapbook": {"name": "n"}}


@pytest.mark.parametrize("text", ["Ann \u202ellih\u200b", "it's \x1b[31m", "ε = 8, 'a' \"b\"", "a\\u202eb"])
def test_a_glued_text_is_inert_when_a_sentence_quotes_it(text):
    """A sentence shows what the `repr` means, not the `repr`, whose escapes would come back to life."""
    (output,) = cleaned(display(**{f"{GLUED}text/plain": repr(text)}))
    (shown,) = output.data.values()
    assert format_plain_text(shown, "s") == format_plain_text(shown, "") == inert(text)


def picture(metadata, **data):
    cell = v4.new_code_cell("draw()", metadata={"mystnb": metadata}, outputs=[display(**data)])
    check_picture(cell, "extraction, code cell 4")


def test_a_caption_needs_its_picture_and_a_picture_its_description():
    alt = {"image": {"alt": "Two bars."}}
    picture(alt | {"figure": {"caption": "Rates."}}, image_png="aGk=")
    picture({}, text_plain="no picture, no caption")
    for metadata, data in (
        ({"figure": {"caption": "Rates."}}, {"text_plain": "<Figure>"}),
        ({}, {"image_png": "aGk="}),
        ({"image": {"alt": " "}}, {"image_png": "aGk="}),
        ({"figure": {"caption": "Rates."}}, {"image_png": "aGk="}),
    ):
        with pytest.raises(RunFailed, match="extraction, code cell 4"):
            picture(metadata, **data)


def test_a_line_does_not_end_between_a_formula_and_the_sign_next_to_it():
    formula = r'<span class="math notranslate nohighlight">\(x\)</span>'
    held = hold_formulas(f"If {formula}, then ({formula} is 1) or {formula} is 2.")
    assert BeautifulSoup(held, "html.parser").select(".unbroken") == [
        BeautifulSoup(f'<span class="unbroken">{one}</span>', "html.parser").span
        for one in (f"{formula},", f"({formula}")
    ]
    assert hold_formulas(held) == held
