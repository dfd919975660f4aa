"""A finished site that loads from elsewhere, leads nowhere or tells on its machine is not published."""

import base64
import hashlib
import re
from pathlib import Path

import pytest

from bookmaker.site import _checks, _policy

PAGE = """<!doctype html><html><head><link rel="stylesheet" href="_static/book.css?v=1">
<link rel="canonical" href="https://elsewhere.example/"><script src="_static/a.js"></script></head>
<body><nav><img src="_static/logo.png"></nav><article id="top"><a href="#top">up</a>
<a href="other.html#there">on</a> <a href="https://elsewhere.example" rel="noopener" target="_blank">out</a>
<img src="_static/logo.png" alt="A padlock.">{}</article></body></html>"""
OTHER = '<html><head></head><body><article><h1 id="there">Other</h1></article></body></html>'


@pytest.fixture
def site(tmp_path):
    (tmp_path / "_static").mkdir()
    for name in ("book.css", "a.js", "logo.png", "font.woff2"):
        (tmp_path / "_static" / name).write_text("")
    (tmp_path / "_static" / "book.css").write_text("@font-face {src: url('font.woff2')}")
    (tmp_path / "other.html").write_text(OTHER)

    def write(extra=""):
        (tmp_path / "index.html").write_text(PAGE.format(extra))
        _policy.protect(tmp_path)
        return tmp_path

    return write


def findings(folder, root="/srv/clone"):
    return _checks.findings(folder, _checks.machine_strings(Path(root)))


REPORT = '<!doctype html>\n<html lang="de"><head><meta charset="utf-8">\n{}\n</head><body>{}</body></html>'
CLOSED = """<meta http-equiv="Content-Security-Policy"
content="default-src 'none'; img-src data:; style-src 'sha256-AbC+/9='">"""


@pytest.mark.parametrize(
    ("policy", "kept"),
    [
        (CLOSED, True),
        (CLOSED.replace("'sha256-AbC+/9='", "'unsafe-inline'"), False),
        (CLOSED.replace("img-src data:", "img-src *"), False),
        (CLOSED.replace("'\">", "'; script-src 'unsafe-inline'\">"), False),
        (CLOSED.replace("default-src", "x-default-src"), False),
        ("<title>first</title>" + CLOSED, False),
        (f"<!-- {CLOSED} -->", False),
        ("", False),
    ],
)
def test_a_page_keeps_its_policy_only_if_that_lets_it_do_nothing(site, policy, kept):
    folder, page = site(), REPORT.format(policy, "<script>alert(99)</script>")
    (folder / "report.html").write_text(page)
    _policy.protect(folder)
    text = (folder / "report.html").read_text()
    assert (text == page) == kept
    problems = [one for one in findings(folder) if one.startswith("report.html")]
    assert bool(problems) == (not kept), "a browser runs nothing under the one; the other is refused"


def test_a_closed_page_is_looked_at_like_any_other(site):
    folder = site()
    (folder / "report.html").write_text(REPORT.format(CLOSED, '<img src="https://cdn.example/x.png">'))
    _policy.protect(folder)
    assert any("report.html: loads https://cdn.example/x.png" in one for one in findings(folder))


def test_a_sound_site_has_no_findings(site):
    assert findings(site()) == []


