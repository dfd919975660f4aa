"""`python -m bookmaker.site build|pdf|serve --profile NAME`.

A refusal is one line on stderr and exit code 2; a site that does not build is exit code 1.
"""

import argparse
import os
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from bookmaker.runner import plan as planning
from bookmaker.runner import published
from bookmaker.runner.commands import die_with_parent, exclusive, port
from bookmaker.site import _pdf
from bookmaker.site._build import build
from privaudit.console import guarded, one_line, say
from privhelpers.artifacts import check_name, repository_root
from privhelpers.errors import InvalidParameter


def _server(root: Path, profile: str, port: int, solutions: bool) -> ThreadingHTTPServer:
    """Return a server of a profile's finished site.

    Args:
        root: the repository.
        profile: whose site.
        port: from 1 to 65535.
        solutions: whether it is the site that shows them.

    Raises:
        InvalidParameter: the port is taken, or not ours to take.
        PrivHelpersError: there is no finished site, or it is not as it was made.
    """
    html = published.finished(root, check_name(profile), solutions=solutions) / "_build" / "html"
    try:
        made = ThreadingHTTPServer(("127.0.0.1", port), partial(SimpleHTTPRequestHandler, directory=html))
    except OSError as error:
        raise InvalidParameter(f"PORT={port}: {error.strerror}; name another one") from error
    say(profile, f"{html.relative_to(root)} at http://localhost:{port} until Ctrl-C")
    return made


def _command(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code, unless it refuses or fails."""
    parser = argparse.ArgumentParser(prog="python -m bookmaker.site", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, text in (
        ("build", "build runs/<profile>/site/_build/html"),
        ("pdf", f"print that site to runs/<profile>/{published.PDFS[True]}"),
        ("serve", "show that site on this machine"),
    ):
        command = commands.add_parser(name, help=text)
        command.add_argument("--profile", default="course", help="a file of params/ without its ending")
        command.add_argument("--solutions", choices=("", "yes", "no"), help="no: the site without them")
        if name == "serve":
            command.add_argument("--port", type=port, default=port(""), help="default: 8000")
    options = parser.parse_args(arguments)
    die_with_parent()
    root = repository_root()
    os.chdir(root)
    if options.command == "serve":
        with _server(root, options.profile, options.port, options.solutions != "no") as server:
            server.serve_forever()
        return 0
    plan = planning.jobs(root, options.profile)
    lock = root / "runs" / plan[0].profile / ".locks" / "site"
    solutions = options.solutions != "no"
    with exclusive(lock, f"the site of profile {options.profile}", wait=60):
        if options.command == "pdf":
            place = _pdf.write(root, options.profile, solutions=solutions)
            say(options.profile, f"printed: {place.relative_to(root)}, {place.stat().st_size / 1e6:.1f} MB")
        else:
            build(root, plan, solutions=solutions)
    return 0


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code."""
    return guarded(lambda: _command(arguments), one_line)


if __name__ == "__main__":
    sys.exit(main())
