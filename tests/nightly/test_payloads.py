"""Texts that act when a page takes them for more than characters, in every display of the book, in Chromium.

One that runs calls `ran` with its number, and one that asks for something asks `payload.invalid`. The
policies of the pages are switched off, so that escaping alone has to hold.
"""

import json
import re
import zipfile
from contextlib import contextmanager
from types import SimpleNamespace
from unittest import mock

import pandas as pd
import pytest
import toy_site
from nbformat import v4

import privaudit
from bookmaker.site import _build, _pdf
from bookmaker.teaching import _work
from privhelpers import hipaa
from privhelpers.text import inert

pytestmark = pytest.mark.browser
CHAPTER = "extraction"
# § is the number of the payload.
PAYLOADS = [
    text.replace("§", str(number))
    for number, text in enumerate(
        (
            "<script>ran(§)</script>",
            "<script\t>ran(§)</script\n>",
            "<script type='text/javascript' charset=utf-8 nonce=1>ran(§)</script>",
            "<script><!--\nran(§)\n//--></script>",
            "<script>Function('ran(§)')()</script>",
            "<script src='data:text/javascript,ran(§)'></script>",
            "<svg><script href='data:text/javascript,ran(§)'/></svg>",
            "</p></div></article></main><script>ran(§)</script>",
            "<template><template></template></template><script>ran(§)</script>",
            "<img src=x onerror=ran(§)>",
            "<video src=x onerror=ran(§)></video>",
            "<iframe srcdoc='' onload=ran(§)></iframe>",
            "<link rel=stylesheet href=x onerror=ran(§)>",
            "<svg><style onload=ran(§)></style></svg>",
            "<select autofocus onfocus=ran(§)></select>",
            "<xss autofocus tabindex=1 onfocus=ran(§)>x</xss>",
            "<body onpageshow=ran(§)>",
            "<body onmessage=ran(§)>",
            "<svg><set onbegin=ran(§) attributeName=x></svg>",
            "<b oncontentvisibilityautostatechange=ran(§) style=content-visibility:auto>x</b>",
            "<img/src=x/onerror=ran(§)>",
            "<IMG SRC=x ONERROR=ran(§)>",
            "<img src=x onerror=&#114;&#97;n(§)>",
            "<img src=x onerror=top['r'+'an'](§)>",
            "<img src='x' x='>' onerror=ran(§)>",
            "<img src=x onerror=ran(§) <p>",
            "<?x ><img src=x onerror=ran(§)>",
            "<svg></p><style><a id='</style><img src=x onerror=ran(§)>'>",
            "&lt;img src=x onerror=ran(§)&gt;<img src=x onerror=ran(§)>",
            "<a href=javascript:ran(§)>x</a>",
            "<a href='java\nscript:ran(§)'>x</a>",
            "<a href=java&Tab;script:ran(§)>x</a>",
            "<a href=javascript:%72an(§)>x</a>",
            "<svg><a><set attributeName=href to=javascript:ran(§) /><text y=9>x</text></a></svg>",
            "<iframe src=javascript:parent.ran(§)></iframe>",
            "<object data='data:text/html,<script>ran(§)</script>'></object>",
            "<meta http-equiv=refresh content='0;url=javascript:ran(§)'>",
            "<img src=http://payload.invalid/§>",
            "<video poster=http://payload.invalid/§></video>",
            "<embed src=http://payload.invalid/§>",
            "<link rel=icon href=http://payload.invalid/§>",
            "<link rel=manifest href=http://payload.invalid/§>",
            "<svg><use href=http://payload.invalid/§#x></svg>",
            "<style>@import url(http://payload.invalid/§);</style>",
            "<p style=background:url(http://payload.invalid/§)>x",
            "<p style=\"background:image-set('http://payload.invalid/§' 1x)\">x",
            "<meta http-equiv=refresh content='0;url=http://payload.invalid/§'>",
            "<a href=http://payload.invalid/§ download>x</a>",
            "<form action=http://payload.invalid/§ method=post><input type=submit></form>",
            "<form><input type=image alt=x formaction=http://payload.invalid/§></form>",
            "<p style='background:\\75rl(http://payload.invalid/§)'>x",
            "<p style='background:URL(http://payload.invalid/§)'>x",
            "<style>@IMPORT 'http://payload.invalid/§';</style>",
            "<style>[title^='x']{background:url(http://payload.invalid/§)}</style><b title=x>x</b>",
            "<div style='position:fixed;inset:0;background:#fff'>x</div>",
            "<div style='position/**/:fixed;inset:0;background:#fff'>x</div>",
            "<div style='translate:0 -90px;height:300px;background:#fff'>x</div>",
            "<style>html::before{content:'x';position:fixed;inset:0;background:#fff}</style>",
            "<svg><style>main{display:none}</style></svg>",
            "<button style='position:fixed;inset:0;background:#fff'>Log in</button>",
        )
    )
]
KEPT = "\n\t\r\u00a0\u202f"  # what lays out text; some displays spell it out
SPACE = re.compile(r"\\[ntr]|\\xa0|\\u202f|\s")
NOTES = "window.ran = number => console.info(`ran ${number}`);"
# Someone acts on everything below a place: each handler is called, and each link and button is pressed.
ACT = """where => {
    for (const one of document.querySelectorAll(`${where} *`)) {
        for (const {name} of [...one.attributes])
            if (name.startsWith('on')) one.dispatchEvent(new Event(name.slice(2), {bubbles: true}));
        if (one.matches(`a[href^='javascript'], a[href*='payload'], area, form *`)) one.click();
    }
}"""


