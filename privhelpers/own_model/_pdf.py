"""From a page to a PDF, by the Chromium of the system, which may fetch nothing and run nothing."""

from privhelpers import browser
from privhelpers.errors import RunFailed

_SECONDS = 60


def require_chromium() -> str:
    """Return the path of Chromium.

    Raises:
        MissingProgram: there is none; the message says how to get it, and how to do without.
    """
    return browser.require_chromium("makes the PDF", "or do without the PDF: PDF=no")


def pdf(page: str, *, title: str = "") -> bytes:
    """Return a page of HTML as a tagged PDF.

    Args:
        page: HTML that needs nothing but itself.
        title: for the message, should it fail.

    Raises:
        MissingProgram: there is no Chromium.
        RunFailed: Chromium did not make one.
    """
    from playwright.sync_api import Error, sync_playwright

    try:
        with sync_playwright() as tools:
            path = require_chromium()
            opened = tools.chromium.launch(executable_path=path, args=browser.arguments())
            # The page has no script, and its policy allows no request.
            context = opened.new_context(offline=True, java_script_enabled=False)
            context.set_default_timeout(1000 * _SECONDS)
            tab = context.new_page()
            tab.set_content(page, wait_until="load")
            made = tab.pdf(prefer_css_page_size=True, print_background=True, tagged=True, outline=True)
            opened.close()
    except Error as error:
        raise RunFailed(
            f"{title or 'report'}: Chromium made no PDF ({error.message.splitlines()[0]})"
        ) from error
    return made
