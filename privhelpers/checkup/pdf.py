"""From a page to a PDF, by the Chromium of the system, which may fetch nothing and run nothing."""

import os
import shutil

from privhelpers.errors import MissingProgram, RunFailed

NAMES = ("chromium", "chromium-browser", "google-chrome")
_SECONDS = 60


def require_chromium() -> str:
    """Return the path of Chromium.

    Raises:
        MissingProgram: there is none; the message says how to get it, and how to do without.
    """
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        raise MissingProgram(
            "no Chromium on this machine, which makes the PDF: on Debian, apt-get install chromium; or do "
            "without the PDF: PDF=no"
        )
    return found


def pdf(page: str, *, title: str = "") -> bytes:
    """Return a page of HTML as a tagged PDF.

    Args:
        page: HTML that needs nothing but itself.
        title: for the message, should it fail.

    Raises:
        MissingProgram: there is no Chromium.
        RunFailed: Chromium did not make one.

    Taught in: 18_your_model.
    """
    from playwright.sync_api import Error, sync_playwright

    # Chromium's sandbox does not work for root; the page has no script, and its policy allows no request.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    try:
        with sync_playwright() as tools:
            browser = tools.chromium.launch(executable_path=require_chromium(), args=arguments)
            context = browser.new_context(offline=True, java_script_enabled=False)
            context.set_default_timeout(1000 * _SECONDS)
            tab = context.new_page()
            tab.set_content(page, wait_until="load")
            made = tab.pdf(prefer_css_page_size=True, print_background=True, tagged=True, outline=True)
            browser.close()
    except Error as error:
        raise RunFailed(
            f"{title or 'report'}: Chromium made no PDF ({error.message.splitlines()[0]})"
        ) from error
    return made
