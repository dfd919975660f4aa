"""What a web server shows besides pages: the way in, old and wrong addresses, a map for search engines.

The map and the card that other sites show of a link need full addresses. They are made only where
`_config.yml` says under which address the site stands (`html: baseurl:`), the one place that says it.
"""

from html import escape
from pathlib import Path

from bookmaker.runner import written
from bookmaker.site import _reports
from privhelpers.artifacts import parse_yaml, write_atomic
from privhelpers.errors import InvalidParameter
from privhelpers.validate import shown

TITLE = "PrivAI-Leak"
SUMMARY = "Teaching, measuring and auditing the privacy of language models fine-tuned on clinical notes."
FIRST_PAGE = "book/intro.html"
CARD = "_static/card.png"
STYLE = (
    ":root{color-scheme:light dark;background:Canvas;color:CanvasText}"
    "body{font:18px/1.6 system-ui;max-width:34rem;margin:15vh auto}"
)
MADE = ("index.html", "404.html", "sitemap.xml", "robots.txt")
OLD_ADDRESSES = Path(__file__).with_name("old_addresses.yml")


def address(root: Path) -> str | None:
    """Return the public address of the site, with a slash at its end, or None.

    Raises:
        InvalidParameter: `_config.yml` names something else than an address.
    """
    given = written.config(root)["html"].get("baseurl")
    if not given:
        return None
    if not isinstance(given, str) or not given.startswith(("https://", "http://")):
        raise InvalidParameter(
            f"_config.yml, html.baseurl = {shown(given)}: must start with https:// or http://"
        )
    return given.rstrip("/") + "/"


def _page(head: str, body: str) -> bytes:
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{TITLE}</title>\n'
        # An empty icon, or browsers ask for one in vain.
        f'<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">\n{head}</head>\n'
        f"<body>{body}</body>\n</html>\n"
    ).encode()


def _card(base: str) -> str:
    """Return the tags from which other sites make a preview of a link."""
    tags = {"title": TITLE, "description": SUMMARY, "type": "website", "url": base, "image": base + CARD}
    return "".join(f'<meta property="og:{k}" content="{escape(v)}">\n' for k, v in tags.items())


def _map(html: Path, base: str, leave_out: set[str]) -> bytes:
    hidden = {"_static", _reports.FOLDER}  # a report asks search engines to leave it alone
    pages = (path.relative_to(html) for path in html.rglob("*.html"))
    names = sorted(page.as_posix() for page in pages if page.parts[0] not in hidden)
    places = "".join(
        f"<url><loc>{escape(base + name)}</loc></url>\n" for name in names if name not in leave_out
    )
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{places}</urlset>\n'
    ).encode()


def _redirect(target: str) -> bytes:
    """Return a page that leads on to `target`, an address beside it."""
    head = f'<meta http-equiv="refresh" content="0; url={target}">\n<link rel="canonical" href="{target}">\n'
    return _page(head, f'<p>This page is now called <a href="{target}">{target}</a>.</p>')


def _redirects(html: Path) -> dict[str, str]:
    """Return where each old address of a built site leads: old file, new file beside it.

    Args:
        html: the folder of the site; a page that it lacks has no old address either.
    """
    old_names = parse_yaml(OLD_ADDRESSES.read_text(encoding="utf-8"))
    redirects = {}
    for old, slug in old_names.items():
        pages = [html / "notebooks" / f"{slug}.html", *(html / "runs").glob(f"{slug}--*.html")]
        for page in (page for page in pages if page.is_file()):
            address = page.relative_to(html)
            redirects[address.with_name(old + address.name.removeprefix(slug)).as_posix()] = address.name
    return redirects


def write(html: Path, base: str | None) -> None:
    """Write these pages into the built site.

    Args:
        html: the folder of the site.
        base: its public address with a slash at the end, or None where it is not known.
    """
    card = _card(base) if base else ""
    forward = f'<meta http-equiv="refresh" content="0; url={FIRST_PAGE}">\n'
    write_atomic(html / "index.html", _page(card + forward, f'<a href="{FIRST_PAGE}">{TITLE}</a>'))
    leads = _redirects(html)
    for old, new in leads.items():
        write_atomic(html / old, _redirect(new))
    home = (base or "") + FIRST_PAGE  # without an address a wrong one in a folder cannot be led back
    lost = (
        "<main><h1>There is no such page</h1>\n<p>It may have another name in this edition of the book.\n"
        f'Start at the <a href="{escape(home)}">first page</a>; it has the contents and a search.</p></main>'
    )
    write_atomic(html / "404.html", _page(f"<style>{STYLE}</style>\n", lost))
    for name in ("sitemap.xml", "robots.txt"):
        (html / name).unlink(missing_ok=True)
    if base:
        write_atomic(html / "sitemap.xml", _map(html, base, leave_out={*MADE, *leads}))
        write_atomic(html / "robots.txt", f"User-agent: *\nAllow: /\nSitemap: {base}sitemap.xml\n".encode())
