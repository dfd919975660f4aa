"""`make serve`: a built site on this machine, at an address that nobody else reaches."""

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from bookmaker.runner import published
from privaudit.console import say
from privhelpers.artifacts import check_name
from privhelpers.errors import InvalidParameter


def server(root: Path, profile: str, port: int, solutions: bool) -> ThreadingHTTPServer:
    """Return a server of a profile's site, or of its first chapters while the rest is being made.

    Args:
        root: the repository.
        profile: whose site.
        port: from 1 to 65535.
        solutions: whether it is the site that shows them.

    Raises:
        InvalidParameter: the port is taken, or not ours to take.
        PrivHelpersError: there is no finished site, or it is not as it was made.
    """
    site = published.site(root, check_name(profile), solutions=solutions)
    if site.is_symlink() or not (site / published.FIRST).is_file():
        site = published.finished(root, profile, solutions=solutions)
    html = site / "_build" / "html"
    try:
        made = ThreadingHTTPServer(("127.0.0.1", port), partial(SimpleHTTPRequestHandler, directory=html))
    except OSError as error:
        raise InvalidParameter(f"PORT={port}: {error.strerror}; name another one") from error
    say(profile, f"{html.relative_to(root)} at http://localhost:{port} until Ctrl-C")
    return made
