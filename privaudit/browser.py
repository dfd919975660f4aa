"""The system's Chromium, which prints and looks at pages; the book never downloads one."""

import os
import shutil
from collections.abc import Callable
from typing import Any

from privhelpers.errors import MissingProgram, RunFailed

NAMES = ("chromium", "chromium-browser", "google-chrome")


def require_chromium(what_for: str, otherwise: str = "") -> str:
    """Return the path of Chromium.

    Args:
        what_for: for the message: what cannot be done without it.
        otherwise: for the message: how to do without, if one can.

    Raises:
        MissingProgram: there is none; the message says how to get it.
    """
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        rest = f"; {otherwise}" if otherwise else ""
        raise MissingProgram(
            f"no Chromium on this machine, which {what_for}: on Debian, apt-get install chromium{rest}"
        )
    return path


def _arguments() -> list[str]:
    """Return what Chromium must be started with here: its sandbox does not work for root."""
    return ["--no-sandbox"] if os.geteuid() == 0 else []


def print_pdf(fill: Callable[[Any], None], what: str, **context: Any) -> bytes:
    """Return a page as a tagged PDF with bookmarks.

    Args:
        fill: puts the page into the tab of Chromium that it is given.
        what: is printed, for the messages.
        context: how the tab is opened, such as `offline=True`, in the words of playwright.

    Raises:
        MissingProgram: there is no Chromium.
        RunFailed: it made no PDF.
    """
    from playwright.sync_api import Error, sync_playwright

    path = require_chromium(f"prints {what}")
    try:
        with sync_playwright() as tools:
            opened = tools.chromium.launch(executable_path=path, args=_arguments())
            tab = opened.new_context(**context).new_page()
            fill(tab)
            made = tab.pdf(prefer_css_page_size=True, print_background=True, tagged=True, outline=True)
            opened.close()
    except Error as error:
        raise RunFailed(f"Chromium did not print {what} ({error.message.splitlines()[0]})") from error
    return made
