"""Stages, builds and checks the site of one profile; `.complete` exists only if all three went well."""

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from bookmaker.runner import fingerprint, notebooks, published
from bookmaker.runner import plan as planning
from bookmaker.runner.plan import Job
from bookmaker.site import _checks, _hover_cards, _reports
from bookmaker.site._staging import stage
from privhelpers.artifacts import parse_yaml, write_atomic
from privhelpers.errors import RunFailed

FINGERPRINT = ".fingerprint"
LOG = "build.log"
OPTIONS = ("-W", "-n", "--keep-going", "-q")  # every warning is an error, and all of them are shown
TOOLS = ("jupyter-book", "sphinx", "myst-nb", "sphinx-book-theme", "pydata-sphinx-theme", "sphinx-proof")
ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
CAUSE = re.compile(r"^(?P<place>.*?):? ?(?:WARNING|ERROR|CRITICAL|SEVERE): (?P<cause>.+)$")
SHOWN = 5
CELL = 10_000
TITLE, FIRST_PAGE = "PrivAI-Leak", "book/intro.html"
OLD_ADDRESSES = Path(__file__).with_name("old_addresses.yml")


def _unseen(site: Path) -> str:
    """Return what an incremental build cannot see change: configuration, contents, our code, the tools."""
    digest = hashlib.sha256()
    digest.update(repr([(tool, metadata.version(tool)) for tool in TOOLS]).encode())
    files = [site / "_config.yml", site / "_toc.yml", *sorted(Path(__file__).parent.glob("*.py"))]
    for path in files + sorted(p for p in (site / "book" / "_static").rglob("*") if p.is_file()):
        digest.update(path.name.encode() + path.read_bytes())
    digest.update(_titles(site).encode())
    return digest.hexdigest()


def _titles(site: Path) -> str:
    """Return what others show of a page: its first heading, and the question that it answers."""
    shown = []
    for path in sorted(
        [*site.glob("book/*.md"), *site.glob("notebooks/*.ipynb"), *site.glob("runs/*.ipynb")]
    ):
        text = path.read_text(encoding="utf-8")
        lines = [re.search(line, text, re.MULTILINE) for line in (r'^\s*"?# (.+)$', r'^  "question": "(.+)"')]
        shown.append(f"{path.name}: {[line and line[1] for line in lines]}")
    return "\n".join(shown)


def causes(log: str, site: Path) -> list[str]:
    """Return what went wrong in a log of Sphinx, `page:line: cause`, without the paths of this machine."""
    text = ANSI.sub("", log).replace(f"{site}/", "")
    text = notebooks.without_paths(text, site.parents[2])
    matches = [match for line in text.splitlines() if (match := CAUSE.match(line.strip()))]
    return list(dict.fromkeys(f"{_place(m['place'])}: {m['cause'].strip()}" for m in matches))


def _place(text: str) -> str:
    """Return where a warning points; myst-nb counts 10,000 lines to a cell, and one line too many."""
    page, _, line = text.rpartition(":")
    if page.endswith(".ipynb") and line.isdigit() and int(line) >= CELL:
        return f"{page}, cell {int(line) // CELL}, line {max(1, int(line) % CELL - 1)}"
    return text or "the site"


