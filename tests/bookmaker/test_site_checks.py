"""A finished site that loads from elsewhere, leads nowhere, or names its machine is not published."""

from pathlib import Path

import pytest

from bookmaker.site import _build, _checks

PAGE = """<!doctype html><html><head><meta charset="utf-8"/>
<link rel="stylesheet" href="_static/book.css?v=1">
<link rel="canonical" href="https://elsewhere.example/"><script src="_static/a.js"></script></head>
<body><article id="top"><a href="#top">up</a> <a href="other.html#there">on</a>
<a href="https://elsewhere.example">out</a> <a href="mailto:a@b.example">write</a>
<img src="_static/logo.png" alt="A padlock.">{}</article></body></html>"""
OTHER = '<html><head></head><body><article><h1 id="there">Other</h1></article></body></html>'
OWN_POLICY = f"""<!doctype html><html><head><meta charset="utf-8">
<meta http-equiv="{_checks.NAME}" content="default-src 'none'"></head><body></body></html>"""


@pytest.fixture
def site(tmp_path):
    (tmp_path / "_static").mkdir()
    for name in ("book.css", "a.js", "logo.png"):
        (tmp_path / "_static" / name).write_text("")
    (tmp_path / "other.html").write_text(OTHER)

    def write(extra=""):
        (tmp_path / "index.html").write_text(PAGE.format(extra))
        return tmp_path

    return write


def findings(folder, root="/srv/clone"):
    return _checks.findings(folder, _checks.machine_strings(Path(root)))


@pytest.mark.parametrize(
    ("extra", "problem"),
    [
        ('<script src="https://cdn.example/x.js"></script>', "https://cdn.example/x.js is not a file"),
        ('<img alt="A map." src="//cdn.example/x.png">', "//cdn.example/x.png is not a file"),
        ('<link rel="preconnect" href="https://fonts.example">', "not a file"),
        ('<a href="javascript:x()">x</a>', "javascript:x() is not a file"),
        ('<meta http-equiv="refresh" content="0; url=gone.html">', "gone.html leads nowhere"),
        ('<script src="_static/gone.js"></script>', "_static/gone.js leads nowhere"),
        ('<a href="other.html#gone">x</a>', "other.html#gone leads to a place"),
        ('<img src="_static/logo.png" alt=" ">', "logo is a picture without a description"),
        ('<img src="_static/logo.png" alt="../_static/logo.png">', "logo is a picture without a description"),
        ("<p>/srv/clone/runs/x.json</p>", "names this machine (/srv/clone)"),
        ("<p>/home/someone/x</p>", "names this machine (/home/someone/)"),
        (r"<p>C:\Users\x</p>", "names this machine (C:\\Users\\)"),
    ],
)
def test_each_fault_is_found(site, extra, problem):
    assert findings(site()) == [], "without it the site is sound"
    (found,) = findings(site(extra))
    assert found.startswith("index.html: ") and problem in found


def test_sources_and_the_search_index_must_not_name_the_machine(site):
    folder = site()
    (folder / "_sources" / "notebooks").mkdir(parents=True)
    for name in ("_sources/notebooks/x.ipynb", "searchindex.js"):
        (folder / name).write_text(f'"{Path.home()}/runs"')
    found = {one.partition(": names this machine (")[0] for one in findings(folder)}
    assert found == {"_sources/notebooks/x.ipynb", "searchindex.js"}


@pytest.mark.parametrize(("root", "page"), [("/work", '-v "$PWD:/work"'), ("/a/p", "runs/a/p <p>x</p>")])
def test_a_folder_that_a_page_may_name_is_not_a_finding(site, root, page):
    assert findings(site(f"<p>{page}</p>"), root) == []


def test_every_page_gets_a_policy_before_it_loads_anything_unless_it_has_its_own(site):
    folder = site()
    (folder / "report.html").write_text(OWN_POLICY)
    for _ in range(2):
        _checks.protect(folder)
        for name in ("index.html", "other.html"):
            head = (folder / name).read_text().partition("<link")[0]
            assert head.count(_checks.POLICY) == 1
        assert (folder / "report.html").read_text() == OWN_POLICY


def test_a_page_that_leads_on_has_a_link_too(tmp_path):
    assert findings(tmp_path) == ["index.html: is missing"]
    _build._lead_on(tmp_path / "index.html", "book/intro.html")
    assert findings(tmp_path) == ["index.html: book/intro.html leads nowhere"]
    assert '<a href="book/intro.html">' in (tmp_path / "index.html").read_text()
