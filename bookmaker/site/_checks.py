"""What a built site must not do: run or load what is not its own, lead nowhere, betray its machine.

Reads the HTML and the other texts that a browser gets, after every tool has had its say.
"""

import contextlib
import getpass
import os
import platform
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath
from urllib.parse import unquote, urlsplit

from bookmaker.runner import notebooks, written
from bookmaker.site import _policy
from bookmaker.site._memo import FOLDER, Memo

VOID = set(
    ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"]
)
LOADING_RELS = {"stylesheet", "preload", "modulepreload", "prefetch", "icon", "manifest", "preconnect"}
LOADING_RELS |= {"dns-prefetch", "prerender"}
REFRESH = re.compile(r"[\s\d.]*[\s;,]*(?:url\s*=)?\s*['\"]?([^'\"]*)", re.IGNORECASE)  # of a <meta>
LOADS = {
    "script": ("src", "href", "xlink:href"),
    "img": ("src", "srcset"),
    "source": ("src", "srcset"),
    "iframe": ("src",),
    "embed": ("src",),
    "video": ("src", "poster"),
    "audio": ("src",),
    "object": ("data",),
}
# What acts wherever it stands, and what a page has in its head, or from the theme, and nowhere else.
ACTIVE = {"iframe", "frame", "frameset", "object", "embed", "applet", "portal", "base"}
ACTIVE |= {"animate", "animatemotion", "animatetransform", "set", "foreignobject"}  # of SVG
HEAD_ONLY = {"link", "meta"}
OUTSIDE_ARTICLES = {"form"}
ACTING = {"srcdoc", "formaction", "ping"}  # attributes, besides on...
CSS_URL = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")
SCRIPT_URL = re.compile(r"['\"`](https?:)?//[a-z0-9-]+\.[^'\"`\s]+", re.IGNORECASE)
ADDRESSES = {"action", "background", "data", "href", "poster", "src", "xlink:href"}
SCRIPT_ADDRESS = re.compile(r"(?:javascript|vbscript|data:text)", re.IGNORECASE)
OWN_SCRIPT = re.compile(r"(?:\.\./)*(?:_static/(?!.*\.\.)|searchindex\.js)")
# Accounts and machines that many readers have, and what a machine writes before a name, colors in between.
SHARED = {"admin", "jovyan", "localhost", "node", "root", "runner", "student", "ubuntu", "user", "vscode"}
QUOTE, GAP = r"(?:\\?[\"']|&quot;|&#39;)", r"(?:<[^>]+>|\s)*"
KEYS = "|".join(rf"{key}(?:name)?{QUOTE}{GAP}:{GAP}{QUOTE}" for key in ("user", "login", "host", "node"))
BEFORE_A_NAME = rf"(?:/(?<![\w.-]/)(?:home|Users|scratch|data)/|USER=|LOGNAME=|HOSTNAME=|@(?<=\w@)|{KEYS})"
TEXTS = {".css", ".csv", ".ipynb", ".js", ".json", ".md", ".svg", ".txt", ".xml", ".yml"}  # besides pages
TRACEBACK = "Traceback (most recent call last)"