@pytest.mark.parametrize(
    ("extra", "problem"),
    [
        ('<script src="https://cdn.example/x.js"></script>', "loads https://cdn.example/x.js from elsewhere"),
        ('<script src="//cdn.example/x.js"></script>', "loads //cdn.example/x.js from elsewhere"),
        (
            '<script>load("https://cdn.example/x.js")</script>',
            "loads https://cdn.example/x.js from elsewhere",
        ),
        ('<link rel="stylesheet" href="http://cdn.example/x.css">', "from elsewhere"),
        ('<link rel="preconnect" href="https://fonts.example">', "from elsewhere"),
        ('<img alt="A map." src="https://cdn.example/x.png">', "from elsewhere"),
        ('<img alt="A map." src="_static/logo.png" srcset="https://cdn.example/2.png 2x">', "from elsewhere"),
        ('<iframe src="https://cdn.example"></iframe>', "from elsewhere"),
        ("<style>@import 'https://cdn.example/x.css';</style>", "from elsewhere"),
        ('<p style="background: url(https://cdn.example/x.png)">x</p>', "from elsewhere"),
        ('<script src="_static/gone.js"></script>', "loads _static/gone.js, which is not there"),
        ('<img alt="A map." src="_images/gone.png">', "which is not there"),
        ('<a href="gone.html">x</a>', "the link gone.html leads nowhere"),
        ('<a href="#gone">x</a>', "the link #gone has no such place"),
        ('<a href="other.html#gone">x</a>', "the link other.html#gone has no such place"),
        ('<a href="javascript:x()">x</a>', "a link runs javascript:x()"),
        ('<img src="_static/logo.png">', "the picture logo.png has no alternative text"),
        ('<img src="_static/logo.png" alt=" ">', "no alternative text"),
        ('<img src="_static/logo.png" alt="../_static/logo.png">', "no alternative text"),
        (
            '<div class="cell_output"><script src="_static/a.js"></script></div>',
            "an output holds an active <script>",
        ),
        ("<script>alert(99)</script>", "holds a script that the theme did not write: alert(99)"),
        ("<SCRIPT type='module'>x</SCRIPT >", "holds a script that the theme did not write: x"),
        ("<script>DOCUMENTATION_OPTIONS.pagename = 'a';x()</script>", "the theme did not write"),
        ('<script>window.MathJax = {"a": x()}</script>', "the theme did not write"),
        ("<svg onload=alert(98)></svg>", "a <svg> acts by its attribute onload"),
        ('<p onclick="x()">x</p>', "a <p> acts by its attribute onclick"),
        ('</article><p OnClick="x()">x</p>', "a <p> acts by its attribute onclick"),
        ('<script src="_images/../_static/a.js"></script>', "the script _images/../_static/a.js is none"),
        ('<script src="_static/../other.html"></script>', "the script _static/../other.html is none"),
        ('<embed src="other.html">', "it holds an active <embed>"),
        ("<form></form>", "it holds an active <form>"),
        ('<button formaction="other.html">x</button>', "acts by its attribute formaction"),
        ('<meta http-equiv="refresh" content="0; url=other.html">', "it holds an active <meta>"),
        ('<base href="other.html">', "it holds an active <base>"),
        ("<svg><set></set></svg>", "it holds an active <set>"),
        ('<svg><a xlink:href="java&#9;script:x()">x</a></svg>', "a <a> has a script for its xlink:href"),
        ('<object data="data:text/html,x"></object>', "it holds an active <object>"),
        ('<a href="other.html" target="_blank">x</a>', "the link other.html opens a tab"),
        ('<div class="cell_output"><pre>Traceback (most <b>recent</b> call last)</pre></div>', "a traceback"),
        ("<p>/srv/clone/runs/x.json</p>", "names this machine (/srv/clone)"),
        ("<p>/home/somebody/x</p>", "names this machine (/home/somebody/)"),
    ],
)
def test_each_fault_is_found(site, extra, problem):
    problems = findings(site(extra))
    assert all(one.startswith("index.html: ") for one in problems)
    assert any(problem in one for one in problems), problems


def test_a_page_without_its_policy_is_found(site):
    folder = site()
    page = folder / "index.html"
    text = page.read_text()
    for weaker in (
        text.replace(_policy.NAME, "x"),
        text.replace("object-src 'none'", "object-src *"),
        text.replace("script-src ", "script-src 'unsafe-inline' "),
        text.replace("<head>", "<head><script src='_static/a.js'></script>"),
    ):
        assert weaker != text
        page.write_text(weaker)
        (problem,) = findings(folder)
        assert problem == "index.html: has no Content-Security-Policy before its first script"


