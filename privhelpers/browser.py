"""Where the system's Chromium is, which prints and looks at pages; the book never downloads one."""

import os
import shutil

from privhelpers.errors import MissingProgram

NAMES = ("chromium", "chromium-browser", "google-chrome")


def require_chromium(what_for: str, otherwise: str = "") -> str:
    """Return the path of Chromium.

    Args:
        what_for: for the message: what cannot be done without it.
        otherwise: for the message: how to do without, if one can.

    Raises:
        MissingProgram: there is none; the message says how to get it.
    """
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        rest = f"; {otherwise}" if otherwise else ""
        raise MissingProgram(
            f"no Chromium on this machine, which {what_for}: on Debian, apt-get install chromium{rest}"
        )
    return found


def arguments() -> list[str]:
    """Return what Chromium must be started with here: its sandbox does not work for root."""
    return ["--no-sandbox"] if os.geteuid() == 0 else []
