"""Whatever a model writes, a page shows it as text."""

import pytest
from bs4 import BeautifulSoup
from myst_nb.core.variables import format_plain_text
from nbformat import v4

from bookmaker.site._outputs import check_picture, clean_outputs, one_header, plain_table, words_on_the_left
from privhelpers.errors import RunFailed
from privhelpers.text import inert


def cleaned(*outputs):
    cell = v4.new_code_cell("x", outputs=list(outputs))
    clean_outputs(cell, "membership_inference, code cell 3")
    return cell.outputs


def display(**data):
    return v4.new_output("display_data", {k.replace("_", "/", 1): v for k, v in data.items()})


@pytest.mark.parametrize("code", [0x202E, 0x200B, 0x2066, 0x1B, 0x00, 0xFEFF, 0x7F])
def test_invisible_characters_are_spelled_out(code):
    text = f"a{chr(code)}b\n\tε = 8, naïve café"
    shown = text.replace(chr(code), ascii(chr(code))[1:-1])
    (output,) = cleaned(display(text_plain=text))
    assert output.data["text/plain"] == shown
    (output,) = cleaned(v4.new_output("stream", name="stdout", text=text))
    assert output.text == shown


@pytest.mark.parametrize(
    "html",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "<td onclick='x()'>1</td>",
        "<a href='javascript:x()'>1</a>",
        "<td><b onmouseover='x()'",
        "<style>td {background: url(//elsewhere.example)}</style>",
        "<td style='background:url(x)'>1</td>",
        "<style>@import 'x'</style>",
        "<!--[if IE]><script></script><![endif]-->",
        "<svg><script>1</script></svg>",
        "<iframe srcdoc='x'></iframe>",
        "<base href='//elsewhere.example'>",
        "<style>td {background: \\75rl(//elsewhere.example)}</style>",
        "<td style='background: u\\72 l(x)'>1</td>",
        "<style>@\\69mport 'x';</style>",
        "<style>@f\\6fnt-face {font-family: x; src: url(x)}</style>",
        "<style>@font-face {font-family: x}</style>",
        "<td style='background: image-set(\"//elsewhere.example\" 1x)'>1</td>",
        "<td style='background: var(--x)'>1</td>",
        "<style>#T_x td {color: red",
        "<style>/* </style> */<script>1</script>",
        "<style>body {color: red}</style>",
        "<style>#T_x td, article {color: red}</style>",
        "<style>#T_x ~ * {color: red}</style>",
        "<style>.dataframe {color: red}</style>",
        "<style>.dataframes {text-align: right}</style>",
        "<style>#T_x td:not(.x) {color: red}</style>",
        "<style>#T_x td {position: fixed}</style>",
        "<style>#T_x td {color: red; td {position: fixed}}</style>",
        "</div></div></article>",
        "<table></div></table>",
        "<div>",
        "<td style='position: fixed; width: 100vw'>1</td>",
        "<td style='transform: scale(99)'>1</td>",
        "<td style='margin: -999px'>1</td>",
        "<td style='box-shadow: 0 0 0 9999px red'>1</td>",
        "<p class='tex2jax_process'>$\\href{javascript:x()}{y}$</p>",
        "<p class='mathjax_process'>x</p>",
        "<p class='dataframe math'>x</p>",
        "<p class='modal fixed-top'>x</p>",
        "<p id='main-content'>x</p>",
        "<p title='x'>x</p>",
        "<svg></svg>",
        "<svg><style><a title='</style><img src=x onerror=x()>'></style></svg>",
        "<math><mi href='javascript:x()'>x</mi></math>",
        "<noscript><p title='</noscript><img src=x onerror=x()>'></noscript>",
        "<textarea></textarea>",
        "<template></template>",
        "<plaintext>",
        "<!doctype html>",
        "<![CDATA[x]]>",
        "<?xml version='1.0'?>",
        "</ script>",
        "<td\x00onclick=x()>1</td>",
    ],
)
def test_html_beyond_a_table_is_refused(html):
    with pytest.raises(RunFailed, match="membership_inference, code cell 3: HTML"):
        cleaned(display(text_plain="x", text_html=html))
    output = v4.new_output("display_data", {"application/papermill.record/text/html": html})
    with pytest.raises(RunFailed, match="membership_inference, code cell 3: HTML"):
        cleaned(output)