def test_a_policy_names_known_scripts_alone_and_is_written_once(site):
    known, settings = "let themed = 1;", 'window.MathJax = {"tex": {}}'
    folder = site(f"<script>{known}</script><script>{settings}</script><script>alert(1)</script>")
    (folder / "search.html").write_text(f"<html><head></head><body><script>{known}</script></body></html>")
    _policy.protect(folder)
    text = (folder / "index.html").read_text()
    digests = [base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() for one in (known, settings)]
    assert re.findall("'sha256-(.+?)'", text) == digests
    assert text.count(_policy.NAME) == 1 and "script-src 'self' file: 'sha256-" in text
    (problem,) = findings(folder)
    assert problem == "index.html: holds a script that the theme did not write: alert(1)"


def test_style_sheets_are_read_too(site):
    folder = site()
    (folder / "_static" / "book.css").write_text(
        "@import 'https://fonts.example/x.css'; a {src: url(gone.woff)}"
    )
    assert findings(folder) == [
        "_static/book.css: loads https://fonts.example/x.css from elsewhere",
        "_static/book.css: loads gone.woff, which is not there",
    ]


def test_the_copies_of_sources_and_the_search_index_must_not_name_the_machine(site):
    folder = site()
    (folder / "_sources" / "notebooks").mkdir(parents=True)
    (folder / "_sources" / "notebooks" / "x.ipynb").write_text('"/srv/clone/runs"')
    (folder / "searchindex.js").write_text("/srv/clone")
    assert sorted(findings(folder)) == [
        "_sources/notebooks/x.ipynb: names this machine (/srv/clone)",
        "searchindex.js: names this machine (/srv/clone)",
    ]


def test_a_clone_with_a_common_name_is_not_mistaken_for_a_link(site):
    assert findings(site('<a href="./other.html">x</a><a href="../book/x">'), "/book") == [
        "index.html: the link ../book/x leads nowhere"
    ]


@pytest.mark.parametrize("root", ["/p", "/code", "/div", "/table", "/site"])
def test_a_clone_with_the_name_of_a_tag_is_not_mistaken_for_it(site, root):
    name = root[1:]
    page = f"<{name}>&lt;{name}&gt;&lt;/{name}&gt; of</{name}><p>runs/toy{root} {root}s</p>"
    assert findings(site(page), root) == []
    told = [f"index.html: names this machine ({root})"] if len(root) > 2 else []
    assert findings(site(f'<p>"{root}/runs"</p>'), root) == told


def test_a_folder_where_the_book_tells_readers_to_mount_theirs_betrays_nothing(site, monkeypatch):
    """A folder of one's own is named, even where a page of the sources holds it by mistake."""
    monkeypatch.setattr(
        _checks.written, "files", lambda folder, pattern: [sources] * (folder.parent == Path(root))
    )
    sources = site() / "other.html"
    for root, told in (("/work", []), ("/srv/clone", ["index.html: names this machine (/srv/clone)"])):
        sources.write_text(f'-v "$PWD:{root}"')
        machine = _checks.machine_strings(Path(root))
        sources.write_text(OTHER)
        assert _checks.findings(site(f'<p>-v "$PWD:{root}"</p>'), machine) == told


def test_the_name_of_the_machine_counts_unless_it_is_a_word(site, monkeypatch):
    monkeypatch.setattr(_checks.platform, "node", lambda: "ward-7")
    assert findings(site("<p>on ward-7 today</p>")) == ["index.html: names this machine (ward-7)"]
    monkeypatch.setattr(_checks.platform, "node", lambda: "ward-7.hospital.example")
    assert findings(site("<p>on ward-7 today</p>")) == ["index.html: names this machine (ward-7)"]
    monkeypatch.setattr(_checks.platform, "node", lambda: "records")
    assert findings(site("<p>synthetic records</p>")) == []


def named(monkeypatch, user, host="records"):
    """Return a site's findings on a machine with these names."""
    monkeypatch.setattr(_checks.platform, "node", lambda: host)
    monkeypatch.setattr(_checks.getpass, "getuser", lambda: user)
    return findings


