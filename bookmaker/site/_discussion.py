"""Where readers ask: `_config.yml` names one place, and each page ends with a link to it."""

import re
from html import escape
from typing import Any

from privhelpers.errors import InvalidParameter
from privhelpers.validate import shown

ADDRESS = re.compile(
    r"https?://[^/?#@ ]+([/?#]\S*)?|mailto:[^@ ]+@\S+"
)  # a host without a password before it


def address(settings: dict[str, Any]) -> str:
    """Return where readers ask, empty if the site names no place.

    Args:
        settings: what `files.config` returns.

    Raises:
        InvalidParameter: it is not an address that a link may lead to.
    """
    given = settings["discussion"].get("url")
    if given in (None, ""):
        return ""
    plain = isinstance(given, str) and given.isascii() and given.isprintable()
    if not (plain and ADDRESS.fullmatch(given)):
        raise InvalidParameter(
            f"_config.yml, discussion.url = {shown(given)}: must be an address that starts with https://, "
            'http://, or mailto:, without spaces, accents, or a password; or "" for no link'
        )
    return given


def link(settings: dict[str, Any]) -> str:
    """Return the link to that place, for the end of a page; empty without one. Errors are as in `address`."""
    place = address(settings)
    return f'<a href="{escape(place)}">Ask a question about this page</a>' if place else ""
