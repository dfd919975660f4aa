"""What a page of the built site may load and run: files of the site, and the theme's own scripts.

Every page says so itself, in a Content-Security-Policy that the browser keeps. A script that stands in a page
runs only if the policy names its hash, and a hash is named only if the script is known: it stands on the
search page too, to which no run, profile or chapter adds any, or it does no more than set a value. An address
that is a script, an attribute such as `onclick`, another host, a frame, a plug-in or another base never may.
A page that comes with a policy under which it loads and runs nothing at all keeps that one, and its bytes.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable
from pathlib import Path

from privhelpers.artifacts import write_atomic

SELF = "'self' file:"  # where a folder is opened without a server, some browsers know no 'self'
SOURCES = {
    "default-src": "'none'",
    "script-src": SELF,
    "style-src": f"{SELF} 'unsafe-inline'",  # MathJax writes style sheets
    "img-src": f"{SELF} data:",
    "font-src": f"{SELF} data:",
    "connect-src": SELF,
    "form-action": SELF,
    "object-src": "'none'",
    "base-uri": "'none'",
}
SETS_PAGE = re.compile(r"\s*DOCUMENTATION_OPTIONS\.(?:pagename = '[\w./-]+'|COLLAPSE_INDEX = true);\s*")
SETS_MATHJAX = re.compile(r"window\.MathJax = (\{.*\})", re.DOTALL)
SCRIPT = re.compile(r"""<script\b((?:[^>"']|"[^"]*"|'[^']*')*)>(.*?)</script""", re.DOTALL | re.IGNORECASE)
SOURCE = re.compile(r"\ssrc\s*=", re.IGNORECASE)
NAME = "Content-Security-Policy"
# As the report of an audit has it.
CLOSED = re.compile(
    rf'<!doctype html>\s*<html lang="[\w-]+"><head><meta charset="utf-8">\s*<meta http-equiv="{NAME}"\s+'
    r"""content="default-src 'none'; img-src data:; style-src 'sha256-[\w+/=]+'">"""
)
HEAD = re.compile(rf'(<head>\s*(?:<meta charset="utf-8"\s*/?>)?)(?:<meta http-equiv="{NAME}"[^>]*>)?')


def _inline(page: str) -> list[str]:
    """Return the scripts that stand in a page; one that a browser reads otherwise never runs."""
    scripts = (body for attributes, body in SCRIPT.findall(page) if not SOURCE.search(attributes))
    return list(dict.fromkeys(scripts))


def _sets_a_value(script: str) -> bool:
    """Return whether a script is data: the name of its page, or the settings of MathJax as JSON."""
    if settings := SETS_MATHJAX.fullmatch(script):
        try:
            json.loads(settings[1])
        except ValueError:
            return False
        return True
    return bool(SETS_PAGE.fullmatch(script))


def _theme(html: Path) -> set[str]:
    """Return the scripts that the theme writes into every page of a site."""
    search = html / "search.html"
    return set(_inline(search.read_text(encoding="utf-8"))) if search.is_file() else set()


def _known(page: str, theme: set[str]) -> list[str]:
    return [script for script in _inline(page) if script in theme or _sets_a_value(script)]


def _tag(scripts: Iterable[str]) -> str:
    """Return the policy of a page that holds these scripts."""
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    hashes = "".join(f" 'sha256-{digest}'" for digest in digests)
    directives = SOURCES | {"script-src": SOURCES["script-src"] + hashes}
    content = "; ".join(f"{name} {sources}" for name, sources in directives.items())
    return f'<meta http-equiv="{NAME}" content="{content}">'


def _pages(html: Path) -> list[Path]:
    return sorted(path for path in html.rglob("*.html") if "_static" not in path.relative_to(html).parts)


def protect(html: Path) -> None:
    """Write its policy into every page of a built site, in front of all that it loads.

    Args:
        html: the folder of the site; pages that have a policy get today's.
    """
    theme = _theme(html)
    for path in _pages(html):
        page = path.read_text(encoding="utf-8")
        if CLOSED.match(page):
            continue
        tag = _tag(_known(page, theme))
        protected = HEAD.sub(lambda head, tag=tag: head[1] + tag, page, count=1)
        if protected != page:
            write_atomic(path, protected.encode())


def problems(html: Path) -> dict[Path, list[str]]:
    """Return what of each page its policy does not cover, pages without fault left out.

    Args:
        html: the folder of a site that `protect` has seen.
    """
    theme = _theme(html)
    found = {}
    for path in _pages(html):
        page = path.read_text(encoding="utf-8")
        if CLOSED.match(page):
            continue
        known = _known(page, theme)
        strange = [" ".join(script.split()) for script in _inline(page) if script not in known]
        says = [f"holds a script that the theme did not write: {script[:60]}" for script in strange]
        if page.partition("<script")[0].count(_tag(known)) != 1:
            says.append(f"has no {NAME} before its first script")
        if says:
            found[path] = says
    return found