def _jupyter_book(root: Path, site: Path, *, strict: bool = True) -> None:
    """Run jupyter-book on the staged folder.

    Raises:
        RunFailed: naming the page and the cause of each of the first warnings; where not `strict`, only if
            there is no site.
    """
    if not (site / "_build").is_dir():
        _clear(site / "_build")
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build", str(site)]
    # Its Sphinx extension lies beside this file, which is not below `root` where a test made up the book.
    ours = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": ours, "NO_COLOR": "1", "PYTHONHASHSEED": "0"}
    options = OPTIONS if strict else [option for option in OPTIONS if option not in ("-W", "-n")]
    done = subprocess.run(
        [*command, *options], cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    log = done.stdout + done.stderr
    write_atomic(site / LOG, log.encode())
    problems = causes(log, site)
    if done.returncode or (problems and strict):
        problems = (
            problems or [ANSI.sub("", line) for line in log.splitlines() if re.search(r"\w", line)][-3:]
        )
        raise RunFailed(_several("the site does not build", problems, f"{site.relative_to(root)}/{LOG}"))


def _several(failure: str, problems: list[str], where: str) -> str:
    rest = f" (and {len(problems) - SHOWN} more)" if len(problems) > SHOWN else ""
    return f"{failure}: {'; '.join(problems[:SHOWN])}{rest}; see {where}"


def _drop_unused_images(html: Path) -> None:
    """Remove images of earlier builds, which Sphinx leaves behind."""
    folder = html / "_images"
    if not folder.is_dir():
        return
    text = "".join(path.read_text(encoding="utf-8") for path in html.rglob("*.html"))
    for image in folder.iterdir():
        if image.name not in text:
            image.unlink()


def _clear(place: Path) -> None:
    """Remove a folder, or what lies in its place."""
    if place.is_dir() and not place.is_symlink():
        shutil.rmtree(place, ignore_errors=True)
    else:
        place.unlink(missing_ok=True)


@contextlib.contextmanager
def _kept_out_of_sight(site: Path):
    """Move a site that failed to `_failed`: the next build must not find it half done and call it good."""
    failed = site / "_failed"
    _clear(failed)
    try:
        yield
    except BaseException:
        if (site / "_build").exists():
            (site / "_build").replace(failed)
        raise


def _lead_on(page: Path, target: str) -> None:
    """Write a page that leads on to `target`, an address as the page sees it."""
    # An empty icon, or browsers ask for one in vain.
    head = f'<meta charset="utf-8"><title>{TITLE}</title><link rel="icon" href="data:,">'
    refresh = f'<meta http-equiv="refresh" content="0; url={target}">'
    body = f'<body><a href="{target}">{TITLE}</a></body>'
    text = f'<!DOCTYPE html>\n<html lang="en"><head>{head}\n{refresh}</head>\n{body}</html>\n'
    write_atomic(page, text.encode())


def _finish(root: Path, plan: list[Job], site: Path) -> Path:
    """Add to what Sphinx built the way in, old addresses, cards, reports and the policy; return the HTML."""
    html = site / "_build" / "html"
    _lead_on(html / "index.html", FIRST_PAGE)
    for old, slug in parse_yaml(OLD_ADDRESSES.read_text(encoding="utf-8")).items():
        for page in [*html.glob(f"notebooks/{slug}.html"), *html.glob(f"runs/{slug}--*.html")]:
            _lead_on(page.with_name(old + page.name.removeprefix(slug)), page.name)
    _hover_cards.write(html)
    _reports.copy(root, plan, html)
    _checks.protect(html)
    return html


def build_first(root: Path, plan: list[Job]) -> Path:
    """Build a site of the chapters whose runs are complete, the others as outlines, and return its HTML.

    There is no `.complete`, nobody checks it, and the next build makes every page anew: a page may refer to
    what is not there yet.

    Raises:
        PrivHelpersError: a chapter that is here cannot be a page, or there is no site.
    """
    site = stage(root, plan, first=True)
    for name in (published.COMPLETE, published.SEALED, published.FIRST):
        (site / name).unlink(missing_ok=True)
    _jupyter_book(root, site, strict=False)
    html = _finish(root, plan, site)
    write_atomic(site / published.FIRST, b"")
    return html


def build(root: Path, plan: list[Job], *, solutions: bool = True) -> Path:
    """Build the site of one profile and return its folder of HTML.

    Args:
        root: the repository.
        plan: every run of the profile.
        solutions: whether the site shows them; one without is built beside the other.

    Raises:
        PrivHelpersError: a run is missing, failed or out of date, a page does not build without warnings,
            the built site breaks a rule of `checks`, or what it is built from changed meanwhile. Then there
            is neither a site nor `.complete`.
    """
    site = published.site(root, plan[0].profile, solutions=solutions)
    cure = f"run {published.site_command('book', plan[0].profile, solutions)}"
    for name in (published.COMPLETE, published.FIRST):
        (site / name).unlink(missing_ok=True)
    for job in plan:
        if (root / job.sentinel).is_file() and (why := planning.stale(root, job)):
            raise RunFailed(f"{job.title}: {why}; {cure}")
    with _kept_out_of_sight(site):
        as_built, runs = not published.site_difference(site), published.site_runs(site)
        sources = fingerprint.of_site(root)
        stage(root, plan, solutions=solutions)
        unseen = _unseen(site).encode()
        mark = site / FINGERPRINT
        # Sphinx writes only the pages that changed at their source: a page that somebody edited would stay.
        if not (as_built and mark.is_file() and mark.read_bytes() == unseen):
            _clear(site / "_build")
        write_atomic(mark, unseen)
        _jupyter_book(root, site)
        html = _finish(root, plan, site)
        _drop_unused_images(html)
        if problems := _checks.findings(html, _checks.machine_strings(root)):
            raise RunFailed(
                _several(
                    "the built site is not fit to publish", problems, f"{site.relative_to(root)}/_failed"
                )
            )
        if published.site_runs(site) != runs:
            raise RunFailed(f"other runs were made while their site was built; {cure} again")
        if fingerprint.of_site(root) != sources:
            raise RunFailed(f"its sources changed while the site was built; {cure} again")
    write_atomic(site / published.SOURCES, sources.encode())
    published.seal_site(site)
    return html