def test_what_passes_is_written_anew():
    html = "<TD CLASS=data colspan='2'>&lt;b&gt; &#8238;1 < 2 &amp; 3&nbsp;%</TD><br/><p/>"
    anew = '<td class="data" colspan="2">&lt;b&gt; \\u202e1 &lt; 2 &amp; 3&nbsp;%</td><br><p></p>'
    assert plain_table(html) == anew
    assert plain_table(anew) == anew


def test_pandas_tables_and_their_styles_pass():
    import pandas as pd

    frame = pd.DataFrame({"text": ["<script>x</script>", "a & b"], "auc": [0.5, 0.9]})
    styled = frame.style.format(escape="html").bar(subset=["auc"]).set_caption("AUC").hide(axis="index")
    styled = styled.background_gradient(subset=["auc"]).highlight_max(subset=["auc"])
    wide = pd.DataFrame([[1, 2, 3]], columns=pd.MultiIndex.from_product([["a"], list("xyz")]))
    deep = pd.concat({"k": pd.concat({"i": wide, "j": wide})})
    shown = (frame.to_html(), frame._repr_html_(), styled.to_html(), deep._repr_html_(), wide._repr_html_())
    for html in shown:
        (before, after) = (BeautifulSoup(text, "html.parser") for text in (html, plain_table(html)))
        assert [tag.name for tag in after.find_all(True)] == [tag.name for tag in before.find_all(True)]
        assert after.get_text() == before.get_text()
        assert [tag.attrs for tag in after.find_all(True)] == [tag.attrs for tag in before.find_all(True)]


def test_the_name_of_an_index_stands_in_the_row_of_the_columns():
    import pandas as pd

    index = pd.MultiIndex.from_tuples([("a", 1), ("b", 2)], names=["model", "seed"])
    named = pd.DataFrame({"AUC": [0.5, 0.6], "n": [3, 4]}, index=index)
    rows = BeautifulSoup(one_header(named._repr_html_()), "html.parser").select("thead > tr")
    assert [[cell.text for cell in row.select("th")] for row in rows] == [["model", "seed", "AUC", "n"]]
    titled = named.rename_axis(columns="measure")  # both rows say something
    deep = pd.concat({"k": named}, axis=1)
    for frame in (named.reset_index(), titled, deep, deep.reset_index()):
        assert one_header(frame._repr_html_()) == frame._repr_html_()


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["yes", "“well”", ""], True),
        (["0.5 (0.4 to 0.6)", "no bound", "−1"], False),
        (["3 of 4", "0.96 [0.96, 0.97]", "1·10⁻²⁰"], False),
        (["none", "none", "2.5 %"], False),
        (["below 0.001", "0.012", "0.5"], False),
        (["4-anonymous", "noisy", "30-39"], True),
        (["0db87fd8", "11aa22bb"], True),
        (["1e-05", "inf", "12 s"], False),
        (["aspirin", "—", "zinc"], True),
        (["Ana Example", "ana@example.org", "1234567"], True),
    ],
)
def test_columns_of_words_start_on_the_left_and_numbers_do_not(cells, words):
    import pandas as pd

    frame = pd.DataFrame({"column": cells}, index=pd.RangeIndex(len(cells), name="n"))
    table = BeautifulSoup(words_on_the_left(one_header(frame._repr_html_())), "html.parser")
    assert [cell.text for cell in table.select(".words")] == (["column", *cells] if words else [])


def test_rows_that_share_a_name_keep_their_columns():
    import pandas as pd

    index = pd.MultiIndex.from_product([["model"], [1, 2]], names=["who", "n"])
    frame = pd.DataFrame({"drug": ["aspirin", "zinc"], "share": [0.5, 0.25]}, index=index)
    table = BeautifulSoup(words_on_the_left(one_header(frame._repr_html_())), "html.parser")
    assert [cell.text for cell in table.select("thead .words")] == ["who", "drug"]
    assert [cell.text for cell in table.select("tbody .words")] == ["model", "aspirin", "zinc"]