@dataclass
class Page:
    """What one page loads, links to and defines, and what is wrong with it."""

    loads: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    anchors: set[str] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    """Fills a `Page` from its HTML, and knows what each element lies in.

    Not the reader of `outputs`: that one lets through a list of tags and refuses the rest, token by token;
    this one goes through whole pages, where every tag of the theme is welcome.
    """

    def __init__(self) -> None:
        super().__init__()
        self.page = Page()
        self.outputs: list[str] = []  # texts of the cells' outputs
        self.stack: list[tuple[str, bool, bool]] = []  # tag, inside the article, inside a cell's output

    def _inside(self) -> tuple[bool, bool]:
        return self.stack[-1][1:] if self.stack else (False, False)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        article, output = self._inside()
        self.page.anchors |= {values[name] for name in ("id", "name") if values.get(name)}
        self._collect(tag, values)
        if tag == "img" and article:
            self._picture(values)
        self._active(tag, values, article, output)
        if tag not in VOID:
            classes = values.get("class", "").split()
            article = article or tag == "article"
            self.stack.append((tag, article, output or "cell_output" in classes))

    def handle_endtag(self, tag: str) -> None:
        for i in reversed(range(len(self.stack))):
            if self.stack[i][0] == tag:
                del self.stack[i:]
                return

    def handle_data(self, data: str) -> None:
        if self.stack and self.stack[-1][0] == "style":
            self.page.loads += _css_urls(data)
        elif self.stack and self.stack[-1][0] == "script":
            self.page.loads += [match[0][1:] for match in SCRIPT_URL.finditer(data)]
        elif self._inside()[1]:
            self.outputs.append(data)

    def _collect(self, tag: str, values: dict[str, str]) -> None:
        """Note what an element loads or links to."""
        for name in LOADS.get(tag, ()):
            if values.get(name):
                parts = values[name].split(",") if name == "srcset" else [values[name]]
                self.page.loads += [part.split()[0] for part in parts if part.strip()]
        if tag == "link" and LOADING_RELS & set(values.get("rel", "").lower().split()):
            self.page.loads.append(values.get("href", ""))
        if tag == "meta" and values.get("http-equiv", "").lower() == "refresh":
            url = REFRESH.match(values.get("content", ""))[1].strip()
            (self.page.loads if _is_external(url) else self.page.links).append(url)
        if tag == "a" and values.get("href"):
            self.page.links.append(values["href"])
        if "style" in values:
            self.page.loads += _css_urls(values["style"])

    def _active(self, tag: str, values: dict[str, str], article: bool, output: bool) -> None:
        """Note what acts and is neither the theme's nor the book's own script."""
        acts = (
            tag in ACTIVE
            or (tag in HEAD_ONLY and any(name == "body" for name, *_ in self.stack))
            or (tag in OUTSIDE_ARTICLES and article)
            or (tag == "script" and output)
        )
        if acts:
            self.page.problems.append(f"{'an output' if output else 'it'} holds an active <{tag}>")
        for name, value in values.items():
            if name.startswith("on") or name in ACTING:
                self.page.problems.append(f"a <{tag}> acts by its attribute {name}")
            elif name in ADDRESSES and (tag, name) != ("a", "href") and _is_script(value):
                self.page.problems.append(f"a <{tag}> has a script for its {name}")
        source = values.get("src", "") if tag == "script" else ""
        if source and not _is_external(source) and not OWN_SCRIPT.match(source):
            self.page.problems.append(f"the script {source} is none of the book's")
        if tag == "a" and values.get("target") and "noopener" not in values.get("rel", "").split():
            self.page.problems.append(f"the link {values.get('href', '')} opens a tab that it could change")

    def _picture(self, values: dict[str, str]) -> None:
        alt, source = values.get("alt", "").strip(), unquote(values.get("src", ""))
        name = PurePosixPath(source).name
        # A generated file name is what Sphinx writes where the author wrote nothing.
        if not alt or (name and alt.endswith((name, PurePosixPath(name).stem))):
            self.page.problems.append(f"the picture {name or '(inline)'} has no alternative text")


def _is_script(url: str) -> bool:
    """Return whether an address runs, as a browser reads it: without white space and control characters."""
    return bool(SCRIPT_ADDRESS.match(re.sub(r"[\x00-\x20]", "", url)))


def _css_urls(text: str) -> list[str]:
    """Return every address that a style sheet loads."""
    return [(match[1] or match[2]).strip() for match in CSS_URL.finditer(text)]