@pytest.mark.parametrize("user", ["jane.doe", "ab_1234", "mueller7"])
def test_a_name_that_is_no_word_counts_as_a_whole_word(site, monkeypatch, user):
    for text in (f"made by {user} today", f"&quot;{user}&quot;", f"{user}@ward"):
        assert named(monkeypatch, user)(site(f"<p>{text}</p>")) == [
            f"index.html: names this machine ({user})"
        ]
    assert findings(site(f"<p>x{user}, {user}x, {user}-x</p>")) == []


COLORED = '<span class="nt">"user"</span><span class="p">:</span><span class="w"> </span><span>"notes"</span>'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("notes@ward:~$ ls", "notes@"),
        ("/home/notes, it is", "/home/notes"),
        ("in /Users/notes", "/Users/notes"),
        ("/scratch/notes/runs", "/scratch/notes"),
        ("/data/notes", "/data/notes"),
        ("USER=notes", "USER=notes"),
        ("LOGNAME=notes", "LOGNAME=notes"),
        ("HOSTNAME=records", "HOSTNAME=records"),
        ("someone@records:~$", "@records"),
        ('{"user": "notes"}', 'user": "notes'),
        ("{&#39;username&#39;:&#39;notes&#39;}", "username&#39;:&#39;notes"),
        (r'"{\"hostname\": \"records\"}"', r"hostname\": \"records"),
        ("{&quot;node&quot;: &quot;records&quot;}", "node&quot;: &quot;records"),
        (COLORED, COLORED[18:-8]),
    ],
)
def test_a_name_that_is_a_word_counts_where_a_machine_writes_it(site, monkeypatch, text, told):
    problems = named(monkeypatch, "notes")(site(f"<p>{text}</p>"))
    assert problems == [f"index.html: names this machine ({told})"]


def test_a_word_is_no_finding_though_a_user_or_a_machine_has_it_for_a_name(site, monkeypatch):
    page = """<p>The "notes" of synthetic records, my-notes@ward, notes@mail.example.org, a@notes.test,
    notes=1, "title": "notes", https://ward.de/home/notes, @records, notes@1.2</p>"""
    assert named(monkeypatch, "notes")(site(page)) == []
    page = "<p>{0}@ward, /home/{0}, USER={0}, made by {0}</p>"
    for user in ("root", "runner", "student07", "node1", "localhost", "a.b", "ann"):
        assert named(monkeypatch, user, user)(site(page.format(user))) == [], user
    assert named(monkeypatch, "1000")(site("<p>of 1000 patients</p>")) == []
    assert named(monkeypatch, "1000")(site("<p>USER=1000</p>")) != []


def test_a_hosts_name_up_to_its_dot_may_be_a_word_of_the_book(site, monkeypatch, tmp_path_factory):
    root = tmp_path_factory.mktemp("clone")
    (root / "book").mkdir()
    (root / "book" / "intro.md").write_text("Install python3 first.")
    for host, told in (("python3.lan", []), ("ward-7.lan", ["index.html: names this machine (ward-7)"])):
        page = f"<p>by {host.removesuffix('.lan')} here</p>"
        assert named(monkeypatch, "root", host)(site(page), root) == told
    assert named(monkeypatch, "root", "python3.lan")(site("<p>someone@python3:~$</p>"), root) != []
    assert named(monkeypatch, "root", "python3.lan")(site("<p>python3.lan</p>"), root) != []


def test_a_name_that_the_configuration_says_is_public(site, monkeypatch, tmp_path_factory):
    root = tmp_path_factory.mktemp("clone")
    (root / "_config.yml").write_text("repository: {url: https://git.example/jane-doe/book}")
    for user, told in (("jane-doe", []), ("john-doe", ["index.html: names this machine (john-doe)"])):
        assert named(monkeypatch, user)(site(f"<a href='https://git.example/{user}'></a>"), root) == told
    assert named(monkeypatch, "jane-doe")(site("<p>jane-doe@ward</p>"), root), "of this machine all the same"