def table():
    values = pd.Series(PAYLOADS, dtype=object)
    with pd.option_context("display.max_rows", None, "display.max_colwidth", None):
        return pd.DataFrame({"text": values.array}, index=pd.Index(PAYLOADS, dtype=object))._repr_html_()


def shown_on_a_chapter():
    outputs = [v4.new_output("stream", text="".join(f"{text}\n" for text in PAYLOADS))]
    outputs += [toy_site.show(text_plain=repr(text)) for text in PAYLOADS]
    outputs.append(toy_site.show(text_plain="x", text_html=table()))
    return outputs + [toy_site.show(text_html=text) for text in PAYLOADS]


def report():
    """Return the report of an audit in which every name is a payload."""
    with zipfile.ZipFile(toy_site.ROOT / "reference" / "report" / "evidence.zip") as kept:
        facts = json.loads(kept.read("report.json"))
    whole = " ".join(PAYLOADS)
    row = facts["data"][0] | {"identifiers_not_found": 2}  # which the kept report does not have yet
    facts["data"] = [row | {"file": text, "role": text} for text in PAYLOADS]
    facts["model"] |= {"name": whole, "type": whole, "kind": whole, "files": dict.fromkeys(PAYLOADS, "0")}
    facts["title"] = facts["first_page"]["about"] = whole
    facts["explanations"] = PAYLOADS
    facts["tests"] = [facts["tests"][0] | {"name": text} for text in PAYLOADS]
    written = SimpleNamespace(texts=PAYLOADS, disclosures=SimpleNamespace(disclosed=tuple(PAYLOADS)))
    with mock.patch("privaudit.report._SHOWN", len(PAYLOADS)):
        return privaudit.report_page(facts, {text: b"<svg/>" for text in PAYLOADS}, written=written)


def feedback():
    whole = " ".join(PAYLOADS)
    tasks = [{"name": text, "score": 0, "points": 1, "says": text} for text in PAYLOADS]
    graded = {"assignment": whole, "score": 0, "points": 1, "by_hand": 1, "note": whole, "tasks": tasks}
    return _work.feedback(whole, [graded])


@pytest.fixture(scope="module")
def html(tmp_path_factory):
    """Build a toy book whose chapter shows every payload, and the pages that stand by themselves."""
    root = toy_site.build(tmp_path_factory.mktemp("payloads") / "book")
    for job in toy_site.jobs(root):
        if job.slug == CHAPTER:
            run = toy_site.executed(toy_site.source(CHAPTER), job)
            next(cell for cell in run.cells if cell.id == "text").outputs = shown_on_a_chapter()
            toy_site.write_run(root, job, run)
    toy_site.record_files(root)
    _build.build(root, toy_site.jobs(root))
    html = root / "runs/toy/site/_build/html"
    pages = {"report": report(), "feedback": feedback()}
    pages["sheet"] = hipaa.sheet_page([(text, text, text) for text in PAYLOADS])
    for name, page in pages.items():
        (html / f"{name}.html").write_text(page, encoding="utf-8")
    return html


@contextmanager
def opened(chromium, html, page):
    """Open a page without its policy; yield the tab, and the list of what acted."""
    acted, server, context = [], _pdf._Server(html), chromium.new_context(bypass_csp=True)
    context.add_init_script(NOTES)
    context.on("console", lambda said: acted.append(said.text) if said.text.startswith("ran ") else None)
    context.on("dialog", lambda dialog: (acted.append("a dialog"), dialog.dismiss()))

    def answer(route):
        if "payload.invalid" in route.request.url:
            acted.append(route.request.url)
        server.answer(route)

    context.route("**/*", answer)
    tab = context.new_page()
    tab.goto(f"{_pdf.ADDRESS}{page}")
    yield tab, acted
    context.close()


PAGES = {
    f"notebooks/{CHAPTER}.html": "article",
    "report.html": "main",
    "feedback.html": "body",
    "sheet.html": "body",
    "search.html?q=payload": "#search-results",
}


@pytest.mark.parametrize("page", PAGES)
def test_no_payload_runs_or_asks_for_an_address_and_each_is_read_as_it_is_written(html, chromium, page):
    with opened(chromium, html, page) as (tab, acted):
        tab.wait_for_timeout(500)  # what begins by itself
        text = SPACE.sub("", tab.evaluate("where => document.querySelector(where).textContent", PAGES[page]))
        if "search" not in page:  # which shows an excerpt
            assert [one for one in PAYLOADS if SPACE.sub("", inert(one, keep=KEPT)) not in text] == []
        tab.evaluate(ACT, PAGES[page])
        tab.wait_for_timeout(500)
        assert acted == []


def test_the_payloads_act_where_nothing_stops_them(tmp_path, chromium):
    frames = "".join(f"<main><p>{text}</p></main>" for text in PAYLOADS[:9])
    (tmp_path / "raw.html").write_text(f"<!doctype html><meta charset=utf-8><body>{frames}", encoding="utf-8")
    with opened(chromium, tmp_path, "raw.html") as (tab, acted):
        tab.wait_for_timeout(500)
        assert acted