def _read_page(html: str) -> dict[str, list[str]]:
    """Return the fields of a page's `Page`."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    page = reader.page
    if TRACEBACK in "".join(reader.outputs):
        page.problems.append("an output shows a traceback")
    return vars(page) | {"anchors": sorted(page.anchors)}


def pages_memo(site: Path) -> Memo:
    """Return what the last check of a site read in its pages."""
    return Memo(site / FOLDER / "pages.json", [Path(__file__)])


def _naming(name: str, said: str) -> list[str]:
    """Return patterns of the name of a user or a machine, as `machine_strings` says."""
    literal = re.escape(name)
    whole = rf"{literal}(?<![\w-]{literal})(?![\w-])"
    if len(name) <= 3 or re.sub(r"\d{1,3}$", "", name) in SHARED:
        return []
    if re.search(r"[^\W\d_]", name) and re.search(r"[\d._-]", name) and not re.search(whole, said):
        return [whole]
    address = rf"{literal}@(?<![\w.-]{literal}@)(?=[A-Za-z])(?![\w.-]*\bexample\b)"
    return [address, rf"{BEFORE_A_NAME}{literal}(?!\.?[\w-])"]


def _sources(root: Path) -> list[Path]:
    """Return the files that the pages of the book are written in."""
    return written.files(root / "book", "**/*.md") + written.files(root / "notebooks", "*.ipynb")


def _said(files: Iterable[Path]) -> str:
    return "\n".join(path.read_text(encoding="utf-8", errors="replace") for path in files)


def machine_strings(root: Path) -> list[re.Pattern[str]]:
    """Return patterns of what would betray the machine: its folders, its name and that of its user.

    A copy that lies in `/work`, where the book tells readers to mount theirs, is like any other.

    A name counts anywhere, as a whole word, if it holds letters and a digit, dot, dash or underscore and
    `_config.yml`, such as in the repository's address, does not say it. Any other may be a word or a number,
    and counts where machines write it: `name@host`, `/home/name`, `/scratch/name`, `/data/name`, `USER=name`,
    `"user": "name"`. So does a host's name up to its dot that the sources of a page say. One of up to three
    letters, or in `SHARED` (up to three digits may follow, as in `student07`), betrays nobody.
    """
    folders = {str(root), sys.prefix, f"{Path.home()}/", f"{tempfile.gettempdir()}/"}
    if root.parent == Path(root.anchor):
        own = re.compile(notebooks.naming(str(root)))
        if own.search(_said(_sources(root))):
            folders -= {str(root)}
    patterns = [notebooks.naming(name) for name in sorted(folders) if len(name) > 2]
    patterns += [notebooks.naming(f"/{users}/") + r"\w+/" for users in ("home", "Users")]
    patterns += [r"[A-Z]:\\Users\\"]
    host, said = platform.node(), _said(root.glob("_config.yml"))
    # Up to its dot a host's name may be a word of the book: `python3` of `python3.local`.
    names = {host.partition(".")[0]: said + _said(_sources(root)), host: said}
    with contextlib.suppress(ImportError, KeyError, OSError):  # a user that the system does not know
        names[getpass.getuser()] = said
    patterns += [pattern for name in sorted(names) for pattern in _naming(name, names[name])]
    return [re.compile(pattern) for pattern in patterns]


def _is_external(url: str) -> bool:
    parts = urlsplit(url)
    return bool(parts.netloc) or (bool(parts.scheme) and parts.scheme != "data")


def _target(html: Path, page: str, url: str) -> tuple[Path, str]:
    """Return the file and the anchor that a local address on `page` means."""
    parts = urlsplit(url)
    base = html / page
    # Not `resolve`, which asks the disk for every folder on the way, of some hundred links a page.
    place = Path(os.path.normpath(base.parent / unquote(parts.path))) if parts.path else base
    return (place / "index.html" if place.is_dir() else place), unquote(parts.fragment)


def _load_problems(html: Path, name: str, urls: list[str]) -> Iterator[str]:
    for url in dict.fromkeys(urls):
        if _is_external(url):
            yield f"{name}: loads {url} from elsewhere"
        elif not url.startswith(("data:", "#")) and not _target(html, name, url)[0].is_file():
            yield f"{name}: loads {url}, which is not there"


def _link_problems(html: Path, name: str, pages: dict[Path, Page]) -> Iterator[str]:
    for url in dict.fromkeys(pages[html / name].links):
        scheme = urlsplit(url).scheme
        if scheme in ("http", "https", "mailto"):
            continue
        if scheme:
            yield f"{name}: a link runs {url[:60]}"
            continue
        place, anchor = _target(html, name, url)
        if not place.is_file():
            yield f"{name}: the link {url} leads nowhere"
        elif anchor and place in pages and anchor not in pages[place].anchors:
            yield f"{name}: the link {url} has no such place in its page"


def _text_problems(name: str, text: str, machine: list[re.Pattern[str]]) -> Iterator[str]:
    for pattern in machine:
        if match := pattern.search(text):
            yield f"{name}: names this machine ({match[0]})"


def findings(html: Path, machine: list[re.Pattern[str]], memo: Memo | None = None) -> list[str]:
    """Return everything that makes a built site unfit to publish, as `page: problem`.

    Args:
        html: the folder with `index.html`.
        machine: patterns that no text of the build may contain, see `machine_strings`.
        memo: what an earlier check read in pages with the same bytes.
    """
    html = html.resolve()
    if not (html / "index.html").is_file():
        return ["index.html: is missing"]
    texts = {path: path.read_text(encoding="utf-8") for path in sorted(html.rglob("*.html"))}
    pages = {}
    for path, text in texts.items():
        if "_static" not in path.parts:
            read = memo.of(text, _read_page) if memo else _read_page(text)
            pages[path] = Page(**read | {"anchors": set(read["anchors"])})
    if memo:
        memo.write()
    uncovered = _policy.problems(html)
    problems: list[str] = []
    for path, page in pages.items():
        name = path.relative_to(html).as_posix()
        problems += [
            f"{name}: {problem}" for problem in dict.fromkeys(page.problems + uncovered.get(path, []))
        ]
        problems += _load_problems(html, name, page.loads)
        problems += _link_problems(html, name, pages)
        problems += _text_problems(name, texts[path], machine)
    for path in sorted(path for path in html.rglob("*") if path.suffix in TEXTS and path.is_file()):
        text, place = path.read_text(encoding="utf-8", errors="replace"), path.relative_to(html)
        problems += _load_problems(html, place.as_posix(), _css_urls(text) if path.suffix == ".css" else [])
        if place.parts[0] != "_static" or len(place.parts) == 2:  # what lies deeper there is a library's
            problems += _text_problems(place.as_posix(), text, machine)
    return problems