def test_a_styler_without_escaping_is_refused():
    import pandas as pd

    styled = pd.DataFrame({"text": ["<script>x</script>"]}).style
    with pytest.raises(ValueError, match="the tag <script>"):
        plain_table(styled.to_html())


@pytest.mark.parametrize("mime", ["text/markdown", "text/latex", "application/javascript"])
@pytest.mark.parametrize("prefix", ["", "application/papermill.record/"])
def test_rich_outputs_are_refused_glued_or_not(mime, prefix):
    output = v4.new_output("display_data", {"text/plain": "x", prefix + mime: "# x"})
    with pytest.raises(RunFailed, match="pages show text"):
        cleaned(output)


def test_glued_html_is_inspected_too():
    output = v4.new_output("display_data", {"application/papermill.record/text/html": "<script></script>"})
    with pytest.raises(RunFailed, match="<script>"):
        cleaned(output)


@pytest.mark.parametrize("prefix", ["", "application/papermill.record/"])
def test_an_svg_is_refused_and_the_pictures_that_pass_are_named(prefix):
    output = v4.new_output("display_data", {prefix + "image/svg+xml": "<svg><path d='M0 0'/></svg>"})
    with pytest.raises(RunFailed, match=r"code cell 3: output of type .*svg\+xml; .* PNG and JPEG pictures"):
        cleaned(output)


def test_progress_bars_go_and_escapes_are_spelled_out():
    outputs = cleaned(
        v4.new_output("stream", name="stderr", text="100%|####| 3/3"),
        v4.new_output("stream", name="stdout", text="done\x1b[0m"),
        display(text_plain="x"),
    )
    assert [o.output_type for o in outputs] == ["stream", "display_data"]
    assert outputs[0].text == "done\\x1b[0m"


@pytest.mark.parametrize("text", ["Ann \u202ellih\u200b", "it's \x1b[31m", "ε = 8, 'a' \"b\"", "a\\u202eb"])
def test_a_glued_text_is_inert_when_a_sentence_quotes_it(text):
    """A sentence shows what the `repr` means, not the `repr`, whose escapes would come back to life."""
    (output,) = cleaned(display(**{"application_papermill.record/text/plain": repr(text)}))
    (shown,) = output.data.values()
    assert format_plain_text(shown, "s") == inert(text)
    assert format_plain_text(shown, "") == inert(text)


@pytest.mark.parametrize("value", ["0.5", "inf", "[1, 2]", "(" * 300, "a\x00"])
def test_a_glued_value_that_is_no_text_stays_as_it_was_printed(value):
    (output,) = cleaned(display(**{"application_papermill.record/text/plain": value}))
    assert list(output.data.values()) == [inert(value)]


def test_only_the_name_of_a_glued_value_stays_of_the_metadata():
    output = display(text_plain="1")
    output.metadata = {"scrapbook": {"name": "n", "mime_prefix": ""}, "path": "/home/somebody"}
    assert dict(cleaned(output)[0].metadata) == {"scrapbook": {"name": "n", "mime_prefix": ""}}


def picture(metadata, **data):
    cell = v4.new_code_cell("draw()", metadata={"mystnb": metadata}, outputs=[display(**data)])
    check_picture(cell, "extraction, code cell 4")


def test_a_caption_needs_its_picture_and_a_picture_its_description():
    alt = {"image": {"alt": "Two bars."}}
    picture(alt | {"figure": {"caption": "Rates."}}, image_png="aGk=")
    picture({}, text_plain="no picture, no caption")
    with pytest.raises(RunFailed, match="code cell 4: has a caption but shows no picture"):
        picture({"figure": {"caption": "Rates."}}, text_plain="<Figure>")
    for metadata in ({}, {"image": {"alt": " "}}, {"figure": {"caption": "Rates."}}):
        with pytest.raises(RunFailed, match="code cell 4: shows a picture without a description"):
            picture(metadata, image_png="aGk=")