@pytest.mark.parametrize("error", [KeyError, ImportError, OSError])
def test_a_user_whom_the_system_does_not_know_has_no_name(site, monkeypatch, error):
    def unknown():
        raise error

    monkeypatch.setattr(_checks.getpass, "getuser", unknown)
    assert findings(site("<p>x</p>")) == []


def test_every_text_that_the_build_writes_is_read(site):
    folder, kinds = site(), ("css", "csv", "ipynb", "js", "json", "md", "svg", "txt", "xml", "yml")
    names = [f"{place}/b.{kind}" for place in ("_images", "_static") for kind in kinds]
    for name in [*names, "_static/library/a.js", "_images/a.png"]:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"\xff '/srv/clone/runs'")
    assert findings(folder) == [f"{name}: names this machine (/srv/clone)" for name in names]


def test_no_site_is_a_finding(tmp_path):
    assert findings(tmp_path) == ["index.html: is missing"]


def test_the_way_in_and_the_way_back_are_there(tmp_path):
    from bookmaker.site import _entrance

    (tmp_path / "book").mkdir()
    (tmp_path / "book" / "intro.html").write_text("<html></html>")
    _entrance.write(tmp_path, "https://example.org/privai/")
    assert "url=book/intro.html" in (tmp_path / "index.html").read_text()
    assert 'content="https://example.org/privai/_static/card.png"' in (tmp_path / "index.html").read_text()
    assert 'href="https://example.org/privai/book/intro.html"' in (tmp_path / "404.html").read_text()
    assert (tmp_path / "sitemap.xml").read_text().count("<loc>") == 1
    _entrance.write(tmp_path, None)
    assert not (tmp_path / "sitemap.xml").exists() and not (tmp_path / "robots.txt").exists()
    assert "og:" not in (tmp_path / "index.html").read_text()


@pytest.mark.parametrize(
    ("line", "address"),
    [("", None), ("  baseurl: https://example.org/a\n", "https://example.org/a/")],
)
def test_the_address_stands_in_one_place(tmp_path, line, address):
    from bookmaker.site import _entrance

    (tmp_path / "_config.yml").write_text(f"title: x\nhtml:\n  favicon: a\n{line}")
    assert _entrance.address(tmp_path) == address


def test_an_address_that_is_none_is_refused(tmp_path):
    from bookmaker.site import _entrance
    from privhelpers.errors import InvalidParameter

    (tmp_path / "_config.yml").write_text("html: {baseurl: example.org}\n")
    with pytest.raises(InvalidParameter, match=r"html\.baseurl"):
        _entrance.address(tmp_path)


ELSEWHERE = [
    '<meta http-equiv="refresh" content="0; url=https://evil.example/">',
    '<meta http-equiv="Refresh" content="0;URL=\'//evil.example/\'">',
    '<meta http-equiv="refresh" content="0 https://evil.example/">',
    *(
        f'<link rel="{rel}" href="//evil.example/">'
        for rel in ("dns-prefetch", "preconnect", "prerender", "prefetch", "preload", "PRELOAD")
    ),
]


@pytest.mark.parametrize("line", ELSEWHERE)
def test_a_head_that_leads_or_asks_elsewhere_is_named(site, line):
    folder = site()
    (folder / "away.html").write_text(f"<html><head>{line}</head><body></body></html>")
    _policy.protect(folder)
    assert any(
        one.startswith("away.html: loads") and "evil.example" in one and one.endswith("from elsewhere")
        for one in findings(folder)
    )


def test_a_head_may_lead_to_a_page_of_the_site(site):
    folder = site()
    for url, there in (("other.html", True), ("none.html", False)):
        line = f'<meta http-equiv="refresh" content="0; url={url}">'
        (folder / "away.html").write_text(f"<html><head>{line}</head><body></body></html>")
        _policy.protect(folder)
        assert any("away.html" in one and "none.html" in one for one in findings(folder)) is not there
