"""Stages, builds and checks the site of one profile; `.complete` exists only if all three went well."""

import os
import re
import subprocess
import sys
from pathlib import Path

from bookmaker.runner import fingerprint, notebooks, published
from bookmaker.runner import plan as planning
from bookmaker.runner.plan import Job
from bookmaker.site import _checks, _hover_cards, _reports
from bookmaker.site._staging import stage
from privhelpers.artifacts import parse_yaml, write_atomic
from privhelpers.errors import RunFailed

LOG = "build.log"
OPTIONS = ("-W", "-n", "--keep-going", "-q")  # every warning is an error, and all of them are shown
ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
CAUSE = re.compile(r"^(?P<place>.*?):? ?(?:WARNING|ERROR|CRITICAL|SEVERE): (?P<cause>.+)$")
SHOWN = 5
CELL = 10_000
TITLE, FIRST_PAGE = "PrivAI-Leak", "book/intro.html"
OLD_ADDRESSES = Path(__file__).with_name("old_addresses.yml")


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


def _jupyter_book(root: Path, site: Path) -> None:
    """Run jupyter-book on the staged folder, always whole: pages show titles of others.

    Raises:
        RunFailed: naming the page and the cause of each of the first warnings.
    """
    command = [sys.executable, "-c", "from jupyter_book.cli.main import main; main()", "build", str(site)]
    # Its Sphinx extension lies beside this file, which is not below `root` if a test made the book.
    ours = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": ours, "NO_COLOR": "1", "PYTHONHASHSEED": "0"}
    done = subprocess.run(
        [*command, *OPTIONS], cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    log = done.stdout + done.stderr
    write_atomic(site / LOG, log.encode())
    problems = causes(log, site)
    if done.returncode and not problems:
        problems = [ANSI.sub("", line) for line in log.splitlines() if re.search(r"\w", line)][-3:]
    if done.returncode or problems:
        raise RunFailed(_several("the site does not build", problems, f"{site.relative_to(root)}/{LOG}"))


def _several(failure: str, problems: list[str], where: str) -> str:
    rest = f" (and {len(problems) - SHOWN} more)" if len(problems) > SHOWN else ""
    return f"{failure}: {'; '.join(problems[:SHOWN])}{rest}; see {where}"


def _lead_on(page: Path, target: str) -> None:
    """Write a page that leads on to `target`, an address as the page sees it."""
    # An empty icon: browsers would ask for one that is not there.
    head = f'<meta charset="utf-8"><title>{TITLE}</title><link rel="icon" href="data:,">'
    refresh = f'<meta http-equiv="refresh" content="0; url={target}">'
    body = f'<body><a href="{target}">{TITLE}</a></body>'
    text = f'<!DOCTYPE html>\n<html lang="en"><head>{head}\n{refresh}</head>\n{body}</html>\n'
    write_atomic(page, text.encode())


def _finish(root: Path, plan: list[Job], html: Path) -> None:
    """Add to what Sphinx built the way in, old addresses, cards, reports and the policy."""
    _lead_on(html / "index.html", FIRST_PAGE)
    for old, slug in parse_yaml(OLD_ADDRESSES.read_text(encoding="utf-8")).items():
        for page in [*html.glob(f"notebooks/{slug}.html"), *html.glob(f"runs/{slug}--*.html")]:
            _lead_on(page.with_name(old + page.name.removeprefix(slug)), page.name)
    _hover_cards.write(html)
    _reports.copy(root, plan, html)
    _checks.protect(html)


def build(root: Path, plan: list[Job], *, solutions: bool = True) -> Path:
    """Build the site of one profile and return its folder of HTML.

    Args:
        root: the repository.
        plan: every run of the profile.
        solutions: whether the site shows them; one without is built next to the other.

    Raises:
        PrivHelpersError: a run is missing, failed or out of date, a page does not build without warnings,
            the built site breaks a rule of `checks`, or what it is built from changed meanwhile. Then there
            is no `.complete`.
    """
    site = published.site(root, plan[0].profile, solutions=solutions)
    cure = f"run {published.site_command(plan[0].profile, solutions)}"
    (site / published.COMPLETE).unlink(missing_ok=True)
    for job in plan:
        if (root / job.sentinel).is_file() and (why := planning.stale(root, job)):
            raise RunFailed(f"{job.title}: {why}; {cure}")
    runs, sources = published.site_runs(site), fingerprint.of_site(root)
    stage(root, plan, solutions=solutions)
    _jupyter_book(root, site)
    html = site / "_build" / "html"
    _finish(root, plan, html)
    if problems := _checks.findings(html, _checks.machine_strings(root)):
        raise RunFailed(_several("the built site cannot be published", problems, f"{html.relative_to(root)}"))
    if published.site_runs(site) != runs:
        raise RunFailed(f"other runs were made while their site was built; {cure} again")
    if fingerprint.of_site(root) != sources:
        raise RunFailed(f"its sources changed while the site was built; {cure} again")
    published.seal_site(site)
    return html
